"""What waiting prompts count, beside what they take in a scheduler."""

from __future__ import annotations

import gc
import json
import tracemalloc
from array import array
from typing import Any

import msgspec
import pytest

from bough.errors import Overloaded, PayloadTooLarge
from bough.ipc.codec import encode
from bough.ipc.messages import RequestExtras, TokenizedGenerateReqInput
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReadySignal, ReqState
from bough.managers.scheduler_queue import SchedulerQueue
from bough.managers.waiting_prompts import MIN_BYTES, WaitingPrompts
from bough.observability.request_context import CURRENT, RequestContext
from bough.sampling.sampling_params import SamplingParams
from tests.constrained.following import bundled_tokenizer
from tests.scheduler.harness import Harness

VOCAB_SIZE = 151_000
IDS = list(range(1000, 1000 + 16_384))
WORDS = tuple(f"a{number}" for number in range(256))
SEQUENCES = tuple((1000 + number,) * 4 for number in range(2 * len(WORDS)))
UNLIMITED = 1 << 40

NOISE = 256
"""Bytes that the records of two requests differ in, whose numbers are larger and larger."""


def requests_of(count: int, *, n: int = 1, sampling_params: SamplingParams | None = None, **fields: Any) -> Any:
    """Requests of one call, with parameters in common, and the states of their outputs."""
    params = sampling_params or SamplingParams(n=n)
    requests = [
        GenerateRequest(
            rids=[f"{number:032d}_{sample}" for sample in range(params.n)],
            input_ids=array("i", [1]),
            sampling_params=params,
            **fields,
        )
        for number in range(count)
    ]
    signal = ReadySignal()
    states = [ReqState(rid, 0, request, signal, 0.0) for request in requests for rid in request.rids]
    return requests, states


def counted(params: SamplingParams, **fields: Any) -> int:
    """What the outputs of a prompt count."""
    waiting = WaitingPrompts(UNLIMITED, VOCAB_SIZE, SchedulerQueue(None))
    waiting.add(*requests_of(1, sampling_params=params, **fields))
    return waiting.num_bytes


@pytest.fixture(scope="module")
def harness() -> Harness:
    made = Harness(vocab_size=VOCAB_SIZE, tokenizer=bundled_tokenizer())
    # What is there by now need not be walked through whenever garbage is collected below.
    gc.collect()
    gc.freeze()
    return made


class TestWhatParametersCount:
    @pytest.mark.parametrize("n", [1, 4])
    @pytest.mark.parametrize(
        ("params", "fields"),
        [
            ({"allowed_token_ids": tuple(IDS)}, {}),
            ({"allowed_token_ids": (5,)}, {}),
            ({"logit_bias": dict.fromkeys(IDS[:4096], 1.5)}, {}),
            ({"logit_bias": dict.fromkeys(IDS[:2731], 1.5)}, {}),
            ({"stop_token_ids": tuple(IDS[:256]), "min_new_tokens": 1}, {}),
            ({"stop": ("x",)}, {}),
            ({"stop": tuple(f"{number:03}" + "x" * 1021 for number in range(32))}, {}),
            ({"bad_words": WORDS}, {"banned_sequences": SEQUENCES}),
            ({}, {"token_ids_logprob": IDS[:1024], "return_logprob": True}),
            ({}, {"extras": RequestExtras(extra_key="k" * 2048)}),
        ],
    )
    def test_it_is_what_a_scheduler_holds_and_not_much_more(
        self, harness: Harness, params: dict[str, Any], fields: dict[str, Any], n: int
    ) -> None:
        held = held_by(harness, SamplingParams(n=n, **params), **fields) - held_by(harness, SamplingParams(n=n))
        more = counted(SamplingParams(n=n, **params), **fields) - n * MIN_BYTES
        assert held - NOISE <= more <= 2 * held + n * NOISE

    @pytest.mark.parametrize(
        "params",
        [
            {"json_schema": json.dumps({"const": "x" * 100_000})},
            {"choice": tuple(f"choice {number}" for number in range(1024))},
        ],
    )
    def test_a_grammar_counts_once_and_for_what_follows_each_output_through_it(
        self, harness: Harness, params: dict[str, Any]
    ) -> None:
        held = held_by(harness, SamplingParams(n=4, **params)) - held_by(harness, SamplingParams(n=4))
        once = (counted(SamplingParams(n=4, **params)) - 4 * MIN_BYTES) / 5
        assert held - NOISE <= once <= 1.1 * held

    def test_numbers_alone_count_nothing_more(self) -> None:
        params = SamplingParams(n=3, temperature=0.5, top_p=0.9, max_new_tokens=10, sampling_seed=1)
        assert counted(params) == 3 * MIN_BYTES

    def test_each_prompt_counts_its_copy(self) -> None:
        params = SamplingParams(allowed_token_ids=tuple(IDS))
        waiting = WaitingPrompts(UNLIMITED, VOCAB_SIZE, SchedulerQueue(None))
        waiting.add(*requests_of(100, sampling_params=params))
        assert waiting.num_bytes == 100 * counted(params)


