"""Stop strings and patterns are judged in the scheduler; text and ids that belong together travel together."""

from __future__ import annotations

import random
from functools import lru_cache
from types import SimpleNamespace

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from bough.ipc.messages import BatchTokenIDOutput
from bough.managers.detokenizer_manager import DetokenizerManager
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler import text_stops
from bough.scheduler.text_stops import TextStops
from bough.tokenization.stop_matcher import StopMatcher, StopStep
from bough.tokenization.tokenizer import SpecialTokens, Tokenizer
from tests.scheduler.harness import Harness, Output, prompt_of
from tests.thoroughness import examples
from tests.tokenization.small_tokenizers import byte_level_bpe

COUNT = 40


@lru_cache
def tokenizer() -> Tokenizer:
    return Tokenizer(byte_level_bpe(), special=SpecialTokens())


def harness_with_text(**options: object) -> Harness:
    return Harness(tokenizer=tokenizer(), vocab_size=tokenizer().vocab_size, **options)  # type: ignore[arg-type]


def text_prompt(seed: int) -> list[int]:
    """A prompt that does not end inside a character, which the output would complete."""
    return [*prompt_of(6, seed, tokenizer().vocab_size), *tokenizer().encode(" dog.")]


def generated(prompt: list[int]) -> tuple[list[int], str]:
    ids = harness_with_text().expected(prompt, COUNT)
    return ids, tokenizer().decode(ids, skip_special_tokens=True, spaces_between_special_tokens=True)


def run(prompt: list[int], *, max_steps: int = 1, **fields: object) -> Output:
    harness = harness_with_text(max_steps=max_steps)
    (rid,) = harness.submit(prompt, max_new_tokens=COUNT, **fields)
    harness.run()
    return harness.outputs[rid]


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32))
def test_text_is_cut_before_the_stop_and_streams_as_a_whole(seed: int) -> None:
    rng = random.Random(seed)
    prompt = text_prompt(seed % 1000)
    ids, text = generated(prompt)
    start = rng.randrange(len(text))
    stop = text[start : start + rng.randint(1, 6)]
    outputs = [
        run(prompt, stop=(stop,), stream=stream, max_steps=steps) for stream in (True, False) for steps in (1, 9)
    ]
    streamed, *others = outputs
    assert streamed.text == text[: text.index(stop)]
    assert streamed.token_ids == ids[: len(streamed.token_ids)]
    assert [(other.text, other.token_ids) for other in others] == [(streamed.text, streamed.token_ids)] * 3
    for output in outputs:
        assert output.finish_reason is not None
        assert (output.finish_reason.type, output.finish_reason.matched) == ("stop", stop)


def with_special_token(text: str) -> Tokenizer:
    backend = Backend.from_str(byte_level_bpe().to_str())
    backend.add_special_tokens([AddedToken(text, special=True, normalized=False)])
    return Tokenizer(backend, special=SpecialTokens())


@pytest.mark.parametrize("no_stop_trim", [False, True])
@pytest.mark.parametrize("stop_regex", [(), ("never",)])
def test_a_stop_string_may_be_a_special_token_that_no_text_shows(
    no_stop_trim: bool, stop_regex: tuple[str, ...]
) -> None:
    special = with_special_token("<|end|>")
    end = special.token_to_id("<|end|>")
    assert end is not None
    for skip, expected in ((True, "oak<"), (False, "oak<<|end|>" if no_stop_trim else "oak<")):
        params = SamplingParams(
            stop=("<|end|>", "<<<"), stop_regex=stop_regex, skip_special_tokens=skip, no_stop_trim=no_stop_trim
        )
        stops = TextStops(special, [], params)
        ids = special.encode("oak<").tolist()
        assert [stops.push(token) for token in ids] == [None] * len(ids)
        matched = stops.push(end)
        assert matched == "<|end|>" or (stop_regex and not skip), "where patterns are searched together it is late"
        assert stops.finish() == "<|end|>"
        text, released = stops.take_text()
        assert (text, released) == (expected, len(ids) + 1)


