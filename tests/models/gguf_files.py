"""GGUF files of the small random checkpoints, written by the format's own library as its converters do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer as Backend

from tests.models.checkpoints import Checkpoint

ARCHITECTURES = {
    "Gemma3Text": "gemma3",
    "GptOss": "gpt-oss",
    "Llama": "llama",
    "Ministral3": "mistral3",
    "Mistral": "llama",
    "Phi3": "phi3",
    "Qwen2": "qwen2",
    "Mixtral": "llama",
    "Qwen3": "qwen3",
    "Qwen3Moe": "qwen3moe",
    "SmolLM3": "smollm3",
}

INTERLEAVED = ("llama", "mistral3", "smollm3")

_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.gate_proj": "ffn_gate_exps",
    "mlp.experts.up_proj": "ffn_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
}


_NAMES_OF = {
    "gemma3": {
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
    },
    "gpt-oss": {
        "post_attention_layernorm": "post_attention_norm",
        "self_attn.sinks": "attn_sinks",
        "mlp.router": "ffn_gate_inp",
    },
}


def gguf_name(name: str, architecture: str = "llama") -> str:
    stem, _, kind = name.rpartition(".")
    if not stem.startswith("model.layers."):
        return f"{_NAMES[stem]}.{kind}"
    layer, _, module = stem.removeprefix("model.layers.").partition(".")
    names = {**_NAMES, **_NAMES_OF.get(architecture, {})}
    return f"blk.{layer}.{names[module]}.{kind}"


_HALVES = ((0, "gate"), (1, "up"))


def tensors_of(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters by name, or parts of them that files have apart."""
    for name, tensor in model.state_dict(keep_vars=True).items():
        is_oss = type(model).__name__.startswith("GptOss")  # inputs are rows, and gates stand beside their values
        if is_oss and ".experts." in name:
            stem, kind = name.removesuffix("_bias"), "bias" if name.endswith("_bias") else "weight"
            turned = tensor.data.transpose(1, -1)
            if "gate_up" in name:
                yield from ((f"{stem.replace('gate_up', part)}.{kind}", turned[:, i::2]) for i, part in _HALVES)
            else:
                yield f"{stem}.{kind}", turned
        elif name.endswith("experts.gate_up_proj"):
            halves = tensor.data.chunk(2, dim=1)
            yield from ((name.replace("gate_up", part) + ".weight", halves[i]) for i, part in _HALVES)
        else:
            yield name if name.endswith((".weight", ".bias")) else f"{name}.weight", tensor.data


