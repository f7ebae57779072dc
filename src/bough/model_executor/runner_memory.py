"""Memory on a device that lives as long as a model runs there: find out how much fits, and make it."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from bough.config.engine_args import EngineArgs
from bough.config.model_config import ModelConfig
from bough.config.ranks import MachineShare
from bough.distributed.rank_group import RankGroup
from bough.errors import StartupError
from bough.layers.attention.base import AttentionBackend
from bough.layers.moe.experts import Experts
from bough.layers.sampler import Sampler
from bough.mem_cache.kv_pool import KVPool, kv_bytes_per_token
from bough.model_executor.attention_choice import attention_backend, why_not_recorded
from bough.model_executor.capacity import (
    DEFAULT_MAX_GRAPH_ROWS,
    DEFAULT_MAX_GRAPH_TOKENS,
    MemoryBudget,
    decode_graph_bytes,
    decode_scratch_bytes,
    default_max_running_requests,
    fewer_tokens,
    fit_pool,
    fit_requests,
    forward_bytes,
    prompt_graph_bytes,
)
from bough.model_executor.cpu_graph_runner import MAX_PIECE_TOKENS, CpuGraphRunner, kernel_bytes
from bough.model_executor.eager_runner import EagerRunner, prompt_plan
from bough.model_executor.execution_choice import ExecutionChoice
from bough.model_executor.graph_runner import batch_sizes, prompt_sizes
from bough.model_executor.loaded_model import LoadedModel
from bough.model_executor.logprob_results import LOGIT_CHUNK_ELEMENTS
from bough.model_executor.machine import peak_resident_bytes, reset_peak_resident_bytes
from bough.model_executor.weight_memory import available_memory
from bough.models.base import CausalLM, torch_dtype
from bough.sampling.device_state import SamplingState

logger = logging.getLogger(__name__)

_DEFAULT_PAGE_SIZE = 16

_MEASURED_TOKENS_ON_CPU = 128
"""Size of the forward pass that start-up measures; more would delay large models."""

_MEASURED_ROWS = 1
"""Rows of that pass: one prompt."""

_DEVICE_ERRORS = (torch.OutOfMemoryError, getattr(torch, "AcceleratorError", torch.OutOfMemoryError))
"""Errors of torch's allocator, and, in newer torches, of CUDA itself, which may lack memory for a graph."""

_MOST_POOLS = 3
"""Made one after the other until one leaves enough."""

_MARGIN = 4
"""A smaller pool leaves this fraction more of what was missing: recording anew may take a little more than before."""


@dataclass(frozen=True, slots=True)
class DeviceTables:
    """State that lives beside a model as long as it runs."""

    kv_pool: KVPool
    req_to_token: torch.Tensor
    """int32 [max_running_requests, max_req_len], the KV slot of every token"""
    host_table: npt.NDArray[np.int32] | None
    """The memory of ``req_to_token`` where that is the host's"""
    attn_backend: AttentionBackend
    sampling_state: SamplingState
    sampler: Sampler
    step_runner: CpuGraphRunner | EagerRunner
    recorded_bytes: int
    """Memory of a CUDA device that recorded passes take"""


