"""What a streamed token costs the main process: sockets, message decoding, text to SSE, HTTP.

Three processes: a feeder in the place of scheduler and detokenizer, which sends one token to every running request at
a fixed rate over the real channels; the main process; and a client that counts events on raw sockets, cheaply.

For each number of streams three figures are measured. *Tokens per second and core*: what the main process's CPU time
(user and system) per streamed event allows, beside the goal of 60,000. *Added latency*: from the moment at which the
feeder hands a step over to the moment at which the client has read the event (one clock, that of the machine), p50 and
p99; the token's text says when that was. *Requests per second*: requests of one token, so many at a time. The client's
own CPU time is shown beside all that, because it takes the same cores. Tokens that shared an event, because the main
process or the client came too late for them, are shown as a share: a figure with many of them is not the price of an
event a token. Latencies mean little where the cores are full: lower ``--rate`` then.

    python benchmarks/http_front.py --output http_front.json
    python benchmarks/http_front.py --routes /v1/completions --fronts bough bare --streams 64 512 --rate 10
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bough.config.port_args import PortArgs

if TYPE_CHECKING:
    import uvicorn

    from bough.ipc.channels import TokenizerChannels

MODEL_CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 8192,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "rope_theta": 10000.0,
    "eos_token_id": 0,
}
ROUTES = {
    "/generate (deltas)": ("/generate", {"input_ids": [1, 2, 3], "sampling_params": {"max_new_tokens": 0}}),
    "/v1/completions": ("/v1/completions", {"prompt": [1, 2, 3], "max_tokens": 0}),
    "/v1/chat/completions": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "Hi"}], "input_ids": [1, 2, 3], "max_tokens": 0},
    ),
}


def cpu_seconds() -> tuple[float, float]:
    """User and system time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime, usage.ru_stime


GOAL = 60_000
"""Streamed tokens per second and core."""

COLUMNS = [
    ("route", 20, "route", ""),
    ("front", 5, "front", ""),
    ("streams", 7, "streams", ""),
    ("events/s", 8, "events_per_second", ".0f"),
    ("µs/event", 8, "server_us_per_event", ".1f"),
    ("of it kernel", 12, "server_system_us_per_event", ".1f"),
    ("tokens/s/core", 13, "tokens_per_second_per_core", ".0f"),
    ("of goal", 7, "share_of_goal", ".0%"),
    ("p50 ms", 6, "added_latency_p50_ms", ".2f"),
    ("p99 ms", 6, "added_latency_p99_ms", ".2f"),
    ("requests/s", 10, "requests_per_second", ".0f"),
    ("µs/request", 10, "server_us_per_request", ".0f"),
    ("client µs/event", 15, "client_us_per_event", ".1f"),
    ("coalesced", 9, "coalesced_share", ".1%"),
]
"""What is printed: title, width, member of a result, format."""

REQUEST_SECONDS = 3.0
"""How long requests of one token are sent."""


def feeder(directory: str, rate: float) -> None:
    """Send every running request a token, ``rate`` times a second; its text says when."""
    from bough.ipc.channels import SchedulerChannels
    from bough.ipc.messages import AbortReq, FinishReason, OutputDelta, TokenizedGenerateReqInput

    channels = SchedulerChannels(PortArgs.from_dict(json.loads(directory)), has_detokenizer=False)
    running: dict[str, list[int]] = {}
    next_step = time.perf_counter()
    while True:
        wait = max(0.0, next_step - time.perf_counter()) if running else 1.0
        for message in channels.recv(wait):
            if isinstance(message, TokenizedGenerateReqInput):
                for rid in message.rids:
                    running[rid] = [0, message.sampling_params.max_new_tokens or 1]
            elif isinstance(message, AbortReq):
                running.pop(message.rid, None)
        now = time.perf_counter()
        if not running or now < next_step:
            continue
        next_step = max(next_step + 1 / rate, now - 1 / rate)
        deltas = []
        text = f"{time.monotonic_ns()},"
        for rid, counts in list(running.items()):
            counts[0] += 1
            reason = None
            if counts[0] == counts[1]:
                reason = FinishReason("length", length=counts[0])
                del running[rid]
            deltas.append(OutputDelta(rid, [counts[0]], text, reason, counts[0], 3, 0))
        channels.send_deltas(deltas)


