from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from bough.cli import main
from bough.cli_commands.chat import ChatServer, Conversation
from bough.errors import BadRequest, RequestFailed
from tests.bench.fake_server import fake_server


@pytest.fixture
def server():
    with fake_server() as running:
        yield running


@pytest.fixture
def conversation(server):
    return Conversation(ChatServer(server.url), "fake", system="be brief", fields={"max_tokens": 3})


def test_an_answer_comes_in_pieces_and_is_remembered(server, conversation):
    assert list(conversation.ask("hi")) == ["w0 ", "w1 ", "w2 "]
    assert conversation.messages == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "w0 w1 w2 "},
    ]
    list(conversation.ask("more"))
    path, body = server.requests[-1]
    assert path == "/v1/chat/completions"
    assert [message["content"] for message in body["messages"]] == ["be brief", "hi", "w0 w1 w2 ", "more"]
    assert (body["model"], body["max_tokens"], body["stream"]) == ("fake", 3, True)


def test_stopping_an_answer_hangs_up_and_keeps_what_was_said(server, conversation):
    server.endless = True
    pieces = conversation.ask("hi")
    assert [next(pieces) for _ in range(5)] == ["w0 ", "w1 ", "w2 ", "w0 ", "w0 "]
    pieces.close()
    assert conversation.messages[-1] == {"role": "assistant", "content": "w0 w1 w2 w0 w0 "}
    deadline = time.monotonic() + 5
    while server.hung_up == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.hung_up == 1


def test_forgetting_keeps_the_system_message(conversation):
    list(conversation.ask("hi"))
    conversation.reset()
    assert conversation.messages == [{"role": "system", "content": "be brief"}]
    conversation.reset("be long")
    assert conversation.messages == [{"role": "system", "content": "be long"}]


def test_a_refused_question_leaves_no_trace(server, conversation):
    server.fail_with = 400
    with pytest.raises(BadRequest, match=r"the server says: no \(status 400\)"):
        list(conversation.ask("hi"))
    assert conversation.messages == [{"role": "system", "content": "be brief"}]


@pytest.mark.parametrize(
    ("failure", "message"), [(500, "status 500"), ("event", "it broke"), ("hang-up", "no answer from|in the middle")]
)
def test_a_failing_server_is_an_error(server, conversation, failure, message):
    server.fail_with = failure
    with pytest.raises(RequestFailed, match=message):
        list(conversation.ask("hi"))


def say(monkeypatch, *lines: str | BaseException, prompts: list[str] | None = None) -> None:
    left = iter(lines)

    def next_line(prompt: str = "") -> str:
        if prompts is not None:
            prompts.append(prompt)
        line = next(left, EOFError())
        if isinstance(line, BaseException):
            raise line
        return line

    monkeypatch.setattr("builtins.input", next_line)


def test_a_chat_in_the_terminal(server, monkeypatch, capsys):
    say(monkeypatch, "hi", "", "/system be odd", "again", "/rest", "/help", "/reset", "/exit", "never asked")
    assert main(["chat", "--url", server.url, "--max-tokens", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Talking with fake.")
    assert out.count("w0 w1 \n") == 2
    assert "no such command; did you mean '/reset'?" in out
    assert "Ctrl-C stops an answer." in out
    assert "(forgotten)" in out
    asked = [[m["content"] for m in body["messages"]] for path, body in server.requests]
    assert asked == [["hi"], ["be odd", "again"]]


@pytest.mark.parametrize(("in_terminal", "prompt"), [(True, "> "), (False, "")])
def test_only_a_terminal_gets_prompts(server, monkeypatch, in_terminal, prompt):
    prompts: list[str] = []
    say(monkeypatch, "hi", prompts=prompts)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: in_terminal))
    assert main(["chat", "--url", server.url]) == 0
    assert prompts == [prompt, prompt]


def test_ctrl_c_stops_the_answer_and_not_the_chat(server, monkeypatch, capsys):
    server.endless = True
    written = 0
    say(monkeypatch, "hi", KeyboardInterrupt())
    real_print = print

    def print_until_interrupted(*args, **kwargs):
        nonlocal written
        if kwargs.get("end") == "":
            written += 1
            if written == 4:
                raise KeyboardInterrupt
        real_print(*args, **kwargs)

    monkeypatch.setattr("builtins.print", print_until_interrupted)
    assert main(["chat", "--url", server.url]) == 0
    assert "w0 w1 w2  (stopped)" in capsys.readouterr().out


def test_the_options_of_a_server_are_refused_for_one_that_runs(server, capsys):
    assert main(["chat", "--url", server.url, "--page-size", "16"]) == 2
    assert "page_size cannot be set for a server that runs already (--url)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("localhost:30000", 2, "--url must look like http://host:port, got localhost:30000"),
        ("http://127.0.0.1:9", 1, "no answer from http://127.0.0.1:9: [Errno 111] Connection refused"),
    ],
)
def test_a_server_that_is_not_there(url, status, message, capsys):
    assert main(["chat", "--url", url]) == status
    assert message in capsys.readouterr().err
