"""Files of requests: every line is answered once, whatever happens in between."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import stat
from pathlib import Path
from typing import Any, TextIO

import pytest

import bough
from bough.bench.options import result_path
from bough.cli import main
from bough.cli_commands import batch_file
from bough.cli_commands.batch_file import (
    BatchRequest,
    Outcome,
    answer_requests,
    check_requests,
    keep_answers,
    only_writer,
    open_output,
    read_requests,
)
from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import ConfigError, RequestFailed, StartupError
from bough.observability.progress import Progress


def write_lines(path: Path, *lines: Any) -> Path:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def answer(custom_id: str, status: int = 200) -> dict[str, Any]:
    response = {"status_code": status, "body": {"text": "木"}}
    return {"id": f"batch_req_{custom_id}", "custom_id": custom_id, "response": response, "error": None}


def answers_in(path: Path) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({line["custom_id"] for line in lines}) == len(lines)
    return {line["custom_id"]: line["response"] for line in lines}


def test_every_kind_of_line_is_answered_and_the_next_run_asks_for_the_rest_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    question = {"messages": [{"role": "user", "content": "Who are you?"}]}
    lines = [
        {"custom_id": "oak", "method": "POST", "url": "/v1/chat/completions", "body": question},
        {"prompt": "The oak is", "max_tokens": 2},
        {"text": "The birch", "custom_id": "wrong", "sampling_params": {"top_p": 7}},
        "\n",
        {"input_ids": [400, 401]},
    ]
    source, target = write_lines(tmp_path / "in.jsonl", *lines), tmp_path / "new" / "out.jsonl"
    command = ["generate", "--input-file", str(source), "--output-file", str(target), "--log-level", "error"]
    command += ["--max-new-tokens", "3", "--temperature", "0"]
    assert main(command) == 1
    told = capsys.readouterr().err
    assert "3 of 4 requests answered; 1 failed\n  wrong: " in told
    assert "top_p" in told
    first = answers_in(target)
    assert {name: response["status_code"] for name, response in first.items()} == {
        "oak": 200,
        "line-2": 200,
        "wrong": 400,
        "line-5": 200,
    }
    assert first["wrong"]["body"]["error"]["param"] == "sampling_params.top_p"
    assert first["oak"]["body"]["usage"]["completion_tokens"] == 3
    assert first["line-2"]["body"]["usage"]["completion_tokens"] == 2
    assert first["line-5"]["body"]["meta_info"]["completion_tokens"] == 3

    lines[2]["sampling_params"] = {"top_p": 0.7}
    write_lines(source, *lines)
    with target.open("a") as output:
        output.write('{"id": "batch_req_wr')
    assert main(command) == 0
    assert "4 of 4 requests answered, 3 of them before; 0 failed" in (err := capsys.readouterr().err)
    assert err.startswith("3 of 4 requests are answered already\n")
    second = answers_in(target)
    assert second.pop("wrong")["status_code"] == 200
    del first["wrong"]
    assert second == first


def answer_with(endpoint: RuntimeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands that start a server of their own get this endpoint instead."""

    class FakeRuntime(contextlib.nullcontext[Any]):
        def __init__(self, **options: Any) -> None:
            super().__init__(self)
            self.endpoint = endpoint

    monkeypatch.setattr(bough, "Runtime", FakeRuntime, raising=False)


