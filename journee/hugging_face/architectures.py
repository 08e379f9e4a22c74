"""The supported architectures: from config.json to a shape, and the names that each gives to its weights.

    llama         Llama, TinyLlama, SmolLM, SmolLM2 and others of the form
    mistral       Llama with a sliding window, in its first version
    qwen2         Llama with biases on queries, keys and values
    qwen3         Llama with normed heads
    gpt2          learned positions, LayerNorm, a feed-forward without a gate, biases everywhere
    gemma3_text   Gemma 3 without images: windows in five layers of six, norms on both sides, scaled embeddings

What a config.json asks for that its architecture here does not compute is refused by name, never left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from journee.hugging_face.errors import FolderError
from journee.hugging_face.rotary import yarn_amplitude
from journee.hugging_face.settings import Settings
from journee.hugging_face.shape import Activation, ForeignShape, Rotary

ACTIVATIONS: dict[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
"""transformers' names of the activations that there are here."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """How a `model_type` is read.

    shape       from its config.json
    outer       our modules outside the blocks to its own
    block       our modules inside a block to its own
    blocks      where its blocks are, such as "layers"
    prefix      what stands before all names, where the checkpoint is of the model with its head
    transposed  whether matrices of blocks are stored as [in, out]
    rowless     tokens at the end of its tokenizers that some of its models have no row for
    """

    shape: Callable[[Settings], ForeignShape]
    outer: Mapping[str, str]
    block: Mapping[str, str]
    blocks: str = "layers"
    prefix: str = "model."
    transposed: bool = False
    rowless: tuple[str, ...] = ()


PART = " part "
"""Between the name of a tensor that holds queries, keys and values, and which third of it is meant."""
LAYER_TYPES = {"full_attention", "sliding_attention"}
LLAMA_OUTER = {"embedding": "embed_tokens", "norm": "norm"}
LLAMA_BLOCK = {
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
HEAD_NORMS = {"attention.query_norm": "self_attn.q_norm", "attention.key_norm": "self_attn.k_norm"}
GEMMA_BLOCK = {
    **LLAMA_BLOCK,
    **HEAD_NORMS,
    "attention_after": "post_attention_layernorm",
    "feed_forward_norm": "pre_feedforward_layernorm",
    "feed_forward_after": "post_feedforward_layernorm",
}
GPT2_OUTER = {"embedding": "wte", "positions": "wpe", "norm": "ln_f"}
GPT2_BLOCK = {
    "attention_norm": "ln_1",
    "attention.query": f"attn.c_attn{PART}0",
    "attention.key": f"attn.c_attn{PART}1",
    "attention.value": f"attn.c_attn{PART}2",
    "attention.output": "attn.c_proj",
    "feed_forward_norm": "ln_2",
    "feed_forward.up": "mlp.c_fc",
    "feed_forward.down": "mlp.c_proj",
}


def read_architecture(config: Settings) -> Architecture:
    """The architecture of a config.json; FolderError with the list if it isn't one of ours."""
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        hint = "; gemma3 is the model with images, of which gemma3_text is the text's part" if kind == "gemma3" else ""
        raise FolderError(
            f"{config.place}: model_type is {kind!r}, which journee-export does not support; it supports: "
            f"{', '.join(ARCHITECTURES)}{hint}"
        )
    config.refuse("quantization_config", None, "give the folder with float weights that it was made from")
    config.refuse("auto_map", None, "the model has code of its own, which is never run here")
    return ARCHITECTURES[kind]


def _llama(config: Settings) -> ForeignShape:
    bias = config.flag("attention_bias", False)
    return ForeignShape(
        **_widths(config),
        windows=(None,) * config.count("num_hidden_layers"),
        projection_bias=bias,
        output_bias=bias,
        feed_forward_bias=config.flag("mlp_bias", False),
        tied=config.flag("tie_word_embeddings", False),
        **_rotated(config),
    )


def _mistral(config: Settings) -> ForeignShape:
    config.refuse("layer_types", None, "a Mistral model has one window for all layers, or none")
    layers = config.count("num_hidden_layers")
    window = None if config.get("sliding_window") is None else config.count("sliding_window")
    return ForeignShape(
        **_widths(config),
        windows=(window,) * layers,
        tied=config.flag("tie_word_embeddings", False),
        **_rotated(config),
    )


