"""The worker of one rank: a model runner, its limits, and the settings of the process that it runs in."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import torch

from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.config.server_args import ServerArgs
from bough.distributed.rank_group import ALONE_IN_GROUP, RankGroup
from bough.errors import ConfigError
from bough.layers.moe.experts import Experts
from bough.model_executor.capacity import default_threads
from bough.model_executor.machine import Machine, keep_freed_memory
from bough.model_executor.model_runner import ModelRunner
from bough.model_executor.worker_calls import WorkerCalls
from bough.model_executor.worker_face import make_face
from bough.model_executor.worker_info import KernelCounts, Worker, WorkerInfo
from bough.model_executor.worker_memory import RunnerMemory
from bough.step_plan import IntArray
from bough.weight_sync.worker_weights import WorkerWeights


class TpModelWorker(ModelRunner, Worker):
    """The model runner of a scheduler.

    Settings of the process that it changes: the number of torch's threads, the random seed; on a CPU, that freed memory
    is kept, and with ``bind_threads`` which cores its threads run on.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        model_config: ModelConfig,
        share: MachineShare = WHOLE_MACHINE,
        ranks: RankGroup = ALONE_IN_GROUP,
        index: int | None = None,
    ) -> None:
        """Load the model, or the part of one of several ``ranks``, on a ``share`` of the machine.

        ``index`` counts the schedulers of all replicas and machines; by default it is that of the share.

        Raises:
            ConfigError: if the device does not exist.
            StartupError: if the checkpoint does not load or memory does not suffice.
        """
        begin = time.perf_counter()
        device = resolve_device(server_args.device, share)
        if device.type == "cpu":
            keep_freed_memory()
            machine = Machine()
            cores = max(share.of(machine.usable_threads()), 1)
            if server_args.bind_threads:
                cores = max(min(cores, share.of(len(machine.cores())) - 1), 1)
            torch.set_num_threads(server_args.cpu_threads or default_threads(model_config, cores))
        torch.manual_seed(server_args.random_seed or 0)
        super().__init__(model_config, device, server_args, share=share, ranks=ranks)
        self._experts = [module for module in self.model.modules() if isinstance(module, Experts)]
        self.weights: WorkerWeights = WorkerWeights(
            server_args, self.live_weights, device, available=self._planner.available
        )
        self._bytes_of_all = ranks.total(self.weight_bytes), ranks.total(self.kv_pool.num_bytes)
        self.memory: RunnerMemory = RunnerMemory(self)
        self.calls: WorkerCalls = WorkerCalls(make_face(self, share.index if index is None else index, server_args))
        self.timings["other"] = time.perf_counter() - begin - sum(self.timings.values())

    def kernel_counts(self) -> KernelCounts:
        """See :class:`~bough.model_executor.worker_info.Worker`."""
        if self.threads is None:
            return KernelCounts()
        counts = self.threads.counts()
        return KernelCounts(counts.runs, counts.joined, counts.recomputed)

    def expert_loads(self) -> npt.NDArray[np.int64]:
        return (
            np.stack([each.loads.cpu().numpy() for each in self._experts]) if self._experts else super().expert_loads()
        )

    def routed_experts(self, slots: IntArray) -> IntArray:
        return self.kv_pool.read_experts(slots)

    def get_worker_info(self) -> WorkerInfo:
        """Limits and costs of the loaded model."""
        pooling = self.config.pooling
        weight_bytes, kv_bytes = self._bytes_of_all
        return WorkerInfo(
            max_total_num_tokens=self.kv_pool.max_total_tokens,
            max_running_requests=self.max_running_requests,
            max_req_len=self.max_req_len,
            # A prompt that is pooled needs no room for an answer.
            max_req_input_len=self.max_req_len - (1 if pooling is None else 0),
            page_size=self.page_size,
            vocab_size=self.config.vocab_size,
            context_len=self.config.context_len,
            device=self.device.type,
            device_index=self.device.index,
            dtype=self.config.dtype,
            timings=dict(self.timings),
            num_parameters=self.num_parameters,
            weight_bytes=weight_bytes,
            maps_weights=self.live_weights.is_mapped,
            kv_bytes=kv_bytes,
            embedding_dim=None if pooling is None else pooling.dim,
            padding_id=None if pooling is None else pooling.padding_id,
            expert_share=self.config.expert_share,
            keeps_experts=self.kv_pool.experts is not None,
            max_steps=self.max_steps,
            reuses_prefixes=pooling is None or pooling.method == "last",
            runs_ahead=self.runs_ahead,
        )


def resolve_device(name: str, share: MachineShare = WHOLE_MACHINE) -> torch.device:
    """Return the torch device of an option's value, ``auto`` being CUDA if there is one.

    Each scheduler of a machine has a CUDA device of its own, which becomes the current one of this process.

    Raises:
        ConfigError: if it does not exist here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch finds no CUDA device; use --device cpu", param="device")
    if name != "cuda":
        return torch.device(name)
    if share.device is None and (found := torch.cuda.device_count()) < share.count:
        raise ConfigError(f"--device cuda: {share.count} schedulers need as many devices, and torch finds {found}")
    device = torch.device("cuda", share.index if share.device is None else share.device)
    torch.cuda.set_device(device)
    return device
