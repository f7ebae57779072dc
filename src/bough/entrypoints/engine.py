"""The engine in the caller's process: no HTTP, a guest that leaves no trace."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bough.config.server_args import ServerArgs
from bough.entrypoints import engine_arguments
from bough.entrypoints.engine_arguments import pairs_of, takes
from bough.entrypoints.engine_parts import EngineParts
from bough.entrypoints.engine_trainer import TrainerMethods
from bough.entrypoints.launch_plan import SCHEDULER_MODULE, LaunchPlan
from bough.errors import ConfigError, RequestFailed
from bough.managers.embedding import encode_native
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import GenerateReqInput
from bough.managers.scoring import ScoreResult, rerank, score
from bough.managers.server_info import model_info, server_info
from bough.managers.tokenizer_manager import TokenizerManager

RPC_TIMEOUT_SECONDS = 600.0
"""How long a call of a scheduler's method may take; saving a large model takes minutes."""


class Engine(TrainerMethods):
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

    @takes(engine_arguments.generate)
    def generate(self, request: GenerateReqInput) -> Any:
        """Generate from one prompt or several; the arguments are the fields of ``POST /generate``.

        Further keywords of SGLang's are refused where they ask for something, as ``/generate`` does.

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
        parts = self._parts
        return parts.stream(request, self) if request.stream else parts.loop.call(parts.answer(request))

    @takes(engine_arguments.generate)
    async def async_generate(self, request: GenerateReqInput) -> Any:
        """The same as :meth:`generate` for coroutines; with ``stream`` the result is an asynchronous iterator.

        Cancelling the caller ends the request.
        """
        parts = self._parts
        if request.stream:
            return parts.async_stream(request, self)
        return await parts.loop.call_async(parts.answer(request))

    @takes(engine_arguments.encode)
    def encode(self, request: EmbeddingReqInput) -> Any:
        """Embeddings, or a classifier's scores (logits), of one text or several; the fields are those of ``/encode``.

        ``prompt`` is a text, or a list of texts or of pairs of texts; or ``None``, with ``input_ids``. Further keywords
        of SGLang's are refused where they ask for something, as ``/encode`` does.

        Returns:
            A dictionary with ``embedding``, a list of numbers, and ``meta_info``; a list of them for a list of texts.

        Raises:
            BadRequest: a ``ValueError``; an argument is wrong, or the model makes no embeddings.
            Overloaded, RequestFailed: if the engine cannot take or finish the request.
            EngineDead: if the engine was shut down or a part of it has died.
            TypeError: if there is no such keyword.
        """
        return self._parts.loop.call(encode_native(self._parts.manager, request))

    @takes(engine_arguments.encode)
    async def async_encode(self, request: EmbeddingReqInput) -> Any:
        """The same as :meth:`encode` for coroutines. Cancelling the caller ends the request."""
        return await self._parts.loop.call_async(encode_native(self._parts.manager, request))

    def rerank(self, prompt: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """How relevant documents are, by a cross-encoder or a language model that was trained for it.

        Args:
            prompt: pairs of a query and a document. A cross-encoder's documents are cut at their end if too long.

        Returns:
            Per pair a dictionary with the relevance under ``embedding``, and ``meta_info``.

        Raises:
            BadRequest, Overloaded, RequestFailed, EngineDead: see :meth:`encode`.
        """
        judged = self._parts.loop.call(rerank(self._parts.manager, pairs_of(prompt), param="prompt"))
        return [{"embedding": each.relevance, "meta_info": each.meta_info} for each in judged]

    @takes(engine_arguments.score)
    def score(self, arguments: dict[str, Any]) -> ScoreResult:
        """Scores of items for a query: see :func:`bough.managers.scoring.score`.

        Raises:
            BadRequest, Overloaded, RequestFailed, EngineDead: see :meth:`encode`.
        """
        return self._parts.loop.call(score(self._parts.manager, **arguments))

    @takes(engine_arguments.score)
    async def async_score(self, arguments: dict[str, Any]) -> ScoreResult:
        """The same as :meth:`score` for coroutines."""
        return await self._parts.loop.call_async(score(self._parts.manager, **arguments))

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

        open_it = self._parts.manager.sessions.open
        return self._parts.loop.run(
            lambda: open_it(capacity_of_str_len, session_id, is_linear=streaming, timeout=timeout)
        )

    def close_session(self, session_id: str) -> None:
        """End a session and abort its running requests; an unknown id is ignored."""
        self._parts.loop.run(lambda: self._parts.manager.sessions.close(session_id))

    def get_server_info(self) -> dict[str, Any]:
        """Resolved options, what the scheduler reported at its start, and its state now."""
        info = self._parts.loop.call(server_info(self._parts.manager))
        return {**info, "startup_time": self._parts.startup_seconds}

    def get_model_info(self) -> dict[str, Any]:
        """Description of the model."""
        return model_info(self._parts.manager)

    def get_all_child_pids(self) -> list[int]:
        """Process ids of scheduler and detokenizer."""
        return self._parts.pids

    def collective_rpc(
        self,
        method: str,
        timeout: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Call a method of the worker of every rank of every replica; see :meth:`WorkerCalls.call`.

        The worker has what ``worker_extension_cls`` or ``worker_cls`` bring, and what
        :class:`~bough.model_executor.worker_face.WorkerFace` has.
        """
        return self._parts.loop.call(self._parts.manager.workers.call(method, timeout, args, kwargs))

    async def async_collective_rpc(
        self,
        method: str,
        timeout: float | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """The same as :meth:`collective_rpc` for coroutines."""
        return await self._parts.loop.call_async(self._parts.manager.workers.call(method, timeout, args, kwargs))

    def call_scheduler(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a named control handler of the scheduler with plain values; returns its data.

        Raises:
            RequestFailed: if the handler failed, or did not answer in time.
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

    def shutdown(self) -> None:
        """End the engine; returns when its processes and threads are gone. Doing it twice does nothing."""
        self._finalizer()
        self._parts.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
