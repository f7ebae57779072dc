"""A stream, put together, is the whole answer: text, ids, logprobs, usage, finish reason; on every route."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.entrypoints.http.server import RunningServer
from tests.entrypoints.http.streams import assembled, comparable, read_events, whole_answer

MESSAGES = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello, wörld 🌳"}]
USAGE = {"stream_options": {"include_usage": True}}

SAMPLING_VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"max": 40},
    "one token": {"max": 1},
    "no token": {"max": 0},
    "stop string across tokens": {"max": 200, "stop": ["was a small tree", "small wood"]},
    "stop kept": {"max": 200, "stop": ["quotes"], "no_stop_trim": True},
    "stop regex": {"max": 200, "stop_regex": "s[a-z]+l"},
    "stop token": {"max": 200, "stop_token_ids": [258]},
    "eos": {"max": 400},
    "past eos, specials shown": {"max": 300, "ignore_eos": True, "skip_special_tokens": False},
    "three samples": {"max": 30, "n": 3, "seed": 5},
}


def native(variant: dict[str, Any]) -> dict[str, Any]:
    params = {"sampling_seed": 0, **variant}
    params["max_new_tokens"] = params.pop("max")
    params["sampling_seed"] = params.pop("seed", 0)
    return {"text": "Hello", "sampling_params": params}


def openai(variant: dict[str, Any], **prompt: Any) -> dict[str, Any]:
    fields = {"seed": 0, **variant}
    fields["max_tokens"] = fields.pop("max")
    return {**prompt, **fields}


def check(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    whole_body = {key: value for key, value in body.items() if key != "stream_options"}
    whole = whole_answer(client, path, whole_body)
    streamed = assembled(path, body, read_events(client, path, body))
    assert comparable(streamed) == comparable(whole)
    return whole


@pytest.mark.parametrize("variant", SAMPLING_VARIANTS.values(), ids=SAMPLING_VARIANTS.keys())
class TestEverySamplingVariant:
    def test_generate(self, client: httpx.Client, variant: dict[str, Any]) -> None:
        check(client, "/generate", native(variant))

    def test_generate_with_logprobs(self, client: httpx.Client, variant: dict[str, Any]) -> None:
        wanted = {
            "return_logprob": True,
            "logprob_start_len": 1,
            "top_logprobs_num": 2,
            "token_ids_logprob": [3, 1],
            "return_text_in_logprobs": True,
            "return_prompt_token_ids": True,
        }
        check(client, "/generate", native(variant) | wanted)

    def test_completions(self, client: httpx.Client, variant: dict[str, Any]) -> None:
        check(client, "/v1/completions", openai(variant, prompt="Hello") | USAGE)

    def test_completions_with_echo_and_logprobs(self, client: httpx.Client, variant: dict[str, Any]) -> None:
        check(client, "/v1/completions", openai(variant, prompt="Hällo", echo=True, logprobs=2) | USAGE)

    def test_chat(self, client: httpx.Client, variant: dict[str, Any]) -> None:
        check(client, "/v1/chat/completions", openai(variant, messages=MESSAGES) | USAGE)

    def test_chat_with_logprobs(self, client: httpx.Client, variant: dict[str, Any]) -> None:
        body = openai(variant, messages=MESSAGES, logprobs=True, top_logprobs=3) | USAGE
        whole = check(client, "/v1/chat/completions", body)
        for choice in whole["choices"]:
            for entry in choice["logprobs"]["content"]:
                first = entry["top_logprobs"][0]
                assert first["logprob"] == entry["logprob"], "alternatives belong to their token"


def test_batch_of_prompts(client: httpx.Client) -> None:
    params = {"max_new_tokens": 12, "sampling_seed": 1, "n": 2}
    whole = check(client, "/generate", {"text": ["a", "bb", "ccc"], "sampling_params": params})
    assert len(whole) == 6
    whole = check(
        client, "/v1/completions", {"prompt": ["a", "bb", "ccc"], "n": 2, "seed": 1, "max_tokens": 12} | USAGE
    )
    assert [choice["index"] for choice in whole["choices"]] == list(range(6))


def test_batch_of_one_is_a_list(client: httpx.Client) -> None:
    whole = check(client, "/generate", {"text": ["a"], "sampling_params": {"max_new_tokens": 3}})
    assert isinstance(whole, list)


def test_chat_bytes_of_all_tokens_make_the_text(client: httpx.Client) -> None:
    body = {"messages": MESSAGES, "logprobs": True, "max_tokens": 400, "seed": 3}
    (choice,) = whole_answer(client, "/v1/chat/completions", body)["choices"]
    spelled = b"".join(bytes(entry["bytes"]) for entry in choice["logprobs"]["content"])
    assert choice["finish_reason"] == "stop"
    assert spelled.decode() == choice["message"]["content"]


def test_continuous_usage_grows_to_the_total(client: httpx.Client) -> None:
    options = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    events = read_events(client, "/v1/completions", {"prompt": "Hi", "max_tokens": 9} | options)
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == counts[-2] == 9
    assert events[-1]["choices"] == []


def test_usage_is_absent_unless_asked_for(client: httpx.Client) -> None:
    events = read_events(client, "/v1/completions", {"prompt": "Hi", "max_tokens": 3})
    assert all("usage" not in event for event in events)


def test_text_offsets_point_into_the_text(client: httpx.Client) -> None:
    body = {"prompt": "Hällo", "echo": True, "logprobs": 1, "max_tokens": 60}
    (choice,) = whole_answer(client, "/v1/completions", body)["choices"]
    text, logprobs = choice["text"], choice["logprobs"]
    assert logprobs["token_logprobs"][0] is None
    whole_characters = [
        (offset, token)
        for offset, token in zip(logprobs["text_offset"], logprobs["tokens"])
        if not token.startswith("bytes:")
    ]
    assert len(whole_characters) > 20
    for offset, token in whole_characters:
        assert text[offset : offset + len(token)] == token


def test_slow_reader_gets_the_same(server: RunningServer, client: httpx.Client) -> None:
    """Deltas that pile up while nobody reads are merged, and nothing is lost."""
    body = {"text": "Hello", "sampling_params": {"max_new_tokens": 300, "sampling_seed": 2}, "return_logprob": True}
    whole = whole_answer(client, "/generate", body)
    manager = server.manager

    async def read_late() -> list[Any]:
        import asyncio

        from bough.managers.io_struct import GenerateReqInput

        results = []
        async for result in manager.generate_request(GenerateReqInput(**body, stream=True)):
            results.append(result)
            await asyncio.sleep(0.02)
        return results

    results = server.call(read_late())
    assert len(results) < 200
    final = dict(results[-1])
    final["meta_info"]["output_token_logprobs"] = [list(x) for x in final["meta_info"]["output_token_logprobs"]]
    assert comparable(final) == comparable(whole)
