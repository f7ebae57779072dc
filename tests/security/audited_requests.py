"""Sends requests that name a file and a URL in every place that there is, to a server whose process is watched.

``python -m tests.security.audited_requests DIRECTORY`` prints what was opened, run or called on account of them.
Python tells of it by its audit hooks (PEP 578); a listening socket tells of the rest.
"""

from __future__ import annotations

import contextlib
import copy
import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from bough.entrypoints.http.routes import ROUTES
from tests.entrypoints.http.server import running_server

MARK = "bough-lure"

PARTS = (
    {"type": "image_url", "image_url": {"url": "LURE"}},
    {"type": "input_image", "image_url": "LURE"},
    {"type": "input_file", "file_url": "LURE"},
    {"type": "file", "file": {"file_data": "LURE"}},
    {"type": "image", "source": {"type": "url", "url": "LURE"}},
    {"type": "document", "source": {"type": "file", "file_id": "LURE"}},
    {"type": "audio_url", "audio_url": {"url": "LURE"}},
    {"type": "video_url", "video_url": {"url": "LURE"}},
    {"type": "text", "text": "LURE"},
)
TOOLS = (
    {"type": "mcp", "server_label": "x", "server_url": "LURE"},
    {"type": "file_search", "vector_store_ids": ["LURE"]},
    {"type": "web_search", "search_context_size": "LURE"},
    {"type": "function", "function": {"name": "f", "parameters": {"$ref": "LURE"}}},
    {"name": "f", "input_schema": {"$ref": "LURE"}},
)
CODE = "__import__('os').system('echo LURE')"


PLAIN = (
    "LURE",
    ["LURE"],
    {"url": "LURE", "$ref": "LURE", "path": "LURE", "type": "LURE"},
    CODE,
    f"{{{{ ''.__class__.__mro__[1].__subclasses__() }}}}{{% include 'LURE' %}}{CODE}",
    json.dumps({"$ref": "LURE"}),
)
NOT_ACTIONS = {"array.__new__", "builtins.id", "object.__getattr__"}
"""Events of what is done in memory alone."""


def values(field: str, start: int) -> Iterator[Any]:
    """What a field may be set to: everything that suits it, and two of the things that suit any."""
    yield from (PLAIN[(start + offset) % len(PLAIN)] for offset in range(2))
    if field in ("messages", "input", "prompt", "system"):
        yield from ([{"role": "user", "content": [part]}] for part in PARTS)
    if field in ("tools", "functions"):
        yield from ([tool] for tool in TOOLS)


def with_lure(value: Any, lure: str) -> Any:
    return json.loads(json.dumps(value).replace("LURE", lure))


class Watch:
    """Notes what happens in this process that has to do with a lure."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._busy = threading.local()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            if event not in NOT_ACTIONS and MARK in repr(args):
                self.seen.append(f"{event} {args!r}"[:300])
        finally:
            self._busy.now = False


def main(directory: Path) -> None:
    secret = directory / f"{MARK}.txt"
    secret.write_text("a secret of the server")
    model = directory / "model"
    model.mkdir()
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    port = listener.getsockname()[1]
    lures = (
        str(secret),
        f"../{secret.name}",
        secret.as_uri(),
        f"http://127.0.0.1:{port}/{MARK}",
        f"http://{MARK}.invalid/x",
    )
    specs = {info.path: info.body for info in ROUTES if info.body is not None}
    bodies = [(path, spec, dict(spec.example)) for path, spec in specs.items()]
    bodies += [("/invocations", spec, dict(spec.example)) for route in ROUTES for spec in route.one_of]
    statuses: dict[int, int] = {}
    answers: list[str] = []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_server(model, profile_dir=str(directory / "profiles")))
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=60))
        watch = Watch()
        for path, spec, example in bodies:
            for start, name in enumerate(spec.names):
                for number, value in enumerate(values(name, start), start):
                    body = copy.deepcopy(example)
                    body[name] = with_lure(value, lures[number % len(lures)])
                    if name != "stream" and path != "/start_profile":
                        body.pop("stream", None)
                    answer = client.post(path, json=body)
                    statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
                    if answer.status_code == 500 or "a secret of the server" in answer.text:
                        answers.append(f"{path} {name}: {answer.text[:200]}")
        for lure in lures:
            for path in ("/v1/models/", "/v1/responses/", "/", "/docs/", "/%2e%2e/"):
                text = client.get(path + lure.removeprefix("/"), headers={"referer": lure, "x-request-id": lure}).text
                if "a secret of the server" in text:
                    answers.append(path)
    seen, watch.seen = [*watch.seen, *calls_to(listener)], []
    # Whatever watches must see what is there.
    with secret.open(), socket.create_connection(("127.0.0.1", port)):
        noticed = [*watch.seen, *calls_to(listener)]
    print(json.dumps({"seen": seen, "noticed": noticed, "answers": answers, "statuses": statuses}))


def calls_to(listener: socket.socket) -> Iterator[str]:
    """What there is to say of connections that nobody has taken."""
    with contextlib.suppress(BlockingIOError):
        listener.accept()
        yield "somebody has called"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
