"""What stands for the engines of SGLang and vLLM in ``peer_front.py``, which starts this in their environments.

Their own launchers start their own servers. Only the engine is replaced, by a process that gives every running request
a token at a fixed rate and speaks the peer's own messages over the peer's own channels:

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

In SGLang's environment, some modules are empty: see ``absent_modules.py``. vLLM's needs none.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from absent_modules import stub_absent

TICK = 50_000
STAMPS = 200_000
PERIOD = TICK * STAMPS
"""Nanoseconds: a token of the vocabulary says when it was sent, in whole ticks, modulo the period."""
FIRST_STAMP = 257
"""Behind the bytes and the end of sequence."""

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--role", choices=["sglang", "vllm"], required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--port", type=int, required=True)
    args = parser.parse_args()
    serve = serve_sglang if args.role == "sglang" else serve_vllm
    serve(args.model, args.port)


# Not only where this is the program: SGLang's processes import it again before they unpickle what they run.
if "--role" in sys.argv and sys.argv[sys.argv.index("--role") + 1] == "sglang":
    stub_absent()

if __name__ == "__main__":
    main()
