"""Thoughts end when they have as many tokens as they may have, and nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from bough.constrained.compiler import GrammarCompiler
from bough.ipc.messages import ThoughtMarkers
from bough.scheduler.thinking_limit import LOOK_TOKENS, NEVER, ThinkingLimit
from tests.constrained.following import VOCAB_SIZE, bundled_backend, bundled_tokenizer
from tests.scheduler.harness import Harness, Output, prompt_of
from tests.step_runs import failing

COUNT = 40


def ids(text: str) -> tuple[int, ...]:
    return tuple(bundled_tokenizer().encode(text, add_special_tokens=False))


CLOSE, BEHIND = ids("\n</think>"), ids("\n\n")
MARKERS = ThoughtMarkers("<think>", ("</think>", "<tool_call>"), CLOSE, BEHIND)
BEGUN = ThoughtMarkers("<think>", ("</think>", "<tool_call>"), CLOSE, BEHIND, begun=True)
CHANNELS = ThoughtMarkers(
    "<|channel|>analysis<|message|>",
    ("<|end|>",),
    (1,),
    (2,),
    recur=True,
    never="<|channel|>final",
    at_last=(3,),
)
PROMPT = prompt_of(20, vocab_size=VOCAB_SIZE)


def made(budget: int, says: Sequence[str], markers: ThoughtMarkers, *, bare: bool = False) -> tuple[list[str], int]:
    """What comes of a model that says something, a token each, and how often that was looked at.

    What has to come is written as a number.
    """
    forced = [f"{token}" for token in (*markers.close, *markers.behind, *markers.at_last)]
    pieces = [*markers.ends[:1], *[" "] * len(forced)]
    texts = dict(zip(forced, [" "] * len(forced), strict=True)) | {f"{markers.close[-1]}": pieces[0]}
    tokens: list[str] = []
    limit = ThinkingLimit(budget, markers, lambda token: texts.get(tokens[token], tokens[token]).encode(), bare=bare)
    left, looks = list(says), 0
    while left:
        tokens.append(left.pop(0) if limit.forced is None else f"{limit.forced}")
        assert len(tokens) <= limit.check_at
        if len(tokens) == limit.check_at:
            limit.look(np.arange(len(tokens), dtype=np.int32))
            looks += 1
            assert limit.check_at > len(tokens)
    return tokens, looks


SMALL = ThoughtMarkers("<think>", ("</think>", "<call>"), (7, 8), (9,))
SMALL_BEGUN = ThoughtMarkers("<think>", ("</think>", "<call>"), (7, 8), (9,), begun=True)


def test_thoughts_are_bounded() -> None:
    cases = [
        (2, SMALL_BEGUN, "a b c d", "a b 7 8 9 c d"),
        (0, SMALL_BEGUN, "a b", "7 8 9 a b"),
        (0, SMALL, "<think> a b", "<think> 7 8 9 a b"),
        (2, SMALL, "<think> a b c", "<think> a b 7 8 9 c"),
        (2, SMALL, "<thi nk> a b c", "<thi nk> a b 7 8 9 c"),
        (1, SMALL_BEGUN, "<thi nk> a b c", "<thi nk> a 7 8 9 b c"),
        (1, SMALL_BEGUN, "<thi s a b c", "<thi s 7 8 9 a b c"),
        (1, SMALL, "_ _ <think> a b", "_ _ <think> a 7 8 9 b"),
        (2, SMALL_BEGUN, "_ _ a b", "_ _ 7 8 9 a b"),
        (1, SMALL, "no thoughts <think> a b c", "no thoughts <think> a b c"),
        (1, SMALL, "<thin g a b c", "<thin g a b c"),
        (3, SMALL_BEGUN, "a b </think> c d e", "a b </think> c d e"),
        (3, SMALL_BEGUN, "a b </thi nk> c d e", "a b </thi 7 8 9 nk> c d e"),
        (4, SMALL_BEGUN, "a b </thi nk> c d e", "a b </thi nk> c d e"),
        (3, SMALL_BEGUN, "a b <call> c d e", "a b <call> c d e"),
        (2, SMALL, "<think></think> a b c d", "<think></think> a b c d"),
        (9, SMALL_BEGUN, "a b", "a b"),
    ]
    for budget, markers, says, expected in cases:
        tokens, _ = made(budget, [" " if each == "_" else each for each in says.split()], markers)
        assert tokens == [" " if each == "_" else each for each in expected.split()]


def test_what_the_model_has_of_the_end_is_not_repeated() -> None:
    limit = ThinkingLimit(2, SMALL_BEGUN, lambda token: b"</think>" if token == 8 else b"x", bare=True)
    limit.look(np.array([5, 7], dtype=np.int32))
    assert (limit.forced, limit.check_at) == (8, 3)
    limit.look(np.array([5, 7, 8], dtype=np.int32))
    assert (limit.forced, limit.check_at) == (None, NEVER)


def test_long_thoughts_are_read_in_pieces_and_not_at_all_behind_their_end() -> None:
    says = ["a"] * (3 * LOOK_TOKENS) + ["</think>"] + ["b"] * (2 * LOOK_TOKENS)
    assert made(10**9, says, SMALL_BEGUN) == (says, 4)
    tokens, looks = made(2 * LOOK_TOKENS + 5, says, SMALL_BEGUN)
    assert tokens[2 * LOOK_TOKENS + 5 :][:4] == ["7", "8", "9", "a"]
    assert looks == 3 + 3


def test_thoughts_on_channels_count_together() -> None:
    start, end, final = "<|channel|>analysis<|message|>", "<|end|>", "<|channel|>final<|message|>"
    says = [start, "a", "a", end, "x", start, "a", "a", "a", end, final, *["b"] * 9]
    assert made(9, says, CHANNELS)[0] == says
    assert made(3, says, CHANNELS)[0] == [*says[:7], "1", "2", *says[7:]]
    # It thinks again all the same: the second time it is told to answer, too.
    again = [start, "a", start, "a", *["b"] * 4]
    assert made(1, again, CHANNELS)[0] == [start, "a", "1", "2", start, "1", "2", "3", "a", *["b"] * 4]
    tokens, looks = made(2, [start, "a", end, final, *["b"] * 100], CHANNELS)
    assert tokens == [start, "a", end, final, *["b"] * 100]
    assert looks < 6


# --- in the scheduler -------------------------------------------------------------------------------------------------


def harness(**options: Any) -> Harness:
    return Harness(
        **{
            "vocab_size": VOCAB_SIZE,
            "tokenizer": bundled_tokenizer(),
            "make_compiler": lambda: GrammarCompiler(lambda spec, _: bundled_backend().compile(spec), timeout_s=5.0),
            **options,
        }
    )


def run(h: Harness, prompt: list[int] = PROMPT, **fields: Any) -> Output:
    (rid,) = h.submit(prompt, **{"max_new_tokens": COUNT, **fields})
    h.run()
    return h.outputs[rid]


def expected(budget: int, close: tuple[int, ...] = CLOSE + BEHIND, count: int = COUNT) -> list[int]:
    """A greedy output with thoughts of which none end by themselves."""
    h = harness()
    thoughts = h.expected(PROMPT, budget)
    begun = [*thoughts, *close][:count]
    return [*begun, *h.expected([*PROMPT, *begun], count - len(begun))]


OVERLAPS = pytest.mark.parametrize("overlap", [False, True, "ahead"])


@OVERLAPS
@pytest.mark.parametrize("budget", [0, 1, 9, COUNT - 2, COUNT - 1])
@pytest.mark.parametrize("max_steps", [1, 8])
def test_thoughts_have_as_many_tokens_as_they_may_have(budget: int, overlap: Any, max_steps: int) -> None:
    if overlap and max_steps > 1:
        pytest.skip("steps in a row do not overlap")
    for stream in (True, False):
        h = harness(overlap=overlap, max_steps=max_steps)
        output = run(h, thinking_token_budget=budget, thoughts=BEGUN, stream=stream)
        h.close()
        assert output.token_ids == expected(budget)
        assert output.finish_reason is not None
        assert (output.finish_reason.type, output.finish_reason.length) == ("length", COUNT)


@OVERLAPS
def test_a_bound_that_is_not_reached_changes_nothing(overlap: Any) -> None:
    h = harness(overlap=overlap)
    plain = run(h)
    for markers in (BEGUN, MARKERS):
        for budget in (COUNT, 10**6):
            assert run(h, thinking_token_budget=budget, thoughts=markers).token_ids == plain.token_ids
    # An answer that does not begin with the mark has no thoughts.
    assert run(h, thinking_token_budget=3, thoughts=MARKERS).token_ids == plain.token_ids
    h.close()


def test_others_are_not_held_up() -> None:
    for max_steps in [1, 8]:
        h = harness(overlap=max_steps == 1, max_steps=max_steps)
        plain = [h.submit(prompt_of(9, seed, VOCAB_SIZE), max_new_tokens=COUNT)[0] for seed in range(3)]
        bounded = [
            h.submit(PROMPT, max_new_tokens=COUNT, thinking_token_budget=budget, thoughts=BEGUN)[0]
            for budget in (0, 5, 11)
        ]
        h.run()
        for seed, rid in enumerate(plain):
            assert h.outputs[rid].token_ids == h.expected(prompt_of(9, seed, VOCAB_SIZE), COUNT)
        for budget, rid in zip((0, 5, 11), bounded, strict=True):
            assert h.outputs[rid].token_ids == expected(budget)
        h.close()


def test_each_sample_has_its_own_bound() -> None:
    h = harness()
    rids = h.submit(
        PROMPT, n=3, max_new_tokens=COUNT, temperature=1.0, sampling_seed=5, thinking_token_budget=6, thoughts=BEGUN
    )
    h.run()
    outputs = [h.outputs[rid].token_ids for rid in rids]
    assert len({tuple(each[:6]) for each in outputs}) == 3
    assert all(tuple(each[6 : 6 + len(CLOSE + BEHIND)]) == CLOSE + BEHIND for each in outputs)
    assert all(len(each) == COUNT for each in outputs)
    h.close()


def test_what_has_to_come_has_logprobs_like_every_token() -> None:
    h = harness()
    output = run(h, thinking_token_budget=4, thoughts=BEGUN, return_logprob=True, top_logprobs_num=2)
    assert output.token_ids == expected(4)
    assert [entry.token_id for entry in output.logprobs] == output.token_ids
    assert all(entry.logprob is not None and len(entry.top or ()) == 2 for entry in output.logprobs)
    h.close()


@OVERLAPS
def test_a_retracted_request_keeps_its_count(overlap: Any) -> None:
    for steps in range(2, 18):
        h = harness(overlap=overlap)
        (rid,) = h.submit(PROMPT, max_new_tokens=COUNT, thinking_token_budget=9, thoughts=BEGUN)
        for _ in range(steps):
            h.step()
        while h.scheduler.requests.in_flight:
            h.scheduler.steps.process_batch_result()
        for req in list(h.scheduler.requests):
            if req.slot >= 0:
                h.scheduler.requests.retract(req)
        h.run()
        assert h.outputs[rid].token_ids == expected(9)
        assert h.outputs[rid].deltas[-1].num_retractions == 1
        h.close()


def test_an_aborted_request_leaves_nothing() -> None:
    for steps in (1, 5, 11, 13):
        h = harness(overlap=True)
        h.submit(PROMPT, rid="a", max_new_tokens=COUNT, thinking_token_budget=9, thoughts=BEGUN)
        for _ in range(steps):
            h.step()
        h.abort("a", exact=True)
        h.run()  # which checks the accounts
        after = run(h)  # whoever has its slot next is not bound
        assert after.token_ids == h.expected(PROMPT, COUNT)
        h.close()


def test_stops_hold_for_what_has_to_come() -> None:
    h = harness()
    whole = expected(5)
    output = run(h, thinking_token_budget=5, thoughts=BEGUN, stop=("</think>",))
    assert output.finish_reason is not None
    assert (output.finish_reason.type, output.finish_reason.matched) == ("stop", "</think>")
    assert output.token_ids == whole[: 5 + len(CLOSE)]
    assert output.text == bundled_tokenizer().decode(whole[: 5 + len(CLOSE) - 1])
    output = run(h, thinking_token_budget=5, thoughts=BEGUN, stop_token_ids=(CLOSE[-1],))
    assert output.finish_reason is not None
    assert (output.finish_reason.type, output.finish_reason.matched) == ("stop", CLOSE[-1])
    assert output.token_ids == whole[: 5 + len(CLOSE)]
    h.close()


def test_other_parameters_do_not_keep_it_from_coming() -> None:
    h = harness()
    fields: dict[str, Any] = {"thinking_token_budget": 5, "thoughts": BEGUN}
    bias = dict.fromkeys(CLOSE, -100.0)
    assert run(h, **fields, logit_bias=bias).token_ids == expected(5)
    allowed = (*range(100, 140), *CLOSE)
    output = run(h, **fields, allowed_token_ids=allowed)
    assert CLOSE[-1] in output.token_ids[: 5 + len(CLOSE)]
    assert set(output.token_ids) <= set(allowed)
    h.close()


def test_what_cannot_be_is_refused_by_name() -> None:
    cases = [
        ({"thinking_token_budget": 5}, "with the marks"),
        ({"thoughts": BEGUN}, "with the marks"),
        ({"thinking_token_budget": -1, "thoughts": BEGUN}, "between 0 and"),
        ({"thinking_token_budget": 5, "thoughts": BEGUN, "allowed_token_ids": (5, 6)}, "allowed_token_ids"),
        ({"thinking_token_budget": 5, "thoughts": ThoughtMarkers("<", (">",), (VOCAB_SIZE,))}, "of the vocabulary"),
        ({"thinking_token_budget": 5, "thoughts": ThoughtMarkers("<", (">",), ())}, "of the vocabulary"),
    ]
    for fields, match in cases:
        h = harness()
        reason = run(h, **fields).finish_reason
        h.close()
        assert reason is not None
        assert (reason.type, reason.status_code) == ("abort", 400)
        assert "thinking_token_budget" in (reason.param or "")
        assert match in (reason.message or "")


def test_a_bound_needs_a_tokenizer() -> None:
    h = Harness()
    (rid,) = h.submit(prompt_of(9), thinking_token_budget=5, thoughts=ThoughtMarkers("<", (">",), (5,)))
    h.run()
    reason = h.outputs[rid].finish_reason
    assert reason is not None
    assert (reason.status_code, reason.param) == (400, "thinking_token_budget")


def test_a_row_that_fails_is_the_fault_of_the_bound_only_beside_what_forbids_its_tokens() -> None:
    cases = [
        ({}, (500, None)),
        ({"bad_words": ("x",), "banned_sequences": (CLOSE,)}, (400, "thinking_token_budget")),
        ({"stop_token_ids": CLOSE[:1], "min_new_tokens": 2}, (400, "thinking_token_budget")),
    ]
    for fields, expected in cases:
        h = harness()
        forward = h.worker.worker.forward_batch_generation
        h.worker.worker.forward_batch_generation = (  # type: ignore[method-assign]
            lambda plan: failing(forward(plan), *range(len(plan.req_slots)))
        )
        (rid,) = h.submit(PROMPT, thinking_token_budget=0, thoughts=BEGUN, **fields)
        h.step()
        reason = h.outputs[rid].finish_reason
        h.close()
        assert reason is not None
        assert (reason.status_code, reason.param) == expected


# --- with a grammar ---------------------------------------------------------------------------------------------------

THEN_JSON = (
    '{"type":"structural_tag","format":{"type":"sequence","elements":['
    '{"type":"tag","begin":"","content":{"type":"any_text"},"end":"</think>"},'
    '{"type":"regex","pattern":"\\\\n{0,2}"},'
    '{"type":"json_schema","json_schema":{"enum":["oak","elm"]}}]}}'
)


@OVERLAPS
@pytest.mark.parametrize("budget", [0, 1, 12])
def test_a_grammar_behind_the_thoughts_holds(budget: int, overlap: Any) -> None:
    h = harness(overlap=overlap)
    output = run(h, structural_tag=THEN_JSON, thinking_token_budget=budget, thoughts=BEGUN)
    h.close()
    assert output.finish_reason is not None
    assert output.finish_reason.type == "stop", output.finish_reason
    at = output.token_ids.index(CLOSE[-1])
    assert at == budget + len(CLOSE) - 1
    answer = bundled_tokenizer().decode(output.token_ids[at + 1 :])
    assert answer.strip() in ('"oak"', '"elm"')


def test_a_grammar_that_leaves_no_end_of_thoughts_is_an_error() -> None:
    h = harness()
    output = run(h, regex="[a-z]{30,}", thinking_token_budget=4, thoughts=BEGUN)
    good = run(h)
    h.close()
    assert output.finish_reason is not None
    assert (output.finish_reason.status_code, output.finish_reason.param) == (400, "thinking_token_budget")
    assert good.token_ids == h.expected(PROMPT, COUNT)
