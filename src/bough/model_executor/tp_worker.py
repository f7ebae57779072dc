"""The worker of one rank: a model runner, its limits, and the settings of the process that it runs in."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.mem_cache.kv_pool import KVPool
from bough.model_executor.capacity import default_threads
from bough.model_executor.launched_step import LaunchedStep
from bough.model_executor.machine import Machine, keep_freed_memory
from bough.model_executor.model_runner import ModelRunner
from bough.model_executor.runner_options import RunnerOptions
from bough.model_executor.worker_info import WorkerInfo
from bough.step_plan import StepPlan, StepResult
from bough.weight_sync.worker_weights import WorkerWeights


class TpModelWorker:
    """Executes step plans; every rank of a group runs the same ones.

    Settings of the process that it changes: the number of torch's threads, the random seed (the same on every rank);
    on a CPU, that freed memory is kept, and with ``bind_threads`` which cores its threads run on.

    Attributes:
        model_runner: runs the model.
        weights: of the model, and how it gets others.
    """

    def __init__(self, server_args: ServerArgs, model_config: ModelConfig, *, rank: int = 0, world: int = 1) -> None:
        """Load the model.

        Args:
            server_args: resolved options.
            model_config: of the checkpoint.
            rank: of this worker in its group.
            world: size of the group; only 1 so far.

        Raises:
            ConfigError: if the device does not exist or the group is larger than one.
            StartupError: if the checkpoint does not load or memory does not suffice.
        """
        if world != 1 or rank != 0:
            raise ConfigError(f"a group of {world} ranks is not supported; use 1")
        begin = time.perf_counter()
        device = resolve_device(server_args.device)
        if device.type == "cpu":
            keep_freed_memory()
            machine = Machine()
            cores = machine.usable_threads()
            if server_args.bind_threads:
                cores = max(min(cores, len(machine.cores()) - 1), 1)
            torch.set_num_threads(server_args.cpu_threads or default_threads(model_config, cores))
        seed = server_args.random_seed or 0
        torch.manual_seed(seed)
        self.model_runner = ModelRunner(
            model_config,
            device,
            RunnerOptions(
                load_format=server_args.load_format,
                quantization=server_args.quantization,
                kv_cache_dtype=server_args.kv_cache_dtype,
                attention_backend=server_args.attention_backend,
                disable_cuda_graph=server_args.disable_cuda_graph,
                cuda_graph_max_bs=server_args.cuda_graph_max_bs,
                disable_prefill_cuda_graph=server_args.disable_prefill_cuda_graph,
                cuda_graph_max_bs_prefill=server_args.cuda_graph_max_bs_prefill,
                deterministic=server_args.enable_deterministic_inference,
                bind_threads=server_args.bind_threads,
                seed=seed,
                page_size=server_args.page_size,
                max_running_requests=server_args.max_running_requests,
                max_total_tokens=server_args.max_total_tokens,
                mem_fraction_static=server_args.mem_fraction_static,
                max_step_tokens=_max_step_tokens(server_args, model_config),
            ),
        )
        self.weights = WorkerWeights(server_args, self.model_runner.weights, device)
        self._seconds = time.perf_counter() - begin

    def get_worker_info(self) -> WorkerInfo:
        """Limits and costs of the loaded model."""
        runner = self.model_runner
        pooling = runner.config.pooling
        return WorkerInfo(
            max_total_num_tokens=runner.kv_pool.max_total_tokens,
            max_running_requests=runner.max_running_requests,
            max_req_len=runner.max_req_len,
            # A prompt that is pooled needs no room for an answer.
            max_req_input_len=runner.max_req_len - (1 if pooling is None else 0),
            page_size=runner.page_size,
            vocab_size=runner.config.vocab_size,
            context_len=runner.config.context_len,
            device=str(runner.device),
            dtype=runner.config.dtype,
            timings={**runner.timings, "other": self._seconds - sum(runner.timings.values())},
            num_parameters=runner.num_parameters,
            weight_bytes=runner.weight_bytes,
            kv_bytes=runner.kv_pool.num_bytes,
            embedding_dim=None if pooling is None else pooling.dim,
            padding_id=None if pooling is None else pooling.padding_id,
            max_steps=runner.max_steps,
            reuses_prefixes=pooling is None or pooling.method == "last",
        )

    def get_memory_pool(self) -> KVPool:
        """The pool that holds keys and values; slots ``range(page_size, num_slots)`` may be handed out."""
        return self.model_runner.kv_pool

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""
        self.model_runner.interrupt_on(descriptors)

    @property
    def runs_ahead(self) -> bool:
        """Whether :meth:`launch` returns before the device is done."""
        return self.model_runner.runs_ahead

    def launch(self, plan: StepPlan) -> LaunchedStep:
        """Give the device a step. Plans must come in order, and their results be asked for in that order."""
        return self.model_runner.launch_step(plan)

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step and wait for its result. Plans must come in order."""
        return self.model_runner.forward_step(plan)

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on; no other plan may have come in between."""
        return self.model_runner.forward_further()


def resolve_device(name: str) -> torch.device:
    """The torch device of an option's value; ``auto`` is CUDA if there is one.

    Raises:
        ConfigError: if it does not exist here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("--device cuda: torch finds no CUDA device; use --device cpu", param="device")
    return torch.device(name)


def _max_step_tokens(server_args: ServerArgs, model_config: ModelConfig) -> int:
    """Most new tokens of a step; with ``--chunked-prefill-size -1`` a whole context may come at once."""
    if server_args.chunked_prefill_size == -1:
        return max(server_args.max_prefill_tokens, model_config.context_len)
    return server_args.max_prefill_tokens
