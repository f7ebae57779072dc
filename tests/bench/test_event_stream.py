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


def test_gaps_are_the_times_between_arrivals():
    stream = EventStream(BACKENDS["native"].has_token)
    event = b'data: {"meta_info": {"prompt_tokens": 1, "completion_tokens": 1}}\n\n'
    for chunk, now in (
        (event, 1.0),
        (event * 2, 3.0),
        (event[:20], 4.0),
        (event[20:], 7.0),
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
