"""Manifests of packed states: what the memory of a model's weights, as a file has it, was made for."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from bough.config.engine_args import DType, EngineArgs, Quantization
from bough.config.ranks import ParallelLayout, WeightRank
from bough.errors import CheckpointError, ConfigError

SavedForm = Literal["sharded_state", "packed", "tensorizer"]
"""Forms in which an engine saves its weights, as ``--load-format`` has them."""

LAYOUT_VERSION = 1
"""Changes with the order of numbers in panels and with the form of these files."""

ANY_INSTRUCTION_SET = "any"
"""Instruction set of panels that all kernels read alike, as those of this layout version."""

_MANIFEST_NAME = re.compile(r"bough-packed-(\d{1,6})-of-(\d{1,6})\.json", re.ASCII)

_FORMS = ("int4", "uint4", "mxfp4", "int8")

Args = TypeVar("Args", bound=EngineArgs)


class PackedTensor(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of the model, and its place in the file."""

    name: str
    dtype: str
    """Type in torch's words, ``bfloat16``."""
    shape: list[int]
    offset: int
    """First byte."""
    num_bytes: int


class PackedSource(msgspec.Struct, frozen=True, kw_only=True):
    """The checkpoint that a packed state was made of."""

    files: list[str]
    """Names, without directories; none if the weights were random or sent by a trainer."""
    digest: str
    """BLAKE2b of their contents, one after the other, as 64 hexadecimal digits; empty if there are none."""


class PackedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Description of the packed state of one rank."""

    layout_version: int
    instruction_set: str
    rank: int
    num_ranks: int
    division: str = ""
    """As :attr:`WeightRank.division`."""
    architecture: str
    dtype: DType
    quantization: Quantization
    holds_codes: bool
    """True if matrices hold the codes of a quantised checkpoint as they are."""
    forms: dict[str, str]
    """Formats of quantised weights, by their names in the checkpoint; empty unless ``holds_codes``."""
    source: PackedSource
    num_bytes: int
    """Size of the file of weights."""
    tensors: list[PackedTensor]


def manifest_name(rank: WeightRank) -> str:
    """Name of a rank's manifest."""
    return f"bough-packed-{rank.index}-of-{rank.count}.json"


def weights_name(rank: WeightRank) -> str:
    """Name of a rank's file of weights."""
    return f"bough-packed-{rank.index}-of-{rank.count}.bin"


def is_packed(directory: Path) -> bool:
    """Return whether a directory has the packed state of any rank."""
    return directory.is_dir() and any(_MANIFEST_NAME.fullmatch(path.name) for path in directory.iterdir())


def read_manifest(directory: Path, rank: WeightRank) -> PackedManifest:
    """Read and check the manifest of a rank.

    Raises:
        CheckpointError: if there is none for this number of ranks, or it is damaged or of another version of Bough.
    """
    path = directory / manifest_name(rank)
    if not path.is_file():
        found = [match for each in directory.iterdir() if (match := _MANIFEST_NAME.fullmatch(each.name))]
        if not found:
            raise CheckpointError(f"{directory} has no packed state ({path.name}); make one with bough pack")
        raise CheckpointError(
            f"the packed state in {directory} is for {int(found[0][2])} ranks, and this is rank {rank.index} of "
            f"{rank.count}; pack the checkpoint again with this number of ranks"
        )
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=_Head)
        if manifest.layout_version != LAYOUT_VERSION:
            raise CheckpointError(
                f"the packed state in {directory} has layout version {manifest.layout_version}, and this Bough reads "
                f"{LAYOUT_VERSION}; pack the checkpoint again"
            )
        if manifest.instruction_set != ANY_INSTRUCTION_SET:
            raise CheckpointError(
                f"the packed state in {directory} is for the instruction set {manifest.instruction_set}, which this "
                f"Bough does not pack for; pack the checkpoint again"
            )
        whole = msgspec.json.decode(path.read_bytes(), type=PackedManifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); pack the checkpoint again") from None
    if (whole.rank, whole.num_ranks) != (rank.index, rank.count):
        raise CheckpointError(f"{path} is that of rank {whole.rank} of {whole.num_ranks}; pack the checkpoint again")
    if bad := [form for form in whole.forms.values() if form not in _FORMS]:
        raise CheckpointError(f"{path} has weights of an unknown form {bad[0]!r}; pack the checkpoint again")
    end = 0
    for tensor in whole.tensors:
        if tensor.offset < end or tensor.num_bytes < 0 or min(tensor.shape, default=0) < 0:
            raise CheckpointError(f"{path} is damaged (places of {tensor.name}); pack the checkpoint again")
        end = tensor.offset + tensor.num_bytes
    if end > whole.num_bytes:
        raise CheckpointError(f"{path} is damaged (size of the weights); pack the checkpoint again")
    return whole


def with_packed_options(args: Args, directory: Path) -> Args:
    """Return the options with what a packed state decides, if the model in ``directory`` is one: its quantisation and
    its type of weights.

    Raises:
        CheckpointError: as :func:`read_manifest`.
        ConfigError: if options ask for others.
    """
    if args.load_format not in ("auto", "packed") or not directory.is_dir():
        return args
    if args.load_format == "auto" and not is_packed(directory):
        return args
    manifest = read_manifest(directory, WeightRank(0, ParallelLayout.of(args).tp_size))
    for name, wanted, packed, unset in (
        ("quantization", args.quantization, manifest.quantization, "none"),
        ("dtype", args.dtype, manifest.dtype, "auto"),
    ):
        if wanted not in (unset, packed):
            raise ConfigError(
                f"--{name} {wanted}: the packed state in {directory} has {packed}; leave the option out, or pack the "
                f"checkpoint again with it",
                param=name,
            )
    return dataclasses.replace(args, load_format="packed", quantization=manifest.quantization, dtype=manifest.dtype)


class _Head(msgspec.Struct, frozen=True):
    """The entries that every version has."""

    layout_version: int
    instruction_set: str
