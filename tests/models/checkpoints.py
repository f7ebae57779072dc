"""Small random checkpoints, made and saved by transformers, and what transformers computes with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

VOCAB_SIZE = 160

BASE = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


@dataclass(frozen=True)
class Checkpoint:
    path: Path
    reference: Any

    @torch.inference_mode()
    def logits(self, tokens: list[int]) -> torch.Tensor:
        """``[len(tokens), vocab_size]``, the whole sequence at once."""
        output: torch.Tensor = self.reference(torch.tensor([tokens]), use_cache=False).logits[0].float()
        return output

    def greedy(self, prompt: list[int], count: int) -> list[int]:
        tokens = list(prompt)
        for _ in range(count):
            tokens.append(int(self.logits(tokens)[-1].argmax()))
        return tokens[len(prompt) :]


def save_checkpoint(
    path: Path, family: str, *, dtype: torch.dtype = torch.float32, seed: int = 0, **overrides: Any
) -> Checkpoint:
    """A checkpoint of ``family`` ("Llama", "Gemma3", …) with weights large enough to matter."""
    torch.manual_seed(seed)
    kind = "TextConfig" if family == "Gemma3" else "Config"
    config = getattr(transformers, f"{family}{kind}")(**{**BASE, **overrides})
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # The library's own start values make every model say the same token for ever.
            if name.endswith("norm.weight"):
                parameter.uniform_(0.5, 1.5)
            elif name.endswith(".bias"):
                parameter.normal_(0.0, 0.3)
            else:
                parameter.normal_(0.0, 1.2 / parameter.shape[-1] ** 0.5)
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.normal_(0.0, 0.2)
    model = model.to(dtype)
    model.save_pretrained(path)
    return Checkpoint(path, model)
