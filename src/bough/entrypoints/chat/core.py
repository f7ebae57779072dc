"""Answers conversations: from a job to prompts, constraints and parsers, and from deltas to typed events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from bough.entrypoints.chat.constraints import constrained
from bough.entrypoints.chat.job import ChatJob, Message, ToolChoice, ToolUse
from bough.entrypoints.chat.read_back import served_dialects
from bough.entrypoints.chat.reader import ChoiceReader
from bough.entrypoints.chat.sampling import RequestSampling
from bough.entrypoints.chat.template_fit import TemplateFit, message_text, tool_description
from bough.entrypoints.chat.tools import template_variables
from bough.ipc.messages import OutputDelta
from bough.managers.conversations import text_size
from bough.managers.io_struct import GenerateRequest
from bough.managers.prompt_encoder import INLINE_CHARS
from bough.managers.reasoning_span import ReasoningMarkers, ReasoningSpan
from bough.managers.req_state import ReqState, Sink
from bough.managers.tokenizer_manager import TokenizerManager
from bough.parsers.base import ParsedEvent
from bough.parsers.dialect import Dialect
from bough.parsers.reasoning import ReasoningFormat, Thoughts
from bough.parsers.reasoning_tokens import ReasoningCounter
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import TokenIds

_PROMPT_END = 32
"""Tokens of a prompt's end that show whether it has opened or closed the model's thoughts."""

_EARLIER_TURN: tuple[Message, ...] = ({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"})
"""Stands for the earlier turns of a session, whose tokens are known."""

LARGE_SCHEMAS = 4000
"""Characters of schemas from which on a constraint is made in a thread: about 0.3 ms."""


@dataclass(slots=True)
class ChoiceDelta:
    """What is new about one answer.

    Attributes:
        state: which answer (``state.index``), and when what happened to it.
        events: what was added, in order.
        output: what the engine said: counts, logprobs, token ids, the reason of the end.
        reader: what is known of the answer as a whole.
    """

    state: ReqState
    events: list[ParsedEvent]
    output: OutputDelta
    reader: ChoiceReader


@dataclass(frozen=True, slots=True)
class ChatRun:
    """A job that is ready to go.

    Attributes:
        request: what the engine is to do.
        readers: what reads its outputs, one per answer.
        prompt: the prompt's token ids.
    """

    request: GenerateRequest
    readers: list[ChoiceReader]
    prompt: TokenIds


class ChatCore:
    """Everything that the APIs for conversations have in common."""

    def __init__(self, manager: TokenizerManager) -> None:
        self.manager = manager
        self.sampling = RequestSampling(manager)
        args = manager.server_args
        template = manager.chat_template
        special = () if manager.tokenizer is None else manager.tokenizer.special_token_ids
        self._dialect, self.tool_dialect = (
            dialect.with_special_tokens(special)
            for dialect in served_dialects(
                template, tool_call_parser=args.tool_call_parser, reasoning_parser=args.reasoning_parser
            )
        )
        self._fit = TemplateFit(template, self.tool_dialect)
        self._asks_for_thoughts = self._dialect.reasoning_format is not None and _asks_for_thoughts(
            template, self._dialect.reasoning_format
        )

    @property
    def reasons(self) -> bool:
        """Whether reasoning can be told from the rest of an answer."""
        return self._dialect.reasoning_format is not None

    def dialect(self, tools: ToolUse) -> Dialect:
        """How the model writes, given these tools."""
        return self.tool_dialect if tools.tools else self._dialect

    async def prompt(self, job: ChatJob, *, bounded: bool = True) -> TokenIds:
        """Token ids of the prompt.

        Args:
            bounded: whether one that is certainly too long is refused.

        Raises:
            BadRequest: if the template refuses the conversation, or it is certainly too long.
            PayloadTooLarge: if its text is longer than any may be that is encoded.
        """
        if job.input_ids is not None:
            return last_tokens(job.input_ids, job.truncate_prompt_tokens)
        behind: Sequence[Message] = ()
        if self._goes_on(job):
            assert job.session_params is not None, "a turn of a session"
            answers_itself = job.session_params.drop_previous_output and job.messages[0].get("role") == "assistant"
            behind = _EARLIER_TURN[:1] if answers_itself else _EARLIER_TURN
        shown = job.tools.tools if job.tools.choice is not ToolChoice.NONE else ()
        ids = await self.manager.conversations.encode(
            job.messages,
            tools=[tool_description(tool) for tool in shown],
            fit=self._fit.apply,
            documents=job.documents,
            add_generation_prompt=job.add_generation_prompt,
            continue_final_message=job.continue_final_message,
            behind=behind,
            template_kwargs=job.template_kwargs,
            keep=job.truncate_prompt_tokens,
            bounded=bounded,
            where=job.prompt_param,
        )
        return last_tokens(ids, job.truncate_prompt_tokens)

    def _goes_on(self, job: ChatJob) -> bool:
        """Whether the messages continue the conversation of an earlier turn of a session."""
        params = job.session_params
        return job.input_ids is None and params is not None and self.manager.sessions.goes_on(params)

    def begins_in_reasoning(self, job: ChatJob, prompt: TokenIds) -> bool:
        """Whether an answer to this prompt begins inside the model's thoughts."""
        return self._thoughts(job, prompt) is Thoughts.BEGUN

    def _thoughts(self, job: ChatJob, prompt: TokenIds) -> Thoughts:
        """What a job makes of the thoughts of its answer."""
        reasoning, tokenizer = self.dialect(job.tools).reasoning_format, self.manager.tokenizer
        if reasoning is None or tokenizer is None:
            return Thoughts.NONE if job.continue_final_message else Thoughts.POSSIBLE
        end = tokenizer.decode(prompt[-_PROMPT_END:].tolist(), skip_special_tokens=False)
        if job.continue_final_message:
            return reasoning.goes_on(message_text(job.messages[-1]), end)
        if job.input_ids is not None:
            return reasoning.thoughts(end)
        if not job.add_generation_prompt:
            return Thoughts.POSSIBLE
        thoughts = reasoning.thoughts(end)
        return Thoughts.NONE if thoughts is Thoughts.POSSIBLE and self._asks_for_thoughts else thoughts

    async def prepare(self, job: ChatJob) -> ChatRun:
        """Make everything ready that can fail because of what the client has asked for.

        Raises:
            BadRequest: naming what cannot be done.
            Overloaded, EngineDead: if nothing can be answered now.
        """
        self.manager.limits.require_generation()
        request = GenerateRequest(
            rids=job.rids,
            ids_are_ours=job.input_ids is None,
            prompt_param=job.prompt_param,
            sampling_params=job.params,
            stream=job.stream,
            return_logprob=job.logprobs or job.prompt_logprobs,
            logprob_start_len=0 if job.prompt_logprobs else -1,
            top_logprobs_num=job.top_logprobs,
            extras=job.extras,
            session_params=job.session_params,
            ends_context=self._goes_on(job),
        )
        self.manager.check_room(request)  # before its prompt is made
        dialect = self.dialect(job.tools)
        request.input_ids = prompt = await self.prompt(job)
        thoughts = self._thoughts(job, prompt)
        params, request.grammar_param = await self._constrained(job, dialect, thoughts)
        readers = self._readers(job, dialect, thinking=thoughts is Thoughts.BEGUN)
        if dialect.needs_special_tokens and not readers[0].is_plain:
            params = msgspec.structs.replace(params, skip_special_tokens=False)
        request.sampling_params = params
        request.begins_in_thoughts = thoughts is Thoughts.BEGUN
        request.stops_in_answer = dialect.reasoning_format is not None and thoughts is not Thoughts.NONE
        request.call_triggers = dialect.triggers if job.tools.callable else ()
        return ChatRun(request, readers, prompt)

    async def deltas(self, run: ChatRun, sink: Sink | None = None) -> AsyncGenerator[ChoiceDelta, None]:
        """Run a job and say what comes of it; the last delta of each answer has a finish reason.

        Leaving early ends what is unfinished.

        Args:
            sink: see :meth:`Generation.deltas`; what it takes it reads itself.

        Raises:
            BoughError: if an answer fails, or nothing can be answered now.
        """
        async with self.manager.generation([run.request]) as generation:
            while generation.unfinished:
                for state, output in await generation.deltas(sink):
                    generation.check(output)
                    reader = run.readers[state.index]
                    events = reader.read_now(output)
                    if events is None:
                        events = await reader.read(output)
                    yield ChoiceDelta(state, events, output, reader)

    async def _constrained(
        self, job: ChatJob, dialect: Dialect, thoughts: Thoughts
    ) -> tuple[SamplingParams, str | None]:
        """See :func:`constrained`; schemas can be large."""
        size = text_size([tool.parameters for tool in job.tools.tools]) if job.tools.tools else 0
        if job.params.grammar is not None:
            size += len(job.params.grammar.text)

        def work() -> tuple[SamplingParams, str | None]:
            return constrained(job.params, job.constraint_param, job.tools, dialect, thoughts=thoughts)

        encoder = self.manager.prompt_encoder
        assert encoder is not None, "checked by the front end"
        return await encoder.run(0 if size < LARGE_SCHEMAS else INLINE_CHARS + 1, work)

    def _readers(self, job: ChatJob, dialect: Dialect, *, thinking: bool) -> list[ChoiceReader]:
        readers = []
        skips_special = job.params.skip_special_tokens and not dialect.needs_special_tokens
        num_bytes = self._num_bytes(skip_special=skips_special)
        reasoning, tokenizer = dialect.reasoning_format, self.manager.tokenizer
        markers = None
        if reasoning is not None and not job.separate_reasoning and tokenizer is not None:
            markers = ReasoningMarkers(reasoning, tokenizer)
        tools = job.tools.tools if job.tools.callable else ()
        make_parser = partial(
            dialect.parser,
            tools,
            parse_tools=job.tools.callable,
            thinking=thinking,
            forced=job.tools.choice is ToolChoice.REQUIRED,
        )
        for _ in job.rids:
            parser = make_parser(separate_reasoning=job.separate_reasoning)
            counter = None
            if reasoning is not None and parser is not None and markers is None:
                counter = ReasoningCounter(num_bytes, reasoning, begins_inside=thinking)
            span = None
            if markers is not None:
                span = ReasoningSpan(markers, inside=thinking, parser=make_parser(separate_reasoning=True))
            readers.append(
                ChoiceReader(
                    parser,
                    counter,
                    span=span,
                    include_reasoning=job.include_reasoning,
                    stream_reasoning=job.stream_reasoning,
                    max_calls=None if job.tools.parallel else 1,
                )
            )
        return readers

    def _num_bytes(self, *, skip_special: bool) -> Callable[[int], int]:
        tokenizer = self.manager.tokenizer
        assert tokenizer is not None, "checked by the front end"
        special = tokenizer.special_ids if skip_special else frozenset()

        def num_bytes(token_id: int) -> int:
            return 0 if token_id in special else len(tokenizer.id_to_piece_bytes(token_id))

        return num_bytes


def last_tokens(ids: TokenIds, keep: int | None) -> TokenIds:
    """The end of a prompt, at most ``keep`` tokens; all of it if that is ``None``."""
    return ids if keep is None or len(ids) <= keep else ids[len(ids) - keep :]


def _asks_for_thoughts(template: ChatTemplate | None, reasoning: ReasoningFormat) -> bool:
    """Whether a template opens the thoughts if it is asked to, and only then; its model may not open them itself."""
    if template is None:
        return False
    asked = template_variables(None, "high", None, None)
    return template.prompt_ends_with(reasoning.start, asked) and not template.prompt_ends_with(reasoning.start, {})
