"""Small random checkpoints of architectures that Bough leaves to transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from tests.models.checkpoints import VOCAB_SIZE, Checkpoint

_BASE = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LATENT = {
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "num_key_value_heads": 4,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_ROUTED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1}
_LOCAL_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}

SERVED: dict[str, tuple[str, dict[str, Any]]] = {
    "Cohere2ForCausalLM": ("cohere2", {"sliding_window": 16}),
    "DeepseekV3ForCausalLM": ("deepseek_v3", {**_LATENT, **_ROUTED, "n_group": 2, "topk_group": 1}),
    "Exaone4ForCausalLM": ("exaone4", {"sliding_window": 16}),
    "Gemma2ForCausalLM": (
        "gemma2",
        {"head_dim": 16, "sliding_window": 16, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0},
    ),
    "Glm4ForCausalLM": ("glm4", {"head_dim": 16}),
    "GPT2LMHeadModel": ("gpt2", {"n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 256}),
    "GraniteForCausalLM": (
        "granite",
        {
            "embedding_multiplier": 2.0,
            "attention_multiplier": 0.1,
            "residual_multiplier": 0.5,
            "logits_scaling": 3.0,
        },
    ),
    "Olmo2ForCausalLM": ("olmo2", {}),
    "Starcoder2ForCausalLM": ("starcoder2", {"sliding_window": 16}),
}
"""By architecture, the model type and how its configuration differs from the common one."""

_PLAIN = (
    *("apertus", "arcee", "biogpt", "bitnet", "cohere", "ernie4_5", "gpt_neox", "helium", "hunyuan_v1_dense"),
    *("nanochat", "olmo", "persimmon", "phi", "seed_oss", "smollm3"),
)
FURTHER: dict[str, dict[str, Any]] = {
    **{model_type: {"head_dim": 16} for model_type in _PLAIN},
    "deepseek_v2": {**_LATENT, **_ROUTED},
    "flex_olmo": {"num_experts": 4, "num_experts_per_tok": 2},
    "glm": {"head_dim": 16},
    "gpt_oss": {"head_dim": 16, "sliding_window": 16, **_LOCAL_EXPERTS},
    "granitemoe": {"head_dim": 16, **_LOCAL_EXPERTS},
    "minimax_m2": {"head_dim": 16, **_LOCAL_EXPERTS},
    "ministral": {"head_dim": 16, "sliding_window": 16},
    "olmo3": {"sliding_window": 16},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "opt": {"ffn_dim": 96, "word_embed_proj_dim": 64},
}
"""By model type, the configuration of further models, which slow tests compare."""

_MAMBA = {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8}
_DELTA = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "shared_expert_intermediate_size": 32,
}
_DYNAMIC = {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}}

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "Mamba2ForCausalLM": ("mamba2", {"num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 1}, "state"),
    "Qwen3NextForCausalLM": ("qwen3_next", {**_EXPERTS, **_DELTA}, "state"),
    "FalconH1ForCausalLM": ("falcon_h1", _MAMBA, "state"),
    "Lfm2ForCausalLM": ("lfm2", {"full_attn_idxs": [1, 3]}, "state"),
    "DiffLlamaForCausalLM": ("diffllama", {}, "more than once"),
    "BloomForCausalLM": ("bloom", {"n_head": 4, "n_layer": 4}, "0 of 4 layers"),
    "Llama4ForCausalLM": (
        "llama4_text",
        {"num_local_experts": 2, "attention_chunk_size": 16, "intermediate_size_mlp": 96},
        "cannot be told from its head",
    ),
    "DogeForCausalLM": ("doge", {}, "neither causal nor a sliding window"),
    "Gemma4ForCausalLM": ("gemma4_text", {"sliding_window": 16}, "differ"),
    "DeepseekV32ForCausalLM": (
        "deepseek_v32",
        {**_LATENT, **_ROUTED, "n_group": 2, "topk_group": 1},
        "indices",
    ),
    "StableLmForCausalLM": ("stablelm", {}, "passes no keywords"),
    "Olmo2ForCausalLM": ("olmo2", _DYNAMIC, "depends on the length of a call"),
}
"""By architecture, model type, configuration and a word of the reason why it cannot be served."""


def configuration(model_type: str, overrides: dict[str, Any]) -> Any:
    return transformers.AutoConfig.for_model(model_type, **{**_BASE, **overrides})


def save_transformers_checkpoint(path: Path, model_type: str, overrides: dict[str, Any]) -> Checkpoint:
    """A checkpoint with weights large enough to matter, and the model as a reference."""
    torch.manual_seed(len(model_type))
    model = transformers.AutoModelForCausalLM.from_config(
        configuration(model_type, overrides), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "ln_" in name:
                parameter.uniform_(0.5, 1.5)
            elif parameter.ndim == 1:
                parameter.normal_(0.0, 0.3)
            else:
                parameter.normal_(0.0, 1.2 / parameter.shape[-1] ** 0.5)
    model.save_pretrained(path)
    return Checkpoint(path, model)
