"""Where weights come from: files of one format or another, all under the names of Hugging Face checkpoints."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from bough.config.checkpoint import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_json
from bough.config.engine_args import Quantization
from bough.config.file_kinds import but_is
from bough.config.user_paths import shown_path
from bough.errors import StartupError
from bough.layers.checkpoint_weight import StoredWeight
from bough.layers.stored_formats import StoredForm
from bough.models.weight_names import text_name
from bough.observability.progress import Progress

logger = logging.getLogger(__name__)

NAMES_SHOWN = 8

_INDEX_FILE = "model.safetensors.index.json"
_SINGLE_FILE = "model.safetensors"
_PICKLED_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt")

_OF_ATTENTION = ("q_scale", "k_scale", "v_scale", "kv_scale", "prob_scale")
"""What attention was calibrated with."""
_KV_SCALE = re.compile(
    r"\blayers\.(\d{1,6})\.self_attn\.(?:(?:\w+\.)?([kv]|kv)_scale|([kv])_proj\.output_scale)$", re.ASCII
)
"""By layer; some tools give keys and values one scale, others call theirs those of the projections' outputs."""


class WeightSource(ABC):
    """The weights of one checkpoint, read one at a time.

    Attributes:
        files: in which they are.
        group: inputs of a quantised weight that share a scale; ``None``: all of a row.
        has_shares: True if it has what one rank has of each weight, instead of the whole.
    """

    files: list[Path]
    group: int | None = 32
    has_shares: bool = False

    @property
    def total_bytes(self) -> int:
        """What :meth:`read` reports as progress, all files together."""
        return sum(file.stat().st_size for file in self.files)

    @property
    def quantized(self) -> bool:
        """Whether there are weights that are whole numbers already."""
        return False

    @property
    def float8(self) -> bool:
        """Whether there are weights in 8-bit floating point."""
        return False

    def form(self, name: str) -> StoredForm | None:
        """The form of a quantised weight; ``None`` for one that is not quantised."""
        return None

    def check_use(self, architecture: str, quantization: Quantization, dtype: str, *, native: bool) -> None:  # noqa: B027
        """Refuse a way of holding the weights that this source cannot serve, which most can.

        Args:
            architecture: of the model.
            quantization: as the option has it.
            dtype: of the weights that are not quantised.
            native: true if native CPU kernels run the model.

        Raises:
            StartupError: saying what does not fit.
        """

    def kv_scales(self) -> dict[int, tuple[float, float]]:
        """What the keys and the values of layers are divided by where they are kept in 8-bit floating point.

        Raises:
            StartupError: if what the checkpoint has is no such number.
        """
        return {}

    def numbers(self, name: str) -> torch.Tensor | None:
        """A weight that is stored in floating point of 16 bits or more, as it is; ``None`` if there is none."""
        return None

    @abstractmethod
    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, StoredWeight]]:
        """Names and weights of one of the files; each can be let go before the next is made.

        Args:
            file: which one.
            progress: is told what has been read.
            known: names that the model has, for those who leave out what need not be there.

        Raises:
            SafetensorError: if a file is damaged.
            StartupError: if it is not what its name, or the checkpoint's configuration, says.
        """


class SafetensorsSource(WeightSource):
    """Weights as safetensors files have them."""

    def __init__(self, directory: Path, files: list[Path] | None = None) -> None:
        """Args:
            files: those to read; by default the checkpoint's.

        Raises:
            StartupError: if there are no such files, one of several is damaged, or a name is in two of them.
        """
        if files is None and _has_adapter(directory):
            logger.warning(
                "%s has an adapter beside the model (%s), which is not applied; to serve the two, merge it (PEFT's "
                "merge_and_unload does)",
                directory,
                ADAPTER_CONFIG,
            )
        weight_map = _weight_map(directory) if files is None else None
        self.files = _checkpoint_files(directory, weight_map) if files is None else files
        self._places = _places(self.files, weight_map) if len(self.files) > 1 else {}
        """File that each weight is taken from, where there are several."""

    def names_in(self, file: Path, tensors: Any) -> list[str]:
        """Names of the weights that are taken from one of the files, which is open as ``tensors``."""
        return [name for name in tensors.keys() if self._places.get(name, file) == file]  # noqa: SIM118 - no mapping

    def kv_scales(self) -> dict[int, tuple[float, float]]:
        found: dict[int, dict[str, float]] = {}
        for file in self.files:
            with open_tensors(file) as tensors:
                for name in self.names_in(file, tensors):
                    match = _KV_SCALE.search(text_name(name) or "")
                    if match is None:
                        continue
                    scale = tensors.get_tensor(name).float().flatten().tolist()
                    if len(scale) != 1 or not 0 < scale[0] < math.inf:
                        raise StartupError(f"tensor {name} must be one positive number")
                    found.setdefault(int(match[1]), {}).update(dict.fromkeys(match[2] or match[3], scale[0]))
        return {layer: (pair.get("k", 1.0), pair.get("v", 1.0)) for layer, pair in found.items()}

    def numbers(self, name: str) -> torch.Tensor | None:
        for file in self.files:
            with open_tensors(file) as tensors:
                if name in self.names_in(file, tensors):
                    tensor: torch.Tensor = tensors.get_tensor(name)
                    return tensor if tensor.is_floating_point() and tensor.element_size() > 1 else None
        return None

    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, StoredWeight]]:
        with open_tensors(file) as tensors:
            for name in self.names_in(file, tensors):
                tensor = tensors.get_tensor(name)
                if not is_of_attention(name):
                    yield name, tensor
                progress.advance(tensor.nbytes)


