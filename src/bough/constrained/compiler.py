"""Compiles grammars beside the scheduler, one for all requests that ask for the same, and remembers them.

The workers are threads: the engine releases the GIL while it compiles. A thread cannot be stopped, so one that takes
too long is left to itself, its result ignored, and another takes its place, up to a bound.

There are three queues, each with a worker, so that slow grammars hold up nothing but each other: for those that need
no trial, for all others, and for those of the latter that have taken longer than a moment, which start again there.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bough.constrained.base import GrammarError
from bough.constrained.held_memory import HeldBytes
from bough.errors import BoughError, Overloaded
from bough.process_usage import stand_back
from bough.sampling.sampling_params import GrammarSpec

if TYPE_CHECKING:
    from bough.config.server_args import ServerArgs
    from bough.constrained.llguidance_backend import Grammar
    from bough.tokenization.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

QUICK_SECONDS = 0.25
"""A trial that takes longer than this is ended and starts again behind all others that did."""

MAX_STUCK_WORKERS = 4
"""Workers of a queue that may be left to themselves before new grammars have to wait for one of them."""

QUEUE_SECONDS = 60.0
"""A grammar that no worker has begun with after this time is refused: try again later."""

CACHE_ENTRIES = 256
CACHE_BYTES = 64 * 2**20

FAILED_ENTRIES = 4096
FAILED_SECONDS = 60.0
"""How long a grammar that could not be compiled is refused without another try."""

STACK_BYTES = 64 * 2**20
"""Stack of a worker, of which only what is used takes memory: engines recurse into nested grammars."""

NICENESS = 5
"""How far the workers stand back behind the thread that computes."""


@dataclass(eq=False)
class CompileJob:
    """A grammar that is being compiled, or is ready, or has failed. Times are of ``time.monotonic()``."""

    spec: GrammarSpec
    queued_at: float = field(default_factory=time.monotonic)
    started_at: float | None = None
    grammar: Grammar | None = None
    error: BoughError | None = None

    @property
    def done(self) -> bool:
        """True if there is a result or an error."""
        return self.grammar is not None or self.error is not None


def _key(spec: GrammarSpec) -> bytes:
    """Return a short key for a specification, which may itself be long."""
    return hashlib.blake2b(spec.text.encode("utf-8", "surrogatepass"), person=spec.kind[:16].encode()).digest()


class GrammarCache:
    """Compiled grammars, the least recently used of which go first when there are too many or they are too large."""

    def __init__(self, max_entries: int = CACHE_ENTRIES, max_bytes: int = CACHE_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._grammars: OrderedDict[bytes, Grammar] = OrderedDict()

    def __len__(self) -> int:
        return len(self._grammars)

    @property
    def num_bytes(self) -> int:
        """Size in memory."""
        return sum(grammar.num_bytes for grammar in self._grammars.values())

    def get(self, spec: GrammarSpec) -> Grammar | None:
        """Return a grammar if it is cached and not worn out.

        Raises:
            GrammarError: the grammar failed in use and would fail again.
        """
        key = _key(spec)
        grammar = self._grammars.get(key)
        if grammar is None:
            return None
        if grammar.is_worn:
            del self._grammars[key]
            if grammar.failure is not None:
                raise GrammarError(grammar.failure, kind=spec.kind)
            return None
        self._grammars.move_to_end(key)
        return grammar

    def put(self, spec: GrammarSpec, grammar: Grammar) -> None:
        """Remember a grammar, unless it alone is larger than everything may be."""
        key = _key(spec)
        if key in self._grammars or grammar.num_bytes > self._max_bytes:
            return
        self._grammars[key] = grammar
        num_bytes = self.num_bytes
        while len(self._grammars) > self._max_entries or num_bytes > self._max_bytes:
            _, dropped = self._grammars.popitem(last=False)
            num_bytes -= dropped.num_bytes

    def make_room(self, num_bytes: int) -> None:
        """Evict grammars until this many bytes are free, or none is left."""
        while num_bytes > 0 and self._grammars:
            _, dropped = self._grammars.popitem(last=False)
            num_bytes -= dropped.num_bytes


@dataclass(eq=False)
class _Lane:
    """A queue, and the threads that work on it, of which ``num_stuck`` are left to themselves after ``patience_s``.

    Jobs that take longer than ``limit_s`` go to ``slower``; without that they have failed.
    """

    limit_s: float
    patience_s: float
    slower: _Lane | None = None
    queue: deque[CompileJob] = field(default_factory=deque)
    workers: set[threading.Thread] = field(default_factory=set)
    num_stuck: int = 0
    running: CompileJob | None = None


class GrammarCompiler:
    """Compiles grammars on its own threads. Only the scheduler's thread may call its methods.

    Args:
        compile_grammar: compiles one within a number of seconds; raises :class:`GrammarError` or ``TimeoutError``.
            Called on several threads.
        needs_trial: true for a grammar that may turn out to be slow.
        timeout_s: time allowed to compile one grammar.
        start_s: extra time allowed before the first compilation begins.
    """

    def __init__(
        self,
        compile_grammar: Callable[[GrammarSpec, float], Grammar],
        *,
        needs_trial: Callable[[GrammarSpec], bool] = lambda spec: True,
        timeout_s: float,
        start_s: float = 0.0,
        cache: GrammarCache | None = None,
        on_close: Callable[[], None] | None = None,
        held: HeldBytes | None = None,
    ) -> None:
        self._compile = compile_grammar
        self._needs_trial = needs_trial
        self._timeout_s = timeout_s
        self._on_close = on_close
        self.cache = GrammarCache() if cache is None else cache
        self._held = HeldBytes() if held is None else held
        self._failed: OrderedDict[bytes, tuple[float, GrammarError]] = OrderedDict()
        """Errors of grammars by key, and until when they are remembered, the oldest first."""
        self._jobs: dict[GrammarSpec, CompileJob] = {}
        self._changed = threading.Condition()
        # Shared with the workers, under the lock of the condition:
        # What a trial has let through is compiled once more, outside of it.
        patience_s = timeout_s if start_s == 0.0 else start_s + 2 * timeout_s
        self._plain = _Lane(timeout_s, timeout_s)
        self._slow = _Lane(timeout_s, patience_s)
        self._quick = _Lane(min(QUICK_SECONDS, timeout_s), patience_s, slower=self._slow)
        self._lanes = (self._plain, self._quick, self._slow)
        self._finished = False
        """True if a job has ended since :meth:`wait` returned last."""
        self._closed = False
        self.num_compiled = 0

    def submit(self, spec: GrammarSpec) -> CompileJob:
        """Begin to compile, unless that was done or is being done; returns at once. The job may have ended already."""
        known = self._jobs.get(spec)
        if known is not None:
            return known
        job = CompileJob(spec, error=self._failure_of(spec))
        if job.error is None:
            try:
                job.grammar = self.cache.get(spec)
            except GrammarError as error:
                job.error = error
                self._remember_failure(spec, error)
        if job.done:
            return job
        self._jobs[spec] = job
        with self._changed:
            self._queue(job, self._quick if self._needs_trial(spec) else self._plain)
        return job

    def forget_all_but(self, wanted: set[int]) -> None:
        """Drop queued jobs that no request waits for; ``wanted`` has the ``id`` of each of the others."""
        if len(self._jobs) == len(wanted):
            return
        with self._changed:
            for lane in self._lanes:
                unwanted = [job for job in lane.queue if id(job) not in wanted]
                if unwanted:
                    lane.queue = deque(job for job in lane.queue if id(job) in wanted)
                for job in unwanted:
                    del self._jobs[job.spec]

    def poll(self) -> list[CompileJob]:
        """Jobs that have ended since the last call, one way or the other."""
        self.cache.make_room(self._held.lacking)
        if not self._jobs:
            return []
        now = time.monotonic()
        with self._changed:
            self._finished = False
            for lane in self._lanes:
                self._check_times(lane, now)
        ended = [job for job in self._jobs.values() if job.done]
        for job in ended:
            del self._jobs[job.spec]
            if job.grammar is not None:
                self.cache.put(job.spec, job.grammar)
            elif isinstance(job.error, GrammarError):
                self._remember_failure(job.spec, job.error)
        return ended

    def wait(self, timeout_s: float) -> None:
        """Wait until a job has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._finished, timeout_s)

    def close(self) -> None:
        """End the workers; what they are busy with is not waited for."""
        with self._changed:
            self._closed = True
            for lane in self._lanes:
                lane.queue.clear()
            self._changed.notify_all()
        self._held.close()
        if self._on_close is not None:
            self._on_close()

    @property
    def num_stuck(self) -> int:
        """Threads that are left to themselves."""
        return sum(lane.num_stuck for lane in self._lanes)

    def _failure_of(self, spec: GrammarSpec) -> GrammarError | None:
        """Return the error of a grammar that could not be compiled lately; forget those whose time is up."""
        while self._failed and next(iter(self._failed.values()))[0] <= time.monotonic():
            self._failed.popitem(last=False)
        return self._failed.get(_key(spec), (0.0, None))[1]

    def _remember_failure(self, spec: GrammarSpec, error: GrammarError) -> None:
        key = _key(spec)
        self._failed.pop(key, None)
        self._failed[key] = (time.monotonic() + FAILED_SECONDS, error)
        if len(self._failed) > FAILED_ENTRIES:
            self._failed.popitem(last=False)

    def _queue(self, job: CompileJob, lane: _Lane) -> None:
        job.queued_at, job.started_at = time.monotonic(), None
        lane.queue.append(job)
        self._start_worker(lane)
        self._changed.notify_all()

    def _check_times(self, lane: _Lane, now: float) -> None:
        job = lane.running
        if job is not None and job.started_at is not None and now - job.started_at > lane.patience_s:
            job.error = self._too_slow(job)
            lane.running = None
            lane.num_stuck += 1
            self._start_worker(lane)
        while lane.queue and now - lane.queue[0].queued_at > QUEUE_SECONDS:
            lane.queue.popleft().error = Overloaded("too many grammars are being compiled; try again later")

    def _too_slow(self, job: CompileJob) -> GrammarError:
        return GrammarError(f"it takes more than {self._timeout_s:g} s to compile; make it smaller", kind=job.spec.kind)

    def _start_worker(self, lane: _Lane) -> None:
        """Have a worker if there is work, of which nothing comes if no thread can be started."""
        if len(lane.workers) > lane.num_stuck or lane.num_stuck > MAX_STUCK_WORKERS or not lane.queue or self._closed:
            return
        # The size is a setting of the process, read when a thread starts.
        before = threading.stack_size(STACK_BYTES)
        try:
            worker = threading.Thread(target=self._work, args=(lane,), name="bough-grammar", daemon=True)
            lane.workers.add(worker)
            worker.start()
        except RuntimeError as error:
            logger.error("No thread can be started that compiles grammars: %s", error)
            lane.workers.discard(worker)
            while lane.queue:
                lane.queue.popleft().error = Overloaded("no thread can be started that compiles it; try again later")
        finally:
            threading.stack_size(before)

    def _work(self, lane: _Lane) -> None:
        stand_back(NICENESS)
        me = threading.current_thread()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: lane.queue or self._closed)
                if self._closed:
                    lane.workers.discard(me)
                    return
                job = lane.running = lane.queue.popleft()
                job.started_at = time.monotonic()
            grammar, error = self._run(job, lane)
            with self._changed:
                if job.done:
                    # It was given up, and somebody else has taken this thread's place.
                    lane.num_stuck -= 1
                    lane.workers.discard(me)
                    self._start_worker(lane)
                    return
                lane.running = None
                if grammar is None and error is None and lane.slower is not None:
                    self._queue(job, lane.slower)
                    continue
                job.grammar, job.error = grammar, self._too_slow(job) if grammar is None and error is None else error
                self.num_compiled += 1
                self._finished = True
                self._changed.notify_all()

    def _run(self, job: CompileJob, lane: _Lane) -> tuple[Grammar | None, BoughError | None]:
        """The grammar, or what is wrong with it, or neither if it takes too long."""
        try:
            return self._compile(job.spec, lane.limit_s), None
        except TimeoutError:
            return None, None
        except BoughError as error:
            return None, error
        except BaseException:  # a panic of the engine is not an Exception
            logger.exception("Could not compile a grammar of kind %s", job.spec.kind)
            return None, GrammarError("the grammar engine has failed on it", kind=job.spec.kind)


