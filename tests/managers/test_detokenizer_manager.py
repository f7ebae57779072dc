from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.ipc.messages import (
    BatchStrOutput,
    BatchTokenIDOutput,
    DecodeInit,
    FinishReason,
    OutputDelta,
    PositionLogprobs,
    ShutdownReq,
    ToDetokenizer,
)
from bough.managers.detokenizer_manager import DetokenizerManager, trim_eos
from bough.tokenization.pieces import BYTE_ALPHABET, byte_level_bytes
from bough.tokenization.tokenizer import Tokenizer
from tests.thoroughness import examples
from tests.tokenization import small_tokenizers as small

TOKENIZER = Tokenizer(small.byte_level_bpe())
SENTENCEPIECE = Tokenizer(small.sentencepiece_bpe())
END = TOKENIZER.token_to_id("<|im_end|>")
STOP = FinishReason("stop", matched=END)
LENGTH = FinishReason("length", length=9)
ABORT = FinishReason("abort", message="by the user")


def ids_of(text: str) -> list[int]:
    return TOKENIZER.encode(text).tolist()


BYTE_IDS = {byte_level_bytes(char)[0]: TOKENIZER.token_to_id(char) for char in BYTE_ALPHABET}


def byte_ids(text: str) -> list[int]:
    """One id per byte, whatever merges there are."""
    return [BYTE_IDS[byte] for byte in text.encode()]


def first(rid: str, ids: list[int], **fields: Any) -> OutputDelta:
    init = {name: fields.pop(name) for name in ("skip_special_tokens", "no_stop_trim") if name in fields}
    tail = fields.pop("prompt_tail", ids_of("user: "))
    return OutputDelta(rid, ids, decode=DecodeInit(tail, **init), **fields)


def handle(manager: DetokenizerManager, *deltas: OutputDelta) -> list[OutputDelta]:
    return manager.handle_batch(BatchTokenIDOutput(list(deltas))).deltas


def only_text(deltas: list[OutputDelta]) -> str:
    return "".join(delta.text or "" for delta in deltas)


def test_text_is_filled_in() -> None:
    manager = DetokenizerManager(TOKENIZER)
    [delta] = handle(manager, first("a", ids_of("Hello fox")))
    assert (delta.text, delta.token_ids, delta.decode) == ("Hello fox", ids_of("Hello fox"), None)
    assert handle(manager, OutputDelta("a", ids_of(" jumps"), finish_reason=LENGTH))[0].text == " jumps"
    assert len(manager) == 0


def test_ids_of_an_unfinished_character_wait_with_all_that_belongs_to_them() -> None:
    manager = DetokenizerManager(TOKENIZER)
    ids = byte_ids("a😀b")
    logprobs = [PositionLogprobs(-float(i), token) for i, token in enumerate(ids)]
    prompt_logprobs = [PositionLogprobs(None, 5)]

    def delta(at: int, **fields: Any) -> OutputDelta:
        made = first("a", [ids[at]], **fields) if at == 0 else OutputDelta("a", [ids[at]], **fields)
        made.logprobs = [logprobs[at]]
        made.completion_tokens = at + 1
        return made

    [out] = handle(manager, delta(0, queue_time=0.5, input_logprobs=prompt_logprobs))
    assert (out.text, out.completion_tokens) == ("a", 1)
    assert [handle(manager, delta(at)) for at in (1, 2, 3)] == [[], [], []]
    [out] = handle(manager, delta(4, num_retractions=2, cached_tokens=3))
    assert (out.text, out.token_ids, out.logprobs) == ("😀", ids[1:5], logprobs[1:5])
    assert (out.completion_tokens, out.num_retractions, out.cached_tokens) == (5, 2, 3)


def test_what_only_the_first_delta_has_is_not_lost_while_its_ids_wait() -> None:
    manager = DetokenizerManager(TOKENIZER)
    ids = byte_ids("é")
    prompt_logprobs = [PositionLogprobs(None, 5)]
    assert handle(manager, first("a", ids[:1], queue_time=0.5, input_logprobs=prompt_logprobs)) == []
    [out] = handle(manager, OutputDelta("a", ids[1:], completion_tokens=2))
    assert (out.text, out.queue_time, out.input_logprobs, out.token_ids) == ("é", 0.5, prompt_logprobs, ids)


