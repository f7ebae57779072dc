"""Fields that are not known: ignored and named, refused where they are typos, refused everywhere by a strict server."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.openai.protocol import CHAT, COMPLETIONS
from bough.entrypoints.http.unknown_fields import MAX_NAME_CHARS, MAX_NAMES_COLLECTED, note_unknown, typo_of
from bough.errors import ConfigError
from bough.observability.request_context import CURRENT, MAX_IGNORED_SHOWN, RequestContext
from tests.entrypoints.http.server import RunningServer, running_server

USER = {"role": "user", "content": "Hi"}
IGNORED = "x-bough-ignored-fields"
FUNCTION = {"type": "function", "function": {"name": "f"}}
OLLAMA = {"model": "m", "messages": [USER], "stream": False, "options": {"num_predict": 1}}
BODIES: dict[str, dict[str, Any]] = {
    "/generate": {"text": "Hi", "sampling_params": {"max_new_tokens": 1}},
    "/v1/completions": {"prompt": "Hi", "max_tokens": 1},
    "/v1/chat/completions": {"messages": [USER], "max_tokens": 1},
    "/v1/responses": {"input": "Hi", "max_output_tokens": 1},
    "/v1/messages": {"model": "m", "max_tokens": 1, "messages": [USER]},
    "/v1/messages/count_tokens": {"model": "m", "messages": [USER]},
    "/api/chat": OLLAMA,
    "/api/generate": {"model": "m", "prompt": "Hi", "stream": False, "options": {"num_predict": 1}},
    "/api/show": {"model": "m"},
    "/tokenize": {"prompt": "Hi"},
    "/detokenize": {"tokens": [5]},
}
ACTING = ("/abort_request", "/pause_generation", "/continue_generation", "/open_session", "/update_weight_version")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        running_server(tmp_path_factory.mktemp("strict"), strict_fields=True) as server,
        httpx.Client(base_url=server.url, timeout=20) as http,
    ):
        yield http


def test_an_unknown_field_is_ignored_and_named(client: httpx.Client, strict: httpx.Client) -> None:
    for path in BODIES:
        body = {**BODIES[path], "brand_new_thing": {"a": [1]}, "quite_absent": None}
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.headers.get(IGNORED)) == (200, "brand_new_thing"), answer.text
        assert IGNORED not in client.post(path, json=BODIES[path]).headers
        refused = strict.post(path, json=body)
        assert refused.status_code == 400
        assert "brand_new_thing" in refused.text


def test_routes_that_act_on_the_server_stay_strict(client: httpx.Client) -> None:
    for path in ACTING:
        answer = client.post(path, json={"brand_new_thing": 1})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_parameter")


def test_streams_and_errors_name_it_too(client: httpx.Client) -> None:
    for path in ["/generate", "/v1/completions", "/v1/chat/completions", "/v1/responses", "/api/chat"]:
        streamed = client.post(path, json={**BODIES[path], "stream": True, "brand_new_thing": 1})
        assert (streamed.status_code, streamed.headers.get(IGNORED)) == (200, "brand_new_thing")
        assert client.post(path, json={**BODIES[path], "stream": 7, "brand_new_thing": 1}).status_code == 400


def test_each_name_is_logged_once(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        for path in ("/v1/chat/completions", "/generate"):
            client.post(path, json={**BODIES[path], "logged_thing_one": 1})
    params = {"text": ["a"], "sampling_params": [{"logged_thing_two": 2, "max_new_tokens": 1}]}
    assert client.post("/generate", json=params).headers[IGNORED] == "sampling_params.logged_thing_two"
    assert (caplog.text.count("logged_thing_one"), caplog.text.count("logged_thing_two")) == (1, 1)


def test_header_and_log_are_bounded_and_clean(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    names = {f"bounded_thing_{number}": number for number in range(900)}
    answer = client.post("/v1/completions", json={**BODIES["/v1/completions"], **names})
    assert answer.status_code == 200
    assert len(answer.headers[IGNORED].split(", ")) == MAX_IGNORED_SHOWN
    assert caplog.text.count("bounded_thing_") < MAX_IGNORED_SHOWN
    message = {**USER, **{f"bounded_member_{number}": number for number in range(20_000)}}
    answer = client.post("/v1/chat/completions", json={**BODIES["/v1/chat/completions"], "messages": [message]})
    assert answer.status_code == 200
    assert len(answer.headers[IGNORED]) < MAX_IGNORED_SHOWN * (MAX_NAME_CHARS + 2)
    odd = {"a,b\r\nx-evil: 1": 1, "\ud83d\ude00 smile": 1, "": 1, "z" * 5000: 1, "\u0000": 1}
    raw = json.dumps({**BODIES["/v1/completions"], **odd}).encode()
    answer = client.post("/v1/completions", content=raw, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert answer.headers[IGNORED] == f"abx-evil:1, smile, {'z' * MAX_NAME_CHARS}"
    assert "x-evil" not in answer.headers


def test_names_that_a_request_keeps_are_few_and_short(client: httpx.Client) -> None:
    context = RequestContext("r")
    token = CURRENT.set(context)
    try:
        for number in range(3):
            note_unknown({f"{number}_{name}_{'z' * 5000}": None for name in range(5000)})
    finally:
        CURRENT.reset(token)
    assert len(context.ignored_fields) == MAX_NAMES_COLLECTED
    assert max(map(len, context.ignored_fields)) <= MAX_NAME_CHARS
    options = {"num_predict": 1, **{f"option_{number}": number for number in range(20_000)}}
    answer = client.post("/api/chat", json={**OLLAMA, "options": options})
    assert answer.status_code == 200
    assert answer.headers[IGNORED].count("options.option_") == MAX_IGNORED_SHOWN


def test_names_of_others_mean_ours_or_are_named(client: httpx.Client) -> None:
    cases = [
        ("/v1/completions", {"stop_sequences": ["", "zzz"]}, None),
        ("/v1/chat/completions", {"think": "auto"}, None),
        ("/v1/completions", {"n_predict": 1}, None),
        ("/v1/completions", {"n_predict": 2}, "n_predict"),
        ("/generate", {"sampling_params": {"max_tokens": 1}}, None),
        ("/generate", {"sampling_params": {"max_tokens": 1, "max_new_tokens": None}}, None),
        ("/generate", {"sampling_params": {"max_tokens": 9, "max_new_tokens": 1}}, "sampling_params.max_tokens"),
    ]
    for path, fields, ignored in cases:
        answer = client.post(path, json={**BODIES[path], **fields})
        assert (answer.status_code, answer.headers.get(IGNORED)) == (200, ignored), answer.text


def test_of_two_bounds_on_thoughts_one_is_named(thinker: RunningServer) -> None:
    bounds = {"thinking_token_budget": 5, "reasoning": {"max_tokens": 7}}
    with httpx.Client(base_url=thinker.url, timeout=20) as http:
        answer = http.post("/v1/chat/completions", json={**BODIES["/v1/chat/completions"], **bounds})
    assert (answer.status_code, answer.headers.get(IGNORED)) == (200, "reasoning.max_tokens"), answer.text


TYPOS = {
    "temperature": ("temprature", "tempertaure", "Temperature", "tempature", "temperatures"),
    "max_tokens": ("max_token", "maxTokens", "max-tokens", "max_tokesn"),
    "messages": ("message", "mesages"),
    "model": ("modle", "mdoel"),
    "stream": ("strem", "STREAM", "straem"),
    "top_p": ("topP", "top-p", "topp"),
    "stop": ("stops", "sotp"),
    "tools": ("tool", "toosl"),
    "tool_choice": ("toolChoice", "tool_choise"),
    "response_format": ("response_fromat", "responseFormat", "format_response"),
    "seed": ("seeds", "sedd"),
    "n": ("N",),
}
OF_OTHERS = (
    *("cache_prompt", "chat_id", "draft_model", "enable_search", "logprobs_mode", "min_keep"),
    *("parse_tool_calls", "timings_per_token", "transforms", "tool_resources", "truncation_length"),
    *("typical_p", "xtc_probability", "id_slot", "samplers", "mirostat", "tfs_z", "top_a"),
    *("top_n_sigma", "mode", "dynatemp_range", "dry_multiplier", "smoothing_factor", "provider"),
    *("route", "models", "fallbacks", "plugins", "usage", "variables", "features", "tool_ids"),
    *("files", "model_item", "character", "instruction_template", "name1", "name2", "preset"),
    *("drop_params", "cache", "safe_prompt", "format", "search_parameters", "top", "top_n"),
    *("keep_alive", "system", "instructions", "input", "truncation", "text", "background", "include"),
    *("tags", "user_id", "thread_id", "n_probs", "min_length", "max_length", "penalty_alpha"),
    *("do_sample", "add_bos_token", "ban_eos_token", "speed"),
)


def test_typos_are_told_from_the_words_of_others() -> None:
    for meant, typos in TYPOS.items():
        for typo in typos:
            assert typo_of(typo, CHAT.names) == meant, typo
    for spec in (CHAT, COMPLETIONS):
        assert not [name for name in OF_OTHERS if not spec.knows(name) and typo_of(name, spec.names)]


def test_two_edits_are_a_typo_and_three_are_not() -> None:
    random_ = random.Random(7)
    names = [name for name in CHAT.names if len(name) >= 8]
    for name in names * 20:
        text = list(name)
        for _ in range(random_.randrange(1, 3)):
            at = random_.randrange(len(text) - 1)
            kept = random_.choice([[], ["7", text[at]], ["7"]])
            text[at : at + 1] = kept
        assert typo_of("".join(text), (name,)) == name
        at = random_.randrange(len(name) - 1)
        swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        assert typo_of(swapped, (name,)) == name
        other = list(name)
        for at in random_.sample(range(len(name)), 3):
            other[at] = "7"
        assert typo_of("".join(other), (name,)) is None


def test_a_typo_is_refused_with_the_name_that_is_meant(client: httpx.Client) -> None:
    cases = [
        ("/v1/chat/completions", {"temprature": 1}, "temprature", "temperature"),
        ("/v1/completions", {"maxTokens": 1}, "maxTokens", "max_tokens"),
        ("/generate", {"return_logprobs": True}, "return_logprobs", "return_logprob"),
        ("/generate", {"sampling_params": {"temperture": 1}}, "sampling_params.temperture", "temperature"),
        ("/v1/responses", {"max_output_token": 1}, "max_output_token", "max_output_tokens"),
        ("/v1/messages", {"stop_sequence": ["a"]}, "stop_sequence", "stop_sequences"),
        (
            "/v1/chat/completions",
            {"stream": True, "stream_options": {"include_usgae": True}},
            "stream_options.include_usgae",
            "include_usage",
        ),
        (
            "/v1/chat/completions",
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strcit": True}}},
            "response_format.json_schema.strcit",
            "strict",
        ),
        (
            "/v1/chat/completions",
            {"tools": [{"type": "function", "function": {"name": "f", "parameter": {}}}]},
            "tools[0].function.parameter",
            "parameters",
        ),
    ]
    for path, fields, param, meant in cases:
        answer = client.post(path, json={**BODIES[path], **fields})
        text = answer.text
        assert answer.status_code == 400, text
        assert param in text
        assert f"did you mean {meant!r}?" in text


MEMBERS: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/chat/completions", {"messages": [{**USER, "newer": 5}]}, "messages.newer"),
    (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "newer": 1}]}]},
        "messages.content.newer",
    ),
    ("/v1/chat/completions", {"stream": True, "stream_options": {"newer": 1}}, "stream_options.newer"),
    ("/v1/chat/completions", {"tools": [{**FUNCTION, "newer": 1}]}, "tools.newer"),
    (
        "/v1/chat/completions",
        {"tools": [{"type": "function", "function": {"name": "f", "newer": 1}}]},
        "tools.function.newer",
    ),
    (
        "/v1/chat/completions",
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "newer": 1}}},
        "response_format.json_schema.newer",
    ),
    ("/v1/completions", {"response_format": {"type": "text", "newer": 1}}, "response_format.newer"),
    ("/v1/responses", {"input": [{**USER, "newer": 1}]}, "input.newer"),
    (
        "/v1/responses",
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a", "newer": 1}]}]},
        "input.content.newer",
    ),
    ("/v1/responses", {"text": {"format": {"type": "text", "newer": 1}}}, "text.format.newer"),
    ("/v1/messages", {"messages": [{**USER, "newer": 1}]}, "messages.newer"),
    ("/api/chat", {"messages": [{**USER, "newer": 1}]}, "messages.newer"),
    ("/generate", {"sampling_params": {"newer": 1, "max_new_tokens": 1}}, "sampling_params.newer"),
]


def test_unknown_members_are_ignored_unless_the_server_is_strict(client: httpx.Client, strict: httpx.Client) -> None:
    for path, fields, named in MEMBERS:
        body = {**BODIES[path], **fields}
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.headers.get(IGNORED)) == (200, named), answer.text
        refused = strict.post(path, json=body)
        assert refused.status_code == 400
        assert "newer" in refused.text


def test_a_typo_of_a_required_member_leaves_that_missing(client: httpx.Client) -> None:
    cases = [
        (
            "/v1/chat/completions",
            {"messages": [USER, {"role": "user", "contents": "b"}]},
            "messages[1].content",
        ),
        (
            "/v1/chat/completions",
            {"messages": [USER, {"role": "assistant", "tool_calls": [{"function": {"nam": "f"}}]}]},
            "messages[1].tool_calls[0].function.name",
        ),
        ("/v1/chat/completions", {"messages": [{"roles": "user", "content": "a"}]}, "messages[0].role"),
        ("/api/chat", {"messages": [{"roles": "user"}]}, "messages[0].role"),
    ]
    for path, fields, param in cases:
        answer = client.post(path, json={**BODIES[path], **fields})
        assert answer.status_code == 400
        assert f"{param} is required" in answer.text


def test_the_older_switch_gets_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="strict-fields"):
        ServerArgs(model_path=str(tmp_path), allow_unknown_fields=True)
