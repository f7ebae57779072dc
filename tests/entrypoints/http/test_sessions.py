from __future__ import annotations

import concurrent.futures
import uuid
from array import array
from typing import Any

import httpx
import pytest

from tests.entrypoints.http.server import CONTEXT_LEN, RunningServer

PARAMS = {"max_new_tokens": 4}


@pytest.fixture
def session(client: httpx.Client):
    session_id = open_session(client)
    yield session_id
    client.post("/close_session", json={"session_id": session_id})


def open_session(client: httpx.Client, **fields: Any) -> str:
    response = client.post("/open_session", json={"capacity_of_str_len": 0, **fields})
    assert response.status_code == 200, response.text
    return response.json()


def turn(client: httpx.Client, session: str, *, after: str | None = None, **body: Any) -> httpx.Response:
    options = {name: body.pop(name) for name in ("offset", "replace", "drop_previous_output") if name in body}
    session_params = {"id": session, "rid": after, **options}
    return client.post("/generate", json={"sampling_params": PARAMS, "session_params": session_params, **body})


def last_prompt(server: RunningServer) -> list[int]:
    return array("i", server.engine.received[-1].input_ids).tolist()


def test_a_turn_goes_on_from_prompt_and_output_of_another(
    server: RunningServer, client: httpx.Client, session: str
) -> None:
    first = turn(client, session, input_ids=[5, 6], rid="a-" + session).json()
    second = turn(client, session, text="Hi", after=first["meta_info"]["id"], return_prompt_token_ids=True).json()
    expected = [5, 6, *first["output_ids"], *server.tokenizer.encode("Hi").tolist()]
    assert last_prompt(server) == second["prompt_token_ids"] == expected
    assert second["meta_info"]["prompt_tokens"] == len(expected)
    dropped = turn(client, session, input_ids=[], after=second["meta_info"]["id"], drop_previous_output=True, offset=-1)
    assert dropped.status_code == 200
    assert last_prompt(server) == expected[:-1]


def test_streams_and_batches_belong_to_sessions_too(server: RunningServer, client: httpx.Client, session: str) -> None:
    rid = uuid.uuid4().hex
    assert turn(client, session, input_ids=[5], rid=rid, stream=True).text.endswith("data: [DONE]\n\n")
    answers = turn(client, session, text=["a", "b"], after=rid).json()
    assert [answer["meta_info"]["prompt_tokens"] for answer in answers] == [1 + 4 + 1] * 2
    body = {"text": ["a", "b"], "session_params": [{"id": session, "rid": rid}, None], "sampling_params": PARAMS}
    counts = [answer["meta_info"]["prompt_tokens"] for answer in client.post("/generate", json=body).json()]
    assert counts == [6, 1]


def test_closing_aborts_what_runs(server: RunningServer, client: httpx.Client) -> None:
    session = open_session(client)
    server.run(server.engine.gate.clear)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        body = {"text": "Hi", "session_params": {"id": session}, "sampling_params": {"max_new_tokens": 400}}
        running = pool.submit(httpx.post, f"{server.url}/generate", json=body)
        server.wait_until(lambda: server.engine.running)
        assert client.post("/close_session", json={"session_id": session}).status_code == 200
        assert running.result().json()["meta_info"]["finish_reason"]["type"] == "abort"
    refused = turn(client, session, text="Hi")
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "unknown_session_id"
    assert client.post("/close_session", json={"session_id": session}).status_code == 200


def test_turn_whose_client_leaves_is_forgotten(server: RunningServer, client: httpx.Client, session: str) -> None:
    server.engine.token_delay = 0.005
    rid = uuid.uuid4().hex
    body = {"text": "Hi", "rid": rid, "stream": True, "sampling_params": {"max_new_tokens": 400}}
    with client.stream("POST", "/generate", json={**body, "session_params": {"id": session}}) as response:
        next(response.iter_bytes())
    server.wait_until(lambda: not server.manager.rid_to_state)
    assert turn(client, session, text="Hi", after=rid).json()["error"]["code"] == "unknown_request_id"
    assert server.manager.sessions.num_tokens == 0


def test_failed_and_refused_turns_are_forgotten(server: RunningServer, client: httpx.Client, session: str) -> None:
    too_long = turn(client, session, input_ids=[1] * (CONTEXT_LEN + 9))
    assert too_long.json()["error"]["code"] == "context_length_exceeded"
    assert turn(client, session, input_ids=[]).status_code == 400
    assert turn(client, session, input_ids=[100_000]).status_code == 400
    server.engine.fail_after = 2
    assert turn(client, session, input_ids=[1]).status_code == 500
    assert server.manager.sessions.num_tokens == 0


def test_opening(client: httpx.Client, session: str) -> None:
    assert uuid.UUID(session)
    named = open_session(client, session_id="my session", streaming=True, timeout=5)
    assert named == "my session"
    for body in (
        {},
        {"capacity_of_str_len": 0, "session_id": "my session"},
        {"capacity_of_str_len": -1},
        {"capacity_of_str_len": 0, "timeout": 0},
        {"capacity_of_str_len": 0, "timeout": 1e9},
    ):
        assert client.post("/open_session", json=body).status_code == 400
    client.post("/close_session", json={"session_id": named})


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"session_params": {"id": ""}}, "session_params"),
        ({"session_params": {}}, "session_params"),
        ({"session_params": "s"}, "session_params"),
        ({"session_params": {"id": "s", "nonsense": 1}}, "session_params"),
        ({"session_params": {"id": "s", "offset": 2**40}}, "session_params.offset"),
        ({"session_params": {"id": "s", "offset": 1}}, "session_params"),
        ({"session_params": {"id": "s"}, "sampling_params": {"n": 2}}, "session_params"),
        ({"session_params": [{"id": "s"}] * 2}, "session_params"),
    ],
)
def test_bad_session_params_are_refused(client: httpx.Client, fields: dict[str, Any], param: str) -> None:
    response = client.post("/generate", json={"text": "Hi", **fields})
    assert response.status_code == 400
    assert response.json()["error"]["param"].startswith(param)


