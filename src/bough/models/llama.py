"""Llama, generations 1 to 3, dense."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.layers.activation import gate_named
from bough.layers.attention.base import HeadNorms
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.attention.sinks import Sinks
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import GatedLinear, Linear, QKVLinear
from bough.layers.linear_method import TORCH, MethodChoice
from bough.layers.norm import RMSNorm
from bough.layers.ops import Ops, Rotation, Stream, Value
from bough.layers.rotary import RotaryEmbedding
from bough.models.base import Block, CausalLM, Described, torch_dtype


class FeedForward(Block):
    """Part of a block that computes each token alone."""

    def run(self, ops: Ops[Value], x: Value, stream: Stream[Value]) -> None:
        """Compute ``x`` ``[num_tokens, hidden_size]`` and add it to the stream."""
        raise NotImplementedError


class LlamaMLP(FeedForward):
    """Gated feed-forward network."""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__()
        dtype, facts = torch_dtype(config), config.layers[layer_id].feed_forward
        width, bias = method.shard.rows(facts.width), facts.bias
        inputs, outputs = method.shard.to_stream(width, config.hidden_size)
        method = method.below("mlp")
        parts = {"gate_proj": width, "up_proj": width}
        self.gate_up_proj = GatedLinear(
            config.hidden_size, parts, bias=bias, dtype=dtype, method=method, gate=gate_named(facts.activation)
        )
        self.down_proj = Linear("down_proj", inputs, outputs, bias=bias, dtype=dtype, method=method)

    def run(self, ops: Ops[Value], x: Value, stream: Stream[Value]) -> None:
        ops.add_linear(stream, self.down_proj, ops.gated(self.gate_up_proj, x))


class LlamaAttention(Block):
    """Grouped-query attention with rotary positions."""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__()
        dtype, facts, size = torch_dtype(config), config.layers[layer_id].mixer, config.hidden_size
        self.head_dim = facts.head_dim
        heads = method.shard.heads(facts.num_heads, facts.num_kv_heads)
        queries, keys = (share.times(facts.head_dim) for share in heads)
        inputs, outputs = method.shard.to_stream(queries, size)
        self.num_heads = heads.queries.size
        self.num_kv_heads = heads.keys.size
        method = method.below("self_attn")
        parts = {"q_proj": queries, "k_proj": keys, "v_proj": keys}
        self.qkv_proj = QKVLinear(size, parts, bias=facts.qkv_bias, dtype=dtype, method=method)
        self.o_proj = Linear("o_proj", inputs, outputs, bias=facts.output_bias, dtype=dtype, method=method)
        self.sinks = Sinks(heads.queries, method.collectives) if facts.sinks else None
        self.attn = RadixAttention(
            self.num_heads,
            self.head_dim,
            self.num_kv_heads,
            layer_id,
            scaling=facts.scaling,
            sliding_window=facts.window,
            sinks=None if self.sinks is None else self.sinks.scores,
            query_scale=None if facts.rope is None else facts.rope.query_scale(config.context_len),
            queries=heads.queries,
        )

    def head_norms(self) -> HeadNorms:
        """Norms of queries and keys before they are rotated."""
        return HeadNorms()

    def attend(self, ops: Ops[Value], x: Value, rotation: Rotation[Value] | None) -> Value:
        """Attend from ``x`` ``[num_tokens, hidden_size]``: all heads, before the projection back to the stream."""
        return ops.attend(self.attn, ops.linear(self.qkv_proj, x), rotation, self.head_norms())

    def run(self, ops: Ops[Value], x: Value, rotation: Rotation[Value] | None, stream: Stream[Value]) -> None:
        """Attend from ``x`` ``[num_tokens, hidden_size]`` and add the result to the stream."""
        ops.add_linear(stream, self.o_proj, self.attend(ops, x, rotation))


class LlamaDecoderLayer(Block):
    """One transformer block, normalising before attention and before the feed-forward network."""

    norm_offset: ClassVar[float] = 0.0
    """Added to the weights of norms"""

    def __init__(self, config: ModelConfig, self_attn: LlamaAttention, mlp: FeedForward) -> None:
        super().__init__()
        self.self_attn = self_attn
        self.mlp = mlp
        self.input_layernorm = self.make_norm(config)
        self.post_attention_layernorm = self.make_norm(config)

    def make_norm(self, config: ModelConfig) -> RMSNorm:
        """A norm of the stream's width."""
        return RMSNorm(config.hidden_size, config.rms_norm_eps, torch_dtype(config), offset=self.norm_offset)

    def run(self, ops: Ops[Value], stream: Stream[Value], rotation: Rotation[Value] | None) -> None:
        """Add attention, then the feed-forward network, to the stream."""
        self.self_attn.run(ops, ops.norm(self.input_layernorm, stream), rotation, stream)
        self.mlp.run(ops, ops.norm(self.post_attention_layernorm, stream), stream)


