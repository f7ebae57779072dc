"""What models say, in the words of every dialect that answers conversations; and the conversations that they are told.

Requests go through the routes themselves, from the body to the last byte of the answer; behind them is no engine, but
what a script says that one has sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from bough.config.engine_args import bundled_model_path
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.entrypoints.chat.reader import UNPARSED
from bough.entrypoints.http.access import Gate
from bough.entrypoints.http.asgi import DONE_EVENT, Endpoint, Front
from bough.entrypoints.http.bodies import BodyIntake
from bough.entrypoints.http.chunk_writer import BODY_WRITER
from bough.entrypoints.http.routes import make_handlers
from bough.ipc.messages import (
    BatchStrOutput,
    FinishReason,
    OutputDelta,
    PositionLogprobs,
    TokenizedGenerateReqInput,
    ToScheduler,
)
from bough.managers.tokenizer_manager import TokenizerManager
from bough.parsers.reasoning import REASONING_FORMATS
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.tokenization.chat_template import ChatTemplate, load_chat_template
from bough.tokenization.loading import load_tokenizer
from tests.entrypoints.http.feed import Feed
from tests.entrypoints.http.server import CONTEXT_LEN, tiny_model_config
from tests.entrypoints.http.streams import assembled, comparable
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer
from tests.parsers.parsing import TOOLS

_TOOLS, _REASONING = sorted(TOOL_FORMATS), (None, *sorted(REASONING_FORMATS))
CHAT, MESSAGES, RESPONSES, OLLAMA = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat"
_DIALECTS = (CHAT, MESSAGES, RESPONSES, OLLAMA)
_CONVERSATIONS = (*_DIALECTS, "/v1/messages/count_tokens", "/api/generate", "/v1/completions", "/tokenize")

_USER = {"role": "user", "content": "Hi"}
_FUNCTIONS = [
    {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters, "strict": False}}
    for tool in TOOLS
]
_TURNS = 4
"""Of the event loop, after which what has come was written."""
_TURNS_AT_ONCE = 100
"""Of the event loop, while requests begin; then threads that compile for them have the processor."""
_BEGINNING_SECONDS = 60.0
"""Within which every request comes to the engine, or is refused, where grammars are compiled on a busy machine."""

_MAX_PIECES = 40


class _Channels(Feed):
    """Carries what the script says."""

    def __init__(self) -> None:
        super().__init__()
        self.answers_at_once = False

    def send(self, message: ToScheduler) -> None:
        super().send(message)
        if isinstance(message, TokenizedGenerateReqInput) and self.answers_at_once:
            said = FinishReason("stop", matched=0)
            deltas = [OutputDelta(rid, [5], "x", said, 1, len(message.input_ids) // 4, 0) for rid in message.rids]
            if message.return_logprob:
                for delta in deltas:
                    delta.logprobs = [PositionLogprobs(-0.5, 5, [(-0.5, 5)])]
            self.inbox.put_nowait(BatchStrOutput(deltas))


class _Connection(asyncio.WriteTransport):
    """Where chunks are written."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks = b""

    def write(self, data: Any) -> None:
        self.chunks += data


class _Writer:
    """Frames parts of an answer as chunks, for whom it is ready while the client keeps up."""

    def __init__(self, exchange: Exchange) -> None:
        self.connection = _Connection()
        self.is_open = False
        self._exchange = exchange

    def ready(self) -> bool:
        self.is_open = self._exchange.has_begun and self._exchange.keeps_up
        return self.is_open

    def watch(self, on_left: Any) -> None:
        pass

    def take_body(self, limit: int) -> bytes:
        return self._exchange.content

    def respond(self, *answer: Any) -> bool:
        return False

    def frame(self, part: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(part), part)

    def template(self, start: bytes, end: bytes) -> tuple[bytes, int]:
        edges = (start.replace(b"%", b"%%"), end.replace(b"%", b"%%"))
        return b"%%x\r\n%b%%b%b\r\n" % edges, len(start) + len(end)