@pytest.mark.parametrize("stream", [False, True])
def test_conversations_and_completions_go_on_in_a_session(
    client: httpx.Client, server: RunningServer, *, stream: bool
) -> None:
    session = client.post("/open_session", json={"capacity_of_str_len": 0}).json()
    first = {
        "messages": [{"role": "user", "content": "Who?"}],
        "max_tokens": 3,
        "rid": f"one-{stream}",
        "stream": stream,
    }
    assert client.post("/v1/chat/completions", json={**first, "session_params": {"id": session}}).status_code == 200
    assert server.tokenizer is not None
    context = list(array("i", server.engine.received[-1].input_ids))
    params = {"id": session, "rid": f"one-{stream}", "offset": None}
    body = {
        "prompt": "And then?",
        "max_tokens": 2,
        "rid": f"two-{stream}",
        "session_params": params,
        "return_token_ids": True,
    }
    answer = client.post("/v1/completions", json=body)
    assert answer.status_code == 200, answer.text
    prompt = list(array("i", server.engine.received[-1].input_ids))
    assert prompt[: len(context)] == context
    assert len(prompt) > len(context) + 3
    assert answer.json()["choices"][0]["prompt_token_ids"] == prompt
    client.post("/close_session", json={"session_id": session})


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "n": 2}),
        ("/v1/completions", {"prompt": ["a", "b"]}),
        ("/v1/completions", {"prompt": "a", "best_of": 2}),
    ],
)
def test_a_turn_has_one_output(client: httpx.Client, path: str, fields: dict[str, Any]) -> None:
    error = client.post(path, json={**fields, "session_params": {"id": "x"}}).json()["error"]
    assert error["param"] == "session_params"
    error = client.post(path, json={**fields, "n": 1, "prompt": "a", "session_params": {"id": "x", "ofset": 1}}).json()[
        "error"
    ]
    assert error["code"] in ("invalid_value", "unknown_parameter")


@pytest.mark.parametrize("ending", ["length", "stop"])
def test_a_chat_in_a_session_is_what_the_template_makes_of_the_whole(
    server: RunningServer, client: httpx.Client, session: str, ending: str
) -> None:
    assert server.tokenizer is not None
    server.engine.says = "Four<|im_end|>" if ending == "stop" else "Four or more"
    stop = server.tokenizer.encode("<|im_end|>").tolist()
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Count."}, {"role": "user", "content": "2 + 2?"}]
    new, params = messages, {"id": session}
    context: list[int] = []
    for number in range(3):
        rid = f"{session}-{number}"
        body = {"messages": new, "max_tokens": 8, "rid": rid, "session_params": params, "return_token_ids": True}
        body["stop_token_ids"] = stop
        choice = client.post("/v1/chat/completions", json=body).json()["choices"][0]
        assert choice["finish_reason"] == ending
        whole = client.post("/tokenize", json={"messages": messages}).json()["tokens"]
        assert choice["prompt_token_ids"] == last_prompt(server) == whole
        assert whole[: len(context)] == context
        context = whole + choice["token_ids"]
        new, params = [{"role": "user", "content": f"And {number}?"}], {"id": session, "rid": rid}
        messages = [*messages, {"role": "assistant", "content": choice["message"]["content"]}, *new]


def test_a_dropped_answer_can_be_given_by_the_client(server: RunningServer, client: httpx.Client, session: str) -> None:
    question = {"role": "user", "content": "2 + 2?"}
    answer, thanks = {"role": "assistant", "content": "Four"}, {"role": "user", "content": "Thanks"}
    rid = "first-" + session
    body = {"messages": [question], "max_tokens": 3, "rid": rid, "session_params": {"id": session}}
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    params = {"id": session, "rid": rid, "drop_previous_output": True}
    body = {"messages": [answer, thanks], "max_tokens": 3, "session_params": params}
    assert client.post("/v1/chat/completions", json=body).status_code == 200
    whole = client.post("/tokenize", json={"messages": [question, answer, thanks]}).json()["tokens"]
    assert last_prompt(server) == whole


def test_an_offset_beyond_the_context_is_refused(client: httpx.Client, session: str) -> None:
    rid = "a-" + session
    assert turn(client, session, input_ids=[5, 6], rid=rid).status_code == 200
    for offset in (7, -7):
        refused = turn(client, session, input_ids=[5], after=rid, offset=offset)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "session_params.offset"
    assert turn(client, session, input_ids=[5], after=rid, offset=-6).status_code == 200


def test_a_replacement_that_is_refused_changes_nothing(
    server: RunningServer, client: httpx.Client, session: str
) -> None:
    first, second = f"a-{session}", f"b-{session}"
    turn(client, session, input_ids=[5], rid=first)
    turn(client, session, input_ids=[6], rid=second, after=first)
    for after in (first, None):
        refused = turn(client, session, input_ids=[7] * 2 * CONTEXT_LEN, after=after, replace=True)
        assert refused.status_code == 400
    assert turn(client, session, input_ids=[8], after=second).status_code == 200
