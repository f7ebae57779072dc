"""Gemma 3 (Gemma Team 2025), the language model."""

from __future__ import annotations

import torch

from bough.config.model_config import ModelConfig
from bough.layers.attention.base import HeadNorms
from bough.layers.linear_method import MethodChoice
from bough.layers.ops import Ops, Rotation, Stream, Value
from bough.models.base import torch_dtype
from bough.models.llama import LlamaAttention, LlamaDecoderLayer, LlamaForCausalLM, LlamaMLP
from bough.models.qwen3 import Qwen3Attention


class Gemma3Attention(Qwen3Attention):
    """Attention with norms of heads that store what their weights are beyond 1."""

    def head_norms(self) -> HeadNorms:
        """Norms with this layer's weights."""
        return super().head_norms()._replace(offset=1.0)


class Gemma3DecoderLayer(LlamaDecoderLayer):
    """A block that also normalises what it adds to the stream."""

    norm_offset = 1.0
    mlp: LlamaMLP

    def __init__(self, config: ModelConfig, self_attn: LlamaAttention, mlp: LlamaMLP) -> None:
        super().__init__(config, self_attn, mlp)
        self.pre_feedforward_layernorm = self.make_norm(config)
        self.post_feedforward_layernorm = self.make_norm(config)

    def run(self, ops: Ops[Value], stream: Stream[Value], rotation: Rotation[Value] | None) -> None:
        """Add attention, then the feed-forward network, to the stream."""
        attended = self.self_attn.attend(ops, ops.norm(self.input_layernorm, stream), rotation)
        ops.add_normed(stream, self.post_attention_layernorm, ops.linear(self.self_attn.o_proj, attended))
        gated = ops.gated(self.mlp.gate_up_proj, ops.norm(self.pre_feedforward_layernorm, stream))
        ops.add_normed(stream, self.post_feedforward_layernorm, ops.linear(self.mlp.down_proj, gated))


class Gemma3ForCausalLM(LlamaForCausalLM):
    """Llama with normalised queries and keys, norms around each part of a block, and scaled embeddings."""

    norm_offset = 1.0

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = Gemma3Attention(config, layer_id, method)
        return Gemma3DecoderLayer(config, attention, LlamaMLP(config, layer_id, method))

    @classmethod
    def embedding_scale(cls, config: ModelConfig) -> float:
        """Root of the hidden size, rounded to the model's dtype as transformers does."""
        return float(torch.tensor(config.hidden_size**0.5, dtype=torch_dtype(config), device="cpu"))
