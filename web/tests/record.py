"""What the Python package says of texts and of row rules, as data that the page's own code is judged against.

python web/tests/record.py            writes web/tests/recorded.json
python web/tests/record.py --check    fails where the file is not what the package says now
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from journee_deploy.row_rule import CANDIDATES
from journee_deploy.text import Codec, Pieces, StopStrings

HERE = Path(__file__).parent
BUNDLE = HERE.parents[1] / "artifacts" / "tiny"

TEXTS = (
    "The proof obligation is",
    "def f(x):\n    return [x ** 2 for x in range(10)]  # squares\n",
    "  leading, trailing  ",
    "tabs\tand\r\nlines\n\n\n",
    "naïve café — “quotes” … ½ µ",
    "日本語のテキスト、漢字かな交じり文",
    "emoji 👩‍👩‍👧‍👦 🇫🇷 😀 and e\u0301",
    "it's they're I'll we've don't",
    "12345 3.14159 0xdeadbeef 1e-9",
    "<|endoftext|> in the middle <|endoftext|>",
    "\x00\x01\x7f",
    "a",
    " ",
)
STOPS = ((), ("\n",), ("is", "the end"), ("😀",), ("return", "ret"), ("é",))


def main() -> int:
    text = json.dumps(recorded(), ensure_ascii=True, separators=(",", ":")) + "\n"
    file = HERE / "recorded.json"
    if sys.argv[1:] == ["--check"]:
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            print(f"{file} is not what the package says now; run: python web/tests/record.py")
            return 1
        return 0
    file.write_text(text, encoding="utf-8")
    return 0


def recorded() -> dict[str, Any]:
    codec = Codec.from_file(BUNDLE / "target" / "tokenizer.json")
    chance = random.Random(1)
    return {
        "size": codec.size,
        "encodings": [
            {"text": text, "plain": codec.encode(text), "special": codec.encode(text, special=True)} for text in TEXTS
        ],
        "decodings": [{"tokens": tokens, "text": codec.decode(tokens)} for tokens in _token_lists(codec, chance)],
        "pieces": [_pieces(codec, chance, stops) for stops in STOPS for _ in range(6)],
        "plans": _plans(chance),
    }


def _token_lists(codec: Codec, chance: random.Random) -> list[list[int]]:
    """Random tokens, so also bytes that are no UTF-8, and special ones."""
    return [[], [0], *([chance.randrange(codec.size) for _ in range(chance.randint(1, 12))] for _ in range(60))]


def _pieces(codec: Codec, chance: random.Random, stops: tuple[str, ...]) -> dict[str, Any]:
    """One generation that streams in rounds of 1 to 5 tokens, and ends by a stop, its length or an end token."""
    text = "".join(chance.choice(TEXTS) for _ in range(3))
    tokens = codec.encode(text) + [chance.randrange(1, codec.size) for _ in range(chance.randint(0, 9))]
    sequences = [tokens[3:5]] if chance.random() < 0.3 else []
    strings = StopStrings(codec, stops)
    ends = chance.random() < 0.3
    pieces = Pieces(codec, stops, sequences)
    feeds: list[dict[str, Any]] = []
    asked: list[bool] = []
    done: list[int] = []
    fresh: list[int] = []
    for at, token in enumerate(tokens):
        fresh.append(token)
        said = bool(stops) and strings(done, fresh)
        asked.append(said)
        reason = ""
        if said or any((done + fresh)[-len(one) :] == one for one in sequences):
            reason = "stop"
        elif at + 1 == len(tokens):
            reason = "end-of-sequence" if ends else "length"
            if ends:
                fresh.append(0)
        if reason or len(fresh) == 1 + at % 5:
            given = pieces.feed(fresh, ["bonus"] * len(fresh), reason)
            feeds.append({"tokens": fresh, "reason": reason, "pieces": [str(piece) for piece in given]})
            done += fresh
            fresh = []
        if reason:
            break
    return {"stops": list(stops), "sequences": sequences, "asked": asked, "feeds": feeds}


def _plans(chance: random.Random) -> list[dict[str, Any]]:
    plans: list[dict[str, Any]] = []
    for rule in CANDIDATES:
        for _ in range(12):
            start, count = chance.randint(0, 70), chance.choice((1, 2, 3, 5, 17, 64, 100))
            keep = chance.randint(1, count)
            pieces = rule.plan(start, count, keep, chunk=64)
            plans.append(
                {
                    "rule": [rule.rows, rule.multiple, rule.fixed],
                    "says": str(rule),
                    "asked": [start, count, keep, 64],
                    "pieces": [list(piece) for piece in pieces],
                }
            )
    return plans


if __name__ == "__main__":
    sys.exit(main())
