"""The engine in the caller's process: no HTTP, a guest that leaves no trace."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Union

from bough.config.engine_args import LoadFormat
from bough.config.later import without_neutral_options
from bough.config.port_args import PortArgs
from bough.config.server_args import ServerArgs
from bough.entrypoints.further_keywords import check_generation_keywords, check_vector_keywords
from bough.entrypoints.generate_arguments import generation_request
from bough.entrypoints.launch import SCHEDULER_MODULE, LaunchPlan, _launch_subprocesses, watch_health
from bough.entrypoints.loop_thread import LoopThread
from bough.entrypoints.process_supervisor import ProcessSupervisor
from bough.entrypoints.vector_arguments import rerank_native, score_args, vector_request
from bough.errors import BadRequest, ConfigError, EngineDead, RequestFailed
from bough.ipc.channels import RpcClient, TokenizerChannels
from bough.ipc.messages import ControlReply, PauseMode
from bough.managers.embedding import encode_native
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import GenerateReqInput
from bough.managers.scoring import ScoreResult, score
from bough.managers.served_weights import DEFAULT_GROUP, GroupBackend, UpdateOptions, WeightUpdate, passing_file
from bough.managers.tokenizer_manager import TokenizerManager
from bough.observability.startup_timer import StartupTimer
from bough.sampling.sampling_params import SamplingParams

if TYPE_CHECKING:
    import torch

RPC_TIMEOUT_SECONDS = 600.0
"""How long a call of a scheduler's method may take; saving a large model takes minutes."""

LAST_WORDS_SECONDS = 1.0
"""How long calls that are failed by a shutdown may take to notice."""

T = TypeVar("T")
OneOrMany = Union[T, Sequence[T]]  # noqa: UP007 (evaluated on Python 3.10)
SamplingParamsLike = Union[dict[str, Any], SamplingParams]  # noqa: UP007
EncodePrompt = Union[str, Sequence[Union[str, Sequence[str]]]]  # noqa: UP007

_END: Any = object()


