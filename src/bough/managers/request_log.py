"""Texts about single requests: log lines, and a file about the latest ones when the server dies."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from bough.config.user_paths import user_path
from bough.ipc.messages import OutputDelta
from bough.managers.io_struct import GenerateRequest
from bough.managers.req_state import ReqState

logger = logging.getLogger(__name__)

OUTCOMES, ARRIVALS, BEGINNINGS, EVERYTHING = range(4)
"""Levels of ``--log-requests-level``."""

BEGINNING_CHARS = 256
"""Characters of a text that the level :data:`BEGINNINGS` shows."""

DUMPED_REQUESTS = 1000
DUMPED_SECONDS = 300.0
"""A crash dump tells of so many requests at most that have ended within this time, and of all that had not."""

DUMPED_TEXT_BYTES = 64 * 1024 * 1024
"""What prompts and parameters of requests that have ended may take, if they are remembered; then the oldest are not."""


Outcome = Literal["finished", "aborted", "refused", "failed"]


@dataclass(frozen=True)
class Ending:
    """End of an output: the outcome in one word, more precisely without a word of the client's, and the client's
    message.

    The message may quote the request.
    """

    outcome: Outcome
    how: str
    message: str | None = None

    def describe(self, *, with_texts: bool) -> str:
        """Describe the end, with texts of clients or without."""
        return f"{self.outcome}: {self.message}" if with_texts and self.message is not None else self.how


class RequestLog:
    """Logs outputs at one of the levels; ``None`` logs nothing. It needs :meth:`on_text` calls if it ``keeps_text``."""

    def __init__(self, level: int | None) -> None:
        self._level = -1 if level is None else level
        self.keeps_text = self._level >= BEGINNINGS
        self._texts: dict[str, str] = {}
        """What outputs that are not finished have begun with, as far as it will be shown."""

    def on_sent(self, state: ReqState) -> None:
        """A request goes to the scheduler."""
        request = state.obj
        if self._level < ARRIVALS or request.no_logs:
            return
        fields: dict[str, Any] = {
            **_names(state.rid, state),
            "prompt_tokens": len(request.input_ids or ()),
            "stream": request.stream,
            "sampling_params": described_params(request, with_texts=self._level >= BEGINNINGS),
        }
        message = "Request %(rid)r arrived: %(prompt_tokens)d prompt tokens, parameters %(sampling_params)s"
        if self._level >= BEGINNINGS:
            prompt = request.text if request.text is not None else str(list(request.input_ids or ()))
            fields["prompt"] = self._cut(prompt)
            message += ", prompt %(prompt)r"
        logger.info(message, fields, extra={"event": "request_arrived"})

    def on_text(self, state: ReqState, delta: OutputDelta) -> None:
        """An output goes on."""
        if state.obj.no_logs:
            return
        rid = state.rid
        text = self._texts.get(rid, "")
        if self._level >= EVERYTHING or len(text) <= BEGINNING_CHARS:
            new = delta.text if delta.text is not None else "".join(f"{token} " for token in delta.token_ids)
            self._texts[rid] = text + new

    def on_end(
        self, request: GenerateRequest, rid: str, ending: Ending, state: ReqState | None, cached_tokens: int
    ) -> None:
        """An output has ended."""
        if self._level < OUTCOMES or request.no_logs:
            return
        fields: dict[str, Any] = {
            **_names(rid, state),
            "prompt_tokens": len(request.input_ids or ()),
            "cached_tokens": cached_tokens,
            "completion_tokens": 0 if state is None else state.completion_tokens,
            "outcome": ending.outcome,
            "how": ending.describe(with_texts=self._level >= BEGINNINGS),
            "seconds": 0.0 if state is None else time.monotonic() - state.created_time,
        }
        message = (
            "Request %(rid)r: %(prompt_tokens)d prompt tokens (%(cached_tokens)d cached), %(completion_tokens)d "
            "generated, %(how)s, %(seconds).3f s"
        )
        if "request_id" in fields:
            message += ", x-request-id %(request_id)r"
        text = self._texts.pop(rid, None)
        if text is not None:
            fields["output"] = self._cut(text)
            message += ", output %(output)r"
        logger.info(message, fields, extra={"event": "request_finished"})

    def _cut(self, text: str) -> str:
        if self._level >= EVERYTHING or len(text) <= BEGINNING_CHARS:
            return text
        return f"{text[:BEGINNING_CHARS]}..."


def _names(rid: str, state: ReqState | None) -> dict[str, str]:
    context = None if state is None else state.context
    return {"rid": rid} if context is None else {"rid": rid, "request_id": context.request_id}


def described_params(request: GenerateRequest, *, with_texts: bool) -> dict[str, Any]:
    """Sampling parameters that are not the default; or the length of texts, which may be as private as a prompt."""
    values: dict[str, Any] = msgspec.to_builtins(request.sampling_params)
    if with_texts:
        return values
    return {
        name: value
        if isinstance(value, (bool, int, float))
        else f"<{len(value)} {'characters' if isinstance(value, str) else 'entries'}>"
        for name, value in values.items()
        if value is not None
    }


class RecentRequests:
    """Remembers what goes into a crash dump, a file in ``folder``.

    Prompts, and texts among sampling parameters, are part of it ``with_prompts``.
    """

    def __init__(self, folder: str, *, with_prompts: bool) -> None:
        self._folder = user_path(folder)
        self._with_prompts = with_prompts
        self._ended: deque[tuple[dict[str, Any], int]] = deque()
        """Descriptions, with the bytes of their texts."""
        self._text_bytes = 0
        self._cut_off: list[dict[str, Any]] = []

    def on_end(self, state: ReqState, ending: Ending) -> None:
        """An output has ended."""
        how = ending.describe(with_texts=self._with_prompts and not state.obj.no_logs)
        ended = self._describe(state, ending.outcome, how)
        size = 0
        if ended["prompt"] is not None:
            size = sys.getsizeof(ended["prompt"]) + len(msgspec.json.encode(ended["sampling_params"]))
        self._ended.append((ended, size))
        self._text_bytes += size
        while len(self._ended) > DUMPED_REQUESTS or self._text_bytes > DUMPED_TEXT_BYTES:
            self._text_bytes -= self._ended.popleft()[1]

    def on_cut_off(self, state: ReqState) -> None:
        """The engine has died before an output has ended; its client is told."""
        self._cut_off.append(self._describe(state, "unfinished", ""))

    def write(self, cause: str, alive: Iterable[ReqState]) -> Path:
        """Write a file, which only this user can read; returns its path. Raises ``OSError`` if it cannot be written.

        Besides the requests that were cut off, those that are ``alive`` have not ended.
        """
        since = time.time() - DUMPED_SECONDS
        dump = {
            "cause": cause,
            "time": time.time(),
            "unfinished": [
                *map(_as_json, self._cut_off),
                *(_as_json(self._describe(state, "unfinished", "")) for state in alive),
            ],
            "ended": [_as_json(each) for each, _ in self._ended if each["arrived"] + each["seconds"] >= since],
        }
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / f"bough-crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(dump, file, indent=1)
        return path

    def _describe(self, state: ReqState, outcome: str, how: str) -> dict[str, Any]:
        request = state.obj
        with_texts = self._with_prompts and not request.no_logs
        # Texts are remembered as they are: rendering them would cost every request, and more memory.
        prompt = request.text if request.text is not None else request.input_ids
        seconds = time.monotonic() - state.created_time
        return {
            "rid": state.rid,
            "request_id": None if state.context is None else state.context.request_id,
            "arrived": time.time() - seconds,
            "seconds": seconds,
            "outcome": outcome,
            "how": how,
            "stream": request.stream,
            "prompt_tokens": len(request.input_ids or ()),
            "completion_tokens": state.completion_tokens,
            "sampling_params": request.sampling_params if with_texts else described_params(request, with_texts=False),
            "prompt": prompt if with_texts else None,
        }


def _as_json(described: dict[str, Any]) -> dict[str, Any]:
    prompt = described["prompt"]
    shown = prompt if prompt is None or isinstance(prompt, str) else str(list(prompt))
    return {**described, "sampling_params": msgspec.to_builtins(described["sampling_params"]), "prompt": shown}
