"""Text in, tokens in; tokens out, text out, by the `tokenizers` library.

`Codec` encodes prompts and decodes texts. `Pieces` decodes a stream of tokens into pieces that never split a character
and never leak part of a stop: what could still turn out to belong to one is held back.

Rules: special-token text in a prompt is plain text unless asked for; an end-of-sequence token, or the tokens of a stop
sequence, are in the tokens and not in the text; the text ends where a stop string begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from journee_deploy.controller.stops import END, STOP


class TextError(ValueError):
    """A tokenizer file, a prompt or a stop that can't be used; the message says what to do."""


class Codec:
    """A tokenizer. `size` is the number of its tokens: columns of logits past it mean nothing."""

    def __init__(self, content: str) -> None:
        self._tokenizer = _whole_texts(content, plain=True)
        self._special_aware = _whole_texts(content, plain=False)
        self.size = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self._special = {token for token, added in self._tokenizer.get_added_tokens_decoder().items() if added.special}

    @classmethod
    def from_file(cls, path: Path) -> Codec:
        try:
            return cls.from_text(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise TextError(f"cannot read the tokenizer {path}: {error}; export the bundle again") from error

    @classmethod
    def from_text(cls, content: str, name: str) -> Codec:
        """From the text of a tokenizer.json; `name` is what messages call it."""
        try:
            return cls(content)
        except Exception as error:  # the library raises nothing narrower
            raise TextError(f"{name} is not a tokenizer.json: {error}; export the bundle again") from error

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of a prompt. With `special`, the text of a special token becomes that token."""
        _check_unicode("the prompt", text)
        return list((self._special_aware if special else self._tokenizer).encode(text).ids)

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones left out; bytes that are no UTF-8 become U+FFFD."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def step(self, stream: DecodeStream, token: int) -> str:
        """The characters that `token` completes."""
        return stream.step(self._tokenizer, token) or ""

    def check(self, tokens: Sequence[int]) -> None:
        """Refuse token ids outside the vocabulary."""
        for token in tokens:
            if not isinstance(token, Integral) or isinstance(token, bool):
                raise TextError(f"{token!r} is no token; tokens are whole numbers")
            if not 0 <= token < self.size:
                raise TextError(f"token {token} is outside the vocabulary of {self.size} tokens")

    def last(self, tokens: Sequence[int], count: int) -> list[int]:
        """The last `count` tokens that have text."""
        found: list[int] = []
        for token in reversed(tokens):
            if len(found) == count:
                break
            if token not in self._special:
                found.append(token)
        return found[::-1]


def _whole_texts(content: str, plain: bool) -> Tokenizer:
    """A tokenizer that neither cuts nor pads, whatever its file asks for: that would change a prompt in silence."""
    tokenizer = Tokenizer.from_str(content)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = plain
    return tokenizer


def _check_unicode(what: str, text: str) -> None:
    """Refuse half surrogates, which is how Python shows bytes that are no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TextError(
            f"{what} is no Unicode text at character {error.start}: {text[error.start]!r}; give it as UTF-8"
        ) from None


class StopStrings:
    """Whether the text of some tokens contains a stop string: a pure function of the tokens, for `controller.Stops`.

    It is asked after every token, so a stop string that is there now ends in the last token's text; every token with
    text has at least a byte of it, so the last tokens, one more than the longest stop has bytes, tell.
    """

    def __init__(self, codec: Codec, strings: Sequence[str]) -> None:
        for string in strings:
            _check_unicode("a stop string", string)
            if not string or "\ufffd" in string:
                raise TextError(f"stop string {string!r} must have at least one character, and none that is U+FFFD")
        self.strings = tuple(strings)
        self._codec = codec
        self._window = 1 + max((len(string.encode()) for string in strings), default=0)

    def __call__(self, generated: Sequence[int], new: Sequence[int]) -> bool:
        recent = self._codec.last(new, self._window)
        if len(recent) < self._window:
            recent = self._codec.last(generated, self._window - len(recent)) + recent
        text = self._codec.decode(recent)
        return any(string in text for string in self.strings)


class Piece(str):
    """Some characters of the text, and the kind (accepted, recovered, bonus) of the token that completed them."""

    kind: str

    def __new__(cls, text: str, kind: str) -> Piece:
        piece = super().__new__(cls, text)
        piece.kind = kind
        return piece


class Pieces:
    """Decodes one generation as it streams. Joined, the pieces are its text."""

    def __init__(self, codec: Codec, stops: Sequence[str] = (), sequences: Sequence[Sequence[int]] = ()) -> None:
        self._codec = codec
        self._stops = tuple(stops)
        self._sequences = [list(sequence) for sequence in sequences]
        self._stream = DecodeStream(skip_special_tokens=True)
        self._tokens: list[tuple[int, str]] = []  # not decoded yet: they may belong to a stop sequence
        self._decoded: list[int] = []
        self._length = 0  # characters decoded so far, held ones included
        self._kind = ""  # of the token decoded last
        self._held: list[Piece] = []  # decoded, not released yet: they may belong to a stop string

    def feed(self, tokens: Sequence[int], kinds: Sequence[str], reason: str = "") -> list[Piece]:
        """The pieces that these tokens make final; `reason` says why the text ends with them ("" if it goes on)."""
        self._tokens += zip(tokens, kinds, strict=True)
        end = self._stop_string() if reason == STOP else None
        if reason == END:
            self._tokens.pop()
        elif reason == STOP:
            self._drop_sequence()
        keep = 0 if reason else self._may_be_stop()
        while len(self._tokens) > keep:
            self._decode(*self._tokens.pop(0))
        return self._finish(end) if reason else self._release()

    def _stop_string(self) -> int | None:
        """Where in the text the first stop string begins, if one is there."""
        text = self._codec.decode(self._decoded + [token for token, _ in self._tokens])
        return min((place for place in (text.find(stop) for stop in self._stops) if place >= 0), default=None)

    def _decode(self, token: int, kind: str) -> None:
        self._decoded.append(token)
        self._kind = kind
        text = self._codec.step(self._stream, token)
        if text:
            self._held.append(Piece(text, kind))
            self._length += len(text)

    def _drop_sequence(self) -> None:
        """Take back the longest stop sequence that the tokens end with, if they do."""
        ids = [token for token, _ in self._tokens]
        longest = max((len(sequence) for sequence in self._sequences if ids[-len(sequence) :] == sequence), default=0)
        del self._tokens[len(ids) - longest :]

    def _may_be_stop(self) -> int:
        """How many of the last tokens are a proper beginning of a stop sequence."""
        ids = [token for token, _ in self._tokens]
        most = 0
        for sequence in self._sequences:
            for count in range(min(len(sequence) - 1, len(ids)), most, -1):
                if ids[-count:] == sequence[:count]:
                    most = count
                    break
        return most

    def _release(self) -> list[Piece]:
        if not self._stops:
            released, self._held = self._held, []
            return released
        text = "".join(self._held)
        return self._take(self._safe(text))

    def _safe(self, text: str) -> int:
        """How many characters can't belong to a stop string any more."""
        for start in range(len(text)):
            tail = text[start:]
            if any(stop.startswith(tail) for stop in self._stops):
                return start
        return len(text)

    def _finish(self, end: int | None) -> list[Piece]:
        """All that is left, up to the character `end` of the text."""
        released = self._length - len("".join(self._held))
        rest = self._codec.decode(self._decoded)[self._length :]  # a character that never was completed
        if rest:
            self._held.append(Piece(rest, self._kind))
        length = len("".join(self._held))
        pieces = self._take(length if end is None else min(end - released, length))
        self._held.clear()
        return pieces

    def _take(self, count: int) -> list[Piece]:
        """Release the first `count` characters held, piece by piece."""
        taken: list[Piece] = []
        while self._held and count:
            piece = self._held.pop(0)
            if len(piece) > count:
                self._held.insert(0, Piece(piece[count:], piece.kind))
                piece = Piece(piece[:count], piece.kind)
            count -= len(piece)
            taken.append(piece)
        return taken
