"""Sampling parameters that requests leave out: values, by dialect and form of checkpoint, and their sources."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import httpx
import pytest

from bough.config.model_config import STORED_AS
from bough.config.server_args import ServerArgs
from bough.entrypoints.chat.sampling import describe_defaults, sampling_defaults
from tests.entrypoints.http.server import running_server, tiny_model_config

LLAMA_CPP = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
OPENAI = {"temperature": 1.0, "top_k": -1, "top_p": 1.0, "min_p": 0.0}
MESSAGES = [{"role": "user", "content": "hi"}]

CASES: list[tuple[bool, bool, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    # GGUF, Ollama, generation_config, options, expected
    (False, False, {}, {}, OPENAI),
    (False, True, {}, {}, LLAMA_CPP),
    (True, False, {}, {}, LLAMA_CPP),
    (True, True, {}, {}, LLAMA_CPP),
    (False, False, {"temperature": 0.6, "top_k": 20}, {}, {**OPENAI, "temperature": 0.6, "top_k": 20}),
    (True, False, {"temperature": 0.6, "top_k": 20}, {}, {**LLAMA_CPP, "temperature": 0.6, "top_k": 20}),
    (False, True, {"temperature": 0.6, "top_k": 0}, {}, {**LLAMA_CPP, "temperature": 0.6, "top_k": -1}),
    (True, True, {"temperature": 0.6}, {"sampling_defaults": "openai"}, OPENAI),
    (
        True,
        False,
        {"temperature": 0.6},
        {"preferred_sampling_params": {"temperature": 0.1}},
        {**LLAMA_CPP, "temperature": 0.1},
    ),
    (
        True,
        True,
        {},
        {"sampling_defaults": "openai", "preferred_sampling_params": {"min_p": 0.2}},
        {**OPENAI, "min_p": 0.2},
    ),
]


@pytest.mark.parametrize(("is_gguf", "is_ollama", "named", "options", "expected"), CASES)
def test_defaults_in_force(
    tmp_path: Path,
    is_gguf: bool,
    is_ollama: bool,
    named: dict[str, Any],
    options: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    config = tiny_model_config(tmp_path, 300, **named)
    if is_gguf:
        config = dataclasses.replace(config, hf_config={**config.hf_config, STORED_AS: "Q8_0"})
    args = ServerArgs(model_path=str(tmp_path), **options)
    values = sampling_defaults(args, config, is_ollama=is_ollama)
    assert {name: values.get(name, value) for name, value in OPENAI.items()} == expected
    described = describe_defaults(args, config)["ollama" if is_ollama else "openai"]
    assert {name: described[name]["value"] for name in OPENAI} == expected
    for name in OPENAI:
        if name in options.get("preferred_sampling_params", {}):
            source = "flag"
        elif options.get("sampling_defaults") == "openai":
            source = "openai"
        elif name in named:
            source = "checkpoint"
        else:
            source = "llama.cpp" if is_gguf or is_ollama else "openai"
        assert described[name]["source"] == source, name


CHAT = {"model": "m", "messages": MESSAGES, "max_tokens": 1}
OLLAMA = {"model": "m", "messages": MESSAGES, "stream": False}


def test_each_dialect_counts_repetition_as_its_clients_expect(tmp_path: Path) -> None:
    cases: list[tuple[str, dict[str, Any], float, int | None]] = [
        ("/v1/chat/completions", {**CHAT, "repetition_penalty": 1.3}, 1.3, -1),
        ("/v1/chat/completions", CHAT, 1.1, -1),
        ("/v1/completions", {"model": "m", "prompt": "a", "max_tokens": 1, "repetition_penalty": 1.3}, 1.3, -1),
        ("/v1/messages", CHAT, 1.1, -1),
        ("/v1/responses", {"model": "m", "input": "hi", "max_output_tokens": 1}, 1.1, -1),
        ("/api/chat", {**OLLAMA, "options": {"num_predict": 1}}, 1.1, 64),
        ("/api/chat", {**OLLAMA, "options": {"num_predict": 1, "repeat_penalty": 1.2, "repeat_last_n": 7}}, 1.2, 7),
        ("/api/generate", {"model": "m", "prompt": "a", "stream": False, "options": {"repeat_last_n": -1}}, 1.1, -1),
        ("/api/chat", {**OLLAMA, "options": {"repeat_last_n": 0}}, 1.1, 0),
        ("/generate", {"text": "a", "sampling_params": {"repetition_penalty": 1.3}}, 1.3, None),
        ("/generate", {"text": "a"}, 1.0, None),
    ]
    with running_server(tmp_path, generation_config={"repetition_penalty": 1.1}) as server:
        for path, body, penalty, window in cases:
            answer = httpx.post(server.url + path, json=body)
            assert answer.status_code == 200, answer.text
            params = server.engine.received[-1].sampling_params
            assert (params.repetition_penalty, params.repetition_window) == (penalty, window), (path, body)


def test_routes_use_their_defaults_and_the_server_shows_them(tmp_path: Path) -> None:
    with running_server(tmp_path, generation_config={"top_k": 7}) as server:
        used = {}
        for dialect, path, body in (
            ("openai", "/v1/chat/completions", {"max_tokens": 1}),
            ("ollama", "/api/chat", {"options": {"num_predict": 1}, "stream": False}),
        ):
            answer = httpx.post(server.url + path, json={"model": "m", "messages": MESSAGES, **body})
            assert answer.status_code == 200, answer.text
            params = server.engine.received[-1].sampling_params
            used[dialect] = {name: getattr(params, name) for name in OPENAI}
        assert used == {"openai": {**OPENAI, "top_k": 7}, "ollama": {**LLAMA_CPP, "top_k": 7}}
        shown = httpx.get(f"{server.url}/server_info").json()["default_sampling_params"]
        assert httpx.get(f"{server.url}/model_info").json()["default_sampling_params"] == shown
        for dialect, values in used.items():
            assert {name: shown[dialect][name]["value"] for name in OPENAI} == values
        assert shown["ollama"]["top_k"]["source"] == "checkpoint"
