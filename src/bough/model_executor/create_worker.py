"""Choose the worker that runs a checkpoint."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bough import plugins
from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.errors import ConfigError
from bough.model_executor.worker_info import Worker

if TYPE_CHECKING:
    from bough.distributed.place import RankPlace

_WAIT_POLICY = "OMP_WAIT_POLICY"
"""Way in which torch's threads wait for work. One that spins takes a core from other work, and on a busy
machine an operation whose threads are kept from running by spinning ones takes time slices instead of microseconds."""

WorkerFactory = Callable[..., Worker]
"""Makes a worker of :class:`ServerArgs` and :class:`ModelConfig`."""


def worker_factory(
    model_config: ModelConfig, share: MachineShare = WHOLE_MACHINE, place: RankPlace | None = None
) -> WorkerFactory:
    """Import what runs the checkpoint: torch, or another package. Calling the result loads the model, which takes no
    more than a ``share`` of the machine, or the part that is for a ``place`` among several ranks.

    torch's threads do not spin while they wait, unless it is imported already or the environment says how they wait.

    Raises:
        ConfigError: if ranks cannot share what runs the checkpoint.
    """
    if place is not None:
        return _rank_factory(model_config, share, place)
    if model_config.architecture in plugins.declared(plugins.WORKERS):
        return _plugged_in(model_config.architecture, share)
    _import_torch()
    if model_config.is_encoder:
        from bough.model_executor.encoder_worker import EncoderWorker

        return partial(EncoderWorker, share=share)
    from bough.model_executor.tp_worker import TpModelWorker

    return partial(TpModelWorker, share=share)


def _plugged_in(architecture: str, share: MachineShare) -> WorkerFactory:
    """Import the worker of another package; raises :class:`ConfigError` if it takes no share and has to."""
    factory: WorkerFactory = plugins.load(plugins.WORKERS, architecture, Worker)
    if "share" in inspect.signature(factory).parameters:
        return partial(factory, share=share)
    if share.count > 1:
        raise ConfigError(
            f"the worker of {architecture} takes no share of a machine, and can be the only one on it", param="dp_size"
        )
    return factory


def _rank_factory(model_config: ModelConfig, share: MachineShare, place: RankPlace) -> WorkerFactory:
    if model_config.architecture in plugins.declared(plugins.WORKERS) or model_config.is_encoder:
        what = "an encoder" if model_config.is_encoder else "a worker of another package"
        raise ConfigError(f"--tp-size {place.layout.tp_size} cannot share {what}; leave it out", param="tp_size")
    _import_torch()
    from bough.model_executor.rank_choice import rank_worker

    return partial(rank_worker, share=share, place=place)


def _import_torch() -> None:
    if "torch" in sys.modules or _WAIT_POLICY in os.environ:
        return
    # OpenMP reads it once, when it is loaded with torch. What else this process starts is not to inherit it.
    os.environ[_WAIT_POLICY] = "PASSIVE"
    try:
        import torch  # noqa: F401
    finally:
        del os.environ[_WAIT_POLICY]
