"""Which weights are being served, and how others take their place."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from bough.config.engine_args import LoadFormat
from bough.config.local_files import with_local_files
from bough.errors import BadRequest, BoughError

if TYPE_CHECKING:
    from bough.managers.tokenizer_manager import TokenizerManager

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOADING_TIMEOUT = 7200.0
"""Seconds after which nobody waits for new weights any more."""


class WeightUpdate(NamedTuple):
    """What became of an update."""

    success: bool
    """Whether the new weights are being served; else the old ones are."""
    message: str
    """Says why not."""
    num_paused_requests: int = 0
    """Requests that were paused meanwhile, and go on with the new weights."""


class ServedWeights:
    """The weights of the scheduler's model, as far as its front must know them.

    Args:
        manager: the front.

    Attributes:
        model_path: what they were loaded from, as whoever wanted them has named it.
        load_format: how.
        version: what they are called in answers.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        args = manager.server_args
        self.model_path = args.model_path
        self.load_format: LoadFormat = args.load_format
        self.version = args.weight_version
        self._manager = manager
        self._turn = asyncio.Lock()

    async def update_from_disk(
        self,
        model_path: str,
        *,
        load_format: LoadFormat | None = None,
        version: str | None = None,
        abort_all_requests: bool = False,
        flush_cache: bool = True,
    ) -> WeightUpdate:
        """Serve another checkpoint of the same model.

        It is looked at first, and fetched if it is on the hub. Then requests that come wait, and what runs is waited
        for, unless generation is paused: then what is there goes on with the new weights.

        Args:
            model_path: local directory or file, or hub id.
            load_format: as at the start; by default the same, or ``auto`` if that was ``dummy``.
            version: what the new weights are called; by default as the old ones.
            abort_all_requests: whether to end what is there instead of waiting for it.
            flush_cache: whether to forget what the old weights have computed.

        Raises:
            Overloaded: if the server is shutting down.
            EngineDead: if the engine is or becomes dead.
            RequestFailed: if the scheduler does not answer.
        """
        manager = self._manager
        manager.check_open()
        if load_format is None:
            load_format = "auto" if self.load_format == "dummy" else self.load_format
        wanted = dataclasses.replace(manager.server_args, model_path=model_path, load_format=load_format, revision=None)
        try:
            local = await asyncio.to_thread(with_local_files, wanted)
        except BoughError as error:
            return WeightUpdate(False, error.message)
        params = {"model_path": local.model_path, "load_format": load_format, "flush_cache": flush_cache}

        async def change() -> WeightUpdate:
            begun = time.monotonic()
            reply = await manager.control("update_weights_from_disk", params, LOADING_TIMEOUT)
            if not reply.success:
                return WeightUpdate(False, reply.message)
            self.model_path, self.load_format = model_path, load_format
            if version is not None:
                self._rename(version, reply.data["output_lens"], begun)
            message = f"the weights are those of {model_path}"
            return WeightUpdate(True, message, reply.data["num_paused_requests"])

        return await self._alone(change, abort_all_requests=abort_all_requests)

    async def set_version(self, version: str, *, abort_all_requests: bool) -> None:
        """Call the weights by another name.

        Args:
            version: the name.
            abort_all_requests: whether to end what is there first; else what is unfinished has tokens of both.

        Raises:
            BoughError: as :meth:`update_from_disk`.
        """
        manager = self._manager
        manager.check_open()

        async def change() -> None:
            output_lens = {rid: state.completion_tokens for rid, state in manager.rid_to_state.items()}
            self._rename(version, output_lens, time.monotonic())

        if abort_all_requests:
            await self._alone(change, abort_all_requests=True)
        else:
            await change()

    async def rows(self, name: str, truncate_size: int) -> Any:
        """The first rows of a weight, as lists of numbers.

        Raises:
            BadRequest: if there is no such weight, or that is too much.
            BoughError: as :meth:`update_from_disk`.
        """
        params = {"name": name, "truncate_size": truncate_size}
        reply = await self._manager.control("get_weights_by_name", params)
        if not reply.success:
            raise BadRequest(reply.message, param="name")
        return reply.data["rows"]

    async def _alone(self, change: Callable[[], Awaitable[T]], *, abort_all_requests: bool) -> T:
        """Make a change while no request is worked on, or all are paused. Whole, even if the caller leaves."""
        manager = self._manager

        async def make_it() -> T:
            async with self._turn:
                if abort_all_requests:
                    manager.abort_request(abort_all=True)
                lock = manager.model_update_lock
                async with contextlib.nullcontext() if manager.health.paused else lock.writer_lock():
                    return await change()

        return await asyncio.shield(asyncio.ensure_future(make_it()))

    def _rename(self, version: str, output_lens: dict[str, int], begun: float) -> None:
        """From now on the weights are called ``version``.

        Args:
            version: the name.
            output_lens: tokens that outputs had before, by id.
            begun: monotonic time before which whoever was sent and is not among these had all of its tokens.
        """
        if version == self.version:
            return
        logger.info("The weights are called %r now", version)
        self.version = version
        for rid, state in self._manager.rid_to_state.items():
            if rid in output_lens:
                state.rename_weights(version, output_lens[rid])
            elif not state.sent or state.sent_time >= begun:
                state.rename_weights(version, 0)
