"""A planned step, and what the scheduler must remember of it until its results are processed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bough.scheduler.req import Req
from bough.step_plan import ForcedTokens, NewRequest, StepPlan, StepResult, TableWrite


@dataclass
class Planned:
    """A plan and what the scheduler must remember to process its results."""

    plan: StepPlan
    prompts: list[Req]
    """Requests of the rows after the decode rows, in row order."""
    jumps: list[Req]
    """Requests of the rows after those: output that was not sampled."""
    token_context: float
    alive: np.ndarray = field(init=False)
    """[R] bool; false for rows whose request ended while the step was in flight."""
    all_alive: bool = True
    num_run: int = 0
    """Steps that were run, as far as results are here."""
    num_new: int = 0
    """Those of them that the last result is about."""
    seconds: float = 0.0
    """Time that all of them have taken on the device."""
    left: set[int] = field(default_factory=set)
    """Slots whose owner has ended or lost them since the step was planned."""

    def __post_init__(self) -> None:
        self.alive = np.ones(self.plan.num_rows, dtype=np.bool_)

    def add(self, result: StepResult) -> None:
        """Count the steps of a result."""
        self.num_new = result.num_steps
        self.num_run += result.num_steps
        self.seconds += result.seconds

    def drop_slot(self, slot: int) -> None:
        """Ignore this step's result for the request in ``slot``."""
        self.alive[self.plan.req_slots == slot] = False
        self.all_alive = bool(self.alive.all())
        self.left.add(slot)

    def drop_row(self, row: int) -> None:
        """Ignore what else the results have for a row."""
        self.alive[row] = False
        self.all_alive = False

    @property
    def concerned_slots(self) -> list[int]:
        """Slots of requests that depend on this step: it computes for them, or tells the device of them."""
        plan = self.plan
        told: list[NewRequest | TableWrite | ForcedTokens] = [*plan.new_requests, *plan.table_writes, *plan.forced]
        slots = dict.fromkeys([*plan.req_slots.tolist(), *(each.req_slot for each in told)])
        return [slot for slot in slots if slot not in self.left]
