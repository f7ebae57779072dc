"""Choose how the ranks of a model compute it: natively in shared memory, or with torch."""

from __future__ import annotations

import logging
from collections.abc import Callable

from bough.config.model_config import ModelConfig
from bough.config.ranks import MachineShare
from bough.config.server_args import ServerArgs
from bough.distributed.place import RankPlace
from bough.errors import ConfigError
from bough.model_executor.native_path import why_not_native
from bough.model_executor.native_rank_worker import NativeFollowingWorker, NativeLeadingWorker
from bough.model_executor.rank_worker import FollowingWorker, LeadingWorker
from bough.model_executor.tp_worker import TpModelWorker, resolve_device
from bough.models.registry import complete_config

logger = logging.getLogger(__name__)

_Kind = Callable[[ServerArgs, ModelConfig, MachineShare, RankPlace], TpModelWorker]


def rank_worker(
    server_args: ServerArgs, model_config: ModelConfig, *, share: MachineShare, place: RankPlace
) -> TpModelWorker:
    """Load the part of a model that is for one rank; all ranks choose alike.

    Raises:
        BoughError: as :class:`TpModelWorker`.
    """
    kinds: tuple[_Kind, _Kind] = (LeadingWorker, FollowingWorker)
    problem = _why_not_native(server_args, model_config, share, place)
    if problem is None:
        kinds = (NativeLeadingWorker, NativeFollowingWorker)
    elif problem:
        logger.warning("torch computes, which is slower than native kernels: %s.", problem)
    return kinds[place.is_follower](server_args, model_config, share, place)


def _why_not_native(
    server_args: ServerArgs, model_config: ModelConfig, share: MachineShare, place: RankPlace
) -> str | None:
    device = resolve_device(server_args.device, share)
    config = complete_config(model_config.for_device("cuda" if device.type == "cuda" else "cpu"))
    problem = why_not_native(config, device)
    if problem is None and share.group is None:
        problem = "there is no memory that all ranks share"
    if problem is not None:
        return problem
    try:
        config.shard_layers(place.spec("gather"))
    except ConfigError as error:
        return error.message
    return None
