"""`journee-export`, once with everything; and its refusals: a message, exit code 1, no traceback, nothing left over."""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import journee_export.bundle
import journee_export.role
from journee.checkpoint import save_checkpoint
from journee.tokenizer import tokenizer_hash
from journee_deploy.bundle import file_record, open_bundle
from journee_deploy.manifest import Parity
from journee_export.command import main
from journee_export.parity import CASES, shared_cases
from tests.export.conftest import Run
from tests.export.small_models import CORPUS, DRAFT, TARGET, make_checkpoint, tokenizer_text

FILES = ["config.json", "generation_config.json", "onnx/model.onnx", "onnx/model.onnx_data",
         "onnx/model_shared.onnx", "tokenizer.json", "tokenizer_config.json"]  # fmt: skip


def test_it_ends_well_and_says_what_happened(run: Run) -> None:
    assert run.result.exit_code == 0, run.result.output
    last = run.result.output.strip().splitlines()[-1]
    assert re.fullmatch(
        r"Wrote .*bundle: target and draft, \d\.\d\d MB; every float32 graph within \d\.\de-\d\d of PyTorch.", last
    )
    for text in ("ai.journee::BooleanRouter", "target/onnx/model.onnx_data", "K+1 rows with a past", "row rule here"):
        assert text in run.result.output
    stages = ("Tracing the target", "Comparing the target", "Tracing the draft", "Comparing the draft", "Looking for")
    places = [run.result.output.index(stage) for stage in stages]  # told line by line where there is no terminal
    assert places == sorted(places)
    assert sorted(path.name for path in run.bundle.parent.iterdir()) == ["bundle", "cache", "draft.pt", "target.pt"]


def test_a_model_without_a_shared_cache_says_why(run: Run) -> None:
    text = re.sub(r"\s+", " ", run.result.output)
    assert "The draft gets no graph with a shared cache, the faster one on CPU: its heads are 8 wide" in text
    assert "The target gets no graph" not in text


def test_the_bundle_holds_what_the_manifest_says(run: Run) -> None:
    bundle = open_bundle(run.bundle)
    assert bundle.roles == ("target", "draft")
    expected = [f"{role}/{name}" for role in ("draft", "target") for name in FILES]
    expected.remove("draft/onnx/model_shared.onnx")
    assert list(bundle.manifest.files) == expected
    for name, config, checkpoint in (("target", TARGET, run.target), ("draft", DRAFT, run.draft)):
        role = bundle.role(name)
        assert (role.vocabulary_size, role.context_length) == (config.vocab_size, config.context_length)
        assert (role.layers, role.kv_heads, role.head_dim) == (config.layers, config.kv_heads, config.head_dim)
        assert role.end_of_sequence == (0,)
        record = role.record
        assert record.vocabulary_hash == tokenizer_hash(tokenizer_text())
        assert record.corpus_hash == CORPUS
        assert record.source.checkpoint_sha256 == file_record(checkpoint).sha256
        assert record.source.config == config.to_dict()
        assert record.source.figures == {
            "interpreter": "CPython 3.11", "bits_per_byte": 2.5, "steps": 10, "seed": 1, "acceptance": 0.5,
        }  # fmt: skip
    assert bundle.manifest.versions["python"] == platform.python_version()
    assert set(bundle.manifest.versions) == {"python", "journee-deploy", "torch", "onnx", "onnxscript", "onnxruntime"}


def test_parity_and_the_row_rule_are_recorded(run: Run) -> None:
    bundle = open_bundle(run.bundle)
    for name in bundle.roles:
        parity = bundle.role(name).graph_record.parity
        assert [found.case for found in parity] == [case.name for case in CASES]
        assert all(found.difference <= found.tolerance for found in parity)
    shared = bundle.role("target", "shared-fp32").graph_record
    assert [found.case for found in shared.parity] == [case.name for case in shared_cases(TARGET.context_length)]
    assert all(found.difference <= found.tolerance for found in shared.parity)
    assert shared.weights == bundle.role("target").graph_record.weights
    assert shared.router == "function"
    assert shared.operators["com.microsoft::GroupQueryAttention"] == TARGET.layers
    assert shared.operators["Pad"] == 3 * TARGET.layers  # queries, keys and values of a row run alone
    for graph in bundle.role("target").record.graphs:
        assert graph.row_rule is None or graph.row_rule.where.startswith("onnxruntime, cpu, ")
    assert bundle.role("draft").graph_record.row_rule is None
    assert bundle.role("target").graph_record.router == "function"
    assert bundle.role("draft").graph_record.router == "none"


