"""New weights come when no step is in flight, and whoever is there goes on with them."""

from __future__ import annotations

from typing import Any

import pytest

from bough.errors import BadRequest, EngineDead
from bough.ipc.messages import ControlReply, ControlReq, ControlStage, Heartbeat, ToScheduler
from bough.weight_sync.change import Change
from bough_fake.worker import FakeWorker
from tests.scheduler.harness import Harness, prompt_of

UPDATE = {
    "model_path": "/models/new",
    "load_format": "auto",
    "flush_cache": True,
    "while_paused": False,
    "timeout": 60.0,
}


class Updatable:
    """A worker and its weights; remembers what it was told, and raises ``error`` at a check, or when it writes."""

    num_missing = 0

    def __init__(self, error: Exception | None = None, *, breaks: Exception | None = None) -> None:
        self.error, self.breaks = error, breaks
        self.dropped: list[str] = []
        self.paths: list[str] = []
        self.weights = self.groups = self
        self.joining = False
        self.spoiled: list[str] = []
        self.joined: list[str] = []

    def prepare_disk(self, model_path: str, load_format: str) -> Change:
        if self.error is not None:
            raise self.error
        return Change(lambda: self.write(model_path), lambda: self.dropped.append(model_path))

    def check_not_begun(self) -> None:
        pass

    def write(self, model_path: str) -> int:
        if self.breaks is not None:
            raise self.breaks
        self.paths.append(model_path)
        return 3

    def prepare_group(self, group: str, names: Any, *_: Any) -> Change:
        if not isinstance(names, list):
            raise TypeError("names")
        return self.prepare_disk(group, "auto")

    def spoil(self, name: str) -> None:
        assert isinstance(name, str)
        self.spoiled.append(name)

    def is_joining(self, name: str) -> bool:
        return self.joining

    def rows(self, name: str, count: int) -> Any:
        return [float(len(name))] * count

    def begin_to_join(self, name: str, **place: Any) -> None:
        self.joining = True

    def finish_joining(self, name: str) -> None:
        self.joined.append(name)


def harness_of(worker: Updatable, **options: Any) -> Harness:
    harness = Harness(**options)
    harness.worker.weights = worker.weights  # type: ignore[assignment]
    return harness


def call(harness: Harness, method: str, params: dict[str, Any]) -> list[ControlReply]:
    return harness.scheduler.process_input_requests([ControlReq("1", method, params)])


def pause(harness: Harness, mode: str) -> None:
    call(harness, "pause_generation", {"mode": mode})
    while harness.scheduler.control.are_waiting:
        harness.step()
        harness.scheduler.process_input_requests([])


def test_an_update_waits_until_nobody_is_left() -> None:
    for overlap in [False, True, "ahead"]:
        worker = Updatable()
        harness = harness_of(worker, overlap=overlap)
        harness.submit(prompt_of(30), rid="a", max_new_tokens=9)
        for _ in range(3):
            harness.step()
        assert call(harness, "update_weights_from_disk", UPDATE) == []
        replies: list[ControlReply] = []
        while not replies:
            assert worker.paths == []
            harness.step()
            replies = harness.scheduler.process_input_requests([])
        assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 9)
        assert worker.paths == ["/models/new"]
        assert [reply.data for reply in replies] == [
            {"num_changed": 3, "num_missing": 0, "num_paused_requests": 0, "output_lens": {}}
        ]
        assert harness.scheduler.requests.kv.usage().free == harness.scheduler.requests.kv.usage().total, (
            "the cache is flushed"
        )
        harness.close()


