from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.errors import BadRequest, Overloaded
from bough.managers.sessions import MAX_TURNS, SessionParams, SessionStore
from tests.thoroughness import examples

BOS = 1


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class Sessions:
    """A store whose turns are answered at once."""

    def __init__(self, *, max_sessions: int = 4, max_tokens: int = 1000, timeout: float = 60.0) -> None:
        self.aborted: list[str] = []
        self.clock = Clock()
        self.store = SessionStore(
            max_sessions=max_sessions, max_tokens=max_tokens, timeout=timeout, abort=self.aborted.append, now=self.clock
        )

    def begin(self, session: str, rid: str, new: list[int], after: str | None = None, **options: Any):
        turn = self.propose(session, rid, new, after, **options)
        turn.accepted()
        return turn

    def propose(self, session: str, rid: str, new: list[int], after: str | None = None, **options: Any):
        return self.store.begin_turn(SessionParams(id=session, rid=after, **options), rid, array("i", new), BOS)

    def run(self, session: str, rid: str, new: list[int], output: list[int], after: str | None = None, **options: Any):
        turn = self.begin(session, rid, new, after, **options)
        prompt = turn.prompt().tolist()
        turn.add_output(output)
        turn.end()
        return prompt


@pytest.fixture
def sessions() -> Sessions:
    made = Sessions()
    made.store.open(session_id="s")
    return made


def test_turns_go_on_from_each_other(sessions: Sessions) -> None:
    assert sessions.run("s", "a", [BOS, 10], [11, 12]) == [BOS, 10]
    assert sessions.run("s", "b", [20], [21], after="a") == [BOS, 10, 11, 12, 20]
    assert sessions.run("s", "c", [30], [31], after="b") == [BOS, 10, 11, 12, 20, 21, 30]
    assert sessions.run("s", "other branch", [40], [], after="a") == [BOS, 10, 11, 12, 40]
    assert sessions.run("s", "anew", [50], []) == [50]


def test_bos_of_an_appended_turn_is_dropped(sessions: Sessions) -> None:
    sessions.run("s", "a", [BOS, 10], [11])
    assert sessions.run("s", "b", [BOS, 20], [], after="a") == [BOS, 10, 11, 20]
    assert sessions.run("s", "c", [BOS, 20], [], after="a", offset=-3) == [BOS, 20], "it is the first here"


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, [1, 2, 3, 4]),
        ({"offset": 0}, [1, 2, 3, 4]),
        ({"offset": 3}, [1, 2, 3]),
        ({"offset": 4}, [1, 2, 3, 4]),
        ({"offset": -1}, [1, 2, 3]),
        ({"offset": -4}, []),
        ({"drop_previous_output": True}, [1, 2]),
        ({"drop_previous_output": True, "offset": -1}, [1]),
    ],
)
def test_what_is_kept_of_the_context_is_for_the_client_to_say(
    sessions: Sessions, options: dict[str, Any], kept: list[int]
) -> None:
    sessions.run("s", "a", [1, 2], [3, 4])
    assert sessions.run("s", "b", [9], [], after="a", **options) == [*kept, 9]


@pytest.mark.parametrize("options", [{"offset": 5}, {"offset": -5}, {"offset": 3, "drop_previous_output": True}])
def test_an_offset_beyond_the_context_is_refused_before_anything_is_forgotten(
    sessions: Sessions, options: dict[str, Any]
) -> None:
    sessions.run("s", "a", [1, 2], [3, 4])
    sessions.run("s", "b", [9], [], after="a")
    with pytest.raises(BadRequest, match="offset"):
        sessions.begin("s", "c", [5], after="a", replace=True, **options)
    assert sessions.run("s", "d", [6], [], after="b") == [1, 2, 3, 4, 9, 6]


@pytest.mark.parametrize(
    ("output", "new", "prompt"),
    [
        ([3, 70], [70, 71, 9], [3, 70, 71, 9]),  # the model has ended its message
        ([3], [70, 71, 9], [3, 70, 71, 9]),  # it was cut
        ([3, 70, 71], [70, 71, 9], [3, 70, 71, 9]),  # and has written more than the end
        ([3, 70], [40, 70, 9], [3, 70, 9]),  # the template writes a space before it
        ([3, 5], [40, 70, 9], [3, 5, 40, 70, 9]),
    ],
)
def test_what_a_context_has_of_the_end_of_its_message_is_not_repeated(
    sessions: Sessions, output: list[int], new: list[int], prompt: list[int]
) -> None:
    sessions.run("s", "a", [1], output)
    params = SessionParams(id="s", rid="a")
    turn = sessions.store.begin_turn(params, "b", array("i", new), BOS, frozenset({70, 71}))
    assert turn.prompt().tolist() == [1, *prompt]


