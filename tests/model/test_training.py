"""Training: batches, resuming, distillation, the commands; a few steps on a small corpus."""

from __future__ import annotations

import itertools
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from rich.console import Console
from torch.optim.optimizer import register_optimizer_step_pre_hook

from journee.checkpoint import CheckpointError, check_pair, load_checkpoint, write_atomically
from journee.compare import main as compare_command
from journee.evaluation import evaluation_length, overlap, score
from journee.model import Decoder
from journee.routing import main as routing_command
from journee.routing import routing_table
from journee.training.command import command, prepare, train
from journee.training.loop import Trainer
from journee.training.losses import distillation, load_balance, routing_prior
from journee.training.optimizer import decay_start, learning_rate, orthogonalize, split_parameters
from journee.training.settings import DistillSettings
from journee.training.windows import Windows
from journee.word_classes import class_of_tokens

QUIET = Console(quiet=True)


def test_an_epoch_visits_every_window_once():
    windows = Windows(np.arange(1000, dtype=np.int64), length=10, batch=4, seed=3)
    starts = torch.cat([windows.at(step)[:, 0] for step in range(windows.batches_an_epoch)])
    assert len(set(starts.tolist())) == len(starts) == 4 * windows.batches_an_epoch
    assert len({start % 10 for start in starts.tolist()}) == 1
    assert torch.equal(windows.at(7), windows.at(7))
    assert windows.at(2).diff(dim=1).eq(1).all()


def test_a_text_too_short_for_a_batch_is_refused():
    with pytest.raises(ValueError, match="too few for a batch of 4"):
        Windows(np.arange(30, dtype=np.int64), length=10, batch=4, seed=3)


def test_orthogonalized_matrices_have_singular_values_near_one():
    for shape in ((2, 16, 16), (1, 40, 12), (3, 12, 40)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape, generator=torch.Generator().manual_seed(1))))
        assert values.min() > 0.3
        assert values.max() < 1.3


def test_the_learning_rate_rises_stays_and_falls():
    rates = [learning_rate(step, 100, 10) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert set(rates[9 : decay_start(100) + 1]) == {1.0}
    assert rates[-1] == pytest.approx(1 / 40)


def test_every_parameter_has_one_optimizer(target_settings):
    matrices, others = split_parameters(Decoder(target_settings.model))
    assert len(matrices) + len(others) == len(list(Decoder(target_settings.model).parameters()))
    assert all(matrix.dim() == 2 for matrix in matrices)


def test_the_prior_is_silent_once_a_class_is_at_its_expert():
    at_home = torch.tensor([[5.0, 0.0, 3.0, 1.0, -4.0], [0.0, 9.0, 0.0, 0.0, -4.0], [1.0, 1.0, 1.0, 1.0, 2.0]])
    assert routing_prior(at_home, torch.tensor([0, 1, 4]), active=2) == 0
    assert routing_prior(at_home, torch.tensor([2, 1, 4]), active=2) == 0
    assert routing_prior(at_home, torch.tensor([3, 1, 4]), active=2) == 3
    assert routing_prior(at_home, torch.tensor([-1, -1, -1]), active=2) == 0


def test_balance_is_least_when_all_experts_take_their_share():
    even = torch.tensor([[2.0, 2, 0, 0, -9], [0, 0, 2, 2, -9]])
    uneven = torch.tensor([[2.0, 2, 0, 0, -9], [2, 2, 0, 0, -9]])
    assert load_balance(even, 2) < load_balance(uneven, 2)


def test_distillation_is_least_at_the_target_itself():
    taught = torch.randn(5, 11, generator=torch.Generator().manual_seed(1))
    assert distillation(taught, taught) < distillation(torch.zeros(5, 11), taught)


@pytest.fixture
def parts(target_settings):
    texts = prepare(target_settings)
    windows = Windows(texts.training, 16, 2, target_settings.seed)
    return windows, class_of_tokens(texts.names)


def interrupt_at(step):
    def done(reached, _loss):
        if reached == step:
            signal.raise_signal(signal.SIGINT)

    return done


def ignore(_step, _loss):
    pass


def test_a_resumed_run_equals_an_unbroken_one(target_settings, parts):
    whole = Trainer(target_settings, *parts)
    whole.run(ignore)
    broken = Trainer(target_settings, *parts)
    with pytest.raises(KeyboardInterrupt):
        broken.run(interrupt_at(3))
    resumed = Trainer(target_settings, *parts)
    resumed.resume()
    assert resumed.step == 3
    resumed.run(ignore)
    expected = whole.model.state_dict()
    for name, value in resumed.model.state_dict().items():
        torch.testing.assert_close(value, expected[name], atol=1e-6, rtol=1e-5)


@pytest.fixture
def optimizer_steps():
    """Called before each step of an optimizer: append to it; two optimizers take turns."""
    calls = []

    def before_step(*_arguments):
        for call in calls:
            call()

    hook = register_optimizer_step_pre_hook(before_step)
    yield calls
    hook.remove()


def interrupt_in_call(number, times=1):
    """Ctrl-C in the call of that number, `times` times."""
    counter = itertools.count(1)

    def call():
        if next(counter) == number:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)

    return call


