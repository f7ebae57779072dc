"""Limits of requests, checked before anything is sent to the engine."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bough import ceilings
from bough.config.model_config import ModelConfig
from bough.config.pooling import PoolingConfig
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, PayloadTooLarge
from bough.managers.embedding_struct import EmbeddingRequest
from bough.managers.io_struct import GenerateRequest
from bough.managers.reasoning_span import ReasoningMarkers
from bough.sampling.sampling_params import ClientName, GrammarSpec, SamplingParams, in_sampling_params, json_problem
from bough.tokenization.tokenizer import Tokenizer

MAX_STREAM_INTERVAL = 2**31 - 1

IDS_PER_TURN = 32_768
"""Token ids checked between two turns of the event loop: about 0.4 ms."""

WORK_PER_TURN = 8192
"""Characters and entries of parameters looked at between two turns of the event loop: at most about a millisecond."""

WORK_PER_REQUEST = 256
"""Work of a request besides."""


@dataclass(frozen=True)
class RequestLimits:
    """The limits of one server.

    Attributes:
        args: options of the server, of which some are limits.
        vocab_size: token ids are less than this.
        context_len: most tokens of one request, prompt and output together.
        max_prompt_tokens: most tokens of a prompt.
        has_tokenizer: whether prompts may be text, and outputs have text.
        pooling: what the model makes of a prompt; ``None`` if it generates text.
        marks_thoughts: whether it is known how the model marks its thoughts, so that they can be bounded.
    """

    args: ServerArgs
    vocab_size: int
    context_len: int
    max_prompt_tokens: int
    has_tokenizer: bool
    pooling: PoolingConfig | None = None
    marks_thoughts: bool = False

    @classmethod
    def of_server(
        cls,
        args: ServerArgs,
        model_config: ModelConfig,
        scheduler_info: Mapping[str, Any],
        tokenizer: Tokenizer | None,
        reasoning: ReasoningMarkers | None,
    ) -> RequestLimits:
        """The limits that follow from options, model, and what the scheduler reports (all of it optional)."""
        context_len = min(model_config.context_len, scheduler_info.get("max_req_len", model_config.context_len))
        return cls(
            args=args,
            vocab_size=scheduler_info.get("vocab_size", model_config.vocab_size),
            context_len=context_len,
            max_prompt_tokens=min(scheduler_info.get("max_req_input_len", context_len), context_len),
            has_tokenizer=tokenizer is not None,
            pooling=model_config.pooling,
            marks_thoughts=reasoning is not None,
        )

    def check_each(self, requests: Sequence[GenerateRequest]) -> Iterator[int]:
        """Check the requests of a call before their prompts are encoded; parameters that several share, once.

        Yields the work that was done, for :data:`WORK_PER_TURN`; raises :class:`BadRequest` that names the field at
        fault.
        """
        for request in {id(request.sampling_params): request for request in requests}.values():
            self.check_params_of(request)
            yield work_of_params(request)
        for request in requests:
            self.check(request)
            yield WORK_PER_REQUEST + len(request.token_ids_logprob or ())

    def check_params_of(self, request: GenerateRequest) -> None:
        """The sampling parameters of a request; raises :class:`BadRequest`."""
        self.check_params(
            request.sampling_params,
            tag_is_ours=request.grammar_param is not None,
            grammar_param=request.grammar_param,
        )

    def check_params(
        self,
        params: SamplingParams,
        *,
        named: ClientName = in_sampling_params,
        tag_is_ours: bool = False,
        grammar_param: str | None = None,
    ) -> None:
        """Check sampling parameters on their own; raises :class:`BadRequest`. ``named`` gives the client's name for a
        field, ``grammar_param`` that of a grammar.

        A structural tag may be larger if it was made here (``tag_is_ours``).
        """
        params.validate(self.vocab_size, named=named, tag_is_ours=tag_is_ours)
        self._check_bound(named("n"), params.n, "max_parallel_samples")
        for name, given in ((named("stop"), params.stop), (named("stop_regex"), params.stop_regex)):
            self._check_bound(f"the number of entries of {name}", len(given), "max_stop_strings", name)
        if params.stream_interval is not None and params.stream_interval > MAX_STREAM_INTERVAL:
            name = named("stream_interval")
            raise BadRequest(f"{name} must be at most {MAX_STREAM_INTERVAL}", param=name)
        if params.thinking_token_budget is not None and not self.marks_thoughts:
            name = named("thinking_token_budget")
            raise BadRequest(
                f"{name}: it is not known how this model marks its thoughts, so that they cannot be bounded; leave it "
                "out, or have the server started with --reasoning-parser",
                param=name,
                code="unsupported_by_model",
            )
        grammar = params.grammar
        grammar_name = "" if grammar is None else grammar_param or named(grammar.kind)
        if not self.has_tokenizer:
            given_texts = (
                (named("stop"), params.stop),
                (named("stop_regex"), params.stop_regex),
                (named("bad_words"), params.bad_words),
                (grammar_name, grammar),
            )
            for name, given_text in given_texts:
                if given_text:
                    raise BadRequest(f"{name} needs a tokenizer, and this server has none", param=name)
        if grammar is not None and not (tag_is_ours and grammar.kind == "structural_tag"):
            self._check_grammar(grammar, grammar_name)

    def _check_grammar(self, grammar: GrammarSpec, name: str) -> None:
        """Bounds of what a client sends; a tag made of its tools and schema may be larger."""
        what = f"the size of {name} in bytes"
        self._check_bound(what, len(grammar.text.encode()), "max_grammar_size", name)
        if self.args.max_grammar_depth < ceilings.GRAMMAR_DEPTH and grammar.kind in ("json_schema", "structural_tag"):
            problem = json_problem(grammar.text, may_be_boolean=True, max_depth=self.args.max_grammar_depth)
            if problem is not None:
                raise BadRequest(f"{name} {problem} (--max-grammar-depth)", param=name, code="invalid_grammar")

    def check(self, request: GenerateRequest) -> None:
        """Check the rest of a request before its prompt is encoded; raises :class:`BadRequest`, naming
        the field at fault."""
        self._check_kind(request)
        rank = request.extras.routed_dp_rank
        if rank is not None and rank >= self.args.dp_size:
            raise BadRequest(
                f"routed_dp_rank must be in [0, {self.args.dp_size}), the number of replicas (--dp-size), got {rank}",
                param="routed_dp_rank",
            )
        if not self.has_tokenizer:
            if request.text is not None:
                raise BadRequest(
                    f"{request.prompt_param}: this server has no tokenizer; send token ids", param=request.prompt_param
                )
            if request.return_text_in_logprobs:
                raise BadRequest("return_text_in_logprobs needs a tokenizer", param="return_text_in_logprobs")
        self.check_token_ids(request.token_ids_logprob or (), "token_ids_logprob")
        what = "top_logprobs (alternatives per position)"
        self._check_bound(what, request.top_logprobs_num, "max_logprobs", "top_logprobs")

    def _check_bound(self, what: str, given: int, option: str, param: str | None = None) -> None:
        bound: int = getattr(self.args, option)
        if given > bound:
            flag = option.replace("_", "-")
            problem = f"{what} must be at most {bound} on this server (--{flag}), got {given}"
            raise BadRequest(problem, param=param or what)

    def require_generation(self) -> None:
        """Raise :class:`BadRequest` unless the model generates text."""
        if self.pooling is not None:
            kind = "scores classes" if self.pooling.is_classifier else "makes embeddings"
            raise BadRequest(f"this model {kind} and does not generate text", code="unsupported_by_model")

    def _check_kind(self, request: GenerateRequest) -> None:
        """Text is generated by one kind of model, and vectors are made by the other."""
        if not isinstance(request, EmbeddingRequest):
            self.require_generation()
            return
        pooling = self.pooling
        if pooling is None:
            raise BadRequest(
                "this model generates text and makes neither embeddings nor class scores; an embedding model does, or "
                "this one started with --is-embedding",
                code="unsupported_by_model",
            )
        if request.dimensions is not None:
            self._check_dimensions(request.dimensions, pooling)

    def _check_dimensions(self, dimensions: int, pooling: PoolingConfig) -> None:
        if pooling.is_classifier:
            raise BadRequest("dimensions is for embeddings, and this model scores classes", param="dimensions")
        if dimensions > pooling.dim:
            raise BadRequest(f"dimensions must be at most {pooling.dim}, got {dimensions}", param="dimensions")
        if dimensions == pooling.dim or pooling.matryoshka is True:
            return
        problem = None
        if not pooling.matryoshka:
            problem = (
                f"dimensions: this model's embeddings have {pooling.dim} numbers and cannot be shortened: its "
                f"config.json does not say is_matryoshka; if it was trained for that, start the server with "
                f"--json-model-override-args '{{\"is_matryoshka\": true}}'"
            )
        elif dimensions not in pooling.matryoshka:
            problem = f"dimensions must be one of {', '.join(map(str, pooling.matryoshka))}, got {dimensions}"
        if problem is not None:
            raise BadRequest(problem, param="dimensions")

    def check_token_ids(self, ids: Sequence[int], param: str) -> None:
        """Raise :class:`BadRequest` unless all are ids of this model's vocabulary."""
        if not ids:
            return
        # Seen as unsigned numbers, negative ones are too large: one pass instead of two over what may be long.
        largest = max(memoryview(ids).cast("B").cast("I") if isinstance(ids, array) else ids)
        if largest >= self.vocab_size or (not isinstance(ids, array) and min(ids) < 0):
            wrong = next(token for token in ids if not 0 <= token < self.vocab_size)
            raise BadRequest(f"{param} must hold token ids in [0, {self.vocab_size}), got {wrong}", param=param)

    def check_prompt(self, request: GenerateRequest) -> Iterator[None]:
        """Check a request once its prompt is encoded; yields where a long check may be interrupted. Raises
        :class:`BadRequest`, naming the field at fault."""
        ids = request.input_ids
        if not ids:
            raise BadRequest(
                f"{request.prompt_param} is empty: there are no tokens to go on from", param=request.prompt_param
            )
        if request.text is None and not request.ids_are_ours:
            for start in range(0, len(ids), IDS_PER_TURN):
                if start:
                    yield
                self.check_token_ids(ids[start : start + IDS_PER_TURN], request.prompt_param)
        if request.return_logprob and request.logprob_start_len >= len(ids):
            raise BadRequest(
                f"logprob_start_len ({request.logprob_start_len}) must be less than the number of prompt tokens "
                f"({len(ids)})",
                param="logprob_start_len",
            )

    def fit_into_context(self, request: GenerateRequest) -> SamplingParams:
        """Return sampling parameters with a ``max_new_tokens`` that fits into the context after the prompt; raises
        :class:`BadRequest` if the prompt leaves no room."""
        params, num_prompt_tokens = request.sampling_params, len(request.input_ids or ())
        room = self.context_len - num_prompt_tokens
        wanted = params.max_new_tokens
        if isinstance(request, EmbeddingRequest):
            if num_prompt_tokens > self.max_prompt_tokens:
                raise prompt_too_long(self.max_prompt_tokens, num_prompt_tokens, request.prompt_param)
            return params
        if num_prompt_tokens > self.max_prompt_tokens or room < min(1, 1 if wanted is None else wanted):
            raise context_length_exceeded(self.context_len, num_prompt_tokens, request.prompt_param)
        return _shortened(params, room)

    def fit_logprobs(
        self, requests: Sequence[GenerateRequest], fitted: Sequence[SamplingParams]
    ) -> Sequence[SamplingParams]:
        """Bound the logprobs of a call: outputs that would go on until the context is full end before.

        ``fitted`` are the parameters from :meth:`fit_into_context`, one per request. Raises :class:`PayloadTooLarge` if
        there were too many all the same.
        """
        most, entries, per_open_token = ceilings.LOGPROB_ENTRIES, 0, 0
        for request, params in zip(requests, fitted, strict=True):
            if not request.return_logprob:
                continue
            start = request.logprob_start_len
            positions = 0 if start < 0 else len(request.input_ids or ()) - start
            if request.sampling_params.max_new_tokens is None:
                per_open_token += _logprobs_per_position(request)
            else:
                positions += params.max_new_tokens or 0
            entries += _logprobs_per_position(request) * positions
        if entries + per_open_token > most:
            raise _too_many_logprobs(requests, entries + per_open_token)
        if not per_open_token:
            return fitted
        num_tokens = (most - entries) // per_open_token
        return [
            _shortened(params, num_tokens)
            if request.return_logprob and request.sampling_params.max_new_tokens is None
            else params
            for request, params in zip(requests, fitted, strict=True)
        ]


