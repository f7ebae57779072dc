"""Requests with a grammar, on the fake device and the bundled tokenizer."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from bough.constrained import llguidance_backend
from bough.constrained.base import GOES_ON, REFUSED, Judgement
from bough.constrained.compiler import GrammarCompiler
from bough.constrained.masks import MIN_LATE_VOCAB, PendingMasks, _MaskThread, are_masks_late
from bough.ipc.messages import ControlReq, FinishReason
from bough.sampling.sampling_params import GrammarSpec
from bough.scheduler.req import Req
from bough.step_codec import decode_plan, encode_plan
from bough.step_plan import StepPlan, StepResult
from bough_fake.model import FakeModel
from tests.constrained.following import EOS_IDS, VOCAB_SIZE, bundled_backend, bundled_tokenizer, with_special_tokens
from tests.scheduler.harness import Harness, Output, prompt_of
from tests.step_runs import runs_of

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
JSON = {"json_schema": json.dumps(SCHEMA), "max_new_tokens": 300, "temperature": 1.0}
PROMPT = prompt_of(20, vocab_size=VOCAB_SIZE)
NEVER_LOOKS = -1000
"""As ``SILENT_LOOKS``: tokens are looked behind as rarely as ever, from the first on."""

HANGS_AFTER_S = 120
"""Whatever is waited for comes sooner, on a busy machine, too."""


class Panic(BaseException):
    """Like that of the engine, no ``Exception``."""


class Gate:
    """Compiles with the real backend, what it is told to hold back only once it is let go."""

    def __init__(self) -> None:
        self.events: dict[str, threading.Event] = {}
        self.num_compiled = 0

    def hold(self, text: str) -> threading.Event:
        return self.events.setdefault(text, threading.Event())

    def compile(self, spec: GrammarSpec, timeout_s: float = 0.0) -> Any:
        if spec.text in self.events and not self.events[spec.text].wait(timeout_s):
            raise TimeoutError
        self.num_compiled += 1
        return bundled_backend().compile(spec)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    for event in gate.events.values():
        event.set()


def harness(gate: Gate | None = None, timeout_s: float = 5.0, **options: Any) -> Harness:
    compile_grammar = Gate().compile if gate is None else gate.compile
    return Harness(
        **{
            "vocab_size": VOCAB_SIZE,
            "eos_token_ids": EOS_IDS,
            "eos_only_at_end": True,
            "tokenizer": bundled_tokenizer(),
            "make_compiler": lambda: GrammarCompiler(compile_grammar, timeout_s=timeout_s),
            **options,
        }
    )


def text_of(output: Output) -> str:
    return output.text or bundled_tokenizer().decode(output.token_ids)


def assert_follows(output: Output) -> None:
    assert output.finish_reason is not None
    assert output.finish_reason.type == "stop", output.finish_reason
    value = json.loads(text_of(output))
    assert set(value) == {"name", "age", "tags"}
    assert 0 <= value["age"] <= 120
    assert len(value["name"]) <= 12


def run_until(h: Harness, condition: Any) -> None:
    deadline = time.monotonic() + HANGS_AFTER_S
    while not condition():
        h.step()
        assert time.monotonic() < deadline


def test_every_output_follows_its_grammar() -> None:
    for overlap in [False, True, "ahead"]:
        for temperature in [0.0, 1.0]:
            h = harness(overlap=overlap)
            for i in range(12):
                h.submit(PROMPT, rid=f"json{i}", **{**JSON, "temperature": temperature}, sampling_seed=i)
            h.submit(PROMPT, rid="regex", regex="[0-9]{3}-[a-z]{4}", temperature=temperature, max_new_tokens=20)
            h.submit(PROMPT, rid="choice", choice=("yes", "no", "maybe"), temperature=temperature, max_new_tokens=20)
            h.submit(PROMPT, rid="free", max_new_tokens=20)
            h.run()
            finished = [each for rid, each in h.outputs.items() if rid.startswith("json")]
            assert len(finished) == 12
            for output in finished:
                if output.finish_reason is not None and output.finish_reason.type == "length":
                    continue  # the fake likes long numbers
                assert_follows(output)
            assert text_of(h.outputs["choice"]) in ("yes", "no", "maybe")
            assert len(text_of(h.outputs["regex"])) == 8
            assert h.outputs["free"].token_ids == FakeModel(VOCAB_SIZE, EOS_IDS).expected_tokens(PROMPT, 20)


def test_when_masks_are_computed_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for overlap in [False, True, "ahead"]:

        def outputs() -> dict[str, tuple[list[int], FinishReason | None]]:
            # Little memory, so that requests lose their slots and get others.
            h = harness(overlap=overlap, max_total_num_tokens=600)
            (stop,) = bundled_tokenizer().encode(" ", add_special_tokens=False)
            for i in range(6):
                h.submit(PROMPT, rid=f"r{i}", **JSON, sampling_seed=i)
                h.submit(PROMPT, rid=f"stop{i}", regex="[a-z]{3,40}", stop_token_ids=(stop,), max_new_tokens=30)
                few = tuple(range(i, VOCAB_SIZE, 3))
                h.submit(PROMPT, rid=f"few{i}", regex="[a-z ]*", allowed_token_ids=few, max_new_tokens=30)
                h.submit(PROMPT, rid=f"words{i}", regex="(oak|ash|birch|beech){9}", max_new_tokens=30)
                h.submit(PROMPT, rid=f"digits{i}", regex="[0-9]{9}", max_new_tokens=30, ignore_eos=True, stop=("71",))
            h.run()
            return {rid: (output.token_ids, output.finish_reason) for rid, output in h.outputs.items()}

        monkeypatch.setattr("bough.constrained.masks.MIN_LATE_VOCAB", VOCAB_SIZE + 1)
        early = outputs()
        monkeypatch.setattr("bough.constrained.masks.MIN_LATE_VOCAB", 0)
        assert outputs() == early
        # From the first token on, tokens are looked at with the next mask.
        monkeypatch.setattr("bough.constrained.llguidance_backend.SILENT_LOOKS", NEVER_LOOKS)
        assert outputs() == early
        assert sum(len(token_ids) for token_ids, _ in early.values()) > 400


def test_overlap_changes_nothing() -> None:
    for temperature in [0.0, 1.0]:

        def outputs(overlap: bool) -> dict[str, list[int]]:
            h = harness(overlap=overlap, max_total_num_tokens=600)
            for i in range(6):
                h.submit(PROMPT, rid=f"r{i}", **{**JSON, "temperature": temperature}, sampling_seed=i)
                h.submit(prompt_of(9, i, VOCAB_SIZE), rid=f"free{i}", max_new_tokens=40)
            h.run()
            return {rid: output.token_ids for rid, output in h.outputs.items()}

        assert outputs(False) == outputs(True)


def test_retracted_requests_continue_where_their_grammar_was() -> None:
    roomy, tight = harness(), harness(max_total_num_tokens=100, schedule_conservativeness=0.05)
    for h in (roomy, tight):
        for i in range(6):
            h.submit(PROMPT, rid=f"r{i}", **JSON, sampling_seed=i)
        h.run()
    assert tight.scheduler.requests.stats.num_retracted_total > 0
    for rid, output in roomy.outputs.items():
        assert tight.outputs[rid].token_ids[:200] == output.token_ids[:200]


def test_prompts_in_pieces_begin_the_grammar_at_the_end() -> None:
    h = harness(chunked_prefill_size=8)
    h.submit(prompt_of(100, 1, VOCAB_SIZE), rid="r", regex="[a-c]{5}", max_new_tokens=20)
    h.run()
    assert len(text_of(h.outputs["r"])) == 5
    assert h.outputs["r"].finish_reason.matched is None


def test_parallel_samples_have_a_matcher_each(gate: Gate) -> None:
    h = harness(gate)
    h.submit(PROMPT, rid="r", n=5, regex="(aa|bb|cc)[0-9]{2}", temperature=1.0, sampling_seed=1, max_new_tokens=20)
    h.run()
    texts = [text_of(h.outputs[f"r_{i}"]) for i in range(5)]
    assert all(len(text) == 4 for text in texts)
    assert len(set(texts)) > 1
    assert gate.num_compiled == 1


def test_output_may_be_cut_by_max_new_tokens() -> None:
    h = harness()
    h.submit(PROMPT, rid="cut", regex="[a-z]{200}", max_new_tokens=3)
    h.submit(PROMPT, rid="just", regex="[0-9]", max_new_tokens=1)
    h.run()
    assert h.outputs["cut"].finish_reason.type == "length"
    assert h.outputs["just"].finish_reason.type == "stop"


def test_stop_strings_work_within_a_grammar() -> None:
    h = harness()
    h.submit(PROMPT, rid="r", regex="[0-8]{5,20}9 [a-z]*", stop=("9 ",), max_new_tokens=60)
    h.submit(PROMPT, rid="s", regex="[0-8]{5,20}9 [a-z]*", stop_regex=("[0-9]{4}",), max_new_tokens=60)
    h.run()
    assert h.outputs["r"].finish_reason.matched == "9 "
    assert h.outputs["r"].text.isdigit()
    assert h.outputs["s"].finish_reason.matched == "[0-9]{4}"


def test_ignore_eos_still_ends_where_nothing_may_follow() -> None:
    h = harness()
    h.submit(PROMPT, rid="r", choice=("yes",), ignore_eos=True, max_new_tokens=20)
    h.run()
    assert text_of(h.outputs["r"]) == "yes"
    assert h.outputs["r"].finish_reason.type == "stop"


def test_stop_tokens_may_come_where_the_output_may_end() -> None:
    h = harness()
    (a,) = bundled_tokenizer().encode("a", add_special_tokens=False)
    everything_else = dict.fromkeys(EOS_IDS, -100.0)
    h.submit(PROMPT, rid="r", regex="b?", stop_token_ids=(a,), logit_bias=everything_else, max_new_tokens=9)
    h.run()
    assert h.outputs["r"].finish_reason.type == "stop"


def test_a_request_that_no_token_is_left_for_ends_alone() -> None:
    class NoToken:
        error = None
        is_accepting = is_terminated = False

        @staticmethod
        def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
            bits.fill(0)
            return ()

    class Bad:
        num_bytes = 1
        is_worn = False

        def matcher(self) -> Any:
            return NoToken()

    h = harness(make_compiler=lambda: GrammarCompiler(lambda spec, timeout_s: Bad(), timeout_s=5))
    h.submit(PROMPT, rid="free", max_new_tokens=9)
    h.submit(PROMPT, rid="bad", regex="a", max_new_tokens=9)
    h.run()
    reason = h.outputs["bad"].finish_reason
    assert (reason.type, reason.status_code, reason.param) == ("abort", 400, "regex")
    assert "no token" in reason.message
    assert h.outputs["free"].token_ids == FakeModel(VOCAB_SIZE, EOS_IDS).expected_tokens(PROMPT, 9)


def test_a_panic_of_the_engine_ends_requests_with_a_grammar_and_no_others() -> None:
    for overlap in [False, True]:
        for place in ["mask", "judgement"]:

            class Panics:
                error = None
                is_accepting = is_terminated = False

                @staticmethod
                def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
                    if place == "mask":
                        raise Panic("index out of bounds")
                    bits[:] = -1
                    return ()

                def judge(self, *question: Any) -> Any:
                    raise Panic("index out of bounds")

            class Bad:
                num_bytes = 1
                is_worn = False

                def matcher(self) -> Any:
                    return Panics()

            h = harness(
                make_compiler=lambda: GrammarCompiler(lambda spec, timeout_s: Bad(), timeout_s=5), overlap=overlap
            )
            h.submit(PROMPT, rid="free", max_new_tokens=9)
            h.submit(PROMPT, rid="bad", regex="a", stop_token_ids=(7,), max_new_tokens=9)
            h.run()
            h.close()
            reason = h.outputs["bad"].finish_reason
            message = "the grammar engine has failed" if place == "mask" else "internal error"
            assert (reason.type, reason.status_code) == ("abort", 500)
            assert message in reason.message
            assert h.outputs["free"].token_ids == FakeModel(VOCAB_SIZE, EOS_IDS).expected_tokens(PROMPT, 9)


def test_a_panic_of_the_engine_is_survived_by_the_thread_that_computes_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.constrained.masks.MIN_LATE_VOCAB", 0)

    class Panics:
        @staticmethod
        def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
            bits[:2] = -1
            raise Panic("index out of bounds")

    rows = np.arange(4, dtype=np.int32)
    for _ in range(2):
        masks = PendingMasks(rows, [Panics()] * len(rows), VOCAB_SIZE, {0: (3,)})
        masks.begin()
        assert not masks.bits.any()
        assert masks.has_failed


STEPS_AT_THE_END = """
import time
import numpy as np
from bough.constrained.masks import MIN_LATE_VOCAB, PendingMasks
from bough.model_executor.tp_worker_client import TpModelWorkerClient

