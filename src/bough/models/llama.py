"""Llama, generations 1 to 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.layers.activation import silu_and_mul
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import Linear, MergedLinear
from bough.layers.norm import RMSNorm
from bough.layers.rotary import RotaryEmbedding, Rotation, apply_rotary
from bough.models.base import CausalLM, torch_dtype

if TYPE_CHECKING:
    from bough.model_executor.forward_batch import ForwardBatch


class LlamaMLP(nn.Module):
    """Gated feed-forward network."""

    def __init__(self, config: ModelConfig, *, bias: bool) -> None:
        super().__init__()
        dtype, width = torch_dtype(config), config.intermediate_size
        self.gate_up_proj = MergedLinear(
            config.hidden_size, {"gate_proj": width, "up_proj": width}, bias=bias, dtype=dtype
        )
        self.down_proj = Linear("down_proj", width, config.hidden_size, bias=bias, dtype=dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        output: torch.Tensor = self.down_proj(silu_and_mul(self.gate_up_proj(x)))
        return output


class LlamaAttention(nn.Module):
    """Grouped-query attention with rotary positions."""

    def __init__(self, config: ModelConfig, layer_id: int, *, qkv_bias: bool, output_bias: bool) -> None:
        super().__init__()
        dtype = torch_dtype(config)
        self.head_dim = config.head_dim
        self.num_heads = config.num_heads
        self.num_kv_heads = config.num_kv_heads
        q_size, kv_size = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self.qkv_proj = MergedLinear(
            config.hidden_size, {"q_proj": q_size, "k_proj": kv_size, "v_proj": kv_size}, bias=qkv_bias, dtype=dtype
        )
        self.o_proj = Linear("o_proj", q_size, config.hidden_size, bias=output_bias, dtype=dtype)
        self.attn = RadixAttention(
            config.num_heads,
            config.head_dim,
            config.num_kv_heads,
            layer_id,
            sliding_window=config.layer_windows[layer_id],
        )

    def forward(self, x: torch.Tensor, rotation: Rotation, batch: ForwardBatch) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape."""
        heads = self.qkv_proj(x).view(x.shape[0], -1, self.head_dim)
        q, k, v = self.rotate(heads, rotation)
        output: torch.Tensor = self.o_proj(self.attn(q, k, v, batch))
        return output

    def rotate(self, heads: torch.Tensor, rotation: Rotation) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Split heads ``[num_tokens, num_heads + 2 * num_kv_heads, head_dim]`` into q, k, v; rotate q and k."""
        values = self.num_heads + self.num_kv_heads
        rotated = apply_rotary(heads[:, :values], rotation)
        return rotated[:, : self.num_heads], rotated[:, self.num_heads :], heads[:, values:]


class LlamaDecoderLayer(nn.Module):
    """One transformer block, normalising before attention and before the feed-forward network."""

    def __init__(self, config: ModelConfig, self_attn: nn.Module, mlp: nn.Module) -> None:
        super().__init__()
        dtype = torch_dtype(config)
        self.self_attn = self_attn
        self.mlp = mlp
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype)

    def forward(self, x: torch.Tensor, rotation: Rotation, batch: ForwardBatch) -> torch.Tensor:
        """``[num_tokens, hidden_size]`` to the same shape; overwrites ``x``."""
        x.add_(self.self_attn(self.input_layernorm(x), rotation, batch))
        return x.add_(self.mlp(self.post_attention_layernorm(x)))


class LlamaModel(nn.Module):
    """Embedding, blocks and final norm."""

    def __init__(self, config: ModelConfig, layers: list[nn.Module]) -> None:
        super().__init__()
        dtype = torch_dtype(config)
        self.embed_tokens = VocabEmbedding(config.vocab_size, config.hidden_size, dtype)
        self.rotary_emb = RotaryEmbedding(config.head_dim, config.rope, config.context_len, dtype)
        self.layers = nn.ModuleList(layers)
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps, dtype)

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """Hidden states after the final norm, ``[num_tokens, hidden_size]``."""
        x = self.embed_tokens(batch.input_ids)
        rotation = self.rotary_emb(batch.positions)
        for layer in self.layers:
            x = layer(x, rotation, batch)
        output: torch.Tensor = self.norm(x)
        return output


class LlamaForCausalLM(CausalLM):
    """Llama with its language-model head. Families that differ in a block's parts override :meth:`make_layer`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.model = self.make_body(config)
        self.lm_head = LMHead(
            config.vocab_size,
            config.hidden_size,
            torch_dtype(config),
            tied_to=self.model.embed_tokens if config.tie_word_embeddings else None,
        )

    @classmethod
    def make_body(cls, config: ModelConfig) -> LlamaModel:
        """See :class:`CausalLM`."""
        return LlamaModel(config, [cls.make_layer(config, layer_id) for layer_id in range(config.num_layers)])

    @classmethod
    def make_layer(cls, config: ModelConfig, layer_id: int) -> nn.Module:
        """Block number ``layer_id``."""
        bias = bool(config.hf_config.get("attention_bias", False))
        return LlamaDecoderLayer(
            config,
            LlamaAttention(config, layer_id, qkv_bias=bias, output_bias=bias),
            LlamaMLP(config, bias=bool(config.hf_config.get("mlp_bias", False))),
        )

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """See :class:`CausalLM`."""
        output: torch.Tensor = self.model(batch)
        return output

    def compute_logits(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """See :class:`CausalLM`."""
        output: torch.Tensor = self.lm_head(hidden_states)
        return output