@pytest.mark.parametrize("number", [1, 2, 5, 6, 12], ids=lambda number: f"optimizer step {number}")
def test_an_interrupt_inside_a_step_waits_for_its_end(target_settings, parts, optimizer_steps, number):
    whole = Trainer(target_settings, *parts)
    whole.run(ignore)
    broken = Trainer(target_settings, *parts)
    before = signal.getsignal(signal.SIGINT)
    optimizer_steps.append(interrupt_in_call(number))
    with pytest.raises(KeyboardInterrupt):
        broken.run(ignore)
    assert broken.step == (number + 1) // 2
    assert signal.getsignal(signal.SIGINT) == before
    resumed = Trainer(target_settings, *parts)
    resumed.resume()
    resumed.run(ignore)
    expected = whole.model.state_dict()
    for name, value in resumed.model.state_dict().items():
        torch.testing.assert_close(value, expected[name], atol=1e-6, rtol=1e-5)


def test_a_second_interrupt_stops_at_once_and_saves_nothing(target_settings, parts, optimizer_steps):
    trainer = Trainer(target_settings, *parts)
    before = signal.getsignal(signal.SIGINT)
    optimizer_steps.append(interrupt_in_call(4, times=2))
    with pytest.raises(KeyboardInterrupt):
        trainer.run(ignore)
    assert not trainer.state_path.exists()
    assert signal.getsignal(signal.SIGINT) == before


def test_a_run_in_another_thread_needs_no_signals(target_settings, parts):
    trainer = Trainer(target_settings, *parts)
    thread = threading.Thread(target=trainer.run, args=(ignore,))
    thread.start()
    thread.join()
    assert trainer.step == target_settings.training.steps


def test_a_run_may_change_its_length_until_the_learning_rate_falls(target_settings, parts):
    def stopped_at(step):
        trainer = Trainer(target_settings, *parts)
        with pytest.raises(KeyboardInterrupt):
            trainer.run(interrupt_at(step))

    longer = replace(target_settings, training=replace(target_settings.training, steps=9))
    stopped_at(3)
    Trainer(longer, *parts).resume()
    stopped_at(5)
    with pytest.raises(CheckpointError, match="can't become a run of 9 steps"):
        Trainer(longer, *parts).resume()


def test_resuming_with_other_settings_is_refused_by_name(target_settings, parts):
    trainer = Trainer(target_settings, *parts)
    with pytest.raises(CheckpointError, match="to resume from"):
        trainer.resume()
    trainer.save_state()
    with pytest.raises(CheckpointError, match="another seed"):
        Trainer(replace(target_settings, seed=9), *parts).resume()
    windows, classes = parts
    with pytest.raises(CheckpointError, match="another text"):
        Trainer(target_settings, replace(windows, tokens=windows.tokens[:-1]), classes).resume()
    trainer.state_path.write_bytes(trainer.state_path.read_bytes()[:-50])
    with pytest.raises(CheckpointError, match="truncated"):
        Trainer(target_settings, *parts).resume()


@pytest.mark.parametrize("content", [[], 3, {}, {"settings": 1}, {"settings": {}, "step": "2"}], ids=str)
def test_a_state_file_that_is_none_is_refused(target_settings, parts, content):
    trainer = Trainer(target_settings, *parts)
    write_atomically(content, trainer.state_path)
    with pytest.raises(CheckpointError, match=r"target\.state is no state of a run: .*; run without --resume"):
        trainer.resume()


@pytest.mark.parametrize("part", [{"model": {}}, {"optimizers": []}, {"optimizers": [1, 2]}], ids=str)
def test_a_state_of_another_model_is_refused(target_settings, parts, part):
    trainer = Trainer(target_settings, *parts)
    trainer.save_state()
    write_atomically(torch.load(trainer.state_path, weights_only=True) | part, trainer.state_path)
    with pytest.raises(CheckpointError, match=r"target\.state does not fit this model"):
        trainer.resume()


def test_either_order_gives_a_pair(target_settings, draft_settings, tmp_path):
    first = train(target_settings, QUIET), train(draft_settings, QUIET)
    other = tmp_path / "other"
    again = (replace(settings, out=other / settings.out.name) for settings in (draft_settings, target_settings))
    second = [train(settings, QUIET) for settings in again]
    assert len({checkpoint.tokenizer for checkpoint in (*first, *second)}) == 1
    check_pair(*first)
    check_pair(second[1], second[0])
    assert sorted(file.name for file in other.iterdir()) == ["draft.pt", "target.pt"]