def test_a_delta_that_ends_inside_a_character_is_split_there() -> None:
    manager = DetokenizerManager(TOKENIZER)
    ids = byte_ids("ab€")
    logprobs = [PositionLogprobs(-1.0, token) for token in ids]
    [out] = handle(manager, first("a", ids[:4], completion_tokens=4, logprobs=logprobs[:4]))
    assert (out.text, out.token_ids, out.completion_tokens, out.logprobs) == ("ab", ids[:2], 2, logprobs[:2])
    [out] = handle(manager, OutputDelta("a", ids[4:], finish_reason=LENGTH, completion_tokens=5, logprobs=logprobs[4:]))
    assert (out.text, out.token_ids, out.completion_tokens, out.logprobs) == ("€", ids[2:], 5, logprobs[2:])


def test_nothing_is_lost_when_a_request_ends_inside_a_character() -> None:
    for reason in [LENGTH, ABORT]:
        manager = DetokenizerManager(TOKENIZER)
        ids = byte_ids("x😀")[:3]
        assert [d.token_ids for d in handle(manager, first("a", ids))] == [ids[:1]]
        [out] = handle(manager, OutputDelta("a", [], finish_reason=reason, completion_tokens=3))
        assert (out.token_ids, out.text, out.finish_reason) == (ids[1:], "\ufffd", reason)
        assert len(manager) == 0


def test_the_stop_token_has_no_text_and_keeps_its_id() -> None:
    word = ids_of("fox")
    for skip in (True, False):
        manager = DetokenizerManager(TOKENIZER)
        delta = first("a", [*ids_of("Hi "), END], finish_reason=STOP, skip_special_tokens=skip)
        [out] = handle(manager, delta)
        assert (out.text, out.token_ids[-1]) == ("Hi ", END)
    manager = DetokenizerManager(TOKENIZER)
    [out] = handle(manager, first("a", [*word, *word], finish_reason=FinishReason("stop", matched=word[-1])))
    assert (out.text, out.token_ids) == (TOKENIZER.decode([*word, *word[:-1]]), [*word, *word])


def test_no_stop_trim_keeps_the_text_of_the_stop_token() -> None:
    manager = DetokenizerManager(TOKENIZER)
    delta = first("a", [*ids_of("Hi "), END], finish_reason=STOP, skip_special_tokens=False, no_stop_trim=True)
    assert only_text(handle(manager, delta)) == "Hi <|im_end|>"


def test_trim_eos_takes_nothing_but_the_matched_token() -> None:
    assert trim_eos([1, 2], FinishReason("stop", matched=2), False) == [1]
    assert trim_eos([1, 2], FinishReason("stop", matched=2), True) == [1, 2]
    assert trim_eos([1, 2], FinishReason("stop", matched=1), False) == [1, 2]
    assert trim_eos([1, 2], FinishReason("length"), False) == [1, 2]
    assert trim_eos([], FinishReason("stop", matched=2), False) == []


def test_text_of_the_scheduler_is_passed_on_untouched() -> None:
    manager = DetokenizerManager(TOKENIZER)
    delta = OutputDelta("a", [1, 2, 3], text="decided", finish_reason=FinishReason("stop", matched="END"))
    before = msgspec.to_builtins(delta)
    [out] = handle(manager, delta)
    assert msgspec.to_builtins(out) == before
    assert len(manager) == 0


def test_a_request_that_ends_before_its_first_token_just_ends() -> None:
    [out] = handle(DetokenizerManager(TOKENIZER), OutputDelta("a", [], finish_reason=ABORT))
    assert (out.text, out.finish_reason) == ("", ABORT)


