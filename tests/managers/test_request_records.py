"""What is counted and logged of the ends of requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bough.errors import BadRequest, EngineDead
from bough.ipc.messages import FinishReason, OutputDelta
from bough.managers.request_log import RecentRequests, RequestLog
from bough.managers.request_records import RequestRecords
from bough.observability.metrics import RequestMetrics
from tests.managers.test_request_log import SECRET, make_state

MESSAGE = f"regex: nothing to repeat in {SECRET}"
FINISHED = FinishReason("stop")
ABORTED = FinishReason("abort", message="aborted")
REFUSED = FinishReason("abort", message=MESSAGE, status_code=400, param="regex", code="invalid_grammar")
FAILED = FinishReason("abort", message=MESSAGE, status_code=500)


@pytest.mark.parametrize(
    ("reason", "tokens", "count"),
    [(FINISHED, 3, 1), (ABORTED, 3, 1), (ABORTED, 0, 1), (REFUSED, 0, 0), (FAILED, 3, 0)],
    ids=["finished", "aborted", "aborted at once", "refused", "failed"],
)
def test_durations_and_sizes_are_those_of_answers(reason: FinishReason, tokens: int, count: int) -> None:
    metrics, state = RequestMetrics(), make_state()
    state.sent_time = state.first_token_time = state.finished_time = 1.0
    RequestRecords(metrics, RequestLog(None)).on_last_delta(
        state, OutputDelta("r", [], None, reason, completion_tokens=tokens, prompt_tokens=5, last_token_delay=0.5)
    )
    for histogram in (
        metrics.e2e_request_latency,
        metrics.prompt_tokens_histogram,
        metrics.generation_tokens_histogram,
    ):
        assert histogram.count == count
    assert metrics.request_time_per_output_token.count == (count if tokens else 0)
    assert sum(histogram.count for histogram in metrics.stages.values()) <= 5 * count
    assert metrics.num_requests == 1


@pytest.mark.parametrize("from_engine", [True, False])
def test_what_is_wrong_is_told_without_quoting_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, from_engine: bool
) -> None:
    caplog.set_level("INFO")
    recent = RecentRequests(str(tmp_path), with_prompts=False)
    records, state = RequestRecords(RequestMetrics(), RequestLog(1), recent), make_state()
    if from_engine:
        records.on_last_delta(state, OutputDelta("r", [], None, REFUSED))
    else:
        records.on_error(state.obj, "r", BadRequest(MESSAGE, param="regex", code="invalid_grammar"), state)
    dump = recent.write("x", []).read_text()
    for text in (caplog.text, dump):
        assert "refused: invalid_grammar (regex)" in text
        assert SECRET not in text


def test_whoever_is_cut_off_by_a_death_is_unfinished_in_the_crash_dump(tmp_path: Path) -> None:
    recent = RecentRequests(str(tmp_path), with_prompts=False)
    metrics, state = RequestMetrics(), make_state()
    RequestRecords(metrics, RequestLog(None), recent).on_error(state.obj, "r", EngineDead("killed"), state)
    dump: dict[str, Any] = json.loads(recent.write("x", []).read_text())
    assert [each["rid"] for each in dump["unfinished"]] == ["r"]
    assert dump["ended"] == []
    assert metrics.failed_requests.total == 1
