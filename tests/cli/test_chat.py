from __future__ import annotations

import codecs
import json
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bough.cli import main
from bough.cli_commands import chat
from bough.cli_commands.chat import ChatServer, Conversation, Piece
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
    assert list(conversation.ask("hi")) == [Piece("w0 "), Piece("w1 "), Piece("w2 ")]
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
    assert "".join(next(pieces).text for _ in range(5)) == "w0 w1 w2 w0 w0 "
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
    with pytest.raises(BadRequest, match=r"^no$"):
        list(conversation.ask("hi"))
    assert conversation.messages == [{"role": "system", "content": "be brief"}]


@pytest.mark.parametrize(
    ("failure", "message"), [(500, "^no$"), ("event", "it broke"), ("hang-up", "no answer from|in the middle")]
)
def test_a_failing_server_is_an_error(server, conversation, failure, message):
    server.fail_with = failure
    with pytest.raises(RequestFailed, match=message):
        list(conversation.ask("hi"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"error": "overloaded"}', "^overloaded$"),
        ('{"error": {"code": 3}}', "^{'code': 3}$"),
        ("{}", "does not answer as OpenAI's interface does: KeyError: 'choices'"),
        ('{"choices": null}', "does not answer as"),
        ('{"choices": [{"delta": null}]}', "does not answer as"),
        ('{"choices": [{"delta": {"content": 3}}]}', "does not answer as .* content is no text"),
        ("[]", "does not answer as"),
        ("<html>", "broke off"),
    ],
)
def test_an_event_of_an_unfamiliar_form_is_a_failure(server, conversation, data, message):
    list(conversation.ask("hi"))
    before = list(conversation.messages)
    server.chat_data = [data]
    with pytest.raises(RequestFailed, match=message):
        list(conversation.ask("more"))
    assert conversation.messages == before


@pytest.mark.parametrize("answer", ['{"data": null}', '{"data": []}', '{"data": [{}]}', "[]", "<html>"])
def test_a_list_of_models_of_an_unfamiliar_form_is_told(server, answer, capsys):
    server.models_answer = answer
    assert main(["chat", "--url", server.url]) == 1
    reason = f"no JSON from {server.url}" if answer == "<html>" else f"{server.url} does not answer as OpenAI's"
    assert f"error: {reason}" in capsys.readouterr().err


