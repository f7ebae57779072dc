"""Weights in the format of CoreWeave's tensorizer, under the names of checkpoints; the package is an optional extra."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch

from bough.config.ranks import ALL_WEIGHTS, WeightRank
from bough.errors import BadRequest, ConfigError, StartupError
from bough.layers.checkpoint_weight import Weight
from bough.model_loader.sources import WeightSource, is_of_attention
from bough.models.base import Model
from bough.observability.progress import Progress

_INSTALL = "needs the package tensorizer; install it with pip install 'bough-llm[tensorizer]'"


def tensorizer_name(rank: WeightRank) -> str:
    """Name of a rank's file; the one of a single rank is that of vLLM."""
    return "model.tensors" if rank.count == 1 else f"model-rank-{rank.index}-of-{rank.count}.tensors"


class TensorizerState(WeightSource):
    """The file of one rank."""

    has_shares = True

    def __init__(self, directory: Path, rank: WeightRank = ALL_WEIGHTS) -> None:
        """Raises:
        ConfigError: if the package is not installed.
        StartupError: if there is no such file.
        """
        try:
            import tensorizer  # noqa: F401
        except ImportError:
            raise ConfigError(f"--load-format tensorizer {_INSTALL}", param="load_format") from None
        self._file = directory / tensorizer_name(rank)
        self.files = [self._file]
        if not self._file.is_file():
            raise StartupError(f"{directory} has no {self._file.name} for rank {rank.index} of {rank.count}")

    def numbers(self, name: str) -> torch.Tensor | None:
        with _open(self._file) as tensors:
            return _read(tensors, name, self._file) if name in tensors.keys() else None  # noqa: SIM118 - no mapping

    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, Weight]]:
        with _open(file) as tensors:
            for name in list(tensors.keys()):
                tensor = _read(tensors, name, file)
                if not is_of_attention(name):
                    yield name, tensor
                progress.advance(tensor.nbytes)


def save_tensorizer_state(model: Model, directory: Path, *, rank: WeightRank) -> int:
    """Write the weights of a rank; returns their bytes.

    Raises:
        BadRequest: if the package is not installed.
        OSError: if they cannot be written.
    """
    try:
        from tensorizer import TensorSerializer
    except ImportError:
        raise BadRequest(f"saving in this format {_INSTALL}") from None
    path = directory / tensorizer_name(rank)
    weights = {name: weight.read().detach().to("cpu") for name, weight in model.required_shares.items()}
    serializer = TensorSerializer(str(path))
    serializer.write_state_dict(weights)
    serializer.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return sum(tensor.nbytes for tensor in weights.values())


def _open(file: Path) -> Any:
    """Open a file; its tensors are read when they are asked for.

    Raises:
        StartupError: if it is damaged.
    """
    from tensorizer import TensorDeserializer

    try:
        return TensorDeserializer(str(file), device="cpu", lazy_load=True, verify_hash=True)
    except Exception as error:  # the package raises many kinds
        raise _damaged(file, error) from None


def _read(tensors: Any, name: str, file: Path) -> torch.Tensor:
    """Read a tensor and check its hash.

    Raises:
        StartupError: if it is damaged.
    """
    try:
        tensor: torch.Tensor = tensors[name]
    except Exception as error:  # the package raises many kinds
        raise _damaged(file, error) from None
    return tensor


def _damaged(file: Path, error: Exception) -> StartupError:
    return StartupError(f"cannot load {file}: it is no file of tensorizer, or damaged ({error}); save it again")
