from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from bough.constrained.masks import TokenMasks
from bough.sampling.sampling_params import SamplingParams
from bough.step_codec import decode_masks, decode_plan, encode_masks, encode_plan
from bough.step_plan import (
    FUTURE_TOKEN,
    ForcedTokens,
    ForwardMode,
    FurtherSteps,
    NewRequest,
    ReqSlot,
    RowLogprobs,
    RowPooling,
    StepPlan,
    TableWrite,
)
from tests.scheduler.conftest import assert_same


def int32(*values: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.array(values, dtype=np.int32)


FULL = StepPlan(
    step_id=2**40,
    mode=ForwardMode.MIXED,
    num_decode_rows=1,
    req_slots=int32(3, 5),
    prefix_lens=int32(9, 0),
    extend_lens=int32(1, 3),
    input_ids=int32(FUTURE_TOKEN, 4, 2**31 - 1, 6),
    out_slots=int32(70, 71, 72, 73),
    sample=np.array([True, False]),
    new_requests=(
        NewRequest(
            ReqSlot(5),
            SamplingParams(temperature=0.1 + 0.2, logit_bias={3: -1.5}, stop=("\0", "é")),
            2**63 - 1,
            (1, 2),
            3,
            int32(),
            ((1,), (2, 3)),
            int32(4, 5, 6),
        ),
    ),
    table_writes=(TableWrite(ReqSlot(5), 0, int32(8, 9)),),
    logprobs=(RowLogprobs(1, 0, int32(5, 6), 2, (7,)),),
    forced=(ForcedTokens(ReqSlot(3), (8, 9)),),
    pooling=(RowPooling(1, True, 12),),
    token_types=int32(0, 0, 1, 1),
    masks=TokenMasks(int32(0), np.array([[-1, 2**31 - 1]], dtype=np.int32), True, (0,)),
    further=FurtherSteps(np.arange(6, dtype=np.int32).reshape(3, 2)[:, ::-1], np.array([True, False]), 0.2, True),
)


def test_every_member_of_a_plan_survives() -> None:
    frames = encode_plan(FULL)
    received = decode_plan(frames)
    assert_same(FULL, received)
    assert FULL.masks is not None
    assert received.masks is not None
    assert received.masks.bits.tolist() == FULL.masks.bits.tolist()
    assert (received.masks.has_failed, received.masks.ended) == (True, (0,))
    assert [bytes(frame) for frame in encode_plan(received)] == [bytes(frame) for frame in frames]


def test_owed_masks_are_asked_for_once_when_they_are_needed() -> None:
    assert FULL.masks is not None
    later, asked = encode_masks(FULL.masks), []
    received = decode_plan(encode_plan(FULL, owes_masks=True), lambda: asked.append(1) or later)  # type: ignore[func-returns-value]
    masks = received.masks
    assert masks is not None
    assert (masks.rows.tolist(), asked) == ([0], [])
    for _ in range(2):
        assert masks.bits.tolist() == FULL.masks.bits.tolist()
    assert (masks.has_failed, masks.ended, asked) == (True, (0,), [1])
    with pytest.raises(msgspec.DecodeError):
        decode_plan(encode_plan(FULL, owes_masks=True))


def test_what_the_schema_does_not_know_is_refused() -> None:
    frames = [bytes(frame) for frame in encode_plan(FULL)]
    members = msgspec.msgpack.decode(frames[0])
    sampling_params = {**members[9][0][1], "mirostat": 2}
    others = [*members[9][0][:1], sampling_params, *members[9][0][2:]]
    wrong: list[list[bytes]] = [
        [msgspec.msgpack.encode([*members, None]), *frames[1:]],
        [msgspec.msgpack.encode(members[:5]), *frames[1:]],
        [msgspec.msgpack.encode([*members[:1], "backwards", *members[2:]]), *frames[1:]],
        [msgspec.msgpack.encode([*members[:9], [others], *members[10:]]), *frames[1:]],
        [*frames, b""],
        frames[:-1],
        [frames[0], frames[1][:-4], *frames[2:]],
        [frames[0], frames[1] + bytes(4), *frames[2:]],
        [msgspec.msgpack.encode([*members[:3], [*members[3], 0], *members[4:]]), *frames[1:]],
        [frames[0][:-1], *frames[1:]],
        [b""],
    ]
    for each in wrong:
        with pytest.raises(msgspec.DecodeError):
            decode_plan(each)
    for array in (FULL.req_slots.astype(np.int64), FULL.req_slots.astype(np.float32), FULL.req_slots.astype(">i4")):
        with pytest.raises(msgspec.DecodeError):
            decode_plan(encode_plan(replace(FULL, req_slots=array)))
    with pytest.raises(msgspec.DecodeError):
        decode_masks(frames)
    for value in (object(), np.int32(1), len):
        with pytest.raises(TypeError):
            encode_plan(replace(FULL, step_id=value))
