from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from bough import Runtime, RuntimeEndpoint
from bough.entrypoints.http.ollama.models import parameter_size
from bough.errors import BadRequest, BoughError, ConfigError, RequestFailed, StartupError
from tests.bench.fake_server import fake_server
from tests.entrypoints.leftovers import children, eventually, is_running, own_resources

GREEDY = {"temperature": 0.0, "max_new_tokens": 6, "ignore_eos": True}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime() as made:
        yield made


def test_generate_gives_the_answer_as_json(runtime):
    answer = json.loads(runtime.generate("A tree", GREEDY))
    assert answer["meta_info"]["completion_tokens"] == 6
    answers = json.loads(runtime.generate(["A tree", "A hedgehog"], GREEDY, return_logprob=True, top_logprobs_num=2))
    assert answers[0]["text"] == answer["text"]
    assert len(answers[1]["meta_info"]["output_top_logprobs"][0]) == 2


def test_async_generate_yields_text_as_it_comes(runtime):
    async def collect() -> list[str]:
        return [text async for text in runtime.async_generate("A tree", GREEDY)]

    pieces = asyncio.run(collect())
    assert len(pieces) > 1
    assert "".join(pieces) == json.loads(runtime.generate("A tree", GREEDY))["text"]


def test_leaving_a_stream_early_ends_the_request(runtime):
    def running() -> int:
        return runtime.get_server_info()["internal_states"][0]["num_running_reqs"]

    async def leave() -> None:
        stream = runtime.async_generate("A tree", {**GREEDY, "max_new_tokens": 3000})
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(leave())
    assert eventually(lambda: running() == 0, 20)

    async def cancel() -> None:
        async def consume() -> None:
            async for _ in runtime.async_generate("A tree", {**GREEDY, "max_new_tokens": 3000}):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert eventually(lambda: running() == 0, 20)


def test_everything_else_of_the_endpoint(runtime):
    assert runtime.generate_url == f"{runtime.url}/generate"
    assert isinstance(runtime.endpoint, RuntimeEndpoint)
    assert runtime.endpoint.get_model_info()["is_generation"] is True
    info = runtime.get_server_info()
    assert info["max_total_num_tokens"] > 0
    assert info["num_parameters"] > info["vocab_size"]
    assert info["num_continuous_decode_steps"] >= 1
    shown = httpx.post(f"{runtime.url}/api/show", json={"model": "any"}).json()
    assert shown["model_info"]["general.parameter_count"] == info["num_parameters"]
    assert shown["details"]["parameter_size"] == parameter_size(info["num_parameters"])
    assert runtime.endpoint.generate(input_ids=[5], sampling_params=GREEDY)["meta_info"]["prompt_tokens"] == 1
    runtime.flush_cache()
    ids = list(runtime.get_tokenizer().encode("A tree"))
    assert runtime.endpoint.generate(text="A tree", sampling_params=GREEDY)["meta_info"]["prompt_tokens"] == len(ids)
    assert httpx.get(f"{runtime.url}/ready").status_code == 200


def test_a_prefix_can_be_cached_before_it_is_needed(runtime):
    prefix = "The birch by the pond is " * 8
    runtime.flush_cache()
    runtime.cache_prefix(prefix)
    answer = json.loads(runtime.generate(f"{prefix}old", {"max_new_tokens": 1}))
    assert answer["meta_info"]["cached_tokens"] > 16


def test_what_is_wrong_is_said(runtime):
    with pytest.raises(BadRequest, match="top_p"):
        runtime.generate("x", {"top_p": 2.0})
    with pytest.raises(BadRequest, match="neither embeddings nor"):
        runtime.encode("x")
    for url in ("localhost:1", "http://localhost:99999", "http://localhost:one", "http://[::1"):
        with pytest.raises(BadRequest, match="not the URL of a server"):
            RuntimeEndpoint(url)
    with pytest.raises(RequestFailed, match="no answer from"):
        RuntimeEndpoint(f"http://{'a' * 64}.example").get_model_info()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(RequestFailed, match="no answer from"):
            RuntimeEndpoint(f"http://127.0.0.1:{port}").generate(text="x")
    with pytest.raises(ConfigError, match="no such directory"):
        Runtime(model_path="/no/such/model")
    with pytest.raises(ConfigError, match="Runtime has none to show"):
        Runtime(ssl_certfile="server.pem", ssl_ca_certs="ca.pem")


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[RuntimeEndpoint]:
    """A server that answers one request with these bytes and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield RuntimeEndpoint(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join(5)


def test_stream_is_read_to_its_end_where_the_connection_ends_with_it():
    """Proxies answer like that."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    with answering(head + b'data: {"text": "a"}\n\ndata: {"text": "ab"}\n\ndata: [DONE]\n\n') as endpoint:
        assert [event["text"] for event in endpoint.stream(text="x")] == ["a", "ab"]
    with answering(head + b'data: {"text": "a"}\n\n') as endpoint:
        events = endpoint.stream(text="x")
        assert next(events) == {"text": "a"}
        events.close()


def test_answer_that_is_no_json_is_a_failure():
    with (
        answering(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n<!DOCTYPE") as endpoint,
        pytest.raises(RequestFailed, match=r"no JSON from http://.*/model_info, status 200"),
    ):
        endpoint.get_model_info()


def test_busy_port_is_passed_over_and_nothing_is_left_after_shutdown(runtime):
    before = own_resources()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        second = Runtime(port=port, load_format="dummy")
        pids = [second.pid, *children(second.pid)]
        try:
            assert len(pids) == 3
            assert port < int(second.url.rsplit(":", 1)[1]) < port + 100
            errors: list[BoughError] = []
            waiting = threading.Thread(target=_generate_for_long, args=(second, errors))
            waiting.start()
            time.sleep(1.0)
        finally:
            second.shutdown()
        waiting.join(5)
        assert len(errors) == 1, "it is not waited for"
    second.shutdown()
    assert not any(map(is_running, pids))
    assert own_resources() == before


def _generate_for_long(runtime: Runtime, errors: list[BoughError]) -> None:
    try:
        runtime.generate("x", {**GREEDY, "max_new_tokens": 4000})
    except BoughError as error:
        errors.append(error)


def test_server_that_takes_too_long_is_given_up():
    before = own_resources()
    with pytest.raises(StartupError, match="did not start within"):
        Runtime(launch_timeout=0.1)
    assert own_resources() == before


SCRIPT = """
import time
from bough import Runtime
runtime = Runtime(load_format="dummy")
print(runtime.pid, flush=True)
time.sleep(60)
"""


def test_server_ends_with_its_host():
    host = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    pids = [pid, *children(pid)]
    assert len(pids) == 3
    os.kill(host.pid, signal.SIGKILL)
    host.communicate()
    assert eventually(lambda: not any(map(is_running, pids)), 10)


def test_who_refuses_in_other_words_than_ours_is_named():
    with fake_server() as server, pytest.raises(BadRequest) as caught:
        RuntimeEndpoint(server.url).get_model_info()
    assert caught.value.message == f"{server.url}/model_info answered with status 404: 404: Not Found"
