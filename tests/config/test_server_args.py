from __future__ import annotations

import copy
import json
from pathlib import Path

import msgspec
import pytest

from bough.config.engine_args import bundled_model_path
from bough.config.options import options_of
from bough.config.server_args import ServerArgs, resolve
from bough.errors import ConfigError


def test_every_default_is_a_valid_value():
    args = ServerArgs()
    for each in options_of(ServerArgs):
        assert getattr(args, each.name) == each.default


def test_every_option_has_a_help_text_that_is_a_sentence():
    for each in options_of(ServerArgs):
        assert each.declared.help[0].isupper() or each.declared.help.startswith("`"), each.name
        assert each.declared.help.endswith("."), each.name
        assert each.default is not None or each.declared.default_text or each.kind in ("json", "str"), each.name


def test_arguments_survive_json_and_messagepack():
    args = ServerArgs(model_path="/m", preferred_sampling_params={"top_p": 0.5}, context_length="32k", page_size=16)
    assert ServerArgs(**json.loads(json.dumps(args.to_dict()))) == args
    assert ServerArgs(**msgspec.msgpack.decode(msgspec.msgpack.encode(args.to_dict()))) == args
    assert copy.copy(args) == args


def test_arguments_cannot_be_changed():
    with pytest.raises(AttributeError):
        ServerArgs().port = 1  # type: ignore[misc]


def test_none_is_the_default_where_it_is_no_value():
    assert ServerArgs(quantization=None, port=None) == ServerArgs()
    assert ServerArgs(queue_timeout=None).queue_timeout is None


def test_what_cannot_work_is_refused() -> None:
    cases = [
        ({"page_size": 3}, "page_size must be a power of two, got 3"),
        ({"page_size": 64, "max_total_tokens": 32}, "--max-total-tokens (32) must be at least --page-size (64)"),
        ({"mem_fraction_static": 1}, "mem_fraction_static must be between 0 and 1, both excluded, got 1.0"),
        ({"chunked_prefill_size": 0}, "chunked_prefill_size must be at least 1 token, or -1 for whole prompts, got 0"),
        ({"watchdog_timeout": 1}, "watchdog_timeout must be at least 1.5, got 1.0"),
        ({"startup_timeout": 0}, "startup_timeout must be greater than 0, got 0.0"),
        ({"port": 65536}, "port must be at most 65535, got 65536"),
        ({"preferred_sampling_params": {"top_p": 2}}, "preferred_sampling_params must hold valid sampling parameters"),
        ({"preferred_sampling_params": {"n": 2}}, "preferred_sampling_params must not set n"),
        ({"preferred_sampling_params": {"nope": 2}}, "preferred_sampling_params must hold valid sampling parameters"),
        ({"schedule_policy": "fsfc"}, "schedule_policy must be one of"),
        ({"pipeline_parallel_size": 2}, "pipeline_parallel_size is not supported"),
        ({"trust_remote_code": True}, "trust_remote_code is not supported"),
        ({"dtype": "fp16"}, "got 'fp16'; the nearest here is 'float16'"),
        ({"quantization": "awq"}, "got 'awq'; the nearest here is 'none'"),
    ]
    for keywords, message in cases:
        with pytest.raises(ConfigError) as caught:
            ServerArgs(**keywords)
        assert message in str(caught.value)


def test_resolving_fills_what_depends_on_the_model_path():
    args = resolve(ServerArgs(model_path="/some/model"), seed_source=lambda: 7)
    assert (args.tokenizer_path, args.served_model_name, args.random_seed) == ("/some/model", "model", 7)


def test_resolving_keeps_what_was_set_and_can_be_repeated():
    given = ServerArgs(tokenizer_path="/t", served_model_name="name", random_seed=0)
    args = resolve(given, seed_source=lambda: 7)
    assert (args.tokenizer_path, args.served_model_name, args.random_seed) == ("/t", "name", 0)
    assert resolve(args) == args


def test_the_priority_policy_needs_no_second_switch():
    assert resolve(ServerArgs(schedule_policy="priority")).enable_priority_scheduling


def test_the_bundled_model_is_served_by_default_under_a_short_name():
    assert ServerArgs().model_path == str(bundled_model_path())
    assert resolve(ServerArgs()).served_model_name == "sapling"


def test_a_directory_is_served_under_its_last_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "my-model"
    cached = tmp_path / "models--org--name" / "snapshots" / "0123abcd"
    for each in (directory, cached):
        each.mkdir(parents=True)
    monkeypatch.chdir(directory)
    for path, name in {
        str(directory): "my-model",
        f"{directory}/": "my-model",
        ".": "my-model",
        "../my-model": "my-model",
        "./": "my-model",
        str(cached): "org/name",
        "Qwen/Qwen3-0.6B": "Qwen/Qwen3-0.6B",
        "/models/small.q8_0.gguf": "small.q8_0",
        "/": "/",
    }.items():
        assert resolve(ServerArgs(model_path=path)).served_model_name == name, path


def test_flags_say_what_differs_from_the_defaults_and_no_secret():
    args = ServerArgs(port=1234, api_key="sesame", disable_radix_cache=True, preferred_sampling_params={"top_k": 3})
    flags = args.to_flags()
    assert "sesame" not in flags
    wanted = ["--port", "1234", "--api-key", "(set)", "--disable-radix-cache"]
    assert set(wanted) < set(flags)
    assert flags[flags.index("--preferred-sampling-params") + 1] == '{"top_k": 3}'
    assert "--host" not in flags


def test_credentials_in_the_url_of_the_collector_are_not_shown() -> None:
    cases = [
        ("http://localhost:4318/v1/traces", "http://localhost:4318/v1/traces"),
        ("https://me:sesame@collector/v1/traces", "https://(set)@collector/v1/traces"),
        ("https://me@sesame@[::1]:4318/v1", "https://(set)@[::1]:4318/v1"),
        ("https://collector/v1/traces?key=sesame#sesame", "https://collector/v1/traces?(set)"),
        ("https://sesame@collector?key=sesame", "https://(set)@collector?(set)"),
        ("https://collector/a@b", "https://collector/a@b"),
    ]
    for url, shown in cases:
        args = ServerArgs(otlp_traces_endpoint=url)
        assert args.otlp_traces_endpoint == url
        assert args.to_public_dict()["otlp_traces_endpoint"] == shown
        assert "sesame" not in " ".join(args.to_flags())