def test_replace_forgets_what_has_gone_on_from_a_turn_and_aborts_it(sessions: Sessions) -> None:
    sessions.run("s", "a", [1], [2])
    sessions.run("s", "b", [3], [], after="a")
    sessions.begin("s", "c", [4], after="b")
    assert sessions.run("s", "d", [5], [], after="a", replace=True) == [1, 2, 5]
    assert sessions.aborted == ["c"]
    for gone in ("b", "c"):
        with pytest.raises(BadRequest, match="has no request"):
            sessions.begin("s", "x", [1], after=gone)
    assert sessions.store.num_tokens == 3


def test_replace_of_everything_begins_anew(sessions: Sessions) -> None:
    sessions.run("s", "a", [1], [2])
    sessions.begin("s", "b", [3], after="a")
    assert sessions.run("s", "c", [7], [], replace=True) == [7]
    assert sessions.aborted == ["b"]
    assert sessions.store.num_tokens == 1


@pytest.mark.parametrize("after", ["a", None])
def test_of_two_turns_that_replace_each_other_the_last_one_counts(sessions: Sessions, after: str | None) -> None:
    sessions.run("s", "a", [1], [2])
    first = sessions.propose("s", "t1", [3], after=after, replace=True)
    second = sessions.propose("s", "t2", [4], after=after, replace=True)
    first.accepted()
    assert (sessions.aborted, first.running, second.running) == ([], True, True)
    second.accepted()
    assert sessions.aborted == ["t1"]
    second.end()
    assert sessions.run("s", "b", [5], [], after="t2")[-2:] == [4, 5]


def test_what_has_gone_on_from_a_turn_is_not_replaced_by_it(sessions: Sessions) -> None:
    """A long prompt is prepared while others get their turn: what goes on from it may be accepted first."""
    sessions.run("s", "a", [5], [6])
    slow = sessions.propose("s", "x", [7], replace=True)
    child = sessions.propose("s", "c", [8], after="x", replace=True)
    child.accepted()
    slow.accepted()
    assert sessions.aborted == ["x"]
    child.add_output([9])
    child.end()
    assert sessions.run("s", "d", [10], [], after="c") == [*child.prompt().tolist(), 9, 10]
    assert sessions.run("s", "e", [11], [], after="x", replace=True)[-1] == 11
    assert sessions.store.num_tokens == 2


def test_a_running_turn_can_be_replaced_and_not_appended_to(sessions: Sessions) -> None:
    running = sessions.begin("s", "a", [1])
    running.add_output([2, 3])
    with pytest.raises(BadRequest, match="not finished"):
        sessions.begin("s", "b", [9], after="a")
    cut = sessions.begin("s", "b", [9], after="a", replace=True)
    assert sessions.aborted == ["a"]
    running.add_output([4])
    running.end()
    assert cut.prompt().tolist() == [1, 2, 3, 9]


@pytest.mark.parametrize("after", ["a", None])
def test_a_turn_that_is_refused_replaces_nothing(after: str | None) -> None:
    sessions = Sessions()
    sessions.store.open(10, session_id="s")
    sessions.run("s", "a", [1], [2])
    sessions.run("s", "b", [3], [], after="a")
    running = sessions.begin("s", "c", [4], after="a")
    with pytest.raises(BadRequest, match="holds"):
        sessions.begin("s", "x", list(range(11)), after=after, replace=True)
    refused = sessions.propose("s", "x", [5, 6], after=after, replace=True)
    refused.discard()
    assert sessions.aborted == []
    assert running.running
    assert sessions.store.num_tokens == 4
    assert sessions.run("s", "d", [7], [], after="b") == [1, 2, 3, 7]


def test_what_a_turn_replaces_counts_no_more(sessions: Sessions) -> None:
    sessions.store.open(4, session_id="small")
    sessions.run("small", "a", [1], [2])
    sessions.run("small", "b", [3], [4], after="a")
    with pytest.raises(BadRequest, match="holds 4 tokens"):
        sessions.begin("small", "c", [5], after="a")
    assert sessions.run("small", "c", [5], [6], after="a", replace=True) == [1, 2, 5]
    assert sessions.run("small", "d", [7, 8, 9, 10], [], replace=True) == [7, 8, 9, 10]


