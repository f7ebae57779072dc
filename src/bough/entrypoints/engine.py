"""The engine in the caller's process: no HTTP, a guest that leaves no trace."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, ClassVar, TypeVar, Union

from bough.config.server_args import ServerArgs
from bough.entrypoints.engine_parts import END_OF_STREAM, EngineParts
from bough.entrypoints.engine_weights import WeightMethods
from bough.entrypoints.further_keywords import check_keywords
from bough.entrypoints.generate_arguments import generation_request
from bough.entrypoints.launch import SCHEDULER_MODULE, LaunchPlan
from bough.entrypoints.vector_arguments import score_args, vector_request
from bough.errors import ConfigError, RequestFailed
from bough.ipc.messages import ControlReply, PauseMode
from bough.managers.io_struct import GenerateReqInput
from bough.managers.scoring import ScoreResult
from bough.managers.server_info import model_info, server_info
from bough.managers.tokenizer_manager import TokenizerManager
from bough.sampling.sampling_params import SamplingParams

RPC_TIMEOUT_SECONDS = 600.0
"""How long a call of a scheduler's method may take; saving a large model takes minutes."""

T = TypeVar("T")
OneOrMany = Union[T, Sequence[T]]  # noqa: UP007 (evaluated on Python 3.10)
SamplingParamsLike = Union[dict[str, Any], SamplingParams]  # noqa: UP007
EncodePrompt = Union[str, Sequence[Union[str, Sequence[str]]]]  # noqa: UP007


