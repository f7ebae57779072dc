"""The worker as the scheduler knows it. No torch here: front ends may import it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bough.step_plan import IntArray, StepPlan, StepResult

if TYPE_CHECKING:
    from bough.model_executor.worker_calls import WorkerCalls
    from bough.model_executor.worker_memory import WorkerMemory
    from bough.weight_sync.worker_weights import WorkerWeights


@dataclass(frozen=True)
class WorkerInfo:
    """The measured limits and costs of a loaded model, and the abilities of its worker; fixed for the worker's life."""

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
    maps_weights: bool = False
    """True if the weights lie in memory of another scheduler, which counts them."""
    kv_bytes: int = 0
    embedding_dim: int | None = None
    """Length of the vectors that the model makes of prompts; ``None`` if it generates text."""
    padding_id: int | None = None
    """Token that is no part of a pooled prompt where it stands at its end; ``None``: there is none."""
    expert_share: float = 0.0
    """Share of the experts that a token chooses, of layers with experts; 0: there are none."""
    keeps_experts: bool = False
    """True if it can be asked which experts have computed a token."""
    keeps_kv: bool = True
    """True if a sequence can be computed in several steps. If not, it comes in one piece, and the KV pool is a matter
    of accounting only: there is no memory behind its slots."""
    max_steps: int = 1
    """Most decode steps that one plan may have, the further ones included."""
    reuses_prefixes: bool = True
    """True if the result for a prompt can be had without computing tokens whose KV is there already."""
    runs_ahead: bool = False
    """True if :meth:`Worker.launch` returns before the device is done."""


class KernelCounts(NamedTuple):
    """Totals of the native kernels' threads; zeros where no kernels are shared by several threads."""

    runs: int = 0
    joined: int = 0
    recomputed: int = 0


class Launched(Protocol):
    """A step that the device has been given."""

    def result(self) -> StepResult:
        """Wait for the step's result, and raise what the device says of it."""


class Worker(ABC):
    """Interface between a scheduler and what runs its plans. What else than the abstract methods may be called, its
    :class:`WorkerInfo` says.

    Attributes:
        weights: those that can be replaced while no step is in flight; ``None``: none can.
        memory: what can be given back while no step is in flight; ``None``: none can.
        calls: methods that can be called by name while no step is in flight; ``None``: none can.
    """

    weights: WorkerWeights | None = None
    memory: WorkerMemory | None = None
    calls: WorkerCalls | None = None

    @abstractmethod
    def get_worker_info(self) -> WorkerInfo:
        """Limits of the loaded model."""

    @abstractmethod
    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step; its result says how many seconds it took."""

    def kernel_counts(self) -> KernelCounts:
        """Totals of the threads that compute; may be called while they do."""
        return KernelCounts()

    def expert_loads(self) -> npt.NDArray[np.int64]:
        """Tokens that each expert of each layer with experts has computed since the model was loaded,
        ``[num_layers, num_experts]``; may be called while it computes."""
        return np.zeros((0, 0), dtype=np.int64)

    def routed_experts(self, slots: IntArray) -> IntArray:
        """Return the experts that have computed the tokens at some KV slots, for workers that keep them.

        Returns:
            int32 ``[len(slots), num_layers, experts of a token]``
        """
        raise RuntimeError("this worker does not keep the experts of tokens")

    def launch(self, plan: StepPlan) -> Launched:
        """Give the device a step without waiting for the one before; for workers that run ahead."""
        raise RuntimeError("this worker does not run ahead")

    def interrupt_on(self, descriptors: Sequence[int]) -> None:  # noqa: B027 (most run one step at a time)
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""

    def follow(self) -> None:
        """Run the plans of the first of several ranks until it has no more; for workers of the others."""
        raise RuntimeError("this worker is not one of several ranks")

    def close(self) -> None:  # noqa: B027 (most have nothing beside them)
        """End what runs beside the worker, which computes nothing any more."""

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on; no other plan may have come in between."""
        raise RuntimeError("no step is to follow")
