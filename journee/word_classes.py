"""Which tokens belong to a class of words, by their text alone.

The lists are in word_classes.toml. They serve twice: as the weak prior of training (`journee.training.losses`), and to
tabulate afterwards where the router sends the tokens of each class (`journee.routing`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import torch
from torch import Tensor

from journee.moe import COLUMNS

NO_CLASS = -1


@dataclass(frozen=True, slots=True)
class WordClass:
    """One table of word_classes.toml; its comments define the fields."""

    words: frozenset[str]
    affixes: frozenset[str] = frozenset()
    symbols: frozenset[str] = frozenset()
    digits: bool = False
    layout: bool = False

    def has_word(self, text: str) -> bool:
        """Whether the token as a whole is listed."""
        word = text.strip().lower()
        fragment = len(word) < 3 and word.isalpha() and not text[0].isspace()
        return text in self.affixes or (word in self.words and not fragment)

    def has_form(self, text: str) -> bool:
        """Whether the token is made of the class's characters."""
        bare = text.strip()
        if not bare:
            return self.layout and bool(text)
        return set(bare) <= self.symbols or (self.digits and bare.isdecimal())


@cache
def word_classes() -> tuple[WordClass, ...]:
    """The classes in the order of the router's columns."""
    tables = tomllib.loads(files("journee").joinpath("word_classes.toml").read_text(encoding="utf-8"))
    return tuple(_word_class(tables[name]) for name in COLUMNS)


def _word_class(table: dict[str, list[str] | str | bool]) -> WordClass:
    def characters(name: str) -> frozenset[str]:
        values = table.get(name, "")
        return frozenset() if isinstance(values, bool) else frozenset(values)

    return WordClass(
        words=characters("words"),
        affixes=characters("affixes"),
        symbols=characters("symbols"),
        digits=table.get("digits") is True,
        layout=table.get("layout") is True,
    )


def classify(text: str) -> int:
    """The column of the token's class, or `NO_CLASS`: a listed word first, then a token's form."""
    for column, words in enumerate(word_classes()):
        if words.has_word(text):
            return column
    for column, words in enumerate(word_classes()):
        if words.has_form(text):
            return column
    return NO_CLASS


def class_of_tokens(texts: Sequence[str]) -> Tensor:
    """The class of every token id, int64 [len(texts)], from the texts of the ids."""
    return torch.tensor([classify(text) for text in texts])
