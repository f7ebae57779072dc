"""Packed states: a model's weights in a file as they lie in memory, so that loading neither packs nor quantises.

A rank has two files: the parameters one after the other, each at a multiple of :data:`_ALIGNMENT` bytes, and a manifest
(:mod:`bough.config.packed_manifest`) that describes them. They are copied onto huge pages rather than mapped: weights
that are read from a mapped file, which has small pages, make decode steps slower for as long as the server runs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import msgspec
import torch

from bough.config.engine_args import DType, Quantization
from bough.config.packed_manifest import (
    ANY_INSTRUCTION_SET,
    LAYOUT_VERSION,
    PackedManifest,
    PackedSource,
    PackedTensor,
    manifest_name,
    read_manifest,
    weights_name,
)
from bough.config.ranks import ALL_WEIGHTS, WeightRank
from bough.errors import BadRequest, StartupError
from bough.layers.checkpoint_weight import Weight
from bough.layers.stored_formats import StoredForm
from bough.model_loader.sources import NAMES_SHOWN, WeightSource
from bough.models.base import Model
from bough.observability.progress import Progress

_ALIGNMENT = 4096
_PIECE_BYTES = 2**24
"""Bytes that a thread reads at a time."""


class PackedState(WeightSource):
    """The packed state of one rank, in the place of a checkpoint."""

    def __init__(self, directory: Path, rank: WeightRank = ALL_WEIGHTS) -> None:
        """Raises:
        StartupError: if there is none for this rank, it is damaged or cut short, or of another layout version.
        """
        self.manifest = read_manifest(directory, rank)
        self._division = rank.division
        self._file = directory / weights_name(rank)
        self.files = [self._file]
        try:
            size = self._file.stat().st_size
        except OSError as error:
            raise StartupError(f"cannot load {self._file}: {error.strerror}") from None
        if size != self.manifest.num_bytes:
            raise StartupError(
                f"cannot load {self._file}: it has {size} bytes, and its manifest says {self.manifest.num_bytes}; copy "
                f"it again, or pack the checkpoint again"
            )

    @property
    def quantized(self) -> bool:
        return self.manifest.holds_codes

    def form(self, name: str) -> StoredForm | None:
        return self.manifest.forms.get(name)  # type: ignore[return-value] # checked with the manifest

    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, Weight]]:
        raise TypeError("a packed state has no weights by their names in a checkpoint")

    def check_use(self, architecture: str, quantization: Quantization, dtype: str, *, native: bool) -> None:
        """Refuse another model, quantisation, type or division than those of the state, and models without native
        kernels.

        Raises:
            StartupError: saying which of them.
        """
        manifest, state = self.manifest, f"the packed state in {self._file.parent}"
        if not native:
            raise StartupError(f"{state} is for native CPU kernels, which do not run this model; the log says why")
        for what, asked, packed in (
            ("architecture", architecture, manifest.architecture),
            ("quantization", quantization, manifest.quantization),
            ("dtype", dtype, manifest.dtype),
        ):
            if asked != packed:
                raise StartupError(f"{state} has the {what} {packed}, and this model {asked}; pack it again")
        if manifest.num_ranks > 1 and self._division and manifest.division not in ("", self._division):
            raise StartupError(
                f"{state} is of ranks that divide {manifest.division}, and these divide {self._division}; start with "
                f"the options of the engine that saved it, or pack it again"
            )

    def check(self, model: Model) -> None:
        """Refuse a model with other parameters than those of the state.

        Raises:
            StartupError: naming some that differ.
        """
        there = {each.name: (each.dtype, each.shape, each.num_bytes) for each in self.manifest.tensors}
        here = {name: (_type(tensor), list(tensor.shape), tensor.nbytes) for name, tensor in model.named_parameters()}
        if there != here:
            names = sorted(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
            shown = ", ".join(names[:NAMES_SHOWN]) + (", …" if len(names) > NAMES_SHOWN else "")
            raise StartupError(
                f"the packed state in {self._file.parent} does not fit this model or its options ({len(names)} of "
                f"{len(here)} parameters: {shown}); pack the checkpoint again"
            )

    def fill(self, model: Model) -> int:
        """Read the parameters of a model; addresses stay. Returns their number.

        Raises:
            StartupError: as :meth:`check`, before anything is changed; or if the file cannot be read.
        """
        self.check(model)
        parameters = dict(model.named_parameters())
        pieces: list[tuple[int, memoryview]] = []
        for each in self.manifest.tensors:
            memory = _bytes_of(parameters[each.name])
            for start in range(0, each.num_bytes, _PIECE_BYTES):
                pieces.append((each.offset + start, memory[start : start + _PIECE_BYTES]))
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                with ThreadPoolExecutor(max(torch.get_num_threads(), 1), "bough-read") as threads:
                    list(threads.map(lambda piece: _read_at(descriptor, *piece), pieces))
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StartupError(f"cannot load {self._file}: {error.strerror or error}") from None
        return len(parameters)


def save_packed_state(
    model: Model,
    directory: Path,
    *,
    rank: WeightRank,
    architecture: str,
    dtype: str,
    quantization: Quantization,
    holds_codes: bool,
    source: PackedSource,
) -> int:
    """Write the packed state of a rank into a directory, the manifest last; returns the bytes of the weights.

    Raises:
        BadRequest: if the model does not lie in panels, since native kernels do not run it.
        OSError: if it cannot be written.
    """
    if not any(hasattr(module, "packed") for module in model.modules()):
        problem = "native CPU kernels do not run this model, so it has no packed state"
        raise BadRequest(problem, code="unsupported_by_model")
    tensors: list[PackedTensor] = []
    end = 0
    with (directory / weights_name(rank)).open("wb") as file:
        for name, parameter in model.named_parameters():
            offset = -(-end // _ALIGNMENT) * _ALIGNMENT
            file.seek(offset)
            file.write(_bytes_of(parameter))
            end = offset + parameter.nbytes
            tensors.append(
                PackedTensor(
                    name=name,
                    dtype=_type(parameter),
                    shape=list(parameter.shape),
                    offset=offset,
                    num_bytes=parameter.nbytes,
                )
            )
        file.truncate(end)
        file.flush()
        os.fsync(file.fileno())
    holds_codes = holds_codes and quantization == "none"
    forms: dict[str, str] = {
        name: form for name, weight in model.checkpoint_weights.items() if (form := weight.form) is not None
    }
    manifest = PackedManifest(
        layout_version=LAYOUT_VERSION,
        instruction_set=ANY_INSTRUCTION_SET,
        rank=rank.index,
        num_ranks=rank.count,
        division=rank.division,
        architecture=architecture,
        dtype=cast(DType, dtype),
        quantization=quantization,
        holds_codes=holds_codes,
        forms=forms if holds_codes else {},
        source=source,
        num_bytes=end,
        tensors=tensors,
    )
    with (directory / manifest_name(rank)).open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        file.flush()
        os.fsync(file.fileno())
    return end


def digest_of(files: list[Path]) -> PackedSource:
    """Describe the files of a checkpoint by their contents, which are read; raises ``OSError``."""
    if not files:
        return PackedSource(files=[], digest="")
    digest = hashlib.blake2b(digest_size=32)
    piece = bytearray(_PIECE_BYTES)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(piece):
                digest.update(memoryview(piece)[:count])
    return PackedSource(files=[path.name for path in files], digest=digest.hexdigest())


def _bytes_of(parameter: torch.Tensor) -> memoryview:
    """The memory of a parameter, which may be written through it."""
    return parameter.detach().view(-1).view(torch.uint8).numpy().data


def _type(parameter: torch.Tensor) -> str:
    return str(parameter.dtype).removeprefix("torch.")


def _read_at(descriptor: int, offset: int, memory: memoryview) -> None:
    while memory:
        count = os.preadv(descriptor, [memory], offset)
        if not count:
            raise OSError("it has become shorter")
        memory, offset = memory[count:], offset + count
