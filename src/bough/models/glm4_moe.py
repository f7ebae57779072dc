"""GLM-4.5 and its successors of the same architecture, GLM-4.6 and GLM-4.7."""

from __future__ import annotations

import re

from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM
from bough.models.mixture import make_mlp
from bough.models.qwen3 import Qwen3Attention

_LAYER = re.compile(r"(?:model\.)?layers\.(\d{1,6})\.", re.ASCII)


class Glm4MoeForCausalLM(LlamaForCausalLM):
    """Experts beside a network that computes every token, behind some dense layers; a part of each head is rotated.

    Layers behind the last one, which predict several tokens at once, are left out.
    """

    def __init__(self, config: ModelConfig, *options: MethodChoice) -> None:
        super().__init__(config, *options)
        self._num_layers = config.num_layers

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        kind = Qwen3Attention if config.hf_config.get("use_qk_norm") else LlamaAttention
        return LlamaDecoderLayer(config, kind(config, layer_id, method), make_mlp(config, layer_id, method))

    def own_name(self, name: str) -> str | None:
        own = super().own_name(name)
        layer = None if own is None else _LAYER.match(own)
        return None if layer is not None and int(layer[1]) >= self._num_layers else own