class EngineParts:
    """Everything that has to end with an :class:`Engine`. Knows nothing of it, so that it can be collected.

    Raises:
        StartupError: if the engine cannot start; nothing is left then.
    """

    def __init__(self, plan: LaunchPlan) -> None:
        timer = StartupTimer()
        self._owner_pid = os.getpid()
        self._close_lock = threading.RLock()  # a signal handler may close what its own thread is closing
        self._closed = False
        self._supervisor: ProcessSupervisor | None = None
        self._loop_thread: LoopThread | None = None
        self._channels: TokenizerChannels | None = None
        self._manager: TokenizerManager | None = None
        self._health_check: asyncio.Task[None] | None = None
        self._streams: set[AsyncGenerator[Any, None]] = set()
        self._port_args = PortArgs.create()
        self.rpc = RpcClient(self._port_args)
        try:
            self._supervisor = _launch_subprocesses(plan, self._port_args)
            tokenizer = chat_template = None
            if not plan.server_args.skip_tokenizer_init:
                from bough.tokenization.chat_template import load_chat_template
                from bough.tokenization.tokenizer import Tokenizer

                tokenizer = Tokenizer.from_pretrained(plan.local_args.tokenizer_path or plan.local_args.model_path)
                chat_template = load_chat_template(tokenizer, plan.server_args.chat_template)
            self._channels = TokenizerChannels(self._port_args)
            scheduler_info = self._supervisor.wait_until_ready(plan.server_args.startup_timeout)["scheduler"]
            self._manager = TokenizerManager(
                plan.server_args,
                plan.model_config,
                tokenizer,
                self._channels,
                scheduler_info,
                chat_template=chat_template,
            )
            self._loop_thread = LoopThread("bough-engine")
            self._loop_thread.call(self._start(self._manager))
            self._supervisor.watch(self._on_death)
            timer.end_phase("start")
            self.startup_seconds = timer.total
        except BaseException:
            self.close()
            raise

    @property
    def manager(self) -> TokenizerManager:
        """The front of the engine; to be used on :attr:`loop` only."""
        assert self._manager is not None
        return self._manager

    @property
    def loop(self) -> LoopThread:
        """Where the engine's coroutines run."""
        assert self._loop_thread is not None
        return self._loop_thread

    @property
    def pids(self) -> list[int]:
        """Process ids of the children."""
        assert self._supervisor is not None
        return self._supervisor.pids

    def close(self) -> None:
        """End everything and wait for it. Doing it twice does nothing; nor does doing it in a fork of the host."""
        if os.getpid() != self._owner_pid:
            return
        if self._loop_thread is not None and self._loop_thread.is_current:
            # The garbage collector may come by on any thread, and a thread cannot wait for its own end.
            threading.Thread(target=self.close, name="bough-close", daemon=True).start()
            return
        with self._close_lock:
            if self._closed:
                return
            self._closed = True
            self.rpc.fail(EngineDead("the engine was shut down"))
            try:
                self._end_loop()
            finally:  # whoever interrupts the wait leaves no process behind
                if self._supervisor is not None:
                    self._supervisor.stop()
                self.rpc.close()
                self._port_args.cleanup()

    def _end_loop(self) -> None:
        if self._loop_thread is not None:
            with contextlib.suppress(EngineDead):
                self._loop_thread.call(self._stop())
            self._loop_thread.close()
            if self.manager.prompt_encoder is not None:
                self.manager.prompt_encoder.join()
        elif self._channels is not None:
            self._channels.close()

    def submit(self, request: GenerateReqInput) -> concurrent.futures.Future[Any]:
        """Start a request that does not stream; its result is the answer."""
        return self.loop.submit(_whole(self.manager, request))

    def submit_vectors(self, request: EmbeddingReqInput) -> concurrent.futures.Future[Any]:
        """Start a request for vectors; its result is the answer."""
        return self.loop.submit(encode_native(self.manager, request))

    def submit_rerank(self, pairs: Sequence[Sequence[str]]) -> concurrent.futures.Future[list[dict[str, Any]]]:
        """Start to judge pairs; the result is one dictionary per pair."""
        return self.loop.submit(rerank_native(self.manager, pairs))

    def submit_score(self, *args: Any, **options: Any) -> concurrent.futures.Future[ScoreResult]:
        """Start to score items; the arguments are those of :func:`bough.managers.scoring.score`."""
        return self.loop.submit(score(self.manager, *args, **options))

    def open_stream(self, request: GenerateReqInput) -> AsyncGenerator[Any, None]:
        """The events of a request, for :meth:`next_event`; somebody has to call :meth:`close_stream` in the end."""
        events = self.manager.generate_request(request, "prompt")
        assert isinstance(events, AsyncGenerator)
        self._streams.add(events)
        return events

    def next_event(self, events: AsyncGenerator[Any, None]) -> concurrent.futures.Future[Any]:
        """The next event of a stream, or :data:`_END`."""
        return self.loop.submit(_next(events))

    def close_stream(self, events: AsyncGenerator[Any, None]) -> None:
        """End a stream, and with it the request. Does not wait: the collector may close one on the engine's thread."""
        with contextlib.suppress(EngineDead):
            self.loop.submit(self._close_stream(events))

    async def _close_stream(self, events: AsyncGenerator[Any, None]) -> None:
        self._streams.discard(events)
        await events.aclose()

    async def _start(self, manager: TokenizerManager) -> None:
        await manager.start()
        assert self._supervisor is not None
        self._health_check = asyncio.create_task(
            watch_health(manager.health, self._supervisor, manager.server_args, self._on_hang)
        )

    async def _stop(self) -> None:
        if self._health_check is not None:
            self._health_check.cancel()
        await self.manager.close()
        # Whoever waits on this loop hears of it before the loop stops.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=LAST_WORDS_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        # Streams that nobody has closed; the loop would close what they are made of first.
        for events in list(self._streams):
            await self._close_stream(events)
        assert self._channels is not None
        self._channels.close()

    def _on_death(self, message: str) -> None:
        """A child has died; called on the supervisor's thread, which ends the others."""
        error = EngineDead(message)
        self.rpc.fail(error)
        with contextlib.suppress(EngineDead):
            self.loop.submit(_fail_all(self.manager, error))

    def _on_hang(self, message: str) -> None:
        """A child does nothing any more; called on the engine's loop."""
        error = EngineDead(message)
        self.rpc.fail(error)
        self.manager.fail_all(error)
        assert self._supervisor is not None
        threading.Thread(target=self._supervisor.stop, name="bough-end-children", daemon=True).start()
        self.manager.dump_requests(message)