def _gemma3(config: Settings) -> ForeignShape:
    config.refuse("attn_logit_softcapping", None, "attention has no cap")
    config.refuse("final_logit_softcapping", None, "logits have no cap")
    config.refuse("use_bidirectional_attention", False, "a row sees what is before it")
    bias = config.flag("attention_bias", False)
    layers = config.count("num_hidden_layers")
    pattern = config.count("sliding_window_pattern", config.count("_sliding_window_pattern", 6))
    windows = _windows(config, [(layer + 1) % pattern > 0 for layer in range(layers)])
    widths = _widths(config, head_dim=256, activation=("hidden_activation", "gelu_pytorch_tanh"))
    return ForeignShape(
        **widths | {"attention_scale": config.number("query_pre_attn_scalar", 256) ** -0.5},
        windows=windows,
        projection_bias=bias,
        output_bias=bias,
        head_norms=True,
        norms_after=True,
        unit_norms=True,
        tied=config.flag("tie_word_embeddings", True),
        embedding_scale=widths["dim"] ** 0.5,
        rotary=_wide_and_narrow(config),
        rotary_of=tuple(int(window is not None) for window in windows),
    )


def _wide_and_narrow(config: Settings) -> tuple[Rotary, Rotary]:
    """The rotation of layers that see everything, and of those with a window."""
    both = config.table("rope_parameters")
    wide = both.table("full_attention") if both else config.table("rope_scaling")
    narrow = both.table("sliding_attention") if both else None
    return (
        _rotary(config, wide, config.number("rope_theta", 1_000_000.0)),
        _rotary(config, narrow, config.number("rope_local_base_freq", 10_000.0)),
    )


def _qwen2(config: Settings) -> ForeignShape:
    return ForeignShape(
        **_widths(config),
        windows=_upper_windows(config),
        projection_bias=True,
        tied=config.flag("tie_word_embeddings", False),
        **_rotated(config),
    )


def _qwen3(config: Settings) -> ForeignShape:
    bias = config.flag("attention_bias", False)
    return ForeignShape(
        **_widths(config, head_dim=128),
        windows=_upper_windows(config),
        projection_bias=bias,
        output_bias=bias,
        head_norms=True,
        tied=config.flag("tie_word_embeddings", False),
        **_rotated(config),
    )


