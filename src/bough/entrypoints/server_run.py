"""The life of one server: starting, serving, draining, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import shlex
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from bough.entrypoints.doorway import Doorway
from bough.entrypoints.launch_plan import SIGNAL_STATUS, LaunchPlan
from bough.entrypoints.running_engine import CHILDREN_GRACE_SECONDS, HEALTH_CHECK_SECONDS, RunningEngine
from bough.errors import BadRequest, BoughError, EngineDead, Overloaded, RequestFailed, StartupError
from bough.observability.startup_timer import StartupTimer, describe_phases
from bough.observability.tracing import create_tracer

if TYPE_CHECKING:
    from bough.entrypoints.http.server import HttpServer
    from bough.managers.tokenizer_manager import TokenizerManager
    from bough.observability.otel import OtelTracer

logger = logging.getLogger(__name__)

FAILURE_STATUS = 1
LAST_ANSWERS_SECONDS = 1.0
"""How long clients may take to read answers that are complete, once the server ends."""

LAST_TEXT_SECONDS = 0.25
"""How long each thread may take to finish the text that it is encoding; nobody waits for it any more."""

SAME_SIGNAL_SECONDS = 0.3
"""A signal that comes again this soon is the same one: a terminal's Ctrl-C through ``make``, or ``timeout``, delivers
it to a process twice."""

_POLL_SECONDS = 0.05

WARM_UP_TOKENS = 4

YOUNG_OBJECTS = 10_000
"""Objects made since the last look for garbage in cycles before the next one. A few hundred streams make several
thousand with every step, next to none of which is in a cycle."""


def settle_garbage_collector() -> None:
    """Leave what is there now out of every later look for garbage, and look seldom: the start is over."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])


