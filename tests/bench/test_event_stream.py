from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.bench.backends import BACKENDS
from bough.bench.event_stream import EventStream


def chat_stream(tokens: int) -> bytes:
    events = [{"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]}]
    events += [{"choices": [{"delta": {"content": f"tök{i}"}, "finish_reason": None}]} for i in range(tokens)]
    events += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}]
    events += [{"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": tokens}}]
    return (
        b"".join(b"data: " + json.dumps(e, ensure_ascii=False).encode() + b"\n\n" for e in events) + b"data: [DONE]\n\n"
    )


def cut(data: bytes, seed: int, pieces: int) -> list[bytes]:
    places = sorted(random.Random(seed).choices(range(len(data) + 1), k=pieces))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


@given(
    tokens=st.integers(1, 30),
    seed=st.integers(0, 2**32),
    pieces=st.integers(0, 60),
    line_end=st.sampled_from([b"\n", b"\r\n"]),
)
def test_tokens_are_counted_however_lines_end_and_the_bytes_are_cut(tokens, seed, pieces, line_end):
    stream = EventStream(BACKENDS["oai-chat"].has_token)
    for number, chunk in enumerate(cut(chat_stream(tokens).replace(b"\n", line_end), seed, pieces)):
        stream.feed(chunk, float(number))
    events = stream.finish()
    assert stream.done
    assert stream.first_token_at is not None
    assert len(stream.gaps) == tokens - 1
    assert events[-1]["usage"]["completion_tokens"] == tokens


def native_event(tokens: int, text: str = "") -> bytes:
    event = {"text": text, "meta_info": {"prompt_tokens": 1, "completion_tokens": tokens}}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def test_a_gap_is_shared_out_among_the_tokens_of_an_event():
    stream = EventStream(BACKENDS["native"].has_token)
    tokens = ((1.0, 3), (3.0, 5), (4.0, 5), (7.0, 6))
    for now, count in tokens:
        stream.feed(native_event(count, '"completion_tokens": 99'), now)
    stream.feed(b"data: [DONE]\n\n", 9.0)
    stream.finish()
    assert (stream.first_tokens, stream.gaps, stream.token_events) == (3, [1.0, 1.0, 4.0], 3)


def test_usage_in_every_event_tells_the_tokens_too():
    stream = EventStream(BACKENDS["oai"].has_token)
    for now, count, finish in ((1.0, 1, None), (3.0, 3, None), (4.0, 3, "length")):
        event = {"choices": [{"text": "" if finish else "a", "finish_reason": finish}]}
        event["usage"] = {"prompt_tokens": 1, "completion_tokens": count}
        stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n", now)
    stream.feed(b"data: [DONE]\n\n", 9.0)
    stream.finish()
    assert stream.gaps == [1.0, 1.0]


def test_what_has_no_data_does_not_count() -> None:
    for noise in [b": keep-alive\n\n", b"\n\n", b"event: ping\n\n"]:
        stream = EventStream(BACKENDS["oai-chat"].has_token)
        for number, event in enumerate(chat_stream(3).split(b"\n\n")[:-1]):
            stream.feed(b"event: message\n" + event + b"\n\n", float(number))
            for _ in range(5):
                stream.feed(noise, number + 0.5)
        events = stream.finish()
        assert stream.gaps == [1.0, 1.0]
        assert stream.done
        assert events[-1]["usage"]["completion_tokens"] == 3


def test_gaps_are_the_times_between_arrivals():
    stream = EventStream(BACKENDS["native"].has_token)
    first, second, third, fourth = map(native_event, range(1, 5))
    for chunk, now in (
        (first, 1.0),
        (second + third, 3.0),
        (fourth[:20], 4.0),
        (fourth[20:], 7.0),
        (b"data: [DONE]\n\n", 9.0),
    ):
        stream.feed(chunk, now)
    stream.finish()
    assert stream.first_token_at == 1.0
    assert stream.gaps == [2.0, 0.0, 4.0]


def test_a_stream_without_tokens_has_no_first_token():
    stream = EventStream(BACKENDS["oai-chat"].has_token)
    stream.feed(chat_stream(0), 1.0)
    stream.finish()
    assert (stream.first_token_at, stream.gaps, stream.done) == (None, [], True)


def test_a_stream_that_is_cut_is_not_done():
    stream = EventStream(BACKENDS["oai-chat"].has_token)
    stream.feed(chat_stream(5)[:-20], 1.0)
    stream.finish()
    assert not stream.done


def test_text_that_looks_like_an_end_mark_is_text():
    stream = EventStream(BACKENDS["oai"].has_token)
    stream.feed(b'data: {"choices": [{"text": "data: [DONE]", "finish_reason": null}]}\n\n', 1.0)
    stream.finish()
    assert not stream.done
    assert stream.first_token_at == 1.0


def test_events_that_are_not_json_are_an_error():
    with pytest.raises(ValueError, match="Expecting"):
        EventStream(BACKENDS["oai"].has_token).feed(b"data: {nope\n\n", 1.0)