class Slow:
    def fill_masks(self, matchers, bits):
        time.sleep(0.3)
        return ()

class Worker:
    def forward_batch_generation(self, plan):
        masks = PendingMasks(np.zeros(1, dtype=np.int32), [Slow()], MIN_LATE_VOCAB)
        masks.begin()
        print(masks.bits.any(), flush=True)

client = TpModelWorkerClient(Worker())
client.submit(None)
client.resolve_batch_result()
client.submit(None)
client.submit(None)
"""


def test_an_interpreter_that_ends_while_steps_with_masks_wait_computes_them_and_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STEPS_AT_THE_END], capture_output=True, text=True, timeout=30, check=True
    )
    assert ended.stdout.split() == ["False"] * 3


def test_masks_that_no_thread_can_be_started_for_are_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoMore(threading.Thread):
        def start(self) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

    class Remembers:
        @staticmethod
        def fill_masks(matchers: Any, bits: Any) -> list[int]:
            bits.fill(7)
            return [1]

    monkeypatch.setattr("bough.constrained.masks._mask_thread", _MaskThread())
    monkeypatch.setattr("bough.constrained.masks.threading.Thread", NoMore)
    masks = PendingMasks(np.array([2, 5], dtype=np.int32), [Remembers(), Remembers()], MIN_LATE_VOCAB)
    masks.begin()
    masks.wait()
    assert (masks.bits == 7).all()
    assert masks.ended == (5,)


def test_the_thread_that_computes_masks_ends_when_there_are_no_more_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bough.constrained.masks.IDLE_SECONDS", 0.02)
    threads: list[threading.Thread] = []

    class Remembers:
        @staticmethod
        def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
            threads.append(threading.current_thread())
            return ()

    for _ in range(2):
        for _ in range(50):
            masks = PendingMasks(np.zeros(1, dtype=np.int32), [Remembers()], MIN_LATE_VOCAB)
            masks.begin()
            assert masks.bits.any() == 0
            time.sleep(0.001)
        threads[-1].join(timeout=10)
        assert not threads[-1].is_alive()
    assert threading.main_thread() not in threads
    assert len({id(thread) for thread in threads}) >= 2


def test_masks_that_are_not_late_are_computed_by_whoever_begins_them() -> None:
    for vocab_size in [MIN_LATE_VOCAB - 31, MIN_LATE_VOCAB - 1, MIN_LATE_VOCAB]:
        threads: list[threading.Thread] = []

        class Remembers:
            @staticmethod
            def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
                threads.append(threading.current_thread())
                return ()

        masks = PendingMasks(np.zeros(1, dtype=np.int32), [Remembers()], vocab_size)
        masks.begin()
        assert masks.bits.shape == (1, MIN_LATE_VOCAB // 32)
        assert (threads == [threading.current_thread()]) == (not are_masks_late(vocab_size))


def test_nothing_is_found_out_about_what_follows_the_last_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.constrained.masks.MIN_LATE_VOCAB", VOCAB_SIZE + 1)
    asked: list[tuple[bool, bool]] = []

    class Remembers:
        error = None
        is_accepting = is_terminated = False

        @staticmethod
        def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
            bits.fill(-1)
            return ()

        def judge(self, token_id: int, look_ahead: bool, mask_place: Any) -> Judgement:
            asked.append((look_ahead, mask_place is not None))
            return GOES_ON

    class Grammar:
        num_bytes = 1
        is_worn = False

        def matcher(self) -> Any:
            return Remembers()

    h = harness(make_compiler=lambda: GrammarCompiler(lambda spec, timeout_s: Grammar(), timeout_s=5))
    h.submit(PROMPT, rid="r", ebnf="x", max_new_tokens=3)
    h.run()
    assert len(h.outputs["r"].token_ids) == 3
    assert asked == [(True, True), (True, True), (False, False)]


def test_a_token_that_the_matcher_refuses_ends_its_request_alone() -> None:
    class Refuses:
        error = "it says no"
        is_accepting = is_terminated = False

        @staticmethod
        def fill_masks(matchers: Any, bits: Any) -> tuple[int, ...]:
            bits.fill(-1)
            return ()

        def judge(self, token_id: int, look_ahead: bool, mask_place: Any) -> Judgement:
            return REFUSED

    class Bad:
        num_bytes = 1
        is_worn = False

        def matcher(self) -> Any:
            return Refuses()

    h = harness(make_compiler=lambda: GrammarCompiler(lambda spec, timeout_s: Bad(), timeout_s=5))
    h.submit(PROMPT, rid="free", max_new_tokens=9)
    h.submit(PROMPT, rid="bad", ebnf="x", max_new_tokens=9)
    h.run()
    assert "it says no" in h.outputs["bad"].finish_reason.message
    assert h.outputs["bad"].finish_reason.param == "ebnf"
    assert len(h.outputs["free"].token_ids) == 9


def test_wrong_grammar_is_refused_naming_the_field() -> None:
    h = harness()
    h.submit(PROMPT, rid="r", n=2, regex="(?=a)")
    h.run()
    for rid in ("r_0", "r_1"):
        reason = h.outputs[rid].finish_reason
        assert (reason.status_code, reason.param, reason.code) == (400, "regex", "invalid_grammar")


def test_servers_that_cannot_follow_grammars_say_so() -> None:
    cases = [
        ({"tokenizer": None, "make_compiler": None}, "tokenizer"),
        ({"make_compiler": None, "grammar_backend": "none"}, "--grammar-backend none"),
    ]
    for options, problem in cases:
        h = harness(**options)
        h.submit(PROMPT, rid="r", regex="a")
        h.run()
        assert problem in h.outputs["r"].finish_reason.message
        assert h.outputs["r"].finish_reason.status_code == 400


def test_recorded_plans_that_were_encoded_give_the_same_tokens_again() -> None:
    for overlap in [False, True]:
        h = harness(overlap=overlap)
        for i in range(4):
            h.submit(PROMPT, rid=f"json{i}", **JSON, sampling_seed=i)
            h.submit(prompt_of(30, i, VOCAB_SIZE), rid=f"free{i}", max_new_tokens=20)
        h.run()
        recorded = [(encode_plan(plan), result) for plan, result in h.worker.steps]
        again = harness(verify=False).worker.worker
        assert any(plan.masks is not None for plan, _ in h.worker.steps)
        for frames, result in recorded:
            assert runs_of(again.forward_batch_generation(decode_plan(frames))) == runs_of(result)


# --- output that is not sampled ---

FORCED = {
    "regex": "(yes|no), the answer is certainly (true|false), and nothing more can be said about it( at all)?",
    "max_new_tokens": 200,
    "temperature": 1.0,
}


def answers(seeds: int = 6, **options: Any) -> tuple[Harness, dict[str, list[int]]]:
    h = harness(**options)
    for i in range(seeds):
        h.submit(PROMPT, rid=f"forced{i}", **FORCED, sampling_seed=i)
        h.submit(PROMPT, rid=f"json{i}", **JSON, sampling_seed=i)
        h.submit(prompt_of(30, i, VOCAB_SIZE), rid=f"free{i}", max_new_tokens=40)
    h.run()
    return h, {rid: output.token_ids for rid, output in h.outputs.items()}


def test_jumping_forward_changes_nothing_but_the_number_of_steps() -> None:
    for overlap in [False, True, "ahead"]:
        for tokens, chunk in [(4096, None), (260, None), (4096, 7)]:
            options = {
                "overlap": overlap,
                "max_total_num_tokens": tokens,
                "schedule_conservativeness": 0.05,
                "chunked_prefill_size": chunk,
            }
            walking, one_by_one = answers(disable_jump_forward=True, **options)
            jumping, outputs = answers(**options)
            assert outputs == one_by_one
            assert jumping.scheduler.requests.stats.forced_tokens_total > 50
            assert walking.scheduler.requests.stats.forced_tokens_total == 0
            if tokens < 4096:
                assert jumping.scheduler.requests.stats.num_retracted_total > 0

            def sampled(h: Harness) -> int:
                return sum(int(plan.sample.sum()) for plan, _ in h.worker.steps)

            assert sampled(jumping) <= sampled(walking) - (
                jumping.scheduler.requests.stats.forced_tokens_total if tokens == 4096 else 0
            )


def test_what_is_cached_after_a_jump_is_right() -> None:
    for overlap in [False, True]:
        # The fake device checks every KV slot that is read.
        h = harness(overlap=overlap)
        for end in range(1, 12):
            (rid,) = h.submit(PROMPT, **{**FORCED, "temperature": 0.0})
            for _ in range(end):
                h.step()
            h.abort(rid)
        h.submit(PROMPT, rid="whole", **{**FORCED, "temperature": 0.0})
        h.run()
        output = h.outputs["whole"].token_ids
        h.submit([*PROMPT, *output], rid="again", max_new_tokens=5)
        h.run()
        # Of an output that ends with a jump, the last tokens were never computed.
        assert h.outputs["again"].cached_tokens >= len(PROMPT) + len(output) - 3


def test_all_of_a_jump_is_cached_however_its_pieces_are_cut() -> None:
    for overlap in [False, True, "ahead"]:
        for length in range(30, 40):
            # The last piece may be a single token, which is computed like one that was sampled.
            h = harness(overlap=overlap, chunked_prefill_size=8)
            h.submit(PROMPT, rid="jump", regex=f"{LONG_TEXT[:length]}[0-9]{{3}}", max_new_tokens=200)
            h.run()
            follow_up = [*PROMPT, *h.outputs["jump"].token_ids]
            h.submit(follow_up, rid="again", max_new_tokens=5)
            h.run()
            h.close()
            assert h.outputs["again"].cached_tokens == len(follow_up) - 1


def test_a_step_that_fails_within_a_jump_leaves_nothing_in_the_cache_that_was_not_computed() -> None:
    for overlap in [False, True, "ahead"]:
        for failing in [0, 1, 2]:
            # The fake device checks every KV slot that is read.
            h = harness(overlap=overlap, chunked_prefill_size=16)
            original = h.worker.worker.forward_batch_generation
            pieces = iter(range(100))

            def forward(plan: StepPlan) -> StepResult:
                is_piece = (
                    plan.num_decode_rows == 1 and plan.num_tokens == 1 + 16 and plan.prefix_lens[1] >= len(PROMPT)
                )
                if is_piece and next(pieces) == failing:
                    raise RuntimeError("injected")
                return original(plan)

            regex = f"[0-9]{LONG_TEXT[:300]}[0-9]"
            h.submit(prompt_of(5, 2, VOCAB_SIZE), regex=regex, max_new_tokens=1)  # it is compiled now
            h.run()
            h.worker.worker.forward_batch_generation = forward  # type: ignore[method-assign]
            h.submit(prompt_of(9, 1, VOCAB_SIZE), rid="free", max_new_tokens=80)
            h.step()
            h.submit(PROMPT, rid="jump", regex=regex, max_new_tokens=200)
            h.run()
            assert h.scheduler.requests.stats.failed_steps_total == 1
            assert text_of(h.outputs["jump"])[1:-1] == LONG_TEXT[:300]
            assert len(h.outputs["free"].token_ids) == 80
            follow_up = [*PROMPT, *h.outputs["jump"].token_ids]
            h.submit(follow_up, rid="again", max_new_tokens=5)
            h.run()
            h.close()
            assert h.outputs["again"].cached_tokens >= len(follow_up) - 3
            assert h.outputs["again"].token_ids == FakeModel(VOCAB_SIZE, EOS_IDS).expected_tokens(follow_up, 5)


def test_a_jump_is_cut_by_max_new_tokens_and_by_stop_strings() -> None:
    h = harness()
    for limit in range(1, 15):
        h.submit(PROMPT, rid=f"cut{limit}", **{**FORCED, "max_new_tokens": limit})
    h.submit(PROMPT, rid="stop", **FORCED, stop=("certain",))
    h.run()
    for limit in range(1, 15):
        output = h.outputs[f"cut{limit}"]
        assert (len(output.token_ids), output.finish_reason.type) == (limit, "length")
    assert h.outputs["stop"].text.endswith(", the answer is ")
    assert h.outputs["stop"].finish_reason.matched == "certain"


LONG_TEXT = "the oak and the ash " * 200


def test_long_jumps_are_computed_within_the_budget_of_steps() -> None:
    for overlap in [False, True]:
        for chunk in [1, 20, 128]:
            h = harness(overlap=overlap, chunked_prefill_size=chunk, max_total_num_tokens=20_000, context_len=8192)
            prompt, text = prompt_of(300, 1, VOCAB_SIZE), LONG_TEXT[:400]
            for i in range(3):
                h.submit(PROMPT, rid=f"jump{i}", regex=f"{text}[0-9]", max_new_tokens=4000)
            h.submit(PROMPT, rid="running", max_new_tokens=1000)
            for _ in range(40):
                h.step()
            h.submit(prompt, rid="late", max_new_tokens=5)
            h.run()
            assert max(plan.num_tokens for plan, _ in h.worker.steps) <= chunk + 8
            assert all(text_of(h.outputs[f"jump{i}"])[:-1] == text for i in range(3))
            assert h.outputs["late"].token_ids == FakeModel(VOCAB_SIZE, EOS_IDS).expected_tokens(prompt, 5)


def test_a_jump_and_a_long_prompt_get_on_side_by_side() -> None:
    h = harness(chunked_prefill_size=64, max_total_num_tokens=20_000, context_len=8192)
    h.submit(PROMPT, rid="jump", regex=f"{LONG_TEXT}[0-9]", max_new_tokens=4000)
    while not h.worker.steps or h.worker.steps[-1][0].num_decode_rows + h.worker.steps[-1][0].num_tokens < 64:
        h.step()
        assert h.scheduler.has_unfinished_requests(), h.outputs["jump"].finish_reason
    h.submit(prompt_of(1000, 1, VOCAB_SIZE), rid="prompt", max_new_tokens=5)
    for _ in range(4):
        h.step()
        assert sorted(h.worker.steps[-1][0].extend_lens.tolist()) == [32, 33]
    h.run()


def test_an_old_request_that_jumps_is_not_passed_by_younger_ones() -> None:
    h = harness(max_total_num_tokens=1300, max_running_requests=4, schedule_conservativeness=0.0, context_len=2048)
    h.submit(PROMPT, rid="jump", regex=f"[0-9]{LONG_TEXT}[0-9]", max_new_tokens=2000)
    for i in range(6):
        h.submit(prompt_of(50, i, VOCAB_SIZE), rid=f"young{i}", max_new_tokens=500)
    h.run()
    assert h.outputs["jump"].deltas[-1].num_retractions == 0
    assert len(h.outputs["jump"].token_ids) > 900, h.outputs["jump"].finish_reason
    assert all(len(h.outputs[f"young{i}"].token_ids) == 500 for i in range(6))


def test_where_memory_is_short_those_jump_first_who_keep_theirs_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"schedule_conservativeness": 0.0, "enable_priority_scheduling": True, "chunked_prefill_size": 4000}
    h = harness(max_total_num_tokens=1300, **options)
    planner, firsts = h.scheduler.planner.prefill, []
    allocate = planner.allocate

    def spy(chunks: dict[Req, int]) -> Any:
        if len(chunks) == 2 and sum(chunks.values()) > h.scheduler.requests.kv.available_tokens:
            firsts.append(next(iter(chunks)).rid)
        return allocate(chunks)

    monkeypatch.setattr(planner, "allocate", spy)
    text = f"[0-9]{LONG_TEXT[:3000]}[0-9]"
    for regex in (text, f"[0-9]{text}"):  # they are compiled now
        h.submit(PROMPT, regex=regex, max_new_tokens=1)
    h.run()
    h.submit(PROMPT, rid="low", regex=f"[0-9]{text}", max_new_tokens=900, priority=0)
    h.step()
    h.submit(prompt_of(20, 1, VOCAB_SIZE), rid="high", regex=text, max_new_tokens=900, priority=1)
    h.run()
    assert set(firsts) == {"high"}


def test_those_that_jump_use_what_is_left_of_their_last_pages() -> None:
    for overlap in [False, True]:
        for pool in [80, 96, 112, 128]:
            """Where nobody can have another page, they would stand still with room before them."""
            jump = {
                "regex": f"(a|b) {'the quick brown fox jumps over the lazy dog and ' * 2}(one|two)",
                "max_new_tokens": 100,
            }
            device = harness(page_size=16, max_total_num_tokens=pool, schedule_conservativeness=0.05, overlap=overlap)
            rids = [device.submit(prompt_of(20, seed=seed, vocab_size=VOCAB_SIZE), **jump)[0] for seed in range(3)]
            device.run()
            assert all(device.outputs[rid].finish_reason.type == "stop" for rid in rids)


def test_with_overlap_a_grammar_gets_a_token_in_every_step() -> None:
    def gaps(overlap: bool) -> int:
        h = harness(overlap=overlap, disable_jump_forward=True)
        h.submit(PROMPT, rid="constrained", regex="[a-z]{50}", max_new_tokens=200)
        h.submit(prompt_of(9, 1, VOCAB_SIZE), rid="free", max_new_tokens=2000)
        run_until(h, lambda: "constrained" in h.outputs and h.outputs["constrained"].finish_reason)
        constrained = [plan.masks is not None for plan, _ in h.worker.steps]
        h.abort("free")
        h.run()
        begin, end = constrained.index(True), len(constrained) - constrained[::-1].index(True)
        return constrained[begin:end].count(False)

    assert gaps(False) == gaps(True) == 0


def test_with_logprobs_every_token_is_sampled() -> None:
    h = harness()
    h.submit(PROMPT, rid="r", **FORCED, return_logprob=True)
    h.run()
    assert h.scheduler.requests.stats.forced_tokens_total == 0
    assert len(h.outputs["r"].logprobs) == len(h.outputs["r"].token_ids)


# --- while a grammar is compiled ---


def test_a_grammar_that_compiles_for_long_holds_nobody_up(gate: Gate) -> None:
    h = harness(gate)
    event = gate.hold("[0-9]{3}")
    h.submit(PROMPT, rid="running", max_new_tokens=900)
    for _ in range(5):
        h.step()
    h.submit(PROMPT, rid="slow", regex="[0-9]{3}")
    h.submit(PROMPT, rid="quick", regex="[a-z]{3}")
    before = len(h.outputs["running"].token_ids)
    for _ in range(50):
        h.step()
    # One token a step, as ever: nothing was waited for.
    assert len(h.outputs["running"].token_ids) == before + 50
    run_until(h, lambda: "quick" in h.outputs and h.outputs["quick"].finish_reason)
    assert "slow" not in h.outputs
    assert h.scheduler.requests.num_waiting == 1
    event.set()
    h.abort("running")
    h.run()
    assert text_of(h.outputs["slow"]).isdigit()


def test_streams_do_not_wait_while_the_engine_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = with_special_tokens({"<|last|>": 80_000})
    words = ["".join(chr(97 + n // 26**place % 26) for place in range(5)) for n in range(10_000)]
    properties = {word: {"type": "array", "items": {"enum": words[i : i + 5]}} for i, word in enumerate(words[:500])}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    steps = 0
    meanwhile: list[int] = []
    compile_natively = llguidance_backend.LLMatcher

    def counting(*args: Any, **options: Any) -> Any:
        taken = 0
        for _ in range(10):  # on a busy machine the other thread may not come to run
            before = steps
            made = compile_natively(*args, **options)
            taken = max(taken, steps - before)
            if taken > 1:
                break
        meanwhile.append(taken)
        return made

    monkeypatch.setattr(llguidance_backend, "LLMatcher", counting)

    def step() -> bool:
        nonlocal steps
        time.sleep(0.001)  # what a device would take: the engine's threads can have the core meanwhile
        h.step()
        steps += 1
        return h.scheduler.requests.num_holding == 3

    options: dict[str, Any] = {"max_total_num_tokens": 30_000, "context_len": 16_384, "verify": False}
    with closing(harness(tokenizer=tokenizer, vocab_size=80_100, make_compiler=None, **options)) as h:
        h.submit(PROMPT, rid="running", max_new_tokens=16_000)
        h.submit(PROMPT, rid="large", json_schema=json.dumps(schema), max_new_tokens=5_000)
        h.submit(PROMPT, rid="pattern", regex=f"({'|'.join(words)}){{9000}}", max_new_tokens=5_000)
        run_until(h, step)
        h.abort(abort_all=True)
        h.run()
    assert len(meanwhile) == 2
    assert min(meanwhile) > 1, "each takes as long as twenty steps, and none could be taken if the GIL were held"


def test_a_request_can_be_aborted_while_its_grammar_is_compiled(gate: Gate) -> None:
    h = harness(gate)
    event = gate.hold("[0-9]{3}")
    h.submit(PROMPT, rid="gone", regex="[0-9]{3}")
    h.submit(PROMPT, rid="stays", regex="[0-9]{3}")
    h.step()
    h.abort("gone")
    assert h.outputs["gone"].finish_reason.type == "abort"
    assert h.scheduler.requests.num_waiting == 1
    event.set()
    h.run()
    assert len(text_of(h.outputs["stays"])) == 3
    assert h.outputs["gone"].token_ids == []


def test_a_grammar_that_takes_too_long_fails_its_request_alone(gate: Gate) -> None:
    h = harness(gate, timeout_s=0.05)
    gate.hold("slow")
    h.submit(PROMPT, rid="free", max_new_tokens=9)
    h.submit(PROMPT, rid="slow", regex="slow")
    h.run()
    reason = h.outputs["slow"].finish_reason
    assert (reason.status_code, reason.param) == (400, "regex")
    assert "0.05 s" in reason.message
    assert len(h.outputs["free"].token_ids) == 9


def test_those_that_compile_count_in_the_queue(gate: Gate) -> None:
    h = harness(gate, max_queued_requests=1, max_running_requests=1)
    gate.hold("slow")
    h.submit(PROMPT, rid="running", max_new_tokens=500)
    h.step()
    h.submit(PROMPT, rid="slow", regex="slow")
    h.submit(PROMPT, rid="refused", regex="slow")
    assert h.outputs["refused"].finish_reason.status_code == 503
    h.abort(abort_all=True)
    gate.events["slow"].set()
    h.run()


def test_a_compiled_request_takes_the_place_of_its_arrival(gate: Gate) -> None:
    h = harness(gate, max_running_requests=1, schedule_policy="fcfs")
    event = gate.hold("[0-9]{3}")
    h.submit(PROMPT, rid="running", max_new_tokens=900)
    h.step()
    h.submit(PROMPT, rid="first", regex="[0-9]{3}")
    h.submit(PROMPT, rid="second", max_new_tokens=5)
    event.set()
    run_until(h, lambda: not h.scheduler.requests.compiling)
    h.abort("running")
    h.run()
    assert list(h.outputs) == ["running", "first", "second"]


class OutOfOrder:
    """A compiled grammar that nothing can follow."""

    num_bytes = 0
    is_worn = False

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def matcher(self) -> Any:
        raise self.error


def test_a_grammar_that_cannot_be_begun_ends_its_requests_alone(gate: Gate) -> None:
    for waits in [False, True]:
        for error in [RuntimeError("out of order"), Panic("index out of bounds")]:
            event = gate.hold("[a-c]{5}")
            h = harness(gate, timeout_s=60.0)
            compile_well = gate.compile
            gate_compile = {"[d-f]{5}": OutOfOrder(error)}
            h.scheduler.grammars._compiler._compile = lambda spec, *rest: (  # type: ignore[union-attr]
                gate_compile.get(spec.text) or compile_well(spec, *rest)
            )
            bad = h.submit(PROMPT, n=2, rid="bad", regex="[d-f]{5}", max_new_tokens=20)
            h.submit(PROMPT, rid="good", regex="[a-c]{5}", max_new_tokens=20)
            event.set()
            h.run()
            if not waits:  # compiled before, so that it need not wait
                bad = h.submit(PROMPT, n=2, rid="again", regex="[d-f]{5}", max_new_tokens=20)
                h.run()
            for rid in bad:
                reason = h.outputs[rid].finish_reason
                assert reason is not None
                assert (reason.type, reason.status_code) == ("abort", 500)
            assert len(text_of(h.outputs["good"])) == 5


# --- an end that only the next step would tell of ---


@pytest.fixture
def unseen_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first token on, no token is looked at before the next mask."""
    monkeypatch.setattr("bough.constrained.masks.MIN_LATE_VOCAB", 0)
    monkeypatch.setattr("bough.constrained.llguidance_backend.SILENT_LOOKS", NEVER_LOOKS)


