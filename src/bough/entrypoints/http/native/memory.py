"""Memory that is given back to the machine between two phases of a program."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Handlers, QueryParameter, Route
from bough.errors import BadRequest
from bough.ipc.messages import MEMORY_TAGS, MemoryTag


class ReleaseMemory(msgspec.Struct, kw_only=True):
    """Body of ``/release_memory_occupation``."""

    tags: Annotated[list[MemoryTag] | None, Meta(description="Memory to give back; all of it unless given.")] = None


class ResumeMemory(msgspec.Struct, kw_only=True):
    """Body of ``/resume_memory_occupation``."""

    tags: Annotated[
        list[MemoryTag] | None, Meta(description="Memory to take again; all that is given back unless given.")
    ] = None


class SleepRequest(msgspec.Struct, kw_only=True):
    """Body of ``/sleep``, with its fields in the query."""


class WakeRequest(msgspec.Struct, kw_only=True):
    """Body of ``/wake_up``, with its fields in the query."""


RELEASE = BodySpec(ReleaseMemory, is_strict=True, may_be_empty=True, example={"tags": ["kv_cache"]})
RESUME = BodySpec(ResumeMemory, is_strict=True, may_be_empty=True, example={"tags": ["kv_cache"]})
SLEEP = BodySpec(SleepRequest, is_strict=True, may_be_empty=True)
WAKE = BodySpec(WakeRequest, is_strict=True, may_be_empty=True)

_LEVEL = QueryParameter(
    "level",
    {"type": "integer", "enum": [1, 2], "default": 1},
    "1: weights of a checkpoint are read again, those of a trainer stay, or go to `--sleep-directory`; 2: all weights "
    "are discarded.",
)
_TAGS = QueryParameter(
    "tags",
    {"type": "array", "items": {"type": "string", "enum": list(MEMORY_TAGS)}},
    "Memory to take again, given once for each; all that is given back unless given.",
    repeats=True,
)


class MemoryAnswer(msgspec.Struct):
    """Memory that is given back now."""

    success: Annotated[bool, Meta(description="It was done.", examples=[True])]
    asleep: Annotated[list[str], Meta(description="What is given back now.", examples=[["kv_cache"]])]


class SleepingAnswer(msgspec.Struct):
    """State of the memory."""

    is_sleeping: Annotated[bool, Meta(description="Some memory is given back.", examples=[False])]


class MemoryHandlers(Handlers):
    """Answers the routes that give memory back and take it again."""

    @Route("GET,POST /release_memory_occupation", NATIVE, RELEASE, MemoryAnswer, access=Access.CONTROL)
    async def release(self, call: Call) -> Response:
        """Give memory back to the machine.

        400 while requests run, unless generation is paused. Meanwhile requests are answered with 503. Weights of a
        checkpoint are read again when they are resumed; those of a trainer have to be sent again, unless
        `--sleep-directory` keeps them.
        """
        body = await call.parse(RELEASE)
        await self._manager.memory.release(body.tags)
        return self._told()

    @Route("GET,POST /resume_memory_occupation", NATIVE, RESUME, MemoryAnswer, access=Access.CONTROL)
    async def resume(self, call: Call) -> Response:
        """Take memory again that was given back.

        If there is none, or the weights cannot be read, it stays given back.
        """
        body = await call.parse(RESUME)
        await self._manager.memory.resume(body.tags)
        return self._told()

    @Route("POST /sleep", NATIVE, SLEEP, MemoryAnswer, access=Access.CONTROL, query=(_LEVEL,))
    async def sleep(self, call: Call) -> Response:
        """Give all memory back, by vLLM's name; what becomes of the weights is said by `level`."""
        await call.parse(SLEEP)
        text = call.query.get("level", "1")
        if text not in ("1", "2"):
            raise BadRequest(f"level must be 1 or 2, got {text[:64]!r}", param="level")
        await self._manager.memory.sleep(int(text))
        return self._told()

    @Route("POST /wake_up", NATIVE, WAKE, MemoryAnswer, access=Access.CONTROL, query=(_TAGS,))
    async def wake_up(self, call: Call) -> Response:
        """Take memory again, by vLLM's name; the tag `kv_cache` stands for `cuda_graph`, too."""
        await call.parse(WAKE)
        await self._manager.memory.wake_up([value for name, value in call.query_items if name == "tags"])
        return self._told()

    @Route("GET /is_sleeping", NATIVE, answer=SleepingAnswer, access=Access.CONTROL)
    async def is_sleeping(self, call: Call) -> Response:
        """Say whether any memory is given back."""
        return Response(msgspec.json.encode(SleepingAnswer(self._manager.memory.is_sleeping)))

    def _told(self) -> Response:
        return Response(msgspec.json.encode(MemoryAnswer(True, sorted(self._manager.memory.asleep))))