def test_failed_turn_leaves_nothing(sessions: Sessions) -> None:
    sessions.run("s", "a", [1], [2])
    turn = sessions.begin("s", "b", [3, 4], after="a")
    turn.add_output([5])
    turn.discard()
    assert sessions.store.num_tokens == 2
    assert sessions.aborted == []
    assert sessions.run("s", "b", [6], [], after="a") == [1, 2, 6]


def test_turn_that_others_go_on_from_survives_the_loss_of_its_client(sessions: Sessions) -> None:
    cut = sessions.begin("s", "a", [1])
    sessions.begin("s", "b", [2], after="a", replace=True)
    cut.discard()
    assert sessions.aborted == ["a"]
    assert sessions.store.num_tokens == 2


class TestStreamingSession:
    @pytest.fixture
    def linear(self) -> Sessions:
        made = Sessions()
        made.store.open(session_id="s", is_linear=True)
        return made

    def test_each_turn_goes_on_from_the_one_before(self, linear: Sessions) -> None:
        assert linear.run("s", "a", [BOS, 1], [2]) == [BOS, 1]
        assert linear.run("s", "b", [BOS, 3], [4]) == [BOS, 1, 2, 3]
        assert linear.run("s", "c", [5], [6], after="b") == [BOS, 1, 2, 3, 4, 5]
        assert linear.store.num_tokens == 7

    def test_one_request_at_a_time_and_no_branches(self, linear: Sessions) -> None:
        linear.run("s", "a", [1], [2])
        linear.run("s", "b", [1], [2])
        for options in ({"offset": 1}, {"replace": True}, {"drop_previous_output": True}, {"after": "a"}):
            with pytest.raises(BadRequest, match="session_params"):
                linear.begin("s", "c", [1], **options)
        linear.begin("s", "c", [1])
        with pytest.raises(BadRequest, match="has not finished"):
            linear.begin("s", "d", [1])

    def test_what_was_to_go_on_from_a_turn_that_has_left_begins_nothing(self, linear: Sessions) -> None:
        with pytest.raises(BadRequest, match="send the whole conversation"):
            linear.store.begin_turn(SessionParams(id="s"), "a", array("i", [3]), BOS, frozenset({70}))
        assert linear.run("s", "a", [1], [2]) == [1]

    def test_failed_turn_can_be_tried_again(self, linear: Sessions) -> None:
        linear.run("s", "a", [1], [2])
        linear.begin("s", "b", [3]).discard()
        assert linear.run("s", "b", [4], []) == [1, 2, 4]


class TestBounds:
    def test_number_of_sessions(self) -> None:
        sessions = Sessions(max_sessions=2)
        first = sessions.store.open()
        assert sessions.store.open() != first
        with pytest.raises(Overloaded, match="--max-sessions"):
            sessions.store.open()
        assert sessions.store.close(first)
        sessions.store.open()

    def test_names_are_taken_once(self, sessions: Sessions) -> None:
        with pytest.raises(BadRequest, match="in use"):
            sessions.store.open(session_id="s")

    def test_tokens_of_a_session(self) -> None:
        sessions = Sessions()
        sessions.store.open(5, "s")
        sessions.run("s", "a", [1, 2], [3])
        sessions.run("s", "b", [4, 5], [6], after="a")
        with pytest.raises(BadRequest, match="capacity") as error:
            sessions.begin("s", "c", [7], after="b")
        assert error.value.code == "session_full"

    def test_tokens_of_all_sessions(self) -> None:
        sessions = Sessions(max_tokens=4)
        for name in ("s", "t"):
            sessions.store.open(session_id=name)
        sessions.run("s", "a", [1, 2], [3])
        with pytest.raises(Overloaded, match="--max-session-tokens"):
            sessions.begin("t", "a", [1, 2])
        sessions.store.close("s")
        sessions.begin("t", "a", [1, 2])

    def test_a_turn_that_replaces_others_has_their_room(self) -> None:
        sessions = Sessions(max_tokens=6)
        for name in ("s", "t"):
            sessions.store.open(session_id=name)
        sessions.run("t", "a", [1], [])
        sessions.run("s", "a", [1, 2], [3])
        sessions.run("s", "b", [4], [5], after="a")
        with pytest.raises(Overloaded):
            sessions.begin("s", "c", [6, 7], after="a")
        with pytest.raises(Overloaded):
            sessions.begin("s", "c", [6, 7, 8], after="a", replace=True)
        sessions.run("s", "c", [6], [7], after="a", replace=True)
        assert sessions.store.num_tokens == 6

    def test_turns_of_a_session(self, sessions: Sessions) -> None:
        for index in range(MAX_TURNS):
            sessions.run("s", str(index), [], [])
        with pytest.raises(BadRequest, match="turns"):
            sessions.begin("s", "x", [])

    def test_an_id_names_one_turn(self, sessions: Sessions) -> None:
        sessions.run("s", "a", [1], [])
        with pytest.raises(BadRequest, match="already"):
            sessions.begin("s", "a", [1])

    @pytest.mark.parametrize("options", [{"offset": 1}, {"drop_previous_output": True}])
    def test_options_that_need_a_turn_to_go_on_from(self, sessions: Sessions, options: dict[str, Any]) -> None:
        with pytest.raises(BadRequest, match="rid"):
            sessions.begin("s", "a", [1], **options)


