"""A small corpus, and settings that train on it in a second."""

from __future__ import annotations

import pytest

from journee.training.settings import parse_settings

SENTENCE = "def gauge(self, reading):\n    # The reading is not negative, except when {} fails.\n    return {} * 12\n\n"


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder of sixty short files, some of which fall to the held-out part."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(60):
        words = [f"valve{number}", f"port{number * 7 % 11}"]
        text = "".join(SENTENCE.format(word, words[turn % 2]) for turn, word in enumerate(words * 4))
        (folder / f"part{number:02}.txt").write_text(text, encoding="utf-8")
    return folder


def document(corpus, out, mixture: bool):
    """A training TOML as a dictionary."""
    model = {"dim": 16, "layers": 4, "heads": 2, "kv_heads": 1, "ffn_dim": 24, "context_length": 64}
    plan = {"steps": 6, "batch": 2, "sequence": 16, "learning_rate": 0.01, "warmup": 2}
    values = {"seed": 5, "out": str(out), "corpus": str(corpus), "tokenizer": {"vocab_size": 300}}
    values |= {"model": model | ({"moe": {"expert_dim": 12}} if mixture else {}), "training": plan}
    return values


@pytest.fixture
def target_settings(corpus, tmp_path):
    return parse_settings(document(corpus, tmp_path / "target.pt", mixture=True), "target")


@pytest.fixture
def draft_settings(corpus, tmp_path):
    return parse_settings(document(corpus, tmp_path / "draft.pt", mixture=False), "draft")