def work_of_params(request: GenerateRequest) -> int:
    """Amount of work to look at the parameters of a request, for :data:`WORK_PER_TURN`."""
    return WORK_PER_REQUEST + request.sampling_params.size


def _shortened(params: SamplingParams, num_tokens: int) -> SamplingParams:
    """Sampling parameters of an output that has so many tokens at most."""
    if params.max_new_tokens is not None and params.max_new_tokens <= num_tokens:
        return params
    fewest = min(params.min_new_tokens, num_tokens)
    return msgspec.structs.replace(params, max_new_tokens=num_tokens, min_new_tokens=fewest)


def _logprobs_per_position(request: GenerateRequest) -> int:
    """Logprobs of all outputs of a request together."""
    return len(request.rids) * (1 + request.top_logprobs_num + len(request.token_ids_logprob or ()))


def _too_many_logprobs(requests: Sequence[GenerateRequest], entries: int) -> PayloadTooLarge:
    largest = max(requests, key=_logprobs_per_position)
    num_ids, num_top = len(largest.token_ids_logprob or ()), largest.top_logprobs_num
    return PayloadTooLarge(
        f"the outputs of this request would have {entries} logprobs, and at most {ceilings.LOGPROB_ENTRIES} are "
        "allowed; ask for fewer outputs, tokens or alternatives, or for none of the prompt",
        param="token_ids_logprob" if num_ids > num_top else "top_logprobs_num" if num_top else None,
    )


def prompt_too_long(max_prompt_tokens: int, prompt_tokens: int, param: str) -> BadRequest:
    """The error for a text of which no vector can be made in one go."""
    return BadRequest(
        f"This model's maximum context length is {max_prompt_tokens} tokens. However, your text has {prompt_tokens} "
        f"tokens. Please shorten it, or have it cut with truncate_prompt_tokens.",
        param=param,
        code="context_length_exceeded",
    )


def context_length_exceeded(context_len: int, prompt_tokens: int, param: str) -> BadRequest:
    """Return the error for a prompt that does not fit, worded as existing clients parse it."""
    return BadRequest(
        f"This model's maximum context length is {context_len} tokens. However, your prompt has {prompt_tokens} "
        "tokens, which leaves no room for an answer. Please shorten the prompt.",
        param=param,
        code="context_length_exceeded",
    )
