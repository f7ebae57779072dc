"""One step as the model sees it: a plan turned into tensors on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bough.sampling.transfer import all_to_device
from bough.step_plan import FUTURE_TOKEN, IntArray, StepPlan

if TYPE_CHECKING:
    from bough.layers.attention.base import AttentionBackend


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """``R`` rows with ``T`` new tokens: decode rows first, one token each, then extend rows. Never changed.

    Recorded steps have int32 where int64 is said, but for ``input_ids``: Triton's kernels take either.
    """

    num_tokens: int
    """T"""
    num_decode_rows: int
    input_ids: torch.Tensor
    """int64 [T], future tokens resolved"""
    positions: torch.Tensor
    """int64 [T], positions within their sequences"""
    out_cache_loc: torch.Tensor
    """int64 [T], KV slots of the new tokens"""
    attn_backend: AttentionBackend
    attn_metadata: Any
    """The backend's own preparation of this step."""

    @classmethod
    def from_plan(
        cls, plan: StepPlan, attn_backend: AttentionBackend, req_to_token: torch.Tensor, last_token: torch.Tensor
    ) -> ForwardBatch:
        """Move a plan to the device. Enters the KV slots of its new tokens into ``req_to_token``.

        ``last_token``, int64 ``[max_running_requests]`` on the device, resolves ``FUTURE_TOKEN`` by request slot.
        """
        future = np.flatnonzero(plan.input_ids == FUTURE_TOKEN)
        token_slots = (
            plan.req_slots if plan.num_tokens == plan.num_rows else np.repeat(plan.req_slots, plan.extend_lens)
        ).astype(np.int64)
        positions = token_positions(plan)
        tensors = all_to_device(
            (
                *(array.astype(np.int64) for array in (plan.input_ids, positions, plan.out_slots)),
                future,
                token_slots[future],
                token_slots * req_to_token.shape[1] + positions,
                plan.out_slots,
            ),
            last_token.device,
        )
        input_ids, at_positions, out_slots, future_at, future_slots, *entries = tensors
        req_to_token.view(-1).index_copy_(0, *entries)
        if len(future):
            input_ids.index_copy_(0, future_at, last_token.index_select(0, future_slots))
        return cls(
            num_tokens=plan.num_tokens,
            num_decode_rows=plan.num_decode_rows,
            input_ids=input_ids,
            positions=at_positions,
            out_cache_loc=out_slots,
            attn_backend=attn_backend,
            attn_metadata=attn_backend.init_forward_metadata(plan, req_to_token),
        )


def token_positions(plan: StepPlan) -> IntArray:
    """Position of each new token in its sequence, int32 ``[T]``."""
    if plan.num_tokens == plan.num_rows:
        return plan.prefix_lens
    ends = np.cumsum(plan.extend_lens, dtype=np.int32)
    shifts = plan.prefix_lens - (ends - plan.extend_lens)
    positions: IntArray = np.arange(plan.num_tokens, dtype=np.int32) + np.repeat(shifts, plan.extend_lens)
    return positions
