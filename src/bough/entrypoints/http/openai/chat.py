"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.constraints import constraint_param
from bough.entrypoints.chat.job import ChatJob
from bough.entrypoints.chat.tools import template_variables
from bough.entrypoints.http.asgi import Call, EventStream, Response
from bough.entrypoints.http.openai.chat_choice import ChatChoiceWriter, ChatOptions
from bough.entrypoints.http.openai.headers import check_headers
from bough.entrypoints.http.openai.messages import require_content, to_template
from bough.entrypoints.http.openai.protocol import CHAT, MAX_TOKENS, ChatCompletionRequest
from bough.entrypoints.http.openai.sampling import max_tokens_of
from bough.entrypoints.http.openai.serving import (
    Answer,
    ChoiceFrame,
    CompletionFrame,
    OpenAIHandler,
    UsageAnswer,
    check_session,
    check_stream_options,
    request_ids,
    tokens_to_keep,
)
from bough.entrypoints.http.openai.structured import find_constraint
from bough.entrypoints.http.openai.tools import tool_use
from bough.entrypoints.http.pacing import compile_patterns
from bough.entrypoints.http.route import OPENAI, Route
from bough.entrypoints.http.unknown_fields import Unknown
from bough.errors import BadRequest
from bough.managers.io_struct import GenerateRequest, pack_token_ids


class ChatDelta(msgspec.Struct, kw_only=True):
    """A piece of the assistant's message."""

    role: Annotated[Literal["assistant"] | UnsetType | None, Meta(description="Author of the message.")] = UNSET
    content: Annotated[str | UnsetType | None, Meta(description="The text.")] = UNSET
    refusal: Annotated[UnsetType | None, Meta(description="Always null, as OpenAI's clients expect it.")] = UNSET
    reasoning_content: Annotated[str | UnsetType | None, Meta(description="The thoughts before the answer.")] = UNSET
    reasoning: Annotated[str | UnsetType | None, Meta(description="The same as `reasoning_content`.")] = UNSET
    tool_calls: Annotated[
        list[dict[str, Any]] | UnsetType | None, Meta(description="Calls that the assistant makes.")
    ] = UNSET


class ChatMessageAnswer(ChatDelta, kw_only=True):
    """The assistant's message."""

    role: Literal["assistant"]
    content: Annotated[str | None, Meta(description="The text.", examples=["The oak is a tree."])]
    refusal: Annotated[None, Meta(description="Always null, as OpenAI's clients expect it.")]


class ChatChoice(ChoiceFrame, kw_only=True):
    """One answer of the assistant."""

    message: ChatMessageAnswer
    meta_info: Annotated[dict[str, Any] | UnsetType, Meta(description="Id, counts and times.")] = UNSET


class ChatAnswer(CompletionFrame, kw_only=True):
    """Answer of ``/v1/chat/completions``."""

    object: Literal["chat.completion"]
    choices: Annotated[list[ChatChoice], Meta(description="The answers, `n` of them.")]
    usage: UsageAnswer


class ChatChunkChoice(ChoiceFrame, kw_only=True):
    """New part of one answer."""

    delta: ChatDelta


class ChatChunk(CompletionFrame, kw_only=True):
    """Event of ``/v1/chat/completions``."""

    object: Literal["chat.completion.chunk"]
    choices: Annotated[list[ChatChunkChoice], Meta(description="New parts of the answers.")]
    usage: UsageAnswer | UnsetType | None = UNSET