@pytest.fixture
def interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of a run that Ctrl-C ends at the fourth of five requests, but for its output; the third one fails."""

    class Interrupted(UnreliableEndpoint):
        def post(self, path: str, fields: dict[str, Any]) -> tuple[int, Any]:
            if fields["number"] == 3:
                raise KeyboardInterrupt
            return (200, {}) if fields["number"] != 2 else (400, {})

    answer_with(Interrupted(lost=set(), alive=True), monkeypatch)
    numbers = [{"custom_id": str(number), "url": "/v1/embeddings", "body": {"number": number}} for number in range(5)]
    source = write_lines(tmp_path / "in.jsonl", *numbers)
    return ["generate", "--input-file", str(source), "--max-concurrency", "1", "--output-file"]


def test_an_interrupted_run_says_how_far_it_is_and_how_to_go_on(
    interrupted: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("0"))
    assert main([*interrupted, str(target)]) == 130
    assert capsys.readouterr().err.splitlines() == [
        "1 of 5 requests are answered already",
        f"Interrupted: 2 of 5 requests are answered in {target}; the same command goes on from there",
    ]
    assert answers_in(target).keys() == {"0", "1", "2"}


def test_a_run_that_writes_into_a_pipe_does_not_promise_to_go_on(
    interrupted: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    read_end, write_end = os.pipe()
    pipe = f"/dev/fd/{write_end}"
    try:
        assert main([*interrupted, pipe]) == 130
        assert capsys.readouterr().err == f"Interrupted: 2 of 5 requests are answered in {pipe}\n"
        os.close(read_end)
        read_end = os.open(os.devnull, os.O_RDONLY)
        assert main([*interrupted, pipe]) == 1
        assert capsys.readouterr().err == "bough: error: cannot write answers: Broken pipe\n"
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_run_that_cannot_write_says_how_to_go_on(
    interrupted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(batch_file, "_SYNC_SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", full)
    assert main([*interrupted, str(tmp_path / "out.jsonl")]) == 1
    assert (
        "cannot write answers: No space left on device; the same command goes on from there" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"text": "a"}, "{"], "line 2 of .* is no JSON"),
        (['{"text": ' + "[" * 200_000], "line 1 of .* is nested too deeply"),
        (["[1]\n"], "line 1 of .* is no JSON object"),
        ([{"custom_id": 7, "text": "a"}], "custom_id must be a string"),
        ([{"custom_id": "a", "text": "a"}, {"custom_id": "a", "text": "b"}], "two lines with the custom_id 'a'"),
        ([{"custom_id": "line-2", "text": "a"}, {"text": "b"}], "two lines with the custom_id 'line-2'"),
        ([{"question": "a"}], "has none of messages, prompt"),
        ([{"url": "/v1/models", "body": {}}], "is not one of POST"),
        ([{"body": {"prompt": "x"}}], "has a body, and no url"),
        ([{"url": "/generate", "method": "GET", "body": {}}], "is not one of POST"),
        ([{"url": "/generate"}], "body must be an object"),
        ([{"url": "/generate", "body": {}, "bodies": 1}], "unknown fields: bodies"),
        ([{"text": "a", "stream": True}], "has stream"),
        ([{"text": "a", "sampling_params": 3}], "sampling_params must be an object"),
        ([{"url": "/v1/responses", "body": {"background": True}}], "has background"),
        ([], "has no requests"),
    ],
)
def test_a_wrong_line_is_named_before_anything_starts(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        check_requests(write_lines(tmp_path / "in.jsonl", *lines), {})
    assert raised.value.param == "input_file"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        list(read_requests(tmp_path / "none.jsonl"))
    with pytest.raises(ConfigError, match="there is no file"):
        check_requests(tmp_path / "none.jsonl", {})


@pytest.mark.parametrize("flag", ["--input-file", "--output-file"])
def test_names_of_files_that_are_too_long_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    source = write_lines(tmp_path / "in.jsonl", {"text": "a"})
    files = {"--input-file": str(source), "--output-file": str(tmp_path / "out.jsonl"), flag: "x" * 300}
    assert main(["generate", *(word for pair in files.items() for word in pair)]) == 2
    assert "xxx: File name too long" in capsys.readouterr().err


def test_what_was_not_answered_well_is_asked_again(tmp_path: Path) -> None:
    lost = {**answer("e"), "response": None, "error": {"code": "no_answer", "message": "gone"}}
    target = write_lines(tmp_path / "out.jsonl", answer("a"), answer("b", 503), answer("c"), lost, answer("d"))
    target.chmod(0o640)
    assert keep_answers(target) == {"a", "c", "d"}
    assert answers_in(target).keys() == {"a", "c", "d"}
    assert target.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [target]
    assert keep_answers(tmp_path / "none") == set()


@pytest.mark.parametrize(
    ("aborted", "whole"),
    [
        (
            {"choices": [{"finish_reason": "stop"}, {"finish_reason": "abort"}]},
            {"choices": [{"finish_reason": "stop"}]},
        ),
        ({"meta_info": {"finish_reason": {"type": "abort"}}}, {"meta_info": {"finish_reason": {"type": "length"}}}),
        ([{"meta_info": {"finish_reason": {"type": "abort"}}}], [{"embedding": [], "meta_info": {}}]),
        ({"object": "response", "status": "cancelled"}, {"object": "response", "status": "incomplete"}),
    ],
)
def test_what_was_broken_off_is_a_failure_and_asked_again(tmp_path: Path, aborted: Any, whole: Any) -> None:
    bodies = [aborted, whole]

    class AbortingEndpoint(UnreliableEndpoint):
        def post(self, path: str, fields: dict[str, Any]) -> tuple[int, Any]:
            return 200, bodies[fields["number"]]

    target = tmp_path / "out.jsonl"
    requests = (BatchRequest(str(number), "/generate", {"number": number}) for number in range(2))
    with open_output(target) as output:
        outcome = answer_requests(
            AbortingEndpoint(lost=set(), alive=True),
            requests,
            output,
            {},
            max_concurrency=1,
            progress=Progress("Answering", 2, unit="requests", elsewhere="nothing"),
        )
    assert (outcome.answered, outcome.failed, outcome.reasons) == (2, 1, ["0: it was aborted"])
    assert answers_in(target)["0"]["body"] == aborted, "what there is of it can be read"
    assert keep_answers(target) == {"1"}


@pytest.mark.parametrize("cut", [1, 5, 30, -1, -2, -8])
def test_an_answer_that_was_cut_off_anywhere_is_asked_again(tmp_path: Path, cut: int) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"))
    whole = target.read_bytes()
    line = json.dumps(answer("b"), ensure_ascii=False).encode()
    target.write_bytes(whole + line[:cut])
    assert keep_answers(target) == {"a"}
    assert target.read_bytes() == whole


def test_an_answer_without_the_end_of_its_line_gets_one(tmp_path: Path) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"))
    other = json.dumps({"custom_id": "b", **{key: value for key, value in answer("b").items() if key != "custom_id"}})
    target.write_bytes(target.read_bytes() + other.encode())
    assert keep_answers(target) == {"a", "b"}
    assert target.read_bytes().count(b"\n") == 2
    assert answers_in(target).keys() == {"a", "b"}


@pytest.mark.parametrize(
    "left", [b"\0" * 40, b"\0" * 40 + b"\n", b"\n \n", b'{"id": "batch_req_b", "cu' + b"\0" * 9 + b"\n", b"\n\0\0"]
)
def test_what_a_power_cut_leaves_is_dropped(tmp_path: Path, left: bytes) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"))
    whole = target.read_bytes()
    target.write_bytes(whole + left)
    assert keep_answers(target) == {"a"}
    assert target.read_bytes() == whole
    target.write_bytes(whole + left.removesuffix(b"\n") + b"\n" + whole.replace(b"batch_req_a", b"batch_req_b"))
    assert keep_answers(target) == {"a"}
    assert target.read_bytes().count(b"\n") == 2


def test_answers_reach_the_disk_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_file, "_SYNC_SECONDS", 0.0)
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", synced.append)
    with open_output(tmp_path / "out.jsonl") as output:
        ask(UnreliableEndpoint(lost=set(), alive=True), output, max_concurrency=1)
    assert len(synced) > 5


def test_a_second_run_on_the_same_output_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_lines(tmp_path / "in.jsonl", {"text": "a", "custom_id": "a"})
    target = write_lines(tmp_path / "out.jsonl", answer("b", 500), answer("a"))
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    command = ["generate", "--input-file", str(source), "--output-file", str(link)]
    with only_writer(target):
        assert main(command) == 2
        assert f"another run writes {link}" in capsys.readouterr().err
        assert len(answers_in(target)) == 2
        keep_answers(target)  # the file is another one now
        assert main(command) == 2
    assert main(command) == 0
    assert set(tmp_path.iterdir()) == {source, target, link}


def make_read_only(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Refuse new files in a directory, to a superuser as well."""
    system_open = os.open

    def refusing(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if flags & os.O_CREAT and Path(path).parent == directory:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return system_open(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)


def test_a_file_that_may_be_written_needs_no_directory_that_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"), answer("b", 503), answer("c"))
    make_read_only(monkeypatch, tmp_path)
    with only_writer(target):
        assert keep_answers(target) == {"a", "c"}
        with pytest.raises(ConfigError, match="another run writes"), only_writer(target):
            pass
    with only_writer(target):
        assert answers_in(target).keys() == {"a", "c"}
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(StartupError, match=r"cannot write .*\.lock: Read-only"), only_writer(tmp_path / "new.jsonl"):
        pass


def test_a_lock_of_another_user_keeps_a_run_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system_open = os.open

    def refusing(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(".lock"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return system_open(path, *args, **kwargs)

    target = write_lines(tmp_path / "out.jsonl", answer("a"))
    with only_writer(target):
        monkeypatch.setattr(os, "open", refusing)
        with pytest.raises(StartupError, match=r"cannot write .*\.lock: Permission denied"), only_writer(target):
            pass
    with only_writer(target):
        pass


def test_answers_are_not_written_over_a_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, disk = write_lines(tmp_path / "in.jsonl", {"text": "a"}), write_lines(tmp_path / "sda")
    disk.chmod(0o640)  # by which it is known
    disk_mode = disk.stat().st_mode
    monkeypatch.setattr(stat, "S_ISBLK", lambda mode: mode == disk_mode)
    assert main(["generate", "--input-file", str(source), "--output-file", str(disk)]) == 2
    assert f"{disk} is no file" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="is no file"):
        keep_answers(disk)
    with pytest.raises(ConfigError, match="is a disk"):
        result_path(str(disk))


def test_a_file_that_is_mounted_by_itself_is_rewritten_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "replace", busy)
    target = write_lines(tmp_path / "out.jsonl", answer("a"), answer("b", 503), answer("c"))
    place = target.stat().st_ino
    assert keep_answers(target) == {"a", "c"}
    assert answers_in(target).keys() == {"a", "c"}
    assert target.stat().st_ino == place
    assert list(tmp_path.iterdir()) == [target]


def test_answers_may_go_into_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(UnreliableEndpoint(lost=set(), alive=True), monkeypatch)
    source = write_lines(
        tmp_path / "in.jsonl", {"custom_id": "a", "url": "/v1/embeddings", "body": {"input": "x", "number": 0}}
    )
    read_end, write_end = os.pipe()
    try:
        assert main(["generate", "--input-file", str(source), "--output-file", f"/dev/fd/{write_end}"]) == 0
    finally:
        os.close(write_end)
    with os.fdopen(read_end) as answers:
        assert [json.loads(line)["custom_id"] for line in answers] == ["a"]
    assert "1 of 1 requests answered" in capsys.readouterr().err


def test_a_home_is_found_and_a_mark_of_the_byte_order_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "in.jsonl").write_text('\ufeff{"text": "a", "custom_id": "a"}\n')
    write_lines(tmp_path / "out.jsonl", answer("a"))
    assert main(["generate", "--input-file", "~/in.jsonl", "--output-file", "~/out.jsonl"]) == 0


