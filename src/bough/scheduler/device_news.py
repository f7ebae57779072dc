"""News of requests that the device gets with the next plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bough.scheduler.req import Req
from bough.step_plan import ForcedTokens, IntArray, NewRequest, ReqSlot, TableWrite


class NewsOfStep(NamedTuple):
    """News in the form in which a :class:`~bough.step_plan.StepPlan` carries them."""

    new_requests: tuple[NewRequest, ...]
    table_writes: tuple[TableWrite, ...]
    forced: tuple[ForcedTokens, ...]


class DeviceNews:
    """Collects news between two plans."""

    def __init__(self) -> None:
        self._new_requests: list[NewRequest] = []
        self._table_writes: list[TableWrite] = []
        self._forced: list[ForcedTokens] = []

    def take(self) -> NewsOfStep:
        """Return the news, and forget them."""
        news = NewsOfStep(tuple(self._new_requests), tuple(self._table_writes), tuple(self._forced))
        if any(news):
            self._new_requests, self._table_writes, self._forced = [], [], []
        return news

    def add_request(self, req: Req) -> None:
        """A request has got a slot."""
        self._new_requests.append(
            NewRequest(
                req_slot=ReqSlot(req.slot),
                sampling_params=req.sampling_params,
                seed=req.seed,
                masked_until_min=req.masked_until_min,
                prompt_len=req.prompt_len,
                output_ids=req.output_before_slot,
                banned_sequences=req.banned_sequences,
                prompt_ids=req.prompt if req.sampling_params.penalises_prompt else None,
            )
        )

    def add_table_write(self, slot: int, start: int, kv_slots: IntArray) -> None:
        """Tokens of a request, from ``start`` on, are at other KV slots than the device knows."""
        self._table_writes.append(TableWrite(ReqSlot(slot), start, kv_slots))

    def add_forced(self, slot: int, token_ids: Sequence[int]) -> None:
        """A request has got output that was not sampled."""
        self._forced.append(ForcedTokens(ReqSlot(slot), tuple(token_ids)))

    def forget(self, slot: int) -> None:
        """Drop the news of the request in ``slot``, which loses it."""
        self._new_requests = [new for new in self._new_requests if new.req_slot != slot]
        self._table_writes = [write for write in self._table_writes if write.req_slot != slot]
        self._forced = [forced for forced in self._forced if forced.req_slot != slot]
