"""Folders of small random models, written by transformers: what `journee-export FOLDER` is held against.

transformers is asked for here alone. Where it isn't installed the tests are skipped by name; in CI that is a failure.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.export.small_models import tokenizer_text

if find_spec("transformers") is None:
    missing = "transformers is not installed, so nothing is compared with it; install journee-deploy[dev]"
    if os.environ.get("CI") == "true":
        raise ImportError(missing)
    pytest.skip(missing, allow_module_level=True)

import transformers

transformers.utils.logging.disable_progress_bar()

TOKENS = 260
"""Of the tokenizer; the models' vocabularies are padded to PADDED."""
PADDED = 264
CONTEXT = 96
WIDTHS = {
    "vocab_size": PADDED,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": None,
}
GEMMA_WIDTHS = {**WIDTHS, "head_dim": 16, "num_hidden_layers": 3, "sliding_window": 8, "query_pre_attn_scalar": 24,
                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}  # fmt: skip
GPT2_WIDTHS = {"vocab_size": PADDED, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT,
               "bos_token_id": 0, "eos_token_id": 0}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}  # fmt: skip
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 24}


def make_model(kind: str, **settings: Any) -> Any:
    """A model of transformers with random weights, none like another, in float32."""
    widths = {"gpt2": GPT2_WIDTHS, "gemma3_text": GEMMA_WIDTHS}.get(kind, WIDTHS)
    config = transformers.AutoConfig.for_model(kind, **{**widths, **settings})
    torch.manual_seed(1)
    model: Any = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    for name, parameter in model.named_parameters():
        norm = "norm" in name or "ln_" in name
        around = 1.0 if norm and name.endswith("weight") and not kind.startswith("gemma") else 0.0
        spread = 0.1 if norm or name.endswith("bias") else parameter.shape[-1] ** -0.5
        torch.nn.init.normal_(parameter, mean=around, std=spread)
    return model.float().eval()


def save(model: Any, folder: Path, tokenizer: str | None = None, **options: Any) -> Path:
    """Write `model` and a tokenizer to `folder`."""
    model.save_pretrained(folder, **options)
    (folder / "tokenizer.json").write_text(tokenizer or tokenizer_text())
    change(folder / "config.json", _name_or_path="/home/somebody/models/small")
    return folder


def read_by_transformers(folder: Path) -> Any:
    """The model of a folder, computed in float32."""
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def change(file: Path, **settings: Any) -> None:
    """Set settings of a JSON file; None takes one away."""
    values = json.loads(file.read_text()) if file.is_file() else {}
    values.update(settings)
    file.write_text(json.dumps({name: value for name, value in values.items() if value is not None}))


@torch.inference_mode()
def reference(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """transformers' logits of a whole sequence, [rows, TOKENS]."""
    rows: torch.Tensor = model(tokens[None]).logits[0, :, :TOKENS]
    return rows


@torch.inference_mode()
def greedy(model: Any, tokens: list[int], count: int) -> list[int]:
    """What transformers generates greedily after `tokens`, from the tokenizer's tokens alone."""
    given = torch.tensor([tokens])
    found = model.generate(
        given,
        attention_mask=torch.ones_like(given),
        do_sample=False,
        max_new_tokens=count,
        min_new_tokens=count,
        suppress_tokens=list(range(TOKENS, PADDED)),
        pad_token_id=0,
    )
    texts: list[int] = found[0, len(tokens) :].tolist()
    return texts
