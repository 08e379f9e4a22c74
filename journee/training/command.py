"""The commands behind scripts/train_target.py and scripts/train_draft.py."""

from __future__ import annotations

import platform
import time
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console

from journee.checkpoint import Checkpoint, CheckpointError, check_pair, load_checkpoint, rounded, save_checkpoint
from journee.corpus import Corpus, read_corpus
from journee.cost import multiply_adds, parameters
from journee.evaluation import bits_per_byte, evaluation_length, overlap, score
from journee.model import Decoder
from journee.routing import print_table, routing_table
from journee.tokenizer import Tokens, encode, load_tokenizer, token_texts, train_tokenizer
from journee.training.loop import Trainer
from journee.training.progress import TrainingProgress
from journee.training.settings import DistillSettings, Settings, read_settings
from journee.training.windows import Windows
from journee.trigram import fit_trigram
from journee.word_classes import class_of_tokens


@dataclass(frozen=True)
class Texts:
    """A corpus as tokens."""

    corpus: Corpus
    tokenizer: str
    names: list[str]
    training: Tokens
    held_out: Tokens


def prepare(settings: Settings) -> Texts:
    """Read the corpus, train its tokenizer, and encode both parts."""
    corpus = read_corpus(settings.corpus)
    text = train_tokenizer(corpus.training, settings.model.vocab_size)
    tokenizer = load_tokenizer(text)
    training, held_out = encode(tokenizer, corpus.training), encode(tokenizer, corpus.held_out)
    return Texts(corpus, text, token_texts(tokenizer), training, held_out)


def train(settings: Settings, console: Console, resume: bool = False) -> Checkpoint:
    """Run the training that `settings` describe; write and return the checkpoint."""
    began = time.monotonic()
    texts = prepare(settings)
    target = _target(settings, texts)
    plan = settings.training
    windows = Windows(texts.training, plan.sequence, plan.batch, settings.seed)
    trainer = Trainer(settings, windows, class_of_tokens(texts.names), target.model() if target else None)
    if resume:
        trainer.resume()
    _print_plan(console, settings, texts, trainer.model)
    with TrainingProgress(settings.role, trainer.step, plan.steps, plan.batch * plan.sequence, console) as progress:
        trainer.run(progress.advance)
    checkpoint = _judged(settings, texts, trainer.model, target, console)
    save_checkpoint(checkpoint, settings.out)
    trainer.state_path.unlink(missing_ok=True)
    console.print(f"wrote {settings.out} after {(time.monotonic() - began) / 60:.1f} min", highlight=False)
    return checkpoint


def _target(settings: Settings, texts: Texts) -> Checkpoint | None:
    """The target to distil from, if any; refused when it has another tokenizer or corpus."""
    if settings.distill is None:
        return None
    target = load_checkpoint(settings.distill.target)
    blank = _checkpoint(settings, texts, Decoder(settings.model))
    check_pair(target, replace(blank, source="to be trained"))
    return target


def _checkpoint(settings: Settings, texts: Texts, model: Decoder) -> Checkpoint:
    """A checkpoint of the model as it is, without figures; its weights are rounded to float16."""
    return Checkpoint(
        role=settings.role,
        config=settings.model,
        tokenizer=texts.tokenizer,
        corpus=texts.corpus.origin,
        corpus_hash=texts.corpus.hash,
        interpreter=f"{platform.python_implementation()} {platform.python_version()}",
        held_out_loss=0.0,
        bits_per_byte=0.0,
        steps=settings.training.steps,
        seed=settings.seed,
        weights=rounded(model),
        source=str(settings.out),
    )


def _judged(
    settings: Settings, texts: Texts, trained: Decoder, target: Checkpoint | None, console: Console
) -> Checkpoint:
    """The checkpoint with its figures, measured on the rounded weights, and printed."""
    checkpoint = _checkpoint(settings, texts, trained)
    model = checkpoint.model()
    length = evaluation_length(settings.model)
    result = score(model, texts.held_out, texts.corpus.held_out, length)
    trigram = fit_trigram(texts.training, settings.model.vocab_size).nats(texts.held_out)
    measured = {"trigram_bits_per_byte": bits_per_byte(trigram, texts.corpus.held_out)}
    console.print(
        f"held-out bits per byte: {settings.role} {result.bits_per_byte:.4f}, "
        f"interpolated trigram {measured['trigram_bits_per_byte']:.4f}",
        highlight=False,
    )
    if model.mixture is not None:
        print_table(routing_table(model, texts.names, texts.held_out, length), console)
    if target is not None:
        measured["overlap"] = overlap(target.model(), model, texts.held_out, length)
        console.print(f"overlap with {target.source} (1 - TV): {measured['overlap']:.4f}", highlight=False)
    return replace(checkpoint, held_out_loss=result.loss, bits_per_byte=result.bits_per_byte, measured=measured)


def _print_plan(console: Console, settings: Settings, texts: Texts, model: Decoder) -> None:
    plan = settings.training
    visits = plan.steps * plan.batch * plan.sequence / len(texts.training)
    console.print(
        f"{settings.role}: {parameters(model):,} parameters, {multiply_adds(settings.model):,} multiply-adds a token; "
        f"{len(texts.training):,} training tokens of {texts.corpus.origin}, visited {visits:.2f} times",
        highlight=False,
    )


def command(role: str) -> click.Command:
    """The command that trains a `role`."""

    @click.command(name=f"train_{role}", help=f"Train a {role} and write its checkpoint.")
    @click.option("--config", type=click.Path(path_type=Path), required=True, help="The TOML file of settings.")
    @click.option("--out", type=click.Path(path_type=Path), help="Where to write, instead of the file's `out`.")
    @click.option("--steps", type=click.IntRange(min=1), help="How many steps, instead of the file's.")
    @click.option("--distill-from", help="A trained target to learn from, instead of the file's [distill] target.")
    @click.option("--resume", is_flag=True, help="Continue a run that was broken off.")
    def run(config: Path, out: Path | None, steps: int | None, distill_from: str | None, resume: bool) -> None:
        try:
            settings = _overridden(read_settings(config, role), out, steps, distill_from)
            train(settings, Console(soft_wrap=True), resume)
        except (ValueError, CheckpointError) as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            raise click.ClickException("stopped; run the same command with --resume to go on") from None

    return run


def _overridden(settings: Settings, out: Path | None, steps: int | None, distill_from: str | None) -> Settings:
    if out is not None:
        settings = replace(settings, out=out)
    if steps is not None:
        settings = replace(settings, training=replace(settings.training, steps=steps))
    if distill_from is not None:
        weight = settings.distill.weight if settings.distill else DistillSettings("").weight
        settings = replace(settings, distill=DistillSettings(distill_from, weight))
    return settings
