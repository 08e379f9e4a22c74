"""The PyTorch reference runtime: the decoder behind the protocol, from a checkpoint or from memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from journee.config import ModelConfig, MoEConfig
from journee.model import Decoder
from journee.runtime import TorchRuntime, open_decoder
from journee_deploy.row_rule import RowRule
from journee_deploy.runtime import Model, OpenOptions, RuntimeFailure, Step, find_runtime
from journee_deploy.slots import SlotModel

DENSE = ModelConfig(vocab_size=61, dim=32, layers=2, heads=2, kv_heads=1, ffn_dim=64, context_length=300)
SPARSE = replace(DENSE, layers=4, moe=MoEConfig(expert_dim=32))
TEXT = tuple(np.random.default_rng(5).integers(0, 61, 300).tolist())


def decoder(config: ModelConfig) -> Decoder:
    torch.manual_seed(1)
    return Decoder(config).eval()


def opened(config: ModelConfig = DENSE, row_rule: bool = True) -> Model:
    return open_decoder(decoder(config), "a decoder", OpenOptions(threads=1, row_rule=row_rule))


@pytest.mark.parametrize("config", [DENSE, SPARSE])
def test_rows_are_those_of_the_decoder(config: ModelConfig) -> None:
    model = opened(config, row_rule=False)
    model.run([Step(0, TEXT[:20], 0, 1)])
    (rows,) = model.run([Step(0, TEXT[12:33], 12, 5)])
    with torch.inference_mode():
        whole = decoder(config).logits(torch.tensor([TEXT[:33]]))[0, -5:].numpy()
    np.testing.assert_allclose(rows, whole, atol=1e-5)
    assert rows.dtype == np.float32


@pytest.mark.parametrize("config", [DENSE, SPARSE])
def test_rows_agree_bitwise_under_the_rule_found_or_the_claim_is_refused_by_name(config: ModelConfig) -> None:
    model = opened(config)
    if model.row_rule is None:
        assert model.row_rule_note.startswith("no row rule holds")
        return
    (expected,) = model.run([Step(0, TEXT, 0, len(TEXT))])
    at = 40
    model.run([Step(1, TEXT[:at], 0, 1)])
    for count in (1, 9, 17, 1, 2, 5, 16, 3, 8):
        (rows,) = model.run([Step(1, TEXT[at : at + count], at, count)])
        assert rows.tobytes() == expected[at : at + count].tobytes()
        at += count - 1


def test_a_rewound_slot_is_as_good_as_a_fresh_one() -> None:
    model = opened(row_rule=False)
    model.run([Step(0, TEXT[:60], 0, 1), Step(1, TEXT[:13], 0, 1)])
    rows = [model.run([Step(slot, TEXT[100:120], 13, 20)])[0] for slot in (0, 1)]
    np.testing.assert_allclose(*rows, atol=1e-5)


def test_the_note_says_where_the_rule_comes_from() -> None:
    first, second = opened(), opened()
    assert first.row_rule == second.row_rule
    assert first.row_rule_note.endswith("(self-test now)")
    assert second.row_rule_note.endswith("(known from an earlier self-test here)")


def test_threads_are_set_when_it_runs() -> None:
    before = torch.get_num_threads()
    model = open_decoder(decoder(DENSE), "a decoder", OpenOptions(threads=2, row_rule=False))
    model.run([Step(0, TEXT[:3], 0, 1)])
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_the_context_can_be_filled_under_any_rule() -> None:
    model = opened(row_rule=False)
    assert isinstance(model, SlotModel)
    model.adopt(RowRule(2, 16), "given by the test")
    assert model.run([Step(0, TEXT, 0, 1)])[0].shape == (1, 61)


def test_an_unknown_provider_lists_those_that_are_there(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailure, match="no provider 'tpu' here; there are: cpu"):
        TorchRuntime().open(tmp_path / "target.pt", "target", OpenOptions("tpu"))


def test_a_runtime_opens_files_and_is_found_by_name(tmp_path: Path) -> None:
    runtime = find_runtime("torch")
    (tmp_path / "target.pt").write_bytes(b"")
    assert (runtime.name, runtime.opens(tmp_path), runtime.opens(tmp_path / "target.pt")) == ("torch", False, True)


def test_a_rule_is_looked_for_anew_when_the_weights_differ() -> None:
    opened()
    other = decoder(DENSE)
    with torch.no_grad():
        next(other.parameters())[0, 0] += 1
    assert open_decoder(other, "a decoder", OpenOptions(threads=1)).row_rule_note.endswith("(self-test now)")
