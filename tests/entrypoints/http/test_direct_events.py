"""Events that are written as their deltas arrive, past their request's task: the same stream all the same."""

from __future__ import annotations

import http.client
import json
import re
import socket
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.entrypoints.http.chunk_writer import ChunkWriter
from bough.ipc.coalescing import FOLD_LENGTH
from bough.ipc.messages import OutputDelta
from bough.managers import output_handler, tokenizer_manager
from bough.managers.native_output import NativeOutput
from bough.managers.req_state import Outbox, write_all
from bough.managers.request_records import RequestRecords
from tests.entrypoints.http.server import RunningServer, running_server
from tests.entrypoints.http.streams import assembled, comparable, read_events, whole_answer
from tests.entrypoints.http.test_raw_connections import request_bytes

MESSAGES = [{"role": "user", "content": "Hello"}]
ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "generate": ("/generate", {"text": "Hello", "sampling_params": {"max_new_tokens": 60, "sampling_seed": 1}}),
    "completions": ("/v1/completions", {"prompt": "Hello", "max_tokens": 60, "seed": 1}),
    "chat": ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 60, "seed": 1}),
    "messages": ("/v1/messages", {"messages": MESSAGES, "max_tokens": 60, "model": "m"}),
    "responses": ("/v1/responses", {"input": "Hello", "max_output_tokens": 60}),
    "ollama": ("/api/chat", {"messages": MESSAGES, "model": "m", "options": {"num_predict": 60}}),
}


