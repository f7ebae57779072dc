"""Qwen3, dense."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.attention.base import HeadNorms
from bough.layers.linear_method import MethodChoice
from bough.layers.norm import RMSNorm
from bough.models.base import torch_dtype
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP


class Qwen3Attention(LlamaAttention):
    """Attention that normalises each head of the queries and keys before rotating it."""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__(config, layer_id, method)
        self.q_norm = RMSNorm(self.head_dim, config.rms_norm_eps, torch_dtype(config))
        self.k_norm = RMSNorm(self.head_dim, config.rms_norm_eps, torch_dtype(config))

    def head_norms(self) -> HeadNorms:
        """Norms with this layer's weights."""
        return HeadNorms(self.q_norm.weight, self.k_norm.weight, self.q_norm.eps)


class Qwen3ForCausalLM(LlamaForCausalLM):
    """Llama with normalised queries and keys, and optionally a sliding window in some layers."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Qwen3Attention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, layer_id, method))
