from __future__ import annotations

import httpx


def test_ping(client: httpx.Client) -> None:
    assert client.get("/ping").status_code == 200


def test_the_body_decides_what_kind_of_request_it_is(client: httpx.Client) -> None:
    cases = [
        ({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "seed": 1}, "/v1/chat/completions"),
        ({"prompt": "Hi", "max_tokens": 2, "seed": 1}, "/v1/completions"),
        ({"text": "Hi", "sampling_params": {"max_new_tokens": 2, "sampling_seed": 1}}, "/generate"),
        ({"input_ids": [3], "sampling_params": {"max_new_tokens": 2, "sampling_seed": 1}}, "/generate"),
    ]
    for body, like in cases:
        answer, expected = client.post("/invocations", json=body), client.post(like, json=body)
        assert answer.status_code == expected.status_code == 200
        assert answer.json().keys() == expected.json().keys()
        assert answer.json().get("object") == expected.json().get("object")
        streamed = client.post("/invocations", json={**body, "stream": True})
        assert streamed.headers["content-type"].startswith("text/event-stream")
        assert streamed.text.endswith("data: [DONE]\n\n")


def test_what_is_no_request_is_refused(client: httpx.Client) -> None:
    for body in [{}, {"model": "x"}, {"messages": 5}, []]:
        response = client.post("/invocations", json=body)
        assert response.status_code == 400
        assert response.json()["error"]["message"]