def test_requests_come_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"))
    command = ["generate", "--input-file", "-", "--output-file", str(target)]
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    for lines, status, told in (
        ('{"text": "a", "custom_id": "a"}\n', 0, "1 of 1 requests answered, 1 of them before"),
        ("{}\n", 2, "line 1 of standard input"),
        ("", 2, "standard input has no requests"),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
        assert main(command) == status
        assert told in capsys.readouterr().err
        assert list(copies.iterdir()) == []
    assert answers_in(target) == {"a": answer("a")["response"]}
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert main(command) == 2


@pytest.mark.parametrize(
    "content",
    [
        "\0" * 20 + "\n",
        '{"precious": 1}',
        "precious",
        '{"prompt": "my only copy"}\n',
        json.dumps(answer("a")) + "\n{}\n",
    ],
)
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    target = write_lines(tmp_path / "out.jsonl", content)
    with pytest.raises(ConfigError, match="does not hold answers"):
        keep_answers(target)
    assert target.read_text() == content
    assert list(tmp_path.iterdir()) == [target]


def test_links_stay_links_and_what_is_no_file_is_refused(tmp_path: Path) -> None:
    target = write_lines(tmp_path / "real.jsonl", answer("b", 500), answer("a"))
    link = tmp_path / "link.jsonl"
    link.symlink_to(target)
    assert keep_answers(link) == {"a"}
    assert link.is_symlink()
    with pytest.raises(ConfigError, match="is no file"):
        keep_answers(tmp_path)
    with pytest.raises(ConfigError, match="pipe"):
        check_requests(Path("/dev/stdin"), {})


def test_answers_do_not_overwrite_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_lines(tmp_path / "in.jsonl", {"text": "a"})
    assert main(["generate", "--input-file", str(source), "--output-file", str(source)]) == 2
    assert "the same file" in capsys.readouterr().err
    assert source.read_text() == '{"text": "a"}\n'


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        ("/generate", {"sampling_params": {"temperature": 1}}, {"sampling_params": {"temperature": 1, "top_k": 5}}),
        ("/v1/completions", {"temperature": 1}, {"temperature": 1, "top_k": 5}),
        ("/generate", {"sampling_params": None}, {"sampling_params": {"temperature": 0, "top_k": 5}}),
        ("/generate", {"sampling_params": [{"top_k": 1}]}, {"sampling_params": [{"temperature": 0, "top_k": 1}]}),
        ("/v1/embeddings", {"input": "a"}, {"input": "a"}),
    ],
)
def test_a_line_wins_over_the_flags(url: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    assert BatchRequest("a", url, body).with_defaults({"temperature": 0, "top_k": 5}) == expected


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("/v1/chat/completions", {"max_tokens": 3, "min_tokens": 2, "seed": 1}),
        ("/generate", {"sampling_params": {"max_new_tokens": 3, "min_new_tokens": 2, "sampling_seed": 1}}),
    ],
)
def test_flags_have_the_names_of_the_endpoint(url: str, names: dict[str, Any]) -> None:
    given = {"max_new_tokens": 3, "min_new_tokens": 2, "sampling_seed": 1}
    assert BatchRequest("a", url, {}).with_defaults(given) == names