def sit_at(monkeypatch, in_terminal: bool = True) -> None:
    """Make standard input a terminal at which nobody types, or none."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: in_terminal))
    monkeypatch.setattr(chat, "_is_input_waiting", lambda: False)


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
    sit_at(monkeypatch)
    say(monkeypatch, "hi", "", "/system be odd", "again", "/rest", "/help", "/reset", "/exit", "never asked")
    assert main(["chat", "--history-file", "none", "--url", server.url, "--max-tokens", "2"]) == 0
    captured = capsys.readouterr()
    out, notices = captured.out, captured.err
    assert out.count("w0 w1 \n") == 2
    assert "no such command; did you mean '/reset'?" in notices
    assert "Ctrl-C stops an answer." in notices
    assert "(forgotten)" in notices
    asked = [[m["content"] for m in body["messages"]] for path, body in server.requests]
    assert asked == [["hi"], ["be odd", "again"]]


def test_the_model_thinks_if_it_is_told_to(server, monkeypatch, capsys):
    sit_at(monkeypatch)
    say(monkeypatch, "one", "/think off", "two", "/think", "/think on", "three")
    assert main(["chat", "--history-file", "none", "--url", server.url]) == 0
    say(monkeypatch, "four")
    assert main(["chat", "--history-file", "none", "--url", server.url, "--thinking", "on"]) == 0
    assert [body.get("thinking") for _, body in server.requests if "messages" in body] == [None, False, True, True]
    notices = capsys.readouterr().err
    assert "(thinking is off)" in notices
    assert "(thinking is off; say /think on or /think off)" in notices


def test_commands_without_their_argument_say_what_they_need(server, monkeypatch, capsys):
    sit_at(monkeypatch)
    say(monkeypatch, "/think", "/think perhaps", "/save", "/system")
    assert main(["chat", "--history-file", "none", "--base-url", server.url]) == 0
    assert [line.removeprefix("> ") for line in capsys.readouterr().err.splitlines()[1:5]] == [
        *2 * ["(thinking is as the model has it; say /think on or /think off)"],
        "(/save needs the name of a file: /save FILE)",
        "(/system needs a text: /system TEXT)",
    ]


def test_a_file_that_cannot_be_written_does_not_end_the_chat(server, monkeypatch, capsys):
    sit_at(monkeypatch)
    say(monkeypatch, "/save ~nosuchuser/chat.json", "/help")
    assert main(["chat", "--history-file", "none", "--url", server.url]) == 0
    notices = capsys.readouterr().err
    assert "cannot write ~nosuchuser/chat.json: No such file or directory" in notices
    assert "/save FILE" in notices


@pytest.mark.parametrize("in_terminal", [True, False])
def test_only_a_terminal_gets_prompts(server, monkeypatch, capsys, in_terminal):
    prompts: list[str] = []
    say(monkeypatch, "hi", prompts=prompts)
    sit_at(monkeypatch, in_terminal)
    assert main(["chat", "--url", server.url, "--history-file", "none"]) == 0
    assert prompts == ["", ""], "standard output, where input() writes them, is none"
    assert capsys.readouterr().err.count("> ") == (2 if in_terminal else 0)


@pytest.mark.parametrize(
    ("in_terminal", "status", "written_at_last"), [(True, 0, "w0 w1 w2  (stopped)\n"), (False, 130, "w0 w1 w2 \n")]
)
def test_ctrl_c_stops_the_answer_and_the_chat_only_behind_a_pipe(
    server, monkeypatch, capsys, in_terminal, status, written_at_last
):
    server.endless = True
    written = 0
    say(monkeypatch, "hi")
    sit_at(monkeypatch, in_terminal)
    real_print = print

    def print_until_interrupted(*args, **kwargs):
        nonlocal written
        if kwargs.get("end") == "" and "file" not in kwargs:
            written += 1
            if written == 4:
                raise KeyboardInterrupt
        real_print(*args, **kwargs)

    monkeypatch.setattr("builtins.print", print_until_interrupted)
    assert main(["chat", "--url", server.url, "--history-file", "none"]) == status
    assert capsys.readouterr().out.endswith(written_at_last)


@pytest.mark.parametrize(("in_terminal", "status"), [(True, 0), (False, 1)])
def test_a_refused_question_is_in_the_status_behind_a_pipe(server, monkeypatch, capsys, in_terminal, status):
    server.fail_with = 429
    sit_at(monkeypatch, in_terminal)
    say(monkeypatch, "one", "two")
    assert main(["chat", "--url", server.url, "--history-file", "none"]) == status
    err = capsys.readouterr().err
    assert err.count("no\n") == 2
    assert ("> " in err) == in_terminal


@pytest.mark.parametrize(("in_terminal", "status", "asked"), [(True, 0, 1), (False, 2, 0)])
def test_input_that_is_no_text_is_told(server, monkeypatch, capsys, in_terminal, status, asked):
    sit_at(monkeypatch, in_terminal)
    say(monkeypatch, UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "hi")
    assert main(["chat", "--url", server.url, "--history-file", "none"]) == status
    captured = capsys.readouterr()
    assert "cannot be read: 'utf-8' codec can't decode byte 0xff" in captured.out + captured.err
    assert len(server.requests) == asked


def test_what_cannot_be_shown_is_spelled_out(server):
    server.chat_deltas = [{"content": "é"}]
    done = subprocess.run(
        [sys.executable, "-m", "bough", "chat", "--url", server.url],
        input="hi\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\\xe9\n", "")


def test_thoughts_are_no_part_of_the_conversation(server, conversation):
    server.chat_deltas = [{"reasoning_content": "hm"}, {"content": "Yes."}]
    assert list(conversation.ask("hi")) == [Piece("hm", is_thought=True), Piece("Yes.")]
    assert conversation.messages[-1] == {"role": "assistant", "content": "Yes."}


def test_a_new_answer_replaces_the_last_one(server, conversation):
    list(conversation.ask("hi"))
    server.chat_deltas = [{"content": "Hello."}]
    list(conversation.ask("hi", anew=True))
    assert [message["content"] for message in server.requests[-1][1]["messages"]] == ["be brief", "hi"]
    assert [message["content"] for message in conversation.messages] == ["be brief", "hi", "Hello."]


@pytest.mark.parametrize("command", ["/retry", "/undo"])
def test_the_last_question_may_have_no_answer(server, monkeypatch, command):
    sit_at(monkeypatch)

    def lines():
        yield "one"
        server.fail_with = 500
        yield "two"
        server.fail_with = None
        yield command
        yield "/retry"
        raise EOFError

    typed = lines()
    monkeypatch.setattr("builtins.input", lambda prompt: next(typed))
    assert main(["chat", "--url", server.url, "--max-tokens", "1", "--history-file", "none"]) == 0
    asked = [[message["content"] for message in body["messages"]] for _, body in server.requests]
    after = {
        "/retry": [["one", "w0 ", "two"], ["one", "w0 ", "two"]],
        "/undo": [["one"]],
    }
    assert asked == [["one"], ["one", "w0 ", "two"], *after[command]]


def test_behind_a_pipe_every_line_is_a_question(server, monkeypatch):
    sit_at(monkeypatch, in_terminal=False)
    say(monkeypatch, "/exit", '"""')
    assert main(["chat", "--url", server.url]) == 0
    assert [body["messages"][-1]["content"] for _, body in server.requests] == ["/exit", '"""']


