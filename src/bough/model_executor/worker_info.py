"""What the scheduler knows of a worker. No torch here: front ends may import it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

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
    dtype: str
    timings: dict[str, float] = field(default_factory=dict)
    """Seconds that each phase of start-up took."""
    num_parameters: int = 0
    weight_bytes: int = 0
    kv_bytes: int = 0
    embedding_dim: int | None = None
    """Length of the vectors that the model makes of prompts; ``None`` if it generates text."""
    padding_id: int | None = None
    """Token that is no part of a pooled prompt where it stands at its end; ``None``: there is none."""
    keeps_kv: bool = True
    """Whether a sequence can be computed in several steps. If not, it comes in one piece, and the KV pool is a matter
    of accounting only: there is no memory behind its slots."""
    max_steps: int = 1
    """Most decode steps that one plan may have, the further ones included."""
    reuses_prefixes: bool = True
    """Whether the result for a prompt can be had without computing tokens whose KV is there already."""


@runtime_checkable
class Worker(Protocol):
    """What the scheduler needs of a model worker."""

    def get_worker_info(self) -> WorkerInfo:
        """Limits of the loaded model."""

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step."""
