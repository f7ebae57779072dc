from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from bough.ipc.coalescing import FOLD_LENGTH, DeltaBacklog, merge_deltas
from bough.ipc.messages import DecodeInit, FinishReason, OutputDelta, PositionLogprobs


@st.composite
def outputs(draw, rid: str = "r") -> list[OutputDelta]:
    """The successive deltas of one finished output."""
    with_text, with_logprobs = draw(st.booleans()), draw(st.booleans())
    pieces = draw(st.lists(st.lists(st.integers(0, 99), max_size=3), min_size=1, max_size=6))
    deltas, count = [], 0
    for i, ids in enumerate(pieces):
        count += len(ids)
        deltas.append(
            OutputDelta(
                rid,
                ids,
                text=draw(st.text(max_size=3)) if with_text else None,
                completion_tokens=count,
                prompt_tokens=7,
                cached_tokens=draw(st.integers(0, 7)),
                logprobs=[PositionLogprobs(-float(t), t) for t in ids] if with_logprobs else None,
                input_logprobs=[PositionLogprobs(None, i)] if with_logprobs and i < 2 else None,
                decode=None if with_text or i else DecodeInit([1, 2]),
                num_retractions=i // 2,
                queue_time=0.5 if i == 0 else None,
                first_token_delay=0.75 if i == 0 else None,
            )
        )
    deltas[-1].finish_reason = FinishReason("length", length=count)
    return deltas


@given(outputs())
def test_merged_delta_says_what_its_parts_say(deltas):
    before = copy.deepcopy(deltas)
    merged = merge_deltas(deltas)
    assert merged.token_ids == [t for d in deltas for t in d.token_ids]
    assert (merged.text or "") == "".join(d.text or "" for d in deltas)
    assert (merged.text is None) == all(d.text is None for d in deltas)
    assert (merged.logprobs or []) == [p for d in deltas for p in d.logprobs or []]
    assert (merged.logprobs is None) == all(d.logprobs is None for d in deltas)
    assert (merged.input_logprobs or []) == [p for d in deltas for p in d.input_logprobs or []]
    for first_only in ("decode", "queue_time", "first_token_delay"):
        assert getattr(merged, first_only) == getattr(deltas[0], first_only)
    for latest in ("finish_reason", "completion_tokens", "prompt_tokens", "cached_tokens", "num_retractions"):
        assert getattr(merged, latest) == getattr(deltas[-1], latest)
    assert deltas == before


@given(outputs(), st.data())
def test_it_does_not_matter_how_deltas_are_grouped(deltas, data):
    cut = data.draw(st.integers(1, len(deltas)))
    grouped = merge_deltas([merge_deltas(deltas[:cut]), *deltas[cut:]])
    assert grouped == merge_deltas(deltas)


@given(st.lists(outputs(), min_size=1, max_size=4), st.data())
def test_backlog_keeps_every_output_whole_and_in_order(outs, data):
    for i, deltas in enumerate(outs):
        for delta in deltas:
            delta.rid = f"r{i}"
    backlog, queues = DeltaBacklog(), [list(deltas) for deltas in outs]
    order = []
    while any(queues):
        i = data.draw(st.sampled_from([k for k, q in enumerate(queues) if q]))
        if i not in order:
            order.append(i)
        backlog.add([queues[i].pop(0)])
        if data.draw(st.booleans()):
            backlog.merged()
    assert backlog.merged() == [merge_deltas(outs[i]) for i in order]
    backlog.clear()
    assert not backlog


def test_an_id_that_is_used_again_after_its_end_is_another_output():
    backlog = DeltaBacklog()
    end = FinishReason("stop")
    backlog.add([OutputDelta("r", [1], finish_reason=end), OutputDelta("r", [2]), OutputDelta("r", [3])])
    first, second = backlog.merged()
    assert (first.token_ids, first.finish_reason) == ([1], end)
    assert (second.token_ids, second.finish_reason) == ([2, 3], None)


def test_a_long_lag_costs_no_more_objects_than_a_short_one():
    backlog = DeltaBacklog()
    for i in range(10_000):
        backlog.add([OutputDelta("r", [i])])
        assert sum(map(len, backlog._outputs)) <= FOLD_LENGTH + 1
    assert backlog.merged()[0].token_ids == list(range(10_000))
