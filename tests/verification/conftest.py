from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from journee_deploy.exactness import toys
from journee_deploy.language_model import DraftKind
from journee_deploy.runtime import Model
from journee_deploy.text import Codec
from journee_deploy.verification.effort import Effort, GTest
from journee_deploy.verification.models import Models
from tests.engine.prefix_model import PrefixModel, hashed

SIZE = 256
SMALL = Effort(
    row_texts=1,
    row_rounds=2,
    greedy_texts=1,
    greedy_tokens=8,
    lengths=(1, 4),
    coupled_seeds=1,
    coupled_tokens=6,
    toys_left_out=tuple(toy.name for toy in toys()[1:]),
    parity_texts=1,
    tests=(GTest(limit=3, top_k=2, length=2, prompts=2, cap=600),),
)


@pytest.fixture(scope="session")
def codec() -> Codec:
    """A token a byte."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return Codec(tokenizer.to_str())


def near(prefix: tuple[int, ...]) -> list[float]:
    """A draft's rows: the target's, a little off."""
    target, noise = hashed(SIZE, 1)(prefix), hashed(SIZE, 2)(prefix)
    return [a + 0.1 * b for a, b in zip(target, noise, strict=True)]


def models_of(
    codec: Codec, target: Model, kind: DraftKind = "model", draft: Model | None = None, ends: tuple[int, ...] = ()
) -> Models:
    if kind == "model" and draft is None:
        draft = PrefixModel(near, SIZE)
    return Models("toy", target, draft, codec, ends, kind)


@pytest.fixture
def sound(codec: Codec) -> Models:
    """A target and a draft that keep every promise."""
    return models_of(codec, PrefixModel(hashed(SIZE, 1), SIZE))
