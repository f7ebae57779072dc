"""Descriptions of a running engine: its model, options and state."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bough import __version__
from bough.config.user_paths import shown_path
from bough.merging import merge_fields

if TYPE_CHECKING:
    from bough.managers.tokenizer_manager import TokenizerManager


def merged_info(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what several schedulers, at least one, have reported at their start as if they were one.

    The rules are those that the first of them brings, under ``merge``.
    """
    info = merge_fields(reports[0].get("merge", {}), reports)
    info.pop("merge", None)
    return info


async def server_info(manager: TokenizerManager) -> dict[str, Any]:
    """Resolved options, what the scheduler reported at the start, and its state now."""
    args = manager.server_args
    return {
        **args.to_public_dict(),
        "model_path": manager.weights.model_path,
        "model_impl": manager.model_config.implementation,
        "weight_version": manager.weights.version,
        **manager.scheduler_info,
        "launch_command": shlex.join(["bough", "serve", *args.to_flags()]),
        "startup_time": manager.metrics.startup_time,
        "internal_states": await manager.get_internal_state(),
        "version": __version__,
        "frontend": "python",
    }


def model_info(manager: TokenizerManager) -> dict[str, Any]:
    """The model that is being served."""
    config, args, weights = manager.model_config, manager.server_args, manager.weights
    return {
        "model_path": weights.model_path,
        "served_model_name": manager.served_model_name,
        "tokenizer_path": shown_path(args.tokenizer_path or args.model_path),
        "is_generation": config.is_generation,
        "preferred_sampling_params": args.preferred_sampling_params,
        "weight_version": weights.version,
        "load_format": weights.load_format,
        "reasoning_parser": args.reasoning_parser,
        "tool_call_parser": args.tool_call_parser,
        "disaggregation_mode": "null",
        "has_image_understanding": False,
        "has_audio_understanding": False,
        "model_type": config.hf_config.get("model_type"),
        "architectures": [config.architecture],
        "embedding": None if config.pooling is None else asdict(config.pooling),
    }
