"""The files beside a role's graph, named and filled as optimum and transformers.js expect.

`config.json` uses transformers' names (`hidden_size`, `num_hidden_layers`, ...), with the model type
"journee". A foreign model keeps its own files, so that other software knows its architecture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from journee.config import ModelConfig
from journee_deploy.typed_json import Json
from journee_export.source import RoleSource

MODEL_TYPE = "journee"
DTYPES = {"float32": "fp32", "float16": "fp16", "int8": "int8", "int4": "q4"}
"""As transformers.js spells them."""


def write_model_folder(folder: Path, source: RoleSource, dtype: str, graph: str, chunks: int = 1) -> None:
    """Write config, generation config and the tokenizer's two files into `folder`, in UTF-8 with plain
    newlines. `graph` is the portable graph's file, which has its weights in so many `chunks`.
    """
    (folder / "tokenizer.json").write_bytes(source.tokenizer.encode())
    if source.files is not None:
        _write_foreign(folder, source.files, _for_transformers_js(dtype, graph, chunks))
        return
    token, token_id = source.end_of_text
    config = source.decoder.config
    assert isinstance(config, ModelConfig)
    _write(folder / "config.json", model_config(config, token_id, dtype, graph, chunks))
    _write(folder / "generation_config.json", {"bos_token_id": token_id, "eos_token_id": token_id})
    _write(folder / "tokenizer_config.json", tokenizer_config(config, token))


def _write_foreign(folder: Path, files: Mapping[str, Mapping[str, Json] | str], added: Mapping[str, Json]) -> None:
    for name, content in files.items():
        if isinstance(content, str):
            (folder / name).write_bytes(content.encode())
        else:
            _write(folder / name, {**content, **added} if name == "config.json" else content)


def _for_transformers_js(dtype: str, graph: str, chunks: int) -> dict[str, Json]:
    """What config.json says to transformers.js."""
    return {"transformers.js_config": {"dtype": dtype, "use_external_data_format": {graph: chunks}}}


def model_config(config: ModelConfig, end_of_text: int, dtype: str, graph: str, chunks: int) -> dict[str, Json]:
    """config.json."""
    return {
        "architectures": ["JourneeForCausalLM"],
        "model_type": MODEL_TYPE,
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "intermediate_size": config.ffn_dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": config.context_length,
        "rope_theta": config.rope_theta,
        "rms_norm_eps": config.norm_eps,
        "tie_word_embeddings": False,
        "use_cache": True,
        "bos_token_id": end_of_text,
        "eos_token_id": end_of_text,
        "torch_dtype": "float32",
        **_for_transformers_js(dtype, graph, chunks),
        **_mixture(config),
    }


def tokenizer_config(config: ModelConfig, end_of_text: str) -> dict[str, Json]:
    """tokenizer_config.json."""
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config.context_length,
        "bos_token": end_of_text,
        "eos_token": end_of_text,
        "unk_token": end_of_text,
        "clean_up_tokenization_spaces": False,
    }


def _mixture(config: ModelConfig) -> dict[str, Json]:
    if config.moe is None:
        return {}
    return {
        "num_local_experts": config.moe.experts,
        "num_experts_per_tok": config.moe.active,
        "moe_intermediate_size": config.moe.expert_dim,
        "moe_layer": config.moe.layer,
    }


def _write(path: Path, content: Mapping[str, Json]) -> None:
    path.write_bytes((json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())