def ended_unseen(beside: int = 0, **options: Any) -> tuple[Harness, list[int]]:
    """A request whose output is complete, and that nobody knows it of; its tokens."""
    h = harness(disable_jump_forward=True, **options)
    h.submit(PROMPT, rid="r", regex="[a-z]{5}", max_new_tokens=40, timeout=1000.0)
    for i in range(beside):
        h.submit(prompt_of(30, i, VOCAB_SIZE), rid=f"free{i}", max_new_tokens=300)
    run_until(h, lambda: "r" in h.outputs and len(text_of(h.outputs["r"])) == 5)
    assert h.outputs["r"].finish_reason is None
    return h, list(h.outputs["r"].token_ids)


def assert_ended(h: Harness, tokens: list[int]) -> None:
    assert h.outputs["r"].finish_reason == FinishReason("stop")
    assert h.outputs["r"].token_ids == tokens
    assert h.outputs["r"].deltas[-1].num_retractions == 0


@pytest.mark.usefixtures("unseen_ends")
@pytest.mark.parametrize("mode", ["in_place", "abort", "retract"])
def test_a_pause_tells_of_outputs_that_are_complete(mode: str) -> None:
    h, tokens = ended_unseen()
    (reply,) = h.scheduler.process_input_requests([ControlReq("1", "pause_generation", {"mode": mode})])
    assert reply.success
    assert_ended(h, tokens)
    assert not h.scheduler.has_unfinished_requests()


