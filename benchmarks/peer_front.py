"""What a streamed token costs the front ends of SGLang and vLLM, beside ours: same client, same load, no model.

The peers' servers are started by their own launchers. Only the engine behind them is replaced, by a process that gives
every running request a token at a fixed rate: ``peer_engines.py``, which also says what is measured of each.

All but ``sglang`` get ids and turn them into text where they are measured; in Bough and ``sglang`` another process does
that, which is not measured. A token is then an entry of the vocabulary that says when it was sent, to 50 µs, modulo
10 s. Chat is rendered and tokenized by the peers, from a template that does nothing, while Bough is given ids: this
counts once per request.

Everything else is the peers' default: their middleware, statistics and validation are in their figures as ours are in
ours. Processor time is read from outside, from the clock of the process. Bough, which ``http_front.measure`` measures,
and the peers take turns ``--rounds`` times; the median is shown, and the single measurements are in the output.

The peers want CUDA's packages and versions of their own of much that Bough uses. So each needs an environment of its
own, into which packages go without what they depend on, on top of torch for processors and what Bough requires::

    python -m venv sglang-env
    sglang-env/bin/pip install -c constraints.txt .  # or a .pth file that leads to where all that is installed
    python benchmarks/peer_front.py --packages sglang | xargs sglang-env/bin/pip install --no-deps
    python benchmarks/peer_front.py --sglang sglang-env/bin/python --vllm vllm-env/bin/python --output peer_front.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import uvloop
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import http_front
from peer_engines import ENGINE_PID, FIRST_STAMP, PERIOD, STAMPS, TICK

PACKAGES = {
    "sglang": (
        "sglang==0.5.23 transformers==5.19.0 tokenizers==0.23.2 openai==2.8.0 xgrammar==0.2.7 sentencepiece==0.2.1 "
        "numba==0.65.1 llvmlite<0.48 apache-tvm-ffi==0.1.11 compressed-tensors==0.18.0 openai-harmony==0.0.4 orjson "
        "pybase64 setproctitle einops xxhash zstandard partial_json_parser interegular python-multipart pillow scipy "
        "tiktoken mistral_common nvidia-ml-py python-dateutil watchfiles six soundfile cffi pycparser pycountry distro "
        "pydantic-extra-types cloudpickle dill loguru"
    ),
    "vllm": (
        "vllm==0.33.0 transformers>=5.16.1,<5.21 fastapi>=0.133,<0.137 xgrammar==0.2.8 llguidance>=1.7,<1.8 "
        "outlines_core==0.2.14 lark==1.2.2 lm-format-enforcer==0.11.3 compressed-tensors==0.17.0 depyf==0.20.0 "
        "numba==0.65.0 llvmlite<0.48 apache-tvm-ffi==0.1.11 mcp>=2.2,<3 nvtx==0.2.15 oss-harmony mistral_common "
        "prometheus-fastapi-instrumentator>=8 model-hosting-container-standards opentelemetry-semantic-conventions-ai "
        "partial-json-parser python-json-logger python-multipart pydantic-extra-types pydantic-settings python-dotenv "
        "sse-starlette httpx-sse email-validator opencv-python-headless cachetools sentencepiece blake3 py-cpuinfo "
        "orjson pillow tiktoken einops cloudpickle watchfiles pybase64 cbor2 ijson setproctitle interegular six "
        "pycountry astor dill diskcache jmespath pyjwt loguru"
    ),
}
"""What is installed with ``--no-deps``."""

PEERS = ("sglang", "sglang-rust", "vllm", "vllm-rust")
MODEL_CONFIG = {
    **http_front.MODEL_CONFIG,
    "vocab_size": FIRST_STAMP + STAMPS,
    "eos_token_id": 256,
    "torch_dtype": "bfloat16",
}
ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "/generate (deltas)": ("/generate", {"input_ids": [1, 2, 3], "sampling_params": {"max_new_tokens": 0}}),
    "/v1/completions": ("/v1/completions", {"model": "peer", "prompt": [1, 2, 3], "max_tokens": 0}),
    "/v1/chat/completions": (
        "/v1/chat/completions",
        {"model": "peer", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 0},
    ),
}
"""As in ``http_front.py``, with what the peers ask for besides, and without ids for chat, which only Bough takes."""

COLUMNS = [
    ("route", 20, "route", ""),
    ("front", 9, "front", ""),
    ("streams", 7, "streams", ""),
    ("µs/token", 8, "server_us_per_token", ".1f"),
    ("of it kernel", 12, "server_system_us_per_token", ".1f"),
    ("tokens/s/core", 13, "tokens_per_second_per_core", ".0f"),
    ("p50 ms", 8, "added_latency_p50_ms", ".2f"),
    ("p99 ms", 8, "added_latency_p99_ms", ".2f"),
    ("requests/s", 10, "requests_per_second", ".0f"),
    ("µs/request", 10, "server_us_per_request", ".0f"),
    ("client µs/token", 15, "client_us_per_token", ".1f"),
    ("coalesced", 9, "coalesced_share", ".1%"),
    ("cores", 5, "server_cpu_share", ".2f"),
]
"""What is printed: title, width, member of a result, format."""

READY_SECONDS = 240.0
ENGINES = Path(__file__).with_name("peer_engines.py")
"""The program that a peer's interpreter runs."""