class Exchange:
    """A request and its answer."""

    def __init__(self, path: str, content: bytes, *, keeps_up: bool = True) -> None:
        self.path = path
        self.content = content
        self.keeps_up = keeps_up
        """Whether the client does, so that events are written as their deltas come."""
        self.has_begun = False
        self.is_complete = False
        self.status = 0
        self._writer = _Writer(self)

    @property
    def answer(self) -> bytes:
        """All of it, without what frames its parts."""
        chunks, parts = self._writer.connection.chunks, []
        while chunks:
            size, _, rest = chunks.partition(b"\r\n")
            parts.append(rest[: int(size, 16)])
            assert rest[len(parts[-1]) :].startswith(b"\r\n"), "a chunk is as long as it says"
            chunks = rest[len(parts[-1]) + 2 :]
        return b"".join(parts)

    async def run(self, endpoint: Endpoint) -> None:
        scope = {
            "type": "http",
            "method": "POST",
            "path": self.path,
            "query_string": b"",
            "headers": [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(self.content))],
            "extensions": {BODY_WRITER: {"writer": self._writer}},
        }
        await endpoint(scope, self._receive, self._send)

    async def _receive(self) -> dict[str, Any]:
        raise AssertionError("the body was taken")

    async def _send(self, message: dict[str, Any]) -> None:
        assert not self.is_complete
        if message["type"] == "http.response.start":
            assert not self.has_begun
            self.has_begun, self.status = True, message["status"]
            return
        assert self.has_begun
        self._writer.connection.write(self._writer.frame(message["body"]))
        self.is_complete = not message["more_body"]


class _Server:
    """Routes with no engine behind them.

    Args:
        tools: how the model writes tool calls.
        reasoning: how it writes its thoughts.
        template: what makes its prompts.
    """

    def __init__(self, tools: str, reasoning: str | None, template: ChatTemplate | None) -> None:
        args = _args(tools, reasoning)
        self.channels = _Channels()
        self.manager = TokenizerManager(
            args, _model_config(), tiny_tokenizer(), self.channels, {}, chat_template=template
        )
        front = Front(BodyIntake(args.max_body_size, args.max_pending_body_size), _gate())
        self._endpoints = {
            route.path: Endpoint(handler, route, front)
            for route, handler in make_handlers(self.manager).items()
            if route.path in _CONVERSATIONS
        }

    def begin(self, exchange: Exchange) -> asyncio.Task[None]:
        return asyncio.create_task(exchange.run(self._endpoints[exchange.path]))

    def say(self, deltas: list[OutputDelta]) -> None:
        self.channels.inbox.put_nowait(BatchStrOutput(deltas))


@lru_cache
def _args(tools: str, reasoning: str | None) -> ServerArgs:
    return ServerArgs(
        model_path="none", served_model_name="m", tool_call_parser=tools, reasoning_parser=reasoning or "none"
    )


@lru_cache
def _gate() -> Gate:
    return Gate(_args(_TOOLS[0], None))


@lru_cache
def _model_config() -> ModelConfig:
    with tempfile.TemporaryDirectory() as directory:
        return tiny_model_config(Path(directory), 300, 8 * CONTEXT_LEN)


@lru_cache
def _template(*, of_a_model: bool) -> ChatTemplate | None:
    """A template that knows nothing but messages, or that of a model, with tools, calls and thoughts."""
    return load_chat_template(load_tokenizer(str(bundled_model_path())) if of_a_model else tiny_tokenizer())


# --- conversations --------------------------------------------------------------------------------------------------


def conversations(data: bytes) -> None:
    """The body of a request is answered in the words of its dialect, or refused in them, all the way to a prompt."""
    if len(data) < 2:
        return
    exchange = Exchange(_CONVERSATIONS[data[0] % len(_CONVERSATIONS)], data[2:])
    asyncio.run(_converse(exchange, of_a_model=bool(data[1] & 1)))
    assert exchange.is_complete
    assert exchange.status == 200 or 400 <= exchange.status < 500, exchange.answer
    if exchange.status != 200 or not _is_stream(exchange.answer):
        json.loads(exchange.answer)
        return
    if exchange.path.startswith("/api/"):
        assert all(json.loads(line) for line in exchange.answer.splitlines())
    else:
        _events(exchange.answer.removesuffix(DONE_EVENT))


