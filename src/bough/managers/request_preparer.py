"""Makes of requests what the scheduler takes: encodes texts, puts sessions before them, checks prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from bough.ipc.messages import TokenizedEmbeddingReqInput, TokenizedGenerateReqInput
from bough.managers.embedding_struct import EmbeddingRequest
from bough.managers.io_struct import GenerateRequest
from bough.managers.prompt_encoder import PromptEncoder
from bough.managers.reasoning_span import ReasoningMarkers
from bough.managers.req_state import ReqState
from bough.managers.request_limits import RequestLimits
from bough.managers.sessions import SessionStore
from bough.managers.turns import Turns
from bough.managers.waiting_prompts import WaitingPrompts, prompt_bytes
from bough.sampling.bad_words import TokenSequences, sequences_of
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.tokenizer import Tokenizer

TokenizedReqInput: TypeAlias = TokenizedGenerateReqInput | TokenizedEmbeddingReqInput

REQUESTS_PER_TURN = 32
"""Prompts of a batch handled between two turns of the event loop."""

TOKENS_PER_TURN = 4096
"""The same for tokens of sessions: about a millisecond where each turn of a session has added one."""


class RequestPreparer:
    """Turns requests into messages; long work is done in threads, or in slices."""

    def __init__(
        self,
        limits: RequestLimits,
        sessions: SessionStore,
        tokenizer: Tokenizer | None,
        encoder: PromptEncoder | None,
        waiting: WaitingPrompts,
        reasoning: ReasoningMarkers | None = None,
    ) -> None:
        self._limits = limits
        self._sessions = sessions
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._waiting = waiting
        self._reasoning = reasoning

    async def prepare(self, requests: Sequence[GenerateRequest], states: Sequence[ReqState]) -> list[TokenizedReqInput]:
        """Messages for the requests of a call, which get their ids, banned sequences and turns of sessions.

        Raises :class:`BadRequest` if a prompt cannot be encoded, or goes beyond a limit; :class:`PayloadTooLarge` or
        :class:`Overloaded` if prompts come out too large to wait.
        """
        before = [prompt_bytes(request) for request in requests]
        await self._encode_texts(requests)
        await self._encode_bad_words(requests)
        await self._begin_session_turns(requests)
        self._waiting.recount(requests, states, before)
        await self._put_contexts_before(requests)
        turns = Turns(REQUESTS_PER_TURN)
        checked: list[SamplingParams] = []
        for request in requests:
            checked.append(await self._tokenize_one_request(request))
            await turns.spend()
        fitted: Sequence[SamplingParams] = checked
        if states[0].context is not None:  # the owner of an engine may have what fits into memory
            fitted = self._limits.fit_logprobs(requests, checked)
        messages = []
        for request, sampling_params in zip(requests, fitted, strict=True):
            messages.append(request.to_message(sampling_params))
            await turns.spend()
        for request in reversed(requests):  # of those that replace each other the last one stays
            if request.turn is not None:
                request.turn.accepted()
        return messages

    async def _encode_texts(self, requests: Sequence[GenerateRequest]) -> None:
        """Give every request its token ids; the texts of a batch are encoded together."""
        if isinstance(requests[0], EmbeddingRequest):
            await self._encode_segments(requests)
        with_text = [request for request in requests if request.input_ids is None]
        if not with_text:
            return
        encoder = self._encoder
        assert encoder is not None, "checked before"
        texts = []
        for request in with_text:
            text, keep = request.text or "", request.truncate_prompt_tokens
            texts.append(text if keep is None else encoder.ending(text, keep))
        params = [request.prompt_param for request in with_text]
        encoded = await encoder.encode(texts, params, add_special_tokens=with_text[0].add_special_tokens)
        for request, ids in zip(with_text, encoded, strict=True):
            keep = request.truncate_prompt_tokens
            request.input_ids = ids
            if keep is not None and len(ids) > keep:
                request.input_ids = ids[len(ids) - keep :]
                request.text, request.ids_are_ours = None, True  # the text may be much longer than the prompt

    async def _encode_segments(self, requests: Sequence[GenerateRequest]) -> None:
        """Give those requests for vectors their token ids that are pairs, or to be cut."""
        most = self._limits.max_prompt_tokens
        chosen: list[EmbeddingRequest] = []
        limits: list[int | None] = []
        for request in requests:
            if not isinstance(request, EmbeddingRequest):
                continue
            limit = request.truncate_to
            if limit is not None:
                limit = most if limit == -1 else min(limit, most)
            if request.input_ids is not None:
                request.input_ids = request.input_ids[:limit]
            elif limit is not None or request.text_pair is not None:
                chosen.append(request)
                limits.append(limit)
        if chosen:
            assert self._encoder is not None, "checked before"
            await self._encoder.encode_segments(chosen, limits)

    async def _encode_bad_words(self, requests: Sequence[GenerateRequest]) -> None:
        """Give requests the tokens of their bad words; those of several requests are encoded once, in a thread."""
        known: dict[tuple[str, ...], TokenSequences] = {}
        for request in requests:
            words = request.sampling_params.bad_words
            if not words:
                continue
            if words not in known:
                assert self._encoder is not None, "checked before"
                assert self._tokenizer is not None, "checked before"
                work = partial(sequences_of, words, self._tokenizer, self._limits.vocab_size)
                known[words] = await self._encoder.run_apart(work)
            request.banned_sequences = known[words]

    async def _begin_session_turns(self, requests: Sequence[GenerateRequest]) -> None:
        """Look up the context of their sessions for requests that belong to one."""
        turns = Turns(TOKENS_PER_TURN)
        for request in requests:
            if request.session_params is None:
                continue
            assert request.input_ids is not None, "encoded"
            tokenizer = self._tokenizer
            bos = tokenizer.bos_token_id if tokenizer is not None else None
            joints = tokenizer.special_ids if tokenizer is not None and request.ends_context else None
            request.turn = self._sessions.begin_turn(
                request.session_params, request.rids[0], request.input_ids, bos, joints
            )
            if request.turn.parent is not None:
                request.extras = msgspec.structs.replace(request.extras, goes_on=True)
            await turns.spend(request.turn.prompt_len)

    async def _put_contexts_before(self, requests: Sequence[GenerateRequest]) -> None:
        """Make whole prompts of those that go on from the context of their session."""
        turns = Turns(TOKENS_PER_TURN)
        for request in requests:
            if request.turn is not None:
                request.input_ids = request.turn.prompt()
                await turns.spend(len(request.input_ids))

    async def _tokenize_one_request(self, request: GenerateRequest) -> SamplingParams:
        """Check an encoded request, and return its sampling parameters as they fit into the context; raises
        :class:`BadRequest` if a limit that depends on the prompt is exceeded."""
        for _ in self._limits.check_prompt(request):
            await asyncio.sleep(0)
        params = self._limits.fit_into_context(request)
        if self._reasoning is not None:
            bound_thoughts(request, self._reasoning)
        return params


def bound_thoughts(request: GenerateRequest, reasoning: ReasoningMarkers) -> None:
    """Add the thinking markers to a complete request if it limits its thoughts or has stop strings."""
    params = request.sampling_params
    hide_stops = request.stops_in_answer and params.has_text_stops
    if params.thinking_token_budget is None and not hide_stops:
        return
    assert request.input_ids is not None, "encoded"
    begun = request.begins_in_thoughts
    if begun is None:
        begun = reasoning.begins_inside(request.input_ids)
    request.thoughts = reasoning.bounded(begun=begun, triggers=request.call_triggers, hide_stops=hide_stops)
