"""Models that differ from one of Bough's in a few parts."""

from __future__ import annotations

import torch

from bough.config.model_config import ModelConfig
from bough.layers.forward_batch import ForwardBatch
from bough.layers.linear_method import MethodChoice
from bough.layers.ops import Ops, Stream, Value
from bough.models.llama import LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP
from bough.models.qwen3 import Qwen3Attention, Qwen3ForCausalLM


class GardenForCausalLM(LlamaForCausalLM):
    """Llama with normalised queries and keys."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Qwen3Attention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, layer_id, method))


class OrchardForCausalLM(GardenForCausalLM):
    """The same, with a reader for its config.json."""


class MossMLP(LlamaMLP):
    """A feed-forward network with an activation that the native program does not have."""

    def run(self, ops: Ops[Value], x: Value, stream: Stream[Value]) -> None:
        """See :class:`LlamaMLP`."""
        ops.add_linear(stream, self.down_proj, ops.compute(sharp_silu, ops.gated(self.gate_up_proj, x)))


def sharp_silu(x: torch.Tensor) -> torch.Tensor:
    """Halve negative numbers."""
    return torch.where(x < 0, x / 2, x)


class MossForCausalLM(Qwen3ForCausalLM):
    """Qwen3 with another activation, which torch computes."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Qwen3Attention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, MossMLP(config, layer_id, method))


class FernForCausalLM(Qwen3ForCausalLM):
    """Qwen3 with a ``forward`` of its own, for torch."""

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """Halve the states of Qwen3."""
        return super().forward(batch) / 2
