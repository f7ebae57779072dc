"""Which models the native CPU kernels run, and which torch does."""

from __future__ import annotations

import logging

import torch

from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.kernels.buffers import KERNEL_DTYPES
from bough.kernels.host_memory import OutlineArena
from bough.kernels.library import KernelError, LibraryMissing, best_isa, current_isa, load_library, machine_isa
from bough.kernels.program import Program
from bough.kernels.structures import KVLayer, ProgramLimits
from bough.kernels.thread_pool import ThreadPool
from bough.layers.ops import NotRecordable
from bough.layers.packed_method import PackedMethod
from bough.layers.recorded_ops import RecordOps
from bough.model_executor.capacity import default_threads
from bough.model_executor.machine import Machine
from bough.models.base import CausalLM, torch_dtype
from bough.models.registry import make_model

logger = logging.getLogger(__name__)

_OUTLINE_LIMITS = ProgramLimits(max_tokens=1, max_rows=1, max_context=1, vocab_size=1, num_slots=1)


def why_not_recordable(config: ModelConfig) -> str | None:
    """Record an outline of the model, which has no memory: the operation that native programs lack, if there is one."""
    threads = ThreadPool(1)
    with torch.device("meta"):
        model = make_model(config, PackedMethod(threads, arena=OutlineArena()))
    assert isinstance(model, CausalLM), "encoders are not recorded"
    program = Program(threads, _OUTLINE_LIMITS, torch_dtype(config))
    try:
        model.run_on(RecordOps(program, lambda layer_id: KVLayer()))
    except NotRecordable as error:
        return error.message
    return None


def why_not_native(config: ModelConfig, device: torch.device) -> str | None:
    """Return the reason for which torch computes a model on a CPU; empty if there is none to tell, ``None`` if native
    kernels do."""
    if device.type != "cpu" or config.implementation == "transformers":
        return ""
    if torch_dtype(config) not in KERNEL_DTYPES:
        return f"these have no {config.dtype}; use --dtype bfloat16 or float32"
    try:
        load_library()
    except LibraryMissing as missing:
        return str(missing)
    return why_not_recordable(config)


def native_threads(config: ModelConfig, device: torch.device, num_threads: int) -> ThreadPool | None:
    """Threads for the native kernels, or ``None`` if torch is to compute, the reason in the log.

    Raises:
        StartupError: if the system does not give so many threads.
    """
    problem = why_not_native(config, device)
    if problem is not None:
        if problem:
            logger.warning("torch computes, several times slower than native kernels: %s.", problem)
        return None
    threads = f"{num_threads} thread{'' if num_threads == 1 else 's'}"
    if num_threads == default_threads(config, cores=2) == 1:
        threads += ", which suits so small a model (--cpu-threads)"
    logger.info("native CPU kernels: %s, %s", current_isa().name, threads)
    cores = Machine().usable_threads()
    if num_threads > cores:
        logger.warning(
            "%s are more than the cores that this process may use (%d): the model is no faster than with "
            "--cpu-threads %d.",
            threads,
            cores,
            cores,
        )
    if best_isa() < machine_isa():
        logger.warning(
            "This machine has %s, but the compiler that built the native kernels did not know it: a newer one makes "
            "them faster.",
            machine_isa().name,
        )
    try:
        return ThreadPool(num_threads)
    except KernelError as error:
        raise StartupError(f"{error}; lower --cpu-threads", param="cpu_threads") from None