class ServerRun:
    """Runs one server on the current event loop; to be used once. ``on_ready`` is called when it takes requests."""

    def __init__(
        self, plan: LaunchPlan, doorway: Doorway, timer: StartupTimer, on_ready: Callable[[], None] | None
    ) -> None:
        self._plan = plan
        self._doorway = doorway
        self._timer = timer
        self._on_ready = on_ready
        self._ending = asyncio.Event()
        """The server shall end, for whatever reason."""
        self._at_once = False
        """It shall not wait for anything."""
        self._status = 0
        self._signal: signal.Signals | None = None
        self._signal_time = 0.0
        """When it came first, on the event loop's clock."""
        self._engine: RunningEngine | None = None
        self._http: tuple[HttpServer, asyncio.Task[None]] | None = None
        self._tracer: OtelTracer | None = None

    async def run(self) -> int:
        """Serve until the end; returns the exit status.

        Raises:
            StartupError: if the server cannot start.
        """
        loop = asyncio.get_running_loop()
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # which nohup makes it
            numbers.append(signal.SIGHUP)
        for number in numbers:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            if await self._unless_ended(self._start()):
                await self._ending.wait()
                await self._drain()
            elif self._signal is not None:
                self._status = SIGNAL_STATUS + self._signal
        finally:
            await self._tear_down()
        logger.info("The server has ended, with exit status %d", self._status)
        return self._status

    async def _start(self) -> None:
        plan, timer = self._plan, self._timer
        self._tracer = create_tracer(plan.server_args)
        self._engine = engine = RunningEngine(plan, self._on_death, watch_parent=True)
        await asyncio.to_thread(engine.prepare)
        engine.launch()
        timer.end_phase("starting processes")
        # Only now, while the children do the same. What the end needs is loaded, too: its file may be gone by then.
        import bough.entrypoints.http.under_way  # noqa: F401
        from bough.entrypoints.http.app import create_app
        from bough.entrypoints.http.server import make_server
        from bough.entrypoints.starting_app import StartingApp

        entrance = StartingApp(plan.server_args.root_path)
        server = make_server(entrance, plan.server_args, self._doorway.tls)
        self._http = (server, asyncio.create_task(server.serve(sockets=[self._doorway.listener])))
        self._http[1].add_done_callback(self._on_http_over)
        timer.end_phase("more imports")
        engine.load_text()
        timer.end_phase("tokenizer")
        await asyncio.to_thread(engine.wait_until_ready)
        timer.end_phase("waiting for the model")
        manager = await engine.start()
        app = create_app(manager, self._doorway.gate, self._tracer)
        timer.end_phase("application")
        if not plan.server_args.skip_server_warmup:
            await warm_up(manager)
            timer.end_phase("warm-up")
        settle_garbage_collector()
        self._beat(engine)
        entrance.app = app
        self._announce(manager)

    def _beat(self, engine: RunningEngine) -> None:
        """Show the children, from now on, that this event loop turns."""
        engine.beat()
        asyncio.get_running_loop().call_later(HEALTH_CHECK_SECONDS, self._beat, engine)

    def _announce(self, manager: TokenizerManager) -> None:
        timer, scheduler_info = self._timer, manager.scheduler_info
        manager.metrics.startup_time = timer.total
        logger.info("Ready after %.2f s: %s", timer.total, describe_phases(timer.phases))
        logger.info("The scheduler meanwhile: %s", describe_phases(scheduler_info.get("timings", {})))
        for line in how_to_talk(self._url(), manager, self._doorway.socket_path):
            logger.info(line)
        if self._on_ready is not None:
            self._on_ready()

    def _url(self) -> str:
        listener = self._doorway.listener
        scheme = "http" if self._plan.server_args.ssl_certfile is None else "https"
        if listener.family == socket.AF_UNIX:
            return f"{scheme}://localhost"
        host, port = listener.getsockname()[:2]
        if listener.family == socket.AF_INET6:
            return f"{scheme}://[{'::1' if host == '::' else host}]:{port}"
        return f"{scheme}://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"

    async def _unless_ended(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do ``work``, but give it up when the server shall end; returns whether it was done."""
        working = asyncio.create_task(work)
        ending = asyncio.create_task(self._ending.wait())
        await asyncio.wait((working, ending), return_when=asyncio.FIRST_COMPLETED)
        ending.cancel()
        if self._ending.is_set():
            if self._engine is not None:  # waiting for children that load is not to be cancelled otherwise
                await asyncio.to_thread(self._engine.stop_children)
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError, BoughError):
                await working
            return False
        await working
        return True

    def _on_signal(self, number: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if number == self._signal and now - self._signal_time < SAME_SIGNAL_SECONDS:
            return
        if self._signal is not None or self._ending.is_set():
            self._at_once = True
            self._status = self._status or SIGNAL_STATUS + number
            if self._http is not None:
                self._http[0].force_exit = True
        self._signal, self._signal_time = number, now
        self._ending.set()

    def _on_death(self, message: str) -> None:
        """A part of the engine has died or hangs: nothing can be answered any more."""
        if self._status == FAILURE_STATUS:
            return
        self._status = FAILURE_STATUS
        self._at_once = True
        self._ending.set()
        logger.error("%s; the server ends", message)
        if self._engine is not None:
            with _logged("telling clients"):
                self._engine.fail(EngineDead(message), crashed=True)

    def _on_http_over(self, serving: asyncio.Task[None]) -> None:
        """The HTTP server, which should go on as long as this one does, has ended."""
        if serving.cancelled():
            return
        error = serving.exception()
        if error is not None:
            logger.error("Failure of the HTTP server", exc_info=error)
        if not self._ending.is_set():
            self._on_death("the HTTP server has failed")

    async def _drain(self) -> None:
        """Let running requests finish, for a bounded time; new ones are refused meanwhile."""
        manager = None if self._engine is None else self._engine.manager
        if manager is None or self._http is None or self._at_once:
            return
        from bough.entrypoints.http.under_way import AnswersUnderWay

        loop = asyncio.get_running_loop()
        timeout = self._plan.server_args.shutdown_timeout
        deadline = loop.time() + timeout
        manager.start_draining()
        # Whatever comes from now on is refused: only these are worth waiting for.
        answers = AnswersUnderWay(self._http[0])
        cause = f"{self._signal.name}: shutting" if self._signal is not None else "Shutting"
        left = f"{len(answers)} answers are read" if answers else ""
        if manager.rid_to_state:
            left = f"{len(manager.rid_to_state)} requests are finished"
        if left:
            how = "%s down once %s, in %g s at the latest; another signal ends them"
            logger.info(how, cause, left, timeout)
        else:
            logger.info("%s down; no request is running", cause)
        while manager.rid_to_state or answers.are_read(loop.time()):
            if self._at_once or loop.time() >= deadline:
                break
            await asyncio.sleep(_POLL_SECONDS)
        if (broken := manager.health.why_not_alive()) is not None:
            self._on_death(broken)  # that nobody waits any more is then no sign of an orderly end
        if self._status != 0 or self._signal is None:
            return
        left = f"with {len(answers)} answers that are not read to their end" if answers else ""
        if manager.rid_to_state:
            left = f"{len(manager.rid_to_state)} requests that are not finished"
        if left:
            logger.warning("Ending %s", left)
            self._status = SIGNAL_STATUS + self._signal

    async def _tear_down(self) -> None:
        """Whatever was started ends here, in whatever state it is; what cannot be ended holds up nothing else."""
        self._ending.set()
        engine = self._engine
        if engine is not None:
            # Whoever still waits is told, before the connections are closed.
            with _logged("telling clients"):
                message = "the server was shut down before the request was finished"
                engine.fail(EngineDead(message, code="shutting_down"), crashed=False)
        if self._http is not None:
            with _logged("closing connections"):
                await self._stop_http(*self._http)
        if engine is not None:
            with _logged("closing the front end"):
                await engine.close(in_a_hurry=lambda: self._at_once)
                await asyncio.to_thread(engine.finish_encoding, LAST_TEXT_SECONDS)
            with _logged("ending the other processes"):
                await asyncio.to_thread(engine.stop)
        if self._tracer is not None:
            with _logged("sending the last traces"):
                await asyncio.to_thread(self._tracer.close)

    async def _stop_http(self, server: HttpServer, serving: asyncio.Task[None]) -> None:
        """Close all connections, after their clients had a moment to read the answers, all of which are complete."""
        server.end()
        await asyncio.wait((serving,), timeout=LAST_ANSWERS_SECONDS)
        server.abort_connections()
        await asyncio.wait((serving,), timeout=LAST_ANSWERS_SECONDS)
        serving.cancel()


async def warm_up(manager: TokenizerManager) -> None:
    """Answer one request, so that the first one of a client finds everything loaded, and forget it.

    Raises:
        StartupError: if the model does not answer.
    """
    from bough.managers.embedding_struct import probe_request
    from bough.managers.io_struct import new_request_id

    is_generation = manager.model_config.is_generation
    rid = f"WARM_UP_{new_request_id()}"
    request = probe_request(rid, is_generation=is_generation, max_new_tokens=WARM_UP_TOKENS)
    try:
        with contextlib.suppress(Overloaded):
            async with manager.generation([request]) as generation:
                async for _ in generation.results():
                    pass
        await manager.flush_cache(CHILDREN_GRACE_SECONDS)
    except (BadRequest, EngineDead, RequestFailed) as error:
        raise StartupError(f"the model does not answer: {error.message}") from None


def how_to_talk(url: str, manager: TokenizerManager, socket_path: str | None = None) -> list[str]:
    """Lines that tell a newcomer what to do with a server that is ready; ``socket_path`` if it has no port."""
    model = manager.served_model_name
    body: dict[str, Any]
    pooling = manager.model_config.pooling
    if pooling is not None:
        path, body = "/v1/embeddings", {"model": model, "input": "Hello!" if manager.tokenizer else [1, 2, 3]}
        if pooling.is_classifier:
            path = "/v1/classify"
    elif manager.tokenizer is None:
        path, body = "/generate", {"input_ids": [1, 2, 3], "sampling_params": {"max_new_tokens": 16}}
    elif manager.chat_template is None:
        path, body = "/v1/completions", {"model": model, "prompt": "Once upon a time", "max_tokens": 64}
    else:
        path = "/v1/chat/completions"
        body = {"model": model, "messages": [{"role": "user", "content": "Hello! Who are you?"}]}
    needs_key = bool(manager.server_args.api_key or manager.server_args.api_key_file)
    header = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    place, curl, client = f"{url} (interactive documentation at {url}/docs)", "curl", ""
    if socket_path is not None:
        place, curl = socket_path, f"curl --unix-socket {shlex.quote(socket_path)}"
        client = f", http_client=httpx.Client(transport=httpx.HTTPTransport(uds={socket_path!r}))"
    return [
        f"Serving {model} at {place}. To talk to it:",
        f"  {curl} {url}{path}{header} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}",
        f'  OpenAI(base_url="{url}/v1", api_key="{"KEY" if needs_key else "none"}"{client})',
    ]


@contextlib.contextmanager
def _logged(step: str) -> Iterator[None]:
    """Log what goes wrong in a step of the end, whose other steps must be taken all the same."""
    try:
        yield
    except Exception:
        logger.exception("At the end of the server something failed: %s", step)
