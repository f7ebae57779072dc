"""Which worker runs a checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.model_executor.worker_info import Worker
from bough.models.registry import FAKE_ARCHITECTURE

WorkerFactory = Callable[[ServerArgs, ModelConfig], Worker]


def worker_factory(model_config: ModelConfig) -> WorkerFactory:
    """Import what runs the checkpoint, which means torch unless it is fake; calling the result loads the model."""
    if model_config.architecture == FAKE_ARCHITECTURE:
        from bough.model_executor.fake_model_runner import create_fake_worker

        return create_fake_worker
    if model_config.is_encoder:
        from bough.model_executor.encoder_worker import EncoderWorker

        return EncoderWorker
    from bough.model_executor.tp_worker import TpModelWorker

    return TpModelWorker
