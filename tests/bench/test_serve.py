from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import math
import os
from types import SimpleNamespace

import pytest

from bough import __version__
from bough.bench.backends import BACKENDS, Sampling
from bough.bench.client import BenchClient, Load, Measurement, connect, run_load
from bough.bench.datasets import BenchRequest, DatasetArgs
from bough.bench.metrics import table
from bough.bench.options import result_path, write_json
from bough.bench.serve import BenchServeArgs, main, run_benchmark
from bough.cli import main as bough
from bough.errors import ConfigError, StartupError
from tests.bench.fake_server import CACHED_TOKENS, VOCAB_SIZE

SMALL = {"num_prompts": 6, "random_input_len": 10, "random_output_len": 5, "random_range_ratio": 1}


def measure(server, dataset=None, **args):
    given = {"base_url": server.url, "warmup_requests": 0, **args}
    return asyncio.run(run_benchmark(BenchServeArgs(**given), DatasetArgs(**(dataset or SMALL))))


def test_every_backend_counts_tokens_and_events(server) -> None:
    for backend in ["native", "oai", "oai-chat"]:
        result = measure(server, backend=backend)
        assert (result["completed"], result["failed"], result["errors"]) == (6, 0, {})
        assert result["total_output_tokens"] == result["total_events"] == 30
        assert result["p50_ttft_ms"] > 0
        assert result["p99_itl_ms"] >= 0
        assert result["mean_e2e_latency_ms"] >= result["mean_ttft_ms"]
        json.dumps(result, allow_nan=False)


def test_computed_prompt_tokens_are_those_that_were_not_cached(server) -> None:
    for backend in ["native", "oai"]:
        result = measure(server, backend=backend)
        assert result["total_input_tokens"] == 60
        assert result["total_cached_tokens"] == 6 * CACHED_TOKENS
        assert result["total_computed_input_tokens"] == 60 - 6 * CACHED_TOKENS


def test_whole_answers_have_one_time_and_no_others(server) -> None:
    for backend in ["native", "oai"]:
        result = measure(server, backend=backend, disable_stream=True)
        assert (result["completed"], result["total_output_tokens"]) == (6, 30)
        assert result["p50_e2e_latency_ms"] > 0
        assert {result[f"p50_{name}_ms"] for name in ("ttft", "tpot", "itl")} == {None}
        assert table(result, "whole").count("         -") == 15


def test_one_event_has_no_time_per_token(server):
    result = measure(server, {**SMALL, "random_output_len": 1})
    assert result["p50_ttft_ms"] > 0
    assert result["p50_tpot_ms"] is None


def test_what_warms_up_leaves_nothing_to_reuse(server):
    measure(server, {**SMALL, "random_output_len": 50}, warmup_requests=1)
    (_, warm_up), (_, first) = server.requests[:2]
    assert len(warm_up["input_ids"]) == len(first["input_ids"])
    assert warm_up["input_ids"][:2] != first["input_ids"][:2]
    assert warm_up["sampling_params"]["max_new_tokens"] == 16


def test_objects_of_the_body_are_merged(server):
    measure(server, extra_request_body={"sampling_params": {"top_k": 3, "top_p": 0.5}})
    assert server.requests[0][1]["sampling_params"] == {
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 3,
        "max_new_tokens": 5,
        "ignore_eos": True,
    }


def test_thoughts_by_the_name_of_other_servers_are_tokens(server):
    server.chat_deltas = [{"reasoning": "hm"}, {"content": "yes"}]
    assert measure(server, backend="oai-chat")["total_events"] == 12


def test_the_result_says_what_was_measured(server):
    result = measure(server, base_url=server.url + "/v1/", temperature=0.5)
    assert (result["url"], result["model"], result["version"]) == (server.url, "fake", __version__)
    assert (result["stream"], result["sampling"]["temperature"]) == (True, 0.5)


