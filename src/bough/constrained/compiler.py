"""Compiles grammars beside the scheduler, one for all requests that ask for the same, and remembers them.

The workers are threads: the engine releases the GIL while it compiles. A thread cannot be stopped, so one that takes
too long is left to itself, its result ignored, and another takes its place, up to a bound.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bough.constrained.base import Grammar, GrammarError
from bough.errors import BoughError, Overloaded
from bough.sampling.sampling_params import GrammarSpec

logger = logging.getLogger(__name__)

NUM_WORKERS = 2
"""So that one slow grammar does not hold up all others."""

MAX_STUCK_WORKERS = 4
"""Workers that may be left to themselves before new grammars have to wait for one of them."""

QUEUE_SECONDS = 60.0
"""A grammar that no worker has begun with after this time is refused: try again later."""

CACHE_ENTRIES = 256
CACHE_BYTES = 256 * 2**20

STACK_BYTES = 64 * 2**20
"""Stack of a worker, of which only what is used takes memory: engines recurse into nested grammars."""

NICENESS = 5
"""How far the workers stand back behind the thread that computes."""


@dataclass
class CompileJob:
    """A grammar that is being compiled, or is ready, or has failed.

    Attributes:
        spec: what is compiled.
        grammar: the result.
        error: why there is none.
        started_at: ``time.monotonic()`` when a worker began.
    """

    spec: GrammarSpec
    created_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None
    grammar: Grammar | None = None
    error: BoughError | None = None

    @property
    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self.grammar is not None or self.error is not None


class GrammarCache:
    """Compiled grammars, the least recently used of which go first when there are too many or they are too large."""

    def __init__(self, max_entries: int = CACHE_ENTRIES, max_bytes: int = CACHE_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._grammars: OrderedDict[GrammarSpec, Grammar] = OrderedDict()
        self.num_bytes = 0

    def __len__(self) -> int:
        return len(self._grammars)

    def get(self, spec: GrammarSpec) -> Grammar | None:
        """A grammar, if it is known."""
        grammar = self._grammars.get(spec)
        if grammar is not None:
            self._grammars.move_to_end(spec)
        return grammar

    def put(self, spec: GrammarSpec, grammar: Grammar) -> None:
        """Remember a grammar, unless it alone is larger than everything may be."""
        if spec in self._grammars or grammar.num_bytes > self._max_bytes:
            return
        self._grammars[spec] = grammar
        self.num_bytes += grammar.num_bytes
        while len(self._grammars) > self._max_entries or self.num_bytes > self._max_bytes:
            _, dropped = self._grammars.popitem(last=False)
            self.num_bytes -= dropped.num_bytes


class GrammarCompiler:
    """Compiles on threads of its own. Its methods are for one thread, the scheduler's.

    Args:
        compile_grammar: compiles one; raises :class:`GrammarError`. Called on several threads.
        timeout_s: how long compiling may take.
        cache: where results are kept.
        on_close: called by :meth:`close`.
    """

    def __init__(
        self,
        compile_grammar: Callable[[GrammarSpec], Grammar],
        *,
        timeout_s: float,
        cache: GrammarCache | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._compile = compile_grammar
        self._timeout_s = timeout_s
        self._on_close = on_close
        self.cache = GrammarCache() if cache is None else cache
        self._jobs: dict[GrammarSpec, CompileJob] = {}
        self._changed = threading.Condition()
        # Shared with the workers, under the lock of the condition:
        self._queue: deque[CompileJob] = deque()
        self._finished = False
        """Whether a job has ended since :meth:`wait` returned last."""
        self._workers: set[threading.Thread] = set()
        self._stuck = 0
        self._running = 0
        """Jobs that a worker is busy with and that are not given up."""
        self._closed = False
        self.num_compiled = 0
        self.compile_seconds = 0.0

    def submit(self, spec: GrammarSpec) -> CompileJob:
        """Begin to compile, unless that was done or is being done; returns at once."""
        known = self._jobs.get(spec)
        if known is not None and not known.done:
            return known
        grammar = self.cache.get(spec)
        if grammar is not None:
            return CompileJob(spec, grammar=grammar)
        job = CompileJob(spec)
        self._jobs[spec] = job
        with self._changed:
            self._queue.append(job)
            self._start_workers()
            self._changed.notify()
        return job

    def forget_all_but(self, wanted: set[int]) -> None:
        """Do not begin with jobs that nobody waits for any more.

        Args:
            wanted: ``id`` of each job that somebody waits for.
        """
        if len(self._jobs) == len(wanted):
            return
        with self._changed:
            for job in [job for job in self._queue if id(job) not in wanted]:
                self._queue.remove(job)
                del self._jobs[job.spec]

    def poll(self) -> list[CompileJob]:
        """Jobs that have ended since the last call, one way or the other."""
        if not self._jobs:
            return []
        now = time.monotonic()
        with self._changed:
            self._finished = False
            for job in self._jobs.values():
                if not job.done:
                    self._check_time(job, now)
        ended = [job for job in self._jobs.values() if job.done]
        for job in ended:
            del self._jobs[job.spec]
            if job.grammar is not None:
                self.cache.put(job.spec, job.grammar)
        return ended

    def wait(self, timeout_s: float) -> None:
        """Wait until a job has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished, timeout_s)

    def close(self) -> None:
        """End the workers; what they are busy with is not waited for."""
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._changed.notify_all()
        if self._on_close is not None:
            self._on_close()

    def _check_time(self, job: CompileJob, now: float) -> None:
        if job.started_at is not None and now - job.started_at > self._timeout_s:
            job.error = GrammarError(
                f"it takes more than {self._timeout_s:g} s to compile; make it smaller", kind=job.spec.kind
            )
            self._stuck += 1
            self._running -= 1
            self._start_workers()
        elif job.started_at is None and now - job.created_at > QUEUE_SECONDS:
            self._queue.remove(job)
            job.error = Overloaded("too many grammars are being compiled; try again later")

    def _start_workers(self) -> None:
        """Have as many workers as there is work for."""
        allowed = NUM_WORKERS - max(0, self._stuck - MAX_STUCK_WORKERS)
        wanted = min(allowed, len(self._queue) + self._running)
        while len(self._workers) - self._stuck < wanted and not self._closed:
            # The size is a setting of the process, read when a thread starts.
            before = threading.stack_size(STACK_BYTES)
            try:
                worker = threading.Thread(target=self._work, name="bough-grammar", daemon=True)
                self._workers.add(worker)
                worker.start()
            finally:
                threading.stack_size(before)

    def _work(self) -> None:
        _stand_back()
        me = threading.current_thread()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    self._workers.discard(me)
                    return
                job = self._queue.popleft()
                job.started_at = time.monotonic()
                self._running += 1
            grammar, error = self._run(job.spec)
            with self._changed:
                if job.done:
                    # It was given up, and somebody else has taken this thread's place.
                    self._stuck -= 1
                    self._workers.discard(me)
                    self._start_workers()
                    return
                self._running -= 1
                job.grammar, job.error = grammar, error
                self.num_compiled += 1
                self.compile_seconds += time.monotonic() - job.started_at
                self._finished = True
                self._changed.notify_all()

    def _run(self, spec: GrammarSpec) -> tuple[Grammar | None, BoughError | None]:
        try:
            return self._compile(spec), None
        except BoughError as error:
            return None, error
        except Exception:
            logger.exception("Could not compile a grammar of kind %s", spec.kind)
            return None, GrammarError("the grammar engine has failed on it", kind=spec.kind)


def _stand_back() -> None:
    """Lower the priority of the calling thread, where the system allows that for a single one (Linux does)."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    except (OSError, AttributeError):
        return
