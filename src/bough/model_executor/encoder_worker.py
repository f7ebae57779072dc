"""The worker of an encoder: whole sequences in, one vector each out, and nothing kept in between."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError, StartupError
from bough.layers.attention.bidirectional import group_by_length
from bough.layers.pooler import pool
from bough.model_executor.attention_choice import check_deterministic
from bough.model_executor.capacity import MAX_RUNNING_REQUESTS, forward_bytes
from bough.model_executor.machine import Machine, keep_freed_memory
from bough.model_executor.pooling import finish
from bough.model_executor.tp_worker import resolve_device
from bough.model_executor.weight_memory import available_memory, check_weights_fit, weight_bytes
from bough.model_executor.worker_info import Worker, WorkerInfo
from bough.model_executor.worker_memory import WorkerMemory
from bough.model_loader.loader import load_model, open_source
from bough.models.base import torch_dtype
from bough.models.encoder import Encoder, EncoderBatch
from bough.step_plan import RowEmbedding, StepPlan, StepResult
from bough.weight_sync.live_weights import LiveWeights, state_of
from bough.weight_sync.weight_memory import WeightMemory
from bough.weight_sync.worker_weights import WorkerWeights

logger = logging.getLogger(__name__)

_OPTIONS_OF_LANGUAGE_MODELS = {
    "quantization": "none",
    "kv_cache_dtype": "auto",
    "bind_threads": False,
    "attention_backend": None,
    "cuda_graph_max_bs": None,
    "cuda_graph_max_bs_prefill": None,
    "max_total_tokens": None,
    "mem_fraction_static": None,
    "page_size": None,
}
"""By name, the value of each that leaves it out."""


def _positions_after_padding(
    input_ids: np.ndarray, begins: np.ndarray, lengths: np.ndarray, padding_id: int
) -> np.ndarray:
    """Rows of RoBERTa's table of positions, ``[T]``: other tokens are counted from the row after that of padding."""
    counts = input_ids != padding_id
    counted = np.cumsum(counts)
    before = counted[begins] - counts[begins]  # in the sequences that lie in front
    positions: np.ndarray = (counted - np.repeat(before, lengths)) * counts + padding_id
    return positions


