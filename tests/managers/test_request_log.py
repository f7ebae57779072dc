"""What is written about requests: as much as was asked for, and no prompt unless it was."""

from __future__ import annotations

import json
import stat
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import pytest

from bough.ipc.messages import OutputDelta
from bough.managers import request_log
from bough.managers.embedding_struct import EmbeddingReqInput
from bough.managers.io_struct import GenerateReqInput, GenerateRequest
from bough.managers.req_state import ReadySignal, ReqState
from bough.managers.request_log import BEGINNING_CHARS, DUMPED_REQUESTS, Ending, RecentRequests, RequestLog
from bough.observability.request_context import CURRENT, RequestContext
from bough.sampling.sampling_params import SamplingParams

SECRET = "my secret prompt "
STOP = "a private stop"
FINISHED = Ending("finished", "stop")
REFUSED = Ending("refused", "refused: invalid_grammar (regex)", f"regex: nothing to repeat in {SECRET}")


def make_state(rid: str = "r", *, no_logs: bool = False) -> ReqState:
    request = GenerateRequest(
        rids=[rid],
        text=SECRET * 40,
        input_ids=array("i", range(5)),
        sampling_params=SamplingParams(temperature=0.5, stop=(STOP,), max_new_tokens=7),
        no_logs=no_logs,
    )
    return ReqState(rid, 0, request, ReadySignal(), created_time=0.0)


def written(level: int | None, caplog: pytest.LogCaptureFixture, *, no_logs: bool = False) -> list[str]:
    caplog.set_level("INFO")
    log, state = RequestLog(level), make_state(no_logs=no_logs)
    log.on_sent(state)
    for _ in range(BEGINNING_CHARS if log.keeps_text else 0):
        log.on_text(state, OutputDelta("r", [1], text="ab"))
    log.on_end(state.obj, "r", FINISHED, state, 2)
    return caplog.messages


def test_nothing_is_logged_unless_wanted(caplog: pytest.LogCaptureFixture) -> None:
    assert written(None, caplog) == []