def interleaved(tensor: torch.Tensor, num_heads: int) -> torch.Tensor:
    """What converters do to llama's queries and keys: the halves of each head become neighbours."""
    heads = tensor.reshape(num_heads, 2, tensor.shape[0] // num_heads // 2, *tensor.shape[1:])
    return heads.swapaxes(1, 2).reshape(tensor.shape)


_RANDOM = {
    Kind.Q3_K: ((108, 0.001),),
    Kind.Q4_K: ((0, 0.0006), (2, 0.004)),
    Kind.Q5_K: ((0, 0.0003), (2, 0.004)),
    Kind.Q6_K: ((208, 0.00006),),
    Kind.IQ4_XS: ((0, 0.00006),),
}
"""Kinds that the library reads only: where a block has its numbers in half precision, and their size."""


def random_quantized(kind: Kind, shape: torch.Size, seed: int) -> np.ndarray:
    """Blocks of random codes whose numbers are of the size of a model's weights."""
    rng = np.random.default_rng(seed)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, inputs = shape[:-1].numel(), shape[-1]
    blocks = rng.integers(0, 256, (rows, inputs // elements, size), dtype=np.uint8)
    for start, value in _RANDOM[kind]:
        scales = (rng.uniform(0.5, 1.5, blocks.shape[:2]) * value).astype(np.float16)
        blocks[..., start : start + 2] = scales[..., None].view(np.uint8)
    return blocks.reshape(*shape[:-1], -1)


def write_gguf(
    path: Path,
    checkpoint: Checkpoint,
    kind: Kind = Kind.F32,
    *,
    kinds: dict[str, Kind] | None = None,
    metadata: dict[str, Any] | None = None,
    extra: dict[str, np.ndarray] | None = None,
    seed: int = 0,
) -> Checkpoint:
    """Write ``checkpoint`` with its matrices in ``kind``, and give the reference model the numbers that were written.

    Args:
        path: of the file.
        checkpoint: of :func:`tests.models.checkpoints.save_checkpoint`; its reference is changed.
        kind: of matrices.
        kinds: in place of that, by the end of the tensor's name in the file.
        metadata: further entries; text, truth values, whole numbers and numbers.
        extra: further tensors.
        seed: of matrices that are random.
    """
    config = checkpoint.reference.config
    family = type(config).__name__.removesuffix("Config")
    name = ARCHITECTURES[family]
    writer = gguf.GGUFWriter(path, name)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    rotations = config.rope_parameters
    if name == "gemma3":
        writer.add_sliding_window(config.sliding_window)
        writer.add_rope_freq_base_swa(rotations["sliding_attention"]["rope_theta"])
        rotations = rotations["full_attention"]
    if name == "gpt-oss":
        writer.add_sliding_window(config.sliding_window)
    writer.add_rope_freq_base(rotations["rope_theta"])
    if getattr(config, "head_dim", None):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    for key, value in (metadata or {}).items():
        add_entry(writer, key, value)
    for key, array in (extra or {}).items():
        writer.add_tensor(key, array)
    if hasattr(config, "num_local_experts"):
        writer.add_expert_count(config.num_local_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        writer.add_expert_feed_forward_length(getattr(config, "moe_intermediate_size", config.intermediate_size))
    state = dict(tensors_of(checkpoint.reference))
    if config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    for index, (hf_name, tensor) in enumerate(state.items()):
        target, tensor = tensor, tensor.float().contiguous()
        stored_name = gguf_name(hf_name, name)
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
        num_heads = next((n for part, n in heads.items() if f".{part}." in hf_name and name in INTERLEAVED), None)
        if num_heads:
            tensor = interleaved(tensor, num_heads)
        offset = float(name == "gemma3" and hf_name.endswith("norm.weight"))
        tensor = tensor + offset
        chosen = Kind.F32 if tensor.ndim == 1 or hf_name.endswith(".bias") else kind
        chosen = next((k for end, k in (kinds or {}).items() if stored_name.endswith(end)), chosen)
        if chosen in _RANDOM:
            data = random_quantized(chosen, tensor.shape, 1000 * seed + index)
        else:
            data = gguf.quants.quantize(tensor.numpy(), chosen)
        writer.add_tensor(stored_name, data, raw_dtype=chosen)
        numbers = torch.from_numpy(gguf.quants.dequantize(data, chosen).astype(np.float32)).reshape(tensor.shape)
        if num_heads:
            # The other way round: neighbours become halves.
            split = numbers.reshape(num_heads, -1, 2, *numbers.shape[1:])
            numbers = split.swapaxes(1, 2).reshape(numbers.shape)
        with torch.no_grad():
            target.copy_(numbers - offset)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Checkpoint(path, checkpoint.reference)


def add_entry(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_array(key, value)


NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def vocabulary(backend: Backend, kind: str, padding: int = 0) -> dict[str, Any]:
    """Entries below ``tokenizer.`` that converters write for a tokenizer of the kind ``gpt2`` or ``llama``."""
    added = backend.get_added_tokens_decoder()
    tokens, types = [], []
    for token_id in range(backend.get_vocab_size()):
        token = backend.id_to_token(token_id)
        assert token is not None
        role = BYTE if kind == "llama" and token.startswith("<0x") else NORMAL
        if token_id in added:
            role = CONTROL if added[token_id].special else USER
        tokens.append(token)
        types.append(UNKNOWN if token == "<unk>" else role)
    for _ in range(padding):
        tokens.append(f"[PAD{len(tokens)}]")
        types.append(UNUSED)
    return {"ggml.model": kind, "ggml.tokens": tokens, "ggml.token_type": types}


def merges_of(backend: Backend) -> list[str]:
    return [" ".join(pair) for pair in json.loads(backend.to_str())["model"]["merges"]]
