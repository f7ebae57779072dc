"""Whatever one client sends, the event loop stays free for the others."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.native.protocol import GENERATE
from bough.entrypoints.http.openai.protocol import CHAT, COMPLETIONS
from bough.entrypoints.http.unknown_fields import note_unknown
from bough.errors import BadRequest
from bough.managers.io_struct import GenerateReqInput
from bough.managers.request_limits import WORK_PER_TURN
from bough.managers.turns import Turns
from tests.tables import table

CHAT_BODY = {"messages": [{"role": "user", "content": "Hi"}]}
LONGEST_TURN = 0.2
"""Seconds of the loop's thread; each of these bodies used to take a multiple."""

LARGE: list[tuple[BodySpec[Any], Callable[[], dict[str, Any]]]] = [
    (GENERATE, lambda: {"text": ["a"] * 300_000, "sampling_params": [{}] * 300_000}),
    (GENERATE, lambda: {"input_ids": [[1]] * 1_000_000}),
    (GENERATE, lambda: {"text": "a", "token_ids_logprob": [1] * 3_000_000}),
    (CHAT, lambda: {**CHAT_BODY, "metadata": [[]] * 2_000_000}),
    (CHAT, lambda: {**CHAT_BODY, "logit_bias": {str(i): 1 for i in range(1_000_000)}}),
    (CHAT, lambda: {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}] * 500_000}]}),
    (COMPLETIONS, lambda: {"prompt": ["a"] * 2_000_000}),
]
"""Bodies are made when a test needs them: together they take half a gigabyte."""


@table("spec, make_body", LARGE)
def test_large_fields_are_refused_without_holding_up_the_event_loop(
    spec: BodySpec[Any], make_body: Callable[[], dict[str, Any]]
) -> None:
    raw = json.dumps(make_body(), separators=(",", ":")).encode()

    async def longest_turn() -> float:
        task = asyncio.create_task(spec.parse(raw, unknown=None, max_tokens=10**6))
        longest = 0.0
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
        with pytest.raises(BadRequest):
            task.result()
        return longest

    assert asyncio.run(longest_turn()) < LONGEST_TURN


def test_the_number_of_prompts_is_looked_at_before_their_sampling_parameters() -> None:
    body = GenerateReqInput(text=["a"] * 100, sampling_params=[{"unknown": 1}] * 100)
    with pytest.raises(BadRequest, match="at most 99") as caught:
        body.expand(max_outputs=99)
    assert caught.value.param == "text"


def test_the_parameters_of_many_prompts_are_looked_at_in_many_turns(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = 0
    spend = Turns.spend

    async def counted(self: Turns, amount: int = 1) -> None:
        nonlocal turns
        before = self._left
        await spend(self, amount)
        turns += self._left > before - amount

    monkeypatch.setattr(Turns, "spend", counted)
    schemas = [json.dumps({"enum": [[]] * 2000 + [number]}) for number in range(100)]
    params = [{"max_new_tokens": 1, "json_schema": schema} for schema in schemas]
    assert client.post("/generate", json={"text": ["Hi"] * 100, "sampling_params": params}).status_code == 200
    least = sum(map(len, schemas)) // WORK_PER_TURN
    assert turns >= 2 * least, "once when they are read, and once when the model's limits are known"
    turns = 0
    shared = {"text": ["Hi"] * 100, "sampling_params": params[0]}
    assert client.post("/generate", json=shared).status_code == 200
    assert turns < least, "what all prompts have in common is looked at once"


def test_different_stop_patterns_are_bounded_over_all_prompts(client: httpx.Client) -> None:
    params = [{"max_new_tokens": 1, "stop_regex": [f"x{i}"]} for i in range(33)]
    body = {"text": ["Hi"] * 33, "sampling_params": params}
    response = client.post("/generate", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "sampling_params.stop_regex"
    assert client.post("/generate", json={"text": ["Hi"] * 32, "sampling_params": params[:32]}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_invalid_stop_patterns_are_refused_naming_the_field(client: httpx.Client, path: str) -> None:
    response = client.post(
        path, json={"prompt": "Hi", "stop_regex": "("} if "chat" not in path else {**CHAT_BODY, "stop_regex": "("}
    )
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "stop_regex"


def test_unknown_fields_make_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    body = json.dumps({"text": "a", **{f"key\n{i}": 1 for i in range(20)}}).encode()
    unknown: dict[str, None] = {}
    assert asyncio.run(GENERATE.parse(body, unknown=unknown, max_tokens=10))[0].text == "a"
    note_unknown(unknown)
    (record,) = caplog.records
    assert record.getMessage().endswith("'key\\n7' and 12 more")
