"""All formats of tool calls by name."""

from __future__ import annotations

from bough.parsers.json_calls import HermesFormat, LlamaFormat, MistralFormat
from bough.parsers.tool_format import ToolFormat

_FORMATS: tuple[ToolFormat, ...] = (
    HermesFormat("hermes"),
    LlamaFormat(),
    MistralFormat(),
    HermesFormat("qwen"),
    HermesFormat("qwen25"),
)

TOOL_FORMATS: dict[str, ToolFormat] = {each.name: each for each in _FORMATS}
"""By the names that ``--tool-call-parser`` takes."""
