"""What SGLang adds to OpenAI's answers, if it is asked for."""

from __future__ import annotations

import json
from typing import Any

import httpx

BODIES: dict[str, dict[str, Any]] = {
    "/v1/completions": {"prompt": "Once upon a time", "max_tokens": 3},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi there"}], "max_tokens": 3},
}


def events_of(client: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    with client.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.status_code == 200
        return [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: {")]


def test_cached_tokens_are_told_whole_and_streamed(client: httpx.Client) -> None:
    for path in BODIES:
        for n in [1, 3]:
            body = {**BODIES[path], "n": n, "return_cached_tokens_details": True}
            answer = client.post(path, json=body).json()
            details = answer["sglext"]["cached_tokens_details"]
            expected = [{"device": answer["usage"]["prompt_tokens"] // 2 + sample, "host": 0} for sample in range(n)]
            assert details == (expected[0] if n == 1 else expected)
            events = events_of(client, path, {**body, "stream_options": {"include_usage": True}})
            (told,) = [event for event in events if "sglext" in event]
            assert told["choices"] == []
            assert told["sglext"] == answer["sglext"]
            assert events[-1]["usage"] == answer["usage"]
            assert "sglext" not in client.post(path, json=BODIES[path]).json()


def test_native_meta_info_of_every_choice(client: httpx.Client) -> None:
    for path in BODIES:
        answer = client.post(path, json={**BODIES[path], "n": 2, "return_meta_info": True}).json()
        for choice in answer["choices"]:
            info = choice["meta_info"]
            assert info["finish_reason"]["type"] == choice["finish_reason"]
            assert info["completion_tokens"] == 3
            assert info["prompt_tokens"] == answer["usage"]["prompt_tokens"]
            assert info["e2e_latency"] > 0
        refused = client.post(path, json={**BODIES[path], "stream": True, "return_meta_info": True})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "return_meta_info"
