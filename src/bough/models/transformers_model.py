"""Models that transformers computes, with our attention over the paged KV pool behind its attention interface."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface
from transformers.initialization import no_init_weights

from bough.config.model_config import ModelConfig
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.checkpoint_weight import CheckpointWeight, TensorWeight
from bough.layers.linear_method import TORCH, MethodChoice
from bough.models.base import CausalLM
from bough.models.transformers_code import STEP, Halves, make_transformers_model
from bough.models.transformers_weights import CheckpointNames
from bough.models.weight_names import text_name

if TYPE_CHECKING:
    from bough.layers.forward_batch import ForwardBatch

_PAGED = "bough_paged"


class TransformersCausalLM(CausalLM):
    """A model of transformers, in two parts: its body, and its head with whatever it does to logits.

    Args:
        config: of the model, as :func:`bough.models.transformers_facts.complete` returns it.
        method: of linear layers; only torch's own, as transformers has layers of its own.
    """

    def __init__(self, config: ModelConfig, method: MethodChoice = TORCH) -> None:
        super().__init__()
        assert method is TORCH, "other methods are refused before"
        with no_init_weights():
            causal = make_transformers_model(config, _PAGED)
        causal.tie_weights()
        self._names = CheckpointNames(causal)
        self._halves = halves = Halves.of(causal)
        self.body, self.head = halves.body, halves.head
        self._attention = tuple(_attention(config, layer, halves.body) for layer in range(config.num_layers))

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """Hidden states after the final norm, ``[num_tokens, hidden_size]``. Mutates the batch's KV pool.

        The tokens of all requests are one row; attention tells them apart.
        """
        return self._halves.states(batch.input_ids, batch.positions, _Step(batch, self._attention))

    def compute_logits(self, hidden_states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Logits, float32 ``[num_rows, vocab_size]``, of hidden states ``[num_rows, hidden_size]``: ``out``, or new."""
        logits = self._halves.logits(hidden_states)
        return logits.float() if out is None else out.copy_(logits)

    @cached_property
    def checkpoint_weights(self) -> dict[str, CheckpointWeight]:
        """Parameters and kept buffers, under the names that published checkpoints have."""
        return {name: TensorWeight(tensor) for name, tensor in self._names.tensors.items()}

    def own_name(self, name: str) -> str | None:
        """This model's name for a tensor of a checkpoint; ``None`` for one that is not needed."""
        name_in_text = text_name(name)
        return None if name_in_text is None else self._names.own_name(name_in_text)


@dataclass(frozen=True, slots=True)
class _Step:
    """A step, as the attention function needs it."""

    batch: ForwardBatch
    attention: tuple[RadixAttention, ...]


def _attention(config: ModelConfig, layer: int, body: nn.Module) -> RadixAttention:
    call = config.attention_arguments[layer]
    return RadixAttention(
        call.num_heads,
        config.kv_layout().head_dim,
        call.num_kv_heads,
        layer,
        scaling=call.scaling,
        sliding_window=call.window,
        logit_cap=call.logit_cap,
        sinks=None if call.sinks is None else body.get_parameter(call.sinks),
    )


def _attend(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **keywords: Any,
) -> tuple[torch.Tensor, None]:
    """Attention function of transformers: store keys and values in the pool and attend to all that requests have there.

    The pool has one width, of the wider of keys and values; zeros fill up the other and change no score and no value.

    Args:
        module: that calls.
        query: ``[1, num_heads, num_tokens, key_width]``
        key: ``[1, num_kv_heads, num_tokens, key_width]``
        value: ``[1, num_kv_heads, num_tokens, value_width]``
        attention_mask: ``None``, as no mask function is registered under this name.
        keywords: with the step.

    Returns:
        ``[1, num_tokens, num_heads, value_width]``, and no weights.
    """
    step: _Step = keywords[STEP]
    layer = step.attention[module.layer_idx]  # type: ignore[index]
    q, k, v = (_widened(each[0].transpose(0, 1), layer.head_dim) for each in (query, key, value))
    output = step.batch.attn_backend.forward(q, k, v, layer, step.batch)
    return output.view(1, query.shape[2], layer.num_heads, layer.head_dim)[..., : value.shape[3]], None


def _widened(heads: torch.Tensor, width: int) -> torch.Tensor:
    """Heads ``[num_tokens, num_heads, narrower]`` with zeros up to ``width``."""
    if heads.shape[2] == width:
        return heads.contiguous()
    return functional.pad(heads, (0, width - heads.shape[2]))


AttentionInterface.register(_PAGED, _attend)
