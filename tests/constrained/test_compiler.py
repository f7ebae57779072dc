from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from bough.constrained import compiler as module
from bough.constrained.base import GrammarError
from bough.constrained.compiler import CompileJob, GrammarCache, GrammarCompiler
from bough.errors import Overloaded
from bough.sampling.sampling_params import GrammarSpec


def spec(text: str) -> GrammarSpec:
    return GrammarSpec("regex", text)


def grammar_of(size: int = 1) -> Any:
    return SimpleNamespace(num_bytes=size, is_worn=False, failure=None)


class Panic(BaseException):
    """What a failure of native code looks like."""


class Backend:
    """Compiles what it is told to, when it is told to."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.gates: dict[str, threading.Event] = {}

    def hold(self, text: str) -> threading.Event:
        return self.gates.setdefault(text, threading.Event())

    def __call__(self, spec: GrammarSpec, timeout_s: float) -> Any:
        self.begun.append(spec.text)
        if spec.text.startswith("takes"):
            seconds = float(spec.text.split()[1])
            time.sleep(min(seconds, timeout_s))
            if seconds > timeout_s:
                raise TimeoutError
        if spec.text in self.gates:
            assert self.gates[spec.text].wait(10)
        if spec.text == "bad":
            raise GrammarError("it is bad", kind=spec.kind)
        if spec.text == "bug":
            raise ZeroDivisionError
        if spec.text == "panic":
            raise Panic
        return grammar_of()


@pytest.fixture
def backend() -> Iterator[Backend]:
    backend = Backend()
    yield backend
    for gate in backend.gates.values():
        gate.set()


@pytest.fixture
def make(backend: Backend) -> Iterator[Callable[..., GrammarCompiler]]:
    made: list[GrammarCompiler] = []

    def factory(**options: Any) -> GrammarCompiler:
        made.append(GrammarCompiler(backend, **{"timeout_s": 5.0, **options}))
        return made[-1]

    yield factory
    for each in made:
        each.close()


def finish(compiler: GrammarCompiler, *jobs: CompileJob) -> None:
    deadline = time.monotonic() + 5
    while not all(job.done for job in jobs):
        compiler.wait(0.05)
        compiler.poll()
        assert time.monotonic() < deadline
    compiler.poll()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        time.sleep(0.001)
        assert time.monotonic() < deadline


def test_equal_grammars_are_compiled_once_and_remembered(make: Any, backend: Backend) -> None:
    compiler = make()
    gate = backend.hold("a")
    first, second = compiler.submit(spec("a")), compiler.submit(spec("a"))
    assert first is second
    gate.set()
    finish(compiler, first)
    assert compiler.submit(spec("a")).grammar is first.grammar
    assert compiler.submit(GrammarSpec("ebnf", "a")).grammar is None
    until(lambda: backend.begun == ["a", "a"])


def test_errors_are_told_and_remembered_for_a_while(
    make: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ["bad", "bug", "panic"]:
        compiler = make()
        job = compiler.submit(spec(text))
        finish(compiler, job)
        assert isinstance(job.error, GrammarError)
        assert compiler.submit(spec(text)).error is job.error
        assert backend.begun.count(text) == 1
        later = time.monotonic() + module.FAILED_SECONDS
        with monkeypatch.context() as patched:
            patched.setattr(module.time, "monotonic", lambda: later)
            assert not compiler.submit(spec(text)).done


def test_a_job_that_has_ended_before_anyone_looked_is_known(make: Any, backend: Backend) -> None:
    compiler = make()
    job = compiler.submit(spec("a"))
    compiler.wait(5)
    assert job.done
    assert compiler.submit(spec("a")) is job
    assert compiler.poll() == [job]
    assert backend.begun == ["a"]


def test_a_grammar_that_needs_no_trial_does_not_wait_for_others(make: Any, backend: Backend) -> None:
    compiler = make(needs_trial=lambda spec: spec.text != "plain")
    backend.hold("slow")
    slow, plain = compiler.submit(spec("slow")), compiler.submit(spec("plain"))
    finish(compiler, plain)
    assert not slow.done


def test_slow_grammars_hold_up_quick_ones_for_a_moment_only(
    make: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_SECONDS", 0.02)
    compiler = make(timeout_s=60.0)
    may_end = threading.Event()

    def compile_grammar(spec: GrammarSpec, timeout_s: float) -> Any:
        if spec.text.startswith("slow") and not may_end.wait(timeout_s):
            raise TimeoutError
        return backend(spec, timeout_s)

    monkeypatch.setattr(compiler, "_compile", compile_grammar)
    slow = [compiler.submit(spec(f"slow {i}")) for i in range(3)]
    quick = compiler.submit(spec("quick"))
    finish(compiler, quick)
    assert not any(job.done for job in slow), "they go on where they hold nobody up"
    may_end.set()
    finish(compiler, *slow)
    assert all(job.grammar is not None for job in slow)


def test_slow_grammars_that_take_too_long_have_failed(
    make: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUICK_SECONDS", 0.02)
    compiler = make(timeout_s=0.5)
    slow = [compiler.submit(spec(f"takes 60 s{i}")) for i in range(3)]
    finish(compiler, *slow)
    assert all("0.5 s" in str(job.error) for job in slow)


def test_what_takes_too_long_is_given_up_and_others_take_its_place(make: Any, backend: Backend) -> None:
    compiler = make(timeout_s=0.05)
    for i in range(3):
        backend.hold(f"slow{i}")
    slow = [compiler.submit(spec(f"slow{i}")) for i in range(3)]
    finish(compiler, *slow)
    assert all("0.05 s" in str(job.error) for job in slow)
    quick = compiler.submit(spec("quick"))
    finish(compiler, quick)
    assert quick.grammar is not None
    for gate in backend.gates.values():
        gate.set()
    until(lambda: compiler.num_stuck == 0)
    assert not any(job.grammar for job in slow)


def test_with_too_many_stuck_workers_new_grammars_wait_and_are_refused_in_the_end(
    make: Any, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUEUE_SECONDS", 0.2)
    compiler = make(timeout_s=0.02)
    count = 1 + module.MAX_STUCK_WORKERS
    jobs = []
    for i in range(count):
        backend.hold(f"slow{i}")
        jobs.append(compiler.submit(spec(f"slow{i}")))
        finish(compiler, jobs[-1])
    late = compiler.submit(spec("late"))
    finish(compiler, late)
    assert isinstance(late.error, Overloaded)
    assert "late" not in backend.begun
    backend.gates["slow0"].set()
    until(lambda: compiler.num_stuck < count)
    late = compiler.submit(spec("late"))
    finish(compiler, late)
    assert late.grammar is not None


def test_jobs_that_nobody_waits_for_are_not_begun(make: Any, backend: Backend) -> None:
    compiler = make()
    gate = backend.hold("busy")
    busy = compiler.submit(spec("busy"))
    until(lambda: backend.begun == ["busy"])
    unwanted = compiler.submit(spec("unwanted"))
    compiler.forget_all_but({id(busy)})
    gate.set()
    finish(compiler, busy)
    again = compiler.submit(spec("again"))
    finish(compiler, again)
    assert "unwanted" not in backend.begun
    assert not unwanted.done


def test_forgetting_many_jobs_takes_a_bounded_number_of_calls_for_each(make: Any, backend: Backend) -> None:
    compiler = make()
    gate = backend.hold("busy")
    busy = compiler.submit(spec("busy"))
    until(lambda: backend.begun == ["busy"])
    wanted = [busy, *(compiler.submit(spec(f"wanted{i}")) for i in range(100))]
    for i in range(100):
        compiler.submit(spec(f"unwanted{i}"))
    calls = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(profile)
    compiler.forget_all_but({id(job) for job in wanted})
    sys.setprofile(None)
    assert calls < 10 * 200
    gate.set()
    finish(compiler, *wanted)
    assert backend.begun == ["busy", *(f"wanted{i}" for i in range(100))]


def test_cache_drops_what_was_used_longest_ago() -> None:
    cache = GrammarCache(max_entries=2, max_bytes=100)
    cache.put(spec("a"), grammar_of(10))
    cache.put(spec("b"), grammar_of(10))
    assert cache.get(spec("a")) is not None
    cache.put(spec("c"), grammar_of(10))
    assert [cache.get(spec(name)) is not None for name in "abc"] == [True, False, True]
    cache.put(spec("large"), grammar_of(85))
    assert [cache.get(spec(name)) is not None for name in ("a", "c", "large")] == [False, True, True]
    cache.put(spec("huge"), grammar_of(101))
    assert cache.get(spec("huge")) is None
    assert cache.num_bytes == 95


def test_cache_counts_what_grammars_have_grown_to_and_forgets_those_that_are_worn() -> None:
    cache = GrammarCache(max_entries=9, max_bytes=100)
    a, b = grammar_of(10), grammar_of(10)
    cache.put(spec("a"), a)
    cache.put(spec("b"), b)
    a.num_bytes = 85
    cache.put(spec("c"), grammar_of(10))
    assert [cache.get(spec(name)) is not None for name in "abc"] == [False, True, True]
    b.is_worn = True
    assert cache.get(spec("b")) is None
    assert len(cache) == 1


def test_where_no_thread_can_be_started_grammars_are_refused_until_one_can(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot_start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    compiler = make()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", cannot_start)
        job = compiler.submit(spec("a"))
    assert isinstance(job.error, Overloaded)
    assert compiler.poll() == [job]
    again = compiler.submit(spec("a"))
    finish(compiler, again)
    assert again.grammar is not None