def _is_stream(answer: bytes) -> bool:
    return not answer.startswith(b"{") or answer.endswith(b"}\n")


async def _converse(exchange: Exchange, *, of_a_model: bool) -> None:
    server = _Server("hermes", "qwen3", _template(of_a_model=of_a_model))
    server.channels.answers_at_once = True
    await server.manager.start()
    await server.begin(exchange)
    tasks = asyncio.all_tasks() - {asyncio.current_task(), *server.manager._tasks}
    if tasks:  # responses that are made in the background
        await asyncio.wait(tasks)
    assert not server.manager.rid_to_state, "nothing is left"
    await server.manager.close()


# --- what a model says ----------------------------------------------------------------------------------------------


def dialects(data: bytes) -> None:
    """What a model writes is told in every dialect as its grammar has it; streams say what whole answers do."""
    if len(data) < 6:
        return
    asyncio.run(_tell(data[:6], data[6:].decode(errors="replace")))


async def _tell(options: bytes, text: str) -> None:
    tools, reasoning, flags, more, ended, size = options
    server = _Server(_TOOLS[tools % len(_TOOLS)], _REASONING[reasoning % len(_REASONING)], _template(of_a_model=False))
    bodies = _bodies(flags, more)
    streams = {
        path: Exchange(path, json.dumps({**body, "stream": True, **_usage(path)}).encode(), keeps_up=bool(flags & 1))
        for path, body in bodies.items()
    }
    wholes = {path: Exchange(path, json.dumps({**body, "stream": False}).encode()) for path, body in bodies.items()}
    await server.manager.start()
    tasks = [server.begin(each) for each in (*streams.values(), *wholes.values())]
    requests = server.channels.requests

    async def begin() -> None:
        for turn in itertools.count():
            if len(requests) + sum(task.done() for task in tasks) == len(tasks):
                return
            await asyncio.sleep(0 if turn < _TURNS_AT_ONCE else 0.001)

    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(begin(), _BEGINNING_SECONDS)
    assert len(requests) == len(tasks), [each.answer for each in wholes.values()]
    for number, output in enumerate(_outputs(text, size % 16 + 1, _reason(ended))):
        server.say([_delta_for(request, output) for request in requests])
        # Streams lag behind the engine now and then, and several deltas come as one.
        for _ in range(_TURNS if (number * size) % 5 else 0):
            await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert not server.manager.rid_to_state, "nothing is left"
    await server.manager.close()
    said = {path: _check(path, streams[path], wholes[path]) for path in bodies}
    plain = [each for path, each in said.items() if each is not None and not (path == CHAT and more)]
    assert all(each == plain[0] for each in plain), "all dialects tell the same"


