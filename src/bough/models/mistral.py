"""Mistral, dense."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP


class MistralForCausalLM(LlamaForCausalLM):
    """Llama without biases and, in the first generation, with a sliding window in every layer."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = LlamaAttention(config, layer_id, method, qkv_bias=False, output_bias=False)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, method, bias=False))
