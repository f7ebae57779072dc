"""Profiles of the schedulers: what may be asked for, and the calls that start and end them."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bough.config.user_paths import user_path
from bough.errors import BadRequest
from bough.managers.scheduler_control import SchedulerControl, error_of

STOP_TIMEOUT = 600.0
"""Seconds that writing a profile may take."""

FileName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)", max_length=64)]


class ProfileReqInput(msgspec.Struct, kw_only=True):
    """Body of ``/start_profile``, and the arguments of ``Engine.start_profile``."""

    output_dir: Annotated[
        Annotated[str, Meta(max_length=4096)] | None,
        Meta(description="Where the files go: `--profile-dir`, which is the default, or a directory in it."),
    ] = None
    num_steps: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None,
        Meta(description="The profile ends by itself after so many steps; after 10,000 if absent."),
    ] = None
    activities: Annotated[
        list[Literal["CPU", "GPU"]] | None,
        Meta(
            description="What torch's profiler looks at; both if absent, GPU only where there is one. An empty list "
            "leaves it off: only the scheduler's timeline is recorded then, at next to no cost."
        ),
    ] = None
    with_stack: Annotated[bool, Meta(description="Record Python's stack of every operation, which is slow.")] = False
    record_shapes: Annotated[bool, Meta(description="Record the shapes of every operation's inputs.")] = False
    profile_id: Annotated[
        FileName | None, Meta(description="What the names of the files begin with; the time if absent.")
    ] = None
    profile_prefix: Annotated[FileName | None, Meta(description="Put before `profile_id`.")] = None


class Profiles:
    """Starts and ends profiles of all schedulers, at most one at a time.

    Args:
        control: calls the schedulers.
        directory: of the files; ``None`` for a new one among temporary files.
    """

    def __init__(self, control: SchedulerControl, directory: str | None) -> None:
        self._control = control
        self._given = directory
        self._temporary: str | None = None

    async def start(self, request: ProfileReqInput, *, within_directory: bool) -> None:
        """Start to record.

        Args:
            request: the profile that is wanted.
            within_directory: refuse an ``output_dir`` outside the engine's own directory, as for clients of a server.

        Raises:
            BadRequest: if a profile is being recorded already, or the directory is refused or cannot be made.
        """
        name = request.profile_id or time.strftime("%Y%m%d-%H%M%S") + f"-{time.time_ns() % 1_000_000_000:09d}"
        if request.profile_prefix is not None:
            name = f"{request.profile_prefix}-{name}"
        wanted = request.output_dir
        if wanted is not None and "\0" in wanted:
            raise BadRequest("output_dir must not hold null characters", param="output_dir")
        directory = self._inside(wanted) if within_directory or wanted is None else os.path.realpath(user_path(wanted))
        reply = await self._control.call_all_or_none(
            "start_profile",
            {
                "directory": _make_directory(directory),
                "name": name,
                "call": uuid.uuid4().hex,
                "num_steps": request.num_steps,
                "torch_activities": ["CPU", "GPU"] if request.activities is None else request.activities,
                "with_stack": request.with_stack,
                "record_shapes": request.record_shapes,
            },
        )
        if not reply.success:
            raise error_of(reply)

    async def stop(self) -> list[str]:
        """End the recording; return the paths of its files.

        Raises:
            BadRequest: if none is being recorded.
            RequestFailed: if the files cannot be written.
        """
        reply = await self._control.call_all_or_none("stop_profile", timeout=STOP_TIMEOUT)
        if not reply.success:
            raise error_of(reply)
        paths: list[str] = reply.data["paths"]
        return paths

    def _inside(self, wanted: str | None) -> str:
        """Return the engine's own directory, or one in it."""
        top = self._temporary if self._given is None else str(user_path(self._given))
        if top is None:
            if wanted is not None:
                raise BadRequest(
                    "output_dir needs a server that was started with --profile-dir, in which it has to be; without "
                    "output_dir the server chooses a directory, and /stop_profile names the files",
                    param="output_dir",
                )
            top = self._temporary = tempfile.mkdtemp(prefix="bough-profile-")
        top = os.path.realpath(top)
        if wanted is None:
            return top
        chosen = os.path.realpath(os.path.join(top, wanted))
        if os.path.commonpath((top, chosen)) != top:
            raise BadRequest("output_dir must be in --profile-dir", param="output_dir")
        return chosen


def _make_directory(directory: str) -> str:
    """Make a directory where there is none; return it."""
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"the directory cannot be made: {error.strerror}", param="output_dir") from None
    return directory
