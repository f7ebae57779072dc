"""Runs steps with torch and Triton, and on CUDA the recorded passes that fit them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from bough.layers.attention.base import AttentionBackend
from bough.layers.forward_batch import ForwardBatch
from bough.model_executor.graph_runner import ForwardOutput
from bough.model_executor.launched_step import CheckedRows
from bough.models.base import CausalLM
from bough.sampling.transfer import to_device
from bough.step_plan import FUTURE_TOKEN, ForwardMode, IntArray, StepPlan

if TYPE_CHECKING:
    from bough.model_executor.cuda_graph_runner import CudaGraphRunner
    from bough.model_executor.prompt_graph_runner import PromptGraphRunner


class DecodedRows(NamedTuple):
    """Results of ``n`` recorded decode rows."""

    hidden_states: torch.Tensor
    """[n, hidden_size]"""
    logits: torch.Tensor
    """float32 [n, vocab_size]"""
    others: StepPlan | None
    """The forward pass of the step's other rows, which is still to be computed"""


class EagerRunner:
    """The forward pass of one model over one KV pool, launched kernel by kernel unless it was recorded."""

    def __init__(
        self, model: CausalLM, backend: AttentionBackend, req_to_token: torch.Tensor, last_token: torch.Tensor
    ) -> None:
        """Record nothing.

        Args:
            req_to_token: int32 ``[max_running_requests, max_len]``; steps enter their new tokens.
            last_token: int64 ``[max_running_requests]``, resolves ``FUTURE_TOKEN``.
        """
        self._model, self._backend = model, backend
        self._req_to_token, self._last_token = req_to_token, last_token
        self.graph_runner: CudaGraphRunner | None = None
        self.prompt_runner: PromptGraphRunner | None = None

    def forward(self, plan: StepPlan, wanted: npt.NDArray[np.uint8], *, hidden_states: bool) -> ForwardOutput:
        """Run one step, see :meth:`CpuGraphRunner.forward`.

        All rows that sample get logits, and hidden states are kept, whatever is wanted.
        """
        decoded = self.forward_decode(plan)
        if decoded is not None and decoded.others is None:
            return _output(plan, decoded.logits, decoded.hidden_states)
        others = plan if decoded is None or decoded.others is None else decoded.others
        states = self.forward_extend(others)
        if decoded is not None:
            states = torch.cat((decoded.hidden_states, states))
        last_tokens = np.cumsum(plan.extend_lens, dtype=np.int64) - 1
        ends = last_tokens[plan.sample]
        logits = None if decoded is None else decoded.logits
        eager_ends = ends if decoded is None else ends[plan.num_decode_rows :]
        if len(eager_ends):
            computed = self._model.compute_logits(self._select(states, eager_ends))
            logits = computed if logits is None else torch.cat((logits, computed))
        checked = None
        if len(ends) < plan.num_rows:
            # A chunk that goes wrong must not leave its KV to the next owner of its pages.
            other_rows = np.flatnonzero(~plan.sample)
            checked = CheckedRows(other_rows, self._select(states, last_tokens[other_rows]).isfinite().all(-1))
        return _output(plan, logits, states, checked)

    def forward_decode(self, plan: StepPlan) -> DecodedRows | None:
        """Replay the decode rows of a step, if they are recorded."""
        if self.graph_runner is None or plan.mode is ForwardMode.EXTEND or plan.token_types is not None:
            return None
        decode_rows, others = plan.split() if plan.mode is ForwardMode.MIXED else (plan, None)
        if not self.graph_runner.can_run(decode_rows):
            return None
        return DecodedRows(*self.graph_runner.replay(decode_rows), others)

    def forward_extend(self, plan: StepPlan) -> torch.Tensor:
        """Run a step's forward pass, replayed if it is one of recorded prompts, to hidden states ``[T, hidden_size]``.

        Mutates the KV pool at ``plan.out_slots`` and enters these into the request table.
        """
        if self.prompt_runner is not None and self.prompt_runner.can_run(plan):
            return self.prompt_runner.replay(plan)
        batch = ForwardBatch.from_plan(plan, self._backend, self._req_to_token, self._last_token)
        states: torch.Tensor = self._model(batch)
        return states

    def _select(self, hidden_states: torch.Tensor, tokens: npt.NDArray[np.int64]) -> torch.Tensor:
        """Hidden states of some tokens, ascending."""
        if len(tokens) == len(hidden_states):
            return hidden_states
        return hidden_states.index_select(0, to_device(tokens, hidden_states.device))


def prompt_plan(input_ids: IntArray, first_slot: int) -> StepPlan:
    """Plan of one prompt ``[num_tokens]`` of request slot 0, in the KV slots from ``first_slot`` on."""
    zero, count = np.zeros(1, dtype=np.int32), np.array([len(input_ids)], dtype=np.int32)
    return StepPlan(
        step_id=0,
        mode=ForwardMode.EXTEND,
        num_decode_rows=0,
        req_slots=zero,
        prefix_lens=zero,
        extend_lens=count,
        input_ids=input_ids,
        out_slots=np.arange(first_slot, first_slot + len(input_ids), dtype=np.int32),
        sample=np.ones(1, dtype=np.bool_),
    )


def _output(
    plan: StepPlan, logits: torch.Tensor | None, hidden_states: torch.Tensor, checked: CheckedRows | None = None
) -> ForwardOutput:
    return ForwardOutput(
        np.full(plan.num_rows, FUTURE_TOKEN, dtype=np.int32),
        np.ones(plan.num_rows, dtype=np.bool_),
        logits,
        hidden_states,
        checked,
    )
