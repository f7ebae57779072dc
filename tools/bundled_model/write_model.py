"""The directory of a model, as the engine and transformers load it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from documents import END_OF_TEXT, TURN_END
from network import Shape
from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokens import MODEL_MAX_LENGTH, tokenizer_config
from torch import Tensor


def model_config(shape: Shape, tokenizer: Tokenizer) -> dict[str, Any]:
    """What ``config.json`` says."""
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": None,
        "dtype": "bfloat16",
        "eos_token_id": tokenizer.token_to_id(TURN_END),
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "max_position_embeddings": MODEL_MAX_LENGTH,
        "model_type": "qwen3",
        "pad_token_id": tokenizer.token_to_id(END_OF_TEXT),
        "sliding_window": None,
        "use_cache": True,
        "use_sliding_window": False,
        **shape.to_config(),
    }


def write_model(
    out: Path, parameters: dict[str, Tensor], shape: Shape, tokenizer: Tokenizer, training: dict[str, str] | None = None
) -> None:
    """Write configuration, weights in bfloat16 and tokenizer; ``training`` goes into the header of the weights."""
    out.mkdir(parents=True, exist_ok=True)
    end, pad = tokenizer.token_to_id(TURN_END), tokenizer.token_to_id(END_OF_TEXT)
    generation = {"do_sample": True, "eos_token_id": [end, pad], "pad_token_id": pad, "temperature": 0.7, "top_p": 0.9}
    for name, content in (
        ("config.json", model_config(shape, tokenizer)),
        ("generation_config.json", generation),
        ("tokenizer_config.json", tokenizer_config()),
    ):
        (out / name).write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    tokenizer.save(str(out / "tokenizer.json"))
    weights = {name: value.detach().to(torch.bfloat16).contiguous() for name, value in parameters.items()}
    save_file(weights, out / "model.safetensors", {"format": "pt", **(training or {})})
    # safetensors makes its file readable for the owner only, which would not survive installation for others.
    (out / "model.safetensors").chmod(0o644)
