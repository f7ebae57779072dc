"""What a streamed token costs this process, counted in function calls: a guard that no clock can upset."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uvloop

import bough
from bough.config.server_args import ServerArgs
from bough.entrypoints.http.app import create_app
from bough.entrypoints.http.chunk_writer import BODY_WRITER
from bough.ipc.messages import BatchStrOutput, OutputDelta
from bough.managers.tokenizer_manager import TokenizerManager
from tests.entrypoints.http.feed import Feed
from tests.entrypoints.http.server import tiny_model_config
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer

SOURCES = str(Path(bough.__file__).parent)
STREAMS = 16
TOKENS = 50

USER = {"role": "user", "content": "Hi"}
TOOL = {"type": "function", "function": {"name": "f"}}
MESSAGES = {"messages": [USER]}
ANTHROPIC = {"model": "m", "max_tokens": 500, **MESSAGES}

ROUTES: dict[str, tuple[str, dict[str, Any], str, float, float]] = {
    "native": ("/generate", {"input_ids": [1, 2], "sampling_params": {"max_new_tokens": 500}}, "", 7, 21),
    "completion": ("/v1/completions", {"prompt": [1, 2], "max_tokens": 500}, "", 5.5, 19.5),
    "chat": ("/v1/chat/completions", MESSAGES, "", 5.5, 19.5),
    "chat, thoughts": ("/v1/chat/completions", MESSAGES, "<think>", 23, 35),
    "chat, content": ("/v1/chat/completions", MESSAGES, "<think></think>x", 17, 29),
    "chat, tools": ("/v1/chat/completions", {**MESSAGES, "tools": [TOOL]}, "x", 17, 29),
    "chat, arguments": (
        "/v1/chat/completions",
        {**MESSAGES, "tools": [TOOL]},
        '<tool_call>{"name": "f", "arguments": {"a": "',
        17,
        29,
    ),
    "responses": ("/v1/responses", {"input": "Hi"}, "x", 19, 33),
    "responses, thoughts": ("/v1/responses", {"input": "Hi"}, "<think>", 25, 39),
    "messages": ("/v1/messages", ANTHROPIC, "x", 13, 29),
    "messages, thoughts": ("/v1/messages", ANTHROPIC, "<think>", 20, 36),
    "ollama": ("/api/chat", {"model": "m", **MESSAGES}, "x", 16, 31),
}
"""Path, request, how the answer begins, and how often functions of ours may be entered or resumed per token: while a
client keeps up, and while each event takes its task's turn."""


class FreeConnection(asyncio.WriteTransport):
    """Counts what is written; costs nothing."""

    def __init__(self) -> None:
        self.count = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.count += 1


class Writer:
    """Leaves parts as they are."""

    def __init__(self, connection: FreeConnection) -> None:
        self.connection = connection
        self.is_open = False

    def ready(self) -> bool:
        return self.is_open

    def watch(self, on_left: Any) -> None:
        pass

    def take_body(self, limit: int) -> None:
        return None

    def respond(self, *answer: Any) -> bool:
        return False

    def frame(self, part: bytes) -> bytes:
        return part

    def template(self, start: bytes, end: bytes) -> tuple[bytes, int]:
        return b"%%x%b%%b%b" % (start, end), len(start) + len(end)


async def count_calls(
    path: str, body: dict[str, Any], begins: str, directory: Path, *, keeps_up: bool
) -> tuple[float, int]:
    """Python calls per token of a stream, and events sent; ``keeps_up`` is whether clients do."""
    feed = Feed()
    manager = TokenizerManager(
        ServerArgs(
            model_path=str(directory),
            incremental_streaming_output=True,
            tool_call_parser="hermes" if begins else "none",
            reasoning_parser="qwen3" if begins else "none",
        ),
        tiny_model_config(directory, 300),
        tiny_tokenizer(),
        feed,
        {},
    )
    await manager.start()
    app = create_app(manager)
    content = json.dumps({**body, "stream": True}).encode()
    connection = FreeConnection()
    writer = Writer(connection)

    async def one_stream() -> None:
        scope = {
            "type": "http", "method": "POST", "path": path, "query_string": b"",
            "headers": [(b"content-type", b"application/json")], "extensions": {BODY_WRITER: {"writer": writer}},
        }  # fmt: skip
        messages = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: dict[str, Any]) -> None:
            connection.count += message["type"] == "http.response.body"

        await app(scope, receive, send)

    streams = [asyncio.create_task(one_stream()) for _ in range(STREAMS)]
    while len(feed.requests) < STREAMS:
        await asyncio.sleep(0.001)

    async def step(token: int, text: str = "abcd") -> None:
        deltas = [OutputDelta(r.rids[0], [token], text, None, token, 2, 0) for r in feed.requests]
        feed.inbox.put_nowait(BatchStrOutput(deltas))
        for _ in range(4):
            await asyncio.sleep(0)

    await step(1, begins or "abcd")
    writer.is_open = keeps_up
    calls, before = 0, connection.count

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and SOURCES in frame.f_code.co_filename

    sys.setprofile(count)
    for token in range(2, TOKENS + 2):
        await step(token)
    sys.setprofile(None)
    sent = connection.count - before
    for stream in streams:
        stream.cancel()
    await asyncio.gather(*streams, return_exceptions=True)
    await manager.close()
    return calls / (STREAMS * TOKENS), sent


@pytest.mark.parametrize("keeps_up", [True, False])
@pytest.mark.parametrize("name", ROUTES)
def test_calls_per_streamed_token_are_few(name: str, keeps_up: bool, tmp_path: Path) -> None:
    path, body, begins, most, most_behind = ROUTES[name]
    calls, events = uvloop.run(count_calls(path, body, begins, tmp_path, keeps_up=keeps_up))
    assert events == STREAMS * TOKENS, "one event a token"
    assert calls <= (most if keeps_up else most_behind)


def test_the_main_process_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, bough.entrypoints.http.app, bough.entrypoints.http.server, bough.ipc.channels\n"
        "print([name for name in ('torch', 'transformers', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
