"""Recognises a dialect by the markers that a chat template has in it."""

from __future__ import annotations

from bough.parsers.reasoning import REASONING_FORMATS, ReasoningFormat
from bough.parsers.tool_format import ToolFormat
from bough.parsers.tool_formats import TOOL_FORMATS

# The first row of which all markers are there is it; markers of one family come before those that many share.
_TOOL_MARKERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpt-oss", ("<|channel|>",)),
    ("kimi_k2", ("<|tool_calls_section_begin|>",)),
    ("deepseekv3", ("<｜tool▁calls▁begin｜>", "```json")),
    ("deepseekv31", ("<｜tool▁calls▁begin｜>",)),
    ("glm47", ("</arg_key><arg_value>",)),
    ("glm45", ("<arg_key>",)),
    ("seed_oss", ("<seed:tool_call>",)),
    ("qwen3_coder", ("<function=", "<parameter=")),
    ("mistral", ("[TOOL_CALLS]",)),
    ("llama4", ("<|python_start|>",)),
    ("phi4_mini", ("<|tool|>", "<|/tool|>")),
    ("phi4_mini", ("functools[",)),
    ("pythonic", ("[func_name1(",)),
    ("llama3", ("<|python_tag|>",)),
    ("qwen25", ("<tool_call>", "<|im_start|>")),
    ("hermes", ("<tool_call>",)),
    # Llama 3.2 has no marker of its own; its template says what a call looks like, and shows earlier ones so.
    ("llama3", ("<|start_header_id|>", '"parameters": ')),
)

# Formats of which every answer begins with thoughts are not among them: the end of the rendered prompt says whether an
# answer does, and a wrong guess would make thoughts of all that the model says.
_REASONING_MARKERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gpt-oss", ("<|channel|>",)),
    ("kimi", ("◁think▷",)),
    ("mistral", ("[THINK]",)),
    ("seed_oss", ("<seed:think>",)),
    ("kimi_k2", ("</think>", "<|tool_calls_section_begin|>")),
    ("glm45", ("</think>", "<arg_key>")),
    ("deepseek-v3", ("</think>", "<｜Assistant｜>")),
    ("deepseek-v3", ("<think>", "<｜Assistant｜>")),
    ("qwen3", ("</think>",)),
    ("qwen3", ("<think>",)),
)


def detect_tool_format(template: str) -> ToolFormat | None:
    """How the model of this template writes calls; ``None`` if it does not say."""
    name = _first_match(template, _TOOL_MARKERS)
    return TOOL_FORMATS[name].for_template(template) if name is not None else None


def detect_reasoning_format(template: str) -> ReasoningFormat | None:
    """How the model of this template marks its thoughts; ``None`` if it does not say."""
    name = _first_match(template, _REASONING_MARKERS)
    return REASONING_FORMATS[name] if name is not None else None


def _first_match(template: str, rows: tuple[tuple[str, tuple[str, ...]], ...]) -> str | None:
    for name, markers in rows:
        if all(marker in template for marker in markers):
            return name
    return None
