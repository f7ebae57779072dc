"""The weights that are being served, and updates of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.config.checkpoint import resolve_model_path
from bough.config.engine_args import LoadFormat
from bough.config.server_args import ServerArgs
from bough.config.user_paths import shown_path
from bough.errors import BadRequest, BoughError
from bough.ipc.messages import CheckAction, ControlReply
from bough.managers.exclusive_changes import ExclusiveChanges
from bough.managers.health import HealthMonitor
from bough.managers.live_outputs import LiveOutputs
from bough.managers.scheduler_control import OutcomeUnknown, SchedulerControl, data_of, error_of, merged

logger = logging.getLogger(__name__)

GroupBackend = Literal["nccl", "gloo"]

DEFAULT_GROUP = "weight_update_group"

WAITING_TIMEOUT = 600.0
"""Seconds that the scheduler may take to be rid of requests that were given up."""

LOADING_TIMEOUT = 7200.0
"""Seconds after which new weights are waited for no longer."""

SPARE_BYTES = 2**26
"""Bytes that are left to others of the memory that files are in."""

JOINING_TIMEOUT = 1000.0
"""Seconds; the scheduler gives up before that: the group that was there before may have to end first, and torch may
try to reach the store twice."""


Name = Annotated[str, Meta(min_length=1, max_length=4096)]
"""Name of a weight, or a path."""
GroupName = Annotated[
    Annotated[str, Meta(min_length=1, max_length=256)], Meta(description="Name of the group, as the trainer has it.")
]
Version = Annotated[str, Meta(min_length=1, max_length=256)]
"""Name of weights, which is part of every answer."""


class TrainerGroup(msgspec.Struct, frozen=True):
    """A group of torch's collectives in which a trainer is rank 0."""

    master_address: Annotated[
        Annotated[str, Meta(min_length=1, max_length=255)],
        Meta(description="Where the trainer, which is rank 0, serves the group's store."),
    ]
    master_port: Annotated[Annotated[int, Meta(ge=1, le=65535)], Meta(description="Its port.")]
    rank_offset: Annotated[Annotated[int, Meta(ge=1, le=65535)], Meta(description="Rank of this server in the group.")]
    world_size: Annotated[Annotated[int, Meta(ge=2, le=65536)], Meta(description="Processes of the group.")]
    group_name: GroupName = DEFAULT_GROUP
    backend: Annotated[GroupBackend, Meta(description="Of torch's collectives; `gloo` on a CPU.")] = "nccl"


class UpdateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an update of weights."""

    weight_version: Annotated[
        Version | None, Meta(description="What the weights are called in answers from now on; by default as before.")
    ] = None
    abort_all_requests: Annotated[
        bool, Meta(description="End the requests that are there instead of waiting for them.")
    ] = False
    flush_cache: Annotated[
        bool,
        Meta(
            description="Forget what the old weights have computed. Without it the cache goes on being used; with it, "
            "requests that are paused must have given their memory back (mode `retract`)."
        ),
    ] = True


UPDATE = UpdateOptions()


@dataclass(frozen=True, slots=True)
class UpdateOutcome:
    """Outcome of an update, or of a group: the old weights are being served, or the engine ends, if there is an
    ``error``.

    The paused requests that it counts go on with the new weights.
    """

    message: str
    error: BoughError | None = None
    num_paused_requests: int = 0

    @classmethod
    def failed(cls, error: BoughError) -> UpdateOutcome:
        """Return the outcome of a call that was not carried out."""
        return cls(error.message, error)

    @property
    def success(self) -> bool:
        """True if it was done."""
        return self.error is None


@contextlib.contextmanager
def passing_file(num_bytes: int) -> Iterator[str]:
    """Path of an empty file for ``num_bytes`` that only this user can read, in memory where it has room; it is removed
    at the end."""
    in_memory: str | None = "/dev/shm"
    try:
        if shutil.disk_usage("/dev/shm").free < num_bytes + SPARE_BYTES:
            in_memory = None
    except OSError:
        in_memory = None
    descriptor, path = tempfile.mkstemp(".safetensors", "bough-weights-", in_memory)
    os.close(descriptor)
    try:
        yield path
    finally:
        Path(path).unlink(missing_ok=True)


class ServedWeights:
    """The weights of the scheduler's model, as far as its front must know them, with the path that the client has
    named.

    ``on_changed`` is told after each update how many weights are missing, of those that were discarded.
    """

    def __init__(
        self,
        args: ServerArgs,
        control: SchedulerControl,
        outputs: LiveOutputs,
        changes: ExclusiveChanges,
        health: HealthMonitor,
        on_changed: Callable[[int], None],
    ) -> None:
        self.model_path = shown_path(args.model_path)
        self.load_format: LoadFormat = args.load_format
        self.version = args.weight_version
        self._control = control
        self._ranks_per_replica = args.tp_size
        self._outputs = outputs
        self._changes = changes
        self._health = health
        self._on_changed = on_changed
        self.is_staging = False
        """True between :meth:`begin_update` and :meth:`end_update`, as far as is known here: the schedulers decide, and
        refuse what does not belong to an update that has begun, or belongs to none."""
        self._staged_version: str | None = None

    async def update_from_disk(
        self, model_path: str, load_format: LoadFormat | None = None, options: UpdateOptions = UPDATE
    ) -> UpdateOutcome:
        """Serve another checkpoint of the same model: a local directory or file, or a hub id, which is fetched first.

        ``load_format`` is as at the start; by default the same, or ``auto`` if that was ``dummy`` or
        ``packed``.

        Raises:
            Overloaded: if the server is shutting down.
            EngineDead: if the engine is or becomes dead.
            RequestFailed: if the scheduler does not answer.
        """
        self._health.check_serving()
        found = load_format or ("auto" if self.load_format in ("dummy", "packed") else self.load_format)
        try:
            local = await asyncio.to_thread(resolve_model_path, model_path, load_format=found)
        except BoughError as error:
            return UpdateOutcome.failed(error)
        params = {"model_path": str(local), "load_format": found}

        def done(count: int) -> str:
            self.model_path, self.load_format = model_path, found
            return f"the weights are those of {model_path}"

        return await self._update_weights("update_weights_from_disk", params, options, done)

    async def update_from_file(self, path: str, options: UpdateOptions = UPDATE) -> UpdateOutcome:
        """Take some weights from a safetensors file that this server can read; raises as :meth:`update_from_disk`."""
        self._health.check_serving()
        return await self._take("weights_from_file", {"path": path}, options)

    async def update_from_group(
        self,
        names: Sequence[str],
        dtypes: Sequence[str],
        shapes: Sequence[Sequence[int]],
        group_name: str = DEFAULT_GROUP,
        options: UpdateOptions = UPDATE,
    ) -> UpdateOutcome:
        """Take some weights that a trainer broadcasts in a group, in this order; raises as :meth:`update_from_disk`.

        ``dtypes`` may begin with ``torch.``.
        """
        self._health.check_serving()
        params = {"group_name": group_name, "names": names, "dtypes": dtypes, "shapes": shapes}
        return await self._take("weights_from_distributed", params, options)

    async def begin_update(self) -> UpdateOutcome:
        """Have the weights that come from now on wait, and be written together by :meth:`end_update`.

        Until then the old ones are served, and requests go on. Raises as :meth:`update_from_disk`.
        """
        self._health.check_serving()
        reply = await self._control.call_all_or_none("begin_weight_update", {"call": uuid.uuid4().hex})
        if reply.success:
            self.is_staging, self._staged_version = True, None
        return _outcome(reply, "weights that come wait for the end of the update")

    async def end_update(self, options: UpdateOptions = UPDATE, *, discard: bool = False) -> UpdateOutcome:
        """Write all weights that have come since :meth:`begin_update`, or forget them if ``discard``.

        What does not fit together is forgotten, too, and the old weights stay; but all of it stays if it cannot be
        written now, as while the weights are asleep. Whole, even if the caller leaves. Raises as
        :meth:`update_from_disk`.
        """
        self._health.check_serving()
        if not self.is_staging:
            return UpdateOutcome.failed(BadRequest("no update has begun; see /begin_weight_update"))
        self.is_staging = False  # what comes meanwhile is an update of its own, after this one
        return await asyncio.shield(asyncio.ensure_future(self._end_update(options, discard=discard)))

    async def _end_update(self, options: UpdateOptions, *, discard: bool) -> UpdateOutcome:
        try:
            if discard:
                outcome = _outcome(await self._control.call("abandon_weight_update"), "the old weights are kept")
            else:
                version = options.weight_version or self._staged_version
                options = msgspec.structs.replace(options, weight_version=version)
                outcome = await self._update_weights("end_weight_update", {}, options, _told_count)
            if not outcome.success:
                self.is_staging = data_of(await self._control.call("has_begun_weight_update"))["has_begun"]
            return outcome
        except BoughError:
            self.is_staging = True  # perhaps, and then it can be ended once more
            raise

    async def _take(self, source: str, params: dict[str, Any], options: UpdateOptions) -> UpdateOutcome:
        """Have the schedulers take some weights, which wait if an update has begun."""
        if not self.is_staging:
            return await self._update_weights(f"update_{source}", params, options, _told_count)
        params = {**params, "call": uuid.uuid4().hex}
        reply = merged(await self._control.load(f"stage_{source}", params, LOADING_TIMEOUT))
        if reply.success and options.weight_version is not None:
            self._staged_version = options.weight_version
        count = reply.data.get("num_changed", 0)
        return _outcome(reply, f"{count} of the new weights wait for the end of the update")

    async def join_group(self, group: TrainerGroup) -> UpdateOutcome:
        """Become part of a group; requests go on meanwhile. Raises as :meth:`update_from_disk`."""
        self._health.check_serving()
        count = self._control.num_schedulers * self._ranks_per_replica
        if group.rank_offset < group.world_size < group.rank_offset + count:
            raise BadRequest(
                f"world_size must be at least {group.rank_offset + count}: this engine takes part with {count} ranks "
                f"from {group.rank_offset} on",
                param="world_size",
            )
        reply = await self._control.call("init_weights_update_group", msgspec.structs.asdict(group), JOINING_TIMEOUT)
        return _outcome(reply, f"in the group {group.group_name!r} as rank {group.rank_offset}")

    async def leave_group(self, group_name: str = DEFAULT_GROUP) -> UpdateOutcome:
        """Leave a group; raises as :meth:`update_from_disk`."""
        self._health.check_serving()
        reply = await self._control.call("destroy_weights_update_group", {"group_name": group_name})
        return _outcome(reply, f"left the group {group_name!r}")

    async def set_version(self, version: str, *, abort_all_requests: bool) -> None:
        """Call the weights by another name; raises as :meth:`update_from_disk`.

        With ``abort_all_requests``, running requests are ended first; else what is unfinished has tokens of both.
        """
        self._health.check_serving()

        async def change(while_paused: bool) -> None:
            # What ends while it waits has all of its tokens by then.
            await self._control.wait_until_loaded()
            begun = time.monotonic()
            reply = await self._control.call("get_output_lens")
            self._rename(version, reply.data["output_lens"], begun)

        if abort_all_requests:
            await self._changes.make(change, abort_all_requests=True)
        else:
            await change(while_paused=False)

    async def check(self, action: CheckAction) -> UpdateOutcome:
        """Do one step of a check that updates reach every weight; raises as :meth:`update_from_disk`.

        Args:
            action: ``snapshot`` notes what all weights are, ``reset_tensors`` overwrites them with random numbers, and
                ``compare`` fails, naming some, unless they are again what was noted.
        """
        self._health.check_serving()

        async def change(while_paused: bool) -> UpdateOutcome:
            is_written = action == "reset_tensors"
            params = {"action": action, "flush_cache": is_written, "while_paused": while_paused}
            reply = await self._change("check_weights", params, is_written=is_written)
            if reply.success and is_written:
                self._on_changed(reply.data["num_missing"])
            return _outcome(reply, f"{action} is done")

        return await self._changes.make(change)

    async def rows(self, name: str, truncate_size: int) -> Any:
        """The first rows of a weight, as lists of numbers.

        Raises:
            BadRequest: if there is no such weight, or that is too much.
            BoughError: as :meth:`update_from_disk`.
        """
        params = {"name": name, "truncate_size": truncate_size}
        return data_of(await self._control.call("get_weights_by_name", params))["rows"]

    async def _update_weights(
        self, method: str, params: dict[str, Any], options: UpdateOptions, done: Callable[[int], str]
    ) -> UpdateOutcome:
        """Have the scheduler change weights; ``done`` says what to tell of so many that have changed.

        Requests that come wait, and what runs is waited for, unless generation is paused: then what is there goes on
        with the new weights.
        """

        async def change(while_paused: bool) -> UpdateOutcome:
            begun = time.monotonic()
            reply = await self._change(
                method, {**params, "flush_cache": options.flush_cache, "while_paused": while_paused}
            )
            if not reply.success:
                return UpdateOutcome.failed(error_of(reply))
            self._on_changed(reply.data["num_missing"])
            message = done(reply.data["num_changed"])
            if options.weight_version is not None:
                self._rename(options.weight_version, reply.data["output_lens"], begun)
            return UpdateOutcome(message, num_paused_requests=reply.data["num_paused_requests"])

        return await self._changes.make(change, abort_all_requests=options.abort_all_requests)

    async def _change(self, method: str, params: dict[str, Any], *, is_written: bool = True) -> ControlReply:
        """Have all schedulers change weights, or look at them unless ``is_written``.

        Raises:
            EngineDead: if they may have different weights now.
        """
        # Schedulers may share weights: none is written before all of them have stopped.
        try:
            replies = await self._control.load(method, {**params, "timeout": WAITING_TIMEOUT}, LOADING_TIMEOUT)
        except OutcomeUnknown as error:
            if is_written:
                await self._give_up(error.message)
            raise
        reply = merged(replies)
        if not reply.success and any(each.success and each.data.get("num_changed") for each in replies):
            await self._give_up(reply.message)
        return reply

    async def _give_up(self, cause: str) -> None:
        """End the engine, whose schedulers may have different weights; raises :class:`EngineDead` as soon as it has."""
        await self._control.call("give_up", {"cause": f"the schedulers have different weights: {cause}"})

    def _rename(self, version: str, output_lens: dict[str, int], begun: float) -> None:
        """Call the weights ``version`` from now on; requests that are being ended have no tokens of them.

        ``output_lens`` are the tokens that outputs had before, by id; an output that was sent before ``begun``
        (monotonic) and is not among these had all of its tokens.
        """
        if version == self.version:
            return
        logger.info("The weights are called %r now", version)
        self.version = version
        for rid, state in self._outputs.by_id.items():
            if state.abort_reason is not None:
                continue
            if rid in output_lens:
                state.rename_weights(version, output_lens[rid])
            elif not state.sent or state.sent_time >= begun:
                state.rename_weights(version, 0)


def _outcome(reply: ControlReply, done: str) -> UpdateOutcome:
    return UpdateOutcome(done) if reply.success else UpdateOutcome.failed(error_of(reply))


def _told_count(count: int) -> str:
    return "1 weight is new" if count == 1 else f"{count} weights are new"
