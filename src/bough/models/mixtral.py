"""Mixtral."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM
from bough.models.mixture import make_mlp


class MixtralForCausalLM(LlamaForCausalLM):
    """Mistral with experts in place of feed-forward networks (Jiang et al. 2024)."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        attention = LlamaAttention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, make_mlp(config, layer_id, method))
