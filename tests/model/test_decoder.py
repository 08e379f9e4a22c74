"""The decoder's invariants: a run with a past equals the whole run, and padding reaches no real row."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from journee.config import ModelConfig, MoEConfig
from journee.model import Decoder

CONFIG = ModelConfig(
    vocab_size=61,
    dim=32,
    layers=4,
    heads=4,
    kv_heads=2,
    ffn_dim=48,
    context_length=64,
    moe=MoEConfig(expert_dim=24),
)
CLOSE = {"atol": 2e-5, "rtol": 2e-5}


@pytest.fixture(scope="module")
def model() -> Decoder:
    torch.manual_seed(7)
    decoder = Decoder(CONFIG).eval()
    mixture = decoder.mixture
    assert mixture is not None
    torch.nn.init.normal_(mixture.correction.weight, std=0.2)
    return decoder


def run(model, ids, start, past, padding=()):
    """Run `ids` after `start` tokens, garbage rows behind them; the real logits and the trimmed cache."""
    rows = torch.tensor([[*ids, *padding]])
    mask = torch.ones(1, start + rows.shape[1], dtype=torch.int64)
    mask[:, start + len(ids) :] = 0
    positions = torch.arange(start, start + rows.shape[1])[None]
    with torch.no_grad():
        logits, present = model(rows, mask, positions, past)
    kept = start + len(ids)
    return logits[0, : len(ids)], [(key[:, :, :kept], value[:, :, :kept]) for key, value in present]


def pieces(ids, cuts):
    bounds = [0, *sorted({cut % len(ids) for cut in cuts} - {0}), len(ids)]
    return [ids[a:b] for a, b in pairwise(bounds)]


tokens = st.lists(st.integers(0, CONFIG.vocab_size - 1), min_size=1, max_size=24)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(tokens, st.lists(st.integers(0, 100), max_size=6), st.lists(st.integers(0, 60), max_size=5))
@pytest.mark.parametrize("export_ops", [False, True])
def test_piecemeal_with_padding_equals_all_at_once(model, export_ops, ids, cuts, padding):
    model.use_export_ops(False)
    with torch.no_grad():
        whole = model.logits(torch.tensor([ids]))[0]
    model.use_export_ops(export_ops)
    past, rows, start = model.empty_cache(), [], 0
    for piece in pieces(ids, cuts):
        logits, past = run(model, piece, start, past, padding)
        rows.append(logits)
        start += len(piece)
    torch.testing.assert_close(torch.cat(rows), whole, **CLOSE)
    assert past[0][0].shape == (1, CONFIG.kv_heads, len(ids), CONFIG.head_dim)


def test_left_padding_in_a_batch_changes_nothing(model):
    model.use_export_ops(False)
    long, short = [5, 9, 2, 44, 17], [8, 1, 60]
    ids = torch.tensor([long, [3, 3, *short]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    positions = torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
    with torch.no_grad():
        logits, _ = model(ids, mask, positions, model.empty_cache(2))
        torch.testing.assert_close(logits[0], model.logits(torch.tensor([long]))[0], **CLOSE)
        torch.testing.assert_close(logits[1, 2:], model.logits(torch.tensor([short]))[0], **CLOSE)
        assert torch.isfinite(logits).all()


def test_head_after_slicing_equals_slicing_after_head(model):
    ids = torch.tensor([[1, 2, 3, 4]])
    positions = torch.arange(4)[None]
    with torch.no_grad():
        states, _ = model.hidden(ids, torch.ones_like(ids), positions, model.empty_cache())
        logits, _ = model(ids, torch.ones_like(ids), positions, model.empty_cache())
        torch.testing.assert_close(model.head(states[:, -2:]), logits[:, -2:], atol=1e-6, rtol=1e-6)


def test_rotary_tables_are_not_in_the_state(model):
    assert not [name for name in model.state_dict() if "rotary" in name]
    assert model.rotary_cos.shape[0] > CONFIG.context_length


def test_positions_are_relative(model):
    """Moving every position by the same distance changes nothing: only differences enter."""
    ids = torch.tensor([[4, 8, 15, 16, 23]])
    with torch.no_grad():
        near, _ = model(ids, torch.ones_like(ids), torch.arange(5)[None], model.empty_cache())
        far, _ = model(ids, torch.ones_like(ids), torch.arange(40, 45)[None], model.empty_cache())
    torch.testing.assert_close(near, far, **CLOSE)