def _bodies(flags: int, more: int) -> dict[str, dict[str, Any]]:
    """A request in every dialect; ``more`` is what only chat completions can be asked."""
    chat: dict[str, Any] = {"messages": [_USER]}
    claude: dict[str, Any] = {"model": "m", "max_tokens": 4000, "messages": [_USER]}
    responses: dict[str, Any] = {"input": "Hi", "store": bool(flags & 2)}
    ollama: dict[str, Any] = {"model": "m", "messages": [_USER]}
    if flags & 4:
        chat["tools"] = ollama["tools"] = _FUNCTIONS
        claude["tools"] = [{"name": tool.name, "input_schema": tool.parameters} for tool in TOOLS]
        responses["tools"] = [{"type": "function", **each["function"]} for each in _FUNCTIONS]
    if flags & 8:
        chat["logprobs"] = ollama["logprobs"] = True
        chat["top_logprobs"] = ollama["top_logprobs"] = 1
        if not flags & 4:
            responses["top_logprobs"] = 1
    if flags & 16:
        claude["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    for bit, (name, value) in enumerate(_MORE):
        if more >> bit & 1:
            chat[name] = value
    return {CHAT: chat, MESSAGES: claude, RESPONSES: responses, OLLAMA: ollama}


_MORE: tuple[tuple[str, Any], ...] = (
    ("include_reasoning", False),
    ("stream_reasoning", False),
    ("separate_reasoning", False),
    ("parallel_tool_calls", False),
    ("return_token_ids", True),
    ("tool_choice", "none"),
)


def _usage(path: str) -> dict[str, Any]:
    return {"stream_options": {"include_usage": True}} if path == CHAT else {}


def _reason(ended: int) -> FinishReason:
    reasons = (
        FinishReason("stop", matched=0),
        FinishReason("length", length=1),
        FinishReason("stop", matched="\n\n"),
        FinishReason("abort", message="as the client wished"),
        FinishReason("abort", message="out of luck", status_code=500),
        FinishReason("abort", message="no room", status_code=503),
        FinishReason("stop"),
    )
    return reasons[ended % len(reasons)]


def _outputs(text: str, size: int, reason: FinishReason) -> Iterator[OutputDelta]:
    """The text in pieces of a size in characters, or larger ones, each with the tokens that it is made of."""
    size = max(size, len(text) // _MAX_PIECES)
    pieces = [text[at : at + size] for at in range(0, len(text), size)] or [""]
    count = 0
    for number, piece in enumerate(pieces):
        ids = tiny_tokenizer().encode(piece, add_special_tokens=False).tolist()
        count += len(ids)
        is_last = number == len(pieces) - 1
        yield OutputDelta("", ids, piece, reason if is_last else None, count, 0, 1)


def _delta_for(request: TokenizedGenerateReqInput, output: OutputDelta) -> OutputDelta:
    logprobs = None
    if request.return_logprob:
        top = [(-1.0, 7)] if request.top_logprobs_num else None
        logprobs = [PositionLogprobs(-token / 8, token, top) for token in output.token_ids]
    return msgspec.structs.replace(
        output, rid=request.rids[0], prompt_tokens=len(request.input_ids) // 4, logprobs=logprobs
    )


# --- grammars -------------------------------------------------------------------------------------------------------

Said = tuple[str, str, list[str]]
"""Content, thoughts, and the name of every call."""


def _check(path: str, stream: Exchange, whole: Exchange) -> Said | None:
    """Hold a stream against the whole answer; returns what both say, if that is an answer."""
    assert stream.is_complete
    assert whole.is_complete
    if whole.status != 200:
        assert whole.status in (500, 503), whole.answer
        _check_failure(path, stream, json.loads(whole.answer))
        return None
    assert stream.status == 200, stream.answer
    check = {CHAT: _check_chat, MESSAGES: _check_messages, RESPONSES: _check_responses, OLLAMA: _check_ollama}[path]
    return check(stream.answer, json.loads(whole.answer))


def _check_failure(path: str, stream: Exchange, told: dict[str, Any]) -> None:
    """A failure is the answer, or the last event of one that had begun."""
    if stream.status != 200:
        assert json.loads(stream.answer) == told
        return
    if path == OLLAMA:
        *lines, last = [json.loads(line) for line in stream.answer.splitlines()]
        assert last == told
        assert not any(line["done"] for line in lines)
        return
    body = stream.answer
    if path == CHAT:
        assert body.endswith(DONE_EVENT)
        body = body.removesuffix(DONE_EVENT)
    *events, (name, failure) = _events(body)
    if path == RESPONSES:
        assert name == "response.failed"
        _ResponseReader().read([*events, (name, failure)])
        assert failure["response"]["error"]["message"] == told["error"]["message"]
        return
    assert failure == told
    if path == MESSAGES:
        assert name == "error"
        _read_message(events, is_complete=False)


def _events(body: bytes) -> list[tuple[str | None, dict[str, Any]]]:
    """Names and contents of server-sent events."""
    blocks = body.split(b"\n\n")
    assert blocks.pop() == b"", "an event has no end"
    events: list[tuple[str | None, dict[str, Any]]] = []
    for block in blocks:
        *names, data = block.split(b"\n")
        assert data.startswith(b"data: "), block
        assert len(names) <= 1, block
        assert all(name.startswith(b"event: ") for name in names), block
        name = names[0].removeprefix(b"event: ").decode() if names else None
        event = json.loads(data.removeprefix(b"data: "))
        assert name is None or name == event["type"], block
        events.append((name, event))
    return events


def _check_chat(stream: bytes, whole: dict[str, Any]) -> Said:
    assert stream.endswith(DONE_EVENT)
    events = [event for _, event in _events(stream.removesuffix(DONE_EVENT))]
    message = whole["choices"][0]["message"]
    calls = [call["function"]["name"] for call in message["tool_calls"] or ()]
    streamed = assembled(CHAT, {}, events)
    for choice, of_whole in zip(streamed["choices"], whole["choices"], strict=True):
        for name in {"token_ids", "response_token_ids"} & of_whole.keys():  # a stream without tokens has no such field
            choice.setdefault(name, [])
    assert comparable(streamed) == comparable(whole)
    return message["content"], message["reasoning"] or "", calls


def _check_messages(stream: bytes, whole: dict[str, Any]) -> Said:
    made = _read_message(_events(stream), is_complete=True)
    calls: list[str] = []
    for block, shown in zip(made["content"], whole["content"], strict=True):
        if block["type"] == "tool_use":
            text = block.pop("input")
            calls.append(block["name"])
            given = shown.pop("input")
            assert given == ({UNPARSED: text} if UNPARSED in given else msgspec.json.decode(text or "{}"))
            assert block.pop("id")
            assert shown.pop("id")
    assert made.pop("id")
    assert whole.pop("id")
    assert made == whole
    text = "".join(block["text"] for block in whole["content"] if block["type"] == "text")
    thoughts = "".join(block["thinking"] for block in whole["content"] if block["type"] == "thinking")
    return text, thoughts, calls


_DELTA_MEMBERS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "input"),
}
"""Kinds of deltas, and the kind and the member of the block that they add to."""


