"""The worker as the scheduler knows it. No torch here: front ends may import it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bough.step_plan import StepPlan, StepResult


@dataclass(frozen=True)
class WorkerInfo:
    """The measured limits and costs of a loaded model, fixed for the life of the worker."""

    max_total_num_tokens: int
    """Tokens that the KV pool holds."""
    max_running_requests: int
    """Request slots."""
    max_req_len: int
    """Most tokens, prompt and output together, that one request may have."""
    max_req_input_len: int
    """Most prompt tokens of one request."""
    page_size: int
    """Tokens per KV page."""
    vocab_size: int
    """Token ids are in ``[0, vocab_size)``."""
    context_len: int
    """Positions that the model was made for, in tokens."""
    device: str
    """Kind of device: cpu or cuda."""
    dtype: str
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds that each phase of start-up took."""
    device_index: int | None = None
    """Which of several devices of its kind."""
    num_parameters: int = 0
    weight_bytes: int = 0
    kv_bytes: int = 0
    embedding_dim: int | None = None
    """Length of the vectors that the model makes of prompts; ``None`` if it generates text."""
    padding_id: int | None = None
    """Token that is no part of a pooled prompt where it stands at its end; ``None``: there is none."""
    keeps_kv: bool = True
    """True if a sequence can be computed in several steps. If not, it comes in one piece, and the KV pool is a matter
    of accounting only: there is no memory behind its slots."""
    max_steps: int = 1
    """Most decode steps that one plan may have, the further ones included."""
    reuses_prefixes: bool = True
    """True if the result for a prompt can be had without computing tokens whose KV is there already."""


class Launched(Protocol):
    """A step that the device has been given."""

    def result(self) -> StepResult:
        """Wait for the step's result, and raise what the device says of it."""


class Worker(ABC):
    """Interface between a scheduler and what runs its plans."""

    @abstractmethod
    def get_worker_info(self) -> WorkerInfo:
        """Limits of the loaded model."""

    @abstractmethod
    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step; its result says how many seconds it took."""

    @property
    def runs_ahead(self) -> bool:
        """True if :meth:`launch` returns before the device is done."""
        return False

    def launch(self, plan: StepPlan) -> Launched:
        """Give the device a step without waiting for the one before; for workers that run ahead."""
        raise NotImplementedError

    def interrupt_on(self, descriptors: Sequence[int]) -> None:  # noqa: B027 (most run one step at a time)
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on; no other plan may have come in between."""
        raise RuntimeError("no step is to follow")
