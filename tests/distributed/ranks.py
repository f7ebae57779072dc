"""Ranks of a model in processes of their own, the first of them in that of the test."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch.distributed as dist

from bough.config.model_config import ModelConfig
from bough.config.port_args import PortArgs
from bough.config.ranks import WHOLE_MACHINE, ParallelLayout
from bough.config.server_args import ServerArgs
from bough.distributed.place import RankPlace
from bough.model_executor.rank_worker import LeadingWorker
from tests.entrypoints.leftovers import eventually
from tests.model_executor.plan_builder import RecordingRunner

STARTUP_SECONDS = 120.0


class RecordingLeader(RecordingRunner, LeadingWorker):
    """The first rank, with the logits that it sampled from."""


class Followers:
    """Processes that follow, one model after the other."""

    def __init__(self, world: int, *, ep_size: int = 1) -> None:
        self.layout = ParallelLayout(tp_size=world, ep_size=ep_size)
        self._processes: list[subprocess.Popen[str]] = []

    def _start(self) -> None:
        command, world = [sys.executable, "-m", "tests.distributed.following"], self.layout.tp_size
        command.append(str(self.layout.ep_size))
        self._processes = [
            subprocess.Popen([*command, str(world), str(rank)], stdin=subprocess.PIPE, text=True)
            for rank in range(1, world)
        ]

    @contextlib.contextmanager
    def leader(self, path: Path, *, shares_device: bool = False, **options: Any) -> Iterator[RecordingLeader]:
        """The first rank of a checkpoint, computed by torch, on a CPU in one thread.

        CUDA devices may be fewer than ranks if all share the first one.
        """
        args: dict[str, Any] = {
            "model_path": str(path),
            "device": "cpu",
            "cpu_threads": 1,
            "startup_timeout": STARTUP_SECONDS,
            "max_running_requests": 8,
            "max_total_tokens": 4096,
            "max_prefill_tokens": 1024,
            "tp_size": self.layout.tp_size,
            "ep_size": self.layout.ep_size,
            **options,
        }
        if not self._processes:
            self._start()
        ports = PortArgs.create()
        backend = "gloo" if shares_device else None
        request = {"args": args, "ports": ports.to_dict(), "backend": backend, "shares_device": shares_device}
        key = self.layout.schedulers[0]
        meeting_place = ports.meeting_place(key)
        try:
            for process in self._processes:
                assert process.stdin is not None
                print(json.dumps(request), file=process.stdin, flush=True)
            server_args = ServerArgs(**args)
            config = ModelConfig.from_args(server_args)
            place = RankPlace(key, self.layout, ports, backend)
            share = WHOLE_MACHINE if shares_device else self.layout.share_of(key)
            leader = RecordingLeader(server_args, config, share, place)
            yield leader
            leader.close()
        except BaseException:
            self.close()
            if dist.is_initialized():
                dist.destroy_process_group()
            raise
        finally:
            # The file where they met goes with its last user, who would wait for it if it went before.
            eventually(lambda: not meeting_place.exists(), 5.0)
            ports.cleanup()

    def close(self) -> None:
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()
        self._processes = []