class Written:
    """How many parts were written directly."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0

        def counted(outbox: Outbox) -> None:
            self.count += len(outbox)
            write_all(outbox)

        for module in (tokenizer_manager, output_handler):
            monkeypatch.setattr(module, "write_all", counted)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    return Written(monkeypatch)


@pytest.mark.parametrize("kind", ROUTES)
def test_most_events_take_no_turn_of_their_task(
    server: RunningServer, client: httpx.Client, written: Written, kind: str
) -> None:
    server.engine.token_delay = 0.001
    path, body = ROUTES[kind]
    with client.stream("POST", path, json={**body, "stream": True}) as response:
        answer = response.read()
    events = answer.count(b"\n" if kind == "ollama" else b"data: {")
    assert written.count > 30
    assert events > written.count


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/generate"])
def test_thoughts_calls_and_logprobs_are_told_as_in_the_whole_answer(
    thinker: RunningServer, http: httpx.Client, written: Written, path: str
) -> None:
    thinker.engine.token_delay = 0.001
    thinker.engine.says = "<think>hm, a tree</think>It is “green”, é 🌳."
    body: dict[str, Any] = {"text": "Hi", "return_logprob": True, "sampling_params": {"max_new_tokens": 300}}
    if path != "/generate":
        body = {"messages": MESSAGES, "stream_options": {"include_usage": True}}
    whole = whole_answer(http, path, {key: value for key, value in body.items() if key != "stream_options"})
    streamed = assembled(path, body, read_events(http, path, body))
    assert comparable(streamed) == comparable(whole)
    assert written.count > 10


@pytest.mark.parametrize("kind", ["generate", "completions", "chat"])
def test_a_client_that_pauses_gets_everything_and_holds_no_more_than_what_it_owes(tmp_path: Any, kind: str) -> None:
    path, body = ROUTES[kind]
    params = {**body.get("sampling_params", {}), "max_new_tokens": 400, "ignore_eos": True, "n": 6}
    more = {"sampling_params": params} if kind == "generate" else {"max_tokens": 400, "ignore_eos": True, "n": 6}
    body = {**body, **more}
    with running_server(tmp_path) as server:
        server.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        whole = httpx.post(server.url + path, json=body, timeout=20).json()
        server.engine.token_delay = 0.002
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(20)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(request_bytes(path, {**body, "stream": True}))

            def flows() -> list[Any]:
                return [each.flow for each in server.server.server_state.connections if each.flow.write_paused]

            server.wait_until(flows, timeout=10)
            states = server.run(lambda: list(server.manager.rid_to_state.values()))
            server.wait_until(lambda: all(state.finished for state in states), timeout=15)
            assert max(len(state.out_list) for state in states) <= FOLD_LENGTH
            response = http.client.HTTPResponse(connection)
            response.begin()
            blocks = response.read().decode().split("\n\n")
        assert blocks[-2:] == ["data: [DONE]", ""]
        events = [json.loads(block.removeprefix("data: ")) for block in blocks[:-2]]
        streamed = assembled(path, body, events)
        if kind != "generate":
            del whole["usage"]
        assert comparable(streamed) == comparable(whole)
        server.assert_idle()


def test_streams_behind_each_other_on_a_connection_do_not_mix(server: RunningServer, written: Written) -> None:
    server.engine.token_delay = 0.001
    kinds = [*ROUTES, *reversed(ROUTES)]
    asked = [request_bytes(path, {**body, "stream": True}) for path, body in map(ROUTES.__getitem__, kinds)]
    with server.connect() as connection:
        connection.sendall(b"".join(asked[:-1]))
        answers = [read_response(connection) for _ in asked[:-1]]
        connection.sendall(asked[-1])
        answers.append(read_response(connection))
    assert written.count > 30 * len(kinds)
    for kind, answer in zip(kinds, answers, strict=True):
        path, body = ROUTES[kind]
        alone = httpx.post(server.url + path, json={**body, "stream": True}, timeout=20)
        assert len(texts_of(answer)) > 30
        assert texts_of(answer) == texts_of(alone.content), kind


def read_response(connection: socket.socket) -> bytes:
    """The next answer; nothing is read of those behind it."""
    data = b""
    while not data.endswith(b"\r\n0\r\n\r\n"):
        data += connection.recv(1)
    head, _, chunks = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    body = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size, 16)
        assert rest[length : length + 2] == b"\r\n"
        body, chunks = body + rest[:length], rest[length + 2 :]
    return body


def texts_of(stream: bytes) -> str:
    """What the pieces of text in a stream are, in their order."""
    return "".join(re.findall(r'"(?:text|content|delta)":"((?:[^"\\]|\\.)*)"', stream.decode()))


def test_an_event_that_cannot_be_made_ends_its_stream_alone(
    server: RunningServer, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.engine.token_delay = 0.001
    next_event = NativeOutput.next_event

    def breaks(output: NativeOutput, delta: Any) -> bytes:
        if delta.completion_tokens == 7:
            raise ValueError("broken")
        return next_event(output, delta)

    monkeypatch.setattr(NativeOutput, "next_event", breaks)
    path, body = ROUTES["generate"]
    with client.stream("POST", path, json={**body, "stream": True}) as response:
        blocks = response.read().decode().split("\n\n")
    assert blocks[-2:] == ["data: [DONE]", ""]
    assert json.loads(blocks[-3].removeprefix("data: "))["error"]
    assert all("error" not in json.loads(block.removeprefix("data: ")) for block in blocks[:-3])
    server.assert_idle()
    monkeypatch.undo()
    assert whole_answer(client, path, body)["meta_info"]["completion_tokens"] == 60


def test_events_that_were_made_are_written_though_the_rest_of_their_step_fails(
    server: RunningServer, client: httpx.Client, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.engine.token_delay = 0.001
    path, body = ROUTES["completions"]
    whole = whole_answer(client, path, body)

    def breaks(records: RequestRecords) -> None:
        raise ValueError("broken")

    monkeypatch.setattr(RequestRecords, "on_step", breaks)
    events = read_events(client, path, body)
    assert written.count > 10
    assert "".join(event["choices"][0]["text"] for event in events) == whole["choices"][0]["text"]


def test_a_failure_in_mid_stream_comes_behind_what_was_written(
    server: RunningServer, client: httpx.Client, written: Written
) -> None:
    server.engine.token_delay = 0.001
    server.engine.fail_after = 20
    path, body = ROUTES["completions"]
    with client.stream("POST", path, json={**body, "stream": True}) as response:
        blocks = response.read().decode().split("\n\n")
    assert written.count > 10
    assert blocks[-2:] == ["data: [DONE]", ""]
    assert json.loads(blocks[-3].removeprefix("data: "))["error"]["message"] == "out of luck"
    assert len(blocks) > 10


def test_tokens_that_come_together_are_events_of_their_own(
    server: RunningServer, client: httpx.Client, written: Written
) -> None:
    """The engine sends each token as a message; the main process, which lags, finds many of them at once."""
    path, body = ROUTES["generate"]
    whole = whole_answer(client, path, body)

    def hold_up() -> None:
        nonlocal held_up
        state = next(iter(server.manager.rid_to_state.values()), None)
        if state is None or state.completion_tokens < 10:
            server.loop.call_soon(hold_up)
            return
        held_up = True
        for _ in range(12):
            server.engine._emit([OutputDelta(state.rid, [], "", None, state.completion_tokens, 1)])

    held_up = False
    server.engine.token_delay = 0.001
    server.run(lambda: server.loop.call_soon(hold_up))
    events = read_events(client, path, body)
    assert held_up
    assert len(events) > 60
    assert written.count > 10
    assert assembled(path, body, events)["output_ids"] == whole["output_ids"]


@pytest.mark.parametrize("kind", ["completions", "chat"])
def test_texts_are_put_between_edges_as_they_are(
    server: RunningServer, client: httpx.Client, written: Written, kind: str
) -> None:
    path, body = ROUTES[kind]
    server.engine.token_delay = 0.001
    body = {**body, "rid": '50% "off" %d', "model": "%b"}
    asked = {**body, "stream_options": {"include_usage": True}}
    events = read_events(client, path, asked)
    assert written.count > 10
    assert {(event["id"], event["model"]) for event in events} == {('50% "off" %d', "%b")}
    assert comparable(assembled(path, asked, events)) == comparable(whole_answer(client, path, body))


@given(st.binary(), st.binary(), st.lists(st.binary()))
def test_a_template_gives_the_same_chunks(start: bytes, end: bytes, middles: list[bytes]) -> None:
    cycle = SimpleNamespace(transport=None)
    writer = ChunkWriter(cycle)  # type: ignore[arg-type]
    format_, length = writer.template(start, end)
    for middle in middles:
        assert format_ % (length + len(middle), middle) == writer.frame(start + middle + end)


def test_native_json_says_the_same_as_the_answer(client: httpx.Client) -> None:
    """The events in the middle are formatted; they have the members of all others, in the same order."""
    path, body = ROUTES["generate"]
    events = read_events(client, path, {**body, "rid": '50% "off"'})
    first, middle = events[0], events[len(events) // 2]
    assert list(first) == list(middle)
    assert list(first["meta_info"]) == list(middle["meta_info"])
    assert {event["meta_info"]["id"] for event in events} == {'50% "off"'}
