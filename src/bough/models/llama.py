"""Llama, generations 1 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.layers.attention.base import HeadNorms, RotatingBackend
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import GatedLinear, Linear, QKVLinear
from bough.layers.linear_method import TORCH, LinearMethod, MethodChoice, packed_matrix
from bough.layers.norm import RMSNorm
from bough.layers.rotary import RotaryEmbedding, Rotation, apply_rotary
from bough.models.base import Body, CausalLM, torch_dtype

if TYPE_CHECKING:
    from bough.kernels.program import Buffer, Program
    from bough.kernels.structures import PackedMatrix
    from bough.layers.forward_batch import ForwardBatch
    from bough.mem_cache.kv_pool import KVPool


class LlamaMLP(nn.Module):
    """Gated feed-forward network."""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__()
        dtype, facts = torch_dtype(config), config.layers[layer_id].feed_forward
        width, bias = facts.width, facts.bias
        method = method.below("mlp")
        parts = {"gate_proj": width, "up_proj": width}
        self.gate_up_proj = GatedLinear(config.hidden_size, parts, bias=bias, dtype=dtype, method=method)
        self.down_proj = Linear("down_proj", width, config.hidden_size, bias=bias, dtype=dtype, method=method)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        output: torch.Tensor = self.down_proj(self.gate_up_proj(x))
        return output

    def record(self, program: Program, x: Buffer, onto: Buffer) -> None:
        """Add what :meth:`forward` computes to the residual stream ``onto``."""
        self.down_proj.record_add(program, self.gate_up_proj.record(program, x), onto)


class LlamaAttention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, config: ModelConfig, layer_id: int, method: MethodChoice) -> None:
        super().__init__()
        dtype, facts, size = torch_dtype(config), config.layers[layer_id].mixer, config.hidden_size
        self.head_dim = facts.head_dim
        self.num_heads = facts.num_heads
        self.num_kv_heads = facts.num_kv_heads
        method = method.below("self_attn")
        parts = {"q_proj": facts.q_size, "k_proj": facts.kv_size, "v_proj": facts.kv_size}
        self.qkv_proj = QKVLinear(size, parts, bias=facts.qkv_bias, dtype=dtype, method=method)
        self.o_proj = Linear("o_proj", facts.q_size, size, bias=facts.output_bias, dtype=dtype, method=method)
        self.attn = RadixAttention(
            self.num_heads, self.head_dim, self.num_kv_heads, layer_id, sliding_window=facts.window
        )

    def forward(self, x: torch.Tensor, rotation: Rotation, batch: ForwardBatch) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        heads = self.qkv_proj(x).view(x.shape[0], -1, self.head_dim)
        if isinstance(batch.attn_backend, RotatingBackend):
            attended = batch.attn_backend.rotate_and_attend(heads, rotation, self.head_norms(), self.attn, batch)
        else:
            attended = self.attn(*self.rotate(heads, rotation), batch)
        output: torch.Tensor = self.o_proj(attended)
        return output

    def rotate(self, heads: torch.Tensor, rotation: Rotation) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Split heads ``[num_tokens, num_heads + 2 * num_kv_heads, head_dim]`` into q, k, v; rotate q and k."""
        values = self.num_heads + self.num_kv_heads
        rotated = apply_rotary(heads[:, :values], rotation)
        return rotated[:, : self.num_heads], rotated[:, self.num_heads :], heads[:, values:]

    def head_norms(self) -> HeadNorms:
        """What :meth:`rotate` does to heads before it rotates them."""
        return HeadNorms()

    def record(self, program: Program, x: Buffer, rotation: Buffer, onto: Buffer, kv_pool: KVPool) -> None:
        """Add what :meth:`forward` computes to the residual stream ``onto``."""
        heads = self.qkv_proj.record(program, x)
        norms = self.head_norms()
        program.rotate_and_store(
            heads,
            rotation,
            kv_pool.kernel_layer(self.attn.layer_id),
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            q_norm=norms.q_weight,
            k_norm=norms.k_weight,
            eps=norms.eps,
        )
        self.o_proj.record_add(program, self.attn.record(program, heads, kv_pool), onto)


