"""The native answer as JSON: made in one go for a delta in the middle, it says what it always says."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.ipc.messages import OutputDelta, PositionLogprobs
from bough.managers.io_struct import GenerateRequest, pack_token_ids
from bough.managers.native_output import NativeOutput
from bough.managers.req_state import ReadySignal, ReqState
from bough.sampling.sampling_params import SamplingParams
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer


def make_output(*, incremental: bool, has_text: bool, logprobs: bool) -> NativeOutput:
    request = GenerateRequest(
        rids=['50% "off" \0'],
        prompt_param="text",
        input_ids=pack_token_ids([1, 2], "input_ids"),
        sampling_params=SamplingParams(),
        stream=True,
        return_logprob=logprobs,
        return_prompt_token_ids=True,
    )
    return NativeOutput(
        ReqState(request.rids[0], 3, request, ReadySignal(), 0.0),
        tokenizer=tiny_tokenizer() if has_text else None,
        reasoning=None,
        incremental=incremental,
        with_index=True,
        as_json=True,
    )


@pytest.mark.parametrize("logprobs", [False, True])
@pytest.mark.parametrize("has_text", [False, True])
@pytest.mark.parametrize("incremental", [False, True])
@given(st.lists(st.tuples(st.text(), st.lists(st.integers(0, 9), max_size=3), st.integers(0, 1), st.booleans())))
def test_each_event_is_the_same_whichever_way_it_was_made(
    incremental: bool, has_text: bool, logprobs: bool, pieces: list[tuple[str, list[int], int, bool]]
) -> None:
    stepwise = make_output(incremental=incremental, has_text=has_text, logprobs=logprobs)
    mixed = make_output(incremental=incremental, has_text=has_text, logprobs=logprobs)
    count = 0
    for text, ids, retractions, at_once in pieces:
        count += len(ids)
        entries = [PositionLogprobs(-1.0, token) for token in ids] if logprobs else None
        delta = OutputDelta("", ids, text, None, count, 2, 1, entries, num_retractions=retractions)
        stepwise.add(delta)
        expected = msgspec.json.encode(stepwise.answer(delta))
        if at_once:
            assert mixed.next_event(delta) == b"data: %b\n\n" % expected
        else:
            mixed.add(delta)
            assert msgspec.json.encode(mixed.answer(delta)) == expected
