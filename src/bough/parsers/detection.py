"""Recognises a dialect by the markers that a chat template has in it."""

from __future__ import annotations

import re

from bough.parsers.reasoning import REASONING_FORMATS, ReasoningFormat
from bough.parsers.tool_format import ToolFormat
from bough.parsers.tool_formats import TOOL_FORMATS

_TOOL_MARKERS = (
    ("<|channel|>", "gpt-oss"),
    ("<|tool_calls_section_begin|>", "kimi_k2"),
    ("<｜tool▁calls▁begin｜>", "deepseekv31"),
    ("<arg_key>", "glm45"),
    ("<function=", "qwen3_coder"),
    ("[TOOL_CALLS]", "mistral"),
    ("<|python_tag|>", "llama3"),
    ("<tool_call>", "qwen25"),
)

_REASONING_MARKERS = (
    ("<|channel|>", "gpt-oss"),
    ("◁think▷", "kimi"),
    ("[THINK]", "mistral"),
    ("<arg_key>", "glm45"),
    ("<|tool_calls_section_begin|>", "kimi_k2"),
)

# The generation prompt is what a template ends with; in these it opens the thoughts.
_OPENS_THOUGHTS = re.compile(r"<think>(\\n|\s)*['\"]?\s*[-+]?(\}\}|%\})?(\s|\{%[-+]?\s*end\w+\s*[-+]?%\})*$")


def detect_tool_format(template: str) -> ToolFormat | None:
    """How the model of this template writes calls; ``None`` if it does not say."""
    for marker, name in _TOOL_MARKERS:
        if marker in template:
            return TOOL_FORMATS[name]
    return None


def detect_reasoning_format(template: str) -> ReasoningFormat | None:
    """How the model of this template marks its thoughts; ``None`` if it does not say."""
    for marker, name in _REASONING_MARKERS:
        if marker in template and name in REASONING_FORMATS:
            return REASONING_FORMATS[name]
    if "<think>" not in template and "</think>" not in template:
        return None
    if "enable_thinking" in template:
        return REASONING_FORMATS["qwen3"]
    if "<｜Assistant｜>" in template:
        return REASONING_FORMATS["deepseek-v3" if "thinking" in template else "deepseek-r1"]
    return REASONING_FORMATS["qwen3-thinking" if _OPENS_THOUGHTS.search(template) else "qwen3"]
