"""Results in which rows have runs of tokens of any length, as those of steps in a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from bough.step_plan import FUTURE_TOKEN, StepPlan, StepResult, token_runs
from bough_fake.model import expected_tokens
from tests.constrained.following import bundled_tokenizer
from tests.scheduler.harness import VOCAB_SIZE, Harness, Output, prompt_of
from tests.step_runs import failing, joined


def test_runs_are_the_tokens_of_steps_by_row() -> None:
    future = FUTURE_TOKEN
    cases: list[tuple[list[list[int]], tuple[int, ...], list[int], list[int]]] = [
        ([[5, 6]], (), [5, 6], [1, 1]),
        ([[5, 6], [7, 8], [9, 1]], (), [5, 7, 9, 6, 8, 1], [3, 3]),
        ([[5, future, 6]], (), [5, 6], [1, 0, 1]),
        ([[5, 6], [7, 8]], (0,), [5, 6, 8], [1, 2]),
        ([[5, 6]], (0, 1), [], [0, 0]),
        ([[]], (), [], []),
    ]
    for steps, failed, tokens, counts in cases:
        runs = token_runs(np.array(steps, dtype=np.int32), failed)
        assert ([each.tolist() for each in runs]) == [tokens, counts]
        assert {each.dtype for each in runs} == {np.dtype(np.int32)}


def outputs_of(requests: list[dict[str, Any]], *, failing_row: int | None = None, **options: Any) -> list[Output]:
    """Outputs of requests on a device that runs all steps of its first plan of several, and reports them together.

    Unlike devices that run steps in a row, it does not stop where a row ends; ``failing_row`` fails in the last step.
    """
    harness = Harness(max_steps=8, **options)
    worker = harness.worker.worker
    worker.model_runner.end_token_ids = ()
    forward = worker.forward_batch_generation

    def all_at_once(plan: StepPlan) -> StepResult:
        results = [forward(plan)]
        while results[-1].goes_on:
            results.append(worker.forward_further())
        result = joined(results)
        return result if failing_row is None or plan.further is None else failing(result, failing_row)

    worker.forward_batch_generation = all_at_once  # type: ignore[method-assign]
    rids = [harness.submit(prompt_of(20, seed), stream=False, **fields)[0] for seed, fields in enumerate(requests)]
    for _ in range(2):
        harness.step()
    assert max(result.num_steps for _, result in harness.worker.steps) > 4
    outputs = [harness.outputs[rid] for rid in rids]
    tokens = harness.scheduler.requests.stats.decode_tokens_total
    assert tokens == sum(len(output.token_ids) for output in outputs)
    harness.run()  # and check the accounts
    harness.close()
    return outputs


def test_a_run_ends_with_the_first_token_that_ends_its_request() -> None:
    first, second, third = (expected_tokens(prompt_of(20, seed), 7, VOCAB_SIZE) for seed in range(3))
    assert not {first[3], second[2]} & {*first[:3], *second[:2], *third}
    # At an end of sequence; at its own stop token; at its length.
    outputs = outputs_of(
        [{"max_new_tokens": 7}, {"max_new_tokens": 7, "stop_token_ids": (second[2],)}, {"max_new_tokens": 7}],
        eos_token_ids=(first[3],),
    )
    assert [output.token_ids for output in outputs] == [first[:4], second[:3], third]
    reasons = [output.finish_reason for output in outputs]
    assert [reason and (reason.type, reason.matched, reason.length) for reason in reasons] == [
        ("stop", first[3], None),
        ("stop", second[2], None),
        ("length", None, 7),
    ]


def test_an_end_of_sequence_within_a_run_ends_rows_that_are_not_looked_at() -> None:
    first, second = (expected_tokens(prompt_of(20, seed), 7, VOCAB_SIZE) for seed in range(2))
    outputs = outputs_of([{"max_new_tokens": 7}] * 2, eos_token_ids=(first[1], second[4]))
    assert [output.token_ids for output in outputs] == [first[:2], second[:5]]


def test_each_token_of_a_run_has_its_logprobs() -> None:
    expected = outputs_of([{"max_new_tokens": 7}] * 2)
    eos = expected[1].token_ids[4]
    outputs = outputs_of(
        [{"max_new_tokens": 7, "return_logprob": True, "top_logprobs_num": 2}] * 2, eos_token_ids=(eos,)
    )
    assert [output.token_ids for output in outputs] == [expected[0].token_ids, expected[1].token_ids[:5]]
    for output in outputs:
        assert [each.token_id for each in output.logprobs] == output.token_ids
        assert [each.top and each.top[0][1] for each in output.logprobs] == output.token_ids


def test_a_stop_string_within_a_run_ends_the_text_before_what_is_behind() -> None:
    tokenizer = bundled_tokenizer()
    tokens = expected_tokens(prompt_of(20), 7, VOCAB_SIZE)
    text = tokenizer.decode(tokens)
    stop = next(char for char in text[len(tokenizer.decode(tokens[:1])) :] if char.isascii())
    (output,) = outputs_of([{"max_new_tokens": 7, "stop": (stop,)}], tokenizer=tokenizer)
    assert output.finish_reason is not None
    assert (output.finish_reason.type, output.finish_reason.matched) == ("stop", stop)
    assert output.text == text[: text.index(stop)]
    assert len(output.token_ids) < 7


def test_a_row_that_fails_has_the_tokens_of_the_steps_before() -> None:
    first, second = (expected_tokens(prompt_of(20, seed), 7, VOCAB_SIZE) for seed in range(2))
    outputs = outputs_of([{"max_new_tokens": 7}] * 2, failing_row=1)
    assert [output.token_ids for output in outputs] == [first, second[:6]]
    assert outputs[1].finish_reason is not None
    assert outputs[1].finish_reason.status_code == 500