class EncoderWorker(Worker):
    """Executes step plans whose rows are whole sequences.

    Settings of the process that it changes are those of :class:`~bough.model_executor.tp_worker.TpModelWorker`.

    Raises:
        ConfigError: if the device does not exist.
        StartupError: if the checkpoint does not load or memory does not suffice.
    """

    def __init__(self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare = WHOLE_MACHINE) -> None:
        begin = time.perf_counter()
        self.device = resolve_device(server_args.device, share)
        if self.device.type == "cpu":
            logger.info("torch computes: the native CPU kernels run language models only, not encoders")
            keep_freed_memory()
            torch.set_num_threads(server_args.cpu_threads or max(share.of(Machine().usable_threads()), 1))
        torch.manual_seed(server_args.random_seed or 0)
        self.config = model_config.for_device("cuda" if self.device.type == "cuda" else "cpu")
        self._refuse_options_of_language_models(server_args)
        if self.config.pooling is None:
            raise ConfigError(f"{self.config.architecture} does not pool", param="model_path")
        self.pooling = self.config.pooling
        source = open_source(self.config, server_args.load_format)
        if source is not None:
            source.check_use(self.config.architecture, server_args.quantization, self.config.dtype, native=False)
        files = state_of(source)
        smaller = {}
        if self.config.dtype == "float32":
            smaller["--dtype bfloat16"] = partial(weight_bytes, replace(self.config, dtype="bfloat16"))
        check_weights_fit(self.device, weight_bytes(self.config), smaller, share=share)
        model = load_model(self.config, source=source, device=self.device, seed=server_args.random_seed or 0)
        assert isinstance(model, Encoder), "language models have a worker of their own"
        self.model = model
        live = LiveWeights(model, self.config, server_args.load_format, files=files, seed=server_args.random_seed or 0)
        self.weights = WorkerWeights(server_args, live, self.device)
        self.memory = WorkerMemory(WeightMemory(live, None, server_args), self.device)
        self.num_parameters = sum(parameter.numel() for parameter in model.parameters())
        self.weight_bytes = sum(parameter.nbytes for parameter in model.parameters())
        self._loaded_seconds = time.perf_counter() - begin
        self.max_step_tokens = max(server_args.max_prefill_tokens, self.config.context_len)
        self.max_running_requests = server_args.max_running_requests or MAX_RUNNING_REQUESTS
        self._check_memory(share)

    def _refuse_options_of_language_models(self, server_args: ServerArgs) -> None:
        """Raise ConfigError at an option that an encoder has no use for."""
        for name, unset in _OPTIONS_OF_LANGUAGE_MODELS.items():
            if (given := getattr(server_args, name)) != unset:
                shown = f" {given}" if isinstance(given, str) else ""
                raise ConfigError(
                    f"--{name.replace('_', '-')}{shown} is for language models, not {self.config.architecture}",
                    param=name,
                )
        if server_args.enable_deterministic_inference:
            check_deterministic(self.config, self.device, None, native=False)

    def get_worker_info(self) -> WorkerInfo:
        """Limits and costs of the loaded model."""
        # Two steps may be in flight, and nothing else needs a place.
        num_tokens = max(2 * self.max_step_tokens, self.max_running_requests)
        return WorkerInfo(
            max_total_num_tokens=num_tokens,
            max_running_requests=self.max_running_requests,
            max_req_len=self.config.context_len,
            max_req_input_len=self.config.context_len,
            page_size=1,
            vocab_size=self.config.vocab_size,
            context_len=self.config.context_len,
            device=self.device.type,
            device_index=self.device.index,
            dtype=self.config.dtype,
            timings={"load_weights": self._loaded_seconds},
            num_parameters=self.num_parameters,
            weight_bytes=self.weight_bytes,
            embedding_dim=self.pooling.dim,
            keeps_kv=False,
            reuses_prefixes=False,
        )

    @torch.inference_mode()
    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step and wait for its result. Raises :class:`ValueError` if a row is not a whole sequence."""
        begin = time.perf_counter()
        embeddings: tuple[RowEmbedding, ...] = ()
        failed: list[int] = []
        if plan.num_rows:
            vectors = self.forward_batch_embedding(plan)
            embeddings, failed = finish(plan.pooling, vectors, normalize=self.pooling.normalize)
        return StepResult(
            plan.step_id,
            tokens=np.zeros(0, dtype=np.int32),
            counts=np.zeros(plan.num_rows, dtype=np.int32),
            embeddings=embeddings,
            failed_rows=tuple(failed),
            seconds=time.perf_counter() - begin,
        )

    @torch.inference_mode()
    def forward_batch_embedding(self, plan: StepPlan) -> torch.Tensor:
        """Compute a vector of each row, ``[R, dim]``. Raises :class:`ValueError` if a row is not a whole sequence."""
        if plan.prefix_lens.any():
            raise ValueError(f"step {plan.step_id} continues a sequence, which an encoder cannot")
        order = np.argsort(plan.extend_lens, kind="stable")
        batch, lengths = self._make_batch(plan, order)
        hidden_states = self.model(batch)
        pooled = self.model.project(pool(self.pooling.method, hidden_states, lengths))
        row_of = np.empty(plan.num_rows, dtype=np.int64)
        row_of[order] = np.arange(plan.num_rows)
        return pooled.index_select(0, self._on_device(row_of))

    def _make_batch(self, plan: StepPlan, order: np.ndarray) -> tuple[EncoderBatch, torch.Tensor]:
        """The rows by length, and their lengths."""
        lengths = plan.extend_lens.astype(np.int64)
        begins = np.cumsum(lengths) - lengths
        lengths, begins = lengths[order], begins[order]
        ends = np.cumsum(lengths)
        positions = np.arange(plan.num_tokens) - np.repeat(ends - lengths, lengths)
        tokens = np.repeat(begins, lengths) + positions
        types = np.zeros_like(tokens) if plan.token_types is None else plan.token_types[tokens]
        input_ids = plan.input_ids[tokens]
        padding_id = None if self.config.encoder is None else self.config.encoder.padding_id
        if padding_id is not None:
            positions = _positions_after_padding(input_ids, ends - lengths, lengths, padding_id)
        batch = EncoderBatch(
            input_ids=self._on_device(input_ids),
            positions=self._on_device(positions),
            token_types=self._on_device(types),
            groups=group_by_length(lengths.tolist(), self.device),
        )
        return batch, self._on_device(lengths)

    def _on_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device, torch.int64)

    def _check_memory(self, share: MachineShare) -> None:
        needed = forward_bytes(self.config, torch_dtype(self.config).itemsize, self.max_step_tokens, 0)
        available, _ = available_memory(self.device, share)
        if needed > available:
            raise StartupError(
                f"not enough memory: a step of {self.max_step_tokens} tokens takes {needed / 2**30:.2f} GiB next to "
                f"weights of {self.weight_bytes / 2**30:.2f} GiB, and {available / 2**30:.2f} GiB are available; free "
                f"memory or lower --max-prefill-tokens",
                param="max_prefill_tokens",
            )