class ChatHandler(OpenAIHandler):
    """Answers chat completion requests."""

    @Route("POST /v1/chat/completions", OPENAI, CHAT, ChatAnswer, ChatChunk)
    async def chat(self, call: Call) -> Response | EventStream:
        """Answer a conversation."""
        return await self.answer(call, *await self._prepare(call))

    async def _prepare(self, call: Call) -> tuple[Answer, list[GenerateRequest], list[ChatChoiceWriter]]:
        """Read a request, of which nothing is left but what is returned."""
        manager = self._manager
        check_headers(call.headers)
        body, given = await call.parse_given(CHAT)
        check_stream_options(body)
        check_session(body, body.n)
        self.require_tokenizer("messages")
        body, given = self._with_budget(body, given, call.unknown)
        job = self._job(body, given, call.unknown)
        await compile_patterns(manager.prompt_encoder, {job.params.stop_regex}, "stop_regex")
        run = await self._core.prepare(job)
        answer = Answer("chat.completion", "chat.completion.chunk", job.rids[0], self.model_name(body.model), body)
        options = ChatOptions(
            names=self.names(as_ids=body.return_tokens_as_token_ids),
            logprobs=body.logprobs,
            top_logprobs=body.top_logprobs or 0,
            skip_special_tokens=run.request.sampling_params.skip_special_tokens,
            token_ids=body.return_token_ids,
            prompt_of=run.request if body.return_token_ids or body.return_prompt_token_ids else None,
            prompt_logprobs=body.prompt_logprobs,
            echo=body.messages[-1].text() if body.echo else "",
        )
        writers = [ChatChoiceWriter(answer.chunk_start, index, run.readers[index], options) for index in range(body.n)]
        return answer, [run.request], writers

    def _with_budget(
        self, body: ChatCompletionRequest, given: Set[str], unknown: Unknown | None
    ) -> tuple[ChatCompletionRequest, Set[str]]:
        """A request with the bound on thoughts that ``reasoning`` or ``thinking`` asks for, where there can be one."""
        asked = None if body.reasoning is None else body.reasoning.max_tokens
        name = "reasoning.max_tokens"
        if asked is None and isinstance(body.thinking, dict):
            asked, name = body.thinking.get("budget_tokens"), "thinking.budget_tokens"
            if asked is not None and (not isinstance(asked, int) or asked is True or not 0 <= asked <= MAX_TOKENS):
                raise BadRequest(f"{name} must be a number of tokens", param=name, code="invalid_value")
        ours = body.thinking_token_budget
        if asked is None or asked == ours:
            return body, given
        if ours is not None and unknown is None:
            raise BadRequest(f"{name} and thinking_token_budget differ; give one of them", param=name)
        if unknown is not None and (ours is not None or not self._manager.limits.marks_thoughts):
            unknown[name] = None
            return body, given
        return msgspec.structs.replace(body, thinking_token_budget=asked), {*given, "thinking_token_budget"}

    def _job(self, body: ChatCompletionRequest, given: Set[str], unknown: dict[str, None] | None) -> ChatJob:
        if body.top_logprobs and not body.logprobs:
            raise BadRequest("top_logprobs needs logprobs to be true", param="top_logprobs")
        max_tokens, max_tokens_field = max_tokens_of(body.max_tokens, body.max_completion_tokens)
        limits = self._manager.limits
        constraint = find_constraint(body, given, unknown)
        params = self.sampling_params(body, given, max_tokens, max_tokens_field, constraint)
        job = prompt_job(body, given, unknown, body.input_ids)
        if body.echo and not job.continue_final_message:
            raise BadRequest("echo needs continue_final_message to be true", param="echo")
        tools = job.tools
        return msgspec.structs.replace(
            job,
            params=params,
            constraint_param=constraint_param(constraint),
            rids=request_ids(body.rid, body.n),
            tools=tools if body.parallel_tool_calls else replace(tools, parallel=False),
            separate_reasoning=body.separate_reasoning,
            include_reasoning=body.include_reasoning and not (body.reasoning is not None and body.reasoning.exclude),
            stream_reasoning=body.stream_reasoning,
            stream=body.stream,
            logprobs=body.logprobs,
            top_logprobs=max(body.top_logprobs or 0, body.prompt_logprobs or 0),
            prompt_logprobs=body.prompt_logprobs is not None,
            truncate_prompt_tokens=tokens_to_keep(body, limits, max_tokens),
            extras=body.extras,
            session_params=body.session_params,
        )


def prompt_job(
    body: Any, given: Set[str], unknown: dict[str, None] | None, input_ids: Sequence[int] | None = None
) -> ChatJob:
    """As much of a job as its prompt depends on.

    Args:
        body: has those fields of :class:`ChatCompletionRequest` that are about the conversation.
        input_ids: the whole prompt, if it does not come from messages.

    Raises:
        BadRequest: naming a field that does not have the right form.
    """
    if input_ids is None:
        require_content(body.messages)
    return ChatJob(
        messages=[to_template(message) for message in body.messages] if input_ids is None else (),
        tools=tool_use(body.tools, body.tool_choice, unknown),
        input_ids=None if input_ids is None else pack_token_ids(input_ids, "input_ids"),
        prompt_param="messages" if input_ids is None else "input_ids",
        documents=body.documents,
        template_kwargs=template_variables(
            body.chat_template_kwargs, body.reasoning_effort, body.reasoning, body.thinking
        ),
        continue_final_message=_continues(body, given),
        add_generation_prompt=body.add_generation_prompt,
    )


def _continues(body: Any, given: Set[str]) -> bool:
    """Whether the last message is to be gone on with."""
    last = body.messages[-1]
    if not body.continue_final_message and not last.prefix:
        return False
    param = "continue_final_message" if body.continue_final_message else f"messages[{len(body.messages) - 1}].prefix"
    if last.role != "assistant":
        raise BadRequest(f"{param} needs the last message to be the assistant's, not the {last.role}'s", param=param)
    if body.add_generation_prompt and "add_generation_prompt" in given:
        raise BadRequest(
            f"{param} and add_generation_prompt exclude each other: a prompt ends inside a message or with a new one",
            param="add_generation_prompt",
        )
    return True