def test_paused_requests_go_on_with_the_new_weights() -> None:
    for overlap in [False, True, "ahead"]:
        for mode in ["retract", "in_place"]:
            worker = Updatable()
            harness = harness_of(worker, overlap=overlap)
            harness.submit(prompt_of(30), rid="a", max_new_tokens=20)
            for _ in range(6):
                harness.step()
            pause(harness, mode)
            harness.submit(prompt_of(30, 1), rid="late", max_new_tokens=20)
            so_far = len(harness.outputs["a"].token_ids)
            assert so_far
            if mode == "in_place":
                (refused,) = call(harness, "update_weights_from_disk", UPDATE)
                assert not refused.success
                assert refused.message.startswith(
                    "flush_cache: 1 paused requests hold what the old weights have computed"
                )
                assert worker.paths == []
            flush_cache = mode == "retract"
            (reply,) = call(harness, "update_weights_from_disk", {**UPDATE, "flush_cache": flush_cache})
            assert reply.success, reply.message
            assert reply.data["num_paused_requests"] == 2
            assert reply.data["output_lens"] == {"a": so_far, "late": 0}
            (lengths,) = call(harness, "get_output_lens", {})
            assert lengths.data == {"output_lens": {"a": so_far, "late": 0}}
            call(harness, "continue_generation", {})
            harness.run()
            harness.close()
            for rid, seed in (("a", 0), ("late", 1)):
                assert harness.outputs[rid].token_ids == harness.expected(prompt_of(30, seed), 20)


def staged(harness: Harness, method: str, stage: ControlStage, params: dict[str, Any]) -> list[ControlReply]:
    return harness.scheduler.process_input_requests([ControlReq("all", method, params, stage)])


def test_a_scheduler_that_has_promised_an_update_computes_nothing_until_it_is_released() -> None:
    worker = Updatable()
    harness = harness_of(worker)
    update = "update_weights_from_disk"
    (promised,) = staged(harness, update, "promise", UPDATE)
    assert promised.success
    harness.submit(prompt_of(30), rid="a", max_new_tokens=3)
    for _ in range(3):
        assert not harness.step()
    call(harness, "continue_generation", {})
    (done,) = staged(harness, update, "run", UPDATE)
    assert done.success, done.message
    assert worker.paths == ["/models/new"]
    for _ in range(3):
        assert not harness.step()
    assert staged(harness, update, "release", UPDATE) == []
    harness.run()
    assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 3)


def test_what_others_refuse_is_not_written_though_it_was_prepared() -> None:
    worker = Updatable()
    harness = harness_of(worker)
    update = "update_weights_from_disk"
    for last in ("withdraw", "run"):
        for stage in ("promise", "prepare"):
            (reply,) = staged(harness, update, stage, UPDATE)
            assert reply.success, reply.message
            assert worker.paths == []
        worker.error = BadRequest("nothing is looked at a second time")
        replies = staged(harness, update, last, UPDATE)
        assert [reply.success for reply in replies] == ([True] if last == "run" else [])
        assert staged(harness, update, "release", UPDATE) == []
        worker.error = None
    assert (worker.dropped, worker.paths) == (["/models/new"], ["/models/new"])
    worker.error = BadRequest("it is another model")
    replies = [reply for stage in ("promise", "prepare") for reply in staged(harness, update, stage, UPDATE)]
    assert [(reply.success, reply.message) for reply in replies] == [(True, ""), (False, "it is another model")]
    assert staged(harness, update, "withdraw", UPDATE) == []
    harness.submit(prompt_of(30), rid="a", max_new_tokens=3)
    harness.run()
    assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 3)
    harness.close()


def test_a_promise_that_others_did_not_make_is_withdrawn() -> None:
    worker = Updatable()
    harness = harness_of(worker)
    params = {**UPDATE, "group_name": "g"}
    harness.submit(prompt_of(30), rid="a", max_new_tokens=3)
    harness.step()
    update = "update_weights_from_distributed"
    assert staged(harness, update, "promise", params) == []
    assert staged(harness, update, "withdraw", params) == []
    assert worker.spoiled == ["g"], "its trainer may send what is not received here"
    harness.run()
    assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 3)
    assert staged(harness, update, "promise", {**params, "while_paused": True})[0].success is False
    harness.submit(prompt_of(30, 1), rid="b", max_new_tokens=3)
    harness.run()
    assert harness.outputs["b"].token_ids == harness.expected(prompt_of(30, 1), 3)


