"""Which worker runs a checkpoint."""

from __future__ import annotations

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.models.registry import FAKE_ARCHITECTURE
from bough.scheduler.executor import Worker


def create_worker(server_args: ServerArgs, model_config: ModelConfig, *, rank: int = 0, world: int = 1) -> Worker:
    """Load the model.

    Raises:
        StartupError: as :class:`~bough.model_executor.tp_worker.TpModelWorker`.
    """
    if model_config.architecture == FAKE_ARCHITECTURE:
        from bough.model_executor.fake_model_runner import create_fake_worker

        return create_fake_worker(server_args, model_config)
    from bough.model_executor.tp_worker import TpModelWorker

    return TpModelWorker(server_args, model_config, rank=rank, world=world)
