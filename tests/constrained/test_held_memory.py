from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from bough.constrained import held_memory, llguidance_backend
from bough.constrained.base import GrammarError, mask_words
from bough.constrained.compiler import GrammarCompiler
from bough.constrained.engine_errors import TOO_LARGE
from bough.constrained.held_memory import GrowthMeter, HeldBytes
from bough.constrained.llguidance_backend import Grammar, LLGuidanceBackend
from bough.constrained.translate import Translator
from bough.errors import Overloaded
from bough.process_usage import allocated_bytes
from tests.constrained.following import EOS_IDS, VOCAB_SIZE, bundled_tokenizer, make_tokenizer, spec_of

GROWS = spec_of("regex", "[a-z]*a[a-z]{200}x")


@pytest.fixture
def backend() -> LLGuidanceBackend:
    return LLGuidanceBackend(make_tokenizer(bundled_tokenizer(), VOCAB_SIZE, EOS_IDS), Translator())


def follow(grammar: Grammar, tokens: int) -> Any:
    matcher, rng = grammar.matcher(), np.random.default_rng(0)
    words = np.zeros(mask_words(VOCAB_SIZE), dtype=np.int32)
    for _ in range(tokens):
        matcher.fill_mask(words)
        allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
        if not allowed.size:
            break
        matcher.accept(int(rng.choice(allowed)))
    return matcher


def test_what_a_grammar_grows_by_is_counted_and_given_back(backend: LLGuidanceBackend) -> None:
    grammar = backend.build("regex", Translator().translate(GROWS), 100_000)
    assert backend.held.total == grammar.num_bytes == 100_000
    before = allocated_bytes()
    matcher = follow(grammar, 60)
    grown = allocated_bytes() - before
    assert grown > 1e6
    assert 0.5 * grown < grammar.num_bytes - 100_000 < 2 * grown
    assert backend.held.total > grammar.num_bytes, "the matcher takes some, too"
    del matcher, grammar
    assert backend.held.total == 0


def test_a_grammar_that_grows_beyond_its_bounds_ends_its_outputs_and_no_others(
    backend: LLGuidanceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bound in ["of each", "of all"]:
        if bound == "of each":
            monkeypatch.setattr(llguidance_backend, "MAX_GROWN_BYTES", 2**20)
        else:
            monkeypatch.setattr(llguidance_backend, "WORN_BYTES", 2**20)
            backend.held = HeldBytes(max_bytes=2**20)
        other = backend.compile(spec_of("regex", "[a-z]+"))
        grammar = backend.compile(GROWS)
        matcher = follow(grammar, 200)
        assert matcher.error == TOO_LARGE
        assert grammar.is_worn
        assert grammar.failure == TOO_LARGE
        bits = np.ones((2, mask_words(VOCAB_SIZE)), dtype=np.int32)
        beside = other.matcher()
        assert matcher.fill_masks([matcher, beside], bits) == []
        assert not bits[0].any()
        assert bits[1].any()
        assert beside.error is None


def test_a_grammar_that_fails_soon_is_not_tried_again_for_a_while(backend: LLGuidanceBackend) -> None:
    compiler = GrammarCompiler(lambda spec, timeout_s: backend.compile(spec), timeout_s=5)
    job = compiler.submit(GROWS)
    while not job.done:
        compiler.wait(1)
        compiler.poll()
    compiler.poll()
    assert compiler.submit(GROWS).grammar is job.grammar
    assert job.grammar is not None
    job.grammar.fail(TOO_LARGE)  # type: ignore[attr-defined]
    for _ in range(2):
        error = compiler.submit(GROWS).error
        assert isinstance(error, GrammarError)
        assert TOO_LARGE in error.message
    assert compiler.num_compiled == 1
    compiler.close()


def test_a_new_grammar_waits_for_room_and_is_refused_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    held = HeldBytes(max_bytes=100)
    held.add(80)
    monkeypatch.setattr(held_memory, "ROOM_SECONDS", 0.05)
    with pytest.raises(Overloaded), held.room(30):
        pass
    assert held.total == 80
    monkeypatch.setattr(held_memory, "ROOM_SECONDS", 10.0)
    entered = threading.Event()

    def wait() -> None:
        with held.room(30):
            entered.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not held.lacking:
        time.sleep(0.001)
    assert held.lacking == 10
    assert not entered.is_set()
    held.release(40)
    thread.join(5)
    assert entered.is_set()
    assert held.total == 40


def test_what_is_remembered_goes_where_room_is_lacking(backend: LLGuidanceBackend) -> None:
    compiler = GrammarCompiler(lambda spec, timeout_s: backend.compile(spec), timeout_s=5, held=backend.held)
    for pattern in ("a", "b"):
        job = compiler.submit(spec_of("regex", pattern))
        while not job.done:
            compiler.wait(1)
            compiler.poll()
    compiler.poll()
    assert len(compiler.cache) == 2
    del job
    backend.held._max_bytes = backend.held.total - 1
    compiler.poll()
    assert len(compiler.cache) == 1
    assert not backend.held.lacking
    compiler.close()


def test_pieces_that_are_not_measured_count_like_others_but_for_lumps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, allocated = [0], [0]

    def look() -> int:
        now[0] += 2 * held_memory.LOOK_NS
        return allocated[0]

    monkeypatch.setattr(held_memory, "allocated_bytes", look)
    monkeypatch.setattr(held_memory.time, "perf_counter_ns", lambda: now[0])
    sure = held_memory.SURE_BYTES
    for growth, size, expected in (
        (1000, 0, 2000),
        (sure - 1000, 0, sure),
        (sure - 1000, 3 * sure, 2 * sure - 2000),
        (5 * sure, 3 * sure, 5 * sure),
        (-1000, 0, -2000),
        (-5 * sure, 3 * sure, -5 * sure),
    ):
        meter, counted = GrowthMeter(), 0
        for _ in range(400):
            before = meter.begin()
            allocated[0] += growth
            if before is not None:
                counted += meter.grown(before, size)
        assert counted == 200 * expected


def test_a_long_text_is_not_too_large_where_memory_is_rarely_measured(
    backend: LLGuidanceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GrowthMeter, "begin", lambda self: setattr(self, "_apart", 64) or allocated_bytes())
    matcher = follow(backend.compile(spec_of("regex", "the oak and the ash " * 200)), 1)
    assert matcher.error is None


def test_destructors_start_no_thread_and_take_no_lock(
    backend: LLGuidanceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector runs them anywhere, also while another thread is started or the memory is counted."""
    grammar = backend.build("regex", Translator().translate(GROWS), llguidance_backend.LARGE_BYTES)
    matcher = follow(grammar, 8)
    started: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "start", started.append)
    del matcher
    grammar = None  # type: ignore[assignment]
    monkeypatch.undo()
    assert not started
    assert backend.held.total == 0


def test_the_thread_that_frees_ends_with_its_owner() -> None:
    held = HeldBytes()
    held.add(1)
    (thread,) = [each for each in threading.enumerate() if each.name == "grammar-memory"][-1:]
    del held
    thread.join(5)
    assert not thread.is_alive()
