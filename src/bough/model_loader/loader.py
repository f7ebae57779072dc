"""Make a model and fill it: from safetensors files, or with random weights."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from bough.config.checkpoint import read_json
from bough.config.model_config import ModelConfig
from bough.errors import ModelError, StartupError
from bough.layers.linear_method import TORCH, LinearMethod
from bough.model_loader.progress import Progress
from bough.models.base import Model
from bough.models.registry import make_model

logger = logging.getLogger(__name__)

_INDEX_FILE = "model.safetensors.index.json"
_SINGLE_FILE = "model.safetensors"
_PICKLED_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")
_NAMES_SHOWN = 8
_DUMMY_STD = 0.02
_DUMMY_BLOCK = 1_048_573


def load_model(
    config: ModelConfig, *, load_format: str, device: torch.device, seed: int, method: LinearMethod = TORCH
) -> Model:
    """A model with its weights, ready to run.

    Args:
        config: of the checkpoint.
        load_format: ``auto`` or ``safetensors`` read files; ``dummy`` makes random weights from ``seed``.
        device: where the weights go.
        seed: only for ``dummy``.
        method: how linear layers hold their weights.

    Raises:
        StartupError: if files are missing, damaged or do not fit the model.
    """
    with torch.device(device):
        model = make_model(config, method)
    model.eval()
    if load_format == "dummy":
        fill_with_random_weights(model, seed)
    else:
        load_checkpoint(model, Path(config.model_path))
    return model


def load_checkpoint(model: Model, directory: Path) -> None:
    """Stream all safetensors files of a directory into a model, casting to its dtype.

    Raises:
        StartupError: naming the file and what is wrong with it, or the weights that no file has.
    """
    files = checkpoint_files(directory)
    total_bytes = sum(file.stat().st_size for file in files)
    begin = time.perf_counter()
    loaded: set[str] = set()
    with Progress("Loading weights", total_bytes) as progress:
        for file in files:
            try:
                loaded |= model.load_weights(_with_progress(file, progress))
            except SafetensorError as error:
                raise StartupError(
                    f"cannot load {file}: it is damaged or cut short ({error}); download it again"
                ) from error
            except (ModelError, OSError) as error:
                raise StartupError(f"cannot load {file}: {error}") from error
    missing = sorted(model.required_names - loaded)
    if missing:
        shown = ", ".join(missing[:_NAMES_SHOWN]) + (", …" if len(missing) > _NAMES_SHOWN else "")
        raise StartupError(
            f"the checkpoint in {directory} lacks {len(missing)} of {len(model.required_names)} weights: {shown}"
        )
    seconds = time.perf_counter() - begin
    logger.info("loaded %d weights, %.2f GB, in %.1f s", len(loaded), total_bytes / 1e9, seconds)


def checkpoint_files(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint: those that its index names, else the single one, else all there are.

    Raises:
        StartupError: if there are none, or the index names one that is not there.
    """
    index_file = directory / _INDEX_FILE
    if index_file.is_file():
        index = read_json(index_file)
        weight_map: Any = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
            raise StartupError(f"{index_file} has no valid weight_map; download it again")
        files = [directory / name for name in sorted(set(weight_map.values()))]
        absent = [file.name for file in files if not file.is_file() or file.name not in weight_map.values()]
        if absent:
            raise StartupError(
                f"{directory} lacks {', '.join(absent[:_NAMES_SHOWN])}, named by its index; download again"
            )
        return files
    if (directory / _SINGLE_FILE).is_file():
        return [directory / _SINGLE_FILE]
    files = sorted(directory.glob("*.safetensors"))
    if files:
        return files
    if any(file.suffix in _PICKLED_SUFFIXES for file in directory.iterdir()):
        raise StartupError(
            f"{directory} has only pickled weights, which can run code when opened and are never read; convert the "
            f"checkpoint to safetensors (transformers' save_pretrained does)"
        )
    raise StartupError(f"{directory} has no *.safetensors files; download the weights, or use --load-format dummy")


def _with_progress(file: Path, progress: Progress) -> Iterator[tuple[str, torch.Tensor]]:
    with safe_open(file, framework="pt", device="cpu") as tensors:
        for name in tensors.keys():  # noqa: SIM118 - no mapping
            tensor = tensors.get_tensor(name)
            yield name, tensor
            progress.advance(tensor.nbytes)


@torch.no_grad()
def fill_with_random_weights(model: Model, seed: int) -> None:
    """Normal weights of small spread; biases zero, norms one. The same seed gives the same weights.

    The random numbers of one block are repeated over and over: drawing each weight of a large model would take
    minutes. The block's length is a prime, so that no two rows of a matrix are alike.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    device = next(model.parameters()).device
    block = torch.empty(_DUMMY_BLOCK).normal_(0.0, _DUMMY_STD, generator=generator).to(device)
    offset = 0
    for name in sorted(model.required_names):
        weight = model.checkpoint_weights[name]
        if name.lower().endswith("norm.weight"):
            weight.fill(1.0)
        elif name.endswith(".bias"):
            weight.fill(0.0)
        else:
            flat = torch.empty(weight.shape.numel(), dtype=weight.dtype, device=device)
            start = 0
            while start < len(flat):
                count = min(len(flat) - start, len(block) - offset)
                flat[start : start + count].copy_(block[offset : offset + count])
                start += count
                offset = (offset + count) % len(block)
            weight.write(flat.view(weight.shape))
