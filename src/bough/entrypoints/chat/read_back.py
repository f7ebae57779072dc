"""Tries at load whether the calls that a chat template shows are in the format that was recognised."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bough.errors import BadRequest
from bough.parsers.base import Content, ToolCallArguments, ToolCallStart, ToolSpec
from bough.parsers.dialect import AUTO, Dialect, make_dialect, make_tool_dialect
from bough.tokenization.chat_template import ChatTemplate

logger = logging.getLogger(__name__)

_NAME = "probe_tool"
_ARGUMENTS = {"probe_text": "probe-7f3a b", "probe_number": 73}
_SCHEMA = {
    "type": "object",
    "properties": {"probe_text": {"type": "string"}, "probe_number": {"type": "integer"}},
    "required": [],
}
_TOOL = ToolSpec(_NAME, "A probe.", _SCHEMA, False)
_TOOLS: Sequence[Mapping[str, Any]] = (
    {"type": "function", "function": {"name": _NAME, "description": "A probe.", "parameters": _SCHEMA}},
)
_CALL = {"type": "function", "function": {"name": _NAME, "arguments": _ARGUMENTS}}
_IDS = ("probe7f3a", f"functions.{_NAME}:0")
"""One that templates of Mistral's family take, and one that holds the name, as Kimi's have it."""

_QUESTION = {"role": "user", "content": "a"}
_ANSWER = "probe-answer-7f3a"
_TOKENS = re.compile(r"<[|｜][^<>]*[|｜]>|</s>|<eos>|\[(?:gMASK|EOS)\]|\]~!b\[|\bassistant\b")
"""Marks of messages, as far as they are not those around an answer."""


def served_dialects(
    template: ChatTemplate | None, *, tool_call_parser: str | None, reasoning_parser: str | None
) -> tuple[Dialect, Dialect]:
    """Return the dialect of a model, and that of its answers to requests that have tools.

    A format of calls that was recognised, and not asked for, has to read what the template shows of a call.

    Raises:
        ConfigError: if there is no such name.
    """
    source = None if template is None else "\n".join(template.sources.values())
    made = make_dialect(source, tool_call_parser=tool_call_parser, reasoning_parser=reasoning_parser)
    is_guess = tool_call_parser in (None, AUTO) and made.tool_format is not None
    if template is None or not is_guess or made.on_channels or reads_back(template, made):
        return made, make_tool_dialect(source, tool_call_parser=tool_call_parser, reasoning_parser=reasoning_parser)
    assert made.tool_format is not None, "a guess"
    logger.warning(
        "The tool format of this chat template is not known: it is not %s, which it looks like. What the model writes "
        "so is content; --tool-call-parser names a format.",
        made.tool_format.name,
    )
    return Dialect(None, made.reasoning_format), Dialect(make_tool_dialect(None).tool_format, made.reasoning_format)


def reads_back(template: ChatTemplate, dialect: Dialect) -> bool:
    """Return whether a call, as a template shows it, is read as just that call; true if the template shows none."""
    variants = [(tools, content, call_id) for tools in (_TOOLS, ()) for content in ("", None) for call_id in _IDS]
    shown = [text for each in variants if (text := _shown(template, *each))]
    openers = () if dialect.tool_format is None else dialect.tool_format.openers
    # Calls that are known by the first character of an answer may have more in front of them here.
    begins = [text[at:] for text in shown for each in openers if (at := text.find(each)) > 0]
    return not shown or any(_is_call(text, dialect) for text in (*shown, *begins))


def _shown(template: ChatTemplate, tools: Sequence[Mapping[str, Any]], content: str | None, call_id: str) -> str | None:
    """Return the text of an answer that is a call, as a template writes it, without what stands around any answer."""
    try:
        question, plain, calling = (
            template.render([_QUESTION, *answer], tools=tools or None, add_generation_prompt=False)
            for answer in (
                (),
                ({"role": "assistant", "content": _ANSWER},),
                ({"role": "assistant", "content": content, "tool_calls": [{**_CALL, "id": call_id}]},),
            )
        )
    except BadRequest:
        return None
    if not all(each in calling.removeprefix(question) for each in (_NAME, *_ARGUMENTS)):
        return None
    before, _, behind = plain.removeprefix(question).partition(_ANSWER)
    # Of thoughts that are empty there are none beside a call.
    return calling.removeprefix(question).lstrip().removeprefix(before.strip()).rstrip().removesuffix(behind.strip())


def _is_call(text: str, dialect: Dialect) -> bool:
    parser = dialect.parser((_TOOL,), parse_tools=True, separate_reasoning=True, thinking=False)
    assert parser is not None, "there are calls"
    events = [*parser.feed(text), *(event for held in parser.finish() for event in held)]
    names = [event.name for event in events if isinstance(event, ToolCallStart)]
    written = "".join(event.fragment for event in events if isinstance(event, ToolCallArguments))
    rest = "".join(event.text for event in events if isinstance(event, Content))
    try:
        return names == [_NAME] and json.loads(written) == _ARGUMENTS and not _TOKENS.sub("", rest).strip()
    except ValueError:
        return False