def test_a_checkpoint_repeats_the_figures_it_reports(target_settings):
    written = load_checkpoint(train(target_settings, QUIET).source)
    texts = prepare(target_settings)
    again = score(written.model(), texts.held_out, texts.corpus.held_out, evaluation_length(written.config))
    assert again.bits_per_byte == pytest.approx(written.bits_per_byte, rel=1e-5)
    assert overlap(written.model(), written.model(), texts.held_out, 64) == pytest.approx(1, abs=1e-5)


def test_a_draft_learns_from_a_target(target_settings, draft_settings):
    train(target_settings, QUIET)
    distilled = replace(draft_settings, distill=DistillSettings(str(target_settings.out)))
    assert 0 < train(distilled, QUIET).measured["overlap"] < 1


def test_a_target_of_another_corpus_teaches_nobody(target_settings, draft_settings, corpus, tmp_path):
    train(target_settings, QUIET)
    for file in corpus.iterdir():
        (tmp_path / "texts").mkdir(exist_ok=True)
        (tmp_path / "texts" / file.name).write_text(file.read_text().replace("12", "13"))
    settings = replace(draft_settings, corpus=tmp_path / "texts", distill=DistillSettings(str(target_settings.out)))
    with pytest.raises(CheckpointError, match="mismatch"):
        train(settings, QUIET)


def test_the_prior_makes_the_table_true(target_settings):
    """Pressed hard for a while, the router sends every class to its expert, on text it never saw."""
    assert target_settings.routing is not None
    settings = replace(
        target_settings,
        training=replace(target_settings.training, steps=60, batch=8),
        routing=replace(target_settings.routing, prior=1.0, balance=0.2),
    )
    model = train(settings, QUIET).model()
    texts = prepare(settings)
    for row in routing_table(model, texts.names, texts.held_out, 64):
        assert row.reached >= 0.8 or not row.tokens, row


def test_commands(corpus, tmp_path):
    config = tmp_path / "tiny.toml"
    config.write_text(
        f'corpus = "{corpus}"\n[tokenizer]\nvocab_size = 300\n'
        "[model]\ndim = 16\nlayers = 4\nheads = 2\nkv_heads = 1\nffn_dim = 24\n[model.moe]\nexpert_dim = 8\n"
        "[training]\nsteps = 90\nbatch = 2\nsequence = 16\nlearning_rate = 0.01\n"
    )
    out = str(tmp_path / "t.pt")
    done = CliRunner().invoke(command("target"), ["--config", str(config), "--out", out, "--steps", "2"])
    assert done.exit_code == 0, done.output
    assert f"wrote {out}" in done.output.replace("\n", "")
    assert "interpolated trigram" in done.output
    table = CliRunner().invoke(routing_command, [out, "--corpus", str(corpus)])
    assert table.exit_code == 0, table.output
    assert "Inverter" in table.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "gone.toml"], "gone.toml does not exist"),
        (["--config", "{draft}", "--distill-from", "gone.pt"], "gone.pt does not exist"),
        (["--config", "{draft}", "--resume"], "to resume from"),
        (["--config", "{draft}", "--steps", "0"], "0 is not in the range"),
    ],
)
def test_commands_refuse_and_leave_nothing(tmp_path, corpus, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft.toml").write_text(
        f'corpus = "{corpus}"\n[tokenizer]\nvocab_size = 300\n'
        "[model]\ndim = 16\nlayers = 1\nheads = 2\nkv_heads = 1\nffn_dim = 24\n"
        "[training]\nsteps = 2\nbatch = 2\nsequence = 16\nlearning_rate = 0.01\n"
    )
    result = CliRunner().invoke(command("draft"), [argument.format(draft="draft.toml") for argument in arguments])
    assert result.exit_code != 0
    assert message in result.output
    assert [file.name for file in tmp_path.iterdir()] == ["draft.toml"]


def test_the_routing_command_refuses_a_draft(draft_settings, corpus):
    train(draft_settings, QUIET)
    result = CliRunner().invoke(routing_command, [str(draft_settings.out), "--corpus", str(corpus)])
    assert result.exit_code != 0
    assert "no mixture of experts" in result.output


def test_a_pair_is_compared(target_settings, draft_settings, corpus):
    for settings in (target_settings, draft_settings):
        train(settings, QUIET)
    paths = [str(target_settings.out), str(draft_settings.out), "--corpus", str(corpus)]
    result = CliRunner().invoke(compare_command, paths)
    assert result.exit_code == 0, result.output
    assert "overlap (1 - TV)" in result.output
    assert "interpolated trigram" in result.output
