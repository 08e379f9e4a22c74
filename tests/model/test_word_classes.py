"""The word lists: disjoint, closed under the rules that word_classes.toml states."""

from __future__ import annotations

from itertools import combinations

import pytest

from journee.moe import COLUMNS
from journee.word_classes import NO_CLASS, class_of_tokens, classify, word_classes


def test_no_word_and_no_symbol_is_in_two_classes():
    for (one, first), (other, second) in combinations(zip(COLUMNS, word_classes(), strict=True), 2):
        shared = (first.words & second.words) | (first.affixes & second.affixes) | (first.symbols & second.symbols)
        assert not shared, f"{one} and {other} share {shared}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" the", "Syntax"),
        ("ing", "Syntax"),
        ("):", "Syntax"),
        ("\n    ", "Syntax"),
        (" 12", "Quantity"),
        (" each", "Quantity"),
        ("<=", "Quantity"),
        (" of", "Relation"),
        ("self", "Relation"),
        (" return", "Action"),
        (" +=", "Action"),
        (" not", "Inverter"),
        (" None", "Inverter"),
        ("!=", "Inverter"),
    ],
)
def test_a_token_has_the_class_of_its_list(text, name):
    assert COLUMNS[classify(text)] == name


@pytest.mark.parametrize("text", [" ing", "in", "a", "buffer", "\ufffd", "=["])
def test_fragments_and_open_words_have_no_class(text):
    assert classify(text) == NO_CLASS


def test_classes_of_a_vocabulary():
    assert class_of_tokens([" the", "buffer", " not"]).tolist() == [0, NO_CLASS, 4]
