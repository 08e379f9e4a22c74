from __future__ import annotations

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from journee_deploy.language_model import LanguageModel
from journee_deploy.text import Codec
from tests.engine.prefix_model import PrefixModel, hashed

TEXTS = ["the proof obligation is naïve, the proof is 日本語 and 👩‍🚀 café", "def f(x): return x + 1"] * 3
END = "<|endoftext|>"


@pytest.fixture(scope="session")
def tokenizer_json() -> str:
    """A small byte-level BPE with an end token (id 0) and a second special one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=[END], initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens([AddedToken("<|pad|>", special=True)])
    return tokenizer.to_str()


@pytest.fixture
def codec(tokenizer_json: str) -> Codec:
    return Codec.from_text(tokenizer_json, "the test's tokenizer")


@pytest.fixture
def lm(codec: Codec) -> LanguageModel:
    """Rows wider than the vocabulary; a draft that is like the target half of the time."""
    size = codec.size + 3
    target = hashed(size, 1)
    other = hashed(size, 2)

    def draft(prefix: tuple[int, ...]) -> list[float]:
        return list(target(prefix) if sum(prefix) % 2 else other(prefix))

    return LanguageModel("toy", PrefixModel(target, size), codec, draft=PrefixModel(draft, size - 1), ends=(0,))
