"""Answering a file of requests, a JSON object a line, so that a run that was cut short can go on.

Lines have the form of OpenAI's batch files: ``custom_id``, ``url`` and ``body`` in, ``custom_id``, ``response`` and
``error`` out (the API reference of OpenAI, "The request input object" and "The request output object"). A line may also
be a body alone; what it asks for then tells where it belongs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, TextIO

from bough.config.user_paths import IRREPLACEABLE, path_kind, rewrite
from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import ConfigError, RequestFailed, StartupError
from bough.observability.progress import Progress

NATIVE = "/generate"

MAX_REASONS = 5
"""Failed requests of which a run tells what went wrong; the answers have that of all."""

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

_OPENAI_NAMES = {"max_new_tokens": "max_tokens", "min_new_tokens": "min_tokens", "sampling_seed": "seed"}

_OWN_NAMES = {
    "/v1/messages": {
        "max_new_tokens": "max_tokens",
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "stop": "stop_sequences",
    },
    "/v1/responses": {"max_new_tokens": "max_output_tokens", "temperature": "temperature", "top_p": "top_p"},
}
"""Sampling parameters of endpoints that have only a few, by our names."""

_WITHOUT_SAMPLING = ("/v1/embeddings", "/encode")

_ANSWER_BEGINS = b'{"id": "batch_req_'

_SYNC_SECONDS = 2.0
"""Between two times that the answers are brought to the disk: what a power cut may cost."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A line of the input."""

    custom_id: str
    url: str
    body: dict[str, Any]

    def with_defaults(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The body with sampling parameters for what it does not set itself, under the names of its endpoint.

        Raises:
            ConfigError: if the endpoint has no such parameter.
        """
        if not sampling or self.url in _WITHOUT_SAMPLING:
            return self.body
        if self.url == NATIVE:
            own = self.body.get("sampling_params")
            merged = [{**sampling, **each} for each in own] if isinstance(own, list) else {**sampling, **(own or {})}
            return {**self.body, "sampling_params": merged}
        names = _OWN_NAMES.get(self.url)
        unknown = sorted(sampling.keys() - names.keys() if names is not None else sampling.keys() & {"stream_interval"})
        if unknown:
            raise ConfigError(
                f"{self.url} of {self.custom_id!r} has no {unknown[0]}: leave out the flag", param=unknown[0]
            )
        if names is None:
            names = _OPENAI_NAMES
        defaults = {names.get(name, name): value for name, value in sampling.items()}
        if isinstance(defaults.get("stop_sequences"), str):
            defaults["stop_sequences"] = [defaults["stop_sequences"]]
        if "max_completion_tokens" in self.body:
            defaults.pop("max_tokens", None)
        return {**defaults, **self.body}


@dataclass(slots=True)
class Outcome:
    """How many lines were answered, and how many of them not with what they asked for."""

    answered: int = 0
    failed: int = 0
    reasons: list[str] = field(default_factory=list)
    """What went wrong with the first few that failed, each with its ``custom_id``."""

    def add(self, answers: Sequence[dict[str, Any]]) -> int:
        """Count answers; returns how many of them failed."""
        failed = [answer for answer in answers if not _is_whole(answer["response"])]
        self.answered += len(answers)
        self.failed += len(failed)
        room = MAX_REASONS - len(self.reasons)
        self.reasons += [f"{answer['custom_id']}: {_reason(answer)}" for answer in failed[:room]]
        return len(failed)


def read_requests(path: Path) -> Iterator[BatchRequest]:
    """Yield the requests of a file, line by line; empty lines are passed over.

    Raises:
        ConfigError: naming the line that is none.
    """
    try:
        with path.open(encoding="utf-8-sig") as lines:  # Windows' editors begin files with U+FEFF
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _parse(line, f"line {number} of {path}", number)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", param="input_file") from None


def check_requests(path: Path, sampling: Mapping[str, Any]) -> set[str]:
    """The ids of all requests of a file; reads all of it before anything is started.

    Raises:
        ConfigError: naming the line that is wrong, has the id of another, or has no place for the sampling parameters.
    """
    kind = path_kind(path, "input_file")
    if kind is None:
        raise ConfigError(f"there is no file {path}", param="input_file")
    if kind != "file":
        raise ConfigError(
            f"{path} is no file, and is read twice: send a pipe to standard input, with --input-file -",
            param="input_file",
        )
    ids: set[str] = set()
    for request in read_requests(path):
        if request.custom_id in ids:
            raise ConfigError(f"{path} has two lines with the custom_id {request.custom_id!r}", param="input_file")
        request.with_defaults(sampling)
        ids.add(request.custom_id)
    if not ids:
        raise ConfigError(f"{path} has no requests", param="input_file")
    return ids


def keep_answers(path: Path) -> set[str]:
    """The ids that an earlier run has answered well; everything else is dropped from its file, to be asked again.

    What a power cut leaves is dropped, too: half a line, or zero bytes where a line had been. A pipe has no answers.

    Raises:
        ConfigError: if the file was not written by such a run; it is left as it is.
        StartupError: if it cannot be written; so it is then.
    """
    kind = path_kind(path, "output_file")
    if kind in (None, "other"):
        return set()
    path = path.resolve()
    if kind != "file":
        raise ConfigError(f"{path} is no file", param="output_file")
    done: set[str] = set()
    kept_bytes = 0
    """How far the file holds nothing but good answers."""
    good: list[bytes] = []
    """Those behind that."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n") and (line.startswith(_ANSWER_BEGINS) or _ANSWER_BEGINS.startswith(line)):
                    break  # the run was cut off while it wrote this
                if not line.strip() or (b"\0" in line and _is_torn(line, is_first=lines.tell() == len(line))):
                    continue
                answer = json.loads(line)
                response = answer["response"]
                custom_id = str(answer["custom_id"])
                if response is None and not answer["error"]:
                    raise ValueError("neither a response nor an error")
                if _is_whole(response):
                    if kept_bytes + len(line) == lines.tell() and not good and line.endswith(b"\n"):
                        kept_bytes += len(line)
                    else:
                        good.append(line if line.endswith(b"\n") else line + b"\n")
                    done.add(custom_id)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ConfigError(
            f"{path} exists and does not hold answers of an earlier run: name another file, or remove it",
            param="output_file",
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", param="output_file") from None
    try:
        if good:
            rewrite(path, lambda file: file.writelines(good), kept=kept_bytes)
        elif kept_bytes < path.stat().st_size:
            os.truncate(path, kept_bytes)
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
    return done


def _is_whole(response: Any) -> bool:
    """Whether a request was answered, and to the end: one that is aborted when it has begun has a good status, too.

    Messages do not tell how they were ended; such an answer counts as whole.
    """
    if response is None or response["status_code"] != HTTPStatus.OK:
        return False
    answers = response["body"] if isinstance(response["body"], list) else [response["body"]]
    return not any(_is_aborted(answer) for answer in answers if isinstance(answer, dict))


def _reason(answer: dict[str, Any]) -> str:
    """Why a request was not answered, or not to the end."""
    if answer["response"] is None:
        return str(answer["error"]["message"])
    body = answer["response"]["body"]
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict) and "message" in error:
        return str(error["message"])
    status = answer["response"]["status_code"]
    return "it was aborted" if status == HTTPStatus.OK else f"status {status}"