def test_the_lowest_level_has_the_outcome_alone(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = written(0, caplog)
    assert line.startswith("Request 'r': 5 prompt tokens (2 cached), 0 generated, stop, ")


def test_texts_among_parameters_are_only_measured_below_level_2(caplog: pytest.LogCaptureFixture) -> None:
    arrived, _ = written(1, caplog)
    assert "'temperature': 0.5" in arrived
    assert "'max_new_tokens': 7" in arrived
    assert "'stop': '<1 entries>'" in arrived
    assert not any(SECRET in line or STOP in line for line in caplog.messages)


def test_level_2_shows_how_texts_begin(caplog: pytest.LogCaptureFixture) -> None:
    arrived, ended = written(2, caplog)
    assert STOP in arrived
    assert SECRET in arrived
    assert arrived.endswith("...'")
    assert f"output '{'ab' * (BEGINNING_CHARS // 2)}...'" in ended


def test_level_3_shows_all(caplog: pytest.LogCaptureFixture) -> None:
    arrived, ended = written(3, caplog)
    assert SECRET * 40 in arrived
    assert "ab" * BEGINNING_CHARS in ended


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_request_that_is_to_be_in_no_log_is_in_none(caplog: pytest.LogCaptureFixture, level: int) -> None:
    assert written(level, caplog, no_logs=True) == []


def test_every_prompt_of_a_batch_stays_out_of_the_log() -> None:
    texts = GenerateReqInput(text=["a", "b"], no_logs=True).expand()
    vectors = EmbeddingReqInput(text=["a", "b"], no_logs=True).requests()
    assert all(request.no_logs for request in (*texts, *vectors))


def test_records_have_fields_and_the_id_of_the_http_request(caplog: pytest.LogCaptureFixture) -> None:
    token = CURRENT.set(RequestContext("http-7"))
    try:
        written(0, caplog)
    finally:
        CURRENT.reset(token)
    (record,) = caplog.records
    fields: Any = record.args
    assert record.event == "request_finished"  # type: ignore[attr-defined]
    assert (fields["rid"], fields["request_id"], fields["outcome"]) == ("r", "http-7", "finished")
    assert "x-request-id 'http-7'" in record.getMessage()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_errors_quote_requests_from_level_2_on(caplog: pytest.LogCaptureFixture, level: int) -> None:
    caplog.set_level("INFO")
    state = make_state()
    RequestLog(level).on_end(state.obj, "r", REFUSED, state, 0)
    (line,) = caplog.messages
    assert (SECRET in line) == (level >= 2)
    assert ("refused: invalid_grammar (regex)" in line) == (level < 2)


class TestCrashDump:
    @staticmethod
    def dumped(folder: Path, *, with_prompts: bool) -> dict[str, Any]:
        recent = RecentRequests(str(folder / "dumps"), with_prompts=with_prompts)
        for number in range(DUMPED_REQUESTS + 10):
            recent.on_end(make_state(f"done-{number}"), FINISHED)
        path = recent.write("the scheduler died", [make_state("alive")])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        loaded: dict[str, Any] = json.loads(path.read_text())
        return loaded

    def test_tells_what_was_going_on_without_prompts(self, tmp_path: Path) -> None:
        dump = self.dumped(tmp_path, with_prompts=False)
        assert dump["cause"] == "the scheduler died"
        (alive,) = dump["unfinished"]
        assert (alive["rid"], alive["outcome"], alive["prompt_tokens"]) == ("alive", "unfinished", 5)
        assert alive["sampling_params"]["temperature"] == 0.5
        assert len(dump["ended"]) == DUMPED_REQUESTS
        assert dump["ended"][-1]["rid"] == f"done-{DUMPED_REQUESTS + 9}"
        text = json.dumps(dump)
        assert SECRET not in text
        assert STOP not in text

    def test_has_prompts_if_they_are_wanted(self, tmp_path: Path) -> None:
        (alive,) = self.dumped(tmp_path, with_prompts=True)["unfinished"]
        assert alive["prompt"] == SECRET * 40
        assert alive["sampling_params"]["stop"] == [STOP]

    def test_has_no_text_of_a_request_that_is_to_be_in_no_log(self, tmp_path: Path) -> None:
        recent = RecentRequests(str(tmp_path), with_prompts=True)
        recent.on_end(make_state(no_logs=True), REFUSED)
        text = recent.write("x", [make_state(no_logs=True)]).read_text()
        assert SECRET not in text
        assert STOP not in text

    @pytest.mark.parametrize("with_prompts", [False, True])
    def test_errors_quote_requests_only_if_prompts_are_wanted(self, tmp_path: Path, *, with_prompts: bool) -> None:
        recent = RecentRequests(str(tmp_path), with_prompts=with_prompts)
        recent.on_end(make_state(), REFUSED)
        (ended,) = json.loads(recent.write("x", []).read_text())["ended"]
        assert ended["outcome"] == "refused"
        assert (SECRET in ended["how"]) == with_prompts
        assert ("invalid_grammar (regex)" in ended["how"]) != with_prompts

    def test_whoever_was_cut_off_is_told_of_as_unfinished_however_many_there_are(self, tmp_path: Path) -> None:
        recent = RecentRequests(str(tmp_path), with_prompts=False)
        for number in range(DUMPED_REQUESTS + 10):
            recent.on_cut_off(make_state(f"cut-{number}"))
        dump = json.loads(recent.write("x", []).read_text())
        assert [each["rid"] for each in dump["unfinished"]] == [
            f"cut-{number}" for number in range(DUMPED_REQUESTS + 10)
        ]
        assert dump["ended"] == []

    def test_prompts_that_are_remembered_take_a_bounded_number_of_bytes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(request_log, "DUMPED_TEXT_BYTES", 10_000)
        recent = RecentRequests(str(tmp_path), with_prompts=True)
        large = make_state("large")
        large.obj.text, large.obj.input_ids = None, array("i", range(2000))
        grammar = make_state("grammar")
        grammar.obj.sampling_params = SamplingParams(regex="x" * 8000)
        for state in (make_state("first"), large, make_state("second"), grammar, make_state("third")):
            recent.on_end(state, FINISHED)
        path = recent.write("x", [])
        assert [each["rid"] for each in json.loads(path.read_text())["ended"]] == ["grammar", "third"]
        path.unlink()
        recent.on_end(large, FINISHED)
        ended = json.loads(recent.write("y", []).read_text())["ended"]
        assert [each["rid"] for each in ended] == ["third", "large"]
        assert ended[-1]["prompt"] == str(list(range(2000)))

    def test_a_prompt_is_rendered_when_it_is_written(self) -> None:
        state = make_state()
        state.obj.text, state.obj.input_ids = None, array("i", range(100_000))
        recent = RecentRequests("unused", with_prompts=True)
        recent.on_end(state, FINISHED)
        tracemalloc.start()
        for _ in range(20):
            recent.on_end(state, FINISHED)
        allocated = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert allocated < 100_000, "the ids are remembered as they are"
