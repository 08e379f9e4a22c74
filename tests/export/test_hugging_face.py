"""`journee-export FOLDER`: Hugging Face decoders against transformers, from small random models.

Every variant of every architecture is compared as a decoder; one of each is exported and compared as graphs, and as
greedy text through the runtime.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from click.testing import CliRunner, Result
from torch.nn import functional

from journee.hugging_face.architectures import ARCHITECTURES
from journee.hugging_face.folder import read_folder
from journee_deploy.bundle import open_bundle
from journee_deploy.loading import load
from journee_deploy.runtime import OpenOptions, Step, find_runtime
from journee_export.command import main
from journee_export.graph import build_graph
from journee_export.session import GraphSession
from journee_export.trace import input_names, output_names
from journee_export.weights import write_graph
from tests.export.hugging_face_models import (
    CONTEXT,
    LINEAR,
    LLAMA3,
    PADDED,
    TOKENS,
    YARN,
    change,
    greedy,
    make_model,
    read_by_transformers,
    reference,
    save,
)
from tests.export.small_models import tokenizer_text

TOLERANCE = 1e-5
"""Of the decoder, to transformers; logits reach about 5."""
GRAPHS = 1e-4
"""Of the graphs, to transformers."""
GEMMA_ROTATIONS = {
    "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, a key head a head": ("llama", {"num_key_value_heads": 4}),
    "llama, biases": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, wide heads": ("llama", {"head_dim": 32}),
    "llama, gelu": ("llama", {"hidden_act": "gelu"}),
    "llama, linear": ("llama", {"rope_parameters": LINEAR}),
    "llama, llama3": ("llama", {"rope_parameters": LLAMA3}),
    "llama, yarn": ("llama", {"rope_parameters": YARN}),
    "llama, yarn with mscale": ("llama", {"rope_parameters": YARN | {"mscale": 0.7, "mscale_all_dim": 0.4}}),
    "mistral, without a window": ("mistral", {"sliding_window": None}),
    "mistral, a window": ("mistral", {"sliding_window": 8}),
    "mistral, a window longer than the text": ("mistral", {"sliding_window": 64, "head_dim": 32}),
    "qwen2": ("qwen2", {}),
    "qwen2, tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2, windows above": ("qwen2", {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "qwen3, biases": ("qwen3", {"head_dim": 16, "attention_bias": True, "rope_parameters": YARN}),
    "gpt2": ("gpt2", {}),
    "gpt2, untied": ("gpt2", {"tie_word_embeddings": False, "n_inner": 48, "activation_function": "gelu"}),
    "gemma3_text": ("gemma3_text", {}),
    "gemma3_text, untied": ("gemma3_text", {"tie_word_embeddings": False}),
    "gemma3_text, wide layers scaled": ("gemma3_text", {"rope_parameters": GEMMA_ROTATIONS}),
}
EXPORTED = {
    "llama": "llama, yarn",
    "mistral": "mistral, a window",
    "qwen2": "qwen2, windows above",
    "qwen3": "qwen3",
    "gpt2": "gpt2",
    "gemma3_text": "gemma3_text",
}
"""What is exported of each architecture."""


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_decoder_computes_what_transformers_computes(variant: str, tmp_path: Path) -> None:
    kind, settings = VARIANTS[variant]
    model = make_model(kind, **settings)
    decoder = read_folder(save(model, tmp_path / "model")).decoder
    tokens = torch.randint(0, TOKENS, (60,), generator=torch.Generator().manual_seed(2))
    expected = reference(model, tokens)
    found, past = [], decoder.empty_cache()
    with torch.inference_mode():
        for start, end in ((0, 40), (40, 41), (41, 50), (50, 60)):  # prefill, a step, K+1 rows
            rows = torch.arange(start, end)[None]
            logits, past = decoder(tokens[None, start:end], torch.ones(1, end, dtype=torch.int64), rows, past)
            found.append(logits[0])
    assert float((torch.cat(found) - expected).abs().max()) < TOLERANCE


def test_padding_in_the_past_moves_no_window(tmp_path: Path) -> None:
    """A window of 8 with 5 places of padding in the past reads the 7 tokens before a row, as without them."""
    model = make_model("mistral", sliding_window=8)
    decoder = read_folder(save(model, tmp_path / "model")).decoder
    tokens = torch.randint(0, TOKENS, (1, 24), generator=torch.Generator().manual_seed(6))
    rows = torch.arange(24)[None]
    with torch.inference_mode():
        _, past = decoder(tokens[:, :20], torch.ones(1, 20, dtype=torch.int64), rows[:, :20], decoder.empty_cache())
        padded = [(functional.pad(key, (0, 0, 0, 5)), functional.pad(value, (0, 0, 0, 5))) for key, value in past]
        mask = torch.tensor([[1] * 20 + [0] * 5 + [1] * 4])
        found, _ = decoder(tokens[:, 20:], mask, rows[:, 20:], padded)
    assert float((found[0] - reference(model, tokens[0])[20:]).abs().max()) < TOLERANCE


@dataclass(frozen=True)
class Exported:
    """A model of transformers, the folder it was written to, and the bundle that was made of it."""

    model: Any
    folder: Path
    bundle: Path
    result: Result


@pytest.fixture(scope="module", params=EXPORTED)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exported]:
    kind, settings = VARIANTS[EXPORTED[request.param]]
    place = tmp_path_factory.mktemp(request.param)
    model = make_model(kind, **settings)
    folder = save(model, place / "model")
    result = export(folder, place / "bundle")
    assert result.exit_code == 0, result.output
    return Exported(model, folder, place / "bundle", result)


def export(folder: Path, bundle: Path, *arguments: object) -> Result:
    return CliRunner().invoke(main, [str(folder), "-o", str(bundle), *map(str, arguments)])


def test_each_architecture_is_exported() -> None:
    assert list(EXPORTED) == list(ARCHITECTURES)


def test_graphs_compute_what_transformers_computes(exported: Exported) -> None:
    role = open_bundle(exported.bundle).role("target")
    names, outputs = input_names(role.layers), output_names(role.layers)
    graph = GraphSession(role.graph)
    chance = np.random.default_rng(3)
    tokens = chance.integers(0, TOKENS, 60)
    expected = reference(exported.model, torch.tensor(tokens)).numpy()
    caches = (*names.past_keys, *names.past_values)
    held = {name: np.zeros((1, role.kv_heads, 0, role.head_dim), np.float32) for name in caches}
    for start, end in ((0, 40), (40, 41), (41, 50), (50, 60)):
        feeds: dict[str, Any] = {
            names.tokens: tokens[None, start:end],
            names.mask: np.ones((1, end), np.int64),
            "position_ids": np.arange(start, end)[None],
        }
        found = graph({**feeds, **held})
        assert np.abs(found[outputs.logits][0] - expected[start:end]).max() < GRAPHS
        present = (*outputs.present_keys, *outputs.present_values)
        held = {name: found[result] for name, result in zip(caches, present, strict=True)}  # type: ignore[misc]


def test_greedy_text_is_that_of_transformers_whoever_drafts(exported: Exported) -> None:
    prompt = [5, 77, 120, 9, 200, 31]
    expected = greedy(exported.model, prompt, 60)
    for draft in ("none", "uniform"):  # nearly all that "uniform" proposes is rejected: every round rewinds
        with load(exported.bundle, draft=draft) as lm:  # type: ignore[arg-type]
            lm.ends = ()
            found = lm.generate(prompt, max_new_tokens=60, temperature=0)
        assert list(found.tokens) == expected
    assert found.report.row_rule is not None


@pytest.mark.parametrize("cache", ["concat-fp32", "shared-fp32"])
def test_a_rewind_goes_on_from_where_it_says(exported: Exported, cache: str) -> None:
    """Past a window too, and further back than the window reaches."""
    text = np.random.default_rng(4).integers(0, TOKENS, 60).tolist()
    other = [*text[:20], *np.random.default_rng(5).integers(0, TOKENS, 40).tolist()]
    expected = {name: reference(exported.model, torch.tensor(tokens)).numpy() for name, tokens in
                (("text", text), ("other", other))}  # fmt: skip
    options = OpenOptions("cpu", graph=cache)
    model = find_runtime("onnxruntime").open(exported.bundle / "target", "target", options)
    try:
        for name, tokens, start, end in (
            ("text", text, 0, 50),
            ("text", text, 45, 52),
            ("other", other, 20, 30),
            ("other", other, 30, 60),
            ("text", text, 20, 21),
        ):
            (rows,) = model.run([Step(0, tuple(tokens[start:end]), start, end - start)])
            assert np.abs(rows - expected[name][start:end]).max() < GRAPHS
        model.release(0)
    finally:
        model.close()


def test_the_manifest_says_what_it_was_made_from(exported: Exported) -> None:
    record = open_bundle(exported.bundle).role("target").record
    assert (record.vocabulary_size, record.context_length) == (TOKENS, CONTEXT)
    assert record.dtype == "float32"
    assert record.end_of_sequence == (0,)
    assert record.source.figures == {"weights_in_the_folder": "float32", "computed_in": "float32"}
    assert record.source.config["model_type"] == exported.model.config.model_type
    assert [graph.cache for graph in record.graphs] == ["concat", "shared"]
    assert all(found.difference <= found.tolerance for graph in record.graphs for found in graph.parity)
    windows = {window for window in read_folder(exported.folder).decoder.config.windows if window}
    for graph in record.graphs:
        cases = {found.case for found in graph.parity}
        assert {f"beyond the window of {window}" for window in windows} <= cases
    config = json.loads((exported.bundle / "target/config.json").read_text())
    assert (config["vocab_size"], config["model_type"]) == (TOKENS, exported.model.config.model_type)
    assert config["transformers.js_config"]["use_external_data_format"] == {"model.onnx": 1}
    for file in ("journee.json", "target/config.json"):
        assert "/home/somebody" not in (exported.bundle / file).read_text()


@pytest.fixture(scope="module")
def llama() -> Any:
    return make_model("llama")


@pytest.fixture
def folder(llama: Any, tmp_path: Path) -> Path:
    return save(llama, tmp_path / "model")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_weights_are_widened_exactly(dtype: str, tmp_path: Path) -> None:
    folder = save(make_model("llama").to(getattr(torch, dtype)), tmp_path / "model")
    found = read_folder(folder)
    assert found.stored == dtype
    assert {parameter.dtype for parameter in found.decoder.parameters()} == {torch.float32}
    tokens, model = torch.arange(20), read_by_transformers(folder)
    with torch.inference_mode():
        assert float((found.decoder.logits(tokens[None])[0] - reference(model, tokens)).abs().max()) < TOLERANCE


def test_shards_are_read_whole(llama: Any, folder: Path, tmp_path: Path) -> None:
    shards = save(llama, tmp_path / "shards", max_shard_size="100KB")
    assert not (shards / "model.safetensors").exists()
    one, many = read_folder(folder), read_folder(shards)
    assert one.sha256 != many.sha256
    for name, parameter in one.decoder.state_dict().items():
        assert torch.equal(parameter, many.decoder.state_dict()[name]), name


def test_weights_beyond_a_file_go_into_several(folder: Path, tmp_path: Path) -> None:
    decoder = read_folder(folder).decoder
    model = build_graph(decoder)
    names = write_graph(model, decoder, tmp_path, "model.onnx", "model.onnx_data", largest=100_000)
    assert names[:2] == ("model.onnx_data", "model.onnx_data_1")
    assert len(names) > 3
    assert all((tmp_path / name).stat().st_size <= 100_000 for name in names)
    assert GraphSession(tmp_path / "model.onnx").outputs[0] == "logits"


def test_ends_are_those_of_the_generation_config(folder: Path) -> None:
    change(folder / "generation_config.json", eos_token_id=[7, 0, 7])
    assert read_folder(folder).ends == (7, 0)
    change(folder / "generation_config.json", eos_token_id=None)
    assert read_folder(folder).ends == ()  # as transformers has it: config.json is not asked then
    (folder / "generation_config.json").unlink()
    assert read_folder(folder).ends == (0,)


def test_older_files_name_rotation_otherwise(tmp_path: Path) -> None:
    scaled = save(make_model("llama", rope_parameters=LLAMA3), tmp_path / "model")
    expected = read_folder(scaled).decoder.config
    change(
        scaled / "config.json",
        rope_parameters=None,
        rope_theta=LLAMA3["rope_theta"],
        rope_scaling={name: value for name, value in LLAMA3.items() if name != "rope_theta"},
    )
    assert read_folder(scaled).decoder.config == expected
    change(scaled / "config.json", rope_scaling={"type": "linear", "factor": 2.0})
    assert read_folder(scaled).decoder.config.rotary[0].kind == "linear"


def test_a_draft_from_a_folder_with_other_padding(folder: Path, tmp_path: Path) -> None:
    small = make_model("llama", vocab_size=PADDED - 2, num_hidden_layers=1, tie_word_embeddings=True)
    spaced = json.dumps(json.loads(tokenizer_text()) | {"truncation": None}, indent=3)
    draft = save(small, tmp_path / "draft", spaced)
    result = export(folder, tmp_path / "bundle", "--draft", draft, "--draft-precision", "int8")
    assert result.exit_code == 0, result.output
    bundle = open_bundle(tmp_path / "bundle")
    assert bundle.role("draft").vocabulary_size == bundle.role("target").vocabulary_size == TOKENS
    operators = bundle.role("draft").graph_record.operators
    assert operators["com.microsoft::MatMulNBits"] == 8  # the tied head among them
    with load(tmp_path / "bundle") as lm:
        plain = lm.generate([1, 2, 3], max_new_tokens=20, temperature=0, draft=False)
        assert lm.generate([1, 2, 3], max_new_tokens=20, temperature=0).tokens == plain.tokens


@pytest.mark.parametrize("bare", [False, True])
def test_gpt2_without_its_prefix_and_with_old_buffers(bare: bool, tmp_path: Path) -> None:
    folder = save(make_model("gpt2"), tmp_path / "model")
    expected = read_folder(folder).decoder.state_dict()

    def older(held: dict[str, torch.Tensor]) -> None:
        for name in [name for name in held if bare]:
            held[name.removeprefix("transformer.")] = held.pop(name)
        held[f"{'' if bare else 'transformer.'}h.0.attn.bias"] = torch.ones(1, 1, 4, 4, dtype=torch.uint8)

    weights(older)(folder)
    found = read_folder(folder)
    assert found.stored == "float32"
    assert all(torch.equal(expected[name], value) for name, value in found.decoder.state_dict().items())


def test_older_gemmas_name_rotation_and_windows_otherwise(tmp_path: Path) -> None:
    kinds = [*["sliding_attention"] * 5, "full_attention"]
    scaled = {"num_hidden_layers": 6, "layer_types": kinds, "rope_parameters": GEMMA_ROTATIONS}
    folder = save(make_model("gemma3_text", **scaled), tmp_path / "model")
    expected = read_folder(folder).decoder.config
    assert expected.windows == (8, 8, 8, 8, 8, None)
    old = {"rope_theta": 1e6, "rope_local_base_freq": 1e4, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    change(folder / "config.json", rope_parameters=None, layer_types=None, sliding_window_pattern=6, **old)
    assert read_folder(folder).decoder.config == expected


def test_a_token_of_images_without_a_row_is_taken_out(tmp_path: Path) -> None:
    text = more_tokens("<image_soft_token>")
    narrow = read_folder(save(make_model("gemma3_text", vocab_size=TOKENS), tmp_path / "narrow", text))
    assert "<image_soft_token>" not in narrow.tokenizer
    wide = read_folder(save(make_model("gemma3_text"), tmp_path / "wide", text))
    assert wide.tokenizer == text
    assert (narrow.decoder.config.vocab_size, wide.decoder.config.vocab_size) == (TOKENS, TOKENS + 1)


@pytest.mark.parametrize(
    ("kind", "changed", "expected"),
    [
        ("gpt2", {"scale_attn_weights": False}, "scale_attn_weights is false"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is true"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention is true"),
        ("gpt2", {"n_head": 5}, "n_head is 5; expected a divisor of n_embd, which is 64"),
        ("gemma3_text", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping is 50.0"),
        ("gemma3_text", {"final_logit_softcapping": 30.0}, "final_logit_softcapping is 30.0"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention is true"),
        ("gemma3_text", {"layer_types": ["full_attention"]}, "expected one of full_attention, sliding_attention for"),
        ("gemma3_text", {"model_type": "gemma3"}, "gemma3_text is the text's part"),
        ("mistral", {"layer_types": ["full_attention"]}, "a Mistral model has one window for all layers"),
        ("mistral", {"sliding_window": 0}, "sliding_window is 0; expected a whole number of at least 1"),
    ],
)
def test_what_an_architecture_does_not_have_is_refused(
    kind: str, changed: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    folder = save(make_model(kind), tmp_path / "model")
    settings(**changed)(folder)
    assert expected in refusal(folder, tmp_path / "bundle")


def test_pages_get_foreign_models_too(tmp_path: Path) -> None:
    folder = save(make_model("gemma3_text", num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"]),
                  tmp_path / "model")  # fmt: skip
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    result = export(folder, tmp_path / "page", "--for", "web", "--weights", "int8")
    assert result.exit_code == 0, result.output
    (graph,) = open_bundle(tmp_path / "page").role("target").record.graphs
    assert graph.stored is not None
    assert (tmp_path / "page/target/chat_template.jinja").read_text() == "{{ messages }}"


def settings(**values: Any) -> Callable[[Path], None]:
    return lambda folder: change(folder / "config.json", **values)


def without(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def pickled(folder: Path) -> None:
    without("model.safetensors")(folder)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x02}.")


def lost_shard(folder: Path) -> None:
    whole = safetensors.torch.load_file(folder / "model.safetensors")
    names = sorted(whole)
    parts = {f"model-{part + 1:05}-of-00002.safetensors": names[part::2] for part in range(2)}
    for file, tensors in parts.items():
        safetensors.torch.save_file({name: whole[name] for name in tensors}, folder / file)
    places = {name: file for file, tensors in parts.items() for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    without("model.safetensors", "model-00002-of-00002.safetensors")(folder)


def weights(change_them: Callable[[dict[str, torch.Tensor]], object]) -> Callable[[Path], None]:
    def rewrite(folder: Path) -> None:
        tensors = safetensors.torch.load_file(folder / "model.safetensors")
        change_them(tensors)
        safetensors.torch.save_file(tensors, folder / "model.safetensors")

    return rewrite


def more_tokens(*contents: str) -> str:
    """The tokenizer with special tokens behind its own."""
    text = json.loads(tokenizer_text())
    text["added_tokens"] += [
        {"id": TOKENS + place, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for place, content in enumerate(contents)
    ]  # fmt: skip
    return json.dumps(text)


def other_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text(more_tokens(*(f"<extra {more}>" for more in range(9))))


def truncated(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-100])


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (without("config.json"), "has no config.json; give a folder of a Hugging Face model"),
    "a config that is none": (
        lambda folder: (folder / "config.json").write_text("{"),
        "config.json is no readable JSON",
    ),
    "another architecture": (
        settings(model_type="mamba"),
        "model_type is 'mamba', which journee-export does not support; it supports: " + ", ".join(ARCHITECTURES),
    ),
    "no architecture": (settings(model_type=None), "model_type is None"),
    "a quantized model": (settings(quantization_config={"bits": 4}), 'quantization_config is {"bits": 4}'),
    "a model with code": (settings(auto_map={"AutoModel": "x.Y"}), "the model has code of its own"),
    "another rotation": (
        settings(rope_parameters={"rope_type": "longrope"}),
        "rope_type 'longrope' is not supported; supported are: default, linear, llama3, yarn; its frequencies",
    ),
    "a part of heads rotated": (settings(partial_rotary_factor=0.5), "partial_rotary_factor is 0.5"),
    "another activation": (settings(hidden_act="relu"), 'hidden_act is "relu"; expected one of silu'),
    "a width that is none": (settings(hidden_size="64"), 'hidden_size is "64"; expected a whole number'),
    "a missing width": (settings(intermediate_size=None), "intermediate_size is missing; expected"),
    "key heads that don't divide": (settings(num_key_value_heads=3), "num_key_value_heads is 3; expected a divisor"),
    "a context beyond bundles": (settings(max_position_embeddings=2**21), "expected at most 1048576"),
    "no weights": (without("model.safetensors"), "has no weights; expected model.safetensors, or shards with"),
    "pickled weights": (pickled, "has pickled weights (pytorch_model.bin), which are not read"),
    "a missing shard": (lost_shard, "lacks model-00002-of-00002.safetensors of the 2 files that"),
    "an adapter": (
        lambda folder: (without("model.safetensors")(folder), (folder / "adapter_config.json").write_text("{}")),
        "holds an adapter, not a model; merge it",
    ),
    "shards without an index": (
        lambda folder: (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors"),
        "has model-00001-of-00002.safetensors but neither model.safetensors nor",
    ),
    "truncated weights": (truncated, "is no readable safetensors file"),
    "a missing tensor": (weights(lambda held: held.pop("model.norm.weight")), "no file holds model.norm.weight"),
    "a missing head": (weights(lambda held: held.pop("lm_head.weight")), "set tie_word_embeddings if"),
    "a tensor too many": (
        weights(lambda held: held.update({"score.weight": torch.ones(2)})),
        "holds score.weight, which a model of this type has no place for",
    ),
    "another shape": (
        settings(intermediate_size=95),
        "feed_forward.gate.weight are [96, 64], and config.json asks for",
    ),
    "whole numbers": (
        weights(lambda held: held.update({"model.norm.weight": torch.ones(64, dtype=torch.int8)})),
        "model.norm.weight is stored as I8; expected one of F32, F16, BF16",
    ),
    "a weight that is no number": (
        weights(lambda held: held["model.norm.weight"].fill_(float("nan"))),
        "model.norm.weight holds a weight that is not finite",
    ),
    "a head that is tied and isn't": (settings(tie_word_embeddings=True), "lm_head.weight differs from"),
    "no tokenizer": (without("tokenizer.json"), "has no tokenizer.json; where it has a tokenizer of another kind"),
    "a broken tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{}"), "is no tokenizer.json"),
    "a larger tokenizer": (other_tokenizer, "has 269 tokens and config.json says vocab_size 264"),
    "a tokenizer without its names": (
        lambda folder: change(folder / "tokenizer_config.json", eos_token="</s>"),
        "tokenizer_config.json has eos_token '</s>', which tokenizer.json lacks",
    ),
    "an end that is no token": (
        lambda folder: change(folder / "generation_config.json", eos_token_id=TOKENS),
        "eos_token_id is 260, and tokenizer.json has tokens 0 to 259",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_exported_is_refused_by_name(case: str, folder: Path) -> None:
    spoil, expected = REFUSED[case]
    spoil(folder)
    assert expected in refusal(folder, folder.parent / "bundle")


def test_a_smaller_tokenizer_is_refused(tmp_path: Path) -> None:
    model = make_model("llama", vocab_size=1400, hidden_size=16, intermediate_size=16)
    message = refusal(save(model, tmp_path / "model"), tmp_path / "bundle")
    assert "has 260 tokens and config.json says vocab_size 1400; expected as many, or fewer by up to 1024" in message


def test_a_draft_with_another_tokenizer_is_refused(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    (other / "tokenizer.json").write_text(tokenizer_text("zzzz " * 99))
    assert "tokenizer mismatch: " in refusal(folder, tmp_path / "bundle", "--draft", other)


def test_a_folder_and_a_file_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "draft.pt").write_bytes(b"")
    message = refusal(folder, tmp_path / "bundle", "--draft", tmp_path / "draft.pt")
    assert "are a folder and a checkpoint file; give two of a kind" in message


def refusal(folder: Path, bundle: Path, *arguments: object) -> str:
    result = export(folder, bundle, *arguments)
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert not bundle.exists()
    return re.sub(r"\s+", " ", result.output)