def test_an_update_for_a_pause_is_refused_once_that_has_ended() -> None:
    worker = Updatable()
    harness = harness_of(worker)
    harness.submit(prompt_of(30), rid="a", max_new_tokens=20)
    harness.step()
    (reply,) = call(harness, "update_weights_from_disk", {**UPDATE, "while_paused": True})
    assert (reply.success, worker.paths) == (False, [])
    assert reply.message.startswith("the pause has ended")
    harness.run()
    harness.close()


GROUP = {"group_name": "g", "names": ["a"], "dtypes": ["float32"], "shapes": [[1]]}


def test_a_group_whose_call_had_no_time_is_out_of_step() -> None:
    for timeout in [0, "soon", 1e-6]:
        worker = Updatable()
        harness = harness_of(worker)
        harness.submit(prompt_of(30), rid="a", max_new_tokens=20)
        harness.step()
        replies = call(harness, "update_weights_from_distributed", {**UPDATE, **GROUP, "timeout": timeout})
        harness.step()
        (reply,) = replies or harness.scheduler.process_input_requests([])
        assert (reply.success, worker.paths, worker.spoiled) == (False, [], ["g"])
        harness.run()
        harness.close()


def test_a_call_with_wrong_parameters_ends_nothing() -> None:
    cases = [
        ("update_weights_from_disk", {}),
        ("update_weights_from_distributed", {**UPDATE, **GROUP, "group_name": ["g"], "names": 3}),
        ("init_weights_update_group", {}),
        ("pause_generation", {}),
    ]
    for overlap in [False, True]:
        for method, params in cases:
            harness = harness_of(Updatable(), overlap=overlap)
            harness.submit(prompt_of(30), rid="a", max_new_tokens=20)
            harness.step()
            replies = call(harness, method, {**params, "timeout": 60.0})
            while not replies:
                harness.step()
                replies = harness.scheduler.process_input_requests([])
            assert not replies[0].success
            harness.run()
            assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 20)
            harness.close()


def test_a_group_whose_weights_were_not_taken_is_out_of_step() -> None:
    for error in [BadRequest("it is another model"), ValueError("a bug")]:
        worker = Updatable(error)
        harness = harness_of(worker)
        (reply,) = call(harness, "update_weights_from_distributed", {**UPDATE, **GROUP})
        assert (reply.success, worker.spoiled) == (False, ["g"])
        worker.error = None
        (reply,) = call(harness, "update_weights_from_distributed", {**UPDATE, **GROUP})
        assert (reply.success, worker.spoiled) == (True, ["g"])
        harness.close()


def test_the_cache_stays_if_that_is_wanted() -> None:
    harness = harness_of(Updatable())
    harness.submit(prompt_of(30), rid="a")
    harness.run()
    for flush_cache, cached in ((False, 29), (True, 0)):
        (reply,) = call(harness, "update_weights_from_disk", {**UPDATE, "flush_cache": flush_cache})
        assert reply.success
        harness.submit(prompt_of(30), rid=f"then {flush_cache}")
        harness.run()
        assert harness.outputs[f"then {flush_cache}"].cached_tokens == cached
    harness.close()


def test_what_does_not_fit_is_told_and_all_goes_on() -> None:
    harness = harness_of(Updatable(BadRequest("it is another model")))
    harness.submit(prompt_of(30), rid="a")
    harness.run()
    (reply,) = call(harness, "update_weights_from_disk", UPDATE)
    assert (reply.success, reply.message) == (False, "it is another model")
    harness.submit(prompt_of(30), rid="b")
    harness.run()
    assert harness.outputs["b"].cached_tokens == 29, "nothing was flushed"
    harness.close()


