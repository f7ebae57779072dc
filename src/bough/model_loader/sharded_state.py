"""Sharded states: the weights of each rank in safetensors files of its own, under the names of checkpoints.

The files are named as vLLM's and SGLang's are; a rank reads its own alone.
"""

from __future__ import annotations

import json
import math
import os
import re
import string
from pathlib import Path
from typing import BinaryIO

import torch

from bough.config.ranks import ALL_WEIGHTS, WeightRank
from bough.errors import BadRequest, StartupError
from bough.layers.checkpoint_weight import CheckpointWeight
from bough.model_loader.sources import SafetensorsSource, open_tensors
from bough.models.base import Model

DEFAULT_PATTERN = "model-rank-{rank}-part-{part}.safetensors"
DEFAULT_MAX_BYTES = 5 * 2**30
"""Most bytes of weights in a file, unless asked for others."""

_OF_A_RANK = re.compile(r"model-rank-(\d{1,6})-part-\d{1,9}\.safetensors", re.ASCII)
_RANK, _NUM_RANKS, _DIVISION = "rank", "num_ranks", "division"
"""Entries of a file's metadata."""
_ROWS_AT_A_TIME = 4096
_TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


class ShardedState(SafetensorsSource):
    """The files of one rank."""

    has_shares = True

    def __init__(self, directory: Path, rank: WeightRank = ALL_WEIGHTS) -> None:
        """Raises:
        StartupError: if there are none for this rank, they are of another number of ranks or of ranks that divide
            the model otherwise, or one is damaged.
        """
        found = {path: _rank_of(path) for path in sorted(directory.glob("*.safetensors"))}
        ranks = {path: each for path, each in found.items() if each is not None}
        if not ranks:
            raise StartupError(
                f"{directory} has no sharded state ({DEFAULT_PATTERN}); save one with Engine.save_sharded_state, or "
                f"use --load-format auto"
            )
        # Files of other engines do not say how many ranks there are.
        count = max(max(each.count, each.index + 1) for each in ranks.values())
        if count != rank.count:
            raise StartupError(
                f"the sharded state in {directory} is for {count} ranks, and this is rank {rank.index} of "
                f"{rank.count}; save it again with this number of ranks"
            )
        others = {each.division for each in ranks.values()} - {"", rank.division}
        if count > 1 and rank.division and others:
            raise StartupError(
                f"the sharded state in {directory} is of ranks that divide {min(others)}, and these divide "
                f"{rank.division}; start with the options of the engine that saved it, or save it again with these"
            )
        super().__init__(directory, [path for path, each in ranks.items() if each.index == rank.index])


def save_sharded_state(
    model: Model, directory: Path, *, rank: WeightRank, pattern: str | None, max_bytes: int | None
) -> int:
    """Write the weights of a rank into files of at most ``max_bytes`` of weights, or one weight; return their bytes.

    Raises:
        BadRequest: if the pattern names no files by rank and part.
        OSError: if they cannot be written.
    """
    pattern = checked_pattern(pattern)
    parts: list[dict[str, CheckpointWeight]] = []
    limit = max_bytes or DEFAULT_MAX_BYTES
    total = room = 0
    for name, weight in model.required_shares.items():
        num_bytes = _num_bytes(weight)
        if not parts or num_bytes > room:
            parts.append({})
            room = limit
        parts[-1][name] = weight
        room, total = room - num_bytes, total + num_bytes
    about = {_RANK: str(rank.index), _NUM_RANKS: str(rank.count), _DIVISION: rank.division}
    for number, weights in enumerate(parts):
        with (directory / pattern.format(rank=rank.index, part=number)).open("wb") as file:
            _write_safetensors(file, weights, {"format": "pt", **about})
            file.flush()
            os.fsync(file.fileno())
    return total


def checked_pattern(pattern: str | None) -> str:
    """Return the pattern of file names, by default :data:`DEFAULT_PATTERN`.

    Raises:
        BadRequest: unless it has ``{rank}`` and ``{part}``, nothing else in braces, no directory, and the right suffix.
    """
    pattern = pattern or DEFAULT_PATTERN
    try:
        fields = {name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None}
        if fields == {"rank", "part"}:
            pattern.format(rank=0, part=0)
    except ValueError:
        fields = set()
    if fields != {"rank", "part"} or "/" in pattern or not pattern.endswith(".safetensors"):
        raise BadRequest(
            f"pattern must be a file name with {{rank}} and {{part}} that ends in .safetensors, got {pattern!r}",
            param="pattern",
        )
    return pattern


def _write_safetensors(file: BinaryIO, weights: dict[str, CheckpointWeight], metadata: dict[str, str]) -> None:
    """Write a file of weights, of which no copy is made as a whole."""
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, weight in weights.items():
        start, end = end, end + _num_bytes(weight)
        header[name] = {"dtype": _TYPES[weight.dtype], "shape": list(weight.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # weights begin at a multiple of 8 bytes
    file.write(len(text).to_bytes(8, "little") + text)
    for weight in weights.values():
        for rows in torch.split(weight.read(), _ROWS_AT_A_TIME):
            file.write(rows.detach().to("cpu").contiguous().view(-1).view(torch.uint8).numpy().data)


def _num_bytes(weight: CheckpointWeight) -> int:
    return math.prod(weight.shape) * weight.dtype.itemsize


def _rank_of(path: Path) -> WeightRank | None:
    """The rank that a file belongs to, by its metadata or its name; ``None`` if it is none of a sharded state."""
    with open_tensors(path) as tensors:
        metadata = tensors.metadata() or {}
    try:
        return WeightRank(int(metadata[_RANK]), int(metadata[_NUM_RANKS]), metadata.get(_DIVISION, ""))
    except (KeyError, ValueError):
        named = _OF_A_RANK.fullmatch(path.name)
        return None if named is None else WeightRank(int(named[1]), 1)
