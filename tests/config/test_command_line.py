from __future__ import annotations

import contextlib
import io

import pytest

from bough.cli_commands.serve import parse_server_args
from bough.config.options import options_of
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.other_engines import FLAGS_HERE, names_here


def parse(*argv: str) -> ServerArgs:
    return parse_server_args(list(argv), prog="bough serve")


def refused(*argv: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(*argv)
    return str(caught.value)


@pytest.fixture
def config(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "bough.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_no_arguments_are_the_defaults():
    assert parse() == ServerArgs()


def test_flags_set_the_fields_of_their_name():
    args = parse("--port", "8000", "--disable-radix-cache", "--context-length", "32k", "--chunked-prefill-size", "-1")
    assert args == ServerArgs(port=8000, disable_radix_cache=True, context_length=32768, chunked_prefill_size=-1)


def test_the_model_can_be_said_in_all_the_usual_ways() -> None:
    for argv in [("/m",), ("--model", "/m"), ("--model-path", "/m"), ("--model-path=/m",)]:
        assert parse(*argv).model_path == "/m"


def test_every_option_is_a_flag_and_a_key(config):
    samples = {"bool": "true", "int": "1024", "float": "0.5", "str": "text", "json": '{"top_p": 0.5}'}
    named = {
        **dict.fromkeys(("worker_extension_cls", "worker_cls"), "package.module.Class"),
        "cors_allow_origins": "https://chat.example.org",
        "otlp_traces_endpoint": "http://localhost:4318/v1/traces",
        "tool_call_parser": "hermes",
        "reasoning_parser": "qwen3",
        "root_path": "/llm",
        "max_sessions": "7",
        "max_stored_responses": "7",
        "watchdog_timeout": "7",
        "soft_watchdog_timeout": "7",
    }
    for each in options_of(ServerArgs):
        text = each.choices[-1] if each.choices else named.get(each.name, samples[each.kind])
        if each.kind == "int" and each.declared.maximum is not None and each.declared.maximum < int(text):
            text = str(int(each.declared.maximum) - 1)
        flag = [each.flag] if each.kind == "bool" else [each.flag, text]
        from_flag = getattr(parse(*flag), each.name)
        assert from_flag == getattr(parse("--config", config(f"{each.key}: {text}")), each.name)
        assert each.default is None or from_flag != each.default or len(each.choices) == 1, each.name


def help_of(flag: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as caught:
        parse(flag)
    assert caught.value.code in (0, None)
    return " ".join(out.getvalue().split())


def test_help_is_about_the_flags_that_people_need():
    text = help_of("--help")
    shown = [each for each in options_of(ServerArgs) if f"{each.flag} " in text]
    assert shown == [each for each in options_of(ServerArgs) if each.declared.basic]
    assert 15 <= len(shown) <= 20
    assert "--help-all" in text


def test_what_is_typed_often_has_a_short_form() -> None:
    cases = [
        (("-m", "/m", "-p", "8000", "-c", "4k"), ("--model", "/m", "--port", "8000", "--context-length", "4k")),
        (("-m=/m", "-p=8000", "-c4096"), ("--model-path", "/m", "--port", "8000", "--context-length", "4096")),
    ]
    for argv, same in cases:
        assert parse(*argv) == parse(*same)


def test_flags_of_others_get_a_hint_in_every_form() -> None:
    cases = [
        (("-ngl", "99"), "--device"),
        (("--n-gpu-layers=99",), "--device"),
        (("-m", "/m", "-ctk", "q8_0"), "--kv-cache-dtype"),
        (("--ctx-size", "4096"), "--context-length"),
        (("-hf", "owner/name"), "--model-path"),
        (("--chat-template-file", "x"), "--chat-template"),
        (("--max-model-len", "4096"), "--context-length"),
        (("-prot", "1"), "--port"),
    ]
    for argv, meant in cases:
        assert repr(meant) in refused(*argv)


def test_help_all_names_every_flag_with_its_default():
    text = help_of("--help-all")
    for each in options_of(ServerArgs):
        assert each.flag in text
        if each.kind != "bool":
            assert f"default: {each.default_text}]" in text


def test_mistakes_are_named_and_a_suggestion_is_made() -> None:
    cases = [
        (("--prot", "1"), "unknown flag '--prot'; did you mean '--port'?"),
        (("--prot=1",), "unknown flag '--prot'; did you mean '--port'?"),
        (("--por", "1"), "unknown flag '--por'; did you mean '--port'?"),
        (
            ("--max-model-len", "8k"),
            "unknown flag '--max-model-len'; the nearest here is '--context-length' (see",
        ),
        (("--gpu_memory_utilization=0.5",), "the nearest here is '--mem-fraction-static'"),
        (("--pipeline-parallel-size", "2"), "--pipeline-parallel-size is not supported"),
        (("--port", "x"), "--port must be a whole number, got 'x'"),
        (("--port",), "--port needs a value: --port N (see bough serve --help)"),
        (("--model", "--port", "1"), "--model needs a value: --model PATH (see"),
        (("--host", "-x"), "--host needs a value: --host ADDRESS; one that begins with a dash is written --host=-x"),
        (("--host", "a", "--host", "-x"), "; one that begins with a dash is written --host=-x"),
        (("--host=-y", "--host", "-x y", "--host", "-1", "--host", "-x"), "is written --host=-x"),
        (("--model", "a", "--model-path", "--port", "1"), "--model-path needs a value: --model-path PATH (see"),
        (("--host", "a", "--host"), "--host needs a value: --host ADDRESS (see"),
        (("--host", "--", "a"), "; one that begins with a dash is written --host=--"),
        (("--disable-radix-cache=yes",), "--disable-radix-cache takes no value (see"),
        (("--disable-radix-cache", "--no-disable-radix-cache=1"), "--no-disable-radix-cache takes no value (see"),
        (("--dtype", "bf16"), "--dtype must be one of auto, float32, bfloat16, float16, got 'bf16'"),
        (("a", "b"), "unexpected argument 'b'"),
        (("--disable-radix-cache", "yes"), "--disable-radix-cache takes no value, got 'yes'"),
        (("--disable-radix-cache", "False"), "; --no-disable-radix-cache switches it off"),
        (("a", "--model", "b"), "the model is given twice: a and --model-path b"),
        (("--config", "/does/not/exist"), "cannot read --config /does/not/exist: No such file or directory"),
    ]
    for argv, message in cases:
        assert message in refused(*argv)


def test_a_file_sets_options_and_the_command_line_wins(config):
    path = config("model: /m\nport: 8000\nmax_running_requests: 4\ndisable-radix-cache: true\nlog-level: null\n")
    args = parse("--config", path, "--port", "9000", "--no-disable-radix-cache")
    assert args == ServerArgs(model_path="/m", port=9000, max_running_requests=4)


def test_an_empty_file_says_nothing(config):
    assert parse("--config", config("# nothing\n")) == ServerArgs()


def test_a_wrong_file_is_refused_by_name(config) -> None:
    cases = [
        ("prot: 1", "unknown key 'prot'; did you mean 'port'?"),
        ("port: x", "port must be a whole number, got 'x'"),
        ("port: 1.5", "port must be a whole number, got 1.5"),
        ("host: 1", "host must be text, got 1"),
        ("port: 1\nport: 2", "port is given twice"),
        ("model: a\nmodel-path: b", "model-path is given twice"),
        ("json-model-override-args: {a: 2026-01-02}", "json-model-override-args must be a JSON object: Object of type"),
        ("json-model-override-args: {a: 2026-13-02}", "is not valid YAML: month must be in"),
        ("- 1", "must hold 'flag: value' lines"),
        ("7: 1", "keys must be text, got 7"),
        ("{", "is not valid YAML"),
        ("host: !!python/object/apply:os.getcwd []", "is not valid YAML"),
    ]
    for text, message in cases:
        path = config(text)
        complaint = refused("--config", path)
        assert path in complaint
        assert message in complaint


def test_what_flags_of_others_are_called_here_is_a_flag():
    flags = {each.flag for each in options_of(ServerArgs)}
    assert {names_here(f"--{flag}")[0] for flag in FLAGS_HERE} <= flags


def test_flags_of_others_are_known_in_files_and_as_keywords(config):
    assert "; the nearest here is 'context-length'" in refused("--config", config("max-model-len: 8k"))
    with pytest.raises(ConfigError, match="; the nearest here is 'max_running_requests'"):
        ServerArgs(parallel=4)


def test_flags_of_others_may_ask_for_what_is_so_anyway() -> None:
    cases = [
        ("--tp", "1"),
        ("--tp-size=1", "--pp_size", "1", "--tensor-parallel-size", "1"),
        ("--nnodes", "1", "--node-rank", "0"),
        ("--enable-metrics", "--enable-prefix-caching"),
        ("--enable-cache-report", "--disable-custom-all-reduce", "--enable-streaming-session"),
        ("--attn-dp-size", "1", "--moe-a2a-backend=none"),
        ("--disaggregation-mode", "null", "--tokenizer-worker-num", "1", "--base-gpu-id", "0"),
    ]
    for words in cases:
        assert parse(*words) == ServerArgs()
        assert parse("--port", "4000", *words, "--page-size", "16") == ServerArgs(port=4000, page_size=16)


def test_switches_for_what_is_so_pass_beside_values_that_leave_it_so():
    words = ("--enable-response-store", "--max-stored-responses", "9", "--enable-chunked-prefill")
    args = parse(*words, "--chunked-prefill-size=64", "--no-disable-radix-cache", "--cpu-offload-gb", "0.0")
    assert args == ServerArgs(max_stored_responses=9, chunked_prefill_size=64)


def test_flags_of_others_that_ask_for_more_are_refused_in_words() -> None:
    cases = [
        (("--pp", "2"), "--pp is not supported"),
        (("--pp",), "--pp is not supported"),
        (("--pp=",), "--pp is not supported"),
        (("--trust-remote-code",), "--trust-remote-code is not supported (code from checkpoints, which is never run)"),
        (("--enable-hierarchical-cache",), "--enable-hierarchical-cache is not supported (a cache in host memory)"),
        (("--disaggregation-mode", "decode"), "--disaggregation-mode is not supported"),
        (("--lora-backend=triton",), "--lora-backend is not supported (LoRA adapters)"),
        (("--speculative_num_draft_tokens", "4"), "--speculative_num_draft_tokens is not supported"),
        (("--moe-a2a-backend", "deepep"), "is not supported (other ways of expert parallelism)"),
        (("--kv-events-config", "x"), "unknown flag '--kv-events-config'"),
        (("--cuda-graph-max-bs-decode", "8"), "the nearest here is '--cuda-graph-max-bs'"),
        (("--enable-response-store", "--max-stored-responses", "0"), "so unless --max-stored-responses 0 is given"),
        (("--max-sessions=0", "--enable-streaming-session"), "so unless --max-sessions 0 is given"),
        (("--enable-chunked-prefill", "--chunked-prefill-size", "-1"), "unless --chunked-prefill-size -1 is given"),
        (("--max-num-batched-tokens", "1"), "the nearest here is '--max-prefill-tokens'"),
        (("--enable-metrics=1",), "--enable-metrics takes no value and is always so; leave it out"),
        (("--enable-prefix-caching", "--disable-radix-cache"), "so unless --disable-radix-cache is given"),
        (("--log-level", "warn"), "the nearest here is 'warning'"),
    ]
    for words, message in cases:
        assert message in refused(*words)


def test_dtypes_have_other_names_that_mean_the_same(config) -> None:
    for word, meant in [("half", "float16"), ("float", "float32"), ("bfloat16", "bfloat16")]:
        assert parse("--dtype", word).dtype == parse("--config", config(f"dtype: {word}")).dtype == meant
        assert ServerArgs(dtype=word) == ServerArgs(dtype=meant)


def test_keys_of_others_may_ask_for_what_is_so_anyway_and_are_refused_in_words(config):
    text = "pp-size: 1\nlora_paths: null\nenable-lora: false\nenable-metrics: true\nport: 4000\n"
    assert parse("--config", config(text)) == ServerArgs(port=4000)
    text = "pp-size: '1'\ncpu-offload-gb: 0.0\nenable-response-store: true\nmax-stored-responses: 9\n"
    assert parse("--config", config(text)) == ServerArgs(max_stored_responses=9)
    assert "pp-size is not supported" in refused("--config", config("pp-size: 2"))
    assert "pp-size is not supported" in refused("--config", config("pp-size: true"))
    assert "enable-metrics takes no value and is always so" in refused("--config", config("enable-metrics: false"))


def test_switches_are_not_taken_for_each_other():
    assert "did you mean" not in refused("--enable-something-else")
    assert "did you mean '--enable-priority-scheduling'" in refused("--enable-priority-schedulin")


def test_keywords_of_others_may_ask_for_what_is_so_anyway():
    options = {
        "pp_size": 1,
        "dp_size": None,
        "nnodes": 1,
        "trust_remote_code": False,
        "enable_lora": False,
        "lora_paths": None,
        "speculative_algorithm": None,
        "load_balance_method": "auto",
        "disable_custom_all_reduce": False,
        "enable_cache_report": True,
        "enable_metrics": True,
        "port": 1,
    }
    assert ServerArgs.of_keywords(options) == ServerArgs(port=1)
    refused_ones = {"pp_size": 2, "dp_size": False, "nnodes": True, "trust_remote_code": True, "enable_metrics": False}
    refused_ones |= {"max_model_len": None, "disable_radix_cach": False, "no_such_option": 1}
    for name, value in refused_ones.items():
        with pytest.raises(ConfigError) as refusal:
            ServerArgs.of_keywords({name: value, "port": 1})
        assert refusal.value.param == name
    with pytest.raises(ConfigError):
        ServerArgs.of_keywords({"enable_prefix_caching": True, "disable_radix_cache": True})
