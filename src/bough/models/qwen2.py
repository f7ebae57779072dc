"""Qwen2 and Qwen2.5, dense."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP


class Qwen2ForCausalLM(LlamaForCausalLM):
    """Llama with biases on queries, keys and values, and optionally a sliding window in some layers."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = LlamaAttention(config, layer_id, method, qkv_bias=True, output_bias=False)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, method, bias=False))