class LlamaModel(Described):
    """Embedding, blocks and final norm.

    Args:
        config: of the model.
        layers: all blocks; each rotates as its layer's facts say.
        embedding_method: choice of what holds the embedding's table.
        norm_offset: added to the final norm's weights.
        embedding_scale: factor on embeddings.
    """

    def __init__(
        self,
        config: ModelConfig,
        layers: list[LlamaDecoderLayer],
        embedding_method: MethodChoice,
        *,
        norm_offset: float = 0.0,
        embedding_scale: float = 1.0,
    ) -> None:
        super().__init__()
        dtype = torch_dtype(config)
        self.embedding_scale = embedding_scale
        self.embed_tokens = VocabEmbedding(config.vocab_size, config.hidden_size, dtype, method=embedding_method)
        # Layers that are rotated alike share a table.
        shapes = [(layer.mixer.head_dim, layer.mixer.rope) for layer in config.layers]
        tables = {shape: number for number, shape in enumerate(dict.fromkeys(each for each in shapes if each[1]))}
        self.rotary_embs = nn.ModuleList(
            RotaryEmbedding(head_dim, rope, config.context_len, dtype) for head_dim, rope in tables if rope is not None
        )
        self.table_of_layer = [tables.get(shape) for shape in shapes]
        self.layers = nn.ModuleList(layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype, offset=norm_offset)

    def run(self, ops: Ops[Value], head: LMHead | None = None) -> Value:
        """Embed, go through all blocks, finish."""
        stream = ops.embed(self.embed_tokens, self.embedding_scale)
        rotations = [ops.rotation(rotary) for rotary in self.rotary_embs]  # type: ignore[arg-type]
        for layer, table in zip(self.layers, self.table_of_layer, strict=True):
            layer.run(ops, stream, None if table is None else rotations[table])  # type: ignore[operator]
        return ops.finish(self.norm, stream, head)


class LlamaForCausalLM(CausalLM):
    """Llama with its language-model head. Families that differ in a block's parts override :meth:`make_layer`."""

    can_be_shared = True
    norm_offset: ClassVar[float] = 0.0
    """Added to the final norm's weights"""

    def __init__(self, config: ModelConfig, method: MethodChoice = TORCH) -> None:
        super().__init__()
        self.model = self.make_body(config, method)
        self.lm_head = LMHead(
            config.vocab_size,
            config.hidden_size,
            torch_dtype(config),
            tied_to=self.model.embed_tokens if config.tie_word_embeddings else None,
            method=method,
        )

    @classmethod
    def make_body(cls, config: ModelConfig, method: MethodChoice) -> LlamaModel:
        """See :class:`CausalLM`."""
        layers = [
            cls.make_layer(config, layer_id, method.below(f"model.layers.{layer_id}"))
            for layer_id in range(config.num_layers)
        ]
        # A table of its own is only looked up in, and rows are looked up fastest as they are.
        is_shared = config.tie_word_embeddings and config.is_generation
        table = method.below("model") if is_shared else method.plain
        scale = cls.embedding_scale(config)
        return LlamaModel(config, layers, table, norm_offset=cls.norm_offset, embedding_scale=scale)

    @classmethod
    def embedding_scale(cls, config: ModelConfig) -> float:
        """Factor on embeddings."""
        return 1.0

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = LlamaAttention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, layer_id, method))

    def run(self, ops: Ops[Value], head: LMHead | None = None) -> Value:
        """Run the body, with the head."""
        return self.model.run_on(ops, self.lm_head)

    def compute_logits(self, hidden_states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """See :class:`CausalLM`."""
        output: torch.Tensor = self.lm_head(hidden_states, out)
        return output