def test_bytes_that_are_no_text_are_not_sent(server, monkeypatch, capsys):
    sit_at(monkeypatch, in_terminal=False)
    say(monkeypatch, "a\udcff")
    assert main(["chat", "--url", server.url]) == 2
    assert "standard input cannot be read: 'utf-8' codec can't encode" in capsys.readouterr().err
    assert server.requests == []


def test_whatever_was_said_can_be_saved(tmp_path):
    messages = [{"role": "assistant", "content": "木 \ud800"}]
    assert chat._save(messages, tmp_path / "chat.json") == f"(1 messages in {tmp_path}/chat.json)"
    assert json.loads((tmp_path / "chat.json").read_bytes()) == {"messages": messages}


def test_a_conversation_that_cannot_be_saved_leaves_no_half_of_it(tmp_path, monkeypatch):
    assert chat._save([], tmp_path / "a\0b") == f"cannot write {tmp_path}/a\\x00b: embedded null byte"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, limit[1]))
        said = chat._save([], tmp_path / "chat.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert said == f"cannot write {tmp_path}/chat.json: File too large"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [400, 500, "hang-up"])
def test_an_answer_stays_where_no_new_one_comes(server, conversation, failure):
    list(conversation.ask("hi"))
    before = list(conversation.messages)
    server.fail_with, server.chat_deltas = failure, []
    with pytest.raises((BadRequest, RequestFailed)):
        list(conversation.ask("hi", anew=True))
    assert conversation.messages == before


_PASTE_MODE = re.compile("\x1b\\[\\?2004(?:h|l\r)")
"""What readline asks a terminal for around a line."""


class Terminal:
    """A pseudo-terminal with a chat in it."""

    def __init__(self, url: str, home: Path, *flags: str, stdout: int | None = None, **environment: str) -> None:
        self._end, child = pty.openpty()
        self.seen = ""
        self._decode = codecs.getincrementaldecoder("utf-8")().decode  # a read may end within a character
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bough.cli", "chat", "--url", url, *flags],
            stdin=child,
            stdout=child if stdout is None else stdout,
            stderr=child,
            env={**os.environ, "XDG_STATE_HOME": str(home), "TERM": "dumb", **environment},
            start_new_session=True,
            # Whoever starts tests in the background of a shell has it ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(child)

    def wait_for(self, text: str, *, interrupting: bool = False) -> str:
        """What has been written since the last call, up to and with ``text``.

        ``interrupting`` sends SIGINT until it comes: between two of readline's looks at the terminal a signal is only
        noticed with the next key.
        """
        deadline = time.monotonic() + 20
        while text not in self.seen:
            if time.monotonic() > deadline:
                self.process.kill()
                pytest.fail(f"only this was written: {self.seen!r}")
            if interrupting:
                self.process.send_signal(signal.SIGINT)
                time.sleep(0.3)
            if select.select([self._end], [], [], 0.1)[0]:
                self.seen += self._decode(os.read(self._end, 65536)).replace("\r\n", "\n")
                self.seen = _PASTE_MODE.sub("", self.seen)
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def leave(self) -> int:
        self.type("/exit\n")
        status = self.process.wait(20)
        os.close(self._end)
        return status


def test_a_terminal_has_commands_and_several_lines(server, tmp_path):
    terminal = Terminal(server.url, tmp_path, "--max-tokens", "1")
    terminal.wait_for("Talking with fake. /help lists the commands.\n> ")
    terminal.type('"""one\n')
    terminal.wait_for("… ")
    terminal.type('two"""\n')
    terminal.wait_for("w0 \n> ")
    terminal.type("three \\\n")
    terminal.wait_for("… ")
    terminal.type("four\n")
    terminal.wait_for("w0 \n> ")
    terminal.type("/undo\n")
    terminal.wait_for("(forgotten)\n> ")
    terminal.type("/retry\n")
    terminal.wait_for("w0 \n> ")
    server.fail_with = 400
    terminal.type("/retry\n")
    terminal.wait_for("no\n> ")
    terminal.type(f"/save {tmp_path}/chat.json\n")
    terminal.wait_for(f"(2 messages in {tmp_path}/chat.json)")
    terminal.type(f"/save {tmp_path}/chat.json\n")
    terminal.wait_for("File exists\n> ")
    terminal.type("half a question")
    terminal.wait_for("half a question")
    terminal.wait_for("(/exit or Ctrl-D leaves)\n> ", interrupting=True)
    assert terminal.leave() == 0
    asked = [[message["content"] for message in body["messages"]] for _, body in server.requests]
    assert asked == [["one\ntwo"], ["one\ntwo", "w0 ", "three \nfour"], ["one\ntwo"], ["one\ntwo"]]
    saved = json.loads((tmp_path / "chat.json").read_text())["messages"]
    assert saved == [{"role": "user", "content": "one\ntwo"}, {"role": "assistant", "content": "w0 "}]


def test_a_terminal_shows_markdown_and_thoughts_and_obeys_no_answer(server, tmp_path):
    server.chat_deltas = [
        {"reasoning_content": "hm"},
        *({"content": piece} for piece in ("A **ta", "ll** o", "ak\x1b[2J")),
    ]
    terminal = Terminal(server.url, tmp_path, TERM="vt100", NO_COLOR="")
    terminal.wait_for("> ")
    terminal.type("hi\n")
    assert "\x1b[2mhm\x1b[0m\nA \x1b[1mtall\x1b[0m oak\\x1b[2J\n" in terminal.wait_for("\n> ")
    assert terminal.leave() == 0


@pytest.mark.parametrize(
    ("flags", "environment", "answer"),
    [
        (["--plain"], {"TERM": "vt100"}, "hm\nA **tall** `oak`\n"),
        ([], {"TERM": "dumb"}, "hm\nA **tall** `oak`\n"),
        (
            [],
            {"TERM": "vt100", "NO_COLOR": "1"},
            "\x1b[2mhm\x1b[0m\nA \x1b[1mtall\x1b[0m \x1b[4moak\x1b[0m\n",
        ),
    ],
)
def test_styles_are_left_out_where_they_are_not_wanted(server, tmp_path, flags, environment, answer):
    server.chat_deltas = [{"reasoning_content": "hm"}, {"content": "A **tall** `oak`"}]
    terminal = Terminal(server.url, tmp_path, *flags, **environment)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    seen = terminal.wait_for("oak") + terminal.wait_for("\n")
    assert answer in seen + terminal.wait_for("> ")
    assert terminal.leave() == 0


def test_only_answers_go_to_a_file(server, tmp_path):
    with (tmp_path / "out.txt").open("wb") as out:
        terminal = Terminal(server.url, tmp_path, stdout=out.fileno())
        terminal.wait_for("Talking with fake. /help lists the commands.\n> ")
        terminal.type("hi\n")
        terminal.wait_for("> ")
        terminal.type("/reset\n")
        terminal.wait_for("(forgotten)\n> ")
        assert terminal.leave() == 0
    assert (tmp_path / "out.txt").read_text() == "w0 w1 w2 w3 \n"


@pytest.mark.parametrize(
    ("term", "pasted"), [("dumb", "one\n\n/exit\nthree\n"), ("vt100", "\x1b[200~one\n\n/exit\nthree\x1b[201~\n")]
)
def test_what_is_pasted_at_once_is_one_question(server, tmp_path, term, pasted):
    terminal = Terminal(server.url, tmp_path, TERM=term)
    terminal.wait_for("> ")
    terminal.type(pasted)
    terminal.wait_for("w3 \n")
    terminal.wait_for("> ")
    assert terminal.leave() == 0
    assert [body["messages"][-1]["content"] for _, body in server.requests] == ["one\n\n/exit\nthree"]


@pytest.mark.parametrize("begun", ['"""one\n', "one \\\n"])
def test_ctrl_d_drops_a_text_that_is_not_complete(server, tmp_path, begun):
    terminal = Terminal(server.url, tmp_path)
    terminal.wait_for("> ")
    terminal.type(begun)
    terminal.wait_for("… ")
    terminal.type("\x04")
    terminal.wait_for("(dropped)\n> ")
    terminal.type("two\n")
    terminal.wait_for("w3 \n> ")
    assert terminal.leave() == 0
    assert [body["messages"][-1]["content"] for _, body in server.requests] == ["two"]


def test_two_chats_keep_the_questions_of_each_other(server, tmp_path):
    first, second = (Terminal(server.url, tmp_path) for _ in range(2))
    for terminal, question in ((first, "the first question"), (second, "the second question")):
        terminal.wait_for("> ")
        terminal.type(f"{question}\n")
        terminal.wait_for("w3 \n> ")
    assert (first.leave(), second.leave()) == (0, 0)
    remembered = (tmp_path / "bough" / "chat-history").read_text().split("\n")
    assert [line for line in remembered if "question" in line] == ["the first question", "the second question"]


def test_what_is_quoted_is_no_command(server, tmp_path):
    terminal = Terminal(server.url, tmp_path)
    terminal.wait_for("> ")
    terminal.type('"""/exit\n')
    terminal.wait_for("… ")
    terminal.type('is what?"""\n')
    terminal.wait_for("w3 \n> ")
    assert terminal.leave() == 0
    assert server.requests[-1][1]["messages"][-1]["content"] == "/exit\nis what?"


@pytest.mark.parametrize(
    ("deltas", "failure", "written"),
    [
        ([{"reasoning_content": "hmm"}], None, "\x1b[2mhmm\x1b[0m\n> "),
        ([{"content": "# Head **bo"}], "hang-up", "\x1b[1mHead **bo\x1b[0m\n"),
        ([{"reasoning_content": "hmm"}], "event", "\x1b[2mhmm\x1b[0m\nit \\x1b[2Jbroke\n> "),
        ([], "event", "hi\nit \\x1b[2Jbroke\n> "),
    ],
)
def test_however_an_answer_ends_the_terminal_gets_its_style_back(server, tmp_path, deltas, failure, written):
    server.chat_deltas, server.fail_with, server.failure_message = deltas, failure, "it \x1b[2Jbroke"
    terminal = Terminal(server.url, tmp_path, TERM="vt100")
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for(written)
    assert terminal.leave() == 0


@pytest.mark.parametrize(("in_terminal", "status"), [(True, 0), (False, 1)])
def test_a_server_commands_no_terminal(server, monkeypatch, capsys, in_terminal, status):
    server.model, server.fail_with, server.failure_message = "fa\x1b[2Jke", "event", "it \x1b[2Jbroke"
    sit_at(monkeypatch, in_terminal)
    say(monkeypatch, "hi")
    assert main(["chat", "--url", server.url, "--history-file", "none", "--log-level", "debug"]) == status
    captured = capsys.readouterr()
    assert "it \\x1b[2Jbroke" in captured.err
    assert ("fa\\x1b[2Jke" in captured.err) == in_terminal
    assert "\x1b" not in captured.out + captured.err


def test_questions_are_remembered_for_their_user_alone(server, tmp_path):
    terminal = Terminal(server.url, tmp_path)
    terminal.wait_for("> ")
    terminal.type("an early question\n")
    terminal.wait_for("w3 \n> ")
    assert terminal.leave() == 0
    history = tmp_path / "bough" / "chat-history"
    assert "an early question" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0
    terminal = Terminal(server.url, tmp_path)
    terminal.wait_for("> ")
    terminal.type("\x10\x10\n")
    terminal.wait_for("w3 \n> ")
    assert terminal.leave() == 0
    assert server.requests[-1][1]["messages"][-1]["content"] == "an early question"


def test_the_options_of_a_server_are_refused_for_one_that_runs(server, tmp_path, capsys):
    assert main(["chat", "--url", server.url, "--page-size", "16"]) == 2
    assert "error: --page-size cannot be set for a server that runs already (--url)\n" in capsys.readouterr().err
    assert main(["chat", "--url", server.url, "--model=m"]) == 2
    assert (
        "error: --model cannot be set for a server that runs already (--url); it has the model that it was started with"
        in capsys.readouterr().err
    )
    assert main(["chat", "--url", server.url, "--no-disable-radix-cache"]) == 2
    assert "error: --no-disable-radix-cache cannot be set for" in capsys.readouterr().err
    config = tmp_path / "bough.yaml"
    config.write_text("page-size: 16\nport: 8000\n")
    assert main(["chat", "--url", server.url, "--config", str(config), "--port=9000"]) == 2
    assert f"error: --page-size (from --config {config}), --port cannot be set for" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "status", "message"),
    [
        ("localhost:x", 2, "--url must look like http://host:port, got localhost:x"),
        ("ftp://localhost", 2, "--url must look like http://host:port"),
        ("127.0.0.1:9", 1, "no answer from http://127.0.0.1:9: [Errno 111] Connection refused"),
        ("http://localhost:99999", 2, "--url must look like http://host:port"),
        ("http://[::1:30000", 2, "--url must look like http://host:port"),
        ("http://a..b:30000", 2, "--url must look like http://host:port"),
        ("http://a b:30000", 2, "--url must look like http://host:port"),
        ("http://127.0.0.1:9", 1, "no answer from http://127.0.0.1:9: [Errno 111] Connection refused"),
    ],
)
def test_a_server_that_is_not_there(url, status, message, capsys):
    assert main(["chat", "--url", url]) == status
    assert message in capsys.readouterr().err
