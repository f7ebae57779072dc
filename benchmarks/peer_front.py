"""What a streamed token costs the front ends of SGLang and vLLM, beside ours: same client, same load, no model.

The peers' servers are started by their own launchers. Only the engine behind them is replaced, by a process that gives
every running request a token at a fixed rate and speaks the peer's own messages over the peer's own channels:

``sglang``
    ``launch_server`` with a scheduler that sends ``BatchStrOutput`` to the tokenizer manager, and a detokenizer process
    that sleeps: the same cut as in ``http_front.py``, whose feeder sends text, too.
``sglang-rust``
    The same with ``SGLANG_RUST_SERVER=1``: HTTP, tokenizer and detokenizer are then threads of the scheduler's process,
    and are given ids. Measured are all its threads but the first one, which stands for the scheduler.
``vllm``
    ``vllm serve`` with one API server, and an ``EngineCoreProc`` that keeps its handshake and its socket threads, but
    has neither scheduler nor executor.
``vllm-rust``
    The same with ``VLLM_USE_RUST_FRONTEND=1``. Measured is the process ``vllm-rs``, all its threads together.

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

In SGLang's environment, :data:`ABSENT` are empty modules: its server imports them, but nothing on the way of a text
request calls them. vLLM's needs no stubs.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
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
import types
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

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
        "pycountry astor dill diskcache jmespath pyjwt"
    ),
}
"""What is installed with ``--no-deps``."""

ABSENT = ("IPython", "torchvision", "sgl_kernel", "flashinfer", "tilelang", "deep_gemm", "datasets")
"""Modules that SGLang's server imports and that are not there."""

PEERS = ("sglang", "sglang-rust", "vllm", "vllm-rust")
TICK = 50_000
STAMPS = 200_000
PERIOD = TICK * STAMPS
"""Nanoseconds: a token of the vocabulary says when it was sent, in whole ticks, modulo the period."""
FIRST_STAMP = 257
"""Behind the bytes and the end of sequence."""

MODEL_CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": FIRST_STAMP + STAMPS,
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
ENGINE_PID = "engine.pid"
"""File beside the model in which an engine that embeds the front leaves its process."""


def stamp() -> int:
    """The token that says what time it is."""
    return FIRST_STAMP + time.monotonic_ns() // TICK % STAMPS


class Pace:
    """Who is running and when they get their next token: the feeder of ``http_front.py``, for any messages."""

    def __init__(self, rate: float) -> None:
        self._period = 1 / rate
        self._next = time.perf_counter()
        self._running: dict[str, list[int]] = {}

    def add(self, rid: str, tokens: int) -> None:
        """Start a request of so many tokens."""
        self._running[rid] = [0, tokens]

    def drop(self, rid: str) -> None:
        """End a request early, if it runs."""
        self._running.pop(rid, None)

    def wait(self) -> float:
        """Seconds until something is due."""
        return max(0.0, self._next - time.perf_counter()) if self._running else 1.0

    def step(self) -> list[tuple[str, int, bool]]:
        """If it is time, every running request with its number of tokens and whether that was the last one."""
        now = time.perf_counter()
        if not self._running or now < self._next:
            return []
        self._next = max(self._next + self._period, now - self._period)
        given = []
        for rid, counts in list(self._running.items()):
            counts[0] += 1
            done = counts[0] >= counts[1]
            if done:
                del self._running[rid]
            given.append((rid, counts[0], done))
        return given


