"""All formats of tool calls by name."""

from __future__ import annotations

from bough.parsers.harmony import HarmonyFormat
from bough.parsers.json_calls import HermesFormat, LlamaFormat, MistralFormat, PhiFormat
from bough.parsers.marked_calls import DeepSeekFormat, KimiFormat
from bough.parsers.pythonic import PythonicFormat
from bough.parsers.tool_format import ToolFormat
from bough.parsers.xml_calls import GlmFormat, QwenCoderFormat

_FORMATS: tuple[ToolFormat, ...] = (
    DeepSeekFormat("deepseekv3", fenced=True),
    DeepSeekFormat("deepseekv31", fenced=False),
    GlmFormat("glm"),
    GlmFormat("glm45"),
    GlmFormat("glm47", newlines=False),
    HarmonyFormat(),
    HermesFormat("hermes"),
    KimiFormat(),
    LlamaFormat(),
    PythonicFormat("llama4"),
    MistralFormat(),
    PhiFormat(),
    PythonicFormat("pythonic"),
    HermesFormat("qwen"),
    HermesFormat("qwen25"),
    QwenCoderFormat("qwen3_coder"),
    QwenCoderFormat("seed_oss", "seed:tool_call"),
)

TOOL_FORMATS: dict[str, ToolFormat] = {each.name: each for each in _FORMATS}
"""By the names that ``--tool-call-parser`` takes."""