def test_a_pattern_that_only_the_end_completes_is_why_the_text_is_cut() -> None:
    prompt = text_prompt(4)
    ids, _ = generated(prompt)
    stop_id = ids[10]
    first = ids.index(stop_id)
    before = tokenizer().decode(ids[:first], skip_special_tokens=True, spaces_between_special_tokens=True)
    pattern = re2.escape(before[-1:]) + "$"
    output = run(prompt, stop_regex=(pattern,), stop_token_ids=(stop_id,))
    assert output.finish_reason is not None
    assert output.finish_reason.matched == pattern
    assert before.startswith(output.text)
    assert len(output.text) < len(before)


def test_stop_string_that_never_comes_changes_nothing() -> None:
    prompt = text_prompt(3)
    ids, text = generated(prompt)
    output = run(prompt, stop=("this does not occur",))
    assert output.text == text
    assert output.token_ids == ids
    assert output.finish_reason is not None
    assert output.finish_reason.type == "length"


def test_no_stop_trim_keeps_the_stop_string() -> None:
    prompt = text_prompt(4)
    _, text = generated(prompt)
    stop = text[20:24]
    output = run(prompt, stop=(stop,), no_stop_trim=True)
    assert output.text == text[: text.index(stop)] + stop


@pytest.mark.parametrize("pattern", [r"[aeiou]\s", r"\d+x", r"[A-Z][a-z]", r"e$"])
def test_stop_pattern_ends_the_text_where_it_matches(pattern: str) -> None:
    prompt = text_prompt(5)
    _, text = generated(prompt)
    output = run(prompt, stop_regex=(pattern,))
    match = re2.search(pattern, text)
    assert output.text == (text if match is None else text[: match.start()])
    assert output.finish_reason is not None
    assert output.finish_reason.type == ("length" if match is None else "stop")


def test_ids_never_run_ahead_of_their_text() -> None:
    prompt = text_prompt(7)
    ids, text = generated(prompt)
    output = run(prompt, stop=(text[30:33] + "\x00",), return_logprob=True)
    seen, said = 0, ""
    for delta in output.deltas:
        seen += len(delta.token_ids)
        said += delta.text or ""
        so_far = tokenizer().decode(ids[:seen], skip_special_tokens=True, spaces_between_special_tokens=True)
        assert said.startswith(so_far.rstrip("\ufffd")), "an id came before the last character of its text"
        assert [entry.token_id for entry in delta.logprobs or []] == delta.token_ids
    assert said == text