class _AbsentModule(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes :data:`ABSENT` importable."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def stub_absent() -> None:
    """Put empty modules in the place of :data:`ABSENT`; transformers decides before that what it has."""
    from transformers.utils import import_utils

    import_utils.is_torchvision_available()
    sys.meta_path.insert(0, _AbsentFinder())


def run_sglang_scheduler(server_args: Any, port_args: Any, *rest: Any, **options: Any) -> None:
    """In the place of SGLang's scheduler and detokenizer."""
    writer = next(value for value in (*rest, *options.values()) if hasattr(value, "send"))
    ready = {"status": "ready", "max_total_num_tokens": 1 << 20, "max_req_input_len": 4095, "startup_time": 0.0}
    if os.environ.get("SGLANG_RUST_SERVER") == "1":
        feed_sglang_rust(server_args, lambda: writer.send(ready))
    else:
        feed_sglang(port_args, lambda: writer.send(ready))


def feed_sglang_rust(server_args: Any, report: Callable[[], None]) -> None:
    """Embed SGLang's server of Rust as the scheduler does, and give it token ids."""
    from array import array

    from sglang.srt.configs.model_config import ModelConfig
    from sglang.srt.managers import io_struct
    from sglang.srt.runtime_context import SpawnRanks, publish
    from sglang.srt.rust_server.server import RustServer

    publish(server_args, role="scheduler", ranks=SpawnRanks(world_rank=0, dp_rank=None, gpu_id=0))
    scheduler = types.SimpleNamespace(
        server_args=server_args,
        model_config=ModelConfig.from_server_args(server_args),
        tokenizer=None,
        kv_events_publisher=types.SimpleNamespace(local_kv_event_sources=lambda _: []),
        page_size=1,
        load_snapshot_writer=None,
        max_total_num_tokens=1 << 20,
        max_req_input_len=4095,
        rust_server_tokenizer_path=lambda: server_args.model_path,
    )
    server: Any = RustServer.launch(scheduler)
    Path(server_args.model_path, ENGINE_PID).write_text(str(os.getpid()), encoding="utf-8")
    report()
    pace = Pace(float(os.environ["PEER_FRONT_RATE"]))
    while True:
        server.wait_request(int(pace.wait() * 1000))
        for message in server.drain(0):
            if isinstance(message, io_struct.TokenizedGenerateReqInput):
                pace.add(message.rid or "", message.sampling_params.max_new_tokens or 1)
            elif isinstance(message, io_struct.AbortReq):
                pace.drop(message.rid or "")
        if not (given := pace.step()):
            time.sleep(min(pace.wait(), 0.001))
            continue
        ids = array("q", [stamp()])
        unused = dict.fromkeys(
            name for name in io_struct.BatchTokenIDOutput.__struct_fields__ if name not in ("rids", "output_ids")
        )
        payload = types.SimpleNamespace(**unused)
        payload.rids = [rid for rid, _, _ in given]
        payload.finished_reasons = [{"type": "length", "length": count} if done else None for _, count, done in given]
        payload.output_ids = [ids] * len(given)
        payload.prompt_tokens = [3] * len(given)
        payload.cached_tokens = payload.reasoning_tokens = [0] * len(given)
        server.push_generation(payload, {})


def feed_sglang(port_args: Any, report: Callable[[], None]) -> None:
    """Send SGLang's tokenizer manager the text of tokens."""
    from array import array

    import zmq
    from sglang.srt.managers import io_struct
    from sglang.srt.observability.req_time_stats import SchedulerReqTimeStats
    from sglang.srt.utils.network import get_zmq_socket

    context = zmq.Context(2)
    incoming = get_zmq_socket(context, zmq.PULL, port_args.scheduler_input_ipc_name, False)
    outgoing = get_zmq_socket(context, zmq.PUSH, port_args.tokenizer_ipc_name, False)
    report()
    pace = Pace(float(os.environ["PEER_FRONT_RATE"]))
    unused = dict.fromkeys(
        name
        for name in io_struct.BatchStrOutput.__struct_fields__
        if "logprobs" in name or name.startswith(("output_token_", "output_hidden", "routed", "indexer", "placeholder"))
    )

    def take(message: Any) -> None:
        if isinstance(message, io_struct.TokenizedGenerateReqInput):
            assert message.rid is not None
            pace.add(message.rid, message.sampling_params.max_new_tokens or 1)
        elif isinstance(message, io_struct.BatchTokenizedGenerateReqInput):
            for one in message.batch:
                take(one)
        elif isinstance(message, io_struct.AbortReq) and message.rid is not None:
            pace.drop(message.rid)

    while True:
        ready = incoming.poll(pace.wait() * 1000)
        while ready:
            take(io_struct.sock_recv(incoming))
            ready = incoming.poll(0)
        given = pace.step()
        if not given:
            continue
        size = len(given)
        text = f"{time.monotonic_ns()},"
        batch = io_struct.BatchStrOutput(
            rids=[rid for rid, _, _ in given],
            http_worker_ipcs=[None] * size,
            finished_reasons=[{"type": "length", "length": count} if done else None for _, count, done in given],
            output_strs=[text] * size,
            output_ids=[array("q", [FIRST_STAMP])] * size,
            prompt_tokens=[3] * size,
            completion_tokens=[count for _, count, _ in given],
            reasoning_tokens=[0] * size,
            cached_tokens=[0] * size,
            cached_tokens_details=[None] * size,
            retraction_counts=[0] * size,
            dp_ranks=[0] * size,
            # Sent for every token, though empty: what a scheduler without metrics sends.
            time_stats=io_struct.wrap_as_pickle([SchedulerReqTimeStats() for _ in given]),
            **unused,
        )
        io_struct.sock_send(outgoing, batch)


def run_sglang_detokenizer(*_: Any, **__: Any) -> None:
    """Nothing to do: the scheduler sends text."""
    while True:
        time.sleep(3600)


def serve_sglang(model: str, port: int) -> None:
    """SGLang's server, with another engine."""
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import ServerArgs

    args = ServerArgs(
        model_path=model,
        served_model_name="peer",
        device="cpu",
        load_format="dummy",
        host="127.0.0.1",
        port=port,
        log_level="warning",
        incremental_streaming_output=True,
    )
    launch_server(
        args,
        run_scheduler_process_func=run_sglang_scheduler,
        run_detokenizer_process_func=run_sglang_detokenizer,
    )


def run_vllm_core(*_: Any, **options: Any) -> None:
    """In the place of vLLM's ``EngineCoreProc.run_engine_core``."""
    import queue

    from vllm.v1 import engine
    from vllm.v1.engine.core import EngineCore, EngineCoreProc
    from vllm.v1.metrics.stats import PrefillStats, SchedulerStats

    class Scheduler:
        """What the engine's socket threads ask the scheduler."""

        def get_kv_event_publisher_config(self) -> None:
            return None

    def init(self: Any, vllm_config: Any, *_: Any, **__: Any) -> None:
        self.vllm_config = vllm_config
        self.scheduler = Scheduler()
        self.aborts_queue = queue.Queue()

    class Core(EngineCoreProc):
        """Hands out tokens."""

        def get_supported_tasks(self) -> tuple[str, ...]:
            return ("generate",)

        def reset_mm_cache(self) -> None:
            pass

        def preprocess_add_request(self, request: Any) -> tuple[Any, int]:
            return request, 0

        def run(self, rate: float) -> None:
            pace = Pace(rate)
            arrived: dict[str, float] = {}
            while True:
                try:
                    kind, content = self.input_queue.get(timeout=pace.wait() or 1e-6)
                    while True:
                        if kind is engine.EngineCoreRequestType.ADD:
                            request = content[0]
                            arrived[request.request_id] = time.monotonic()
                            pace.add(request.request_id, request.sampling_params.max_tokens or 1)
                        elif kind is engine.EngineCoreRequestType.ABORT:
                            for rid in content:
                                pace.drop(rid)
                        elif kind is engine.EngineCoreRequestType.UTILITY:
                            self._handle_client_request(kind, content)
                        kind, content = self.input_queue.get_nowait()
                except queue.Empty:
                    pass
                given = pace.step()
                if not given:
                    continue
                token = stamp()
                outputs = []
                for rid, count, done in given:
                    output = engine.EngineCoreOutput(rid, [token])
                    if done:
                        output.finish_reason = engine.FinishReason.LENGTH
                    if count == 1:
                        kinds = engine.EngineCoreEventType
                        since = arrived.pop(rid)
                        output.events = [
                            engine.EngineCoreEvent.new_event(kinds.QUEUED, since),
                            engine.EngineCoreEvent.new_event(kinds.SCHEDULED),
                        ]
                        output.prefill_stats = PrefillStats(num_prompt_tokens=3, num_computed_tokens=3)
                    outputs.append(output)
                stats = SchedulerStats(num_running_reqs=len(given))
                self.output_queue.put_nowait((0, engine.EngineCoreOutputs(outputs=outputs, scheduler_stats=stats)))

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    EngineCore.__init__ = init
    options.pop("local_dp_rank", None)
    core = Core(engine_index=options.pop("dp_rank", 0), **options)
    core.run(float(os.environ["PEER_FRONT_RATE"]))


def serve_vllm(model: str, port: int) -> None:
    """``vllm serve``, with another engine."""
    from vllm.entrypoints.cli.serve import ServeSubcommand
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.v1.engine.core import EngineCoreProc

    EngineCoreProc.run_engine_core = staticmethod(run_vllm_core)
    parser = make_arg_parser(FlexibleArgumentParser())
    options = {"host": "127.0.0.1", "port": port, "served-model-name": "peer", "load-format": "dummy"}
    flags = [f"--{name}={value}" for name, value in options.items()]
    args = parser.parse_args([model, *flags, "--disable-uvicorn-access-log"])
    command = ServeSubcommand()
    command.validate(args)
    command.cmd(args)


def write_model(directory: Path) -> None:
    """A configuration and a tokenizer; there are no weights."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

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
            [python, __file__, "--role", role, "--model", str(model), "--port", str(self.port)],
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
    import uvloop

    import http_front as ours

    path, body = ROUTES[route]
    body = ours.with_tokens(body, tokens)
    uvloop.run(ours.run_client(server.port, path, ours.with_tokens(body, 4), streams))
    before, kernel = server.processor_seconds(), server.kernel_seconds()
    own, start = sum(ours.cpu_seconds()), time.perf_counter()
    events, ages = uvloop.run(ours.run_client(server.port, path, body, streams))
    elapsed = time.perf_counter() - start
    own = sum(ours.cpu_seconds()) - own
    cpu, kernel = server.processor_seconds() - before, server.kernel_seconds() - kernel
    if events < len(ages) or not ages:
        raise RuntimeError(f"{server.peer}: streams broke off")
    late = [age % PERIOD for age in ages] if server.peer != "sglang" else ages
    start, idle = time.perf_counter(), server.processor_seconds()
    answers = uvloop.run(ours.run_requests(server.port, path, ours.with_tokens(body, 1), streams, ours.REQUEST_SECONDS))
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
        "added_latency_p50_ms": ours.percentile(late, 0.5) / 1e6,
        "added_latency_p99_ms": ours.percentile(late, 0.99) / 1e6,
        "requests_per_second": answers / request_seconds,
        "server_us_per_request": request_cpu / max(answers, 1) * 1e6,
        "client_us_per_token": own / (streams * tokens) * 1e6,
        "coalesced_share": 1 - len(ages) / (streams * tokens),
        "server_cpu_share": cpu / elapsed,
    }


def measure_bough(streams: int, tokens: int, rate: float, route: str) -> dict[str, Any]:
    """The same row for our main process."""
    import http_front as ours

    result = ours.measure(streams, tokens, rate, route, "bough")
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
    parser.add_argument("--role", choices=["bench", "sglang", "vllm"], default="bench", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
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
    elif args.role == "sglang":
        serve_sglang(args.model, args.port)
    elif args.role == "vllm":
        serve_vllm(args.model, args.port)
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
        bench(args)


# Not only where this is the program: SGLang's processes import it again before they unpickle what they run.
if "--role" in sys.argv and sys.argv[sys.argv.index("--role") + 1] == "sglang":
    stub_absent()

if __name__ == "__main__":
    main()
