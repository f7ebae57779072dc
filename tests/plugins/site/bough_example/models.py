"""Models that differ from one of Bough's in the feed-forward networks of their layers."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaDecoderLayer, LlamaMLP
from bough.models.qwen3 import Qwen3Attention, Qwen3ForCausalLM


class GardenForCausalLM(Qwen3ForCausalLM):
    """Qwen3 with biases in its feed-forward networks, where config.json has ``mlp_bias``."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Qwen3Attention(config, layer_id, method, bias=False)
        mlp = LlamaMLP(config, method, bias=bool(config.hf_config.get("mlp_bias", False)))
        return LlamaDecoderLayer(config, attention, mlp)


class OrchardForCausalLM(GardenForCausalLM):
    """The same, with a reader for its config.json."""
