"""Qwen3, dense."""

from __future__ import annotations

import torch

from bough.config.model_config import ModelConfig
from bough.layers.attention.base import HeadNorms
from bough.layers.linear_method import MethodChoice
from bough.layers.norm import RMSNorm
from bough.layers.rotary import Rotation, apply_rotary
from bough.models.base import torch_dtype
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP


class Qwen3Attention(LlamaAttention):
    """Attention that normalises each head of the queries and keys before rotating it."""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__(config, layer_id, method)
        self.q_norm = RMSNorm(self.head_dim, config.rms_norm_eps, torch_dtype(config))
        self.k_norm = RMSNorm(self.head_dim, config.rms_norm_eps, torch_dtype(config))

    def rotate(self, heads: torch.Tensor, rotation: Rotation) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """As in Llama, with the norms first."""
        values = self.num_heads + self.num_kv_heads
        q = self.q_norm(heads[:, : self.num_heads])
        k = self.k_norm(heads[:, self.num_heads : values])
        return apply_rotary(q, rotation), apply_rotary(k, rotation), heads[:, values:]

    def head_norms(self) -> HeadNorms:
        """As in Llama."""
        return HeadNorms(self.q_norm.weight, self.k_norm.weight, self.q_norm.eps)


class Qwen3ForCausalLM(LlamaForCausalLM):
    """Llama with normalised queries and keys, and optionally a sliding window in some layers."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Qwen3Attention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, layer_id, method))