def create_compiler(
    server_args: ServerArgs, tokenizer: Tokenizer, vocab_size: int, eos_token_ids: Iterable[int]
) -> GrammarCompiler:
    """A compiler for a model. Takes a second for a vocabulary of 150,000 tokens, and holds the GIL all the while."""
    from bough.child_trial import START_SECONDS
    from bough.constrained.llguidance_backend import LLGuidanceBackend
    from bough.constrained.translate import Translator
    from bough.constrained.trial import TrialBackend, needs_trial
    from bough.constrained.vocabulary import engine_tokenizer, vocabulary_of

    compact = server_args.constrained_json_disable_any_whitespace
    translator = Translator(
        whitespace_pattern="" if compact else server_args.constrained_json_whitespace_pattern,
        special_tokens={text: token for text, token in tokenizer.special_token_ids.items() if token < vocab_size},
    )
    vocabulary = vocabulary_of(tokenizer, vocab_size, tuple(eos_token_ids))
    encode = tokenizer.running_text_encoder(set(vocabulary.special_ids))
    backend = LLGuidanceBackend(engine_tokenizer(vocabulary, encode), translator)
    tried = TrialBackend(backend, translator, vocabulary)
    return GrammarCompiler(
        tried.compile,
        needs_trial=needs_trial,
        timeout_s=server_args.grammar_compile_timeout,
        start_s=START_SECONDS,
        on_close=tried.close,
        held=backend.held,
    )
