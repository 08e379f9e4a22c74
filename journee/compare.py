"""A target and a draft side by side on held-out text.

    python -m journee.compare checkpoints/target.pt checkpoints/draft.pt

Prints bits per byte of both and of the trigram, multiply-adds a token, and the overlap (1 - TV): the mean chance, at
temperature 1 and along held-out text, that a proposal of the draft is accepted.
"""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from journee.checkpoint import Checkpoint, check_pair, load_checkpoint
from journee.corpus import Corpus, read_corpus
from journee.cost import multiply_adds, parameters
from journee.evaluation import bits_per_byte, evaluation_length, overlap, score
from journee.tokenizer import encode, load_tokenizer
from journee.trigram import fit_trigram


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@click.argument("draft", type=click.Path(path_type=Path))
@click.option("--corpus", type=click.Path(path_type=Path), help="The file or folder that both were trained on.")
def main(target: Path, draft: Path, corpus: Path | None) -> None:
    """Compare the checkpoints TARGET and DRAFT on held-out text."""
    try:
        pair = load_checkpoint(target), load_checkpoint(draft)
        check_pair(*pair)
        compare(*pair, read_corpus(corpus), Console())
    except ValueError as error:
        raise click.ClickException(str(error)) from error


def compare(target: Checkpoint, draft: Checkpoint, corpus: Corpus, console: Console) -> None:
    """Measure and print; a corpus other than the one trained on is named, and its figures given all the same."""
    if corpus.hash != target.corpus_hash:
        console.print(
            f"{corpus.origin} here is not the corpus of the checkpoints ({target.interpreter})", soft_wrap=True
        )
    tokenizer = load_tokenizer(target.tokenizer)
    tokens = encode(tokenizer, corpus.held_out)
    length = min(evaluation_length(target.config), evaluation_length(draft.config))
    table = Table(
        title=f"Held-out text: {len(corpus.held_out)} documents, {len(tokens):,} tokens", title_justify="left"
    )
    for heading in ("model", "parameters", "multiply-adds a token", "bits per byte"):
        table.add_column(heading, justify="left" if heading == "model" else "right")
    for checkpoint in (target, draft):
        model = checkpoint.model()
        found = score(model, tokens, corpus.held_out, length).bits_per_byte
        costs = f"{parameters(model):,}", f"{multiply_adds(checkpoint.config):,}"
        table.add_row(checkpoint.role, *costs, f"{found:.4f}")
    trigram = fit_trigram(encode(tokenizer, corpus.training), target.config.vocab_size).nats(tokens)
    table.add_row("interpolated trigram", "", "", f"{bits_per_byte(trigram, corpus.held_out):.4f}")
    console.print(table)
    agreement = overlap(target.model(), draft.model(), tokens, length)
    console.print(f"overlap (1 - TV), the chance that one proposal is accepted: {agreement:.4f}", soft_wrap=True)


if __name__ == "__main__":
    main()
