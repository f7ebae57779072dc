"""``/start_profile`` and ``/stop_profile``."""

from __future__ import annotations

from typing import Any

from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import TEXT_TYPE, Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Handlers, Route
from bough.managers.profiles import ProfileReqInput, Profiles
from bough.managers.tokenizer_manager import TokenizerManager
from bough.other_engines import fields_of


def _number(value: Any, unknown: object) -> Any:
    """A number that was written as a string, as SGLang's profiler does."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else value


START_PROFILE = BodySpec(
    ProfileReqInput,
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
        self._profiles = Profiles(manager.control, manager.server_args.profile_dir)

    @Route("GET,POST /start_profile", NATIVE, START_PROFILE, access=Access.CONTROL)
    async def start(self, call: Call) -> Response:
        """Record what scheduler and model do, for Perfetto.

        400 if a profile is being recorded already.
        """
        await self._profiles.start(await call.parse(START_PROFILE), within_directory=True)
        return Response(b"Start profiling.\n", content_type=TEXT_TYPE)

    @Route("GET,POST /stop_profile", NATIVE, access=Access.CONTROL)
    async def stop(self, call: Call) -> Response:
        """End the recording; names its files."""
        paths = await self._profiles.stop()
        return Response("".join(f"{path}\n" for path in paths).encode(), content_type=TEXT_TYPE)
