from __future__ import annotations

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from bough.kernels.library import LibraryMissing, load_library
from bough.kernels.thread_pool import ThreadPool
from bough.layers.sampler import Sampler
from bough.sampling.banned_sequences import BannedSequences
from bough.sampling.device_state import SamplingState
from bough.sampling.sampling_params import MAX_BAD_WORD_TOKENS, SamplingParams
from tests.sampling.naive import CPU, new_request

VOCAB = 12
BANNED = ((3,), (1, 2), (2, 1, 0), (4, 4, 4, 4))


def has_any(output: list[int]) -> bool:
    return any(tuple(output[i : i + len(each)]) == each for each in BANNED for i in range(len(output)))


def thread_pools() -> list[ThreadPool | None]:
    try:
        load_library()
    except LibraryMissing:
        return [None]
    return [None, ThreadPool(1)]


def test_no_output_contains_a_banned_sequence_and_other_rows_are_as_they_were() -> None:
    outputs: list[list[list[int]]] = []
    for threads in thread_pools():
        state = SamplingState(6, VOCAB, CPU)
        for slot in range(6):
            request = new_request(slot, SamplingParams(temperature=float(slot % 3)), seed=slot)
            state.admit(replace(request, banned_sequences=BANNED if slot < 4 else ()))
        sampler, slots = Sampler(state, threads), np.arange(6, dtype=np.int32)
        rng, output = np.random.default_rng(0), [[] for _ in range(6)]
        for _ in range(300):
            logits = torch.from_numpy(rng.standard_normal((6, VOCAB)).astype(np.float32))
            for slot, token in enumerate(sampler.sample(logits, slots).next_token_ids.tolist()):
                output[slot].append(token)
        assert [has_any(each) for each in output] == [False] * 4 + [True] * 2
        assert len({token for each in output for token in each}) == VOCAB
        outputs.append(output)
    assert all(each == outputs[0] for each in outputs)


def test_a_request_that_comes_back_remembers_its_end() -> None:
    state = SamplingState(2, VOCAB, CPU)
    state.admit(replace(new_request(0, SamplingParams(), seed=0, output_ids=[5, 2, 1]), banned_sequences=BANNED))
    logits = torch.zeros(1, VOCAB)
    state.ban_sequences(logits, state.rows(np.array([0], dtype=np.int32)))
    assert torch.isinf(logits[0]).nonzero().view(-1).tolist() == [0, 2, 3]


def test_a_slot_forgets_its_last_owner_and_others_keep_their_ends() -> None:
    banned = BannedSequences(3, VOCAB, CPU)
    assert banned.set(0, ((7, 8),), [7])
    assert banned.set(1, ((1, 2, 3, 4, 5),), [2, 3])
    assert banned.set(2, ((9,),), [])
    slots = np.arange(3)
    logits = torch.zeros(3, VOCAB)
    banned.apply(logits, slots, slots)
    assert [torch.isinf(row).nonzero().view(-1).tolist() for row in logits] == [[8], [], [9]]
    banned.record(slots, torch.tensor([1, 4, 9]))
    assert banned.set(0, ((1, 6),), [])
    logits = torch.zeros(2, VOCAB)
    banned.apply(logits, slots[:2], slots[:2])
    assert not torch.isinf(logits).any()
    assert not banned.set(0, (), [])
    with pytest.raises(ValueError, match="token ids"):
        banned.set(0, ((VOCAB,),), [])
    with pytest.raises(ValueError, match="1 to 32 tokens"):
        banned.set(0, ((1,) * 33,), [])


def test_memory_is_bounded_whatever_requests_have_banned() -> None:
    banned, slots = BannedSequences(4, VOCAB, CPU), np.arange(4)
    most = tuple((token % VOCAB,) for token in range(384)) + ((1,) * 29,) * 128
    assert sum(map(len, most)) == MAX_BAD_WORD_TOKENS
    for slot in range(4):
        assert banned.set(slot, most, [])
    banned.apply(torch.zeros(4, VOCAB), slots, slots)
    kept = sum(each.nbytes for each in (*banned._cached, banned._recent))
    assert BannedSequences.max_bytes(4) / 2 < kept < BannedSequences.max_bytes(4)
    for slot in range(4):
        banned.set(slot, ((1, 2),), [])
    banned.apply(torch.zeros(4, VOCAB), slots, slots)
    assert sum(each.nbytes for each in banned._cached) < 500
