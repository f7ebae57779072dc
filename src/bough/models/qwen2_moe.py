"""Qwen1.5 and Qwen2 with mixtures of experts."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaAttention, LlamaDecoderLayer
from bough.models.mixture import MixtureMLP, make_mlp
from bough.models.qwen2 import Qwen2ForCausalLM


class Qwen2MoeMLP(MixtureMLP):
    """Experts beside a network that computes every token, with a gate."""

    shared_name = "shared_expert"


class Qwen2MoeForCausalLM(Qwen2ForCausalLM):
    """Qwen2 with experts in place of some feed-forward networks, most often of all."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        attention = LlamaAttention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, make_mlp(config, layer_id, method, Qwen2MoeMLP))