def test_an_unknown_request_is_ended_with_an_error() -> None:
    manager = DetokenizerManager(TOKENIZER)
    [out] = handle(manager, OutputDelta("a", [5, 6]))
    assert out.finish_reason is not None
    assert (out.finish_reason.type, out.finish_reason.status_code, out.token_ids) == ("abort", 500, [5, 6])
    assert (len(manager), manager.num_failed) == (0, 1)


def test_a_failure_ends_one_request_and_no_other() -> None:
    manager = DetokenizerManager(TOKENIZER)
    fox = ids_of("fox")
    held = byte_ids("é")[:1]
    assert [out.rid for out in handle(manager, first("bad", held), first("good", fox))] == ["good"]
    out = handle(manager, OutputDelta("bad", [-1]), OutputDelta("good", fox))
    assert [(d.rid, d.finish_reason and d.finish_reason.type) for d in out] == [("bad", "abort"), ("good", None)]
    assert out[0].token_ids == [*held, -1]
    assert out[0].finish_reason is not None
    assert out[0].finish_reason.status_code == 500
    assert [d.rid for d in handle(manager, OutputDelta("bad", fox), OutputDelta("good", fox))] == ["good"]
    assert out[0].text is None, "the scheduler is not done with it"
    [end] = handle(manager, OutputDelta("bad", fox, finish_reason=LENGTH))
    assert (end.token_ids, end.text, end.finish_reason) == ([], "", LENGTH)
    assert handle(manager, OutputDelta("good", fox, finish_reason=LENGTH))[0].text == "fox"
    assert (len(manager), manager.num_failed) == (0, 1)


def test_a_failure_in_the_first_or_last_delta_leaves_nothing_behind() -> None:
    manager = DetokenizerManager(TOKENIZER)
    [out] = handle(manager, first("a", [-1], finish_reason=LENGTH))
    assert out.finish_reason is not None
    assert (out.finish_reason.type, out.text) == ("abort", "")
    [out] = handle(manager, first("b", [1], prompt_tail=[-1]))
    assert out.finish_reason is not None
    assert [d.finish_reason for d in handle(manager, OutputDelta("b", [], finish_reason=LENGTH))] == [LENGTH]
    assert len(manager) == 0


def test_beyond_its_capacity_the_oldest_request_is_given_up_and_the_others_go_on() -> None:
    manager = DetokenizerManager(TOKENIZER, capacity=2)
    fox = ids_of("fox")
    held = byte_ids("é")[:1]
    assert len(handle(manager, first("a", held), first("b", fox))) == 1
    given_up, new = handle(manager, first("c", fox))
    assert (given_up.rid, given_up.token_ids, new.rid, new.text) == ("a", held, "c", "fox")
    assert given_up.finish_reason is not None
    assert (given_up.finish_reason.type, given_up.finish_reason.status_code) == ("abort", 503)
    later = handle(manager, OutputDelta("a", fox), OutputDelta("b", fox), OutputDelta("c", fox, finish_reason=LENGTH))
    assert [(d.rid, d.finish_reason and d.finish_reason.type) for d in later] == [
        ("a", "abort"),
        ("b", None),
        ("c", "length"),
    ]
    assert only_text(later[1:]) == "foxfox"
    assert len(manager) == 1


def test_an_output_that_is_given_up_says_how_far_it_was() -> None:
    manager = DetokenizerManager(TOKENIZER, capacity=1)
    fox = ids_of("fox")
    handle(manager, first("a", fox))
    handle(manager, OutputDelta("a", fox, completion_tokens=2 * len(fox), prompt_tokens=7))
    given_up, _ = handle(manager, first("b", fox))
    assert (given_up.rid, given_up.completion_tokens, given_up.prompt_tokens) == ("a", 2 * len(fox), 7)


def test_an_id_that_is_used_again_begins_anew() -> None:
    manager = DetokenizerManager(TOKENIZER)
    assert handle(manager, first("a", byte_ids("é")[:1])) == []
    [out] = handle(manager, first("a", ids_of("fox"), finish_reason=LENGTH))
    assert (out.text, out.token_ids) == ("fox", ids_of("fox"))
    assert len(manager) == 0


