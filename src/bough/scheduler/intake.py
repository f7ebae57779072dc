"""From messages to requests: everything about a request is checked here, whatever process sent it."""

from __future__ import annotations

import random
import time
from collections.abc import Container, Iterable

import numpy as np
from msgspec.structs import replace

from bough.config.server_args import ServerArgs
from bough.constrained.base import MaskWords
from bough.constrained.masks import mask_of
from bough.errors import BadRequest
from bough.ipc.messages import TokenizedGenerateReqInput
from bough.model_executor.worker_info import WorkerInfo
from bough.sampling.bad_words import check_sequences
from bough.scheduler.answer_start import AnswerStart
from bough.scheduler.deltas import PROMPT_TAIL_TOKENS
from bough.scheduler.req import UNLIMITED, Pooling, Req
from bough.scheduler.text_stops import TextStops
from bough.scheduler.thinking_limit import ThinkingLimit
from bough.step_plan import IntArray
from bough.tokenization.tokenizer import Tokenizer

WHOLE_ANSWER_INTERVAL = 64
"""Tokens per delta of a request that does not stream: keeps its detokenisation spread out and its state fresh."""


def without_padding(prompt: IntArray, padding_id: int) -> IntArray:
    """A prompt ``[n]`` up to its last token that is no padding; of one that is nothing else, the first token."""
    others = np.flatnonzero(prompt != padding_id)
    return prompt[: int(others[-1]) + 1 if len(others) else 1]


