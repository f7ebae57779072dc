"""Tool calls like ``=> {"name": "f", "arguments": {}} <=``, and thoughts between ``(muses: `` and ``)``."""

from __future__ import annotations

from collections.abc import Sequence

from bough.parsers.base import ToolSpec
from bough.parsers.json_calls import call_object, calls_of, read_object
from bough.parsers.reasoning import ReasoningFormat
from bough.parsers.stream import Steps
from bough.parsers.structural import Format
from bough.parsers.tool_format import Calls, ToolFormat

CALL = "=>"
END = "<="


class ArrowFormat(ToolFormat):
    """Calls between two arrows."""

    name = "arrow"
    triggers = (CALL,)

    def read(self, calls: Calls, trigger: str) -> Steps[None]:
        yield from calls.stream.skip_space()
        yield from read_object(calls, END)
        yield from calls.stream.skip_space()
        if (yield from calls.stream.take(END)):
            calls.stream.commit()
        else:
            calls.stream.turn_back()

    def constraint(self, tools: Sequence[ToolSpec], *, parallel: bool) -> Format:
        each = [call_object(tool, begin=f"{CALL} ", end=f" {END}") for tool in tools]
        return calls_of(each, "\n", parallel=parallel)


MUSING = ReasoningFormat("musing", start="(muses: ", end=")")