@settings(max_examples=examples(150))
@given(data=st.data())
def test_after_every_delta_ids_text_and_logprobs_agree(data: st.DataObject) -> None:
    tokenizer = data.draw(st.sampled_from([TOKENIZER, SENTENCEPIECE]))
    manager = DetokenizerManager(tokenizer)
    any_id = st.integers(0, tokenizer.vocab_size - 1)
    tail = tokenizer.encode("user: e").tolist()
    outputs = {rid: data.draw(st.lists(any_id, min_size=1, max_size=20)) for rid in ("a", "b", "c")}
    skip = data.draw(st.booleans())
    ended_by = {rid: data.draw(st.sampled_from(["stop", "length"])) for rid in outputs}
    sent = dict.fromkeys(outputs, 0)
    seen: dict[str, list[OutputDelta]] = {rid: [] for rid in outputs}
    while any(sent[rid] < len(ids) for rid, ids in outputs.items()):
        batch = []
        for rid in data.draw(st.permutations([rid for rid in outputs if sent[rid] < len(outputs[rid])])):
            at, ids = sent[rid], outputs[rid]
            to = min(len(ids), at + data.draw(st.integers(1, 4)))
            delta = OutputDelta(
                rid,
                ids[at:to],
                completion_tokens=to,
                logprobs=[PositionLogprobs(-float(i), ids[i]) for i in range(at, to)],
                decode=DecodeInit(tail, skip) if at == 0 else None,
            )
            if to == len(ids):
                delta.finish_reason = (
                    FinishReason("stop", matched=ids[-1]) if ended_by[rid] == "stop" else FinishReason("length")
                )
            sent[rid] = to
            batch.append(delta)
        coded = msgspec.msgpack.encode(BatchTokenIDOutput(batch))
        result = manager.handle_batch(msgspec.msgpack.decode(coded, type=BatchTokenIDOutput))
        for delta in msgspec.msgpack.decode(msgspec.msgpack.encode(result), type=BatchStrOutput).deltas:
            seen[delta.rid].append(delta)
            got = seen[delta.rid]
            ids = [token for d in got for token in d.token_ids]
            assert ids == outputs[delta.rid][: len(ids)]
            assert delta.completion_tokens == len(ids)
            assert [p.token_id for d in got for p in d.logprobs or ()] == ids
            assert [p.logprob for d in got for p in d.logprobs or ()] == [-float(i) for i in range(len(ids))]
            assert delta.token_ids or delta.finish_reason is not None
    for rid, ids in outputs.items():
        shown = ids[:-1] if ended_by[rid] == "stop" else ids
        before = tokenizer.decode(tail, skip_special_tokens=skip)
        assert only_text(seen[rid]) == tokenizer.decode([*tail, *shown], skip_special_tokens=skip)[len(before) :]
        assert [token for d in seen[rid] for token in d.token_ids] == ids
    assert len(manager) == 0


def test_the_loop_sends_what_is_decoded_and_shows_that_it_turns() -> None:
    incoming: list[ToDetokenizer | None] = [
        BatchTokenIDOutput([first("a", ids_of("fox"))]),
        None,
        BatchTokenIDOutput([OutputDelta("a", byte_ids("é")[:1])]),
        BatchTokenIDOutput([OutputDelta("a", byte_ids("é")[1:], finish_reason=LENGTH)]),
        ShutdownReq(),
        BatchTokenIDOutput([OutputDelta("a", [1])]),
    ]
    sent: list[list[OutputDelta]] = []
    beats: list[int] = []
    channels: Any = SimpleNamespace(
        recv=lambda timeout: incoming.pop(0),
        send_deltas=lambda deltas: sent.append(deltas) if deltas else None,
        send_to_tokenizer=lambda beat: beats.append(len(sent)),
        heartbeat_due=True,
    )
    DetokenizerManager(TOKENIZER).event_loop(channels)
    assert [only_text(deltas) for deltas in sent] == ["fox", "é"]
    assert beats == [1, 1, 1, 2]
    assert len(incoming) == 1