def _read_message(events: list[tuple[str | None, dict[str, Any]]], *, is_complete: bool) -> dict[str, Any]:
    """The message that events build up, with the arguments of tools as text."""
    message: dict[str, Any] = {}
    block: dict[str, Any] | None = None
    ended = False
    for number, (name, event) in enumerate(events):
        kind = event["type"]
        assert name == kind
        assert (kind == "message_start") == (number == 0)
        if kind == "message_start":
            message = event["message"]
            assert message["content"] == []
            assert message["stop_reason"] is None
        elif kind == "content_block_start":
            assert block is None
            assert event["index"] == len(message["content"])
            assert not ended
            block = event["content_block"]
            if block["type"] == "tool_use":
                assert block["input"] == {}
                block["input"] = ""
            message["content"].append(block)
        elif kind == "content_block_delta":
            assert block is not None
            assert event["index"] == len(message["content"]) - 1
            delta = event["delta"]
            block_kind, member = _DELTA_MEMBERS[delta.pop("type")]
            assert block["type"] == block_kind
            (text,) = delta.values()
            block[member] += text
        elif kind == "content_block_stop":
            assert block is not None
            assert event["index"] == len(message["content"]) - 1
            block = None
        elif kind == "message_delta":
            assert block is None
            assert not ended
            ended = True
            message |= event["delta"]
            message["usage"] = event["usage"]
        elif kind == "message_stop":
            assert ended
            assert number == len(events) - 1
        else:
            assert kind == "ping"
            assert number == 1
    assert not is_complete or events[-1][0] == "message_stop"
    return message


def _check_responses(stream: bytes, whole: dict[str, Any]) -> Said:
    made = _ResponseReader().read(_events(stream))
    said: Said = ("", "", [])
    for item in whole["output"]:
        if item["type"] == "function_call":
            said[2].append(item["name"])
        else:
            text = item["content"][0]["text"]
            is_message = item["type"] == "message"
            said = (said[0] + text * is_message, said[1] + text * (not is_message), said[2])
    for answer in (made, whole):
        for name in ("id", "created_at", "completed_at"):
            assert answer.pop(name)
        for item in answer["output"]:
            assert item.pop("id")
            item.pop("call_id", None)
    assert made == whole
    return said


