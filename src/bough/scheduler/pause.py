"""A pause: the scheduler computes nothing, while messages, deadlines and aborts go on."""

from __future__ import annotations

from typing import get_args

from bough.errors import BadRequest
from bough.ipc.messages import PauseMode
from bough.scheduler.control import ControlHandler, Params
from bough.scheduler.endings import Endings
from bough.scheduler.requests import Requests
from bough.scheduler.step_log import StepLog


class Pause:
    """Keeps steps from being launched between two control calls, also for requests that arrive, while it
    ``holds_steps``.

    Steps in flight stay the loop's to process: a broken device ends it.
    """

    def __init__(self, requests: Requests, endings: Endings, log: StepLog) -> None:
        self.is_on = False
        self.is_asleep = False
        self.lacks_weights = False
        self._requests = requests
        self._endings = endings
        self._log = log

    @property
    def holds_steps(self) -> bool:
        """True if no step may be launched: there is a pause, or memory that steps need is given back, or weights that
        were discarded have not come yet."""
        return self.is_on or self.is_asleep or self.lacks_weights

    def calls(self) -> dict[str, ControlHandler]:
        """Return the handlers of ``pause_generation`` and ``continue_generation``."""
        return {
            "pause_generation": ControlHandler(self._settle, self._is_drained, on_arrival=self._begin),
            # A call that ends a pause must not overtake one that begins it.
            "continue_generation": ControlHandler(self._end, lambda p: not self.is_on or self._is_drained(p)),
        }

    def _begin(self, params: Params) -> None:
        mode = params.get("mode")
        if mode not in get_args(PauseMode):
            raise BadRequest(f"mode must be one of {', '.join(get_args(PauseMode))}, got {mode!r}", param="mode")
        self.is_on = True

    def _is_drained(self, params: Params) -> bool:
        return not self._requests.in_flight

    def _settle(self, params: Params) -> Params:
        """Pause once nothing is in flight: retraction frees memory that such a step writes to.

        ``abort`` ends the requests, ``retract`` takes their memory (the prefix cache stays), ``in_place`` leaves them.
        """
        self.is_on = True  # again: another call may have ended it while this one waited
        if params["mode"] == "abort":
            deltas = self._endings.abort(list(self._requests))
        elif params["mode"] == "retract":
            deltas = self._endings.retract_all()
        else:
            deltas = self._endings.end_complete()
        self._endings.stream_output(deltas)
        self._log.on_idle()
        return {}

    def _end(self, params: Params) -> Params:
        if self.is_on:
            self._log.on_idle()
        self.is_on = False
        return {}