@pytest.mark.parametrize("method", ["push", "finish"])
def test_an_error_in_looking_for_stops_is_what_the_client_is_told(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = harness_with_text()
    (rid,) = harness.submit(text_prompt(3), max_new_tokens=COUNT, stop=("this does not occur",))
    for _ in range(9):
        harness.step()

    def fail(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(text_stops.TextStops, method, fail)
    harness.run()
    output = harness.outputs[rid]
    assert output.text.startswith(tokenizer().decode(output.token_ids))
    detokenizer = DetokenizerManager(tokenizer())
    last = detokenizer.handle_batch(BatchTokenIDOutput(output.deltas)).deltas[-1]
    assert (len(detokenizer), detokenizer.num_failed) == (0, 0)
    assert last.finish_reason is not None
    assert (last.finish_reason.type, last.finish_reason.status_code) == ("abort", 500)
    assert "internal error while" in (last.finish_reason.message or "")


def test_neighbours_without_stops_are_untouched() -> None:
    harness = harness_with_text()
    prompt = text_prompt(8)
    _, text = generated(prompt)
    (stopping,) = harness.submit(prompt, max_new_tokens=COUNT, stop=(text[10:12],))
    (plain,) = harness.submit(prompt, max_new_tokens=COUNT)
    harness.run()
    assert harness.outputs[plain].token_ids == harness.expected(prompt, COUNT)
    assert all(delta.text is None for delta in harness.outputs[plain].deltas)
    assert len(harness.outputs[stopping].token_ids) < COUNT


def test_bad_pattern_is_refused_alone() -> None:
    harness = harness_with_text()
    (bad,) = harness.submit([1, 2, 3], stop_regex=("(",))
    reason = harness.outputs[bad].finish_reason
    assert reason is not None
    assert reason.status_code == 400
    harness.run()


def test_text_stops_without_a_tokenizer_are_refused() -> None:
    harness = Harness()
    (bad,) = harness.submit([1, 2, 3], stop=("x",))
    reason = harness.outputs[bad].finish_reason
    assert reason is not None
    assert reason.status_code == 400


def test_an_error_in_the_text_of_one_request_ends_that_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = harness_with_text()
    prompt = text_prompt(9)
    (bad,) = harness.submit(prompt, max_new_tokens=COUNT, stop=("zzz",))
    (good,) = harness.submit(prompt, max_new_tokens=COUNT)
    harness.step()
    (req,) = harness.scheduler.requests.find(bad, exact=True)
    assert req.text_stops is not None

    def fail(token: int) -> None:
        raise ValueError("no text")

    monkeypatch.setattr(req.text_stops, "push", fail)
    harness.run()
    reason = harness.outputs[bad].finish_reason
    assert reason is not None
    assert reason.status_code == 500
    assert harness.outputs[good].token_ids == harness.expected(prompt, COUNT)


PATTERNS = [r"[aeiou]\s", r"\d+x", r"[A-Z][a-z]", r"e$", r"\bt", r"[a-z]{3,9} ?", r"(?s).", r"\n", r"[^ ]{4}"]


@settings(max_examples=examples(100))
@example(seed=51143, pattern="e$", every=64, fields={"no_stop_trim": True, "stop": ("zy色狐",)}, ends=False)
@given(
    seed=st.integers(0, 2**32),
    pattern=st.sampled_from(PATTERNS),
    every=st.sampled_from([2, 3, 7, 64]),
    fields=st.sampled_from([{}, {"no_stop_trim": True}, {"return_logprob": True}, {"stream": False}]),
    ends=st.booleans(),
)
def test_searching_several_tokens_together_changes_no_output(
    seed: int, pattern: str, every: int, fields: dict[str, object], ends: bool
) -> None:
    prompt = text_prompt(seed % 1000)
    ids, text = generated(prompt)
    rng = random.Random(seed)
    if ends:  # a stop token of the request's own, before or after a match
        fields = {**fields, "stop_token_ids": (ids[rng.randrange(COUNT)],)}
    if rng.random() < 0.5:
        start = rng.randrange(len(text))
        fields = {**fields, "stop": (text[start : start + 4],)}
    usual = run(prompt, stop_regex=(pattern,), **fields)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_stops, "SEARCH_SECONDS_PER_TOKEN", 1e-12)
        patch.setattr(text_stops, "MAX_UNSEARCHED_TOKENS", every)
        late = run(prompt, stop_regex=(pattern,), **fields)
    assert (late.text, late.token_ids, late.finish_reason) == (usual.text, usual.token_ids, usual.finish_reason)
    assert late.logprobs == usual.logprobs
    assert late.deltas[-1].completion_tokens == usual.deltas[-1].completion_tokens


@pytest.mark.parametrize(
    ("search_seconds", "seconds_per_token"),
    [
        (1e-6, 1e-6),
        (5e-4, text_stops.SEARCH_SECONDS_PER_TOKEN),
        (1.0, 2 * 1.0 / text_stops.MAX_UNSEARCHED_TOKENS),  # the most that wait, each time looked at twice
    ],
)
def test_a_pattern_that_is_slow_to_search_for_costs_a_bounded_time_per_token(
    search_seconds: float, seconds_per_token: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = [tokenizer().encode(letter)[0] for letter in "ab"]
    stops = text_stops.TextStops(tokenizer(), letters, SamplingParams(stop_regex=("c[ab]",)))
    spent = 0.0
    push = StopMatcher.push

    def slowly(self: StopMatcher, text: str) -> StopStep:
        nonlocal spent
        spent += search_seconds
        return push(self, text)

    monkeypatch.setattr(StopMatcher, "push", slowly)
    monkeypatch.setattr(text_stops, "time", SimpleNamespace(thread_time=lambda: spent))
    rng = random.Random(0)
    for _ in range(4000):
        assert stops.push(rng.choice(letters)) is None
    assert spent / 4000 == pytest.approx(seconds_per_token, rel=0.05)
