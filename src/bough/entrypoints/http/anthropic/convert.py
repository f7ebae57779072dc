"""From Anthropic's messages, tools and options to a job."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bough.entrypoints.chat.constraints import Constraint
from bough.entrypoints.chat.job import Message, ToolChoice, ToolUse, template_call
from bough.entrypoints.chat.tools import Choice, distinct, make_tool_use, template_variables
from bough.entrypoints.http.anthropic.protocol import CountTokensRequest
from bough.entrypoints.http.result_text import result_text
from bough.entrypoints.http.unknown_fields import MAX_NAME_CHARS, Unknown, known_members
from bough.errors import BadRequest
from bough.parsers.base import ToolSpec
from bough.tokenization.chat_template import reads_text_only

_HARMLESS = frozenset({"type", "cache_control", "citations"})
"""Members of blocks that change nothing here: prefixes are cached anyway, and there are no citations to switch on."""

_MEMBERS: dict[str, frozenset[str]] = {
    "text": frozenset({"text"}),
    "tool_use": frozenset({"id", "name", "input", "caller"}),
    "tool_result": frozenset({"tool_use_id", "content", "is_error"}),
    "thinking": frozenset({"thinking", "signature"}),
    "redacted_thinking": frozenset({"data"}),
    "search_result": frozenset({"title", "source", "content"}),
    "tool_reference": frozenset({"tool_name"}),
    "document": frozenset({"title", "source", "context"}),
}
"""What each kind of block has besides."""

_CHOICES = {
    "auto": ToolChoice.AUTO,
    "any": ToolChoice.REQUIRED,
    "tool": ToolChoice.REQUIRED,
    "none": ToolChoice.NONE,
}

_MESSAGE_MEMBERS = frozenset({"role", "content", "id", "type", "output_config"})
"""Of which only the first two say something to the model."""

_BILLING = "x-anthropic-billing-header:"
"""How the text begins that Claude Code puts before all else, with a number that is another one in every request: to
show it to the model would be to compute the whole of each prompt anew."""

_TEXT_BLOCKS = ("text", "search_result", "document")
_RESULT_BLOCKS = (*_TEXT_BLOCKS, "tool_reference")

_TOOL_MEMBERS = frozenset(
    {
        *("type", "name", "description", "input_schema", "input_examples", "strict"),
        *("cache_control", "eager_input_streaming", "defer_loading", "allowed_callers"),
    }
)
"""The last four change nothing: prefixes are cached anyway, arguments always streamed, tools always shown, and only the
model calls them."""

_CALLS, _RESULTS = "tool_use", "tool_result"
"""Ends of the types of blocks that are calls and results of tools, those included that another server has run."""

_NO_TEXT = ("image", "audio", "video", "file")
"""Beginnings of types of blocks that are refused, since the model would answer without what the user shows it. Others
that are not known say nothing to it."""

_SERVER_TOOLS = ("web_search_", "web_fetch_", "code_execution_", "tool_search_", "mcp_toolset")
"""How the types of tools begin that the server would run."""


class Conversion:
    """Reads the messages and tools of one request.

    Attributes:
        left_out: types of blocks and tools that are not shown to the model.
    """

    def __init__(self, unknown: Unknown | None) -> None:
        self.left_out: Unknown = {}
        self._unknown = unknown
        self._answered: set[str] = set()
        """Ids of calls whose results are in the conversation."""

    def conversation(self, body: CountTokensRequest) -> list[Message]:
        """The messages for the chat template.

        Raises:
            BadRequest: naming what does not have the right form, or cannot be shown to the model.
        """
        messages: list[Message] = []
        if body.system is not None:
            parts = [part for part in map(_without_billing, self._text_parts(body.system, "system")) if part["text"]]
            if parts:
                messages.append({"role": "system", "content": _plain(parts)})
        self._answered = _answered(body.messages)
        for index, message in enumerate(body.messages):
            messages += self._message(message, f"messages[{index}]")
        return messages

    def tool_use(self, body: CountTokensRequest) -> ToolUse:
        """From ``tools`` and ``tool_choice``. Tools that a server would run are left out: there is none to run them.

        Raises:
            BadRequest: naming what does not fit together.
        """
        specs = distinct(self._tool(tool, f"tools[{index}]") for index, tool in enumerate(body.tools or ()))
        choice = body.tool_choice
        if choice is None:
            return make_tool_use(specs, Choice(), parallel=True)
        if (choice.type == "tool") != (choice.name is not None):
            raise BadRequest("tool_choice.name goes with the type tool", param="tool_choice.name")
        return make_tool_use(
            specs, Choice(_CHOICES[choice.type], choice.name), parallel=not choice.disable_parallel_tool_use
        )

    def _message(self, message: Mapping[str, Any], where: str) -> list[Message]:
        message = known_members(message, _MESSAGE_MEMBERS, where, self._unknown)
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            raise BadRequest(f"{where}.role must be user, assistant or system", param=f"{where}.role")
        content = message.get("content", "" if role == "assistant" else None)
        if isinstance(content, str):
            return [{"role": role, "content": content}]
        if role == "system" and content == []:  # a note to the server, about effort or the like
            return []
        if not isinstance(content, list):
            raise BadRequest(f"{where}.content must be a string or a list of blocks", param=f"{where}.content")
        if role == "assistant":
            return self._assistant(content, f"{where}.content")
        return self._others(role, content, f"{where}.content")

    def _assistant(self, blocks: Sequence[Any], where: str) -> list[Message]:
        """The blocks of an assistant's message as one: thoughts, text and calls have places of their own. Results of
        tools that another server has run are messages between those that hold the rest.
        """
        messages: list[Message] = []
        parts: list[dict[str, Any]] = []
        thoughts: list[str] = []
        calls: list[dict[str, Any]] = []
        for index, block in enumerate(blocks):
            place = f"{where}[{index}]"
            kind = self._kind(block, place)
            if kind == "text":
                parts += self._text_of(block, place)
            elif kind == "thinking":
                thoughts.append(_string(block, "thinking", place))
            elif kind == "tool_use" or (kind.endswith(_CALLS) and block.get("id") in self._answered):
                calls.append(_call(block, place))
            elif kind != _RESULTS and kind.endswith(_RESULTS):
                if parts or thoughts or calls:
                    messages.append(_turn(parts, thoughts, calls))
                    parts, thoughts, calls = [], [], []
                messages.append(self._tool_result(block, place))
            elif kind != "redacted_thinking":  # that one is sealed by another server
                self._leave_out(kind, place, f"the assistant has no blocks of type {kind}")
        return [*messages, _turn(parts, thoughts, calls)] if parts or thoughts or calls or not messages else messages

    def _others(self, role: str, blocks: Sequence[Any], where: str) -> list[Message]:
        """The user's blocks: results of tools are messages of their own, between those that hold the rest."""
        messages: list[Message] = []
        parts: list[dict[str, Any]] = []
        for index, block in enumerate(blocks):
            place = f"{where}[{index}]"
            kind = self._kind(block, place)
            if kind.endswith(_RESULTS):
                if parts:
                    messages.append({"role": role, "content": _plain(parts)})
                    parts = []
                messages.append(self._tool_result(block, place))
            elif kind in _TEXT_BLOCKS:
                parts += self._text_of(block, place)
            else:
                self._leave_out(kind, place, f"the {role} has no blocks of type {kind}")
        if parts or not messages:
            messages.append({"role": role, "content": _plain(parts)})
        return messages

    def _tool_result(self, block: Mapping[str, Any], where: str) -> Message:
        content = block.get("content") or ""
        if block["type"] != _RESULTS or isinstance(content, dict):
            text: str | list[dict[str, Any]] = result_text(content)
        else:
            text = _plain(self._text_parts(content, f"{where}.content", _RESULT_BLOCKS))
        if block.get("is_error"):
            text = f"Error: {text if isinstance(text, str) else ' '.join(part['text'] for part in text)}"
        return {"role": "tool", "tool_call_id": _string(block, "tool_use_id", where), "content": text}

    def _text_parts(self, content: Any, where: str, allowed: Collection[str] = _TEXT_BLOCKS) -> list[dict[str, Any]]:
        """Content that is text: a string, or blocks of the kinds ``allowed``."""
        if isinstance(content, str):
            return [{"type": "text", "text": content}] if content else []
        if not isinstance(content, list):
            raise BadRequest(f"{where} must be a string or a list of text blocks", param=where)
        parts: list[dict[str, Any]] = []
        for index, block in enumerate(content):
            place = f"{where}[{index}]"
            kind = self._kind(block, place)
            if kind in allowed:
                parts += self._text_of(block, place)
            else:
                self._leave_out(kind, place, "only text can stand here")
        return parts

    def _text_of(self, block: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
        """A block that is text in one form or another, as parts of a message. What is in it can only be plain text."""
        kind = block["type"]
        if kind == "text":
            return [{"type": "text", "text": _string(block, "text", where)}]
        if kind == "tool_reference":  # the model is shown all tools anyway
            return [{"type": "text", "text": _string(block, "tool_name", where)}]
        if kind == "search_result":
            inside = self._text_parts(block.get("content"), f"{where}.content", ("text",))
            head = f"{_string(block, 'title', where)} ({_string(block, 'source', where)})"
            return [{"type": "text", "text": head}, *inside]
        source = block.get("source")
        if not isinstance(source, dict) or source.get("type") not in ("text", "content"):
            raise reads_text_only(f"{where}.source", source.get("type") if isinstance(source, dict) else kind)
        heads = [
            {"type": "text", "text": block[name]} for name in ("title", "context") if isinstance(block.get(name), str)
        ]
        if source["type"] == "text":
            return [*heads, {"type": "text", "text": _string(source, "data", f"{where}.source")}]
        return [*heads, *self._text_parts(source.get("content"), f"{where}.source.content", ("text",))]

    def _kind(self, block: Any, where: str) -> str:
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            raise BadRequest(f"{where} must be an object with a type", param=where)
        if kind.startswith(_NO_TEXT):
            raise reads_text_only(where, kind)
        if kind in _MEMBERS:
            known_members(block, _MEMBERS[kind] | _HARMLESS, where, self._unknown)
        return kind

    def _leave_out(self, kind: str, where: str, problem: str) -> None:
        """Leave out a block of another server's type; one of a known type that cannot stand there is refused."""
        if kind in _MEMBERS:
            raise BadRequest(f"{where}: {problem}", param=where)
        self.left_out[f"messages.content.{kind[:MAX_NAME_CHARS]}"] = None

    def _tool(self, tool: Mapping[str, Any], where: str) -> ToolSpec | None:
        kind = tool.get("type")
        if isinstance(kind, str) and kind.startswith(_SERVER_TOOLS):
            self.left_out[f"tools.{kind[:MAX_NAME_CHARS]}"] = None
            return None
        if kind not in (None, "custom"):
            raise BadRequest(
                f"{where}: tools of type {str(kind)[:40]!r} are not supported; describe it by an input_schema",
                param=f"{where}.type",
                code="unsupported_parameter",
            )
        given = known_members(tool, _TOOL_MEMBERS, where, self._unknown)
        if "input_schema" not in given and given.get("defer_loading") is not True:
            param = f"{where}.input_schema"
            raise BadRequest(f"{param} is required", param=param, code="missing_required_parameter")
        return ToolSpec.from_function(_with_examples(given, where), where, schema="input_schema")


def _turn(parts: list[dict[str, Any]], thoughts: list[str], calls: list[dict[str, Any]]) -> Message:
    """A message of the assistant's of parts of text, texts of thoughts, and calls as templates have them."""
    message: dict[str, Any] = {"role": "assistant", "content": _plain(parts)}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _answered(messages: Sequence[Mapping[str, Any]]) -> set[str]:
    """Ids of calls whose results are in a conversation."""
    contents = (message.get("content") for message in messages)
    blocks = (block for content in contents if isinstance(content, list) for block in content)
    ids = (block.get("tool_use_id") for block in blocks if isinstance(block, dict))
    return {each for each in ids if isinstance(each, str)}


def _call(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    arguments = block.get("input")
    if arguments is not None and not isinstance(arguments, dict):
        raise BadRequest(f"{where}.input must be an object", param=f"{where}.input")
    return template_call(_string(block, "id", where), _string(block, "name", where), arguments)


def _without_billing(part: dict[str, Any]) -> dict[str, Any]:
    """A part of what the system says, without a first line about billing."""
    text: str = part["text"]
    return {**part, "text": text.partition("\n")[2]} if text.startswith(_BILLING) else part


def _with_examples(tool: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """A tool whose description has its examples: templates have no other place for them."""
    examples = tool.get("input_examples")
    if examples is None:
        return tool
    if not isinstance(examples, list) or not all(isinstance(each, dict) for each in examples):
        raise BadRequest(f"{where}.input_examples must be a list of objects", param=f"{where}.input_examples")
    described = tool.get("description")
    lines = [*([] if described is None else [described]), "Examples of its input:"]
    lines += [json.dumps(each, ensure_ascii=False) for each in examples]
    return {**tool, "description": "\n".join(map(str, lines))} if examples else tool


def continues(messages: Sequence[Message]) -> bool:
    """Whether the answer goes on with the last message, instead of answering it."""
    last = messages[-1]
    return last.get("role") == "assistant" and bool(last.get("content")) and not last.get("tool_calls")


def _plain(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """One text if there is only one: every template takes that."""
    if not parts:
        return ""
    text: str = parts[0]["text"]
    return text if len(parts) == 1 else parts


def _string(block: Mapping[str, Any], name: str, where: str) -> str:
    value = block.get(name)
    if not isinstance(value, str):
        raise BadRequest(f"{where}.{name} must be a string", param=f"{where}.{name}")
    return value


def variables(body: CountTokensRequest) -> dict[str, Any]:
    """Variables of the chat template."""
    thinking = None if body.thinking is None else body.thinking.type != "disabled"
    effort = None if body.output_config is None else body.output_config.effort
    return template_variables(body.chat_template_kwargs, effort, None, thinking)


def constraint(body: CountTokensRequest) -> Constraint | None:
    """What the answer has to follow."""
    config = body.output_config
    if config is None or config.format is None:
        return None
    return Constraint("json_schema", config.format.schema, "output_config.format.schema")