def test_what_only_streams_have_is_refused_for_lines_that_would_be() -> None:
    with pytest.raises(ConfigError, match="/v1/completions of 'a' has no stream_interval"):
        BatchRequest("a", "/v1/completions", {}).with_defaults({"stream_interval": 3})
    assert (
        "stream_interval" in BatchRequest("a", "/generate", {}).with_defaults({"stream_interval": 3})["sampling_params"]
    )


def test_names_of_endpoints_that_have_few() -> None:
    limit = {"max_new_tokens": 3, "temperature": 1}
    assert BatchRequest("a", "/v1/responses", {}).with_defaults(limit) == {"max_output_tokens": 3, "temperature": 1}
    messages = BatchRequest("a", "/v1/messages", {"max_tokens": 9})
    assert messages.with_defaults({**limit, "stop": "x"}) == {
        "max_tokens": 9,
        "temperature": 1,
        "stop_sequences": ["x"],
    }
    with pytest.raises(ConfigError, match="/v1/messages of 'a' has no min_p"):
        messages.with_defaults({"min_p": 0.1})
    chat = BatchRequest("a", "/v1/chat/completions", {"max_completion_tokens": 9})
    assert chat.with_defaults({"max_new_tokens": 3}) == {"max_completion_tokens": 9}


class UnreliableEndpoint(RuntimeEndpoint):
    """Gives answers to some requests; is alive, or not."""

    def __init__(self, *, lost: set[int], alive: bool) -> None:
        self.lost, self.alive = lost, alive

    def post(self, path: str, fields: dict[str, Any]) -> tuple[int, Any]:
        if fields["number"] in self.lost:
            raise RequestFailed("no answer")
        return 200, {}

    def get_model_info(self) -> dict[str, Any]:
        if not self.alive:
            raise RequestFailed("the server is gone")
        return {}


