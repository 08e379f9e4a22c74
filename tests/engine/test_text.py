"""Text: what a prompt becomes, how tokens become pieces, where stops cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from journee_deploy.controller.stops import END, LENGTH, STOP
from journee_deploy.text import Codec, Pieces, StopStrings, TextError

shared_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def feed(pieces: Pieces, tokens: list[int], reason: str, split: int = 3) -> str:
    """Feed tokens a few at a time; the last few carry the reason."""
    out = ""
    for start in range(0, len(tokens), split):
        part = tokens[start : start + split]
        last = start + split >= len(tokens)
        out += "".join(pieces.feed(part, ["bonus"] * len(part), reason if last else ""))
    return out


@shared_fixtures
@given(st.lists(st.integers(0, 319), min_size=1, max_size=40), st.integers(1, 5))
def test_pieces_joined_are_the_decoded_text(codec: Codec, tokens: list[int], split: int) -> None:
    assert feed(Pieces(codec), tokens, LENGTH, split) == codec.decode(tokens)


@shared_fixtures
@given(st.text(max_size=30))
def test_every_text_survives_encoding(codec: Codec, text: str) -> None:
    assert codec.decode(codec.encode(text)) == text


@shared_fixtures
@given(st.text(alphabet="aé日👩🚀‍ ", min_size=1, max_size=20))
def test_no_piece_splits_a_character(codec: Codec, text: str) -> None:
    pieces = Pieces(codec)
    tokens = codec.encode(text)
    for i, token in enumerate(tokens):
        for piece in pieces.feed([token], ["bonus"], LENGTH if i == len(tokens) - 1 else ""):
            assert "\ufffd" not in piece
            assert piece


def test_special_text_in_a_prompt_is_plain_text_unless_asked(codec: Codec) -> None:
    plain = codec.encode("a<|endoftext|>b")
    assert 0 not in plain
    assert codec.decode(plain) == "a<|endoftext|>b"
    assert 0 in codec.encode("a<|endoftext|>b", special=True)
    assert 0 not in codec.encode("a<|endoftext|>b")  # asking once changes nothing later


@shared_fixtures
@given(st.text(alphabet="abc é", min_size=1, max_size=30), st.text(alphabet="abc é", min_size=1, max_size=4))
def test_the_text_ends_where_a_stop_string_begins_and_never_leaks_it(codec: Codec, text: str, stop: str) -> None:
    tokens = codec.encode(text)
    strings = StopStrings(codec, [stop])
    end = next((i for i in range(1, len(tokens) + 1) if strings([], tokens[:i])), None)
    assert (end is not None) == (stop in text)
    if end is None:
        assert feed(Pieces(codec, [stop]), tokens, LENGTH) == text
        return
    for i in range(end + 1):  # however the tokens are dealt between old and new
        assert strings(tokens[:i], tokens[i:end]) if i < end else True
    pieces = Pieces(codec, [stop])
    seen = ""
    for i, token in enumerate(tokens[:end]):
        seen += "".join(pieces.feed([token], ["bonus"], STOP if i == end - 1 else ""))
        assert text[: text.index(stop)].startswith(seen)
    assert seen == text[: text.index(stop)]


def test_stop_strings_look_past_special_tokens(codec: Codec) -> None:
    a, b = codec.encode("xq"), codec.encode("zx")
    pad = codec.encode("<|pad|>", special=True)
    assert StopStrings(codec, ["qz"])(a + pad * 50, b)


def test_a_stop_sequence_is_held_back_and_dropped(codec: Codec) -> None:
    a, b, c = codec.encode("abc", False)[:1] * 1, codec.encode("q"), codec.encode("z")
    pieces = Pieces(codec, sequences=[b + c])
    assert "".join(pieces.feed(a, ["bonus"])) == codec.decode(a)
    assert pieces.feed(b, ["bonus"]) == []  # may begin the stop
    assert pieces.feed(c, ["bonus"], STOP) == []
    pieces = Pieces(codec, sequences=[b + c])
    assert pieces.feed(b, ["bonus"]) == []
    assert "".join(pieces.feed(b, ["bonus"])) == "q"  # the first one did not; the second may
    assert "".join(pieces.feed(a, ["bonus"], LENGTH)) == "q" + codec.decode(a)


def test_stops_that_end_together_all_stay_out_of_the_text(codec: Codec) -> None:
    a, b, c = (codec.encode(letter) for letter in "qzx")
    for sequences in ([c, b + c], [b + c, c]):
        assert "".join(Pieces(codec, sequences=sequences).feed(a + b + c, ["bonus"] * 3, STOP)) == "q"
    assert "".join(Pieces(codec, ["zx"], [c]).feed(a + b + c, ["bonus"] * 3, STOP)) == "q"  # the string begins earlier
    assert "".join(Pieces(codec, ["x"], [b + c]).feed(a + b + c, ["bonus"] * 3, STOP)) == "q"  # the sequence does


def test_a_stop_sequence_that_the_limit_did_not_reach_stays_in_the_text(codec: Codec) -> None:
    b, c = codec.encode("z"), codec.encode("x")
    assert "".join(Pieces(codec, sequences=[b + c]).feed(b, ["bonus"], LENGTH)) == "z"


def test_an_end_token_is_not_in_the_text(codec: Codec) -> None:
    q = codec.encode("q")
    assert "".join(Pieces(codec).feed([*q, *q], ["bonus"] * 2, END)) == "q"


def test_a_character_never_completed_is_shown_at_the_end(codec: Codec) -> None:
    first = codec.encode("日")[:1]
    pieces = Pieces(codec)
    assert pieces.feed(first, ["accepted"]) == []
    (piece,) = pieces.feed([], [], LENGTH)
    assert piece == "\ufffd"
    assert piece.kind == "accepted"


@pytest.mark.parametrize("stop", ["", "a\ufffd"])
def test_stop_strings_that_can_never_be_told_are_refused(codec: Codec, stop: str) -> None:
    with pytest.raises(TextError, match="stop string"):
        StopStrings(codec, [stop])


def test_a_tokenizer_that_cuts_or_pads_does_neither_here(tokenizer_json: str) -> None:
    wanted = Codec.from_text(tokenizer_json, "plain").encode("the proof obligation is naïve")
    cutting = Tokenizer.from_str(tokenizer_json)
    cutting.enable_truncation(2)
    assert Codec.from_text(cutting.to_str(), "cutting").encode("the proof obligation is naïve") == wanted
    padding = Tokenizer.from_str(tokenizer_json)
    padding.enable_padding(length=50)
    assert Codec.from_text(padding.to_str(), "padding").encode("the proof obligation is naïve") == wanted


def test_a_missing_or_broken_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TextError, match="cannot read the tokenizer"):
        Codec.from_file(tmp_path / "tokenizer.json")
    for content in ("", "{}", '{"model": 3}', "\x00"):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(TextError, match="is not a tokenizer"):
            Codec.from_file(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_bytes(b"\xff\xfe")
    with pytest.raises(TextError, match="cannot read"):
        Codec.from_file(tmp_path / "tokenizer.json")


def test_tokens_outside_the_vocabulary_are_refused(codec: Codec) -> None:
    for token in (-1, codec.size):
        with pytest.raises(TextError, match="outside the vocabulary"):
            codec.check([0, token])
