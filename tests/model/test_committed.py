"""The checkpoints in the repository: a pair, routed as the table says, and better than a trigram.

Held-out text of whatever interpreter runs the tests; the figures of record are in checkpoints/README.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from journee.checkpoint import check_pair, load_checkpoint
from journee.corpus import standard_library
from journee.cost import multiply_adds
from journee.evaluation import bits_per_byte, overlap, score
from journee.routing import routing_table
from journee.tokenizer import encode, load_tokenizer, token_texts
from journee.trigram import fit_trigram

CHECKPOINTS = Path(__file__).parents[2] / "checkpoints"
SLICE = 16_384


@pytest.fixture(scope="module")
def target():
    return load_checkpoint(CHECKPOINTS / "target.pt")


@pytest.fixture(scope="module")
def draft():
    return load_checkpoint(CHECKPOINTS / "draft.pt")


@pytest.fixture(scope="module")
def held_out(target):
    return encode(load_tokenizer(target.tokenizer), standard_library().held_out)[:SLICE]


def test_they_are_a_pair(target, draft):
    check_pair(target, draft)
    assert (target.role, draft.role) == ("target", "draft")
    assert multiply_adds(draft.config) <= multiply_adds(target.config) / 10


def test_both_beat_the_trigram(target, draft, held_out):
    """Scored again, on text that none of them saw; and so say the figures of record."""
    tokenizer = load_tokenizer(target.tokenizer)
    texts = token_texts(tokenizer)
    following = [texts[token] for token in held_out[1:]]
    trigram = fit_trigram(encode(tokenizer, standard_library().training), tokenizer.get_vocab_size())
    ours, theirs = (score(role.model(), held_out, following, 256).bits_per_byte for role in (target, draft))
    assert ours < theirs < bits_per_byte(trigram.nats(held_out), following)
    assert target.bits_per_byte < draft.bits_per_byte < target.measured["trigram_bits_per_byte"]


def test_every_class_reaches_its_expert_which_keeps_to_its_share(target, held_out):
    rows = routing_table(target.model(), token_texts(load_tokenizer(target.tokenizer)), held_out, 256)
    assert [row for row in rows if not row.holds] == []
    assert all(row.tokens > 50 for row in rows)


def test_half_of_all_proposals_are_accepted(target, draft, held_out):
    assert overlap(target.model(), draft.model(), held_out, 256) > 0.5
