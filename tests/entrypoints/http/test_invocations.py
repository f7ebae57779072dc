from __future__ import annotations

from typing import Any

import httpx
import pytest


def test_ping(client: httpx.Client) -> None:
    assert client.get("/ping").status_code == 200


@pytest.mark.parametrize(
    ("body", "like"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "seed": 1}, "/v1/chat/completions"),
        ({"prompt": "Hi", "max_tokens": 2, "seed": 1}, "/v1/completions"),
        ({"text": "Hi", "sampling_params": {"max_new_tokens": 2, "sampling_seed": 1}}, "/generate"),
        ({"input_ids": [3], "sampling_params": {"max_new_tokens": 2, "sampling_seed": 1}}, "/generate"),
    ],
)
def test_the_body_decides_what_kind_of_request_it_is(client: httpx.Client, body: dict[str, Any], like: str) -> None:
    answer, expected = client.post("/invocations", json=body), client.post(like, json=body)
    assert answer.status_code == expected.status_code == 200
    assert answer.json().keys() == expected.json().keys()
    assert answer.json().get("object") == expected.json().get("object")
    streamed = client.post("/invocations", json={**body, "stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert streamed.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("body", [{}, {"model": "x"}, {"messages": 5}, []])
def test_what_is_no_request_is_refused(client: httpx.Client, body: Any) -> None:
    response = client.post("/invocations", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"]
