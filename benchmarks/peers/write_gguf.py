"""Writes a Hugging Face checkpoint as a GGUF file, tensors as they are. Runs in the peers' environment.

    python -m benchmarks.peers.write_gguf CHECKPOINT FILE

llama.cpp's own converter takes only tokenizers that it knows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import torch
from benchmarks.peers.shapes import head_dim_of, norm_offset
from safetensors import safe_open

TOP = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
IN_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.0.gate_proj": "ffn_gate_exps",
    "mlp.experts.0.up_proj": "ffn_up_exps",
    "mlp.experts.0.down_proj": "ffn_down_exps",
}
GEMMA_IN_LAYER = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
ARCHITECTURES = {"qwen2": "qwen2", "llama": "llama", "gemma3_text": "gemma3", "qwen3_moe": "qwen3moe"}
"""By ``model_type``"""
PRETOKENIZERS = {"qwen2": "qwen2", "llama": "llama-bpe", "gemma3_text": "qwen2", "qwen3_moe": "qwen2"}
"""Any would do for Gemma's shape, whose own tokenizer is of another kind."""


def gguf_name(name: str, model_type: str) -> str:
    """A tensor's name in GGUF files."""
    if name in TOP:
        return TOP[name]
    _, _, layer, *module, kind = name.split(".")
    names = {**IN_LAYER, **GEMMA_IN_LAYER} if model_type == "gemma3_text" else IN_LAYER
    return f"blk.{layer}.{names['.'.join(module)]}.{kind}"


def interleave_halves(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """Rows of a query or key projection for llama.cpp's llama, which rotates neighbours where others rotate halves."""
    rows = weight.shape[0] // heads
    return weight.view(heads, 2, rows // 2, -1).transpose(1, 2).reshape(weight.shape)


def write(checkpoint: Path, target: Path) -> None:
    """Write ``checkpoint`` as the GGUF file ``target``: matrices in bfloat16, vectors in float32."""
    config = json.loads(checkpoint.joinpath("config.json").read_text(encoding="utf-8"))
    model_type = config["model_type"]
    writer = gguf.GGUFWriter(target, ARCHITECTURES[model_type])
    _add_hyperparameters(writer, config)
    _add_tokenizer(writer, json.loads(checkpoint.joinpath("tokenizer.json").read_text(encoding="utf-8")), config)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    with safe_open(checkpoint / "model.safetensors", "pt") as tensors:
        for name in tensors.keys():  # noqa: SIM118 - not a dictionary
            if ".experts." in name and ".experts.0." not in name:
                continue  # stored with the first
            tensor = tensors.get_tensor(name)
            if ".experts." in name:
                numbers = range(config["num_experts"])
                each = (tensors.get_tensor(name.replace(".experts.0.", f".experts.{number}.")) for number in numbers)
                tensor = torch.stack(list(each))
            projection = name.split(".")[-2]
            if model_type == "llama" and projection in heads:
                tensor = interleave_halves(tensor, heads[projection])
            stored = gguf_name(name, model_type)
            if tensor.dim() == 1 or name.endswith("mlp.gate.weight"):
                offset = norm_offset(config) if "norm" in name else 0.0
                writer.add_tensor(stored, (tensor.float() + offset).numpy())
            else:
                raw = tensor.contiguous().view(torch.uint8).numpy()
                writer.add_tensor(stored, raw, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_hyperparameters(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    head_dim = head_dim_of(config)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if config["model_type"] == "gemma3_text":
        writer.add_sliding_window(config["sliding_window"])
    if config["model_type"] == "qwen3_moe":
        writer.add_expert_count(config["num_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["moe_intermediate_size"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)


def _add_tokenizer(writer: gguf.GGUFWriter, tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    tokens = list(tokenizer["model"]["vocab"])
    types = [gguf.TokenType.NORMAL] * len(tokens)
    types[config["eos_token_id"]] = gguf.TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(PRETOKENIZERS[config["model_type"]])
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
