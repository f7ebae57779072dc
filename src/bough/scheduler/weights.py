"""Control calls about the weights of the model that is being served."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bough.errors import BadRequest, BoughError, EngineDead
from bough.model_executor.worker_info import Worker
from bough.scheduler.control import ControlHandler, Params, Work
from bough.scheduler.pause import Pause
from bough.scheduler.requests import Requests
from bough.scheduler.silence import announced_silence
from bough.weight_sync.change import Change

if TYPE_CHECKING:
    from bough.weight_sync.worker_weights import WorkerWeights

logger = logging.getLogger(__name__)

_LEAST_SILENCE = 400.0
"""Seconds: what a trainer may take to send, and more."""

_SLOWEST_LOADING = 25e6
"""Bytes per second of a slow disk, from which a checkpoint is read, and may have to be read a second time."""

Check = Callable[["WorkerWeights", Params], Change]
"""Takes the weights of a call, and returns what writes them, or keeps them for the end of an update."""

_NEEDS = "an engine without requests, or a pause"


def _from_group(weights: WorkerWeights, params: Params) -> Change:
    return weights.prepare_group(params["group_name"], params["names"], params["dtypes"], params["shapes"])


def _from_file(weights: WorkerWeights, params: Params) -> Change:
    return weights.prepare_file(params["path"])


def _unless_begun(check: Check) -> Check:
    """Return a check that refuses in an update of several calls, lest what is to be written now be kept for its end."""

    def check_unless_begun(weights: WorkerWeights, params: Params) -> Change:
        weights.check_not_begun()
        return check(weights, params)

    return check_unless_begun


def _mark_staged(weights: WorkerWeights, call: str) -> None:
    """Note which call has added to an update last; nothing if none has begun."""
    if weights.staged is not None:
        weights.staged.call = call


class Weights:
    """Replaces the weights of a worker, and takes care of what was computed with the old ones.

    ``announce`` sends a heartbeat with the seconds of silence that may follow; ``rank`` is that among the replicas.
    """

    def __init__(
        self,
        worker: Worker,
        requests: Requests,
        pause: Pause,
        weight_bytes: int,
        announce: Callable[[float], None],
        rank: int,
    ) -> None:
        self._rank = rank
        self._worker = worker
        self._requests = requests
        self._pause = pause
        self._announce = announce
        self._expected_silence = _LEAST_SILENCE + weight_bytes / _SLOWEST_LOADING

    def calls(self) -> dict[str, ControlHandler]:
        """Return the handlers of all calls about weights."""
        return {
            "update_weights_from_disk": self._update(
                lambda weights, p: weights.prepare_disk(p["model_path"], p["load_format"])
            ),
            "update_weights_from_distributed": self._update(_unless_begun(_from_group), on_failure=self._spoil_group),
            "update_weights_from_file": self._update(_unless_begun(_from_file)),
            "begin_weight_update": ControlHandler(
                self._begin, self._is_between_steps, drains=True, on_failure=self._unbegin
            ),
            "stage_weights_from_distributed": self._stage(_from_group, on_failure=self._spoil_group),
            "stage_weights_from_file": self._stage(_from_file),
            "end_weight_update": self._update(lambda weights, p: weights.prepare_end(), self._promise_end),
            "abandon_weight_update": ControlHandler(self._abandon, self._is_between_steps, drains=True),
            "has_begun_weight_update": ControlHandler(
                lambda p: {"has_begun": self._of_worker.staged is not None}, merge={"has_begun": "max"}
            ),
            "check_weights": self._update(lambda weights, p: weights.prepare_check(p["action"])),
            "init_weights_update_group": ControlHandler(
                self._finish_joining,
                lambda p: not self._of_worker.groups.is_joining(p["group_name"]),
                on_arrival=self._begin_to_join,
            ),
            "destroy_weights_update_group": ControlHandler(self._leave_group),
            "get_output_lens": ControlHandler(
                lambda p: {"output_lens": self._output_lens()}, merge={"output_lens": "union"}
            ),
            "give_up": ControlHandler(self._give_up),
            "save_weights": ControlHandler(self._save, self._is_between_steps, drains=True),
            "get_weights_by_name": ControlHandler(
                lambda p: {"rows": self._of_worker.rows(p["name"], p["truncate_size"])},
                self._is_between_steps,
                drains=True,
            ),
        }

    def _is_between_steps(self, params: Params) -> bool:
        return not self._requests.in_flight

    def _begin(self, params: Params) -> Params:
        self._of_worker.begin_update()
        _mark_staged(self._of_worker, params["call"])
        return {}

    def _unbegin(self, params: Params) -> None:
        """Forget an update that has begun here and not on another scheduler; none that had begun before."""
        weights = self._worker.weights
        if weights is not None and weights.staged is not None and weights.staged.call == params["call"]:
            weights.abandon_update()

    def _abandon(self, params: Params) -> Params:
        """Forget what has come since an update has begun."""
        if self._worker.weights is not None:
            self._worker.weights.abandon_update()
        return {}

    def _stage(self, check: Check, on_failure: Callable[[Params], None] = lambda params: None) -> ControlHandler:
        """Return a handler that takes weights while requests go on; they are written at the end of the update."""

        def fail(params: Params) -> None:
            if self._worker.weights is not None:
                self._worker.weights.unstage(params["call"])
            on_failure(params)

        def prepare(params: Params) -> Work:
            weights = self._of_worker
            weights.check_begun()
            with announced_silence(self._announce, self._expected_silence):
                change = check(weights, params)

            def keep() -> Params:
                num_staged = change.write()
                _mark_staged(weights, params["call"])
                return {"num_changed": num_staged}

            return Work(keep, change.drop)

        return ControlHandler(
            lambda params: prepare(params).run(),
            self._is_between_steps,
            drains=True,
            prepare=prepare,
            on_failure=fail,
        )

    def _update(
        self,
        check: Check,
        promise: Callable[[Params], None] | None = None,
        on_failure: Callable[[Params], None] = lambda params: None,
    ) -> ControlHandler:
        """Return a handler that loads other weights, once ``check`` has found that they fit."""

        def prepare(params: Params) -> Work:
            flush_cache: bool = params["flush_cache"]
            with announced_silence(self._announce, self._expected_silence):
                change = check(self._of_worker, params)
            return Work(lambda: self._change(change, flush_cache=flush_cache), change.drop)

        return ControlHandler(
            lambda params: prepare(params).run(),
            self._may_update,
            needs=_NEEDS,
            promise=promise or self._promise_update,
            prepare=prepare,
            on_failure=on_failure,
            merge={"num_changed": "max", "num_missing": "max", "num_paused_requests": "sum", "output_lens": "union"},
        )

    def _promise_update(self, params: Params) -> None:
        """Refuse an update that this scheduler could not carry out; raises :class:`BadRequest`."""
        if params["while_paused"] and not self._pause.holds_steps:
            raise BadRequest("the pause has ended before the update could be made")
        holding = self._requests.num_holding
        if params["flush_cache"] and holding:
            raise BadRequest(
                f"flush_cache: {holding} paused requests hold what the old weights have computed; pause with mode "
                "retract or abort, or send flush_cache false to go on with it",
                param="flush_cache",
            )

    def _promise_end(self, params: Params) -> None:
        """Refuse the end of an update, of which all is kept, as :meth:`_promise_update`."""
        self._promise_update(params)
        self._of_worker.check_begun()

    def _may_update(self, params: Params) -> bool:
        """Return whether no step is in flight, and none will be until the pause ends or a request comes."""
        if self._requests.in_flight:
            return False
        # A pause that has ended meanwhile is not waited for: the update answers that.
        return params["while_paused"] or self._pause.holds_steps or len(self._requests) == 0

    @property
    def _of_worker(self) -> WorkerWeights:
        """The weights themselves; raises :class:`BadRequest` if there are none."""
        weights = self._worker.weights
        if weights is None:
            raise BadRequest("this model has no weights", code="unsupported_by_model")
        return weights

    def _save(self, params: Params) -> Params:
        """Write the weights; of replicas, which have the same, the first does."""
        if self._rank == 0:
            self._announce(self._expected_silence)
            form, directory = params["form"], params["directory"]
            self._of_worker.save(form, directory, pattern=params["pattern"], max_bytes=params["max_size"])
        return {}

    def _begin_to_join(self, params: Params) -> None:
        self._of_worker.groups.begin_to_join(
            params["group_name"],
            address=params["master_address"],
            port=params["master_port"],
            rank=params["rank_offset"] + self._rank,
            world_size=params["world_size"],
            backend=params["backend"],
        )

    def _finish_joining(self, params: Params) -> Params:
        self._of_worker.groups.finish_joining(params["group_name"])
        return {}

    def _give_up(self, params: Params) -> Params:
        """End the scheduler, and so the engine: its replicas have different weights."""
        raise EngineDead(params["cause"])

    def _leave_group(self, params: Params) -> Params:
        self._of_worker.groups.leave(params["group_name"])
        return {}

    def _spoil_group(self, params: Params) -> None:
        """Receive no more in a group: the trainer's side has sent, or will send, tensors that were not received."""
        if self._worker.weights is not None:
            self._worker.weights.groups.spoil(params.get("group_name", ""))

    def _output_lens(self) -> dict[str, int]:
        """Number of output tokens of each request so far, by id."""
        return {req.rid: len(self._requests.table.output_ids(req)) for req in self._requests}

    def _change(self, change: Change, *, flush_cache: bool) -> Params:
        """Write other weights while no step is in flight.

        What the old weights have computed stays in use unless ``flush_cache``.

        Raises:
            BoughError: if they could not be written, and the old ones are there still.
            EngineDead: if anything else has failed since writing began.
        """
        weights, begin = self._of_worker, time.perf_counter()
        with announced_silence(self._announce, self._expected_silence):
            try:
                num_changed = change.write()
            except BoughError:
                raise
            except Exception as error:
                raise EngineDead(f"new weights could be loaded in part only: {error}") from error
        try:
            if flush_cache:
                self._requests.kv.prefix_cache.reset()
            self._pause.lacks_weights = weights.num_missing > 0
            output_lens = self._output_lens()
        except Exception as error:
            raise EngineDead(f"the scheduler has failed after new weights were written: {error}") from error
        if num_changed:
            logger.info("The weights have changed, in %.2f s", time.perf_counter() - begin)
        return {
            "num_changed": num_changed,
            "num_missing": weights.num_missing,
            "num_paused_requests": len(output_lens),
            "output_lens": output_lens,
        }