def test_the_model_folder_speaks_transformers(run: Run) -> None:
    config = json.loads((run.bundle / "target/config.json").read_text())
    expected = {
        "model_type": "journee", "vocab_size": 260, "hidden_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 96,
        "rope_theta": 10000.0, "eos_token_id": 0, "num_local_experts": 4, "num_experts_per_tok": 2,
    }  # fmt: skip
    assert {name: config[name] for name in expected} == expected
    assert "num_local_experts" not in json.loads((run.bundle / "draft/config.json").read_text())
    assert json.loads((run.bundle / "target/generation_config.json").read_text())["eos_token_id"] == 0
    assert json.loads((run.bundle / "target/tokenizer_config.json").read_text())["eos_token"] == "<|endoftext|>"
    assert (run.bundle / "target/tokenizer.json").read_text() == tokenizer_text()


def test_no_path_of_this_machine_is_in_the_manifest(run: Run) -> None:
    assert str(run.bundle.parent) not in (run.bundle / "journee.json").read_text()


def refusal(arguments: Sequence[str | Path], folder: Path) -> str:
    """The message of a run that must fail, leaving in `folder` what was there."""
    before = sorted(folder.rglob("*"))
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    assert sorted(folder.rglob("*")) == before
    return re.sub(r"\s+", " ", result.output)


def test_a_missing_checkpoint(tmp_path: Path) -> None:
    message = refusal([tmp_path / "none.pt", "-o", tmp_path / "b"], tmp_path)
    assert "none.pt does not exist; train one with scripts/train_target.py" in message


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04" + b"x" * 100, b"\x80\x02}."])
def test_a_checkpoint_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.pt").write_bytes(content)
    assert "Error: " in refusal([tmp_path / "bad.pt", "-o", tmp_path / "b"], tmp_path)


def test_a_draft_that_is_none(run: Run, tmp_path: Path) -> None:
    message = refusal([run.target, "--draft", tmp_path / "none.pt", "-o", tmp_path / "b"], tmp_path)
    assert "none.pt does not exist" in message


def test_a_draft_with_another_tokenizer(run: Run, tmp_path: Path) -> None:
    save_checkpoint(make_checkpoint("draft", DRAFT, tokenizer_text("zzzz " * 99)), tmp_path / "other.pt")
    message = refusal([run.target, "--draft", tmp_path / "other.pt", "-o", tmp_path / "b"], tmp_path)
    assert "tokenizer mismatch: draft" in message
    assert "train the draft again" in message


def test_a_draft_of_another_corpus(run: Run, tmp_path: Path) -> None:
    save_checkpoint(make_checkpoint("draft", DRAFT, tokenizer_text(), "b" * 64), tmp_path / "other.pt")
    message = refusal([run.target, "--draft", tmp_path / "other.pt", "-o", tmp_path / "b"], tmp_path)
    assert "corpus mismatch: draft" in message


def test_a_swapped_pair(run: Run, tmp_path: Path) -> None:
    message = refusal([run.draft, "--draft", run.target, "-o", tmp_path / "b"], tmp_path)
    assert (
        "draft.pt was trained as a draft, but is given as the target; give a checkpoint of scripts/train_t" in message
    )
    assert "is given as the target" in refusal([run.draft, "-o", tmp_path / "b"], tmp_path)
    assert "is given as the draft" in refusal([run.target, "--draft", run.target, "-o", tmp_path / "b"], tmp_path)


