"""A pair of random models that every engine can run on the very same weights.

    python benchmarks/rivals/matched_pair.py OUT [--vocabulary 4096]

The target is a Llama of 12 layers (82 million parameters at a vocabulary of 4,096), the draft its first two layers and
its head. Embeddings are unit normal; the residual branches of layers 3 to 12 are small (0.05), so that the draft is
near the target: at temperature 1 the sum of min(p, q) is about 0.88, greedy tokens agree at about four places of five.
No training, no download: seeds fix every weight, rounded to float16 as our checkpoints hold them. Written are

    OUT/target.pt OUT/draft.pt      checkpoints, for journee-export
    OUT/hf/target OUT/hf/draft      Hugging Face folders (LlamaForCausalLM, float32), for everybody else
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

from journee.checkpoint import Checkpoint, rounded, save_checkpoint
from journee.config import ModelConfig
from journee.corpus import standard_library
from journee.model import Decoder
from journee.tokenizer import END_OF_TEXT, load_tokenizer, train_tokenizer

safetensors: Any = import_module("safetensors.torch")

LAYERS = {"target": 12, "draft": 2}
NEAR = 0.05
"""Scale of the residual branches that the draft lacks."""
LOGITS = 3.0
"""Standard deviation of the target's logits, about."""
TRAINED = 4096
"""Entries that are learnt; a larger vocabulary is filled with special tokens that no text has."""
PROMPT = "def read(self, size=-1):\n"

NAMES = {
    "attention_norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.up": "mlp.up_proj",
    "feed_forward.down": "mlp.down_proj",
}
OUTER = {"embedding": "model.embed_tokens", "norm": "model.norm", "projection": "lm_head"}


def config(layers: int, vocabulary: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocabulary,
        dim=768,
        layers=layers,
        heads=12,
        kv_heads=4,
        ffn_dim=2048,
        context_length=2048,
        rope_theta=10_000.0,
        norm_eps=1e-6,
    )


def llama_names(layers: int) -> dict[str, str]:
    """Our parameters' names to those of LlamaForCausalLM."""
    blocks = {
        f"blocks.{layer}.{ours}.weight": f"model.layers.{layer}.{theirs}.weight"
        for layer in range(layers)
        for ours, theirs in NAMES.items()
    }
    return blocks | {f"{ours}.weight": f"{theirs}.weight" for ours, theirs in OUTER.items()}


@torch.no_grad()
def make_target(vocabulary: int, seed: int) -> Decoder:
    """The target with its weights drawn and rounded."""
    torch.random.manual_seed(seed)  # pyright: ignore[reportUnknownMemberType]
    decoder = Decoder(config(LAYERS["target"], vocabulary)).eval()
    dim, inner = decoder.config.dim, decoder.config.ffn_dim
    for name, weight in decoder.named_parameters():
        if weight.dim() < 2:
            continue
        layer = int(name.split(".")[1]) if name.startswith("blocks.") else -1
        near = 1.0 if layer < LAYERS["draft"] else NEAR
        weight.normal_(0, _scale(name, dim, inner, near))
    decoder.load_state_dict({name: value.float() for name, value in rounded(decoder).items()})
    return decoder


def _scale(name: str, dim: int, inner: int, near: float) -> float:
    if name.startswith("embedding"):
        return 1.0
    if name.startswith("projection"):
        return LOGITS / dim**0.5
    if name.endswith("attention.output.weight"):
        return near / dim**0.5
    if name.endswith("down.weight"):
        return 2 * near / inner**0.5
    return 1.2 / dim**0.5


def make_draft(target: Decoder) -> Decoder:
    """The target's first layers, norm and head."""
    draft = Decoder(config(LAYERS["draft"], target.config.vocab_size)).eval()
    own = draft.state_dict()
    draft.load_state_dict({name: value for name, value in target.state_dict().items() if name in own})
    return draft


def make_tokenizer(vocabulary: int) -> str:
    """Trained on the standard library, and filled up."""
    text = train_tokenizer((document.text for document in standard_library().documents), min(vocabulary, TRAINED))
    if vocabulary <= TRAINED:
        return text
    tokenizer: Any = load_tokenizer(text)
    tokenizer.add_special_tokens([f"<|filler {number}|>" for number in range(vocabulary - TRAINED)])
    return str(tokenizer.to_str())


def write_checkpoint(decoder: Decoder, role: str, tokenizer: str, seed: int, file: Path) -> None:
    nothing = float("nan")
    save_checkpoint(
        Checkpoint(
            role=role,
            config=decoder.config,
            tokenizer=tokenizer,
            corpus="random weights",
            corpus_hash="0" * 64,
            interpreter="none: random weights",
            held_out_loss=nothing,
            bits_per_byte=nothing,
            steps=0,
            seed=seed,
            weights=rounded(decoder),
            measured={},
        ),
        file,
    )


def write_llama(decoder: Decoder, tokenizer: str, folder: Path) -> None:
    """The same model as transformers and its converters read it; no token ends a text."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = decoder.config
    state = decoder.state_dict()
    tensors: dict[str, Tensor] = {
        theirs: state[ours].contiguous() for ours, theirs in llama_names(shape.layers).items()
    }
    safetensors.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    described = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocab_size,
        "hidden_size": shape.dim,
        "intermediate_size": shape.ffn_dim,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context_length,
        "rope_theta": shape.rope_theta,
        "rope_parameters": {"rope_type": "default", "rope_theta": shape.rope_theta},
        "rms_norm_eps": shape.norm_eps,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 1,
        "torch_dtype": "float32",
    }
    special = dict.fromkeys(("bos_token", "eos_token", "unk_token"), END_OF_TEXT)
    files = {
        "config.json": described,
        "generation_config.json": {"bos_token_id": 0, "pad_token_id": 1},
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", **special},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")


@torch.no_grad()
def agreement(target: Decoder, draft: Decoder, tokens: list[int], length: int = 128) -> tuple[float, float]:
    """(mean sum of min(p, q), share of equal argmax) along a text sampled from the target."""
    generator = torch.Generator().manual_seed(0)
    text = torch.tensor([tokens])
    for _ in range(length):
        p = target.logits(text)[:, -1].softmax(-1)
        text = torch.cat([text, torch.multinomial(p, 1, generator=generator)], dim=1)
    p, q = (model.logits(text)[0, len(tokens) :].softmax(-1) for model in (target, draft))
    return float(torch.minimum(p, q).sum(-1).mean()), float((p.argmax(-1) == q.argmax(-1)).float().mean())


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--vocabulary", type=click.IntRange(300), default=4096, show_default=True, help="Tokens of both models.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the weights.")
def main(out: Path, vocabulary: int, seed: int) -> None:
    """Write the pair to the folder OUT."""
    tokenizer = make_tokenizer(vocabulary)
    target = make_target(vocabulary, seed)
    models = {"target": target, "draft": make_draft(target)}
    out.mkdir(parents=True, exist_ok=True)
    for role, decoder in models.items():
        write_checkpoint(decoder, role, tokenizer, seed, out / f"{role}.pt")
        write_llama(decoder, tokenizer, out / "hf" / role)
        count = sum(parameter.numel() for parameter in decoder.parameters())
        click.echo(f"{role}: {count / 1e6:.1f} million parameters")
    near, same = agreement(target, models["draft"], load_tokenizer(tokenizer).encode(PROMPT).ids)
    click.echo(f"sum of min(p, q) {near:.3f}; greedy tokens agree at {same:.3f} of places")


if __name__ == "__main__":
    main()
