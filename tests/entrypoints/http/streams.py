"""Reads event streams, and puts them together to what the whole answer should be."""

from __future__ import annotations

import json
from typing import Any

import httpx

TIMES = (
    *("e2e_latency", "request_received_ts", "request_finished_ts", "api_server_dispatch_finish_ts", "queue_time"),
    *("forward_entry_time", "first_token_latency", "prefill_finished_time", "decode_throughput"),
)
"""Members of ``meta_info`` that are different each time."""


def read_events(client: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream that ends as it should."""
    with client.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.read().decode()
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    assert blocks.pop() == "data: [DONE]"
    assert all(block.startswith("data: ") for block in blocks)
    return [json.loads(block[len("data: ") :]) for block in blocks]


def whole_answer(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


def assembled(path: str, body: dict[str, Any], events: list[dict[str, Any]]) -> Any:
    """What the events of a stream say together, in the shape of the whole answer."""
    if path == "/generate":
        return _assemble_native(body, events)
    return _assemble_openai(path, events)


def comparable(answer: Any) -> Any:
    """An answer without what differs from call to call."""
    if isinstance(answer, list):
        return [comparable(each) for each in answer]
    for choice in answer.get("choices", ()):
        for call in choice.get("message", {}).get("tool_calls") or ():
            call.pop("id")  # random
    answer = {
        key: value for key, value in answer.items() if key not in ("id", "created", "metadata", "prompt_token_ids")
    }
    if "meta_info" in answer:
        answer["meta_info"] = {k: v for k, v in answer["meta_info"].items() if k not in ("id", *TIMES)}
    return answer


def _assemble_native(body: dict[str, Any], events: list[dict[str, Any]]) -> Any:
    last: dict[int, dict[str, Any]] = {}
    for event in events:
        index = event.pop("index", 0)
        before = last.get(index)
        if before is not None:  # everything so far comes again with every event
            assert event["text"].startswith(before["text"])
            assert event["output_ids"][: len(before["output_ids"])] == before["output_ids"]
        last[index] = event
    single = len(last) == 1 and not isinstance(body.get("text"), list)
    answers = [last[index] for index in sorted(last)]
    return answers[0] if single else answers


def _assemble_openai(path: str, events: list[dict[str, Any]]) -> Any:
    usage = None
    if not events[-1]["choices"]:
        usage = events.pop()["usage"]
    assert len({event["id"] for event in events}) == 1
    choices: dict[int, dict[str, Any]] = {}
    for event in events:
        if usage is not None:
            assert event["usage"] is None
        (part,) = event["choices"]
        if path == "/v1/completions":
            _add_completion_part(choices, part)
        else:
            _add_chat_part(choices, part)
    kind = "text_completion" if path == "/v1/completions" else "chat.completion"
    answer = {
        "object": kind,
        "model": events[0]["model"],
        "choices": [choices[index] for index in sorted(choices)],
    }
    return answer | ({"usage": usage} if usage is not None else {})


def _add_completion_part(choices: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    choice = choices.get(part["index"])
    if choice is None:
        choices[part["index"]] = part
        return
    assert choice["finish_reason"] is None
    choice["text"] += part["text"]
    choice["finish_reason"], choice["matched_stop"] = part["finish_reason"], part["matched_stop"]
    if part["finish_reason"] is not None:
        choice["stop_reason"] = part["stop_reason"]
        assert part["stop_reason"] == part["matched_stop"]
    if part["logprobs"] is not None:
        for name, values in part["logprobs"].items():
            choice["logprobs"][name] += values
    if "token_ids" in part:
        choice["token_ids"] += part["token_ids"]


def _add_chat_part(choices: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    choice = choices.get(part["index"])
    delta = part["delta"]
    assert "reasoning_content" in delta
    if choice is None:
        assert delta == {"role": "assistant", "content": "", "reasoning_content": None, "refusal": None}
        message = {**delta, "reasoning": None, "tool_calls": None}
        choices[part["index"]] = {**{k: v for k, v in part.items() if k != "delta"}, "message": message}
        return
    assert choice["finish_reason"] is None
    message = choice["message"]
    message["content"] += delta.get("content", "")
    if delta["reasoning_content"] is not None:
        message["reasoning_content"] = (message["reasoning_content"] or "") + delta["reasoning_content"]
        message["reasoning"] = (message["reasoning"] or "") + delta["reasoning"]
    for call in delta.get("tool_calls", ()):
        _add_call_part(message, call)
    choice["finish_reason"], choice["matched_stop"] = part["finish_reason"], part["matched_stop"]
    if part["finish_reason"] is not None:
        choice["stop_reason"] = part["stop_reason"]
        assert part["stop_reason"] == part["matched_stop"]
    if part["logprobs"] is not None:
        if choice["logprobs"] is None:
            choice["logprobs"] = {"content": [], "refusal": None}
        choice["logprobs"]["content"] += part["logprobs"]["content"]
    if "token_ids" in part:
        choice["token_ids"] = choice.get("token_ids", []) + part["token_ids"]
        choice["response_token_ids"] = choice["token_ids"]


def _add_call_part(message: dict[str, Any], call: dict[str, Any]) -> None:
    calls = message["tool_calls"] = message["tool_calls"] or []
    if "id" in call:
        assert call["index"] == len(calls)
        calls.append(call)
    else:
        assert set(call) == {"index", "function"}
        calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
