"""Qwen3 with mixtures of experts."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaDecoderLayer
from bough.models.mixture import make_mlp
from bough.models.qwen3 import Qwen3Attention, Qwen3ForCausalLM


class Qwen3MoeForCausalLM(Qwen3ForCausalLM):
    """Qwen3 with experts in place of some feed-forward networks, most often of all."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        attention = Qwen3Attention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, make_mlp(config, layer_id, method))
