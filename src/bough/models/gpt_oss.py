"""gpt-oss (OpenAI 2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bough.config.model_config import ModelConfig
from bough.layers.checkpoint_weight import CheckpointWeight, ExpertStack, InterleavedWeight, StackedWeight
from bough.layers.linear_method import MethodChoice
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM
from bough.models.mixture import MixtureMLP, make_mlp


class GptOssMLP(MixtureMLP):
    """Experts with biases, chosen by a router with biases."""

    router_name = "router"


class GptOssForCausalLM(LlamaForCausalLM):
    """Attention with sinks and alternating windows, and experts in every layer."""

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        attention = LlamaAttention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, make_mlp(config, layer_id, method, GptOssMLP))

    def stack_expert(self, parts: Mapping[str, CheckpointWeight]) -> StackedWeight:
        """Each gate is stored beside the value that it gates."""
        return InterleavedWeight(parts)

    def stack_experts(self, experts: Sequence[Mapping[str, CheckpointWeight]]) -> ExpertStack:
        """Matrices are stored with inputs as rows."""
        return ExpertStack([self.stack_expert(parts) for parts in experts], transposed=True)
