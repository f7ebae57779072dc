"""A scheduler without a model, for tests: answers a prompt with its own ids, over and over.

What it shall do wrong is written on the outside: ``served_model_name`` decides about the start, ``extra_key`` about a
request.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from bough.child_main import Child, run_child
from bough.config.ranks import ProcessKey
from bough.errors import ConfigError
from bough.ipc.channels import SchedulerChannels
from bough.ipc.messages import (
    AbortReq,
    ControlReply,
    ControlReq,
    DecodeInit,
    FinishReason,
    Heartbeat,
    OutputDelta,
    ShutdownReq,
    TokenizedGenerateReqInput,
)
from bough.observability.stats import SchedulerStats

TICK_SECONDS = 0.002
SLOW_TICK_SECONDS = 0.05


@dataclass
class EchoReq:
    prompt: list[int]
    ids: Iterator[int]
    left: int
    total: int = 0


class EchoScheduler:
    def __init__(self, channels: SchedulerChannels, key: ProcessKey) -> None:
        self.key = key
        self.channels = channels
        self.requests: dict[str, EchoReq] = {}
        self.tick = TICK_SECONDS
        self.shutting_down = False

    def run(self) -> None:
        while not self.shutting_down:
            for message in self.channels.recv(self.tick if self.requests else 0.25):
                self.handle(message)
            self.step()
            if self.channels.heartbeat_due:
                self.channels.send_to_tokenizer(
                    Heartbeat(self.key, stats=SchedulerStats(num_running_reqs=len(self.requests)))
                )

    def handle(self, message) -> None:
        if isinstance(message, TokenizedGenerateReqInput):
            self.obey(message.extras.extra_key or "")
            ids = array("i", message.input_ids).tolist()
            for rid in message.rids:
                self.requests[rid] = EchoReq(ids, itertools.cycle(ids), message.sampling_params.max_new_tokens)
        elif isinstance(message, AbortReq):
            for rid in list(self.requests):
                if message.abort_all or (rid == message.rid if message.exact else rid.startswith(message.rid)):
                    self.finish(rid, FinishReason("abort", message="aborted"))
        elif isinstance(message, ControlReq):
            known = message.method in ("flush_cache", "get_internal_state")
            state = {"num_running_reqs": len(self.requests), "idle": not self.requests}
            self.channels.send_to_tokenizer(
                ControlReply(
                    message.call_id, self.key, known, "" if known else f"unknown method {message.method}", state
                )
            )
        elif isinstance(message, ShutdownReq):
            self.shutting_down = True

    def obey(self, extra_key: str) -> None:
        if extra_key.endswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        elif extra_key.endswith("raise"):
            raise RuntimeError("told to fail")
        elif extra_key.endswith("hang"):
            time.sleep(3600)
        self.tick = SLOW_TICK_SECONDS if extra_key.endswith("slow") else TICK_SECONDS

    def step(self) -> None:
        deltas = []
        for rid, req in list(self.requests.items()):
            first = req.total == 0
            req.total += 1
            req.left -= 1
            delta = OutputDelta(rid, [next(req.ids)], completion_tokens=req.total, prompt_tokens=len(req.prompt))
            if first:
                delta.decode = DecodeInit([])
            if req.left <= 0:
                delta.finish_reason = FinishReason("length", length=req.total)
                del self.requests[rid]
            deltas.append(delta)
        self.channels.send_deltas(deltas)

    def finish(self, rid: str, reason: FinishReason) -> None:
        req = self.requests.pop(rid)
        decode = DecodeInit([]) if req.total == 0 else None
        self.channels.send_deltas([OutputDelta(rid, [], None, reason, req.total, len(req.prompt), decode=decode)])


def run_echo_scheduler(child: Child) -> int:
    start = child.server_args.served_model_name or ""
    if start == "config-error":
        raise ConfigError("no such device;\nuse another")
    if start == "error":
        raise RuntimeError("told to fail")
    if start == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if start == "exit":
        os._exit(3)
    if start == "secrets":
        args = child.server_args
        raise ConfigError(f"told {args.api_key}, {args.admin_api_key}, {args.ssl_keyfile_password} at {args.port}")
    if start == "slow":
        time.sleep(3600)
    channels = SchedulerChannels(
        child.port_args, child.config.key, has_detokenizer=not child.server_args.skip_tokenizer_init
    )
    child.ready({"max_total_num_tokens": 1000, "max_req_input_len": 500, "max_req_len": 501, "timings": {"load": 0.0}})
    EchoScheduler(channels, child.config.key).run()
    channels.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_child(run_echo_scheduler, sys.argv[1:]))
