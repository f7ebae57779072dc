"""Table of the KV slots of each running request's tokens."""

from __future__ import annotations

import numpy as np

from bough.step_plan import IntArray, ReqSlot


class ReqToTokenPool:
    """Rows for requests: ``table[req_slot, i]`` is the KV slot of the request's token ``i``.

    The table, int32 ``[max_running_requests, max_context_len]`` on the host, is virtual memory, committed as it is
    used.
    What lies beyond a request's length is left over from earlier ones.
    """

    def __init__(self, max_running_requests: int, max_context_len: int) -> None:
        if max_running_requests < 1 or max_context_len < 1:
            raise ValueError(f"no table of {max_running_requests} requests by {max_context_len} tokens")
        self.size = max_running_requests
        self.max_context_len = max_context_len
        self.table: IntArray = np.zeros((max_running_requests, max_context_len), dtype=np.int32)
        self._free: list[int] = []
        self._is_free = np.zeros(max_running_requests, dtype=np.bool_)
        self.reset()

    @property
    def available_size(self) -> int:
        """Rows that are free."""
        return len(self._free)

    def alloc(self) -> ReqSlot | None:
        """Take a row, ``None`` if all are taken."""
        if not self._free:
            return None
        req_slot = self._free.pop()
        self._is_free[req_slot] = False
        return ReqSlot(req_slot)

    def free(self, req_slot: ReqSlot) -> None:
        """Give a row back; raises ``ValueError`` for a row that does not exist, ``RuntimeError`` for one that is free
        already."""
        if not 0 <= req_slot < self.size:
            raise ValueError(f"request slot {req_slot} is not one of {self.size}")
        if self._is_free[req_slot]:
            raise RuntimeError(f"double free of request slot {req_slot}")
        self._is_free[req_slot] = True
        self._free.append(req_slot)

    def reset(self) -> None:
        """Take back every row, also those handed out. Low rows are handed out first."""
        self._free = list(range(self.size - 1, -1, -1))
        self._is_free[:] = True