def test_a_server_that_refuses_is_not_waited_for(server, monkeypatch) -> None:
    for status in [401, 403, 404]:
        pauses = []

        async def sleep(seconds):
            pauses.append(seconds)

        monkeypatch.setattr("bough.bench.client.asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
        server.models_status = status
        with pytest.raises(StartupError, match=f"/v1/models answered with status {status}"):
            measure(server)
        assert not pauses


@pytest.mark.parametrize(("name", "status"), [("taken", 2), ("file/result.json", 1), ("x" * 300, 2)])
def test_a_result_that_cannot_be_written_is_told_before_the_run(server, tmp_path, name, status):
    (tmp_path / "taken").mkdir()
    (tmp_path / "file").write_text("")
    path = tmp_path / name
    assert bough(["bench", "serve", "--base-url", server.url, "--output-file", str(path)]) == status
    assert server.requests == []


def test_an_earlier_result_stays_until_the_next_is_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = result_path("~/deep/result.json")
    assert not list(path.parent.iterdir())
    write_json(path, {"a": 1})
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert result_path(str(link)) == link
    assert json.loads(path.read_text()) == {"a": 1}
    write_json(link, {"a": 2})
    assert link.is_symlink()
    assert json.loads(path.read_text()) == {"a": 2}
    assert list(path.parent.iterdir()) == [path]


def test_a_result_keeps_the_mode_of_the_file_and_gets_the_usual_one_without(tmp_path):
    path, fresh, usual = tmp_path / "result.json", tmp_path / "fresh.json", tmp_path / "usual"
    path.write_text("{}")
    path.chmod(0o640)
    write_json(path, {"a": 1})
    assert path.stat().st_mode & 0o777 == 0o640
    usual.touch()
    write_json(fresh, {"a": 1})
    assert fresh.stat().st_mode == usual.stat().st_mode


def test_a_result_whose_place_no_other_file_can_take_is_overwritten(tmp_path, monkeypatch):
    def busy(*_):
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", busy)
    path = tmp_path / "result.json"
    with pytest.raises(StartupError, match=f"cannot write {path}"):
        write_json(path, {"a": 1})
    path.write_text('{"an": "earlier result"}')
    assert json.loads(result_path(str(path)).read_text()) == {"an": "earlier result"}
    write_json(path, {"a": 1})
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_requests_say_what_the_options_say(server):
    measure(server, extra_request_body={"rid": "x"}, temperature=0.5, top_p=0.9, disable_ignore_eos=True)
    path, body = server.requests[0]
    assert path == "/generate"
    assert body["sampling_params"] == {"temperature": 0.5, "top_p": 0.9, "max_new_tokens": 5, "ignore_eos": False}
    assert body["rid"] == "x"
    assert all(0 <= token < VOCAB_SIZE for token in body["input_ids"])


def test_the_cache_is_emptied_after_the_warm_up(server):
    measure(server, warmup_requests=2, flush_cache=True, flush_cache_timeout=5)
    paths = [path for path, _ in server.requests]
    assert paths == ["/generate"] * 2 + ["/flush_cache?timeout=5"] + ["/generate"] * 6


def test_failures_are_counted_and_named(server) -> None:
    for failure, message in [(503, "HTTP 503"), ("event", "it broke"), ("hang-up", "ClientPayloadError")]:
        server.fail_with = failure
        result = measure(server)
        assert (result["completed"], result["failed"]) == (0, 6)
        assert all(message in error for error in result["errors"])


def test_an_answer_that_was_broken_off_is_a_failure(server) -> None:
    for backend in ["native", "oai", "oai-chat"]:
        server.fail_with = "abort"
        result = measure(server, backend=backend)
        assert (result["completed"], result["failed"]) == (0, 6)
        assert all("aborted" in error for error in result["errors"])


def test_prompts_that_are_too_long_are_told_with_the_flag_that_says_how_long(server):
    server.fail_with = "event"
    server.failure_message = "This model's maximum context length is 5 tokens."
    with pytest.raises(StartupError, match=r"maximum context length is 5 tokens.*\(--random-input-len 10\)$"):
        measure(server, warmup_requests=1)


def test_a_failing_warm_up_ends_the_run(server):
    server.fail_with = 400
    with pytest.raises(StartupError, match=f"to {server.url}/generate failed, so nothing was measured: HTTP 400: no$"):
        measure(server, warmup_requests=1)


def test_a_list_of_models_of_an_unfamiliar_form_is_told(server) -> None:
    cases = [
        ('{"data": null}', "/v1/models lists no model; name one with --model"),
        ("[]", "lists no model"),
        ('{"data": []}', "lists no model"),
        ("<html>", "/v1/models answered with no JSON: b'<html>'"),
    ]
    for answer, message in cases:
        server.models_answer = answer
        with pytest.raises(StartupError, match=message):
            measure(server)


def test_an_address_with_colons_gets_brackets():
    url = BenchServeArgs(host="::1").url
    assert url == "http://[::1]:30000"
    assert BenchServeArgs(base_url=url).url == url


def test_an_address_needs_no_scheme():
    assert BenchServeArgs(base_url="localhost:8000").url == "http://localhost:8000"
    assert BenchServeArgs(base_url="[::1]/v1").url == "http://[::1]/v1"


def test_what_is_no_address_is_refused_at_once() -> None:
    for url in ["http:/localhost:8000", "localhost:x", "ftp://localhost", "http://", "http://localhost:99999"]:
        with pytest.raises(ConfigError, match="must look like http://host:port"):
            BenchServeArgs(base_url=url)


class Recorder(BenchClient):
    """Stands in for a server that takes ``seconds`` for every answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(None, "http://nowhere")
        self.seconds = seconds
        self.sent: list[float] = []
        self.in_flight = self.most_in_flight = 0

    async def ask(self, request, backend, model, sampling, *, stream=True):
        self.sent.append(asyncio.get_running_loop().time())
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(self.seconds)
        self.in_flight -= 1


def load(client: Recorder, count: int, **settings) -> Measurement:
    requests = [BenchRequest(1, input_ids=[1])] * count
    return asyncio.run(run_load(client, requests, None, "m", None, Load(**settings)))


def test_an_infinite_rate_sends_everything_at_once():
    client = Recorder(0.05)
    load(client, 50)
    assert client.most_in_flight == 50


def test_no_more_requests_are_in_flight_than_allowed():
    client = Recorder(0.005)
    measurement = load(client, 20, max_concurrency=3)
    assert client.most_in_flight == 3
    assert len(measurement.answers) == 20


def test_arrivals_have_the_rate_asked_for_and_are_irregular():
    client = Recorder(0.0)
    load(client, 200, request_rate=1000.0, seed=1)
    gaps = [b - a for a, b in zip(client.sent, client.sent[1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert 0.0005 < mean < 0.002
    assert spread > 0.3 * mean


def test_no_server_is_said_after_the_time_to_wait():
    async def wait():
        async with connect("http://127.0.0.1:9") as client:
            await client.wait_until_ready(0.0)

    refused = r"no server is ready after 0 s: http://127.0.0.1:9/v1/models cannot be reached: Connection refused$"
    with pytest.raises(StartupError, match=refused):
        asyncio.run(wait())


@contextlib.asynccontextmanager
async def silent_server():
    """The address of a server that takes connections and says nothing."""

    async def say_nothing(reader, writer):
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1") as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_server_that_takes_connections_and_never_answers_is_waited_for_no_longer():
    async def wait():
        async with silent_server() as url, connect(url) as client:
            await asyncio.wait_for(client.wait_until_ready(0.3), 20)

    with pytest.raises(StartupError, match=r"no server is ready after 0\.3 s: .*/v1/models does not answer$"):
        asyncio.run(wait())


def test_an_answer_that_never_ends_has_failed_after_the_time_it_may_take():
    async def ask():
        async with silent_server() as url, connect(url, timeout=0.2) as client:
            request = BenchRequest(1, input_ids=[1])
            answer = await asyncio.wait_for(client.ask(request, BACKENDS["oai"], "m", Sampling()), 20)
            with pytest.raises(StartupError, match=r"/v1/models cannot be reached: no answer in time$"):
                await asyncio.wait_for(client.get_json("/v1/models"), 20)
        return answer.error

    assert asyncio.run(ask()) == "no whole answer within 0.2 s"


def test_a_host_that_is_none_is_told_in_words():
    async def wait():
        async with connect("http://nosuchhost.invalid:1") as client:
            await client.wait_until_ready(0.0)

    with pytest.raises(StartupError) as caught:
        asyncio.run(wait())
    assert "nosuchhost.invalid" in caught.value.message
    assert "Unknown error" not in caught.value.message


def test_waiting_for_a_server_is_said_at_once(capsys):
    async def wait():
        async with connect("http://127.0.0.1:9") as client:
            await client.wait_until_ready(0.5)

    with pytest.raises(StartupError, match=r"after 0\.5 s"):
        asyncio.run(wait())
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "http://127.0.0.1:9/v1/models cannot be reached: Connection refused; "
        "waiting 0.5 s at most (--ready-check-timeout-sec)"
    )


def test_the_command_prints_a_table_and_writes_json(server, tmp_path, capsys):
    path = tmp_path / "deep" / "result.json"
    argv = ["--base-url", server.url, "--num-prompts", "4", "--random-input-len", "8", "--random-output-len", "3"]
    assert main([*argv, "--max-concurrency", "2", "--output-file", str(path), "--output-details"]) == 0
    out = capsys.readouterr().out
    assert "Time to first token" in out
    result = json.loads(path.read_text())
    assert result["completed"] == 4
    assert result["request_rate"] == "inf"
    assert [len(each["itl"]) + 1 for each in result["requests"]] == [
        each["output_tokens"] for each in result["requests"]
    ]


def test_a_terminal_sees_how_far_it_is_and_nobody_else(server, monkeypatch, capsys):
    argv = ["bench", "serve", "--base-url", server.url.removeprefix("http://"), "--num-prompts", "3"]
    assert bough(argv) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith(f"Measuring 3 requests (--num-prompts says how many)\n{server.url}")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert bough(argv) == 0
    drawn = capsys.readouterr().err
    assert drawn.startswith("\rMeasuring ")
    assert drawn.endswith(" 100 %  3/3\n")


def test_the_command_fails_if_a_request_failed(server, capsys):
    server.fail_with = "event"
    argv = ["bench", "serve", "--url", server.url, "--num-prompts", "2", "--warmup-requests", "0"]
    assert bough(argv) == 1
    assert "2 of 2 requests failed" in capsys.readouterr().err


def test_a_server_of_another_kind_is_measured_with_a_vocabulary_that_is_given(server, tmp_path):
    server.info = None
    with pytest.raises(StartupError, match="give it with --vocab-size"):
        measure(server)
    assert measure(server, {**SMALL, "vocab_size": 100})["completed"] == 6
    (tmp_path / "config.json").write_text('{"text_config": {"vocab_size": 7}}')
    server.info = {"model_path": str(tmp_path)}
    with pytest.raises(StartupError, match="give it with --vocab-size"):
        measure(server)
    (tmp_path / "config.json").write_text('{"vocab_size": 7}')
    assert measure(server)["completed"] == 6
