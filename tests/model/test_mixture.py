"""The router's rule, and that sparse dispatch, dense dispatch and the training path agree."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from journee.config import MoEConfig
from journee.moe import SparseMoE, dispatch_dense, dispatch_sparse
from journee.router import boolean_router, straight_through

few_values = st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0, float("inf"), float("-inf")])


def largest(scores, k):
    """The rule read literally: order by score, then by column, and take the first k."""
    order = sorted(range(len(scores) - 1), key=lambda e: (-scores[e], e))[:k]
    return [e in order for e in range(len(scores) - 1)] + [scores[-1] > 0]


@settings(derandomize=True, deadline=None, max_examples=150)
@given(st.lists(few_values, min_size=5, max_size=5), st.integers(1, 4))
def test_router_takes_the_k_largest_lowest_column_first(scores, k):
    gates = boolean_router(torch.tensor(scores), k)
    assert gates.dtype == torch.bool
    assert gates.tolist() == largest(scores, k)
    assert straight_through(torch.tensor(scores), k).tolist() == [float(gate) for gate in gates]


def test_router_operator_passes_pytorch_checks():
    torch.library.opcheck(torch.ops.journee.boolean_router.default, (torch.randn(2, 3, 5), 2))


@pytest.mark.parametrize("k", [0, 5])
def test_router_refuses_an_impossible_k(k):
    with pytest.raises(ValueError, match=f"asked for {k} of 4 experts"):
        boolean_router(torch.zeros(1, 5), k)


def test_straight_through_has_the_gradient_of_the_sigmoid():
    scores = torch.tensor([0.3, -2.0, 1.0, 0.0, 0.7], requires_grad=True)
    straight_through(scores, 2).sum().backward()
    soft = torch.sigmoid(scores.detach())
    torch.testing.assert_close(scores.grad, soft * (1 - soft))


@pytest.fixture(scope="module")
def mixture() -> SparseMoE:
    torch.manual_seed(3)
    return SparseMoE(16, MoEConfig(expert_dim=20)).eval()


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(0, 10**6))
def test_sparse_equals_dense_and_padding_is_silent(mixture, batch, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch, rows, 16, generator=generator)
    real = torch.rand(batch, rows, generator=generator) < 0.7
    with torch.no_grad():
        gates = mixture.gates(mixture.scores(x), real)
        sparse, dense = dispatch_sparse(mixture, x, gates), dispatch_dense(mixture, x, gates)
    torch.testing.assert_close(sparse, dense, atol=1e-6, rtol=1e-5)
    assert gates[..., :-1].sum(-1).eq(2 * real).all()
    assert not sparse[~real].any()


def test_training_path_equals_inference(mixture):
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        inference = mixture(x)
        mixture.train()
        training = mixture(x)
        mixture.eval()
    torch.testing.assert_close(training, inference, atol=1e-6, rtol=1e-5)


def test_an_expert_without_tokens_is_not_run(mixture, monkeypatch):
    gates = torch.tensor([[[True, False, True, False, False]]])
    for idle in (1, 3):
        monkeypatch.setattr(mixture.experts[idle], "forward", lambda _: pytest.fail("an idle expert was run"))
    monkeypatch.setattr(mixture.correction, "forward", lambda _: pytest.fail("an idle inverter was run"))
    dispatch_sparse(mixture, torch.randn(1, 1, 16), gates)
