"""``/start_profile`` and ``/stop_profile``."""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.config.user_paths import user_path
from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Handlers, Route
from bough.errors import BadRequest
from bough.managers.tokenizer_manager import TokenizerManager
from bough.other_engines import fields_of

STOP_TIMEOUT = 600.0
"""Seconds that writing a profile may take."""

FileName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$(?!\n)", max_length=64)]


class StartProfileRequest(msgspec.Struct, kw_only=True):
    """Body of ``/start_profile``."""

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


def _number(value: Any, unknown: object) -> Any:
    """A number that was written as a string, as SGLang's profiler does."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value


START_PROFILE = BodySpec(
    StartProfileRequest,
    example={"num_steps": 100, "activities": []},
    is_strict=True,
    may_be_empty=True,
    tidy={"num_steps": _number},
    refused=fields_of("profile"),
)


class ProfileHandlers(Handlers):
    """Records profiles of the engine."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        given = manager.server_args.profile_dir
        self._directory = None if given is None else str(user_path(given))

    @Route("GET,POST /start_profile", NATIVE, START_PROFILE, access=Access.CONTROL)
    async def start(self, call: Call) -> Response:
        """Record what scheduler and model do, for Perfetto.

        400 if a profile is being recorded already.
        """
        body = await call.parse(START_PROFILE)
        name = body.profile_id or time.strftime("%Y%m%d-%H%M%S") + f"-{time.time_ns() % 1_000_000_000:09d}"
        if body.profile_prefix is not None:
            name = f"{body.profile_prefix}-{name}"
        reply = await self._manager.control.call_all_or_none(
            "start_profile",
            {
                "directory": self._make_directory(body.output_dir),
                "name": name,
                "call": uuid.uuid4().hex,
                "num_steps": body.num_steps,
                "torch_activities": ["CPU", "GPU"] if body.activities is None else body.activities,
                "with_stack": body.with_stack,
                "record_shapes": body.record_shapes,
            },
        )
        if not reply.success:
            raise BadRequest(reply.message)
        return Response(b"Start profiling.\n", content_type=TEXT_TYPE)

    @Route("GET,POST /stop_profile", NATIVE, access=Access.CONTROL)
    async def stop(self, call: Call) -> Response:
        """End the recording; names its files."""
        reply = await self._manager.control.call_all_or_none("stop_profile", timeout=STOP_TIMEOUT)
        if not reply.success:
            raise BadRequest(reply.message)
        return Response("".join(f"{path}\n" for path in reply.data["paths"]).encode(), content_type=TEXT_TYPE)

    def _make_directory(self, wanted: str | None) -> str:
        """The directory of a profile. No client can have files written elsewhere.

        Raises:
            BadRequest: if the one that a client wants is not in that of the server.
        """
        if self._directory is None:
            if wanted is not None:
                raise BadRequest(
                    "output_dir needs a server that was started with --profile-dir, in which it has to be; without "
                    "output_dir the server chooses a directory, and /stop_profile names the files",
                    param="output_dir",
                )
            self._directory = tempfile.mkdtemp(prefix="bough-profile-")
        top = os.path.realpath(self._directory)
        if wanted is None:
            chosen = top
        else:
            chosen = os.path.realpath(os.path.join(top, wanted)) if "\0" not in wanted else "/"
            if os.path.commonpath((top, chosen)) != top:
                raise BadRequest("output_dir must be in --profile-dir", param="output_dir")
        try:
            os.makedirs(chosen, mode=0o700, exist_ok=True)
        except OSError as error:
            raise BadRequest(f"the directory cannot be made: {error.strerror}", param="output_dir") from None
        return chosen