class Messages:
    """Calls once, and then has nothing more to say."""

    heartbeat_due = False
    descriptors: tuple[int, ...] = ()

    def __init__(self, request: ControlReq) -> None:
        self._coming: list[ToScheduler] = [request]
        self.sent: list[ControlReply | Heartbeat] = []

    def recv(self, timeout_s: float) -> list[ToScheduler]:
        coming, self._coming = self._coming, []
        return coming

    def send_to_tokenizer(self, message: ControlReply | Heartbeat) -> None:
        self.sent.append(message)


def test_neither_old_nor_new_weights_end_the_scheduler_once_it_has_said_so() -> None:
    harness = harness_of(Updatable(EngineDead("neither")))
    messages = Messages(ControlReq("1", "update_weights_from_disk", UPDATE))
    with pytest.raises(EngineDead, match="neither"):
        harness.scheduler.run_event_loop(messages)
    replies = [message for message in messages.sent if isinstance(message, ControlReply)]
    assert [(reply.success, reply.message) for reply in replies] == [(False, "neither")]
    beats = [message.expected_silence for message in messages.sent if isinstance(message, Heartbeat)]
    assert max(beats) > 60, "nobody takes it for dead while it reads"
    assert beats[-1] == 0.0
    harness.close()


@pytest.mark.parametrize("where", ["writing", "after"])
def test_a_failure_since_writing_began_ends_the_scheduler(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Updatable(breaks=OSError("cut short") if where == "writing" else None)
    harness = harness_of(worker)
    if where == "after":
        cache = harness.scheduler.requests.kv.prefix_cache

        def fail() -> None:
            raise RuntimeError("cut short")

        monkeypatch.setattr(cache, "reset", fail)
    with pytest.raises(EngineDead, match="cut short"):
        harness.scheduler.run_event_loop(Messages(ControlReq("1", "update_weights_from_disk", UPDATE)))


def test_a_scheduler_whose_replicas_have_other_weights_is_told_to_end() -> None:
    harness = Harness()
    messages = Messages(ControlReq("1", "give_up", {"cause": "different weights"}))
    with pytest.raises(EngineDead, match="different weights"):
        harness.scheduler.run_event_loop(messages)
    harness.close()


def test_weights_are_read_between_steps() -> None:
    for overlap in [True, "ahead"]:
        harness = harness_of(Updatable(), overlap=overlap)
        harness.submit(prompt_of(30), rid="a", max_new_tokens=200)
        harness.step()
        replies = call(harness, "get_weights_by_name", {"name": "abc", "truncate_size": 2})
        assert replies == [], "a step is in flight"
        while not replies:
            harness.step()
            replies = harness.scheduler.process_input_requests([])
        assert replies[0].data == {"rows": [3.0, 3.0]}
        assert harness.scheduler.has_unfinished_requests()
        harness.run()
        assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 200)
        harness.close()


def test_requests_go_on_while_a_group_is_joined() -> None:
    worker = Updatable()
    harness = harness_of(worker)
    place = {"master_address": "a", "master_port": 1, "rank_offset": 1, "world_size": 2, "backend": "gloo"}
    assert call(harness, "init_weights_update_group", {"group_name": "g", **place}) == []
    harness.submit(prompt_of(30), rid="a")
    harness.run()
    assert harness.outputs["a"].token_ids == harness.expected(prompt_of(30), 8)
    assert harness.scheduler.process_input_requests([]) == []
    worker.joining = False
    (reply,) = harness.scheduler.process_input_requests([])
    assert reply.success
    assert worker.joined == ["g"]
    harness.close()


def test_a_model_without_weights_says_so() -> None:
    harness = Harness()
    assert not isinstance(harness.worker.worker, Updatable)
    assert isinstance(harness.worker.worker, FakeWorker)
    for method, params in (
        ("update_weights_from_disk", UPDATE),
        ("get_weights_by_name", {"name": "a", "truncate_size": 1}),
    ):
        (reply,) = call(harness, method, params)
        assert (reply.success, reply.message) == (False, "this model has no weights")
    harness.close()
