"""What a streamed token costs the main process: sockets, message decoding, text to SSE, HTTP.

Three processes: a feeder in the place of scheduler and detokenizer, which sends one token to every running request at
a fixed rate over the real channels; the main process; and a client that counts events on raw sockets, cheaply. The
figure is the CPU time (user and system) of the main process per streamed event. The client's own is shown beside it,
because it takes the same cores. Tokens that shared an event, because the main process or the client came too late for
them, are shown as a share: a figure with many of them is not the price of an event a token.

    python benchmarks/http_front.py --output http_front.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bough.config.port_args import PortArgs

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


def feeder(directory: str, rate: float, chars: int) -> None:
    """Send every running request a token, ``rate`` times a second."""
    from bough.ipc.channels import SchedulerChannels
    from bough.ipc.messages import AbortReq, FinishReason, OutputDelta, TokenizedGenerateReqInput

    channels = SchedulerChannels(PortArgs.from_dict(json.loads(directory)), has_detokenizer=False)
    running: dict[str, list[int]] = {}
    text = "x" * chars
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
        for rid, counts in list(running.items()):
            counts[0] += 1
            reason = None
            if counts[0] == counts[1]:
                reason = FinishReason("length", length=counts[0])
                del running[rid]
            deltas.append(OutputDelta(rid, [counts[0]], text, reason, counts[0], 3, 0))
        channels.send_deltas(deltas)


async def serve(directory: str, ports: str) -> None:
    """The main process; prints its port, then its CPU seconds for every line that comes in."""
    from tokenizers import Tokenizer as Backend
    from tokenizers import decoders, models, pre_tokenizers

    from bough.config.model_config import ModelConfig
    from bough.config.server_args import ServerArgs
    from bough.entrypoints.http.app import create_app
    from bough.entrypoints.http.server import bind_socket, make_server
    from bough.ipc.channels import TokenizerChannels
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
        TokenizerChannels(PortArgs.from_dict(json.loads(ports))),
        {"max_req_input_len": 4095, "max_req_len": 4096},
    )
    await manager.start()
    sock = bind_socket("127.0.0.1", 0)
    server = make_server(create_app(manager), args)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    print(sock.getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(*cpu_seconds(), flush=True)
    server.should_exit = server.force_exit = True
    await serving


class Counter(asyncio.Protocol):
    """Sends a request and counts the events of the answer."""

    def __init__(self, request: bytes, done: asyncio.Future[int]) -> None:
        self.request = request
        self.done = done
        self.events = 0
        self.tail = b""

    def connection_made(self, transport: Any) -> None:
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self.events += data.count(b"data: {")
        self.tail = (self.tail + data)[-32:]
        if b"[DONE]" in self.tail and not self.done.done():
            self.done.set_result(self.events)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(-1)


async def run_client(port: int, path: str, body: dict[str, Any], streams: int) -> int:
    encoded = json.dumps({**body, "stream": True}).encode()
    request = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
        f"content-length: {len(encoded)}\r\n\r\n"
    ).encode() + encoded
    loop = asyncio.get_running_loop()
    waiting = []
    for _ in range(streams):
        done: asyncio.Future[int] = loop.create_future()
        await loop.create_connection(lambda done=done: Counter(request, done), "127.0.0.1", port)
        waiting.append(done)
    return sum(await asyncio.gather(*waiting))


def with_tokens(body: dict[str, Any], tokens: int) -> dict[str, Any]:
    if "sampling_params" in body:
        return {**body, "sampling_params": {"max_new_tokens": tokens}}
    return {**body, "max_tokens": tokens}


def measure(streams: int, tokens: int, rate: float, route: str) -> dict[str, Any]:
    import uvloop

    path, body = ROUTES[route]
    body = with_tokens(body, tokens)
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "config.json").write_text(json.dumps(MODEL_CONFIG))
        ports = PortArgs.create()
        command = [sys.executable, __file__, "--ports", json.dumps(ports.to_dict())]
        feeding = subprocess.Popen([*command, "--role", "feeder", "--rate", str(rate)])
        serving = subprocess.Popen(
            [*command, "--role", "server", "--directory", directory],
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
            events = uvloop.run(run_client(port, path, body, streams))
            elapsed = time.perf_counter() - start
            own, after = sum(cpu_seconds()) - own, server_cpu()
            cpu, system = sum(after) - sum(before), after[1] - before[1]
        finally:
            serving.stdin.close()
            serving.wait(10)
            feeding.kill()
            feeding.wait()
            ports.cleanup()
    return {
        "route": route,
        "streams": streams,
        "tokens": streams * tokens,
        "events": events,
        "events_per_second": events / elapsed,
        "server_us_per_event": cpu / events * 1e6,
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
    parser.add_argument("--rate", type=float, default=50.0, help="tokens per second and stream")
    parser.add_argument("--tokens", type=int, default=200, help="tokens per stream")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument("--output", type=Path, help="write the results as JSON")
    args = parser.parse_args()
    if args.role == "feeder":
        feeder(args.ports, args.rate, chars=4)
        return
    if args.role == "server":
        import uvloop

        uvloop.run(serve(args.directory, args.ports))
        return
    results = []
    print(
        f"{'route':22} {'streams':>7} {'events/s':>9} {'server µs/event':>15} {'of it kernel':>12} "
        f"{'server cores':>12} "
        f"{'client µs/event':>15} {'coalesced':>9}"
    )
    for route in ROUTES:
        for streams in args.streams:
            result = measure(streams, args.tokens, args.rate, route)
            results.append(result)
            print(
                f"{route:22} {streams:7} {result['events_per_second']:9.0f} {result['server_us_per_event']:15.1f} "
                f"{result['server_system_us_per_event']:12.1f} "
                f"{result['server_cpu_share']:12.2f} {result['client_us_per_event']:15.1f}"
                f" {result['coalesced_share']:9.1%}"
            )
    if args.output:
        machine = {"cpu_count": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
        args.output.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