def test_a_destination_that_exists(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    assert "b exists; choose another destination, or replace it with --force" in refusal(
        [run.target, "-o", tmp_path / "b"], tmp_path
    )


def test_force_does_not_replace_what_is_no_bundle(run: Run, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letters.txt").write_text("dear")
    assert "is no bundle" in refusal([run.target, "-o", tmp_path / "b", "--force"], tmp_path)


def test_without_the_export_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "journee_export.run", None)
    message = refusal([tmp_path / "target.pt", "-o", tmp_path / "b"], tmp_path)
    assert "install what exporting needs: pip install 'journee-deploy[export]'" in message


def test_an_output_must_be_named(run: Run) -> None:
    result = CliRunner().invoke(main, [str(run.target)])
    assert result.exit_code == 2
    assert "Missing option '-o'" in result.output


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Tracing is replaced by a copy of files from an earlier export: what follows it is what is tried."""

    def nothing(*arguments: object) -> str:
        return "a graph"

    def write(model: object, decoder: object, folder: Path, graph: str, weights: str) -> tuple[str, ...]:
        for name in (graph, weights):
            (folder / name).write_bytes((run.bundle / "target/onnx" / name).read_bytes())
        return (weights,)

    monkeypatch.setattr(journee_export.role, "build_graph", nothing)
    monkeypatch.setattr(journee_export.role, "share_cache", nothing)
    monkeypatch.setattr(journee_export.role, "write_graph", write)
    monkeypatch.setattr(journee_export.role, "router_kind", lambda model: "function")
    monkeypatch.setattr(journee_export.role, "count_operators", lambda model: {"MatMul": 1})
    monkeypatch.setattr(journee_export.bundle, "with_row_rules", lambda record, folder: record)


@pytest.mark.usefixtures("quick")
def test_parity_out_of_tolerance(run: Run, tmp_path: Path) -> None:
    other = replace(make_checkpoint("target", TARGET, tokenizer_text()), weights={})
    weights = {name: value * 1.01 for name, value in make_checkpoint("target", TARGET, "").weights.items()}
    save_checkpoint(replace(other, weights=weights), tmp_path / "other.pt")
    message = refusal([tmp_path / "other.pt", "-o", tmp_path / "b"], tmp_path)
    assert "does not compute what the PyTorch model computes, so nothing was written. prefill: " in message
    assert "(allowed 0.0001)" in message


@pytest.mark.usefixtures("quick")
def test_force_replaces_a_bundle_and_keeps_it_when_the_new_one_fails(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = CliRunner().invoke(main, [str(run.target), "-o", str(tmp_path / "b")])
    assert first.exit_code == 0, first.output
    written = (tmp_path / "b/journee.json").stat().st_ino
    second = CliRunner().invoke(main, [str(run.target), "-o", str(tmp_path / "b"), "--force"])
    assert second.exit_code == 0, second.output
    assert (tmp_path / "b/journee.json").stat().st_ino != written
    monkeypatch.setattr(journee_export.role, "measure", lambda *arguments: (Parity("prefill", 1.0, 1e-4),))
    assert "prefill: 1 (allowed 0.0001)" in refusal([run.target, "-o", tmp_path / "b", "--force"], tmp_path)
    assert open_bundle(tmp_path / "b").roles == ("target",)


def full_disk(*arguments: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model.onnx_data")


@pytest.mark.usefixtures("quick")
def test_a_full_disk(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journee_export.role, "write_graph", full_disk)
    message = refusal([run.target, "-o", tmp_path / "b"], tmp_path)
    assert "Error: nothing was written: [Errno 28] No space left on device: 'model.onnx_data'" in message


def interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("quick")
def test_an_interrupt(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journee_export.role, "measure", interrupt)
    assert "Aborted!" in refusal([run.target, "-o", tmp_path / "b"], tmp_path)


def failing(*arguments: object, **options: object) -> None:
    raise RuntimeError("an operator is unknown\nand a page of what led there")


FOREIGN = {
    "torch.onnx.export": "exporting the model with PyTorch failed: RuntimeError: an operator is unknown. Check that",
    "journee_export.graph.CheckerPass.__call__": "checking the graph with ONNX failed: RuntimeError: an operator",
    "onnxruntime.InferenceSession.__init__": "opening model.onnx with ONNX Runtime failed: RuntimeError: an operator",
    "onnxruntime.InferenceSession.run": "running the graph with ONNX Runtime failed: RuntimeError: an operator",
}


@pytest.mark.parametrize("place", FOREIGN)
def test_errors_of_other_libraries_are_named_by_what_was_done(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, request: pytest.FixtureRequest
) -> None:
    if place.startswith("onnxruntime"):
        request.getfixturevalue("quick")
    monkeypatch.setattr(place, failing)
    assert FOREIGN[place] in refusal([run.target, "-o", tmp_path / "new" / "b"], tmp_path)


def test_a_request_to_end_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    """SIGTERM while it works, as a service manager sends it."""
    code = (
        "import os, signal, sys, journee_export.bundle as bundle\n"
        "def end(*arguments, **options): os.kill(os.getpid(), signal.SIGTERM)\n"
        "bundle.write_role = end\n"
        "from journee_export.command import main\n"
        "main(sys.argv[1:])\n"
    )
    destination = tmp_path / "new" / "b"
    done = subprocess.run(
        [sys.executable, "-c", code, str(run.target), "-o", str(destination)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("quick")
def test_a_destination_that_can_not_be_made(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "nothing was written: " in refusal([run.target, "-o", tmp_path / "file" / "b"], tmp_path)
