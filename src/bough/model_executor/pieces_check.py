"""Check that a model computes a prompt in pieces as it does at once: that all it remembers is in the KV cache."""

from __future__ import annotations

import numpy as np
import torch

from bough.config.model_config import ModelConfig
from bough.layers.attention.torch_native import TorchNativeBackend
from bough.mem_cache.kv_pool import KVPool
from bough.model_executor.eager_runner import EagerRunner, prompt_plan
from bough.models.base import CausalLM, torch_dtype
from bough.step_plan import ForwardMode, IntArray, StepPlan

_PAGE_SIZE = 16
_NUM_TOKENS, _FIRST_PIECE = 12, 7
_TOLERANCE = {torch.float32: 1e-2}
_HALF_TOLERANCE = 0.06
"""Most that hidden states may differ, on average, in relation to their size. Rounding to 16 bits takes up to some
percent where products of other sizes are summed in another order; positions that are off take 8 to 40 percent of small
random models."""


@torch.inference_mode()
def differs_in_pieces(model: CausalLM, config: ModelConfig, device: torch.device) -> bool:
    """True if the hidden states of a short prompt depend on how it is cut, or on the prompt beside it.

    Takes the memory and the time of a few tokens.

    Args:
        model: with its weights.
        config: of the model, complete.
        device: that runs it.
    """
    count = min(_NUM_TOKENS, config.context_len)
    cut = min(_FIRST_PIECE, count - 1)
    dtype = torch_dtype(config)
    pool = KVPool(
        max_total_tokens=2 * _PAGE_SIZE, page_size=_PAGE_SIZE, layout=config.kv_layout(), dtype=dtype, device=device
    )
    table = torch.zeros(2, _PAGE_SIZE, dtype=torch.int32, device=device)
    runner = EagerRunner(
        model, TorchNativeBackend(pool, config.windows()), table, torch.zeros(2, dtype=torch.int64, device=device)
    )
    tokens = np.arange(1, count + 1, dtype=np.int32) * 7 % config.vocab_size
    whole = runner.forward_extend(prompt_plan(tokens, _PAGE_SIZE)).float()
    runner.forward_extend(prompt_plan(tokens[:cut], _PAGE_SIZE))
    pieces = runner.forward_extend(_second_piece(tokens, cut)).float()
    expected = torch.cat((whole[cut:], whole[:cut]))
    errors = (pieces - expected).norm(dim=1) / expected.norm(dim=1)
    return not bool(errors.mean() <= _TOLERANCE.get(dtype, _HALF_TOLERANCE))  # NaN differs, too


def _second_piece(tokens: IntArray, cut: int) -> StepPlan:
    """Plan of the rest of a prompt, in request slot 0, beside the first part of the same prompt, in slot 1."""
    rest = tokens[cut:]
    slots = np.concatenate((np.arange(_PAGE_SIZE + cut, _PAGE_SIZE + len(tokens)), 2 * _PAGE_SIZE + np.arange(cut)))
    return StepPlan(
        step_id=1,
        mode=ForwardMode.EXTEND,
        num_decode_rows=0,
        req_slots=np.array([0, 1], dtype=np.int32),
        prefix_lens=np.array([cut, 0], dtype=np.int32),
        extend_lens=np.array([len(rest), cut], dtype=np.int32),
        input_ids=np.concatenate((rest, tokens[:cut])),
        out_slots=slots.astype(np.int32),
        sample=np.ones(2, dtype=np.bool_),
    )
