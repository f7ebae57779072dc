from __future__ import annotations

import logging

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.ipc.codec import MessageDecoder, encode
from bough.ipc.messages import AbortReq, ControlReq, TokenizedGenerateReqInput, ToScheduler
from bough.sampling.sampling_params import SamplingParams

REQUEST = TokenizedGenerateReqInput(["a", "b"], b"\x01\0\0\0", SamplingParams(n=2, stop=("x",), logit_bias={3: 1.5}))


def scheduler_decoder() -> MessageDecoder[ToScheduler]:
    return MessageDecoder(ToScheduler, "test")


def test_message_survives_the_wire() -> None:
    for message in [REQUEST, AbortReq("r", exact=True), ControlReq("c", "m", {"a": [1, None, "x"]})]:
        assert scheduler_decoder().decode(encode(message)) == message


def test_hostile_bytes_are_dropped_and_counted() -> None:
    cases = [
        b"",
        b"\xc1",
        b"\xa3\xff\xfe\xfd",
        b"\x91" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        msgspec.msgpack.encode({"type": "AbortReq"}),
        msgspec.msgpack.encode(["NoSuchMessage", 1]),
        msgspec.msgpack.encode(["AbortReq", 1]),
        msgspec.msgpack.encode(["TokenizedGenerateReqInput", ["a"]]),
        b"\x94\xaaControlReq\xa1c\xa1m\x81\xa1x" + b"\x91" * 50_000 + b"\x90",
        encode(REQUEST)[:-1],
    ]
    for frame in cases:
        decoder = scheduler_decoder()
        assert decoder.decode(frame) is None
        assert decoder.num_malformed == 1
        assert decoder.decode(encode(REQUEST)) == REQUEST


def test_messages_of_one_frame_are_found_among_others() -> None:
    decoder = scheduler_decoder()
    request, abort = encode(REQUEST), encode(AbortReq("r"))
    assert decoder.decode_all([[request], [b"two", request], [b"\xc1"], [abort]]) == [REQUEST, AbortReq("r")]
    assert decoder.num_malformed == 2


@given(st.binary(max_size=64))
def test_random_bytes_never_raise(frame):
    decoder = scheduler_decoder()
    message = decoder.decode(frame)
    assert (message is None) == (decoder.num_malformed == 1)


@given(st.data())
def test_damaged_messages_never_raise(data):
    frame = bytearray(encode(REQUEST))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    decoder = scheduler_decoder()
    message = decoder.decode(bytes(frame))
    assert (message is None) == (decoder.num_malformed == 1)


def test_a_flood_of_malformed_messages_does_not_flood_the_log(caplog):
    decoder = scheduler_decoder()
    with caplog.at_level(logging.WARNING, logger="bough"):
        for _ in range(1000):
            decoder.decode(b"\xc1")
    assert decoder.num_malformed == 1000
    assert len(caplog.records) == 1
