"""Every answer says which request it answers, in the client's words if it has any."""

from __future__ import annotations

import httpx

COMPLETION = {"prompt": "Hi", "max_tokens": 2}


def test_the_id_of_a_request_comes_back(client: httpx.Client) -> None:
    cases = [
        ("POST", "/v1/completions", COMPLETION, 200),
        ("POST", "/v1/completions", {**COMPLETION, "stream": True}, 200),
        ("POST", "/v1/completions", {"nonsense": 1}, 400),
        ("GET", "/v1/models", None, 200),
        ("GET", "/v1/models/none", None, 404),
        ("GET", "/nothing/here", None, 404),
        ("DELETE", "/v1/completions", None, 405),
        ("GET", "/health", None, 200),
    ]
    for method, path, body, status in cases:
        answer = client.request(method, path, json=body, headers={"X-Request-Id": "mine-1"})
        assert answer.status_code == status
        assert answer.headers["x-request-id"] == "mine-1"
        made = client.request(method, path, json=body).headers["x-request-id"]
        assert len(made) == 32
        assert made != client.request(method, path, json=body).headers["x-request-id"]


def test_what_cannot_be_an_id_is_replaced(client: httpx.Client) -> None:
    for given in [b"", b"a b", b"\xff", b"x" * 129, b"a\tb"]:
        answer = client.get("/v1/models", headers={b"x-request-id": given})
        assert len(answer.headers["x-request-id"]) == 32


def test_one_id_may_be_used_again(client: httpx.Client) -> None:
    """It is the client's name for a call; what it generates has an id of its own."""
    ids = {
        client.post("/v1/completions", json=COMPLETION, headers={"x-request-id": "again"}).json()["id"]
        for _ in range(3)
    }
    assert len(ids) == 3