class LlamaDecoderLayer(nn.Module):
    """One transformer block, normalising before attention and before the feed-forward network."""

    def __init__(self, config: ModelConfig, self_attn: LlamaAttention, mlp: LlamaMLP) -> None:
        super().__init__()
        dtype = torch_dtype(config)
        self.self_attn = self_attn
        self.mlp = mlp
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype)

    def forward(
        self, x: torch.Tensor, delta: torch.Tensor | None, rotation: Rotation, batch: ForwardBatch
    ) -> torch.Tensor:
        """Take part in the residual stream ``x`` ``[num_tokens, hidden_size]``, which this changes.

        Args:
            x: the stream.
            delta: what the block before has still to add to it.
            rotation: of the tokens.
            batch: the step.

        Returns:
            What this block has still to add, so that the next norm can do it on the way.
        """
        delta = self.self_attn(self.input_layernorm.after_adding(x, delta), rotation, batch)
        output: torch.Tensor = self.mlp(self.post_attention_layernorm.after_adding(x, delta))
        return output

    def record(self, program: Program, x: Buffer, rotation: Buffer, kv_pool: KVPool) -> None:
        """What :meth:`forward` does, to the residual stream ``x``."""
        self.self_attn.record(program, self.input_layernorm.record(program, x), rotation, x, kv_pool)
        self.mlp.record(program, self.post_attention_layernorm.record(program, x), x)


class LlamaModel(Body):
    """Embedding, blocks and final norm."""

    def __init__(self, config: ModelConfig, layers: list[LlamaDecoderLayer], embedding_method: LinearMethod) -> None:
        super().__init__()
        dtype = torch_dtype(config)
        self.embed_tokens = VocabEmbedding(config.vocab_size, config.hidden_size, dtype, method=embedding_method)
        shape = config.attention_shapes()[0]
        assert shape.rope is not None, "a Llama rotates in every layer"
        self.rotary_emb = RotaryEmbedding(shape.head_dim, shape.rope, config.context_len, dtype)
        self.layers = nn.ModuleList(layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype)

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """See :class:`Body`."""
        x = self.embed_tokens(batch.input_ids)
        rotation = self.rotary_emb(batch.positions)
        delta: torch.Tensor | None = None
        for layer in self.layers:
            delta = layer(x, delta, rotation, batch)
        return self.norm.after_adding(x, delta)

    def record(self, program: Program, kv_pool: KVPool, head: PackedMatrix | None) -> None:
        """See :class:`Body`."""
        x = self.embed_tokens.record(program)
        rotation = self.rotary_emb.record(program)
        for layer in self.layers:
            layer.record(program, x, rotation, kv_pool)  # type: ignore[operator]
        program.finish(x, self.norm.weight, self.norm.eps, head)


class LlamaForCausalLM(CausalLM):
    """Llama with its language-model head. Families that differ in a block's parts override :meth:`make_layer`."""

    def __init__(self, config: ModelConfig, method: MethodChoice = TORCH) -> None:
        super().__init__()
        self.model = self.make_body(config, method)
        self.lm_head = LMHead(
            config.vocab_size,
            config.hidden_size,
            torch_dtype(config),
            tied_to=self.model.embed_tokens if config.tie_word_embeddings else None,
            method=TORCH if config.tie_word_embeddings else method.for_matrix(("lm_head",)),
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
        table = method.below("model").for_matrix(("embed_tokens",)) if is_shared else TORCH
        return LlamaModel(config, layers, embedding_method=table)

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int, method: MethodChoice) -> LlamaDecoderLayer:
        """Block number ``layer_id``."""
        attention = LlamaAttention(config, layer_id, method)
        return LlamaDecoderLayer(config, attention, LlamaMLP(config, layer_id, method))

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """See :class:`CausalLM`."""
        output: torch.Tensor = self.model(batch)
        return output

    def compute_logits(self, hidden_states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """See :class:`CausalLM`."""
        output: torch.Tensor = self.lm_head(hidden_states, out)
        return output

    def record(self, program: Program, kv_pool: KVPool) -> None:
        """See :class:`CausalLM`."""
        self.model.record(program, kv_pool, packed_matrix(self.lm_head.holder))
