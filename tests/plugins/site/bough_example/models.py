"""Models that differ from one of Bough's in the attention of their layers."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP
from bough.models.qwen3 import Qwen3Attention


class GardenForCausalLM(LlamaForCausalLM):
    """Llama with normalised queries and keys."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Qwen3Attention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, layer_id, method))


class OrchardForCausalLM(GardenForCausalLM):
    """The same, with a reader for its config.json."""
