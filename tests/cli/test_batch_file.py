"""Files of requests: every line is answered once, whatever happens in between."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from bough.cli import main
from bough.cli_commands.batch_file import BatchRequest, answer_requests, check_requests, keep_answers, read_requests
from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import ConfigError, RequestFailed
from bough.observability.progress import Progress


def write_lines(path: Path, *lines: Any) -> Path:
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def answer(custom_id: str, status: int = 200) -> dict[str, Any]:
    return {"custom_id": custom_id, "response": {"status_code": status, "body": {}}, "error": None}


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
    assert "4 of 4 requests answered; 1 failed" in capsys.readouterr().err
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
        output.write('{"custom_id": "wr')
    assert main(command) == 0
    assert "1 of 4 requests answered, 3 had been before; 0 failed" in capsys.readouterr().err
    second = answers_in(target)
    assert second.pop("wrong")["status_code"] == 200
    del first["wrong"]
    assert second == first


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([{"text": "a"}, "{"], "line 2 of .* is no JSON"),
        (["[1]\n"], "line 1 of .* is no JSON object"),
        ([{"custom_id": 7, "text": "a"}], "custom_id must be a string"),
        ([{"custom_id": "a", "text": "a"}, {"custom_id": "a", "text": "b"}], "two lines with the custom_id 'a'"),
        ([{"custom_id": "line-2", "text": "a"}, {"text": "b"}], "two lines with the custom_id 'line-2'"),
        ([{"question": "a"}], "has none of messages, prompt"),
        ([{"url": "/v1/models", "body": {}}], "is not one of POST"),
        ([{"url": "/generate", "method": "GET", "body": {}}], "is not one of POST"),
        ([{"url": "/generate"}], "body must be an object"),
        ([{"url": "/generate", "body": {}, "bodies": 1}], "unknown fields: bodies"),
        ([{"text": "a", "stream": True}], "asks for a stream"),
        ([{"text": "a", "sampling_params": 3}], "sampling_params must be an object"),
        ([], "has no requests"),
    ],
)
def test_a_wrong_line_is_named_before_anything_starts(tmp_path: Path, lines: list[Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        check_requests(write_lines(tmp_path / "in.jsonl", *lines))
    assert raised.value.param == "input_file"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        list(read_requests(tmp_path / "none.jsonl"))


def test_what_was_not_answered_well_is_asked_again(tmp_path: Path) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"), answer("b", 503), answer("c"), '{"custom_id": "d", "resp')
    assert keep_answers(target) == {"a", "c"}
    assert answers_in(target).keys() == {"a", "c"}
    assert keep_answers(tmp_path / "none") == set()


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    target = write_lines(tmp_path / "out.jsonl", answer("a"), {"prompt": "my only copy"})
    before = target.read_text()
    with pytest.raises(ConfigError, match="does not hold answers"):
        keep_answers(target)
    assert target.read_text() == before
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("url", "body", "expected"),
    [
        ("/generate", {"sampling_params": {"temperature": 1}}, {"sampling_params": {"temperature": 1, "top_k": 5}}),
        ("/v1/completions", {"temperature": 1}, {"temperature": 1, "top_k": 5}),
        ("/v1/embeddings", {"input": "a"}, {"input": "a"}),
    ],
)
def test_a_line_wins_over_the_flags(url: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    assert BatchRequest("a", url, body).with_defaults({"temperature": 0, "top_k": 5}) == expected


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("/v1/chat/completions", {"max_tokens": 3, "seed": 1}),
        ("/v1/responses", {"max_output_tokens": 3, "seed": 1}),
        ("/generate", {"sampling_params": {"max_new_tokens": 3, "sampling_seed": 1}}),
    ],
)
def test_flags_have_the_names_of_the_endpoint(url: str, names: dict[str, Any]) -> None:
    assert BatchRequest("a", url, {}).with_defaults({"max_new_tokens": 3, "sampling_seed": 1}) == names


class DyingEndpoint(RuntimeEndpoint):
    """Answers twice, and is gone."""

    def __init__(self) -> None:
        self.answers_left = 2

    def post(self, path: str, fields: dict[str, Any]) -> tuple[int, Any]:
        if not self.answers_left:
            raise RequestFailed("no answer")
        self.answers_left -= 1
        return 200, {}


def test_what_was_answered_before_the_server_died_is_kept() -> None:
    output = io.StringIO()
    requests = (BatchRequest(str(number), "/generate", {}) for number in range(10))
    with pytest.raises(RequestFailed), Progress("", 10) as progress:
        answer_requests(DyingEndpoint(), requests, output, {}, max_concurrency=1, progress=progress)
    assert [json.loads(line)["custom_id"] for line in output.getvalue().splitlines()] == ["0", "1"]


@pytest.mark.parametrize(
    "flags", [["--input-file", "a"], ["--output-file", "a"], ["--input-file", "a", "--output-file", "b", "--stream"]]
)
def test_flags_that_do_not_go_together(flags: list[str]) -> None:
    assert main(["generate", *flags]) == 2
