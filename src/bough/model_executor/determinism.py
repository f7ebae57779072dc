"""Where ``--enable-deterministic-inference`` can be kept, and where it is refused."""

from __future__ import annotations

import logging

import torch

from bough.config.engine_args import AttentionBackendName
from bough.config.model_config import ModelConfig
from bough.errors import ConfigError
from bough.model_executor.attention_choice import is_torch_attention, why_not_triton_attention

logger = logging.getLogger(__name__)


def cannot_be_deterministic(reason: str) -> ConfigError:
    """The error about an option that cannot be kept."""
    return ConfigError(f"--enable-deterministic-inference: {reason}", param="enable_deterministic_inference")


def check_deterministic(
    config: ModelConfig, device: torch.device, attention: AttentionBackendName | None, *, native: bool
) -> None:
    """Refuse, before anything is loaded, what would let a row's results depend on the rows beside it.

    Args:
        config: of the model.
        device: that runs it.
        attention: the backend that the user wants.
        native: whether native CPU kernels run it.

    Raises:
        ConfigError: with the reason.
    """
    if not config.is_generation:
        raise cannot_be_deterministic(f"{config.architecture} makes vectors, and it is for models that generate text")
    if native:
        logger.info("deterministic inference costs nothing here: native kernels compute each row by itself")
    elif is_torch_attention(attention, device):
        raise cannot_be_deterministic(
            "torch would compute, whose products depend on how many rows there are; use the native CPU kernels with "
            "--dtype bfloat16 or float32, or Triton's attention on CUDA"
        )
    elif attention == "flashinfer":
        raise cannot_be_deterministic("it needs Triton's attention; leave --attention-backend out")
    elif (problem := why_not_triton_attention(device, config)) is not None:
        raise cannot_be_deterministic(f"it needs Triton's attention, and {problem}")