def write_model(directory: Path) -> None:
    """A configuration and a tokenizer; there are no weights."""
    texts = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "<end>", *(f"{stamp * TICK}," for stamp in range(STAMPS))]
    backend = Tokenizer(models.BPE({text: i for i, text in enumerate(texts)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.save(str(directory / "tokenizer.json"))
    tokenizer = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<end>",
        "clean_up_tokenization_spaces": False,
        "chat_template": "{% for message in messages %}{{ message['content'] }}{% endfor %}",
    }
    directory.joinpath("tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    directory.joinpath("config.json").write_text(json.dumps(MODEL_CONFIG), encoding="utf-8")


def kernel_seconds(stat: str) -> float:
    """What the kernel has used of a processor for a process or thread, in hundredths."""
    fields = Path(stat).read_text(encoding="utf-8").rpartition(")")[2].split()
    return int(fields[12]) / os.sysconf("SC_CLK_TCK")


class PeerServer:
    """A peer's server with an engine that only gives tokens.

    Args:
        peer: one of :data:`PEERS`.
        python: the interpreter of its environment.
        model: directory of :func:`write_model`.
        rate: tokens per second and stream.
    """

    def __init__(self, peer: str, python: str, model: Path, rate: float) -> None:
        self.peer = peer
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        environment = {
            **os.environ,
            "PEER_FRONT_RATE": str(rate),
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_LOGGING_LEVEL": "WARNING",
            "VLLM_TARGET_DEVICE": "cpu",
            "VLLM_USE_RUST_FRONTEND": str(int(peer == "vllm-rust")),
            "SGLANG_RUST_SERVER": str(int(peer == "sglang-rust")),
        }
        role = peer.removesuffix("-rust")
        self._is_embedded = peer == "sglang-rust"
        self._model = model
        self._process = subprocess.Popen(
            [python, str(ENGINES), "--role", role, "--model", str(model), "--port", str(self.port)],
            env=environment,
            start_new_session=True,
        )
        try:
            self._wait()
            self.pid = self._front()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it and what it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def processor_seconds(self) -> float:
        """What the front has used, all threads: ``clock_getcpuclockid`` in the kernel's numbering."""
        seconds = time.clock_gettime((~self.pid << 3) | 2)
        if self._is_embedded:
            schedstat = Path(f"/proc/{self.pid}/task/{self.pid}/schedstat")
            seconds -= int(schedstat.read_text(encoding="utf-8").split()[0]) / 1e9
        return seconds

    def kernel_seconds(self) -> float:
        """The kernel's part of it."""
        seconds = kernel_seconds(f"/proc/{self.pid}/stat")
        if self._is_embedded:
            seconds -= kernel_seconds(f"/proc/{self.pid}/task/{self.pid}/stat")
        return seconds

    def _wait(self) -> None:
        until = time.monotonic() + READY_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).close()
            except (urllib.error.URLError, OSError):
                time.sleep(0.3)
            else:
                return
        raise RuntimeError(f"{self.peer} did not start")

    def _front(self) -> int:
        """The process that answers."""
        pid = self._process.pid
        if self._is_embedded:
            return int(self._model.joinpath(ENGINE_PID).read_text(encoding="utf-8"))
        if self.peer != "vllm-rust":
            return pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split():
            if Path(f"/proc/{child}/comm").read_text(encoding="utf-8").startswith("vllm-rs"):
                return int(child)
        raise RuntimeError("vllm-rs is not there")


def measure_peer(server: PeerServer, streams: int, tokens: int, route: str) -> dict[str, Any]:
    """A row of the table for a server that runs."""
    path, body = ROUTES[route]
    body = http_front.with_tokens(body, tokens)
    uvloop.run(http_front.run_client(server.port, path, http_front.with_tokens(body, 4), streams))
    before, kernel = server.processor_seconds(), server.kernel_seconds()
    own, start = sum(http_front.cpu_seconds()), time.perf_counter()
    events, ages = uvloop.run(http_front.run_client(server.port, path, body, streams))
    elapsed = time.perf_counter() - start
    own = sum(http_front.cpu_seconds()) - own
    cpu, kernel = server.processor_seconds() - before, server.kernel_seconds() - kernel
    if events < len(ages) or not ages:
        raise RuntimeError(f"{server.peer}: streams broke off")
    late = [age % PERIOD for age in ages] if server.peer != "sglang" else ages
    start, idle = time.perf_counter(), server.processor_seconds()
    answers = uvloop.run(
        http_front.run_requests(server.port, path, http_front.with_tokens(body, 1), streams, http_front.REQUEST_SECONDS)
    )
    request_seconds, request_cpu = time.perf_counter() - start, server.processor_seconds() - idle
    return {
        "route": route,
        "front": server.peer,
        "streams": streams,
        "tokens": streams * tokens,
        "events": len(ages),
        "server_us_per_token": cpu / (streams * tokens) * 1e6,
        "server_system_us_per_token": kernel / (streams * tokens) * 1e6,
        "tokens_per_second_per_core": streams * tokens / cpu,
        "added_latency_p50_ms": http_front.percentile(late, 0.5) / 1e6,
        "added_latency_p99_ms": http_front.percentile(late, 0.99) / 1e6,
        "requests_per_second": answers / request_seconds,
        "server_us_per_request": request_cpu / max(answers, 1) * 1e6,
        "client_us_per_token": own / (streams * tokens) * 1e6,
        "coalesced_share": 1 - len(ages) / (streams * tokens),
        "server_cpu_share": cpu / elapsed,
    }


def measure_bough(streams: int, tokens: int, rate: float, route: str) -> dict[str, Any]:
    """The same row for our main process."""
    result = http_front.measure(streams, tokens, rate, route, "bough")
    per_token = result["events"] / result["tokens"]
    for name in ("server_us_per", "server_system_us_per", "client_us_per"):
        result[f"{name}_token"] = result.pop(f"{name}_event") * per_token
    return result


def medians(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of several measurements of one cell."""
    return {
        key: value if all(row[key] == value for row in rows) else statistics.median(row[key] for row in rows)
        for key, value in rows[0].items()
    }


@contextmanager
def peer_servers(pythons: dict[str, str], rate: float) -> Iterator[dict[str, PeerServer]]:
    """All peers, running."""
    with ExitStack() as stack:
        model = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_model(model)
        servers = {}
        for peer, python in pythons.items():
            servers[peer] = PeerServer(peer, python, model, rate)
            stack.callback(servers[peer].close)
        yield servers


def bench(args: argparse.Namespace) -> None:
    """Measure what is asked for, and print and write it cell by cell."""
    interpreters = {"sglang": args.sglang, "sglang-rust": args.sglang, "vllm": args.vllm, "vllm-rust": args.vllm}
    pythons = {peer: python for peer, python in interpreters.items() if python and peer in args.fronts}
    machine = {"cpu_count": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    results: list[dict[str, Any]] = []
    print(*(title.rjust(width) for title, width, _, _ in COLUMNS), flush=True)
    with peer_servers(pythons, args.rate) as servers:
        for route, streams in itertools.product(args.routes, args.streams):
            rows: dict[str, list[dict[str, Any]]] = {}
            for _ in range(args.rounds):
                if "bough" in args.fronts:
                    rows.setdefault("bough", []).append(measure_bough(streams, args.tokens, args.rate, route))
                for peer, server in servers.items():
                    if route.startswith("/v1/") or peer.startswith("sglang"):
                        rows.setdefault(peer, []).append(measure_peer(server, streams, args.tokens, route))
            for measured in rows.values():
                result = medians(measured)
                print(*(format(result[key], form).rjust(width) for _, width, key, form in COLUMNS), flush=True)
                results.append({**result, "rounds": measured})
            if args.output:
                text = json.dumps({"machine": machine, "packages": PACKAGES, "results": results}, indent=1)
                args.output.write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", choices=list(PACKAGES), help="print what belongs in a peer's environment")
    parser.add_argument("--sglang", metavar="PYTHON", help="interpreter of SGLang's environment")
    parser.add_argument("--vllm", metavar="PYTHON", help="interpreter of vLLM's environment")
    parser.add_argument("--fronts", nargs="+", choices=["bough", *PEERS], default=["bough", *PEERS])
    parser.add_argument("--rate", type=float, default=20.0, help="tokens per second and stream")
    parser.add_argument("--tokens", type=int, default=200, help="tokens per stream")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 64, 512])
    parser.add_argument("--routes", nargs="+", default=list(ROUTES), choices=list(ROUTES))
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each front, in turns")
    parser.add_argument("--output", type=Path, help="write the results as JSON")
    args = parser.parse_args()
    if args.packages:
        print(*PACKAGES[args.packages].split(), sep="\n")
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
        bench(args)


if __name__ == "__main__":
    main()
