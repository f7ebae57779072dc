"""What is asked of the model in a conversation, in no API's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from bough.ipc.messages import NO_EXTRAS, RequestExtras
from bough.managers.sessions import SessionParams
from bough.parsers.base import ToolSpec
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.tokenizer import TokenIds

Message = Mapping[str, Any]
"""A message as chat templates know it: ``role``, ``content`` and, where it applies, ``tool_calls`` (their arguments as
objects), ``tool_call_id``, ``name`` and ``reasoning_content``."""

THINKING_VARIABLES = ("enable_thinking", "thinking")
"""What chat templates call the switch for reasoning."""


class ToolChoice(Enum):
    """Whether the model may, must or must not call a tool."""

    NONE = "none"
    AUTO = "auto"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of a job and how they are to be used.

    Attributes:
        tools: in the order in which the client named them.
        choice: without tools always ``NONE``.
        name: the only tool that may be called, if there is one; then ``choice`` is ``REQUIRED``.
        parallel: whether one answer may hold several calls.
        places: of the tools in the request, for errors; ``None`` if they are all that it has.
    """

    tools: tuple[ToolSpec, ...] = ()
    choice: ToolChoice = ToolChoice.NONE
    name: str | None = None
    parallel: bool = True
    places: tuple[str, ...] | None = None

    def where(self, index: int) -> str:
        """What the client calls one of the tools."""
        return f"tools[{index}]" if self.places is None else self.places[index]

    @property
    def callable(self) -> bool:
        """Whether a call may come out."""
        return bool(self.tools) and self.choice is not ToolChoice.NONE


NO_TOOLS = ToolUse()


class ChatJob(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation to be answered, once or several times.

    Attributes:
        messages: the conversation; ignored if ``input_ids`` are given.
        params: sampling parameters, with ``n`` answers and at most one constraint.
        constraint_param: what the client called that constraint.
        rids: one id per answer.
        tools: what may be called.
        input_ids: the prompt, if it does not come from messages.
        prompt_param: what the client calls the messages, for errors.
        documents: texts that the template shows, if it has a place for them.
        template_kwargs: further variables of the template.
        continue_final_message: go on with the last message instead of answering it.
        add_generation_prompt: whether the prompt ends with the beginning of an answer.
        separate_reasoning: whether reasoning comes as :class:`~bough.parsers.base.Reasoning`; else it is content.
        include_reasoning: whether reasoning comes at all, where it is told apart.
        stream_reasoning: whether reasoning comes as it is made; else in one piece when it is complete.
        stream: whether deltas are wanted as they come.
        logprobs: whether the logprob of every token is wanted.
        top_logprobs: alternatives per token.
        prompt_logprobs: whether logprobs of the prompt are wanted too.
        truncate_prompt_tokens: keep so many tokens of the prompt's end; ``None``: a long prompt is refused.
        extras: of the request.
        session_params: the session that the job belongs to.
    """

    messages: Sequence[Message]
    params: SamplingParams = SamplingParams()
    constraint_param: str | None = None
    rids: list[str] = []
    tools: ToolUse = NO_TOOLS
    input_ids: TokenIds | None = None
    prompt_param: str = "messages"
    documents: Sequence[Mapping[str, Any]] | None = None
    template_kwargs: Mapping[str, Any] = {}
    continue_final_message: bool = False
    add_generation_prompt: bool = True
    separate_reasoning: bool = True
    include_reasoning: bool = True
    stream_reasoning: bool = True
    stream: bool = False
    logprobs: bool = False
    top_logprobs: int = 0
    prompt_logprobs: bool = False
    truncate_prompt_tokens: int | None = None
    extras: RequestExtras = NO_EXTRAS
    session_params: SessionParams | None = None


def template_call(call_id: str | None, name: str, arguments: str | dict[str, Any] | None) -> dict[str, Any]:
    """An earlier tool call as conversations have it. Arguments that are text are decoded with the rest of the work."""
    call: dict[str, Any] = {
        "type": "function",
        "function": {"name": name, "arguments": {} if arguments is None else arguments},
    }
    if call_id is not None:
        call["id"] = call_id
    return call
