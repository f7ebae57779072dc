"""What a request may ask of this model, checked before anything is sent to the engine."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from bough.errors import BadRequest
from bough.managers.io_struct import GenerateRequest
from bough.sampling.sampling_params import SamplingParams

MAX_STREAM_INTERVAL = 2**31 - 1

IDS_PER_TURN = 32_768
"""Token ids checked between two turns of the event loop: about 0.4 ms."""


@dataclass(frozen=True)
class RequestLimits:
    """The limits of one server.

    Attributes:
        vocab_size: token ids are less than this.
        context_len: most tokens of one request, prompt and output together.
        max_prompt_tokens: most tokens of a prompt.
        has_tokenizer: whether prompts may be text, and outputs have text.
    """

    vocab_size: int
    context_len: int
    max_prompt_tokens: int
    has_tokenizer: bool

    def check_params(self, params: SamplingParams) -> None:
        """What can be said about sampling parameters alone.

        Raises:
            BadRequest: naming the field at fault.
        """
        params.validate(self.vocab_size)
        if params.stream_interval is not None and params.stream_interval > MAX_STREAM_INTERVAL:
            name = "sampling_params.stream_interval"
            raise BadRequest(f"{name} must be at most {MAX_STREAM_INTERVAL}", param=name)
        if params.has_text_stops and not self.has_tokenizer:
            raise BadRequest("stop strings and patterns need a tokenizer, and this server has none", param="stop")
        grammar = params.grammar
        if grammar is not None and not self.has_tokenizer:
            name = f"sampling_params.{grammar.kind}"
            raise BadRequest(f"{name} needs a tokenizer, and this server has none", param=name)

    def check(self, request: GenerateRequest) -> None:
        """What can be said about the rest of a request before its prompt is encoded.

        Raises:
            BadRequest: naming the field at fault.
        """
        if not self.has_tokenizer:
            if request.text is not None:
                raise BadRequest(
                    f"{request.prompt_param}: this server has no tokenizer; send token ids", param=request.prompt_param
                )
            if request.return_text_in_logprobs:
                raise BadRequest("return_text_in_logprobs needs a tokenizer", param="return_text_in_logprobs")
        self.check_token_ids(request.token_ids_logprob or (), "token_ids_logprob")

    def check_token_ids(self, ids: Sequence[int], param: str) -> None:
        """Raise :class:`BadRequest` unless all are ids of this model's vocabulary."""
        if not ids:
            return
        # Seen as unsigned numbers, negative ones are too large: one pass instead of two over what may be long.
        largest = max(memoryview(ids).cast("B").cast("I") if isinstance(ids, array) else ids)
        if largest >= self.vocab_size or (not isinstance(ids, array) and min(ids) < 0):
            wrong = next(token for token in ids if not 0 <= token < self.vocab_size)
            raise BadRequest(f"{param} must hold token ids in [0, {self.vocab_size}), got {wrong}", param=param)

    async def check_prompt(self, request: GenerateRequest) -> None:
        """What can be said once the prompt is encoded.

        Raises:
            BadRequest: naming the field at fault.
        """
        ids = request.input_ids
        if not ids:
            raise BadRequest(
                f"{request.prompt_param} is empty: there are no tokens to go on from", param=request.prompt_param
            )
        if request.text is None and not request.ids_are_ours:
            if len(ids) <= IDS_PER_TURN:
                self.check_token_ids(ids, request.prompt_param)
            else:
                for start in range(0, len(ids), IDS_PER_TURN):
                    self.check_token_ids(ids[start : start + IDS_PER_TURN], request.prompt_param)
                    await asyncio.sleep(0)
        if request.return_logprob and request.logprob_start_len >= len(ids):
            raise BadRequest(
                f"logprob_start_len ({request.logprob_start_len}) must be less than the number of prompt tokens "
                f"({len(ids)})",
                param="logprob_start_len",
            )

    def fit_into_context(self, request: GenerateRequest) -> SamplingParams:
        """Sampling parameters whose ``max_new_tokens`` is a number that fits, prompt and output together.

        Raises:
            BadRequest: if there is no room, or not for as much as the client insists on.
        """
        params, num_prompt_tokens = request.sampling_params, len(request.input_ids or ())
        room = self.context_len - num_prompt_tokens
        wanted = params.max_new_tokens
        if num_prompt_tokens > self.max_prompt_tokens or room < min(1, 1 if wanted is None else wanted):
            raise context_length_exceeded(self.context_len, num_prompt_tokens, None, request.prompt_param)
        if wanted is not None and wanted <= room:
            return params
        if wanted is not None and request.exact_max_new_tokens is not None:
            raise context_length_exceeded(self.context_len, num_prompt_tokens, wanted, request.exact_max_new_tokens)
        return msgspec.structs.replace(params, max_new_tokens=room, min_new_tokens=min(params.min_new_tokens, room))


def context_length_exceeded(context_len: int, prompt_tokens: int, max_tokens: int | None, param: str) -> BadRequest:
    """The error for a request that does not fit, worded the way clients have learnt to parse."""
    if max_tokens is None:
        request = f"your prompt has {prompt_tokens} tokens, which leaves no room for an answer"
    else:
        request = (
            f"you requested {prompt_tokens + max_tokens} tokens ({prompt_tokens} in the prompt, "
            f"{max_tokens} in the completion)"
        )
    return BadRequest(
        f"This model's maximum context length is {context_len} tokens. However, {request}. Please shorten the prompt"
        f"{'' if max_tokens is None else ' or ask for fewer tokens'}.",
        param=param,
        code="context_length_exceeded",
    )
