"""Checkpoints: what is written is what is read, whole or not at all; refusals name the file."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
import torch

from journee import checkpoint as module
from journee.checkpoint import Checkpoint, CheckpointError, check_pair, load_checkpoint, rounded, save_checkpoint
from journee.config import ModelConfig, MoEConfig
from journee.corpus import read_corpus
from journee.model import Decoder
from journee.tokenizer import train_tokenizer

CONFIG = ModelConfig(
    vocab_size=300, dim=16, layers=4, heads=2, kv_heads=1, ffn_dim=24, context_length=32, moe=MoEConfig(expert_dim=8)
)


@pytest.fixture(scope="module")
def held(corpus):
    torch.manual_seed(0)
    return Checkpoint(
        role="target",
        config=CONFIG,
        tokenizer=train_tokenizer(read_corpus(corpus).training, 300),
        corpus="a folder",
        corpus_hash="c" * 64,
        interpreter="CPython 3.11.7",
        held_out_loss=2.5,
        bits_per_byte=1.25,
        steps=7,
        seed=1,
        weights=rounded(Decoder(CONFIG)),
        measured={"overlap": 0.5},
    )


@pytest.fixture
def path(held, tmp_path):
    save_checkpoint(held, tmp_path / "target.pt")
    return tmp_path / "target.pt"


def test_what_was_saved_is_loaded(held, path):
    loaded = load_checkpoint(path)
    assert loaded.source == str(path)
    for name in ("role", "config", "tokenizer", "corpus_hash", "interpreter", "held_out_loss", "seed", "measured"):
        assert getattr(loaded, name) == getattr(held, name)
    assert all(torch.equal(value, held.weights[name]) for name, value in loaded.weights.items())
    model = loaded.model()
    assert not model.training
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_a_float16_weight_survives_the_round_trip_exactly(path):
    again = rounded(load_checkpoint(path).model())
    assert all(torch.equal(again[name], value) for name, value in load_checkpoint(path).weights.items())


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match=r"none\.pt does not exist"):
        load_checkpoint(tmp_path / "none.pt")


@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_refused(path, keep):
    content = path.read_bytes()
    path.write_bytes(content[: int(keep if keep >= 1 else keep * len(content))])
    with pytest.raises(CheckpointError, match=r"target\.pt is no readable checkpoint"):
        load_checkpoint(path)


@pytest.mark.parametrize("content", [b"text, not weights\n" * 50, b"PK\x03\x04 almost a zip"])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "other.pt").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"other\.pt is no"):
        load_checkpoint(tmp_path / "other.pt")


def test_a_torch_file_of_another_kind_is_refused(tmp_path):
    torch.save({"weights": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(CheckpointError, match="not a checkpoint of this project"):
        load_checkpoint(tmp_path / "other.pt")


def test_a_flipped_bit_is_refused(held, path):
    content = bytearray(path.read_bytes())
    content[content.index(held.weights["embedding.weight"].numpy().tobytes()) + 5] ^= 4
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"its part .* is damaged"):
        load_checkpoint(path)


def test_code_is_never_run(tmp_path):
    torch.save({"format": module.FORMAT, "version": module.VERSION, "role": warnings.warn}, tmp_path / "code.pt")
    with pytest.raises(CheckpointError, match=r"code\.pt is no readable checkpoint"):
        load_checkpoint(tmp_path / "code.pt")


def change(path, **values):
    torch.save(torch.load(path, weights_only=True) | values, path)


def test_another_version_is_refused(path):
    change(path, version=99)
    with pytest.raises(CheckpointError, match="version 99, this program reads 1"):
        load_checkpoint(path)


def test_a_changed_weight_is_refused_by_its_hash(path):
    weights = torch.load(path, weights_only=True)["weights"]
    weights["norm.weight"][3] = 2.0
    change(path, weights=weights)
    with pytest.raises(CheckpointError, match="the weights in it has SHA-256"):
        load_checkpoint(path)


def test_a_changed_tokenizer_is_refused_by_its_hash(path, held):
    change(path, tokenizer=held.tokenizer + " ")
    with pytest.raises(CheckpointError, match="the tokenizer in it has SHA-256"):
        load_checkpoint(path)


def test_a_missing_field_is_refused_by_name(path):
    content = torch.load(path, weights_only=True)
    del content["corpus_hash"]
    torch.save(content, path)
    with pytest.raises(CheckpointError, match="lacks corpus_hash"):
        load_checkpoint(path)


def test_weights_of_another_shape_are_refused(held):
    with pytest.raises(CheckpointError, match="don't fit its own configuration"):
        replace(held, config=replace(CONFIG, dim=32)).model()


def test_a_diverged_model_is_refused(held):
    model = held.model()
    with torch.no_grad():
        model.norm.weight[0] = 1e6
    with pytest.raises(CheckpointError, match=r"norm\.weight is not finite in float16"):
        rounded(model)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(held, path, monkeypatch):
    before = path.read_bytes()

    def fail(_content, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(held, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["target.pt"]


def test_pairs(held):
    draft = replace(held, role="draft", source="d.pt")
    check_pair(held, draft)
    with pytest.raises(CheckpointError, match=r"corpus mismatch: draft d\.pt has dddddddddddd"):
        check_pair(held, replace(draft, corpus_hash="d" * 64))
    with pytest.raises(CheckpointError, match=r"tokenizer mismatch.*train the draft again"):
        check_pair(held, replace(draft, tokenizer=held.tokenizer + " "))


def test_a_pair_of_other_roles_is_refused(held):
    target, draft = replace(held, source="t.pt"), replace(held, role="draft", source="d.pt")
    with pytest.raises(
        CheckpointError, match=r"d\.pt was trained as a draft, but is given as the target; give a check"
    ):
        check_pair(draft, target)
    with pytest.raises(
        CheckpointError, match=r"t\.pt was trained as a target, but is given as the draft; give a check"
    ):
        check_pair(target, target)


ODD = [None, 3, True, "text", [1], {"a": "text"}, {3: torch.zeros(2)}, torch.zeros(2)]
FIELDS = [
    "role",
    "tokenizer",
    "tokenizer_hash",
    "corpus_hash",
    "weights",
    "weights_hash",
    "config",
    "measured",
    "steps",
]


KINDS = {"steps": int, "role": str, "corpus_hash": str}
MISFITS = [(name, value) for name in FIELDS for value in ODD if not isinstance(value, KINDS.get(name, ()))]


@pytest.mark.parametrize(("name", "value"), MISFITS, ids=str)
def test_a_field_of_another_kind_is_refused_by_file(path, name, value):
    change(path, **{name: value})
    with pytest.raises(CheckpointError, match=r"target\.pt: .*(again|expected)"):
        load_checkpoint(path)


@pytest.mark.parametrize("setting", [{"dim": 7}, {"layers": 0}, {"speed": 1}, {"rope_theta": "10"}, {"moe": 3}])
def test_an_odd_configuration_is_refused_by_file(path, setting):
    change(path, config=torch.load(path, weights_only=True)["config"] | setting)
    with pytest.raises(CheckpointError, match=r"target\.pt: its configuration describes no model"):
        load_checkpoint(path)


@pytest.mark.parametrize("change_weight", [torch.Tensor.bfloat16, torch.Tensor.float, torch.Tensor.to_sparse])
def test_weights_of_another_type_or_layout_are_refused_by_name(path, change_weight):
    weights = torch.load(path, weights_only=True)["weights"]
    name = next(name for name, weight in weights.items() if weight.dim() == 2)
    change(path, weights={**weights, name: change_weight(weights[name])})
    with pytest.raises(CheckpointError, match=rf"target\.pt: {name} is torch\..*; weights are dense float16"):
        load_checkpoint(path)
