from __future__ import annotations

import io
import json
import os
import signal
import sys
import time
from types import SimpleNamespace
from typing import ClassVar

import pytest

import bough
from bough.cli import main


class FakeEngine:
    """Takes the engine's place: what matters here is what the command asks it and prints."""

    made_with: ClassVar[dict] = {}
    asked: ClassVar[list] = []

    def __init__(self, **options):
        FakeEngine.made_with, FakeEngine.asked = options, []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None

    def generate(self, prompt, sampling_params, stream=False):
        self.asked.append((prompt, sampling_params))
        if stream:
            return iter([{"text": "one "}, {"text": "two"}])
        count = len(prompt) if isinstance(prompt, list) else sampling_params.get("n", 1)
        outputs = [{"text": f"answer {i}", "output_ids": [i]} for i in range(count)]
        return outputs if len(outputs) > 1 else outputs[0]


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    monkeypatch.setattr(bough, "Engine", FakeEngine, raising=False)
    return FakeEngine


def test_the_text_is_printed(engine, capsys):
    assert main(["generate", "--prompt", "hi", "--max-new-tokens", "5", "--temperature", "0", "--model", "/m"]) == 0
    assert capsys.readouterr().out == "answer 0\n"
    assert engine.asked == [("hi", {"max_new_tokens": 5, "temperature": 0.0})]
    assert engine.made_with["model_path"] == "/m"


def test_several_prompts_are_all_answered(engine, capsys):
    assert main(["generate", "--prompt", "a", "--prompt=b"]) == 0
    assert capsys.readouterr().out == "answer 0\nanswer 1\n"
    assert engine.asked == [(["a", "b"], {})]


def test_several_texts_may_end_the_output(engine):
    assert main(["generate", "--prompt", "hi", "--stop", ".", "--stop", "!"]) == 0
    assert engine.asked == [("hi", {"stop": [".", "!"]})]


def test_a_stream_is_printed_piece_by_piece(capsys):
    assert main(["generate", "--prompt", "hi", "--stream"]) == 0
    assert capsys.readouterr().out == "one two\n"


@pytest.mark.parametrize("flags", [[], ["--stream"]])
@pytest.mark.parametrize(("in_terminal", "shown"), [(True, "a\\x1b[2Jb\n"), (False, "a\x1b[2Jb\n")])
def test_a_model_commands_no_terminal(engine, monkeypatch, capsys, flags, in_terminal, shown):
    def generate(self, prompt, sampling_params, stream=False):
        return [{"text": "a\x1b"}, {"text": "[2Jb"}] if stream else {"text": "a\x1b[2Jb"}

    monkeypatch.setattr(engine, "generate", generate)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: in_terminal)
    assert main(["generate", "--prompt", "hi", *flags]) == 0
    assert capsys.readouterr().out == shown


def test_no_number_of_samples_is_one(capsys):
    assert main(["generate", "--prompt", "hi", "--stream", "--sampling-params", '{"n": null}']) == 0
    assert capsys.readouterr().out == "one two\n"


def test_flags_win_over_the_json(engine):
    main(["generate", "--prompt", "hi", "--sampling-params", '{"top_k": 3, "top_p": 0.5}', "--top-p", "0.9"])
    assert engine.asked == [("hi", {"top_k": 3, "top_p": 0.9})]


def test_several_samples_are_printed_one_after_another(capsys):
    assert main(["generate", "--prompt", "hi", "--sampling-params", '{"n": 2}']) == 0
    assert capsys.readouterr().out == "answer 0\nanswer 1\n"


def test_json_holds_the_whole_answer(capsys):
    assert main(["generate", "--prompt", "hi", "--output-json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"text": "answer 0", "output_ids": [0]}


@pytest.mark.parametrize(
    ("typed", "prompt"),
    [("from a pipe", "from a pipe"), ("a file\n", "a file"), ("with\na line\n\n", "with\na line\n")],
)
def test_the_prompt_may_come_from_stdin(engine, monkeypatch, typed, prompt):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    assert main(["generate"]) == 0
    assert engine.asked == [(prompt, {})]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--prompt", "hi", "--top-p", "2"], "the sampling flags must hold valid sampling parameters (top_p must be"),
        (["--prompt", "hi", "--sampling-params", '{"nope": 1}'], "nope is not a known sampling parameter"),
        (["--prompt", "hi", "--stream", "--output-json"], "--stream and --output-json exclude each other"),
        (["--prompt", "hi", "--stream", "--sampling-params", '{"n": 2}'], "--stream prints one answer"),
        (["--prompt", "a", "--prompt", "b", "--stream"], "--stream prints one answer; give one --prompt"),
        (["--prompt", "a", "--prompt", ""], "--prompt must not be empty"),
    ],
)
def test_what_cannot_be_generated_is_refused_before_a_model_is_loaded(argv, message, capsys):
    assert main(["generate", *argv]) == 2
    assert message in capsys.readouterr().err


def test_nobody_is_left_waiting_at_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    assert main(["generate"]) == 2
    assert "give --prompt TEXT" in capsys.readouterr().err


def test_input_that_is_no_text_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), encoding="utf-8"))
    assert main(["generate"]) == 2
    assert "standard input cannot be read: 'utf-8' codec can't decode byte 0xff" in capsys.readouterr().err


def test_bytes_that_are_no_text_are_refused_before_an_engine_starts(monkeypatch, capsys, engine):
    engine.made_with = None
    raw = io.TextIOWrapper(io.BytesIO(b"a\xff"), encoding="utf-8", errors="surrogateescape")
    monkeypatch.setattr("sys.stdin", raw)
    assert main(["generate"]) == 2
    assert "standard input cannot be read: 'utf-8' codec can't encode" in capsys.readouterr().err
    assert engine.made_with is None


def test_nothing_to_complete_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["generate"]) == 2
    assert "give --prompt TEXT" in capsys.readouterr().err


@pytest.mark.parametrize(("flags", "printed"), [([], ""), (["--stream"], "one \n")])
def test_an_interrupted_answer_says_so(engine, monkeypatch, capsys, flags, printed):
    def generate(self, prompt, sampling_params, stream=False):
        def events():
            yield {"text": "one "}
            raise KeyboardInterrupt

        if stream:
            return events()
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "generate", generate)
    assert main(["generate", "--prompt", "hi", *flags]) == 130
    captured = capsys.readouterr()
    assert captured.out == printed
    assert captured.err == "Interrupted: before the end of the answer\n"


def test_sigterm_ends_an_answer_as_an_interrupt_does(engine, monkeypatch, capsys):
    ended = []

    def generate(self, prompt, sampling_params, stream=False):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr(engine, "generate", generate)
    monkeypatch.setattr(engine, "__exit__", lambda self, kind, *rest: ended.append(kind))
    before = signal.getsignal(signal.SIGTERM)
    assert main(["generate", "--prompt", "hi"]) == 143
    assert capsys.readouterr().err == "Terminated: before the end of the answer\n"
    assert [issubclass(kind, KeyboardInterrupt) for kind in ended] == [True]
    assert signal.getsignal(signal.SIGTERM) is before