def held_by(harness: Harness, params: SamplingParams, **fields: Any) -> int:
    """Bytes that the outputs of a prompt take in a scheduler; the least, as tables of others may grow meanwhile."""
    return min(_held_once(harness, params, **fields) for _ in range(3))


def _held_once(harness: Harness, params: SamplingParams, **fields: Any) -> int:
    rids = [f"{sample:032d}" for sample in range(params.n)]
    message = TokenizedGenerateReqInput(rids, array("i", [1]).tobytes(), params, **fields)
    frame, decoder = encode(message), msgspec.msgpack.Decoder(TokenizedGenerateReqInput)
    harness.scheduler.arrivals._intake.requests_of(decoder.decode(frame), None, ())  # fills caches
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        reqs = harness.scheduler.arrivals._intake.requests_of(decoder.decode(frame), None, ())
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(reqs) == params.n
    return held


class TestBound:
    """``allowed_token_ids`` of 16,384 tokens, a body of 100 KB, for 2,048 prompts: more than a gigabyte."""

    PARAMS = SamplingParams(allowed_token_ids=tuple(IDS))
    LIMIT = 128 << 20

    def test_copies_of_parameters_are_refused_that_could_never_wait(self) -> None:
        waiting = WaitingPrompts(self.LIMIT, VOCAB_SIZE, SchedulerQueue(None))
        token = CURRENT.set(RequestContext("r"))
        try:
            with pytest.raises(PayloadTooLarge, match="max-queued-bytes") as raised:
                waiting.add(*requests_of(2048, sampling_params=self.PARAMS))
            assert raised.value.status_code == 413
            assert waiting.num_bytes == 0
            waiting.add(*requests_of(100, sampling_params=self.PARAMS))
        finally:
            CURRENT.reset(token)

    def test_the_owner_of_an_engine_may_have_them(self) -> None:
        waiting = WaitingPrompts(self.LIMIT, VOCAB_SIZE, SchedulerQueue(None))
        _, states = call = requests_of(2048, sampling_params=self.PARAMS)
        waiting.add(*call)
        assert waiting.num_bytes > 1 << 30
        for state in states:
            waiting.remove(state)
        assert waiting.num_bytes == 0

    def test_an_output_on_its_own_is_always_taken(self) -> None:
        waiting = WaitingPrompts(MIN_BYTES, VOCAB_SIZE, SchedulerQueue(None))
        token = CURRENT.set(RequestContext("r"))
        try:
            waiting.add(*requests_of(1, sampling_params=self.PARAMS))
            assert waiting.num_bytes > MIN_BYTES
        finally:
            CURRENT.reset(token)

    def test_parameters_of_several_calls_wait_together_up_to_the_bound(self) -> None:
        waiting = WaitingPrompts(self.LIMIT, VOCAB_SIZE, SchedulerQueue(None))
        first, second, third = (requests_of(80, sampling_params=self.PARAMS) for _ in range(3))  # 54 MB each
        waiting.add(*first)
        waiting.add(*second)
        with pytest.raises(Overloaded) as raised:
            waiting.add(*third)
        assert raised.value.code == "queue_full"
        for state in (*first[1], *second[1], *third[1]):
            waiting.remove(state)
        assert waiting.num_bytes == 0