class Engine:
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
            server_args = ServerArgs(**{"log_level": "error", **without_neutral_options(options)})
        elif options:
            raise ConfigError(f"give either server_args or single options, not both ({', '.join(sorted(options))})")
        if server_args.otlp_traces_endpoint is not None:
            raise ConfigError(
                "otlp_traces_endpoint is for servers, whose HTTP requests are traced: Runtime is one",
                param="otlp_traces_endpoint",
            )
        plan = LaunchPlan.make(server_args, scheduler_module=self.scheduler_module)
        self.server_args = plan.server_args
        self._parts = EngineParts(plan)
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
        check_generation_keywords(self.generate, others, session_params)
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
        check_generation_keywords(self.async_generate, others, session_params)
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
            while (event := parts.loop.wait(parts.next_event(events))) is not _END:
                yield event
        finally:
            parts.close_stream(events)

    async def _async_stream(self, request: GenerateReqInput) -> AsyncIterator[dict[str, Any]]:
        parts = self._parts
        events = parts.open_stream(request)
        try:
            while (event := await parts.loop.wait_async(parts.next_event(events))) is not _END:
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
        check_vector_keywords(self.encode, others)
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
        check_vector_keywords(self.async_encode, others)
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

    def update_weights_from_disk(
        self,
        model_path: str,
        load_format: LoadFormat | None = None,
        *,
        weight_version: str | None = None,
        abort_all_requests: bool = False,
        flush_cache: bool = True,
    ) -> WeightUpdate:
        """Serve another checkpoint of the same model; requests that come meanwhile wait.

        Args:
            model_path: local directory or file, or hub id.
            load_format: as at the start; by default the same, or ``auto`` if that was ``dummy``.
            weight_version: what the new weights are called; by default as the old ones.
            abort_all_requests: whether to end what is there instead of waiting for it.
            flush_cache: whether to forget what the old weights have computed.

        Returns:
            Whether the new weights are there, why not, and how many paused requests go on with them; a tuple of these.

        Raises:
            BoughError: as :meth:`ServedWeights.update_from_disk`.
        """
        options = UpdateOptions(version=weight_version, abort_all_requests=abort_all_requests, flush_cache=flush_cache)
        return self._parts.loop.call(self._parts.manager.weights.update_from_disk(model_path, load_format, options))

    def update_weights_from_tensor(
        self,
        named_tensors: Iterable[tuple[str, torch.Tensor]],
        load_format: None = None,
        flush_cache: bool = True,
        *,
        weight_version: str | None = None,
    ) -> WeightUpdate:
        """Take some weights from this process: names as in the checkpoint, and tensors on any device.

        Others stay as they are. Further arguments, and what is returned and raised, as in
        :meth:`update_weights_from_disk`.
        """
        if load_format is not None:
            raise BadRequest(f"load_format must be None, got {load_format!r}", param="load_format")
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        tensors = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in named_tensors}
        options = UpdateOptions(version=weight_version, flush_cache=flush_cache)
        with passing_file(sum(tensor.nbytes for tensor in tensors.values())) as path:
            try:
                save_file(tensors, path)
            except SafetensorError as error:
                raise RequestFailed(f"the weights could not be handed over: {error}") from error
            del tensors
            return self._parts.loop.call(self._parts.manager.weights.update_from_file(path, options))

    def init_weights_update_group(
        self,
        master_address: str,
        master_port: int,
        rank_offset: int,
        world_size: int,
        group_name: str = DEFAULT_GROUP,
        backend: GroupBackend = "nccl",
    ) -> WeightUpdate:
        """Become part of a group in which a trainer is rank 0; see :meth:`ServedWeights.join_group`."""
        return self._parts.loop.call(
            self._parts.manager.weights.join_group(
                master_address, master_port, rank_offset, world_size, group_name, backend
            )
        )

    def destroy_weights_update_group(self, group_name: str = DEFAULT_GROUP) -> WeightUpdate:
        """Leave such a group."""
        return self._parts.loop.call(self._parts.manager.weights.leave_group(group_name))

    def update_weights_from_distributed(
        self,
        names: Sequence[str],
        dtypes: Sequence[str | torch.dtype],
        shapes: Sequence[Sequence[int]],
        group_name: str = DEFAULT_GROUP,
        flush_cache: bool = True,
        load_format: None = None,
        *,
        weight_version: str | None = None,
    ) -> WeightUpdate:
        """Take some weights that a trainer broadcasts, in this order; see :meth:`ServedWeights.update_from_group`."""
        if load_format is not None:
            raise BadRequest(f"load_format must be None, got {load_format!r}", param="load_format")
        options = UpdateOptions(version=weight_version, flush_cache=flush_cache)
        return self._parts.loop.call(
            self._parts.manager.weights.update_from_group(
                list(names), [str(each) for each in dtypes], [list(each) for each in shapes], group_name, options
            )
        )

    def init_process_group(
        self,
        master_address: str,
        master_port: int,
        rank_offset: int,
        world_size: int,
        group_name: str = DEFAULT_GROUP,
        backend: GroupBackend = "nccl",
    ) -> WeightUpdate:
        """:meth:`init_weights_update_group`, under the name that trainers for vLLM use; see :meth:`update_weight`."""
        return self.init_weights_update_group(master_address, master_port, rank_offset, world_size, group_name, backend)

    def update_weight(
        self,
        name: str,
        dtype: str | torch.dtype,
        shape: Sequence[int],
        empty_cache: bool = False,
        *,
        group_name: str = DEFAULT_GROUP,
    ) -> WeightUpdate:
        """Take one weight that a trainer broadcasts; the prefix cache is forgotten.

        Args:
            name: as in the checkpoint.
            dtype: of its tensor.
            shape: of its tensor.
            empty_cache: without effect: device memory is set aside at the start.
            group_name: of the group.
        """
        return self.update_weights_from_distributed([name], [dtype], [shape], group_name)

    def update_weight_version(self, new_version: str, abort_all_requests: bool = True) -> None:
        """Call the weights by another name; see :meth:`ServedWeights.set_version`."""
        weights = self._parts.manager.weights
        self._parts.loop.call(weights.set_version(new_version, abort_all_requests=abort_all_requests))

    def get_weights_by_name(self, name: str, truncate_size: int = 100) -> Any:
        """The first rows of a weight, or numbers of a vector, as lists.

        Raises:
            BadRequest: if there is no such weight, or that is too much.
        """
        return self._parts.loop.call(self._parts.manager.weights.rows(name, truncate_size))

    def get_server_info(self) -> dict[str, Any]:
        """Resolved options, what the scheduler reported at its start, and its state now."""
        info = self._parts.loop.call(self._parts.manager.get_server_info())
        return {**info, "startup_time": self._parts.startup_seconds}

    def get_model_info(self) -> dict[str, Any]:
        """What model this is."""
        return self._parts.manager.get_model_info()

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
        reply = self._parts.rpc.call(method, parameters, timeout_s=RPC_TIMEOUT_SECONDS)
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


async def _whole(manager: TokenizerManager, request: GenerateReqInput) -> Any:
    """The only result of a request that does not stream."""
    (result,) = [result async for result in manager.generate_request(request, "prompt")]
    return result


async def _next(events: AsyncIterator[Any]) -> Any:
    async for event in events:
        return event
    return _END


async def _fail_all(manager: TokenizerManager, error: EngineDead) -> None:
    manager.fail_all(error)
    manager.dump_requests(error.message)