def ask(endpoint: RuntimeEndpoint, output: TextIO, *, max_concurrency: int) -> Outcome:
    requests = (BatchRequest(str(number), "/v1/embeddings", {"number": number}) for number in range(10))
    with Progress("", 10) as progress:
        return answer_requests(endpoint, requests, output, {}, max_concurrency=max_concurrency, progress=progress)


def test_the_first_failures_are_told_with_their_reasons() -> None:
    outcome = ask(UnreliableEndpoint(lost=set(range(1, 9)), alive=True), io.StringIO(), max_concurrency=1)
    assert outcome.failed == 8
    assert outcome.reasons == [f"{number}: no answer" for number in range(1, 6)]


@pytest.mark.parametrize("max_concurrency", [1, 4, 10])
def test_a_lost_request_is_written_as_lost_and_the_others_are_answered(max_concurrency: int) -> None:
    output = io.StringIO()
    outcome = ask(UnreliableEndpoint(lost={2, 5}, alive=True), output, max_concurrency=max_concurrency)
    assert sorted(outcome.reasons) == ["2: no answer", "5: no answer"]
    assert outcome == Outcome(answered=10, failed=2, reasons=outcome.reasons)
    answers = {line["custom_id"]: line for line in map(json.loads, output.getvalue().splitlines())}
    assert len(answers) == 10
    assert {name for name, each in answers.items() if each["response"] is None} == {"2", "5"}
    assert answers["2"]["error"] == {"code": "no_answer", "message": "no answer"}


def test_what_was_answered_before_the_server_died_is_kept() -> None:
    output = io.StringIO()
    with pytest.raises(RequestFailed, match="gone"):
        ask(UnreliableEndpoint(lost={2}, alive=False), output, max_concurrency=1)
    assert [json.loads(line)["custom_id"] for line in output.getvalue().splitlines()] == ["0", "1", "2"]


def test_a_full_disk_is_said() -> None:
    with pytest.raises(StartupError, match="cannot write answers: No space"), open_output(Path("/dev/full")) as full:
        ask(UnreliableEndpoint(lost=set(), alive=True), full, max_concurrency=1)


@pytest.mark.parametrize(
    "flags", [["--input-file", "a"], ["--output-file", "a"], ["--input-file", "a", "--output-file", "b", "--stream"]]
)
def test_flags_that_do_not_go_together(flags: list[str]) -> None:
    assert main(["generate", *flags]) == 2
