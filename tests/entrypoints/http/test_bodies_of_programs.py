"""Bodies of chat completions as programs send them to servers of all kinds: what passes, and what rightly does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.openai.protocol import CHAT, COMPLETIONS
from bough.errors import BadRequest
from tests.entrypoints.http.server import RunningServer

PATH = "/v1/chat/completions"
USER = {"role": "user", "content": "How tall does an oak grow?"}
SYSTEM = {"role": "system", "content": "Be brief."}
PARTS = {"role": "user", "content": [{"type": "text", "text": "How tall?", "cache_control": {"type": "ephemeral"}}]}
SCHEMA = {"type": "object", "properties": {"h": {"type": "integer"}}, "required": ["h"], "additionalProperties": False}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"city": {"type": "string", "description": "Its name"}, "unit": {"enum": ["c", "f"]}},
            "required": ["city"],
        },
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Bern"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "7"}
AGAIN = [USER, CALLED, RESULT]
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}

PASS: dict[str, dict[str, Any]] = {
    "OpenAI's client, all defaults": {"messages": [USER], "frequency_penalty": 0, "n": 1, "store": None, "user": ""},
    "GPT-5's wish about length": {"messages": [USER], "verbosity": "low", "reasoning_effort": "minimal"},
    "tools described by PHP, Gemini's and Python's programs": {
        "messages": [USER],
        "tools": [
            {"type": "function", "function": {"name": f"f{index}", "parameters": parameters}}
            for index, parameters in enumerate(
                (
                    [],
                    {"type": "object", "properties": []},
                    {"type": "OBJECT", "properties": {"city": {"type": "STRING", "enum": None}}, "required": None},
                    {"type": ["object", "null"], "properties": {"days": {"type": "int"}, "more": None}},
                )
            )
        ],
        "tool_choice": "required",
    },
    "Cline": {"messages": [SYSTEM, PARTS], "stream": True, "stream_options": {"include_usage": True}},
    "Roo Code, after a call": {
        "messages": [{**SYSTEM, "cache_control": {"type": "ephemeral"}}, *AGAIN],
        "tools": [{**WEATHER, "function": {**WEATHER["function"], "strict": True}}],  # type: ignore[dict-item]
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "stream": True,
    },
    "Continue": {"messages": [USER], "stop": ["<|im_end|>", "\n\n\n"], "stream": True, "max_tokens": 4096},
    "Copilot": {
        "messages": [
            USER,
            {"role": "assistant", "content": "b", "reasoning_text": "hm", "copilot_cache_control": {}},
            USER,
        ],
        "intent": True,
        "n": 1,
        "stream": True,
        "thinking_budget": 4000,
        "copilot_thread_id": "x",
        "snippy": {"enabled": False},
    },
    "Cursor": {"messages": [USER], "user": "google-oauth2|1", "stream": True, "tools": [], "tool_choice": "auto"},
    "Cursor with tools as Responses and Messages have them": {
        "messages": [USER],
        "tools": [
            {"type": "function", **WEATHER["function"], "strict": False},  # type: ignore[dict-item]
            {"name": "read", "description": "", "input_schema": {"type": "object", "properties": {}}},
        ],
        "tool_choice": {"type": "function", "name": "read"},
    },
    "Open WebUI": {
        "messages": [USER],
        "stream": True,
        "chat_id": "c",
        "id": "m",
        "session_id": "s",
        "features": {"web_search": False},
        "variables": {"{{USER_NAME}}": "a"},
        "background_tasks": {"title_generation": True},
        "model_item": {"id": "sapling"},
        "params": {},
        "tool_ids": None,
        "files": None,
        "filter_ids": [],
    },
    "LibreChat": {
        "messages": [USER],
        "top_p": 1,
        "presence_penalty": 0,
        "stop": [],
        "user": "66",
        "promptPrefix": None,
        "include_reasoning": True,
    },
    "SillyTavern": {
        "messages": [USER],
        "temperature": 1,
        "max_tokens": 300,
        "stop": [],
        "top_k": 0,
        "top_a": 0,
        "min_p": 0,
        "typical_p": 1,
        "tfs": 1,
        "epsilon_cutoff": 0,
        "eta_cutoff": 0,
        "repetition_penalty": 1,
        "rep_pen": 1,
        "rep_pen_range": 0,
        "no_repeat_ngram_size": 0,
        "penalty_alpha": 0,
        "smoothing_factor": 0,
        "dynamic_temperature": False,
        "mirostat_mode": 0,
        "mirostat_tau": 5,
        "xtc_probability": 0,
        "xtc_threshold": 0.1,
        "dry_multiplier": 0,
        "dry_sequence_breakers": ["\n"],
        "sampler_order": [6, 0],
        "add_bos_token": True,
        "ban_eos_token": False,
        "skip_special_tokens": True,
        "grammar_string": "",
        "negative_prompt": "",
        "guidance_scale": 1,
        "custom_token_bans": "",
        "truncation_length": 4096,
        "logit_bias": {},
        "use_default_badwordsids": False,
        "legacy_api": False,
    },
    "llama.cpp's page": {
        "messages": [USER],
        "cache_prompt": True,
        "reasoning_format": "auto",
        "samplers": "edkypmxt",
        "dynatemp_range": 0,
        "dynatemp_exponent": 1,
        "top_k": 40,
        "top_p": 0.95,
        "typical_p": 1,
        "repeat_last_n": 64,
        "repeat_penalty": 1,
        "max_tokens": -1,
        "timings_per_token": True,
        "return_progress": True,
    },
    "llama.cpp's completion fields": {
        "messages": [USER],
        "n_predict": 8,
        "id_slot": -1,
        "n_keep": 0,
        "mirostat": 0,
        "grammar": 'root ::= "a" | "b"',
        "n_probs": 0,
        "min_keep": 0,
        "json_schema": None,
    },
    "LM Studio": {"messages": [USER], "max_tokens": -1, "stream": False, "ttl": 300, "draft_model": "x"},
    "text-generation-webui": {"messages": [USER], "mode": "instruct", "character": "a", "instruction_template": "b"},
    "KoboldCpp": {"messages": [USER], "max_length": 80, "stop_sequence": ["a"], "sampler_seed": -1, "top_a": 0},
    "Jan": {"messages": [USER], "ctx_len": 2048, "cpu_threads": 4, "engine": "llama-cpp", "stream": True, "top_p": 0},
    "AnythingLLM": {"messages": [USER], "temperature": 0.7, "stream": True, "stream_options": {"include_usage": True}},
    "Dify": {"messages": [USER], "stream": True, "stop": [], "user": "abc", "response_format": {"type": "text"}},
    "n8n's AI agent": {
        "messages": [SYSTEM, *AGAIN],
        "tools": [WEATHER],
        "stream": False,
        "stream_options": {},
        "frequency_penalty": 0,
    },
    "Flowise": {"messages": [USER], "stream_options": {"include_usage": True}, "stream": False},
    "LangChain": {
        "messages": [
            {"role": "user", "content": "a", "name": None, "additional_kwargs": {}},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{**CALL, "index": 0}],
                "type": "ai",
                "invalid_tool_calls": [],
            },
            {**RESULT, "status": "success", "artifact": None},
        ],
        "tools": [WEATHER],
        "parallel_tool_calls": None,
    },
    "LlamaIndex": {"messages": [USER, {**CALLED, "content": ""}, RESULT], "tools": [WEATHER], "logprobs": None},
    "LiteLLM": {
        "messages": [
            USER,
            {**CALLED, "provider_specific_fields": None, "thinking_blocks": [], "reasoning_content": "hm"},
            {**RESULT, "name": "get_weather", "cache_control": None},
        ],
        "drop_params": True,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "extra_headers": {},
        "metadata": {"trace": "x"},
    },
    "instructor": {
        "messages": [USER],
        "tools": [WEATHER],
        "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
        "response_format": {"type": "json_object"},
    },
    "Agents SDK": {
        "messages": [USER],
        "tools": [WEATHER],
        "tool_choice": "required",
        "response_format": FORMAT,
        "parallel_tool_calls": False,
        "reasoning_effort": "low",
        "store": True,
        "prompt_cache_retention": "in-memory",
    },
    "Vercel's AI SDK": {
        "messages": [PARTS, {"role": "assistant", "content": "", "tool_calls": [CALL]}, RESULT],
        "tools": [{**WEATHER, "function": {**WEATHER["function"], "providerOptions": {}}}],  # type: ignore[dict-item]
        "response_format": FORMAT,
        "user": "a",
        "providerOptions": {"x": 1},
    },
    "Aider": {"messages": [SYSTEM, USER], "temperature": 0, "stream": True, "num_ctx": 8192, "extra_body": {"a": 1}},
    "Zed": {"messages": [PARTS], "stop": [], "stream": True, "max_completion_tokens": None, "tool_choice": None},
    "Home Assistant": {
        "messages": [{"role": "developer", "content": "Be kind."}, USER],
        "tools": [WEATHER],
        "max_completion_tokens": 3000,
        "top_p": 1.0,
        "user": "01J",
    },
    "Obsidian's Copilot": {"messages": [USER], "streaming": True, "stream": True, "enableCors": True, "maxRetries": 3},
    "Raycast": {"messages": [USER], "stream": True, "locale": "en", "source": "ai_chat", "debug": False},
    "CodeCompanion": {"messages": [{**USER, "id": 1947269257, "opts": {"visible": False}}], "stream": True},
    "OpenRouter's clients": {
        "messages": [USER, {"role": "assistant", "content": "b", "reasoning": "hm", "reasoning_details": [{}]}, USER],
        "reasoning": {"effort": "high", "exclude": True, "max_tokens": 2000, "enabled": True},
        "provider": {"order": ["a"], "allow_fallbacks": False},
        "models": ["a", "b"],
        "route": "fallback",
        "transforms": ["middle-out"],
        "plugins": [],
        "usage": {"include": True},
        "include_reasoning": True,
    },
    "Qwen's clients": {
        "messages": [USER],
        "enable_thinking": False,
        "thinking_budget": 50,
        "enable_search": False,
        "incremental_output": True,
        "result_format": "message",
    },
    "Qwen's template": {
        "messages": [USER],
        "chat_template_kwargs": {"enable_thinking": False},
        "presence_penalty": 1.5,
    },
    "Ollama's fields": {
        "messages": [USER],
        "think": True,
        "format": "json",
        "options": {"num_ctx": 4096},
        "keep_alive": "5m",
        "num_predict": 9,
    },
    "Mistral's client": {
        "messages": [USER],
        "random_seed": 7,
        "safe_prompt": False,
        "tool_choice": "any",
        "tools": [WEATHER],
        "prompt_mode": None,
    },
    "Groq's client": {
        "messages": [USER],
        "reasoning_effort": "default",
        "reasoning_format": "parsed",
        "service_tier": "auto",
    },
    "MiniMax's client": {"messages": [USER], "reasoning_split": True, "mask_sensitive_info": False},
    "Kimi's partial mode": {"messages": [USER, {"role": "assistant", "content": "An oak", "partial": True}]},
    "GLM's client": {"messages": [USER], "thinking": {"type": "disabled"}, "do_sample": True, "tool_stream": True},
    "Gemini's OpenAI layer": {
        "messages": [
            USER,
            {**CALLED, "tool_calls": [{**CALL, "extra_content": {"google": {"thought_signature": "x"}}}]},
            RESULT,
        ],
        "reasoning_effort": "none",
        "extra_body": {"google": {"thinking_config": {}}},
    },
    "Perplexity's client": {
        "messages": [USER],
        "search_mode": "web",
        "return_images": False,
        "web_search_options": None,
    },
    "Anthropic's words": {
        "messages": [USER],
        "stop_sequences": ["a"],
        "tool_choice": {"type": "auto"},
        "tools": [WEATHER],
    },
    "SGLang's client": {
        "messages": [USER],
        "regex": "a+",
        "separate_reasoning": True,
        "rid": "abc",
        "min_new_tokens": 0,
    },
    "vLLM's client": {"messages": [USER], "guided_json": SCHEMA, "add_generation_prompt": True, "logprobs_mode": "raw"},
    "empty stops": {"messages": [USER], "stop": ""},
    "an empty stop among others": {"messages": [USER], "stop": ["", "b", None]},
    "the older form of tools, empty": {"messages": [USER], "functions": [], "function_call": "none", "tools": None},
    "more than the context": {"messages": [USER], "max_tokens": 1_000_000},
    "another model": {"messages": [USER], "model": "gpt-4o-mini"},
    "no model": {"messages": [USER], "model": None},
}

REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a typo": ({"temprature": 1}, "temprature", "unknown_parameter"),
    "another case": ({"maxTokens": 5}, "maxTokens", "unknown_parameter"),
    "a wrong type": ({"temperature": "warm"}, "temperature", "invalid_value"),
    "a wrong type of another's": ({"n_predict": "all"}, "n_predict", "invalid_value"),
    "a wrong effort of another's": ({"think": "much"}, "think", "invalid_value"),
    "beyond a range": ({"top_p": 1.5}, "top_p", "invalid_value"),
    "a huge n": ({"n": 10**6}, "n", "invalid_value"),
    "two bounds": ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens", "invalid_value"),
    "two bounds of others": ({"n_predict": 5, "num_predict": 6}, "num_predict", "invalid_value"),
    "an image": (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}]},
        "messages[0].content[0]",
        "",
    ),
    "images beside the messages": ({"images": ["aGk="]}, "images", "unsupported_parameter"),
    "an adapter of llama.cpp's": ({"lora": [{"id": 0, "scale": 1}]}, "lora", "unsupported_parameter"),
    "sound": ({"modalities": ["text", "audio"], "audio": {"voice": "a"}}, "modalities", "unsupported_parameter"),
    "a custom tool": ({"tools": [{"type": "custom", "custom": {"name": "a"}}]}, "tools[0].type", "invalid_value"),
    "a tool that a server runs": ({"tools": [{"type": "web_search"}]}, "tools[0].type", "invalid_value"),
    "a search": ({"web_search_options": {}}, "web_search_options", "unsupported_parameter"),
    "the older form of tools": (
        {"functions": [{"name": "a", "parameters": {}}]},
        "functions",
        "unsupported_parameter",
    ),
    "a template of the client's": ({"chat_template": "{{ messages }}"}, "chat_template", "unsupported_parameter"),
    "an adapter": ({"lora_path": "a"}, "lora_path", "unsupported_parameter"),
    "beam search": ({"use_beam_search": True}, "use_beam_search", "unsupported_parameter"),
    "no messages": ({"messages": []}, "messages", "invalid_value"),
    "no tools to call": ({"tool_choice": "required"}, "tool_choice", ""),
    "a bad schema": (
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
        "response_format.json_schema.schema",
        "missing_required_parameter",
    ),
}


def test_what_programs_send_passes(http: httpx.Client, thinker: RunningServer) -> None:
    for name in PASS:
        thinker.engine.says = "Forty metres."
        answer = http.post(PATH, json={"model": "sapling", **PASS[name]})
        assert answer.status_code == 200, answer.text
        assert "error" not in answer.text


def test_what_cannot_be_done_is_refused_by_name(client: httpx.Client) -> None:
    for name in REFUSED:
        fields, param, code = REFUSED[name]
        answer = client.post(PATH, json={"messages": [USER], **fields})
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert (error["param"], error["code"]) == (param, code or error["code"])


def test_words_of_other_servers_are_translated(client: httpx.Client, server: RunningServer) -> None:
    cases = [
        ({"n_predict": 3}, {"max_new_tokens": 3}),
        ({"num_predict": 3, "max_new_tokens": 3}, {"max_new_tokens": 3}),
        ({"n_predict": 3, "max_tokens": 2}, {"max_new_tokens": 2}),
        ({"n_predict": 3, "max_completion_tokens": 2}, {"max_new_tokens": 2}),
        ({"repeat_penalty": 1.25}, {"repetition_penalty": 1.25, "repetition_window": -1}),
        ({"repeat_penalty": 1.25, "repeat_last_n": 64}, {"repetition_penalty": 1.25, "repetition_window": 64}),
        ({"repetition_penalty": 1.25, "repetition_window": 9, "repeat_last_n": 9}, {"repetition_window": 9}),
        ({"repeat_last_n": 100_000}, {"repetition_window": 8191}),
        ({"repeat_penalty": 1.25, "repetition_penalty": 1.5}, {"repetition_penalty": 1.5}),
        ({"stop_sequences": ["a"]}, {"stop": ("a",)}),
        ({"stopping_strings": []}, {"stop": ()}),
        ({"stop": ["", "b"]}, {"stop": ("b",)}),
        ({"random_seed": 7}, {"sampling_seed": 7}),
        ({"sampler_seed": -1}, {"sampling_seed": None}),
        ({"do_sample": False}, {"temperature": 0.0}),
        ({"do_sample": False, "temperature": 0.5}, {"temperature": 0.5}),
        ({"ban_eos_token": True}, {"ignore_eos": True}),
        ({"min_new_tokens": 1, "max_tokens": 4}, {"min_new_tokens": 1}),
        ({"grammar": 'root ::= "a"'}, {"ebnf": 'root ::= "a"'}),
        ({"grammar": ""}, {"ebnf": None}),
        ({"format": SCHEMA}, {"json_schema": True}),
        ({"format": "json"}, {"json_schema": True}),
        ({"top_p": 0}, {"is_greedy": True}),
        ({"top_k": 0}, {"top_k": -1}),
    ]
    for fields, params in cases:
        for path in [PATH, "/v1/completions"]:
            prompt = {"messages": [USER]} if path == PATH else {"prompt": "Hi"}
            answer = client.post(path, json={**prompt, **fields})
            assert answer.status_code == 200, answer.text
            received = server.engine.received[-1].sampling_params
            for name, value in params.items():
                given = getattr(received, name)
                assert given is not None if name == "json_schema" else given == value, name


def test_no_bound_may_be_written_as_a_negative_one(client: httpx.Client) -> None:
    for bound in [{"max_tokens": -1}, {"n_predict": -1}, {"max_completion_tokens": -1}, {"num_predict": -2}]:
        for path in [PATH, "/v1/completions"]:
            prompt = {"messages": [USER]} if path == PATH else {"prompt": "Hi"}
            answer = client.post(path, json={**prompt, **bound, "ignore_eos": True}).json()
            assert answer["choices"][0]["finish_reason"] == "length"
            assert answer["usage"]["total_tokens"] == 512


def test_thinking_is_asked_for_in_many_words(
    http: httpx.Client, thinker: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    template = thinker.manager.chat_template
    assert template is not None
    render = template.render
    monkeypatch.setattr(
        template, "render", lambda messages, **options: (seen.append(options["kwargs"]), render(messages, **options))[1]
    )
    asked: list[tuple[dict[str, Any], bool | None, int | None]] = [
        ({}, None, None),
        ({"think": True}, True, None),
        ({"think": "low"}, True, None),
        ({"think": False}, False, None),
        ({"enable_thinking": False}, False, None),
        ({"enable_thinking": True, "thinking_budget": 9}, True, 9),
        ({"thinking_budget": 9}, None, 9),
        ({"reasoning_budget": -1}, None, None),
        ({"reasoning": {"max_tokens": 9}}, None, 9),
        ({"reasoning": {"effort": "low"}, "thinking_budget": 9}, True, None),
        ({"reasoning": True}, True, None),
        ({"reasoning": {"enabled": False}}, False, None),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, True, 9),
        ({"thinking_token_budget": 5, "reasoning": {"max_tokens": 9}}, None, 5),
        ({"reasoning_effort": "default"}, None, None),
    ]
    for fields, wanted, budget in asked:
        answer = http.post(PATH, json={"messages": [USER], "max_tokens": 4, **fields})
        assert answer.status_code == 200, (fields, answer.text)
        assert seen[-1].get("enable_thinking") is wanted, fields
        assert thinker.engine.received[-1].sampling_params.thinking_token_budget == budget, fields
    thinker.engine.says = "<think>\nHm.\n</think>\n\nYes."
    for fields, thoughts in (
        ({}, True),
        ({"reasoning_format": "hidden"}, False),
        ({"reasoning": {"exclude": True}}, False),
        ({"reasoning_split": True}, True),
    ):
        message = http.post(PATH, json={"messages": [USER], **fields}).json()["choices"][0]["message"]
        assert (message["reasoning_content"] is not None, message["content"]) == (thoughts, "Yes."), fields
    for fields in ({"reasoning_format": "raw"}, {"reasoning_split": False}):
        message = http.post(PATH, json={"messages": [USER], **fields}).json()["choices"][0]["message"]
        assert "Hm." in message["content"]


async def fault_of(spec: BodySpec[Any], body: bytes) -> str | None:
    """Name of the field for which a body is refused, if it is."""
    try:
        await spec.parse(body, unknown={}, max_tokens=10)
    except BadRequest as error:
        return error.param or ""
    return None


def test_any_value_of_anothers_field_is_translated_or_refused() -> None:
    values: list[Any] = [0, -1, 1.5, 10**30, True, False, "", "a", "json", [], ["a", None], [[1]], {}, {"a": {"b": []}}]
    for spec, given in ((CHAT, {"messages": [USER]}), (COMPLETIONS, {"prompt": "Hi"})):
        for name in spec.translated:
            for value in values:
                body = json.dumps({**given, name: value}).encode()
                fault = asyncio.run(fault_of(spec, body))
                assert fault is None or fault.startswith(name), (name, value)


def test_a_budget_is_ignored_where_thoughts_are_not_known(client: httpx.Client) -> None:
    for fields, name in (
        ({"thinking_budget": 9}, "reasoning.max_tokens"),
        ({"reasoning": {"max_tokens": 9}}, "reasoning.max_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 9}}, "thinking.budget_tokens"),
    ):
        answer = client.post(PATH, json={"messages": [USER], "max_tokens": 2, **fields})
        assert (answer.status_code, answer.headers["x-bough-ignored-fields"]) == (200, name)
    assert client.post(PATH, json={"messages": [USER], "thinking_token_budget": 9}).status_code == 400


def test_native_sampling_parameters_have_the_names_of_others_too(client: httpx.Client, server: RunningServer) -> None:
    params = {"max_tokens": 3, "seed": 5, "repeat_penalty": 1.25}
    assert client.post("/generate", json={"text": "Hi", "sampling_params": params}).status_code == 200
    received = server.engine.received[-1].sampling_params
    assert (received.max_new_tokens, received.sampling_seed, received.repetition_penalty) == (3, 5, 1.25)
