"""The shapes of the models that are compared; their weights are random."""

from __future__ import annotations

from typing import Any

_COMMON: dict[str, Any] = {
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "use_cache": True,
    "max_position_embeddings": 40960,
}
_QWEN: dict[str, Any] = {
    **_COMMON,
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "use_sliding_window": False,
    "vocab_size": 151936,
    "bos_token_id": 151935,
    "eos_token_id": 151935,
}
_LLAMA: dict[str, Any] = {
    **_COMMON,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "attention_bias": False,
    "mlp_bias": False,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "vocab_size": 128256,
    "bos_token_id": 128255,
    "eos_token_id": 128255,
}
_GEMMA: dict[str, Any] = {
    **{key: value for key, value in _COMMON.items() if key != "hidden_act"},
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_activation": "gelu_pytorch_tanh",
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "query_pre_attn_scalar": 256,
    "attention_bias": False,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "layer_types": ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(26)],
    "vocab_size": 262144,
    "bos_token_id": 262143,
    "eos_token_id": 262143,
}
_EXPERTS: dict[str, Any] = {
    **_COMMON,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "attention_bias": False,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "use_sliding_window": False,
    "vocab_size": 32768,
    "bos_token_id": 32767,
    "eos_token_id": 32767,
}
_TINY = {**_QWEN, "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4}
_TINY |= {"vocab_size": 20480, "bos_token_id": 20479, "eos_token_id": 20479, "initializer_range": 0.08}

SHAPES: dict[str, dict[str, Any]] = {
    "qwen": _QWEN,
    "llama": _LLAMA,
    "gemma": _GEMMA,
    "experts": _EXPERTS,
    "tiny": _TINY,
}
"""``config.json`` of Qwen2.5-0.5B, Llama-3.2-1B and Gemma 3 1B, with room for a context of 32k and some more; of four
layers of Qwen3-30B-A3B with a small vocabulary; and of a model that only shows that everything works.

Llama's scaling of the rotary frequencies is left out: it is a table made once, and costs nothing at run time.
"""


def head_dim_of(config: dict[str, Any]) -> int:
    """Width of a head."""
    width: int = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    return width


def norm_offset(config: dict[str, Any]) -> float:
    """Number that is added to the weights of norms; checkpoints store the rest."""
    return 1.0 if config["model_type"] == "gemma3_text" else 0.0


def tensor_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name to shape of every tensor of a checkpoint with tied embeddings, in Hugging Face's names."""
    has_experts = config["model_type"] == "qwen3_moe"
    hidden, intermediate = (
        config["hidden_size"],
        config["moe_intermediate_size" if has_experts else "intermediate_size"],
    )
    head_dim = head_dim_of(config)
    query, key_value = (config[f"num_{kind}_heads"] * head_dim for kind in ("attention", "key_value"))
    is_gemma = config["model_type"] == "gemma3_text"
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name, rows in (("q_proj", query), ("k_proj", key_value), ("v_proj", key_value)):
            shapes[f"{prefix}self_attn.{name}.weight"] = (rows, hidden)
            if config["model_type"] == "qwen2":
                shapes[f"{prefix}self_attn.{name}.bias"] = (rows,)
        shapes[f"{prefix}self_attn.o_proj.weight"] = (hidden, query)
        networks = ["mlp."]
        if has_experts:
            shapes[f"{prefix}mlp.gate.weight"] = (config["num_experts"], hidden)
            networks = [f"mlp.experts.{expert}." for expert in range(config["num_experts"])]
        for network in networks:
            shapes[f"{prefix}{network}gate_proj.weight"] = (intermediate, hidden)
            shapes[f"{prefix}{network}up_proj.weight"] = (intermediate, hidden)
            shapes[f"{prefix}{network}down_proj.weight"] = (hidden, intermediate)
        shapes[f"{prefix}input_layernorm.weight"] = (hidden,)
        shapes[f"{prefix}post_attention_layernorm.weight"] = (hidden,)
        if is_gemma:
            shapes |= {f"{prefix}{part}_feedforward_layernorm.weight": (hidden,) for part in ("pre", "post")}
        if is_gemma or has_experts:
            shapes |= {f"{prefix}self_attn.{part}_norm.weight": (head_dim,) for part in ("q", "k")}
    return shapes