def is_of_attention(name: str) -> bool:
    """Whether a tensor is what attention was calibrated with, which is no weight of a model."""
    return name.rpartition(".")[2] in _OF_ATTENTION or _KV_SCALE.search(name) is not None


def open_tensors(file: Path) -> Any:
    """A safetensors file, mapped into memory.

    Raises:
        StartupError: if it is damaged, or the system refuses to map it.
    """
    try:
        with _in_utf8(file) as path:
            return safe_open(path, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        what = but_is(file)
        what = f"not a safetensors file{what}" if what and not what.endswith(" a safetensors file") else ""
        what = what or f"no safetensors file, or damaged or cut short ({error}); download it again"
        raise StartupError(f"cannot load {file}: it is {what}") from None
    except RuntimeError as error:
        # The system refuses what is larger than all memory it has, though only single weights are read at a time.
        raise StartupError(
            f"cannot map {file}, {file.stat().st_size / 2**30:.2f} GiB, into memory ({error}); store the checkpoint in "
            f"several smaller files (save_pretrained with max_shard_size does), or free memory"
        ) from None


@contextlib.contextmanager
def _in_utf8(file: Path) -> Iterator[Path]:
    """Yield a UTF-8 path to a file with another path; the library needs one to map the file for torch."""
    if shown_path(str(file)) == str(file):
        yield file
        return
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _has_adapter(directory: Path) -> bool:
    return (directory / ADAPTER_CONFIG).is_file() and any((directory / name).is_file() for name in ADAPTER_WEIGHTS)


def _weight_map(directory: Path) -> dict[str, str] | None:
    """Which file has each weight, by the checkpoint's index; ``None`` if it has no index that counts.

    A single file counts before an index that does not name it, as in transformers: whoever saves a model again into the
    same directory leaves the other's index behind.

    Raises:
        StartupError: if the index is damaged.
    """
    index_file = directory / _INDEX_FILE
    if not index_file.is_file():
        return None
    index = read_json(index_file)
    weight_map: Any = index.get("weight_map") if isinstance(index, dict) else None
    is_map = isinstance(weight_map, dict) and all(isinstance(name, str) for name in weight_map.values())
    if not weight_map or not is_map:
        raise StartupError(f"{index_file} has no valid weight_map; download it again")
    found: dict[str, str] = weight_map
    if (directory / _SINGLE_FILE).is_file() and _SINGLE_FILE not in found.values():
        logger.warning(
            "%s has both %s and %s, which does not name it; the single file is read, and the index is not",
            directory,
            _SINGLE_FILE,
            _INDEX_FILE,
        )
        return None
    return found


def _places(files: list[Path], weight_map: dict[str, str] | None) -> dict[str, Path]:
    """The file of each weight: the one that the index names, else the one that has it.

    Raises:
        StartupError: if a file is damaged, or two have a weight and no index says which of them counts.
    """
    holders: dict[str, list[Path]] = {}
    for file in files:
        with open_tensors(file) as tensors:
            for name in tensors.keys():  # noqa: SIM118 - no mapping
                holders.setdefault(name, []).append(file)
    places: dict[str, Path] = {}
    for name, having in holders.items():
        named = [file for file in having if file.name == (weight_map or {}).get(name)]
        if len(having) > 1 and not named:
            raise StartupError(
                f"{having[0].parent}: both {having[0].name} and {having[1].name} have a tensor {name}, and no index "
                f"says which counts; remove the file that does not belong to the checkpoint"
            )
        places[name] = (named or having)[0]
    return places


def _checkpoint_files(directory: Path, weight_map: dict[str, str] | None) -> list[Path]:
    """The safetensors files of a checkpoint: those that its index names, else the single one, else all there are.

    Raises:
        StartupError: if there are none, or the index names one that is not there.
    """
    if weight_map is not None:
        files = [directory / name for name in sorted(set(weight_map.values()))]
        absent = [file.name for file in files if not file.is_file() or file.name not in weight_map.values()]
        if absent:
            raise StartupError(
                f"{directory} lacks {', '.join(absent[:NAMES_SHOWN])}, named by its index"
                f"{but_is(directory / absent[0]) or '; download again'}"
            )
        return files
    if (directory / _SINGLE_FILE).is_file():
        return [directory / _SINGLE_FILE]
    files = sorted(file for file in directory.glob("*.safetensors") if file.name not in ADAPTER_WEIGHTS)
    if files:
        return files
    if _has_adapter(directory):
        raise StartupError(
            f"{directory} has the weights of an adapter and not those of its model; merge the two (PEFT's "
            f"merge_and_unload and save_pretrained do), and serve the result"
        )
    if any(file.suffix in _PICKLED_SUFFIXES for file in directory.iterdir()):
        raise StartupError(
            f"{directory} has only pickled weights, which can run code when opened and are never read; convert the "
            f"checkpoint to safetensors (transformers' save_pretrained does)"
        )
    if (directory / "weights.npz").is_file():
        raise StartupError(f"{directory} has its weights in MLX's format (weights.npz); use the model's original")
    raise StartupError(f"{directory} has no *.safetensors files; download the weights, or use --load-format dummy")