class Engine(WeightMethods):
    """Generates text in this process, with a scheduler and a detokenizer as its children.

    Takes the options of :class:`~bough.config.server_args.ServerArgs` as keywords (``log_level`` defaults to
    ``"error"``), or a ready ``server_args``. Methods may be called from any thread, also inside a running event loop;
    the ``async_`` ones from any event loop. ``Engine`` never touches signal handlers, the root logger, the
    environment or an event loop of its host. If a child dies, pending and later calls raise :class:`EngineDead`.

    A context manager; without it, :meth:`shutdown` (or the garbage collector, or the end of the program) ends it.

    Raises:
        ConfigError: if an option is wrong.
        StartupError: if the engine cannot start.
    """

    scheduler_module: ClassVar[str] = SCHEDULER_MODULE
    """Main module of the scheduler process; a subclass may replace it."""

    def __init__(self, server_args: ServerArgs | None = None, **options: Any) -> None:
        if isinstance(server_args, str):
            raise ConfigError(f"a model is given by its keyword: Engine(model_path={server_args!r})")
        if server_args is None:
            server_args = ServerArgs.of_keywords({"log_level": "error", **options})
        elif options:
            raise ConfigError(f"give either server_args or single options, not both ({', '.join(sorted(options))})")
        if server_args.otlp_traces_endpoint is not None:
            raise ConfigError(
                "otlp_traces_endpoint is for servers, whose HTTP requests are traced: Runtime is one",
                param="otlp_traces_endpoint",
            )
        plan = LaunchPlan.make(server_args, scheduler_module=self.scheduler_module)
        self.server_args = plan.server_args
        super().__init__(EngineParts(plan))
        self._finalizer = weakref.finalize(self, self._parts.close)

    # --- generating -----------------------------------------------------------------------------------------------

    def generate(
        self,
        prompt: OneOrMany[str] | None = None,
        sampling_params: OneOrMany[SamplingParamsLike] | None = None,
        input_ids: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
        return_logprob: OneOrMany[bool] = False,
        logprob_start_len: OneOrMany[int] | None = None,
        top_logprobs_num: OneOrMany[int] | None = None,
        token_ids_logprob: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
        stream: bool = False,
        rid: OneOrMany[str] | None = None,
        priority: int | None = None,
        extra_key: OneOrMany[str] | None = None,
        return_text_in_logprobs: bool = False,
        *,
        cache_salt: OneOrMany[str] | None = None,
        session_params: OneOrMany[dict[str, Any]] | None = None,
        **others: Any,
    ) -> Any:
        """Generate from one prompt or several; the arguments are the fields of ``POST /generate``.

        Args:
            others: further keywords of SGLang's, refused where they ask for something, as ``/generate`` does.

        Returns:
            For one prompt, a dictionary with ``text``, ``output_ids`` and ``meta_info``; a list of them for a list of
            prompts or ``n > 1``. With ``stream``, an iterator of such dictionaries, each with all the text so far
            (only what is new with ``incremental_streaming_output``); several outputs have an ``index``. Leaving the
            iterator early ends the request.

        Raises:
            BadRequest: a ``ValueError``; an argument is wrong. While streaming, with the first item.
            Overloaded, RequestFailed: if the engine cannot take or finish the request.
            EngineDead: if the engine was shut down or a part of it has died.
            TypeError: if there is no such keyword.
        """
        check_keywords(self.generate, others, session_params=session_params)
        request = generation_request(
            text=prompt,
            input_ids=input_ids,
            sampling_params=sampling_params,
            rid=rid,
            return_logprob=return_logprob,
            logprob_start_len=logprob_start_len,
            top_logprobs_num=top_logprobs_num,
            token_ids_logprob=token_ids_logprob,
            return_text_in_logprobs=return_text_in_logprobs,
            stream=stream,
            priority=priority,
            extra_key=extra_key,
            cache_salt=cache_salt,
            session_params=session_params,
        )
        if stream:
            return self._stream(request)
        return self._parts.loop.wait(self._parts.submit(request))

    async def async_generate(
        self,
        prompt: OneOrMany[str] | None = None,
        sampling_params: OneOrMany[SamplingParamsLike] | None = None,
        input_ids: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
        return_logprob: OneOrMany[bool] = False,
        logprob_start_len: OneOrMany[int] | None = None,
        top_logprobs_num: OneOrMany[int] | None = None,
        token_ids_logprob: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
        stream: bool = False,
        rid: OneOrMany[str] | None = None,
        priority: int | None = None,
        extra_key: OneOrMany[str] | None = None,
        return_text_in_logprobs: bool = False,
        *,
        cache_salt: OneOrMany[str] | None = None,
        session_params: OneOrMany[dict[str, Any]] | None = None,
        **others: Any,
    ) -> Any:
        """The same as :meth:`generate` for coroutines; with ``stream`` the result is an asynchronous iterator.

        Cancelling the caller ends the request.
        """
        check_keywords(self.async_generate, others, session_params=session_params)
        request = generation_request(
            text=prompt,
            input_ids=input_ids,
            sampling_params=sampling_params,
            rid=rid,
            return_logprob=return_logprob,
            logprob_start_len=logprob_start_len,
            top_logprobs_num=top_logprobs_num,
            token_ids_logprob=token_ids_logprob,
            return_text_in_logprobs=return_text_in_logprobs,
            stream=stream,
            priority=priority,
            extra_key=extra_key,
            cache_salt=cache_salt,
            session_params=session_params,
        )
        if stream:
            return self._async_stream(request)
        return await self._parts.loop.wait_async(self._parts.submit(request))

    def _stream(self, request: GenerateReqInput) -> Iterator[dict[str, Any]]:
        parts = self._parts
        events = parts.open_stream(request)
        try:
            while (event := parts.loop.wait(parts.next_event(events))) is not END_OF_STREAM:
                yield event
        finally:
            parts.close_stream(events)

    async def _async_stream(self, request: GenerateReqInput) -> AsyncIterator[dict[str, Any]]:
        parts = self._parts
        events = parts.open_stream(request)
        try:
            while (event := await parts.loop.wait_async(parts.next_event(events))) is not END_OF_STREAM:
                yield event
        finally:
            parts.close_stream(events)

    # --- embedding and scoring ------------------------------------------------------------------------------------

    def encode(
        self,
        prompt: EncodePrompt | None = None,
        dimensions: int | None = None,
        rid: OneOrMany[str] | None = None,
        *,
        input_ids: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
        truncate_prompt_tokens: int | None = None,
        priority: int | None = None,
        **others: Any,
    ) -> Any:
        """Embeddings, or a classifier's scores (logits), of one text or several; the fields are those of ``/encode``.

        Args:
            prompt: a text, or a list of texts or of pairs of texts; or ``None``, with ``input_ids``.
            dimensions: how many numbers of an embedding to return, for models trained for that.
            rid: id of the request, or one each.
            input_ids: token ids of one text, or of several.
            truncate_prompt_tokens: cut what is longer at its end; -1: to what the model takes.
            priority: higher goes first.
            others: further keywords of SGLang's, refused where they ask for something, as ``/encode`` does.

        Returns:
            A dictionary with ``embedding``, a list of numbers, and ``meta_info``; a list of them for a list of texts.

        Raises:
            BadRequest: a ``ValueError``; an argument is wrong, or the model makes no embeddings.
            Overloaded, RequestFailed: if the engine cannot take or finish the request.
            EngineDead: if the engine was shut down or a part of it has died.
            TypeError: if there is no such keyword.
        """
        check_keywords(self.encode, others)
        request = vector_request(
            text=prompt,
            input_ids=input_ids,
            dimensions=dimensions,
            truncate_prompt_tokens=truncate_prompt_tokens,
            rid=rid,
            priority=priority,
        )
        return self._parts.loop.wait(self._parts.submit_vectors(request))

    async def async_encode(
        self,
        prompt: EncodePrompt | None = None,
        dimensions: int | None = None,
        rid: OneOrMany[str] | None = None,
        *,
        input_ids: OneOrMany[Sequence[int]] | Sequence[int] | None = None,
        truncate_prompt_tokens: int | None = None,
        priority: int | None = None,
        **others: Any,
    ) -> Any:
        """The same as :meth:`encode` for coroutines. Cancelling the caller ends the request."""
        check_keywords(self.async_encode, others)
        request = vector_request(
            text=prompt,
            input_ids=input_ids,
            dimensions=dimensions,
            truncate_prompt_tokens=truncate_prompt_tokens,
            rid=rid,
            priority=priority,
        )
        return await self._parts.loop.wait_async(self._parts.submit_vectors(request))

    def rerank(self, prompt: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """How relevant documents are, by a cross-encoder or a language model that was trained for it.

        Args:
            prompt: pairs of a query and a document. A cross-encoder's documents are cut at their end if too long.

        Returns:
            Per pair a dictionary with the relevance under ``embedding``, and ``meta_info``.

        Raises:
            BadRequest, Overloaded, RequestFailed, EngineDead: see :meth:`encode`.
        """
        return self._parts.loop.wait(self._parts.submit_rerank(prompt))

    def score(
        self,
        query: str | Sequence[int],
        items: str | Sequence[str] | Sequence[Sequence[int]],
        label_token_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        apply_softmax: bool = False,
        item_first: bool = False,
        *,
        temperature: float = 1.0,
    ) -> ScoreResult:
        """Scores of items for a query: see :func:`bough.managers.scoring.score`.

        Raises:
            BadRequest, Overloaded, RequestFailed, EngineDead: see :meth:`encode`.
        """
        args = score_args(query, items, label_token_ids)
        options = {"apply_softmax": apply_softmax, "item_first": item_first, "temperature": temperature}
        return self._parts.loop.wait(self._parts.submit_score(*args, **options))

    async def async_score(
        self,
        query: str | Sequence[int],
        items: str | Sequence[str] | Sequence[Sequence[int]],
        label_token_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        apply_softmax: bool = False,
        item_first: bool = False,
        *,
        temperature: float = 1.0,
    ) -> ScoreResult:
        """The same as :meth:`score` for coroutines."""
        args = score_args(query, items, label_token_ids)
        options = {"apply_softmax": apply_softmax, "item_first": item_first, "temperature": temperature}
        return await self._parts.loop.wait_async(self._parts.submit_score(*args, **options))

    # --- sessions -------------------------------------------------------------------------------------------------

    def open_session(
        self,
        capacity_of_str_len: int = 0,
        session_id: str | None = None,
        streaming: bool = False,
        timeout: float | None = None,
    ) -> str:
        """Begin a session, to which requests belong by their ``session_params``; returns its id.

        Args:
            capacity_of_str_len: most tokens that it may hold; 0 for as many as the engine allows.
            session_id: its name; made up if not given.
            streaming: whether it is one conversation, of which each request goes on from the one before.
            timeout: seconds without a request after which it is closed; by default ``session_timeout``.

        Raises:
            BadRequest: if the name is in use, or the timeout longer than ``session_timeout``.
            Overloaded: if there are too many sessions.
        """

        async def open_it() -> str:
            return self._parts.manager.sessions.open(
                capacity_of_str_len, session_id, is_linear=streaming, timeout=timeout
            )

        return self._parts.loop.call(open_it())

    def close_session(self, session_id: str) -> None:
        """End a session and abort its running requests; one that does not exist is nobody's error."""

        async def close_it() -> None:
            self._parts.manager.sessions.close(session_id)

        self._parts.loop.call(close_it())

    # --- control --------------------------------------------------------------------------------------------------

    def flush_cache(self) -> ControlReply:
        """Forget all cached prefixes; ``success`` is false if requests are running."""
        return self._parts.loop.call(self._parts.manager.flush_cache())

    def abort_request(self, rid: str = "", abort_all: bool = False) -> None:
        """End every request whose id starts with ``rid``, or all of them; their callers get what there is so far."""

        async def abort() -> None:
            self._parts.manager.abort_request(rid, abort_all)

        self._parts.loop.call(abort())

    abort = abort_request

    def pause_generation(self, mode: PauseMode = "abort") -> None:
        """Compute nothing until :meth:`continue_generation`; see :meth:`TokenizerManager.pause_generation`."""
        self._parts.loop.call(self._parts.manager.pause_generation(mode))

    def continue_generation(self) -> None:
        """Go on after :meth:`pause_generation`."""
        self._parts.loop.call(self._parts.manager.continue_generation())

    def get_server_info(self) -> dict[str, Any]:
        """Resolved options, what the scheduler reported at its start, and its state now."""
        info = self._parts.loop.call(server_info(self._parts.manager))
        return {**info, "startup_time": self._parts.startup_seconds}

    def get_model_info(self) -> dict[str, Any]:
        """What model this is."""
        return model_info(self._parts.manager)

    def get_all_child_pids(self) -> list[int]:
        """Process ids of scheduler and detokenizer."""
        return self._parts.pids

    def collective_rpc(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a named method of the scheduler, of which an engine has one.

        Args:
            method: one of the scheduler's control handlers.
            parameters: plain values.

        Returns:
            What the method returned.

        Raises:
            RequestFailed: if the method failed, or did not answer in time.
            EngineDead: if the engine is or becomes dead.
        """
        reply = self._parts.loop.call(self._parts.manager.control.call(method, parameters, RPC_TIMEOUT_SECONDS))
        if not reply.success:
            raise RequestFailed(f"{method}: {reply.message}")
        return reply.data

    @property
    def tokenizer_manager(self) -> TokenizerManager:
        """The front of the engine, for what has no method here. Its coroutines belong to the engine's own loop."""
        return self._parts.manager

    # --- the end --------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """End the engine; returns when its processes and threads are gone. Doing it twice does nothing."""
        self._finalizer()
        self._parts.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
