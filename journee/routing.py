"""Where the router sends the tokens of each class: the table of design section 6, from held-out text.

    python -m journee.routing checkpoints/target.pt

A class is kept when at least `REACH` of its tokens reach its expert while that expert takes at most `SHARE` of all
tokens (chance is a half for the four experts).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from journee.checkpoint import load_checkpoint
from journee.corpus import read_corpus
from journee.evaluation import batches, evaluation_length
from journee.model import Decoder
from journee.moe import COLUMNS, SparseMoE
from journee.tokenizer import Tokens, encode, load_tokenizer, token_texts
from journee.word_classes import class_of_tokens

REACH = 0.80
SHARE = 0.60


@dataclass(frozen=True, slots=True)
class RoutingRow:
    """One class: how many of the tokens are of it, which part of those reach its expert, and of all tokens."""

    name: str
    tokens: int
    of_text: float
    reached: float
    share: float

    @property
    def holds(self) -> bool:
        """Whether the class's expert does what its name says."""
        return self.reached >= REACH and self.share <= SHARE


@contextmanager
def router_scores(mixture: SparseMoE) -> Generator[list[Tensor]]:
    """A list to which each run of the model inside the `with` adds its router scores [batch, rows, experts + 1]."""
    seen: list[Tensor] = []

    def note(module: torch.nn.Module, args: tuple[Tensor, ...], scores: Tensor) -> None:
        seen.append(scores)

    handle = mixture.router.register_forward_hook(note)
    try:
        yield seen
    finally:
        handle.remove()


@torch.no_grad()
def routing_table(model: Decoder, texts: list[str], tokens: Tokens, length: int) -> list[RoutingRow]:
    """A row for each column of the router; `texts` are those of the token ids, `tokens` the held-out text."""
    mixture = model.mixture
    if mixture is None:
        raise ValueError("the model has no mixture of experts, so there is no routing to tabulate; give a target")
    with router_scores(mixture) as seen:
        for batch in batches(tokens, length):
            model.logits(batch[:, :-1])
    gates = mixture.gates(torch.cat([scores.flatten(0, 1) for scores in seen]), None).double()
    classes = class_of_tokens(texts)[torch.tensor(tokens[:-1])]
    rows: list[RoutingRow] = []
    for column, name in enumerate(COLUMNS):
        members = classes == column
        reached = gates[members, column].mean().item() if members.any() else 0.0
        size = int(members.sum())
        rows.append(RoutingRow(name, size, size / len(classes), reached, gates[:, column].mean().item()))
    return rows


def print_table(rows: list[RoutingRow], console: Console) -> None:
    """Print the rows."""
    table = Table(title="Routing on held-out text", title_justify="left")
    for heading in ("class", "share of text", "reaches its expert", "expert's share of all", "holds"):
        table.add_column(heading, justify="left" if heading == "class" else "right")
    for row in rows:
        shares = (f"{share:.1%}" for share in (row.of_text, row.reached, row.share))
        table.add_row(row.name, *shares, "yes" if row.holds else "NO")
    console.print(table)


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--corpus", type=click.Path(path_type=Path), help="The file or folder that the target was trained on.")
def main(checkpoint: Path, corpus: Path | None) -> None:
    """Tabulate where the target in CHECKPOINT sends each class of words, on held-out text."""
    try:
        target, text = load_checkpoint(checkpoint), read_corpus(corpus)
        tokenizer = load_tokenizer(target.tokenizer)
        tokens = encode(tokenizer, text.held_out)
        rows = routing_table(target.model(), token_texts(tokenizer), tokens, evaluation_length(target.config))
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if text.hash != target.corpus_hash:
        click.echo(f"{text.origin} here is not the corpus it was trained on ({target.interpreter}); figures may differ")
    print_table(rows, Console())


if __name__ == "__main__":
    main()