class TestEnd:
    def test_closing_aborts_what_runs_and_forgets_everything(self, sessions: Sessions) -> None:
        sessions.run("s", "a", [1], [2])
        running = sessions.begin("s", "b", [3], after="a")
        assert sessions.store.close("s")
        assert sessions.aborted == ["b"]
        running.add_output([4])
        running.end()
        assert sessions.store.num_tokens == 0
        assert not sessions.store.close("s")
        with pytest.raises(BadRequest, match="no session"):
            sessions.begin("s", "c", [1])

    def test_idle_sessions_time_out_and_busy_ones_do_not(self) -> None:
        sessions = Sessions(timeout=60.0)
        for name, timeout in (("idle", None), ("short", 10.0), ("busy", None)):
            sessions.store.open(session_id=name, timeout=timeout)
        turn = sessions.begin("busy", "a", [1])
        sessions.clock.time = 11.0
        sessions.store.close_idle()
        assert ["short" in sessions.store, "idle" in sessions.store] == [False, True]
        sessions.clock.time = 61.0
        sessions.store.close_idle()
        assert ["idle" in sessions.store, "busy" in sessions.store] == [False, True]
        turn.end()
        sessions.clock.time = 121.0
        sessions.store.close_idle()
        assert "busy" in sessions.store
        sessions.clock.time = 122.0
        sessions.store.close_idle()
        assert len(sessions.store) == 0

    def test_timeout_may_not_be_longer_than_the_servers(self, sessions: Sessions) -> None:
        with pytest.raises(BadRequest, match="--session-timeout"):
            sessions.store.open(timeout=61.0)


STEPS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.lists(st.integers(2, 99), max_size=4),
        st.lists(st.integers(2, 99), max_size=4),
        st.integers(-6, 6),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["end", "discard", "leave"]),
    ),
    max_size=25,
)


@settings(max_examples=examples(150))
@given(STEPS)
def test_any_tree_of_turns_gives_the_prompts_of_a_plain_model(steps: list[Any]) -> None:
    sessions = Sessions()
    sessions.store.open(session_id="s")
    whole: dict[str, tuple[list[int], list[int], str | None]] = {}
    for index, (parent_index, new, output, offset, drop, replace, fate) in enumerate(steps):
        rid, parent = str(index), str(parent_index)
        options: dict[str, Any] = {"offset": offset, "drop_previous_output": drop, "replace": replace}
        if parent not in whole:
            parent, options = None, {"replace": replace}
        elif abs(offset) > len(whole[parent][0]) + (0 if drop else len(whole[parent][1])):
            options["offset"] = offset = 0
        turn = sessions.begin("s", rid, new, parent, **options)
        before: list[int] = []
        if parent is not None:
            prompt, answer, _ = whole[parent]
            before = prompt if drop else prompt + answer
            before = before[:offset] if offset else before
        assert turn.prompt().tolist() == before + new
        if replace:
            gone = {rid for rid in whole if parent is None or descends(rid, parent, whole)}
            whole = {rid: each for rid, each in whole.items() if rid not in gone}
        turn.add_output(output)
        if fate == "discard":
            turn.discard()
        else:
            turn.end()
            whole[rid] = (before + new, output, parent)
    session = sessions.store._sessions["s"]
    assert set(session.turns) == set(whole)
    stored = sum(len(turn.new) + len(turn.output) for turn in session.turns.values())
    assert session.num_tokens == sessions.store.num_tokens == stored
    sessions.store.close("s")
    assert sessions.store.num_tokens == 0


def descends(rid: str, ancestor: str, whole: dict[str, tuple[list[int], list[int], str | None]]) -> bool:
    parent = whole[rid][2]
    return parent is not None and (parent == ancestor or descends(parent, ancestor, whole))