async def serve(directory: str, ports: str, front: str) -> None:
    """The main process; prints its port, then its CPU seconds for every line that comes in."""
    from bough.entrypoints.http.server import bind_socket
    from bough.entrypoints.server_run import settle_garbage_collector
    from bough.ipc.channels import TokenizerChannels

    channels = TokenizerChannels(PortArgs.from_dict(json.loads(ports)))
    sock = bind_socket("127.0.0.1", 0)
    if front == "bare":
        from bare_front import bare_server

        server: uvicorn.Server = bare_server(channels)
    else:
        server = await bough_server(directory, channels)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    settle_garbage_collector()
    print(sock.getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(*cpu_seconds(), flush=True)
    server.should_exit = server.force_exit = True
    await serving


async def bough_server(directory: str, channels: TokenizerChannels) -> uvicorn.Server:
    """Everything of a main process."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers

    from bough.config.model_config import ModelConfig
    from bough.config.server_args import ServerArgs
    from bough.entrypoints.http.app import create_app
    from bough.entrypoints.http.server import make_server
    from bough.managers.tokenizer_manager import TokenizerManager
    from bough.tokenization.tokenizer import Tokenizer

    backend = Backend(models.BPE({c: i for i, c in enumerate(pre_tokenizers.ByteLevel.alphabet())}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    args = ServerArgs(model_path=directory, incremental_streaming_output=True)
    manager = TokenizerManager(
        args,
        ModelConfig.from_path(directory, load_format="dummy"),
        Tokenizer(backend),
        channels,
        {"max_req_input_len": 4095, "max_req_len": 4096},
    )
    await manager.start()
    return make_server(create_app(manager), args, None)


_SENT = re.compile(rb'"(?:text|content)":"((?:[0-9]+,)+)"')


class Counter(asyncio.Protocol):
    """Sends a request, counts the events of the answer, and notes how old the tokens in them are (nanoseconds)."""

    def __init__(self, request: bytes, done: asyncio.Future[int], ages: array[int]) -> None:
        self.request = request
        self.done = done
        self.ages = ages
        self.events = 0
        self.tail = b""

    def connection_made(self, transport: Any) -> None:
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        self.events += data.count(b"data: {")
        for found in _SENT.finditer(data):
            self.ages.append(now - int(found[1].partition(b",")[0]))
        self.tail = (self.tail + data)[-32:]
        if b"[DONE]" in self.tail and not self.done.done():
            self.done.set_result(self.events)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(-1)


async def run_client(port: int, path: str, body: dict[str, Any], streams: int) -> tuple[int, array[int]]:
    """Events of so many streams, and the ages of their tokens."""
    ages = array("q")
    encoded = json.dumps({**body, "stream": True}).encode()
    request = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"content-length: {len(encoded)}\r\n\r\n"
    ).encode() + encoded
    loop = asyncio.get_running_loop()
    waiting = []
    for _ in range(streams):
        done: asyncio.Future[int] = loop.create_future()
        await loop.create_connection(lambda done=done: Counter(request, done, ages), "127.0.0.1", port)
        waiting.append(done)
    events = await asyncio.gather(*waiting)
    if min(events) < 0:
        raise RuntimeError(f"{path}: {sum(each < 0 for each in events)} of {streams} streams broke off")
    return sum(events), ages


class Requester(asyncio.Protocol):
    """Asks for one token after another on one connection, until time is up."""

    def __init__(self, request: bytes, until: float, done: asyncio.Future[int]) -> None:
        self.request = request
        self.until = until
        self.done = done
        self.answers = 0
        self.answer = b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.answer += data
        if not data.endswith(b"}"):
            return
        if not self.answer.startswith(b"HTTP/1.1 200 "):
            self.done.set_exception(RuntimeError(self.answer[:200].decode(errors="replace")))
            self.transport.close()
            return
        self.answer = b""
        self.answers += 1
        if time.perf_counter() < self.until:
            self.transport.write(self.request)
        elif not self.done.done():
            self.done.set_result(self.answers)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"the connection broke after {self.answers} answers"))


async def run_requests(port: int, path: str, body: dict[str, Any], connections: int, seconds: float) -> int:
    """Answers within so many seconds, with so many requests at a time."""
    encoded = json.dumps(body).encode()
    request = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(encoded)}\r\n\r\n"
    ).encode() + encoded
    loop = asyncio.get_running_loop()
    until = time.perf_counter() + seconds
    waiting = []
    for _ in range(connections):
        done: asyncio.Future[int] = loop.create_future()
        await loop.create_connection(lambda done=done: Requester(request, until, done), "127.0.0.1", port)
        waiting.append(done)
    return sum(await asyncio.gather(*waiting))


def percentile(values: Sequence[int], share: float) -> float:
    ordered = sorted(values)
    return float(ordered[min(int(share * len(ordered)), len(ordered) - 1)]) if ordered else math.nan


def with_tokens(body: dict[str, Any], tokens: int) -> dict[str, Any]:
    if "sampling_params" in body:
        return {**body, "sampling_params": {"max_new_tokens": tokens}}
    return {**body, "max_tokens": tokens}


def measure(streams: int, tokens: int, rate: float, route: str, front: str) -> dict[str, Any]:
    import uvloop

    path, body = ROUTES[route]
    body = with_tokens(body, tokens)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(MODEL_CONFIG))
        ports = PortArgs.create()
        command = [sys.executable, __file__, "--ports", json.dumps(ports.to_dict())]
        feeding = subprocess.Popen([*command, "--role", "feeder", "--rate", str(rate)])
        serving = subprocess.Popen(
            [*command, "--role", "server", "--directory", directory, "--fronts", front],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert serving.stdin is not None
        assert serving.stdout is not None
        try:
            port = int(serving.stdout.readline())

            def server_cpu() -> tuple[float, float]:
                assert serving.stdin is not None
                assert serving.stdout is not None
                serving.stdin.write("\n")
                serving.stdin.flush()
                user, system = map(float, serving.stdout.readline().split())
                return user, system

            uvloop.run(run_client(port, path, with_tokens(body, 4), streams))
            before, own, start = server_cpu(), sum(cpu_seconds()), time.perf_counter()
            events, ages = uvloop.run(run_client(port, path, body, streams))
            elapsed = time.perf_counter() - start
            own, after = sum(cpu_seconds()) - own, server_cpu()
            cpu, system = sum(after) - sum(before), after[1] - before[1]
            one, start, idle = with_tokens(body, 1), time.perf_counter(), sum(server_cpu())
            answers = uvloop.run(run_requests(port, path, one, streams, REQUEST_SECONDS))
            request_seconds, request_cpu = time.perf_counter() - start, sum(server_cpu()) - idle
        finally:
            serving.stdin.close()
            serving.wait(10)
            feeding.kill()
            feeding.wait()
            ports.cleanup()
    return {
        "route": route,
        "front": front,
        "streams": streams,
        "tokens": streams * tokens,
        "events": events,
        "events_per_second": events / elapsed,
        "server_us_per_event": cpu / events * 1e6,
        "tokens_per_second_per_core": min(events, streams * tokens) / cpu,
        "share_of_goal": min(events, streams * tokens) / cpu / GOAL,
        "added_latency_p50_ms": percentile(ages, 0.5) / 1e6,
        "added_latency_p99_ms": percentile(ages, 0.99) / 1e6,
        "requests_per_second": answers / request_seconds,
        "server_us_per_request": request_cpu / max(answers, 1) * 1e6,
        "server_system_us_per_event": system / events * 1e6,
        "server_cpu_share": cpu / elapsed,
        "client_us_per_event": own / events * 1e6,
        "coalesced_share": 1 - events / (streams * tokens),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--role", choices=["bench", "server", "feeder"], default="bench", help=argparse.SUPPRESS)
    parser.add_argument("--ports", help=argparse.SUPPRESS)
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, default=20.0, help="tokens per second and stream")
    parser.add_argument("--tokens", type=int, default=200, help="tokens per stream")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 64, 512])
    parser.add_argument(
        "--fronts",
        nargs="+",
        default=["bough"],
        choices=["bough", "bare"],
        help="bare: the least on Starlette, for completions only",
    )
    parser.add_argument("--routes", nargs="+", default=list(ROUTES), choices=list(ROUTES))
    parser.add_argument("--output", type=Path, help="write the results as JSON")
    args = parser.parse_args()
    if args.role == "feeder":
        feeder(args.ports, args.rate)
        return
    if args.role == "server":
        import uvloop

        uvloop.run(serve(args.directory, args.ports, args.fronts[0]))
        return
    results = []
    print(*(title.rjust(width) for title, width, _, _ in COLUMNS))
    for route, front in itertools.product(args.routes, args.fronts):
        if front == "bare" and route != "/v1/completions":
            continue
        for streams in args.streams:
            result = measure(streams, args.tokens, args.rate, route, front)
            results.append(result)
            print(*(format(result[key], form).rjust(width) for _, width, key, form in COLUMNS), flush=True)
    if args.output:
        machine = {"cpu_count": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
        args.output.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
