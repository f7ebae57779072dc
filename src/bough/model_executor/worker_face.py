"""The worker of a rank as code of the operator sees it, under the names that vLLM's workers have.

``worker_extension_cls`` is mixed into it, and ``worker_cls`` derives from it. Both are named by an option, never by a
request.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, ConfigError
from bough.models.base import torch_dtype
from bough.weight_sync.staged_weights import StagedWeights

if TYPE_CHECKING:
    from bough.model_executor.tp_worker import TpModelWorker


class ModelFace:
    """The model of a worker: takes weights."""

    def __init__(self, runner: TpModelWorker) -> None:
        self._runner = runner

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Take some weights: names as in the checkpoint, and tensors on any device; see
        :meth:`WorkerWeights.load_weights`.

        All that is loaded in one call of a method is written at the same time, when the method has returned on all
        workers; if it fails on one, nothing is.
        """
        return self._runner.weights.load_weights(weights)


class RunnerFace:
    """The model runner of a worker: its ``model`` and its ``device``."""

    def __init__(self, model: ModelFace, device: torch.device) -> None:
        self.model, self.device = model, device


class ModelConfigFace:
    """What there is to know of a model, with its ``dtype`` as torch's."""

    def __init__(self, runner: TpModelWorker) -> None:
        config = runner.config
        self.dtype: torch.dtype = torch_dtype(config)
        self.model: str = str(config.model_path)
        self.max_model_len: int = runner.max_req_len
        self.hf_config: dict[str, Any] = config.hf_config
        self._vocab_size = config.vocab_size

    def get_vocab_size(self) -> int:
        """Number of token ids."""
        return self._vocab_size


class WorkerFace:
    """One rank's worker. Its methods run while no step is in flight.

    Args:
        runner: of the rank.
        rank: among all ranks of the engine, replicas included, in order.
    """

    def __init__(self, runner: TpModelWorker, rank: int) -> None:
        self._bough_runner = runner
        self.rank = rank
        self.model_config = ModelConfigFace(runner)
        self.model_runner = RunnerFace(ModelFace(runner), runner.device)

    @property
    def device(self) -> torch.device:
        """Device that the rank computes on."""
        return self._bough_runner.device

    @property
    def loaded_weights(self) -> StagedWeights:
        """Weights that the call in progress has loaded so far."""
        return self._bough_runner.weights.loaded

    @property
    def local_rank(self) -> int:
        """Index of the device."""
        return self._bough_runner.device.index or 0

    @property
    def vocab_size(self) -> int:
        """Number of token ids."""
        return self.model_config.get_vocab_size()

    @property
    def max_model_len(self) -> int:
        """Most tokens of one request, prompt and output together."""
        return self.model_config.max_model_len

    @property
    def kv_cache(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Keys and values of each layer, ``[num_slots, num_kv_heads, head_dim]`` each, in the cache's own memory."""
        pool = self._bough_runner.kv_pool
        return [(pool.get_key_buffer(layer), pool.get_value_buffer(layer)) for layer in range(pool.num_layers)]

    def get_cache_block_size_bytes(self) -> int:
        """Bytes of a page of the KV cache on this rank, all layers together."""
        pool = self._bough_runner.kv_pool
        return pool.num_bytes // pool.num_slots * pool.page_size

    def determine_num_available_blocks(self) -> tuple[int, int]:
        """Return how many pages the KV cache has on the device, and how many in a second, swapped one: none."""
        pool = self._bough_runner.kv_pool
        return pool.max_total_tokens // pool.page_size, 0

    def initialize_cache(self, num_gpu_blocks: int, num_cpu_blocks: int = 0) -> None:
        """Confirm that the KV cache, which is made with the worker, has so many pages.

        Raises:
            BadRequest: if it has fewer.
        """
        there, swapped = self.determine_num_available_blocks()
        asked = {"num_gpu_blocks": (num_gpu_blocks, there), "num_cpu_blocks": (num_cpu_blocks, swapped)}
        for name, (wanted, found) in asked.items():
            if wanted > found:
                raise BadRequest(f"{name} is {wanted}, and the cache has {found}; see max_total_tokens", param=name)

    def save_sharded_state(self, path: str, pattern: str | None = None, max_size: int | None = None) -> int:
        """Write this rank's weights as :meth:`WorkerWeights.save_part`; return their bytes."""
        Path(path).mkdir(parents=True, exist_ok=True)
        weights = self._bough_runner.weights
        return weights.save_part("sharded_state", path, pattern=pattern, max_bytes=max_size)

    def check_health(self) -> None:
        """Do nothing: a worker that answers is well."""


def make_face(runner: TpModelWorker, rank: int, args: ServerArgs) -> WorkerFace:
    """Make the worker that the options ask for.

    With code of the operator, this process gets torch's default group, in which its rank is that among those that share
    the model.

    Raises:
        ConfigError: as :func:`worker_class`.
    """
    kind = worker_class(args)
    if kind is not WorkerFace:
        runner.ranks.join_torch(runner.device)
    return kind(runner, rank)


def worker_class(args: ServerArgs) -> type[WorkerFace]:
    """Import the class of workers that the options ask for.

    Raises:
        ConfigError: if there are no such classes, or their names clash.
    """
    kind = WorkerFace if args.worker_cls is None else _load("worker_cls", args.worker_cls)
    if not issubclass(kind, WorkerFace):
        message = f"--worker-cls {args.worker_cls} is no subclass of vllm.worker.worker.Worker"
        raise ConfigError(message, param="worker_cls")
    if args.worker_extension_cls is not None:
        kind = extended(kind, _load("worker_extension_cls", args.worker_extension_cls))
    return kind


def extended(kind: type[WorkerFace], extension: type[Any]) -> type[WorkerFace]:
    """Mix a class into a worker's.

    Raises:
        ConfigError: if both have an attribute of the same name.
    """
    own = {*dir(kind), "rank", "model_config", "model_runner"}
    clashes = sorted(name for name in dir(extension) if name in own and not name.startswith("__"))
    if clashes:
        raise ConfigError(
            f"--worker-extension-cls: {extension.__qualname__} has {', '.join(clashes)}, which the worker has, too",
            param="worker_extension_cls",
        )
    return type("ExtendedWorker", (kind, extension), {"__module__": __name__})


def _load(option: str, path: str) -> type[Any]:
    """Import a class by its dotted name; raises :class:`ConfigError`."""
    flag = "--" + option.replace("_", "-")
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{flag} {path} cannot be imported: {error}", param=option) from error
    if not isinstance(found, type):
        raise ConfigError(f"{flag} {path} is no class", param=option)
    return found