def _is_aborted(answer: dict[str, Any]) -> bool:
    if "meta_info" in answer:
        return bool((answer["meta_info"].get("finish_reason") or {}).get("type") == "abort")
    if answer.get("object") == "response":
        return bool(answer["status"] == "cancelled")
    return any(choice.get("finish_reason") == "abort" for choice in answer.get("choices", ()))


def answer_requests(
    endpoint: RuntimeEndpoint,
    requests: Iterator[BatchRequest],
    output: TextIO,
    sampling: Mapping[str, Any],
    *,
    max_concurrency: int,
    progress: Progress,
    remedy: str = "",
) -> Outcome:
    """Ask a server, and write every answer as it comes.

    Args:
        requests: read as there is room.
        output: gets a line of JSON an answer, in the order in which they end.
        sampling: for what requests do not set themselves.
        remedy: what to add where answers cannot be written.

    Raises:
        RequestFailed: if the server is gone; what it had answered is written.
        StartupError: if the answers cannot be written.
    """
    outcome = Outcome()
    synced_at = time.monotonic()

    def write(done: set[Future[dict[str, Any]]]) -> None:
        nonlocal synced_at
        answers = [future.result() for future in done]
        with _writing(remedy):
            for answer in answers:
                output.write(json.dumps(answer) + "\n")
            output.flush()
            if (now := time.monotonic()) > synced_at + _SYNC_SECONDS:
                _sync(output)
                synced_at = now
        progress.advance(len(answers), failed=outcome.add(answers))
        if any(answer["response"] is None for answer in answers):
            endpoint.get_model_info()  # a server that is gone ends the run

    threads = ThreadPoolExecutor(max_concurrency, thread_name_prefix="bough-batch")
    waiting: set[Future[dict[str, Any]]] = set()
    try:
        for request in requests:
            waiting.add(threads.submit(_ask, endpoint, request, sampling))
            if len(waiting) == max_concurrency:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                write(done)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            write(done)
        with _writing(remedy):
            _sync(output)
    finally:
        # Whoever gives up does not wait for answers: they break off with the server.
        threads.shutdown(wait=False, cancel_futures=True)
    return outcome


