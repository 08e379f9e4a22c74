"""Byte-level BPE, a function of the corpus and the vocabulary size alone.

Target and draft each train it anew from the same corpus and get the same bytes, so they may be trained in either order.
`END_OF_TEXT` has id 0 and separates documents. Its spelling inside a text is encoded as plain text.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END_OF_TEXT = "<|endoftext|>"
END_OF_TEXT_ID = 0
SMALLEST_VOCABULARY = 257
"""All bytes and `END_OF_TEXT`."""

Tokens = NDArray[np.int64]


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> str:
    """The text of a tokenizer.json with exactly `vocab_size` entries; a corpus too small for that is refused."""
    if vocab_size < SMALLEST_VOCABULARY:
        raise ValueError(f"tokenizer.vocab_size is {vocab_size}; expected at least {SMALLEST_VOCABULARY}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    size = tokenizer.get_vocab_size()
    if size != vocab_size:
        raise ValueError(
            f"the corpus has pairs for a vocabulary of {size}, not {vocab_size}; "
            "lower tokenizer.vocab_size or give more text"
        )
    return tokenizer.to_str(pretty=True)


def load_tokenizer(text: str) -> Tokenizer:
    """A tokenizer from the text of its tokenizer.json, encoding special tokens' spellings as plain text."""
    tokenizer = Tokenizer.from_str(text)
    tokenizer.encode_special_tokens = True
    return tokenizer


def tokenizer_hash(text: str) -> str:
    """SHA-256 of the tokenizer.json, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def encode(tokenizer: Tokenizer, texts: list[str]) -> Tokens:
    """All texts as one row of ids, `END_OF_TEXT` before, between and after them."""
    ids = [END_OF_TEXT_ID]
    for encoding in tokenizer.encode_batch_fast(texts, add_special_tokens=False):
        ids.extend(encoding.ids)
        ids.append(END_OF_TEXT_ID)
    return np.array(ids, dtype=np.int64)


def token_texts(tokenizer: Tokenizer) -> list[str]:
    """The text of each id by itself; bytes that are no whole character read as U+FFFD."""
    return [tokenizer.decode([token], skip_special_tokens=False) for token in range(tokenizer.get_vocab_size())]
