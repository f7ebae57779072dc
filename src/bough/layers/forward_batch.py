"""One step as the model sees it: a plan turned into tensors on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bough.sampling.transfer import all_to_device
from bough.step_plan import FUTURE_TOKEN, ForwardMode, IntArray, StepPlan

if TYPE_CHECKING:
    from bough.layers.attention.base import AttentionBackend


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """``R`` rows with ``T`` new tokens: decode rows first, one token each, then extend rows. Never changed.

    Recorded steps have int32 where int64 is said, but for ``input_ids``: Triton's kernels take either.
    """

    forward_mode: ForwardMode
    batch_size: int
    """R"""
    num_tokens: int
    """T"""
    num_decode_rows: int
    input_ids: torch.Tensor
    """int64 [T], future tokens resolved"""
    positions: torch.Tensor
    """int64 [T], positions within their sequences"""
    seq_lens: torch.Tensor
    """int32 [R], tokens of each row once the step is done"""
    out_cache_loc: torch.Tensor
    """int64 [T], KV slots of the new tokens"""
    req_pool_indices: torch.Tensor
    """int64 [R], request slots"""
    attn_backend: AttentionBackend
    attn_metadata: Any
    """What the backend worked out for this step."""

    @classmethod
    def from_plan(
        cls,
        plan: StepPlan,
        *,
        positions: IntArray,
        last_token: torch.Tensor,
        attn_backend: AttentionBackend,
        attn_metadata: Any,
    ) -> ForwardBatch:
        """Move a plan to the device.

        Args:
            plan: the step.
            positions: ``[T]``, as :func:`token_positions` computes them.
            last_token: int64 ``[max_running_requests]`` on the device, resolves ``FUTURE_TOKEN`` by request slot.
            attn_backend: computes attention.
            attn_metadata: from ``attn_backend.init_forward_metadata``.
        """
        future = np.flatnonzero(plan.input_ids == FUTURE_TOKEN)
        token_slots = (
            plan.req_slots if plan.num_tokens == plan.num_rows else np.repeat(plan.req_slots, plan.extend_lens)
        )
        tensors = all_to_device(
            (
                *(array.astype(np.int64) for array in (plan.req_slots, plan.input_ids, positions, plan.out_slots)),
                plan.prefix_lens + plan.extend_lens,
                future,
                token_slots[future].astype(np.int64),
            ),
            last_token.device,
        )
        req_slots, input_ids, at_positions, out_slots, seq_lens, future_at, future_slots = tensors
        if len(future):
            input_ids.index_copy_(0, future_at, last_token.index_select(0, future_slots))
        return cls(
            forward_mode=plan.mode,
            batch_size=plan.num_rows,
            num_tokens=plan.num_tokens,
            num_decode_rows=plan.num_decode_rows,
            input_ids=input_ids,
            positions=at_positions,
            seq_lens=seq_lens,
            out_cache_loc=out_slots,
            req_pool_indices=req_slots,
            attn_backend=attn_backend,
            attn_metadata=attn_metadata,
        )


def token_positions(plan: StepPlan) -> IntArray:
    """Position of each new token in its sequence, int32 ``[T]``."""
    if plan.num_tokens == plan.num_rows:
        return plan.prefix_lens
    ends = np.cumsum(plan.extend_lens, dtype=np.int32)
    shifts = plan.prefix_lens - (ends - plan.extend_lens)
    positions: IntArray = np.arange(plan.num_tokens, dtype=np.int32) + np.repeat(shifts, plan.extend_lens)
    return positions