def _ask(endpoint: RuntimeEndpoint, request: BatchRequest, sampling: Mapping[str, Any]) -> dict[str, Any]:
    answer = {"id": f"batch_req_{request.custom_id}", "custom_id": request.custom_id}
    try:
        status, body = endpoint.post(request.url, request.with_defaults(sampling))
    except RequestFailed as error:
        return {**answer, "response": None, "error": {"code": "no_answer", "message": str(error)}}
    return {**answer, "response": {"status_code": status, "body": body}, "error": None}


@contextlib.contextmanager
def _writing(remedy: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StartupError(f"cannot write answers: {error.strerror}{remedy}") from None


@contextlib.contextmanager
def only_writer(path: Path) -> Iterator[None]:
    """Keep other runs from a file of answers, which need not exist yet, while the block lasts.

    The lock is on a file beside it, which is gone afterwards: :func:`keep_answers` may put another file in its place,
    and a lock on that one would be lost. Where there can be none beside it, nothing can take its place, and the lock is
    on the file itself. Where the file system knows no locks, nobody is kept, nor from a pipe.

    Raises:
        ConfigError: if another run writes it.
        StartupError: if there is no such file, and none can be written; or another user's run holds the lock.
    """
    if path_kind(path, "output_file") == "other":
        yield
        return
    resolved = path.resolve()
    name = hashlib.sha256(os.fsencode(resolved.name)).hexdigest()[:16]
    lock = resolved.parent / f".bough-{name}.lock"
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor, locked = _open_lock(lock, resolved)
            with contextlib.ExitStack() as opened:
                opened.callback(os.close, descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise ConfigError(f"another run writes {path}", param="output_file") from None
                except OSError as error:
                    if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                        raise
                # Whoever held it until now has removed it: others would lock the next one.
                with contextlib.suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(descriptor), locked.stat()):
                        held = opened.pop_all()
                        break
    except OSError as error:
        raise StartupError(f"cannot write {error.filename or lock}: {error.strerror}") from None
    with held:
        try:
            yield
        finally:
            if locked == lock:
                lock.unlink(missing_ok=True)


def _open_lock(lock: Path, target: Path) -> tuple[int, Path]:
    """A descriptor to lock, and what it is of: ``lock``, or ``target`` if that is there and no ``lock`` can be."""
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), lock
    except OSError as error:
        # A lock that is there and refuses is another user's, whose run may last.
        if error.errno not in IRREPLACEABLE or os.path.lexists(lock) or not target.exists():
            raise
    return os.open(target, os.O_RDWR | os.O_CLOEXEC), target


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[TextIO]:
    """A file to append answers to.

    Raises:
        StartupError: if it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        output = path.open("a", encoding="utf-8")
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
    try:
        yield output
    finally:
        # Every answer was flushed: what fails here has been said already.
        with contextlib.suppress(OSError):
            output.close()


def _sync(output: TextIO) -> None:
    """Bring what was written to the disk, if that is where it goes."""
    try:
        os.fsync(output.fileno())
    except OSError as error:  # also what has no descriptor; pipes and devices are not brought anywhere (EINVAL)
        if error.errno not in (None, errno.EINVAL, errno.EROFS):
            raise


def _is_torn(line: bytes, *, is_first: bool) -> bool:
    """Whether a line with zero bytes, which JSON never has, is what was left of answers when the power was cut."""
    text = line.strip(b"\0 \t\r\n")
    return text.startswith(_ANSWER_BEGINS) if text else not is_first


def _parse(line: str, where: str, number: int) -> BatchRequest:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise ConfigError(f"{where} is no JSON: {error}", param="input_file") from None
    except RecursionError:
        raise ConfigError(f"{where} is nested too deeply", param="input_file") from None
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
    if url is None:
        raise ConfigError(f"{where} has a body, and no url", param="input_file")
    if method != "POST" or url not in _URLS:
        raise ConfigError(f"{where}: {method} {url} is not one of POST {', '.join(_URLS)}", param="input_file")
    if not isinstance(body, dict):
        raise ConfigError(f"{where}: body must be an object", param="input_file")
    return BatchRequest(custom_id, url, _not_streamed(body, where))


def _not_streamed(body: dict[str, Any], where: str) -> dict[str, Any]:
    for name, reason in (
        ("stream", "a stream has no place in a file"),
        ("background", "nobody would ask for the answer"),
    ):
        if body.get(name):
            raise ConfigError(f"{where} has {name}: {reason}", param="input_file")
    own = body.get("sampling_params")
    if not (own is None or isinstance(own, dict) or (isinstance(own, list) and all(isinstance(e, dict) for e in own))):
        raise ConfigError(f"{where}: sampling_params must be an object or a list of them", param="input_file")
    return body