def _gpt2(config: Settings) -> ForeignShape:
    config.refuse("scale_attn_weights", True, "attention is always scaled")
    config.refuse("scale_attn_by_inverse_layer_idx", False, "every layer's attention is scaled alike")
    config.refuse("add_cross_attention", False, "there is nothing else to attend to")
    dim, layers, heads = config.count("n_embd"), config.count("n_layer"), config.count("n_head")
    if dim % heads:
        raise config.wrong("n_head", f"a divisor of n_embd, which is {dim}")
    return ForeignShape(
        vocab_size=config.count("vocab_size"),
        dim=dim,
        layers=layers,
        heads=heads,
        kv_heads=heads,
        head_dim=dim // heads,
        ffn_dim=config.count("n_inner", 4 * dim),
        context_length=config.count("n_positions"),
        attention_scale=(dim // heads) ** -0.5,
        windows=(None,) * layers,
        norm="layer",
        norm_eps=config.number("layer_norm_epsilon", 1e-5),
        activation=_activation(config, "activation_function", "gelu_new"),
        gated=False,
        projection_bias=True,
        output_bias=True,
        feed_forward_bias=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def _upper_windows(config: Settings) -> tuple[int | None, ...]:
    """Windows from the layer `max_window_layers` on, or where `layer_types` says, if they are used at all."""
    layers = config.count("num_hidden_layers")
    if not config.flag("use_sliding_window", False) or config.get("sliding_window") is None:
        return (None,) * layers
    return _windows(config, [layer >= config.whole("max_window_layers", 28) for layer in range(layers)])


def _windows(config: Settings, narrow: list[bool]) -> tuple[int | None, ...]:
    """`sliding_window` where a layer is narrow; `layer_types`, where there are any, say which layers are."""
    window = config.count("sliding_window")
    types: Any = config.get("layer_types")
    if types is not None:
        if not isinstance(types, list) or len(types) != len(narrow) or not set(types) <= LAYER_TYPES:  # pyright: ignore[reportUnknownArgumentType]
            raise config.wrong(
                "layer_types", f"one of {', '.join(sorted(LAYER_TYPES))} for each of {len(narrow)} layers"
            )
        narrow = [kind == "sliding_attention" for kind in types]  # pyright: ignore[reportUnknownVariableType]
    return tuple(window if wanted else None for wanted in narrow)


def _widths(
    config: Settings, head_dim: int | None = None, activation: tuple[str, str] = ("hidden_act", "silu")
) -> dict[str, Any]:
    """What all but GPT-2 call by the same names. Heads are `head_dim` wide where config.json doesn't say; `activation`
    is the setting's name and default.
    """
    dim, heads = config.count("hidden_size"), config.count("num_attention_heads")
    head_dim = config.count("head_dim", head_dim or max(1, dim // heads))
    kv_heads = config.count("num_key_value_heads", heads)
    if heads % kv_heads:
        raise config.wrong("num_key_value_heads", f"a divisor of num_attention_heads, which is {heads}")
    if head_dim % 2:
        raise FolderError(f"{config.place}: heads are {head_dim} wide; expected an even width, since they are rotated")
    return {
        "vocab_size": config.count("vocab_size"),
        "dim": dim,
        "layers": config.count("num_hidden_layers"),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "ffn_dim": config.count("intermediate_size"),
        "context_length": config.count("max_position_embeddings"),
        "attention_scale": head_dim**-0.5,
        "norm_eps": config.number("rms_norm_eps", 1e-6),
        "activation": _activation(config, *activation),
    }


def _activation(config: Settings, name: str, default: str) -> Activation:
    found = config.get(name) or default
    if found not in ACTIVATIONS:
        raise config.wrong(name, f"one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[found]


def _rotated(config: Settings) -> dict[str, Any]:
    """The same rotation in every layer: `rope_parameters`, or the older `rope_theta` and `rope_scaling`."""
    found = config.table("rope_parameters") or config.table("rope_scaling")
    return {
        "rotary": (_rotary(config, found, config.number("rope_theta", 10000.0)),),
        "rotary_of": (0,) * config.count("num_hidden_layers"),
    }


def _rotary(config: Settings, scaling: Settings | None, theta: float) -> Rotary:
    config.refuse("partial_rotary_factor", 1, "only whole heads are rotated")
    if scaling is None:
        return Rotary(theta=theta)
    scaling.refuse("partial_rotary_factor", 1, "only whole heads are rotated")
    theta = scaling.number("rope_theta", theta)
    kind = scaling.get("rope_type", "type") or "default"
    if kind == "default":
        return Rotary(theta=theta)
    if kind == "linear":
        return Rotary("linear", theta, scaling.number("factor"))
    length = "original_max_position_embeddings"  # outside goes before inside, as in transformers
    original = config.count(length, scaling.count(length, config.count("max_position_embeddings")))
    if kind == "llama3":
        low, high = scaling.number("low_freq_factor"), scaling.number("high_freq_factor")
        return Rotary("llama3", theta, scaling.number("factor"), original, low, high)
    if kind == "yarn":
        return _yarn(scaling, theta, original)
    depends = kind in ("dynamic", "longrope", "su")
    why = "; its frequencies depend on how long a text is, and a row may depend on its prefix alone" if depends else ""
    raise FolderError(
        f"{scaling.place}: rope_type {kind!r} is not supported; supported are: default, linear, llama3, yarn{why}"
    )


def _yarn(scaling: Settings, theta: float, original: int) -> Rotary:
    factor = scaling.number("factor")
    amplitude = yarn_amplitude(factor)
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        amplitude /= yarn_amplitude(factor, scaling.number("mscale_all_dim"))
        amplitude *= yarn_amplitude(factor, scaling.number("mscale")) / yarn_amplitude(factor)
    return Rotary(
        "yarn",
        theta,
        factor,
        original,
        fast=scaling.number("beta_fast", 32.0),
        slow=scaling.number("beta_slow", 1.0),
        truncate=scaling.flag("truncate", True),
        amplitude=scaling.number("attention_factor", amplitude),
    )


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(_llama, LLAMA_OUTER, LLAMA_BLOCK),
    "mistral": Architecture(_mistral, LLAMA_OUTER, LLAMA_BLOCK),
    "qwen2": Architecture(_qwen2, LLAMA_OUTER, LLAMA_BLOCK),
    "qwen3": Architecture(_qwen3, LLAMA_OUTER, LLAMA_BLOCK | HEAD_NORMS),
    "gpt2": Architecture(_gpt2, GPT2_OUTER, GPT2_BLOCK, blocks="h", prefix="transformer.", transposed=True),
    "gemma3_text": Architecture(_gemma3, LLAMA_OUTER, GEMMA_BLOCK, rowless=("<image_soft_token>",)),
}
