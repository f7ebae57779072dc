"""What the bundled model reads: conversations with tools and thoughts, and how they are written as text.

A document is written exactly as the chat template writes the same messages, in pieces of which each knows whether the
model learns to say it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

END_OF_TEXT, TURN_START, TURN_END = SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINK, END_THINK = "<think>", "</think>"
CALL, END_CALL = "<tool_call>", "</tool_call>"
RESPONSE, END_RESPONSE = "<tool_response>", "</tool_response>"
TOOLS, END_TOOLS = "<tools>", "</tools>"
MARKS = (THINK, END_THINK, CALL, END_CALL, RESPONSE, END_RESPONSE, TOOLS, END_TOOLS)

# The turns and marks are those of Qwen3; a tool is told in one short line. Thoughts are asked for with enable_thinking;
# those of earlier questions are left out.
CHAT_TEMPLATE = """\
{%- macro text_of(content) %}
{%- if content is string %}{{- content }}
{%- elif content %}{%- for part in content %}{%- if part.type == 'text' %}{{- part.text }}{%- endif %}{%- endfor %}
{%- endif %}
{%- endmacro %}
{%- set place = namespace(asked=-1) %}
{%- for message in messages %}
{%- if message.role == 'user' %}{%- set place.asked = loop.index0 %}{%- endif %}
{%- endfor %}
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages and messages[0].role == 'system' %}{{- text_of(messages[0].content) + '\\n\\n' }}{%- endif %}
{{- '# Tools\\n<tools>' }}
{%- for tool in tools %}
{%- set function = tool.function if tool.function is defined else tool %}
{%- set schema = function.parameters if function.parameters is mapping else {} %}
{{- '\\n{"name": ' + function.name | tojson }}
{{- ', "description": ' + (function.description or '') | tojson }}
{{- ', "parameters": ' + (schema.properties if schema.properties is mapping else {}) | tojson + '}' }}
{%- endfor %}
{{- '\\n</tools><|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}
{{- '\\n<tool_response>\\n' + text_of(message.content) + '\\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\\n' }}{%- endif %}
{%- elif not (tools and loop.first and message.role == 'system') %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- set text = text_of(message.content) %}
{%- if message.role == 'assistant' %}
{%- if '</think>' in text %}{%- set text = text.split('</think>')[-1].lstrip('\\n') %}{%- endif %}
{%- if message.reasoning_content and loop.index0 > place.asked %}
{{- '<think>\\n' + message.reasoning_content.strip() + '\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}
{{- text }}
{%- for call in message.tool_calls or [] %}
{%- set call = call.function if call.function is defined else call %}
{%- if text or not loop.first %}{{- '\\n' }}{%- endif %}
{{- '<tool_call>\\n{"name": ' + call.name | tojson + ', "arguments": ' }}
{{- call.arguments if call.arguments is string else call.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking %}{{- '<think>\\n' }}
{%- elif enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}"""


@dataclass(frozen=True)
class Tool:
    """A function that the model may call; ``parameters`` holds the schema of each argument."""

    name: str
    description: str
    parameters: Mapping[str, Mapping[str, Any]]

    def to_api(self) -> dict[str, Any]:
        """As clients of the OpenAI API describe it."""
        schema = {"type": "object", "properties": dict(self.parameters), "required": list(self.parameters)}
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": schema},
        }


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    name: str
    arguments: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As it stands between the marks of a call."""
        return {"name": self.name, "arguments": dict(self.arguments)}


Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class Turn:
    """One message.

    Attributes:
        role: whose it is.
        content: its text.
        calls: of an assistant.
        thought: of an assistant; ``None`` where it answers straight away.
        closed: whether a straight answer follows an empty thought, as with ``enable_thinking=False``.
        learn: whether the model learns to say this, where it is an assistant's.
    """

    role: Role
    content: str = ""
    calls: tuple[Call, ...] = ()
    thought: str | None = None
    closed: bool = False
    learn: bool = True

    def to_message(self) -> dict[str, Any]:
        """As chat templates take it."""
        message: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            message["tool_calls"] = [{"type": "function", "function": call.to_json()} for call in self.calls]
        if self.thought is not None:
            message["reasoning_content"] = self.thought
        return message


@dataclass(frozen=True)
class Document:
    """One training text: a conversation, or ``plain`` pieces of text with whether they are learned."""

    turns: Sequence[Turn] = ()
    tools: Sequence[Tool] = ()
    plain: Sequence[tuple[str, bool]] = ()

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """The text, in pieces that are tokenised apart, each with whether the model learns to say it."""
        if self.plain:
            yield from self.plain
            yield END_OF_TEXT, True
            return
        turns = list(self.turns)
        if self.tools:
            first = turns[0].content + "\n\n" if turns[0].role == "system" else ""
            if turns[0].role == "system":
                del turns[0]
            yield (
                f"{TURN_START}system\n{first}# Tools\n{TOOLS}{''.join(map(tool_line, self.tools))}\n{END_TOOLS}",
                False,
            )
            yield TURN_END + "\n", False
        for place, turn in enumerate(turns):
            if turn.role == "tool":
                opening = "" if place and turns[place - 1].role == "tool" else f"{TURN_START}user"
                last = place + 1 == len(turns) or turns[place + 1].role != "tool"
                closing = f"{TURN_END}\n" if last else ""
                yield f"{opening}\n{RESPONSE}\n{turn.content}\n{END_RESPONSE}{closing}", False
                continue
            yield f"{TURN_START}{turn.role}\n", False
            if turn.role == "assistant":
                if turn.thought is not None:
                    yield f"{THINK}\n", False
                    yield f"{turn.thought}\n{END_THINK}\n\n", turn.learn
                elif turn.closed:
                    yield f"{THINK}\n\n{END_THINK}\n\n", False
                yield turn.content + calls_text(turn) + TURN_END, turn.learn
                yield "\n", False
            else:
                yield f"{turn.content}{TURN_END}\n", False

    def text(self) -> str:
        """The whole text."""
        return "".join(text for text, _ in self.pieces())


def tool_line(tool: Tool) -> str:
    """A tool as the system turn describes it, with the line break before it."""
    described = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return "\n" + json.dumps(described, ensure_ascii=False)


def calls_text(turn: Turn) -> str:
    """The calls of a turn, with the line breaks between them."""
    blocks = [f"{CALL}\n{json.dumps(call.to_json(), ensure_ascii=False)}\n{END_CALL}" for call in turn.calls]
    return ("\n" if turn.content and blocks else "") + "\n".join(blocks)


def conversation(
    exchanges: Sequence[tuple[str, str]], system: str | None = None, thought: str | None = None
) -> Document:
    """Questions and answers; ``thought`` belongs to the last answer."""
    turns = [Turn("system", system)] if system else []
    for place, (asked, answer) in enumerate(exchanges):
        last = place + 1 == len(exchanges)
        turns += [Turn("user", asked), Turn("assistant", answer, thought=thought if last else None)]
    return Document(turns)


@dataclass(frozen=True)
class Case:
    """One question of the evaluation, and what a right answer is.

    Attributes:
        skill: under which it counts.
        turns: up to the last question.
        tools: that may be called.
        thinking: whether the model is to think first.
        contains: the answer holds one of these, whatever the case of its letters.
        lacks: and none of these.
        exactly: the answer is this.
        number: the last number of the answer.
        value: the answer is JSON of this value.
        calls: the answer calls these and nothing else.
        opening: with which the answer begins.
        ending: with which it ends.
    """

    skill: str
    turns: Sequence[Turn]
    tools: Sequence[Tool] = ()
    thinking: bool = False
    contains: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    exactly: str | None = None
    number: int | None = None
    value: Any = None
    calls: tuple[Call, ...] = ()
    opening: str = ""
    ending: str = ""

    def prompt(self) -> str:
        """The text that the model continues."""
        opening = f"{TURN_START}assistant\n" + (f"{THINK}\n" if self.thinking else "")
        return Document(self.turns, self.tools).text() + opening

    def is_right(self, answer: str) -> bool:
        """Whether this answer, with its thoughts and calls but without the end of the turn, is right."""
        if self.thinking:
            thought, mark, answer = answer.partition(END_THINK)
            if not mark or not thought.strip():
                return False
        answer = answer.strip()
        if self.calls:
            return read_calls(answer) == [call.to_json() for call in self.calls]
        if CALL in answer:
            return False
        if self.value is not None:
            return same_value(answer, self.value)
        if self.exactly is not None:
            return answer == self.exactly
        if self.number is not None:
            numbers = re.findall(r"-?\d+", answer)
            return bool(numbers) and int(numbers[-1]) == self.number
        lowered = answer.lower()
        held = not self.contains or any(holds(lowered, part.lower()) for part in self.contains)
        framed = lowered.startswith(self.opening.lower()) and lowered.endswith(self.ending.lower())
        return held and framed and not any(holds(lowered, part.lower()) for part in self.lacks)


def holds(text: str, part: str) -> bool:
    """Whether a text holds a part, which must be a whole number where it is one."""
    return bool(re.search(rf"(?<!\d){re.escape(part)}(?!\d)" if part.isdigit() else re.escape(part), text))


def same_value(answer: str, value: object) -> bool:
    """Whether a text is JSON of a value, with its keys in the same order."""
    try:
        return json.dumps(json.loads(answer)) == json.dumps(value)
    except ValueError:
        return False


def read_calls(answer: str) -> list[Any] | None:
    """The calls of which an answer consists; ``None`` if it has anything else or they are no JSON."""
    blocks = re.findall(rf"{CALL}\n(.*?)\n{END_CALL}", answer, re.DOTALL)
    if re.sub(rf"{CALL}\n.*?\n{END_CALL}\n?", "", answer, flags=re.DOTALL).strip():
        return None
    try:
        return [json.loads(block) for block in blocks]
    except ValueError:
        return None