class MemoryPlanner:
    """Decides how many tokens the KV pool holds and makes all that has to do with it."""

    def __init__(
        self,
        config: ModelConfig,
        device: torch.device,
        args: EngineArgs,
        choice: ExecutionChoice,
        loaded: LoadedModel,
        timings: dict[str, float],
        share: MachineShare,
        ranks: RankGroup,
    ) -> None:
        """Take no memory yet; ``timings`` get the seconds of each phase.

        All ``ranks`` make the same calls at the same time, and the one with the least memory decides.
        """
        self._ranks = ranks
        config = replace(config, layers=config.shard_layers(ranks.spec))
        self._share, self._shared_bytes = share, loaded.shared_bytes
        self._model, self._config, self._device, self._args = loaded.model, config, device, args
        self._activation_dtype, self._kv_scales = loaded.activation_dtype, loaded.kv_scales
        self._threads, self._attention = choice.threads, choice.attention
        self._timings = timings
        self._step_tokens, self._deterministic = max_step_tokens(args, config), args.enable_deterministic_inference
        self._kv_layout = config.kv_layout(keeps_experts=args.enable_return_routed_experts)
        self._kv_dtype = choice.kv_dtype
        self._page_size = args.page_size or _DEFAULT_PAGE_SIZE
        self._records = why_not_recorded(args, choice.attention, device, config) is None and can_be_recorded(
            loaded.model
        )
        self.weight_bytes = sum(parameter.nbytes for parameter in loaded.model.parameters())
        # Parameters of the model, whatever is packed into a byte of its memory.
        weights = loaded.model.checkpoint_weights
        self.num_parameters = sum(weights[name].shape.numel() for name in loaded.model.required_names)
        self._default_requests = default_max_running_requests(
            device.type, torch.get_num_threads(), config.dtype, config.flops_per_token()
        )
        self._default_requests = ranks.smallest(self._default_requests)
        self.wanted_requests = args.max_running_requests or self._default_requests

    def fitted(self) -> DeviceTables:
        """Make all of it, with a KV pool beside which the largest steps have room.

        What recording takes is known only once it is done: if less is left than steps need, all is dropped and made
        anew with a smaller pool.

        Raises:
            StartupError: if memory does not suffice, with the numbers.
        """
        with timed(self._timings, "measure_forward"):
            self._model.measure_kernels()
            try:
                step_bytes = self.step_bytes()
            except torch.OutOfMemoryError:
                raise StartupError(
                    f"not enough memory for the largest steps, of {self._step_tokens} tokens, beside "
                    f"weights of {self.weight_bytes / 2**30:.2f} GiB; free memory, or lower --max-prefill-tokens "
                    f"or --max-running-requests",
                    param="max_prefill_tokens",
                ) from None
            tokens = self._ranks.smallest(self.profile_max_num_token(step_bytes))
        for _ in range(_MOST_POOLS):
            tables = self.init_memory_pool(tokens)
            missing = self._ranks.largest(self.missing_bytes(step_bytes))
            if missing == 0:
                self._tell_of_fewer_requests(tables)
                return tables
            # Memory that is dropped goes back to the device before any is taken: else it would lie about in pieces.
            del tables
            gc.collect()
            if self._device.type == "cuda":
                torch.cuda.empty_cache()
            shown = f"{missing / 2**30:.2f} GiB"
            if self._args.max_total_tokens is not None:
                raise StartupError(
                    f"--max-total-tokens {tokens} leaves {shown} too little for the largest steps; lower it, "
                    f"--cuda-graph-max-bs, --cuda-graph-max-bs-prefill or --max-running-requests",
                    param="max_total_tokens",
                )
            logger.info("the KV cache becomes smaller: %s more than foreseen are needed beside it", shown)
            fewer = fewer_tokens(tokens, missing + missing // _MARGIN, self._kv_token_bytes(), self._page_size)
            tokens = self._ranks.smallest(fewer)
        raise StartupError(
            f"{shown} are missing for the largest steps beside the KV cache, however small that was made; free memory, "
            f"lower --mem-fraction-static, --cuda-graph-max-bs or --cuda-graph-max-bs-prefill"
        )

    def _tell_of_fewer_requests(self, tables: DeviceTables) -> None:
        wanted, possible = self._args.max_running_requests, tables.sampling_state.max_running_requests
        if wanted is not None and possible < wanted:
            logger.warning(
                "--max-running-requests %d is lowered to %d: the KV cache has no more pages", wanted, possible
            )

    # --- how much ---

    def step_bytes(self) -> int:
        """Memory that steps may come to take beside what lives as long as the model runs.

        Runs a model that torch computes once, which also makes its libraries ready; what native kernels take is known.
        """
        config, requests = self._config, self.wanted_requests
        step_tokens = min(self._step_tokens, requests * config.context_len)
        logit_rows = max(requests, LOGIT_CHUNK_ELEMENTS // config.vocab_size)
        if self._threads is not None:
            piece_tokens = min(step_tokens, MAX_PIECE_TOKENS)
            hidden_bytes = step_tokens * config.hidden_size * self._activation_dtype.itemsize
            forward = forward_bytes(config, 4, piece_tokens, logit_rows) + hidden_bytes
            forward += kernel_bytes(config, self._threads.num_threads, requests, step_tokens)
        else:
            measured_tokens = min(step_tokens, config.context_len)
            if self._device.type == "cpu":
                measured_tokens = min(measured_tokens, _MEASURED_TOKENS_ON_CPU)
            pool = self._kv_pool(-(-measured_tokens // self._page_size) * self._page_size)
            backend = self.init_attention_backend(pool, _MEASURED_ROWS)
            measured = measured_forward_bytes(self._model, backend, measured_tokens)
            del pool, backend
            measured = measured * step_tokens // measured_tokens
            forward = max(measured, forward_bytes(config, torch_dtype(config).itemsize, step_tokens, logit_rows))
        return forward + SamplingState.max_bytes(requests, config.vocab_size)

    def profile_max_num_token(self, step_bytes: int) -> int:
        """Tokens that the KV pool can hold, from what is available now and what steps need.

        Raises:
            StartupError: if memory does not suffice, with the numbers.
        """
        config, requests = self._config, self.wanted_requests
        available = self.available(self._device)
        per_token = self._kv_token_bytes()
        reserved = step_bytes
        if self._records:
            graph_rows = self._max_graph_rows(requests)
            reserved += decode_graph_bytes(config, graph_rows, len(batch_sizes(graph_rows)))
            reserved += prompt_graph_bytes(config, prompt_sizes(self._max_graph_tokens()))
        if self._attention == "flashinfer":
            from bough.layers.attention.flashinfer import FlashInferBackend

            reserved += FlashInferBackend.num_bytes(config.windows())
        elif self._attention == "triton" and self._device.type == "cuda" and not self._deterministic:
            # Else the kernel of prompts, which needs none, serves decode rows.
            reserved += decode_scratch_bytes(config, available // max(per_token, 1), requests)
        return fit_pool(
            config,
            self._device.type,
            MemoryBudget(
                available=available,
                weights=self.weight_bytes,
                forward=reserved,
                per_request=4 * config.context_len,
                per_token=per_token,
            ),
            page_size=self._page_size,
            max_running_requests=requests,
            mem_fraction_static=self._args.mem_fraction_static,
            max_total_tokens=self._args.max_total_tokens,
        )

    def available(self, device: torch.device) -> int:
        """Return the bytes of a device, or of this scheduler's share of the host, that can be taken now."""
        return available_memory(device, self._share, self._shared_bytes)[0]

    def missing_bytes(self, step_bytes: int) -> int:
        """By how much less than that a CUDA device has left, now that all else has its memory; at least 0."""
        return max(step_bytes - self._free_bytes(), 0) if self._device.type == "cuda" else 0

    def _kv_token_bytes(self) -> int:
        return kv_bytes_per_token(self._kv_layout, self._kv_dtype)

    def _free_bytes(self) -> int:
        return available_memory(self._device)[0] if self._device.type == "cuda" else 0

    def _max_graph_rows(self, max_running_requests: int) -> int:
        return min(max_running_requests, self._args.cuda_graph_max_bs or DEFAULT_MAX_GRAPH_ROWS)

    def _max_graph_tokens(self) -> int:
        """Most tokens of a recorded forward pass of prompts; 0: none is recorded."""
        if self._args.disable_prefill_cuda_graph:
            return 0
        wanted = self._args.cuda_graph_max_bs_prefill or DEFAULT_MAX_GRAPH_TOKENS
        return min(wanted, self._step_tokens)

    # --- making it ---

    def init_memory_pool(self, pool_tokens: int) -> DeviceTables:
        """Take the memory of a KV pool of so many tokens, and of all that goes with it.

        Raises:
            StartupError: if there is none left to record steps.
        """
        requests = fit_requests(self._args.max_running_requests, self._default_requests, pool_tokens, self._page_size)
        with timed(self._timings, "init_memory_pool"):
            kv_pool = self._kv_pool(pool_tokens)
            if self._kv_scales is not None:
                kv_pool.set_layer_scales(self._kv_scales)
            kv_pool.touch()
            self._model.keep_experts(kv_pool.experts)
            max_req_len = min(self._config.context_len, pool_tokens)
            group, shape = self._ranks.native, (requests, max_req_len)
            if group is None:
                req_to_token = torch.zeros(shape, dtype=torch.int32, device=self._device)
            else:
                req_to_token = group.arena.tensor(*shape, dtype=torch.int32)
        backend = self.init_attention_backend(kv_pool, requests)
        state = SamplingState(requests, self._config.vocab_size, self._device)
        sampler = Sampler(state, self._threads)
        free = self._free_bytes()
        with timed(self._timings, "init_graphs"):
            try:
                step_runner = self.init_cuda_graphs(backend, req_to_token, state.last_token)
            except _DEVICE_ERRORS as error:
                if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error):
                    raise
                raise StartupError(
                    f"there is no memory for recorded steps beside a KV cache of {pool_tokens} tokens; lower "
                    f"--mem-fraction-static, --max-total-tokens, --cuda-graph-max-bs or --cuda-graph-max-bs-prefill "
                    f"({error})"
                ) from error
            recorded_bytes = free - self._free_bytes()
            sampler.compile_kernels()
        if self._records:
            logger.info("recorded steps take %.2f GiB of the device", recorded_bytes / 2**30)
        return DeviceTables(
            kv_pool=kv_pool,
            req_to_token=req_to_token,
            host_table=req_to_token.numpy() if self._device.type == "cpu" else None,
            attn_backend=backend,
            sampling_state=state,
            sampler=sampler,
            step_runner=step_runner,
            recorded_bytes=recorded_bytes,
        )

    def _kv_pool(self, max_total_tokens: int) -> KVPool:
        return KVPool(
            max_total_tokens=max_total_tokens,
            page_size=self._page_size,
            layout=self._kv_layout,
            dtype=self._kv_dtype,
            device=self._device,
        )

    def init_attention_backend(self, kv_pool: KVPool, max_running_requests: int) -> AttentionBackend:
        """The backend of attention over a KV pool."""
        return attention_backend(
            self._attention or "torch_native",  # which native kernels need nothing of
            kv_pool,
            self._config,
            max_running_requests=max_running_requests,
            deterministic=self._deterministic,
        )

    @torch.inference_mode()
    def init_cuda_graphs(
        self, backend: AttentionBackend, req_to_token: torch.Tensor, last_token: torch.Tensor
    ) -> CpuGraphRunner | EagerRunner:
        """Make what computes steps: for native kernels a recorded pass; on CUDA, recorded decode steps and prompts.

        Args:
            req_to_token: int32 ``[max_running_requests, max_req_len]``
            last_token: int64 ``[max_running_requests]``, the tokens of decode rows.
        """
        if self._threads is not None:
            return CpuGraphRunner(
                self._model,
                backend.kv_pool,
                self._threads,
                config=self._config,
                req_to_token=req_to_token,
                last_token=last_token,
                dtype=self._activation_dtype,
                max_step_tokens=self._step_tokens,
                group=self._ranks.native,
            )
        runner = EagerRunner(self._model, backend, req_to_token, last_token)
        if not self._records:
            return runner
        from bough.layers.attention.triton import TritonBackend
        from bough.model_executor.cuda_graph_runner import CudaGraphRunner, CudaRecorder
        from bough.model_executor.prompt_graph_runner import PromptGraphRunner

        assert isinstance(backend, TritonBackend), "else nothing is recorded"
        recorder, max_tokens = CudaRecorder(self._device), self._max_graph_tokens()
        if max_tokens:
            # They need more memory than decode steps, which use it again.
            runner.prompt_runner = PromptGraphRunner(
                self._model,
                backend,
                recorder,
                self._config,
                sizes=prompt_sizes(max_tokens),
                req_to_token=req_to_token,
            )
        runner.graph_runner = CudaGraphRunner(
            self._model,
            backend,
            recorder,
            self._config,
            sizes=batch_sizes(self._max_graph_rows(len(req_to_token))),
            req_to_token=req_to_token,
            last_token=last_token,
        )
        return runner


def can_be_recorded(model: CausalLM) -> bool:
    """Return whether all of a model runs without the host, and say in the log where it does not."""
    is_grouped = all(experts.grouped is not None for experts in model.modules() if isinstance(experts, Experts))
    if not is_grouped:
        logger.warning("experts are computed one after the other, and no steps are recorded: that is slower")
    return is_grouped


def max_step_tokens(args: EngineArgs, config: ModelConfig) -> int:
    """Most new tokens of a step; with ``--chunked-prefill-size -1`` a whole context may come at once."""
    return max(args.max_prefill_tokens, config.context_len if args.chunked_prefill_size == -1 else 0)


@torch.inference_mode()
def measured_forward_bytes(model: CausalLM, backend: AttentionBackend, num_tokens: int) -> int:
    """Memory of computing a prompt, in bytes; 0 if it cannot be measured. Writes the backend's pool."""
    pool, device = backend.kv_pool, backend.kv_pool.device
    table = torch.zeros(1, pool.max_total_tokens, dtype=torch.int32, device=device)
    runner = EagerRunner(model, backend, table, torch.zeros(1, dtype=torch.int64, device=device))
    plan = prompt_plan(np.zeros(num_tokens, dtype=np.int32), pool.page_size)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        model.compute_logits(runner.forward_extend(plan)[-1:])
        return int(torch.cuda.max_memory_allocated(device)) - before
    resident = reset_peak_resident_bytes()
    model.compute_logits(runner.forward_extend(plan)[-1:])
    peak = peak_resident_bytes()
    return peak - resident if peak is not None and resident is not None else 0


@contextmanager
def timed(timings: dict[str, float], phase: str) -> Iterator[None]:
    """Add the seconds that a phase takes to those that it took before."""
    begin = time.perf_counter()
    yield
    timings[phase] = timings.get(phase, 0.0) + time.perf_counter() - begin