@pytest.mark.usefixtures("unseen_ends")
def test_an_output_that_is_complete_is_neither_aborted_nor_late(monkeypatch: pytest.MonkeyPatch) -> None:
    h, tokens = ended_unseen()
    h.abort("r")
    assert_ended(h, tokens)
    assert h.scheduler.requests.stats.num_aborted_total == 0
    h, tokens = ended_unseen()
    now = time.monotonic()
    monkeypatch.setattr("bough.scheduler.deadlines.time.monotonic", lambda: now + 2000)
    h.scheduler.arrivals.end_late()
    assert_ended(h, tokens)
    assert h.scheduler.requests.stats.num_timeouts_total == 0


@pytest.mark.usefixtures("unseen_ends")
@pytest.mark.parametrize("beside", [0, 1])
def test_where_memory_runs_out_those_that_are_complete_end_first(beside: int, monkeypatch: pytest.MonkeyPatch) -> None:
    h, tokens = ended_unseen(beside)
    extend = h.scheduler.requests.kv.extend_decode
    monkeypatch.setattr(
        h.scheduler.requests.kv, "extend_decode", lambda slots: extend(slots) if h.outputs["r"].finish_reason else None
    )
    h.step()
    assert_ended(h, tokens)
    h.run()
    assert h.scheduler.requests.stats.num_retracted_total == 0
    assert all(len(h.outputs[f"free{i}"].token_ids) == 300 for i in range(beside))