class _ResponseReader:
    """Builds a response up from its events, which say in several ways what it is."""

    def __init__(self) -> None:
        self._items: list[dict[str, Any]] = []
        self._item: dict[str, Any] | None = None
        self._part: dict[str, Any] | None = None
        self._text = ""
        self._logprobs: list[Any] = []
        self._is_text_done = False

    def read(self, events: list[tuple[str | None, dict[str, Any]]]) -> dict[str, Any]:
        assert [event["sequence_number"] for _, event in events] == list(range(len(events)))
        (first, created), (second, started), *middle, (last, ended) = events
        assert (first, second) == ("response.created", "response.in_progress")
        assert created["response"] == started["response"]
        assert created["response"]["output"] == []
        for name, event in middle:
            assert name is not None
            self._read(name, event)
        response: dict[str, Any] = ended["response"]
        kinds = {"completed": "completed", "incomplete": "incomplete", "cancelled": "incomplete", "failed": "failed"}
        assert last == f"response.{kinds[response['status']]}"
        assert self._item is None
        assert response["output"] == self._items
        return response

    def _read(self, name: str, event: dict[str, Any]) -> None:
        if name == "response.output_item.added":
            assert self._item is None
            assert event["output_index"] == len(self._items)
            self._item, self._text, self._logprobs, self._is_text_done = event["item"], "", [], False
            assert self._item["status"] == "in_progress"
            assert not self._item.get("content")
            return
        assert self._item is not None
        assert event["output_index"] == len(self._items)
        item = self._item
        if name == "response.output_item.done":
            done = event["item"]
            assert self._part is None
            assert self._is_text_done
            shown = done["arguments"] if done["type"] == "function_call" else done["content"][0]["text"]
            assert shown == self._text
            assert {**done, **{key: item[key] for key in ("id", "type")}} == done
            self._items.append(done)
            self._item = None
            return
        assert event["item_id"] == item["id"]
        if name == "response.content_part.added":
            assert self._part is None
            assert event["part"]["text"] == ""
            self._part = event["part"]
        elif name == "response.content_part.done":
            assert self._part is not None
            assert event["part"]["text"] == self._text
            assert self._is_text_done
            self._part = None
        elif name.endswith(".delta"):
            assert not self._is_text_done
            assert name == f"{_TEXT_OF[item['type']]}.delta"
            self._text += event["delta"]
            self._logprobs += event.get("logprobs", ())
        else:
            assert not self._is_text_done
            assert name == f"{_TEXT_OF[item['type']]}.done"
            self._is_text_done = True
            assert event["arguments" if item["type"] == "function_call" else "text"] == self._text
            assert event.get("logprobs", []) == self._logprobs


_TEXT_OF = {
    "message": "response.output_text",
    "reasoning": "response.reasoning_text",
    "function_call": "response.function_call_arguments",
}


def _check_ollama(stream: bytes, whole: dict[str, Any]) -> Said:
    *lines, last = [json.loads(line) for line in stream.splitlines()]
    assert stream.endswith(b"\n")
    assert last["done"]
    assert not any(line["done"] for line in lines)
    assert last["message"] == {"role": "assistant", "content": ""}
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    logprobs: list[Any] = []
    for line in (*lines, last):
        part: Mapping[str, Any] = line["message"]
        message["content"] += part["content"]
        if "thinking" in part:
            message["thinking"] = message.get("thinking", "") + part["thinking"]
        if "tool_calls" in part:
            message["tool_calls"] = message.get("tool_calls", []) + part["tool_calls"]
        logprobs += line.get("logprobs", ())
    assert logprobs == whole.get("logprobs", [])
    told = whole["message"]
    calls = [call["function"]["name"] for call in told.get("tool_calls", ())]
    for each in (message, told):
        for number, call in enumerate(each.get("tool_calls", ())):
            assert call.pop("id")
            assert call["function"]["index"] == number
    assert message == told
    for name in ("done_reason", "prompt_eval_count", "eval_count", "model"):
        assert last[name] == whole[name]
    return told["content"], told.get("thinking", ""), calls
