"""Ollama's routes, with the unmodified Ollama client and without."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import ollama
import pytest

from bough.config.model_config import STORED_AS
from bough.config.stored_quantization import StoredQuantization
from bough.entrypoints.http.ollama.models import parameter_size, quantization_level, weight_files
from bough.entrypoints.http.ollama.render import OllamaWriter
from bough.entrypoints.http.openai.fill_in_middle import GapFormat, find_gap_format
from bough.parsers.base import Content, ToolCallArguments, ToolCallStart
from tests.entrypoints.http.server import MODEL_NAME, RunningServer, running_server
from tests.entrypoints.http.test_openai_client import prompt_of
from tests.entrypoints.http.test_tools_and_reasoning import ANSWERS, CALLS, CLOCK, THOUGHTS, WEATHER
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer

USER = {"role": "user", "content": "Hi"}
MEASURED = ("created_at", "total_duration", "prompt_eval_duration", "eval_duration")


@pytest.fixture
def api(thinker: RunningServer) -> ollama.Client:
    return ollama.Client(host=thinker.url)


def read_lines(http: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    with http.stream("POST", path, json={**body, "stream": True}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) for line in response.iter_lines()]


def assembled(lines: list[dict[str, Any]]) -> dict[str, Any]:
    *others, last = lines
    assert last["done"]
    logprobs: list[Any] = []
    whole = dict(last)
    if "message" in last:
        whole["message"] = {"role": "assistant", "content": ""}
    for line in lines:
        assert line["done"] == (line is last)
        if "message" in line:
            assert line["message"]["role"] == "assistant"
            _extend(whole["message"], line["message"], "content")
        elif line is not last:
            _extend(whole, line, "response")
        logprobs += line.get("logprobs", ())
    assert not others or not last.get("response")
    return {**whole, "logprobs": logprobs} if logprobs else whole


def _extend(whole: dict[str, Any], piece: dict[str, Any], text: str) -> None:
    whole[text] += piece[text]
    if "thinking" in piece:
        whole["thinking"] = whole.get("thinking", "") + piece["thinking"]
    if "tool_calls" in piece:
        whole["tool_calls"] = whole.get("tool_calls", []) + piece["tool_calls"]


def comparable(answer: dict[str, Any]) -> dict[str, Any]:
    for name in MEASURED:
        assert answer.pop(name) is not None
    for call in answer.get("message", {}).get("tool_calls", ()):
        assert call.pop("id")
    return answer


@pytest.mark.parametrize("says", ANSWERS.values(), ids=ANSWERS.keys())
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": [WEATHER, CLOCK]},
        {"options": {"num_predict": 20, "seed": 7}},
        {"logprobs": True, "top_logprobs": 2},
    ],
    ids=["plain", "tools", "cut off", "logprobs"],
)
def test_stream_equals_whole(http: httpx.Client, thinker: RunningServer, says: str, fields: dict[str, Any]) -> None:
    thinker.engine.says = says
    body = {"model": "m", "messages": [USER], **fields}
    whole = http.post("/api/chat", json={**body, "stream": False}).json()
    assert comparable(assembled(read_lines(http, "/api/chat", body))) == comparable(dict(whole))
    assert whole["done_reason"] == ("length" if "options" in fields and whole["eval_count"] == 20 else "stop")
    if "tools" not in fields:
        body = {"model": "m", "prompt": "Hi", **fields}
        whole = http.post("/api/generate", json={**body, "stream": False}).json()
        assert comparable(assembled(read_lines(http, "/api/generate", body))) == comparable(whole)


def test_arguments_are_always_an_object() -> None:
    cases = [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        *((each, {"_unparsed": each}) for each in ("[1]", '"a"', "5", "null", '{"a": ')),
    ]
    for text, shown in cases:
        writer = OllamaWriter("m", is_chat=True, names=None, top_logprobs=0, skip_special_tokens=True, started=0.0)
        events = [ToolCallStart(0, "c", "f"), ToolCallArguments(0, text), Content("!")]
        delta: Any = SimpleNamespace(events=events)
        first, _ = map(json.loads, writer.plain_lines(delta).splitlines())
        [call] = first["message"]["tool_calls"]
        assert call["function"]["arguments"] == shown


def test_durations_are_never_negative() -> None:
    writer = OllamaWriter("m", is_chat=True, names=None, top_logprobs=0, skip_special_tokens=True, started=1.0)
    output = SimpleNamespace(finish_reason=None, prompt_tokens=3, completion_tokens=1)
    state = SimpleNamespace(created_time=1.0, first_token_time=2.25, finished_time=2.0)
    end = json.loads(b"{" + writer._end(cast(Any, SimpleNamespace(state=state, output=output))))
    assert (end["prompt_eval_duration"], end["eval_duration"], end["total_duration"]) == (10**9, 0, 10**9)


class TestClient:
    def test_chat_with_tools(self, api: ollama.Client, thinker: RunningServer) -> None:
        thinker.engine.says = THOUGHTS + CALLS
        messages: list[Any] = [USER]
        answer = api.chat(model="m", messages=messages, tools=[WEATHER, CLOCK], think=True)
        assert answer.message.thinking
        assert answer.message.tool_calls
        assert answer.message.tool_calls[0].function.name == "weather"
        assert answer.message.tool_calls[0].function.arguments["city"] == "Zürich"
        messages += [answer.message, {"role": "tool", "tool_name": "weather", "content": "sunny"}]
        thinker.engine.says = "Sunny."
        assert api.chat(model="m", messages=messages, tools=[WEATHER, CLOCK]).message.content == "Sunny."
        assert "<tool_response>\nsunny\n</tool_response>" in prompt_of(thinker)

    def test_stream(self, api: ollama.Client, thinker: RunningServer) -> None:
        thinker.engine.says = "It is nine."
        parts = list(api.chat(model="m", messages=[USER], stream=True))
        assert "".join(part.message.content or "" for part in parts) == "It is nine."
        assert parts[-1].done_reason == "stop"
        parts = list(api.generate(model="m", prompt="Hi", system="Be kind.", stream=True))  # type: ignore[assignment]
        assert "".join(part.response for part in parts) == "It is nine."  # type: ignore[attr-defined]
        assert prompt_of(thinker).startswith("<|im_start|>system\nBe kind.")

    def test_models(self, api: ollama.Client, http: httpx.Client) -> None:
        (model,) = api.list().models
        assert model.model == MODEL_NAME
        assert model.details is not None
        assert model.details.family == "qwen3"
        shown = api.show(MODEL_NAME)
        assert shown.modelinfo is not None
        assert shown.modelinfo["qwen3.context_length"] == 4096
        assert set(shown.capabilities or ()) == {"completion", "tools", "thinking"}
        assert [each.model for each in api.ps().models] == [MODEL_NAME]
        version = http.get("/api/version").json()["version"]
        assert [int(part) for part in version.split(".")] >= [0, 6, 4], "what clients ask for"

    def test_errors(self, api: ollama.Client, thinker: RunningServer) -> None:
        with pytest.raises(ollama.ResponseError, match=r"options\.temperature") as bad:
            api.chat(model="m", messages=[USER], options={"temperature": -1})
        assert bad.value.status_code == 400
        thinker.engine.fail_after = 3
        with pytest.raises(ollama.ResponseError, match="out of luck"):
            list(api.chat(model="m", messages=[USER], stream=True))


def test_options_reach_the_engine(http: httpx.Client, thinker: RunningServer) -> None:
    options = {
        "temperature": 0.5, "top_p": 0.9, "top_k": 0, "min_p": 0.1, "seed": 7, "stop": ["x"], "num_predict": 9,
        "repeat_penalty": 1.1, "presence_penalty": 0.2, "frequency_penalty": 0.3, "num_ctx": 8192, "mirostat": 0,
    }  # fmt: skip
    body = {"model": "m", "messages": [USER], "options": options, "stream": False, "keep_alive": "5m"}
    assert http.post("/api/chat", json=body).status_code == 200
    params = thinker.engine.received[-1].sampling_params
    assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.5, 0.9, -1, 0.1)
    assert (params.sampling_seed, params.stop, params.max_new_tokens) == (7, ("x",), 9)
    assert (params.repetition_penalty, params.presence_penalty, params.frequency_penalty) == (1.1, 0.2, 0.3)


def test_a_format_constrains_the_answer(http: httpx.Client, thinker: RunningServer) -> None:
    for format_ in ["json", {"type": "object", "properties": {"a": {"type": "integer"}}}]:
        body = {"model": "m", "messages": [USER], "format": format_, "stream": False, "think": False}
        assert http.post("/api/chat", json=body).status_code == 200
        tag = json.loads(thinker.engine.received[-1].sampling_params.structural_tag or "")
        schema = {"type": "object"} if format_ == "json" else format_
        assert {"type": "json_schema", "json_schema": schema} in tag["format"]["elements"]


def test_a_raw_prompt_is_taken_as_it_is(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says = THOUGHTS
    body = {"model": "m", "prompt": "Once upon", "raw": True, "stream": False}
    assert http.post("/api/generate", json=body).json()["response"] == THOUGHTS
    assert prompt_of(thinker) == "Once upon"


def test_a_request_that_says_nothing_finds_the_model_loaded(http: httpx.Client) -> None:
    assert http.post("/api/generate", json={"model": "m"}).json()["done_reason"] == "load"
    assert http.post("/api/chat", json={"model": "m", "messages": [], "stream": False}).json()["done_reason"] == "load"


def test_durations_are_measured(http: httpx.Client, thinker: RunningServer) -> None:
    thinker.engine.says, thinker.engine.token_delay = "It is nine.", 0.01
    start = time.monotonic()
    answer = http.post("/api/chat", json={"model": "m", "messages": [USER], "stream": False}).json()
    elapsed = (time.monotonic() - start) * 1e9
    assert (
        answer["eval_count"] * 0.01 * 1e9 * 0.9 <= answer["eval_duration"] + answer["prompt_eval_duration"] <= elapsed
    )
    assert answer["total_duration"] <= elapsed


EVERY_OPTION = {
    "num_keep": 5, "seed": 42, "num_predict": 2, "top_k": 20, "top_p": 0.9, "min_p": 0.0, "typical_p": 0.7,
    "repeat_last_n": 33, "temperature": 0.8, "repeat_penalty": 1.2, "presence_penalty": 1.5, "frequency_penalty": 1.0,
    "penalize_newline": True, "stop": ["\n", "user:"], "numa": False, "num_ctx": 1024, "num_batch": 2, "num_gpu": 1,
    "main_gpu": 0, "use_mmap": True, "num_thread": 8, "mirostat": 1, "mirostat_tau": 0.8, "mirostat_eta": 0.6,
    "tfs_z": 0.5, "low_vram": False, "f16_kv": True, "vocab_only": False, "use_mlock": False, "logits_all": False,
}  # fmt: skip


def test_options_that_do_not_work_are_ignored_and_named(http: httpx.Client) -> None:
    cases = [
        (EVERY_OPTION, {"typical_p", "mirostat", "mirostat_tau", "mirostat_eta", "tfs_z"}),
        ({"rope_frequency_base": 10000, "num_gqa": 1, "draft_num_predict": 4}, None),
        ({"mirostat": False, "warmth": "high", "a b": []}, {"mirostat", "warmth", "ab"}),
        (dict.fromkeys(EVERY_OPTION), set()),
        ({"mirostat": 0, "tfs_z": 1.0, "typical_p": 1, "penalize_newline": True, "repeat_last_n": 64}, set()),
        ({f"option_{number}": 1 for number in range(5000)}, {f"option_{number}" for number in range(16)}),
        ({"x" * 100_000: 1}, {"x" * 56}),
    ]
    for options, ignored in cases:
        for path in ["/api/chat", "/api/generate"]:
            prompt: dict[str, Any] = {"messages": [USER]} if path == "/api/chat" else {"prompt": "Hi"}
            answer = http.post(
                path, json={"model": "m", "stream": False, "options": {"num_predict": 2, **options}, **prompt}
            )
            assert answer.status_code == 200, answer.text
            named = answer.headers.get("x-bough-ignored-fields", "")
            expected = set(options) if ignored is None else ignored
            assert set(named.split(", ")) - {""} == {f"options.{name}" for name in expected}


def test_values_of_options_may_have_loose_types(http: httpx.Client, thinker: RunningServer) -> None:
    cases = [
        ({"num_predict": -1}, {"max_new_tokens": None}),
        ({"num_predict": -2}, {"max_new_tokens": None}),
        ({"num_predict": -7.0}, {"max_new_tokens": None}),
        ({"num_predict": 2.5}, {"max_new_tokens": 2}),
        ({"num_predict": 1e30}, {}),
        ({"top_k": 40.7}, {"top_k": 40}),
        ({"top_k": 0}, {"top_k": -1}),
        ({"top_k": -5}, {"top_k": -1}),
        ({"top_k": 10**20}, {}),
        ({"repeat_last_n": 33.0}, {"repetition_window": 33}),
        ({"repeat_last_n": 0}, {"repetition_window": 0}),
        ({"repeat_last_n": -1}, {"repetition_window": -1}),
        ({"repeat_last_n": 10**6}, {"repetition_window": 8191}),
        ({}, {"repetition_window": 64}),
        ({"seed": 7.0}, {"sampling_seed": 7}),
        ({"seed": -1}, {"sampling_seed": None}),
        ({"seed": -2}, {"sampling_seed": -2}),
        ({"seed": 10**20}, {"sampling_seed": 2**63 - 1}),
        ({"temperature": 1}, {"temperature": 1.0}),
        ({"top_p": 0}, {"top_p": 0.0}),
        ({"stop": "x"}, {"stop": ("x",)}),
        ({"stop": []}, {"stop": ()}),
        ({}, {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}),
    ]
    for options, engine in cases:
        thinker.engine.says = "Hm."
        answer = http.post("/api/chat", json={"model": "m", "stream": False, "options": options, "messages": [USER]})
        assert answer.status_code == 200, answer.text
        params = thinker.engine.received[-1].sampling_params
        limit = thinker.context_len
        for name, value in engine.items():
            given = getattr(params, name)
            assert given == value or (name == "max_new_tokens" and value is None and given > limit // 2)


def test_forms_of_fields(http: httpx.Client) -> None:
    cases = [
        ("/api/chat", {"messages": [{"role": "user"}], "think": True, "format": "", "keep_alive": "5m"}),
        ("/api/chat", {"messages": [{**USER, "images": []}], "think": "max", "keep_alive": -1, "tools": []}),
        ("/api/chat", {"messages": [{**USER, "images": None, "newer": 1}], "keep_alive": 0, "format": None}),
        ("/api/chat", {"messages": [{"role": "tool", "tool_name": "f"}], "truncate": True, "shift": True}),
        (
            "/api/chat",
            {"messages": [{"role": "assistant", "content": None, "tool_calls": None, "thinking": None}, USER]},
        ),
        ("/api/generate", {"prompt": "Hi", "suffix": "", "system": "", "template": "", "context": [], "raw": False}),
        ("/api/generate", {"prompt": "Hi", "images": [], "keep_alive": "-1s", "think": "low", "format": "json"}),
        ("/api/generate", {"prompt": "Hi", "images": None, "context": None, "template": None, "options": None}),
    ]
    for path, fields in cases:
        answer = http.post(path, json={"model": "m", "stream": False, "options": {"num_predict": 2}, **fields})
        assert answer.status_code == 200, answer.text
        assert answer.json()["done"] is True


def test_options_are_checked_where_fields_are(tmp_path: Path) -> None:
    with running_server(tmp_path, strict_fields=True) as server, httpx.Client(base_url=server.url) as strict:
        for name, value in {"warmth": 2, "num_gqa": 1, "mirostat": 2, "tfs_z": 0.5}.items():
            body = {"model": "m", "messages": [USER], "options": {name: value}}
            refused = strict.post("/api/chat", json=body)
            assert (refused.status_code, f"options.{name}" in refused.json()["error"]) == (400, True)


def test_bad_requests_are_refused_by_name(http: httpx.Client) -> None:
    cases = [
        ({"options": {"top_k": False}}, "options.top_k"),
        ({"options": {"top_k": "40"}}, "options.top_k"),
        ({"options": {"num_predict": True}}, "options.num_predict"),
        ({"options": {"seed": "x"}, "messages": []}, "options.seed"),
        ({"options": {"temperature": "hot"}}, "options.temperature"),
        ({"options": {"stop": [1]}}, "options.stop"),
        ({"options": []}, "options"),
        ({"format": "xml"}, "format"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"messages": [{**USER, "images": ["a"]}]}, "messages[0].images: this model reads text only"),
        ({"tools": [{"type": "function"}]}, "tools[0].function"),
        ({"think": "much"}, "think must be one of low, medium, high, max, got"),
    ]
    for fields, param in cases:
        response = http.post("/api/chat", json={"model": "m", "messages": [USER], **fields})
        assert response.status_code == 400, response.text
        assert param in response.json()["error"]


def test_gaps_are_filled_by_models_that_have_the_tokens(http: httpx.Client, tmp_path: Path) -> None:
    refused = http.post("/v1/completions", json={"prompt": "a", "suffix": "b"})
    assert refused.json()["error"]["param"] == "suffix"
    assert http.post("/api/generate", json={"model": "m", "prompt": "a", "suffix": "b"}).status_code == 400
    tokens = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
    with running_server(tmp_path, more_specials=tokens) as server, httpx.Client(base_url=server.url) as coder:
        answer = coder.post("/v1/completions", json={"prompt": "def f():", "suffix": "return x", "max_tokens": 2})
        assert answer.status_code == 200
        gap = "<|fim_prefix|>def f():<|fim_suffix|>return x<|fim_middle|>"
        assert prompt_of(server) == gap
        many = coder.post("/v1/completions", json={"prompt": ["def f():"] * 2000, "suffix": "x" * 20_000})
        assert (many.status_code, many.json()["error"]["param"]) == (413, "prompt")
        body = {"model": "m", "prompt": "def f():", "suffix": "return x", "stream": False}
        assert coder.post("/api/generate", json=body).status_code == 200
        assert prompt_of(server) == gap
        assert "insert" in coder.post("/api/show", json={"model": "m"}).json()["capabilities"]


def test_the_order_of_a_gap_is_that_of_the_model() -> None:
    assert find_gap_format(tiny_tokenizer()) is None
    format_ = GapFormat("[PREFIX]", "[SUFFIX]", "", suffix_first=True)
    assert format_.prompt("a", "b") == "[SUFFIX]b[PREFIX]a"


def test_a_model_that_generates_makes_no_embeddings(api: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="makes no embeddings"):
        api.embed(model=MODEL_NAME, input="Hi")


def test_quantization_is_shown(tmp_path: Path) -> None:
    with running_server(tmp_path, quantization="int8") as server:
        (model,) = ollama.Client(host=server.url).list().models
        assert model.details is not None
        assert model.details.quantization_level == "int8"


def test_a_model_is_shown_by_either_name_or_both(http: httpx.Client) -> None:
    for named in [{"model": "m", "name": ""}, {"model": "", "name": "m"}, {"name": "m"}, {"model": "m"}]:
        """Clients in Go send all of their fields."""
        fields = {"system": "", "template": "", "verbose": False, "options": None}
        answer = http.post("/api/show", json={**fields, **named})
        assert answer.status_code == 200, answer.text
        assert answer.json()["details"]["family"] == "qwen3"


def test_the_number_of_parameters_is_shown(tmp_path: Path) -> None:
    known = [parameter_size(number) for number in (0, 900, 12_345, 6_795_008, 494_032_768, 7_615_616_512, 70 * 10**9)]
    assert known == ["", "900", "12K", "6.80M", "494.03M", "7.6B", "70.0B"]
    with running_server(tmp_path) as server:
        assert server.manager.scheduler_info.get("num_parameters") is None
        client = ollama.Client(host=server.url)
        (model,) = client.list().models
        assert model.details is not None
        assert model.details.parameter_size == ""


def test_a_split_file_is_as_large_as_all_its_parts(tmp_path: Path) -> None:
    for name in ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf", "m-00003-of-00003.gguf", "n.gguf"):
        (tmp_path / name).touch()
    parts = weight_files(tmp_path / "m-00001-of-00002.gguf")
    assert sorted(file.name for file in parts) == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert list(weight_files(tmp_path / "n.gguf")) == [tmp_path / "n.gguf"]


def test_the_level_of_quantization_is_that_of_the_weights(server: RunningServer) -> None:
    config = server.model_config
    assert quantization_level(config, "none") == "float32"
    stored = dataclasses.replace(config, stored_quantization=StoredQuantization("gptq", 4, 128))
    assert quantization_level(stored, "none") == "gptq-int4"
    file = dataclasses.replace(config, hf_config={**config.hf_config, STORED_AS: "Q4_K_M"})
    assert quantization_level(file, "none") == "Q4_K_M"
    assert quantization_level(file, "int8") == "int8"
