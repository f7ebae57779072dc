"""Answering a file of requests, a JSON object a line, so that a run that was cut short can go on.

Lines have the form of OpenAI's batch files: ``custom_id``, ``url`` and ``body`` in, ``custom_id``, ``response`` and
``error`` out (the API reference of OpenAI, "The request input object" and "The request output object"). A line may also
be a body alone; what it asks for then tells where it belongs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import ConfigError, StartupError
from bough.observability.progress import Progress

NATIVE = "/generate"

_URL_OF_FIELD = {
    "messages": "/v1/chat/completions",
    "prompt": "/v1/completions",
    "text": NATIVE,
    "input_ids": NATIVE,
    "input": "/v1/embeddings",
}

_URLS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    NATIVE,
    "/encode",
)

_OPENAI_NAMES = {"max_new_tokens": "max_tokens", "sampling_seed": "seed"}

_DIFFERENT_LIMITS = {"/v1/responses": "max_output_tokens"}

_WITHOUT_SAMPLING = ("/v1/embeddings", "/encode")


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A line of the input."""

    custom_id: str
    url: str
    body: dict[str, Any]

    def with_defaults(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The body with sampling parameters for what it does not set itself, under the names of its endpoint."""
        if not sampling or self.url in _WITHOUT_SAMPLING:
            return self.body
        if self.url == NATIVE:
            return {**self.body, "sampling_params": {**sampling, **self.body.get("sampling_params", {})}}
        names = {**_OPENAI_NAMES, "max_new_tokens": _DIFFERENT_LIMITS.get(self.url, "max_tokens")}
        return {**{names.get(name, name): value for name, value in sampling.items()}, **self.body}


@dataclass(slots=True)
class Outcome:
    """How many lines were answered, and how many of them not with what they asked for."""

    answered: int = 0
    failed: int = 0


def read_requests(path: Path) -> Iterator[BatchRequest]:
    """Yield the requests of a file, line by line; empty lines are passed over.

    Raises:
        ConfigError: naming the line that is none.
    """
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse(line, f"line {number} of {path}", number)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", param="input_file") from None


def check_requests(path: Path) -> set[str]:
    """The ids of all requests of a file; reads all of it before anything is started.

    Raises:
        ConfigError: naming the line that is wrong, or has the id of another.
    """
    ids: set[str] = set()
    for request in read_requests(path):
        if request.custom_id in ids:
            raise ConfigError(f"{path} has two lines with the custom_id {request.custom_id!r}", param="input_file")
        ids.add(request.custom_id)
    if not ids:
        raise ConfigError(f"{path} has no requests", param="input_file")
    return ids


def keep_answers(path: Path) -> set[str]:
    """The ids that an earlier run has answered well; everything else is dropped from its file, to be asked again.

    Raises:
        ConfigError: if the file was not written by such a run; it is left as it is.
    """
    if not path.exists():
        return set()
    done: set[str] = set()
    kept = path.with_name(path.name + ".part")
    try:
        with path.open(encoding="utf-8") as lines, kept.open("w", encoding="utf-8") as good:
            for line in lines:
                if not line.endswith("\n"):
                    break  # the run was cut off while it wrote this
                answer = json.loads(line)
                response = answer["response"]
                if response is not None and response["status_code"] == 200:
                    done.add(answer["custom_id"])
                    good.write(line)
    except (ValueError, TypeError, KeyError):
        kept.unlink()
        raise ConfigError(
            f"{path} exists and does not hold answers of an earlier run: name another file, or remove it",
            param="output_file",
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", param="output_file") from None
    os.replace(kept, path)
    return done


def answer_requests(
    endpoint: RuntimeEndpoint,
    requests: Iterator[BatchRequest],
    output: TextIO,
    sampling: Mapping[str, Any],
    *,
    max_concurrency: int,
    progress: Progress,
) -> Outcome:
    """Ask a server, and write every answer as it comes.

    Args:
        endpoint: the server.
        requests: read as there is room.
        output: gets a line of JSON an answer, in the order in which they end.
        sampling: for what requests do not set themselves.
        max_concurrency: most requests at a time.
        progress: counts requests.
    """
    outcome = Outcome()

    def ask(request: BatchRequest) -> dict[str, Any]:
        status, body = endpoint.post(request.url, request.with_defaults(sampling))
        return {
            "id": f"batch_req_{request.custom_id}",
            "custom_id": request.custom_id,
            "response": {"status_code": status, "body": body},
            "error": None,
        }

    def write(done: set[Future[dict[str, Any]]]) -> None:
        for future in done:
            answer = future.result()
            outcome.answered += 1
            outcome.failed += answer["response"]["status_code"] != 200
            output.write(json.dumps(answer, ensure_ascii=False) + "\n")
            progress.advance(1)
        output.flush()

    threads = ThreadPoolExecutor(max_concurrency, thread_name_prefix="bough-batch")
    waiting: set[Future[dict[str, Any]]] = set()
    try:
        for request in requests:
            waiting.add(threads.submit(ask, request))
            if len(waiting) == max_concurrency:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                write(done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            write(done)
    finally:
        # Whoever gives up does not wait for answers: they break off with the server.
        threads.shutdown(wait=False, cancel_futures=True)
    return outcome


def open_output(path: Path) -> TextIO:
    """A file to append answers to.

    Raises:
        StartupError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None


def _parse(line: str, where: str, number: int) -> BatchRequest:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}", param="input_file") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{where} is no JSON object", param="input_file")
    custom_id = value.pop("custom_id", f"line-{number}")
    if not isinstance(custom_id, str):
        raise ConfigError(f"{where}: custom_id must be a string", param="input_file")
    if "body" not in value and "url" not in value:
        url = next((url for field, url in _URL_OF_FIELD.items() if field in value), None)
        if url is None:
            raise ConfigError(f"{where} has none of {', '.join(_URL_OF_FIELD)}, and no url", param="input_file")
        return BatchRequest(custom_id, url, _not_streamed(value, where))
    url, body, method = value.get("url"), value.get("body"), value.get("method", "POST")
    if unknown := sorted(value.keys() - {"url", "body", "method"}):
        raise ConfigError(f"{where} has unknown fields: {', '.join(unknown)}", param="input_file")
    if method != "POST" or url not in _URLS:
        raise ConfigError(f"{where}: {method} {url} is not one of POST {', '.join(_URLS)}", param="input_file")
    if not isinstance(body, dict):
        raise ConfigError(f"{where}: body must be an object", param="input_file")
    return BatchRequest(custom_id, url, _not_streamed(body, where))


def _not_streamed(body: dict[str, Any], where: str) -> dict[str, Any]:
    if body.get("stream"):
        raise ConfigError(f"{where} asks for a stream, which has no place in a file", param="input_file")
    if not isinstance(body.get("sampling_params", {}), dict):
        raise ConfigError(f"{where}: sampling_params must be an object", param="input_file")
    return body
