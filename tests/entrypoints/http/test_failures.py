"""What clients hear when the engine says no, fails, or the server itself has a bug."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from bough.entrypoints.http.openai.chat import ChatChoiceWriter
from bough.ipc.messages import FinishReason
from tests.entrypoints.http.server import RunningServer

BODIES: dict[str, dict[str, Any]] = {
    "/generate": {"text": "Hi", "sampling_params": {"max_new_tokens": 20}},
    "/v1/completions": {"prompt": "Hi", "max_tokens": 20},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", BODIES)
class TestRefusalsOfTheScheduler:
    def test_full_queue(self, server: RunningServer, client: httpx.Client, path: str, stream: bool) -> None:
        server.engine.refusal = FinishReason("abort", message="the waiting queue is full", status_code=503)
        response = client.post(path, json={**BODIES[path], "stream": stream})
        assert response.status_code == 503
        assert int(response.headers["retry-after"]) >= 1
        error = response.json()["error"]
        assert error["message"] == "the waiting queue is full"
        assert error["code"] == "overloaded"

    def test_how_long_others_have_waited(
        self, server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str, stream: bool
    ) -> None:
        queue = server.manager.outputs.queue
        monkeypatch.setattr(queue, "_noted_at", -float("inf"))
        monkeypatch.setattr(server.manager._handler, "_queue_timeout", 9.0)
        queue.note_wait(7.0)
        for code, told in (("overloaded", "1"), ("queue_full", "7"), ("queue_timeout", "7"), ("queue_full", "7")):
            server.engine.refusal = FinishReason("abort", message="not now", status_code=503, code=code)
            response = client.post(path, json={**BODIES[path], "stream": stream})
            assert (response.status_code, response.headers["retry-after"]) == (503, told)

    def test_who_has_waited_too_long_counts(
        self, server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch, path: str, stream: bool
    ) -> None:
        queue = server.manager.outputs.queue
        monkeypatch.setattr(queue, "_noted_at", -float("inf"))
        monkeypatch.setattr(server.manager._handler, "_queue_timeout", 9.0)
        server.engine.refusal = FinishReason("abort", message="not now", status_code=503, code="queue_timeout")
        response = client.post(path, json={**BODIES[path], "stream": stream})
        assert (response.status_code, response.headers["retry-after"]) == (503, "9")

    def test_bad_request(self, server: RunningServer, client: httpx.Client, path: str, stream: bool) -> None:
        server.engine.refusal = FinishReason("abort", message="rid is wrong", status_code=400)
        response = client.post(path, json={**BODIES[path], "stream": stream})
        assert response.status_code == 400
        assert response.json()["error"]["type"] == "invalid_request_error"

    def test_reason_is_passed_on(self, server: RunningServer, client: httpx.Client, path: str, stream: bool) -> None:
        server.engine.refusal = FinishReason(
            "abort", message="the prompt is too long", status_code=400, code="context_length_exceeded"
        )
        error = client.post(path, json={**BODIES[path], "stream": stream}).json()["error"]
        assert error["code"] == "context_length_exceeded"

    def test_failure_before_the_first_token(
        self, server: RunningServer, client: httpx.Client, path: str, stream: bool
    ) -> None:
        server.engine.fail_after = 0
        response = client.post(path, json={**BODIES[path], "stream": stream})
        assert response.status_code == 500
        assert response.json()["error"]["message"] == "out of luck"
        assert response.json()["error"]["type"] == "server_error"


def test_failure_in_the_middle_of_an_openai_stream_is_an_error_event(
    server: RunningServer, client: httpx.Client
) -> None:
    server.engine.fail_after = 5
    for path in ("/v1/completions", "/v1/chat/completions"):
        response = client.post(path, json={**BODIES[path], "stream": True})
        assert response.status_code == 200
        *_, error, done, end = response.text.split("\n\n")
        assert '"message":"out of luck","type":"server_error"' in error
        assert (done, end) == ("data: [DONE]", "")


def test_failure_in_the_middle_of_a_native_stream_is_a_finish_reason(
    server: RunningServer, client: httpx.Client
) -> None:
    server.engine.fail_after = 5
    response = client.post("/generate", json={**BODIES["/generate"], "stream": True})
    *_, last, done, _ = response.text.split("\n\n")
    assert '"finish_reason":{"type":"abort","message":"out of luck","status_code":500}' in last
    assert done == "data: [DONE]"


class TestBugs:
    """An exception that nobody expects ends one request, is logged, and tells the client nothing of the insides."""

    @pytest.fixture(autouse=True)
    def bug(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def raise_secret(*_: Any) -> bytes:
            raise RuntimeError("secret detail")

        monkeypatch.setattr(ChatChoiceWriter, "whole", raise_secret)
        monkeypatch.setattr(ChatChoiceWriter, "_event", lambda *_, **__: 1 / 0)

    def test_in_a_whole_answer(self, client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
        response = client.post("/v1/chat/completions", json=BODIES["/v1/chat/completions"])
        assert response.status_code == 500
        assert response.json()["error"]["code"] == "internal_error"
        assert "secret" not in response.text
        assert "secret detail" in caplog.text
        assert client.post("/generate", json=BODIES["/generate"]).status_code == 200

    def test_in_a_stream(self, client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
        response = client.post("/v1/chat/completions", json={**BODIES["/v1/chat/completions"], "stream": True})
        assert response.status_code == 500
        assert "ZeroDivisionError" in caplog.text
        assert "division" not in response.text

    def test_in_the_middle_of_a_stream(
        self, client: httpx.Client, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def event(*_: Any, reason: bytes = b"null", **__: Any) -> bytes:
            if reason != b"null":
                raise RuntimeError("the last one")
            return b"data: {}\n\n"

        monkeypatch.setattr(ChatChoiceWriter, "_event", event)
        response = client.post("/v1/chat/completions", json={**BODIES["/v1/chat/completions"], "stream": True})
        assert response.status_code == 200
        *_, error, done, _ = response.text.split("\n\n")
        assert '"code":"internal_error"' in error
        assert done == "data: [DONE]"
        assert "A stream from /v1/chat/completions failed" in caplog.text