@pytest.mark.usefixtures("unseen_ends")
@pytest.mark.parametrize("beside", [0, 2])
@pytest.mark.parametrize("has_begun", [False, True])
def test_a_step_that_fails_fails_no_output_that_was_complete(beside: int, has_begun: bool) -> None:
    h, tokens = ended_unseen(beside)
    original = h.worker.worker.forward_batch_generation
    fails = iter([True])

    def forward(plan: StepPlan) -> StepResult:
        if next(fails, False):
            if has_begun:
                assert plan.masks is not None
                plan.masks.begin()
            raise RuntimeError("device error")
        return original(plan)

    h.worker.worker.forward_batch_generation = forward  # type: ignore[method-assign]
    h.step()
    assert_ended(h, tokens)
    h.run()
    assert all(len(h.outputs[f"free{i}"].token_ids) == 300 for i in range(beside))


@pytest.mark.usefixtures("unseen_ends")
def test_a_matcher_that_a_step_in_flight_may_use_is_not_asked() -> None:
    h, tokens = ended_unseen(overlap=True)
    assert h.scheduler.requests.in_flight
    (req,) = h.scheduler.requests
    assert not h.scheduler.requests.is_complete(req)
    h.run()
    h.close()
    assert_ended(h, tokens)


def test_a_matcher_that_cannot_be_asked_is_asked_by_the_next_step() -> None:
    class Panics:
        @property
        def is_terminated(self) -> bool:
            raise Panic("index out of bounds")

    h = harness()
    # No token is that long, so that the first one does not end it.
    h.submit(PROMPT, rid="r", regex="[a-z]{30}", max_new_tokens=40)
    h.step()
    (req,) = h.scheduler.requests
    matcher, req.matcher = req.matcher, Panics()  # type: ignore[assignment]
    assert not h.scheduler.requests.is_complete(req)
    req.matcher = matcher
    h.run()
