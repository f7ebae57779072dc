"""What a prompt takes while it is computed: measured, for models that torch computes."""

from __future__ import annotations

import numpy as np
import torch

from bough.layers.attention.base import AttentionBackend
from bough.layers.forward_batch import ForwardBatch, token_positions
from bough.model_executor.machine import peak_resident_bytes, reset_peak_resident_bytes
from bough.models.base import CausalLM
from bough.step_plan import ForwardMode, IntArray, StepPlan


@torch.inference_mode()
def measured_forward_bytes(model: CausalLM, backend: AttentionBackend, num_tokens: int) -> int:
    """Memory that a prompt of ``num_tokens`` takes while it is computed, in bytes; 0 if it cannot be measured.

    Args:
        model: computes it.
        backend: over a pool with room for it, which is written.
        num_tokens: of the prompt.
    """
    device = backend.kv_pool.device
    batch = prompt_batch(backend, np.zeros(num_tokens, dtype=np.int32))
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        model.compute_logits(model(batch)[-1:])
        return int(torch.cuda.max_memory_allocated(device)) - before
    resident = reset_peak_resident_bytes()
    model.compute_logits(model(batch)[-1:])
    peak = peak_resident_bytes()
    return peak - resident if peak is not None and resident is not None else 0


def prompt_batch(backend: AttentionBackend, input_ids: IntArray) -> ForwardBatch:
    """A batch of one prompt, in the first slots of the backend's pool.

    Args:
        backend: over a pool with room for it.
        input_ids: ``[num_tokens]``
    """
    pool, num_tokens = backend.kv_pool, len(input_ids)
    slots = np.arange(pool.page_size, pool.page_size + num_tokens, dtype=np.int32)
    zero, count = np.zeros(1, dtype=np.int32), np.array([num_tokens], dtype=np.int32)
    plan = StepPlan(
        step_id=0,
        mode=ForwardMode.EXTEND,
        num_decode_rows=0,
        req_slots=zero,
        prefix_lens=zero,
        extend_lens=count,
        input_ids=input_ids,
        out_slots=slots,
        sample=np.ones(1, dtype=np.bool_),
    )
    table = torch.arange(pool.page_size, pool.num_slots, dtype=torch.int32, device=pool.device)[None]
    return ForwardBatch.from_plan(
        plan,
        positions=token_positions(plan),
        last_token=torch.zeros(1, dtype=torch.int64, device=pool.device),
        attn_backend=backend,
        attn_metadata=backend.init_forward_metadata(0, zero, zero, count, table),
    )