class RequestIntake:
    """Makes requests of messages for the replica ``dp_rank``, if there are several; ``rng`` draws the seeds of those
    that bring none, unless inference is deterministic."""

    def __init__(
        self,
        server_args: ServerArgs,
        info: WorkerInfo,
        tokenizer: Tokenizer | None,
        eos_token_ids: Iterable[int],
        rng: random.Random,
        dp_rank: int | None = None,
    ) -> None:
        self._stream_interval = server_args.stream_interval
        self._disable_jumps = server_args.disable_jump_forward
        self._info = info
        self._tokenizer = tokenizer
        self._eos_token_ids = frozenset(eos_token_ids)
        self._rng = rng
        self._dp_rank = dp_rank
        self._default_seed = server_args.random_seed if server_args.enable_deterministic_inference else None
        self._next_order = 0

    def requests_of(
        self, message: TokenizedGenerateReqInput, pooling: Pooling | None, alive: Container[str]
    ) -> list[Req]:
        """Return one request per parallel sample; ``pooling`` is wanted of the prompt if it is a vector, ids ``alive``
        are taken. Raises :class:`BadRequest`, naming the field at fault."""
        prompt = self._check_prompt(message, alive)
        self._check_thoughts(message)
        self._check_routing(message.extras.routed_experts_from, len(prompt))
        prompt_tokens = len(prompt)
        self._check_pooling(pooling, prompt_tokens)
        if pooling is not None and self._info.padding_id is not None:
            prompt = without_padding(prompt, self._info.padding_id)
        params, banned = message.sampling_params, message.banned_sequences
        if bool(banned) != bool(params.bad_words):
            raise BadRequest("bad_words have to come with their tokens", param="bad_words")
        check_sequences(banned, self._info.vocab_size)
        allowed = None if params.allowed_token_ids is None else mask_of(params.allowed_token_ids, self._info.vocab_size)
        return [
            self._make_req(message, index, prompt, prompt_tokens, pooling, allowed)
            for index in range(len(message.rids))
        ]

    def _check_prompt(self, message: TokenizedGenerateReqInput, alive: Container[str]) -> IntArray:
        if len(message.input_ids) % 4:
            raise BadRequest("input_ids are not a whole number of int32 values", param="input_ids")
        prompt = np.frombuffer(message.input_ids, dtype="<i4").astype(np.int32)
        if len(prompt) == 0:
            raise BadRequest("the prompt is empty", param="input_ids")
        if len(prompt) > self._info.max_req_input_len:
            raise BadRequest(
                f"the prompt has {len(prompt)} tokens, and at most {self._info.max_req_input_len} are possible",
                param="input_ids",
                code="context_length_exceeded",
            )
        if int(prompt.min()) < 0 or int(prompt.max()) >= self._info.vocab_size:
            raise BadRequest(f"input_ids must be in [0, {self._info.vocab_size})", param="input_ids")
        if len(set(message.rids)) != len(message.rids) or len(message.rids) != message.sampling_params.n:
            raise BadRequest("rids must be n different ids", param="rid")
        if any(rid in alive for rid in message.rids):
            raise BadRequest("a request with this rid is running", param="rid")
        wanted = message.token_ids_logprob or ()
        if any(not 0 <= token < self._info.vocab_size for token in wanted):
            raise BadRequest(f"token_ids_logprob must be in [0, {self._info.vocab_size})", param="token_ids_logprob")
        if not 0 <= message.top_logprobs_num <= self._info.vocab_size:
            raise BadRequest(f"top_logprobs must be in [0, {self._info.vocab_size}]", param="top_logprobs_num")
        message.sampling_params.validate(self._info.vocab_size, tag_is_ours=True)
        return prompt

    def _check_pooling(self, pooling: Pooling | None, prompt_len: int) -> None:
        dim = self._info.embedding_dim
        if pooling is None:
            if dim is not None:
                raise BadRequest("this model makes embeddings or class scores, and does not generate text")
            return
        if dim is None:
            raise BadRequest("this model generates text, and does not make embeddings or class scores")
        if pooling.dimensions is not None and not 1 <= pooling.dimensions <= dim:
            raise BadRequest(f"dimensions must be in [1, {dim}]", param="dimensions")
        if pooling.token_types is not None and len(pooling.token_types) != prompt_len:
            raise BadRequest("token_types must have one entry per token", param="input_ids")

    def _check_routing(self, start: int | None, prompt_len: int) -> None:
        if start is None:
            return
        if not self._info.expert_share:
            raise BadRequest("return_routed_experts: the model has no experts", param="return_routed_experts")
        if not self._info.keeps_experts:
            raise BadRequest(
                "return_routed_experts: the server was started without --enable-return-routed-experts",
                param="return_routed_experts",
            )
        if start > prompt_len:
            raise BadRequest(
                f"routed_experts_start_len must be in [0, {prompt_len}], the prompt's length",
                param="routed_experts_start_len",
            )

    def _check_thoughts(self, message: TokenizedGenerateReqInput) -> None:
        params, markers, name = message.sampling_params, message.thoughts, "thinking_token_budget"
        if (params.thinking_token_budget is None) is not (markers is None) and not (markers and markers.hide_stops):
            raise BadRequest(f"{name} has to come with the marks of thoughts", param=name)
        if markers is None or params.thinking_token_budget is None:
            return
        if self._tokenizer is None:
            raise BadRequest(f"{name} needs a tokenizer, and the server runs without one", param=name)
        forced = (*markers.close, *markers.behind, *markers.at_last)
        if not (markers.start and markers.close and all(0 <= token < self._info.vocab_size for token in forced)):
            raise BadRequest(f"{name}: the marks of thoughts have to be tokens of the vocabulary", param=name)
        allowed = params.allowed_token_ids
        if allowed is not None and not set(allowed).issuperset(markers.close):
            raise BadRequest(
                f"{name}: allowed_token_ids has not all of the tokens that end thoughts, which are "
                f"{', '.join(map(str, markers.close))}",
                param=name,
            )

    def _make_req(
        self,
        message: TokenizedGenerateReqInput,
        index: int,
        prompt: IntArray,
        prompt_tokens: int,
        pooling: Pooling | None,
        allowed: MaskWords | None,
    ) -> Req:
        params, banned, logprobs = message.sampling_params, message.banned_sequences, message.return_logprob
        wants_experts = message.extras.routed_experts_from is not None
        seed = self._default_seed if params.sampling_seed is None else params.sampling_seed
        wanted = UNLIMITED if params.max_new_tokens is None else params.max_new_tokens
        ends = frozenset(params.stop_token_ids)
        start, length, now = message.logprob_start_len if logprobs else -1, len(prompt), time.monotonic()
        created = message.arrival_time
        interval = params.stream_interval or self._stream_interval
        req = Req(
            rid=message.rids[index],
            prompt=prompt,
            prompt_tokens=prompt_tokens,
            sampling_params=params,
            seed=self._rng.getrandbits(63) if seed is None else seed + index,
            max_new_tokens=min(wanted, self._info.max_req_len - length),
            stop_token_ids=ends if params.ignore_eos else ends | self._eos_token_ids,
            extra_ends=tuple(
                token for token in params.stop_token_ids if token not in self._eos_token_ids and token >= 0
            ),
            stream=message.stream,
            send_interval=interval if message.stream else WHOLE_ANSWER_INTERVAL,
            extras=replace(message.extras, routed_dp_rank=self._dp_rank),
            order=self._next_order,
            arrival_time=now,
            created_time=now if created is None else min(created, now),
            return_logprob=logprobs,
            top_logprobs_num=message.top_logprobs_num if logprobs else 0,
            token_ids_logprob=tuple(message.token_ids_logprob or ()) if logprobs else (),
            logprob_next=length if start < 0 else min(start, length),
            pooling=pooling,
            # A logprob can only be given for a token that was sampled, and one that was not is banned by nothing.
            # Experts are those of tokens that were computed, which forced ones at the end of an answer are not.
            jumps=not (logprobs or self._disable_jumps or allowed is not None or banned or wants_experts),
            allowed=allowed,
            banned_sequences=banned,
            text_stops=self._text_stops(message, prompt),
            thinking=self._thinking_limit(message),
        )
        self._next_order += 1
        return req

    def _text_stops(self, message: TokenizedGenerateReqInput, prompt: IntArray) -> TextStops | None:
        params, thoughts = message.sampling_params, message.thoughts
        if not params.has_text_stops:
            return None
        if self._tokenizer is None:
            raise BadRequest("stop strings need a tokenizer, and the server runs without one", param="stop")
        hides = thoughts is not None and thoughts.hide_stops and thoughts.start and all(thoughts.ends)
        start = AnswerStart(thoughts, self._tokenizer.id_to_piece_bytes) if thoughts is not None and hides else None
        return TextStops(self._tokenizer, prompt[-PROMPT_TAIL_TOKENS:].tolist(), params, start)

    def _thinking_limit(self, message: TokenizedGenerateReqInput) -> ThinkingLimit | None:
        params = message.sampling_params
        if message.thoughts is None or params.thinking_token_budget is None:
            return None
        assert self._tokenizer is not None, "checked"
        return ThinkingLimit(
            params.thinking_token_budget,
            message.thoughts,
            self._tokenizer.id_to_piece_bytes,
            bare=params.has_grammar or params.allowed_token_ids is not None,
        )
