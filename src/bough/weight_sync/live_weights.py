"""The weights of a model that is in use, and how those of another checkpoint take their place."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, is_dataclass
from typing import Any

import torch

from bough.config.model_config import ModelConfig
from bough.config.model_facts import ModelFacts
from bough.config.packed_manifest import PackedSource
from bough.config.ranks import ALL_WEIGHTS, WeightRank
from bough.config.rope import RopeParameters
from bough.errors import BadRequest, BoughError, EngineDead, RequestFailed, StartupError
from bough.model_loader.loader import (
    check_checkpoint,
    check_random_weights,
    fill_with_random_weights,
    load_checkpoint,
    open_source,
)
from bough.model_loader.packed_state import digest_of
from bough.model_loader.sources import WeightSource
from bough.models.base import Model
from bough.weight_sync.change import Change

logger = logging.getLogger(__name__)

MOST_NUMBERS_READ = 2**20

_POSITIONS = ("max_position_embeddings", "original_max_position_embeddings")

_MOST_COPIES = 2
"""How often a number may come at most: a matrix that serves twice has two names."""

_FREE_ENTRIES = frozenset(
    {
        *("_name_or_path", "transformers_version", "dtype", "torch_dtype", "use_cache", "quantization_config"),
        *("bos_token_id", "eos_token_id", "pad_token_id", "max_position_embeddings"),
    }
)
"""Entries of a config.json that do not change what a model computes, or are compared as facts."""

KVScales = Mapping[int, tuple[float, float]]
"""By layer, what keys and values are divided by where they are kept in 8-bit floating point."""

FileStates = list[tuple[str, int, int, int]]
"""Of each file its path, inode, bytes, and nanoseconds at which it was written."""


@dataclass(eq=False)
class LiveWeights:
    """The weights of a loaded model, at addresses that stay: recorded programs and graphs go on working."""

    model: Model
    config: ModelConfig
    load_format: str
    _: KW_ONLY
    files: FileStates
    """:func:`state_of` what it was loaded from, before that was read"""
    seed: int
    kv_scales: KVScales | None = None
    """Those that the KV pool was made with; ``None`` if it divides by none"""
    holds_codes: bool = False
    """True if the model has the codes of a quantised checkpoint as they are"""
    rank: WeightRank = ALL_WEIGHTS
    """Part of the weights that is here"""
    is_mapped: bool = False
    """True if they lie in memory that another scheduler writes: it gets the same updates, and here they are checked"""

    def __post_init__(self) -> None:
        self._differ = False
        """True if there are other weights than those of the checkpoint."""
        self.is_asleep = False
        """True while their memory is given back."""
        self.missing: set[str] = set()
        """Names of weights that were discarded, and of which no new ones have come."""
        self._context_len = self.config.context_len

    def prepare_replacement(self, config: ModelConfig, load_format: str) -> Change:
        """Look at all weights of another checkpoint; return what loads them in place of those that are there.

        Raises:
            BadRequest: if it is the checkpoint of another model, or random weights do not fit.
            StartupError: if its files are missing, damaged or do not fit.
        """
        self.check_awake()
        self._check_model(config)
        source = open_source(config, load_format, self.rank)
        files = state_of(source)
        if source is None:
            check_random_weights(self.model, self.seed)
        else:
            self._check_kv_scales(source)
            check_checkpoint(self.model, source)
        return Change(lambda: self._replace(config, load_format, source, files))

    def replace(self, config: ModelConfig, load_format: str) -> int:
        """Load another checkpoint in place of the one that is there; nothing may be computed meanwhile.

        All weights are looked at before the first one is changed. What shows later, such as a file that cannot be read
        a second time, has the checkpoint that was there loaded again, if its files are still the same.

        Returns:
            How many pieces of memory were filled; 0 if another scheduler fills them.

        Raises:
            BoughError: as :meth:`prepare_replacement`, or what has shown later. The old weights are there then.
            EngineDead: if the old ones could not be loaded again, so that the model has neither.
        """
        return self.prepare_replacement(config, load_format).write()

    def _replace(self, config: ModelConfig, load_format: str, source: WeightSource | None, files: FileStates) -> int:
        try:
            self._fill(source, is_checked=True)
            # Or else what was written may not be what was checked.
            if not self.is_mapped and state_of(source) != files:
                raise StartupError("the files of the checkpoint have changed while they were read")
        except Exception as error:  # whatever it was, some weights may be the new ones
            if self.missing:
                self.discard()  # there are no old ones
            else:
                self._restore(error)
            if isinstance(error, BoughError):
                raise
            raise RequestFailed(f"new weights could not be loaded: {error}") from error
        self.config, self.load_format, self._differ = config, load_format, False
        self.files = files
        self.missing.clear()
        return 0 if self.is_mapped else len(self.model.required_names)

    def check(self, weights: Sequence[tuple[str, torch.Tensor]]) -> None:
        """Raise as :meth:`update_weights` would; tensors may be on the device ``meta``, without numbers.

        Raises:
            BadRequest: also if they are more than a model can have, some of which it ignores.
        """
        self._checked(weights)
        most = _MOST_COPIES * sum(weight.shape.numel() for weight in self.model.checkpoint_weights.values())
        if sum(tensor.numel() for _, tensor in weights) > most:
            raise BadRequest("these are more numbers than the model has", param="shapes")

    def update_weights(self, weights: Sequence[tuple[str, torch.Tensor]]) -> int:
        """Load some weights; nothing may be computed meanwhile. All are looked at before the first one is changed.

        Args:
            weights: names as in the checkpoint, and tensors on any device.

        Returns:
            How many pieces of memory were filled; 0 if another scheduler fills them.

        Raises:
            BadRequest: if a name is there twice, or none is one of the model's.
            ModelError: if one does not fit. The old weights are there then.
            EngineDead: if something broke on the way, so that some weights are the new ones.
        """
        return self.prepare_update(weights).write()

    def prepare_update(self, weights: Sequence[tuple[str, torch.Tensor]]) -> Change:
        """Look at some weights as :meth:`update_weights` does; return what loads them."""
        checked = self._checked(weights)
        return Change(lambda: self._write(checked))

    def _write(self, checked: list[tuple[str, torch.Tensor]]) -> int:
        self._differ = True
        if self.is_mapped:
            return 0
        try:
            filled = self.model.write_weights(checked)
            _wait_for_copies(self.model)
        except Exception as error:
            raise EngineDead(f"new weights could be loaded in part only: {error}") from error
        self.missing -= filled
        return len(filled)

    def _checked(self, weights: Sequence[tuple[str, torch.Tensor]]) -> list[tuple[str, torch.Tensor]]:
        """The weights that are to be written: of a second name, as a tied head's, what it stands for."""
        self.check_awake()
        found: dict[str, torch.Tensor] = {}
        kept: list[tuple[str, torch.Tensor]] = []
        seen: set[str] = set()
        filled: dict[str, str | None] = {}
        for name, tensor in weights:
            if name in seen:
                raise BadRequest(f"weight {name} is there twice", param="names")
            seen.add(name)
            first = self.model.first_name(name)
            for part in () if first is None else self.model.parts(first):
                if filled.setdefault(part, first) != first:
                    raise BadRequest(f"weight {name} shares rows with {filled[part]}", param="names")
            if first is None:
                kept.append((name, tensor))
            elif first not in found:
                found[first] = tensor
            elif tensor.device.type != "meta" and not torch.equal(tensor, found[first].to(tensor)):
                raise BadRequest(f"weight {name} is another one than {first}, which shares its memory", param="names")
        kept += found.items()
        if not self.model.check_weights(kept):
            raise BadRequest("none of the names is that of a weight of the model", param="names")
        return kept

    def check_awake(self) -> None:
        """Raise :class:`BadRequest` while the memory of the weights is given back."""
        if self.is_asleep:
            raise BadRequest("the weights are asleep; wake them first", code="asleep")

    def discard(self) -> None:
        """Say that the memory of the weights has none any more; each is missing until it is sent."""
        self._differ = True
        self.missing = set() if self.is_mapped else set(self.model.required_names)

    def are_of_checkpoint(self) -> bool:
        """Return whether these are the weights of a checkpoint with files that are still as they were."""
        try:
            return not self._differ and state_of(_source_of(self)) == self.files
        except (StartupError, OSError):
            return False

    def read_again(self) -> None:
        """Load the weights of the checkpoint that they were of once more.

        Raises:
            StartupError: if its files have changed or cannot be read.
        """
        source = _source_of(self)
        if state_of(source) != self.files:
            raise StartupError("its files have changed since")
        self._fill(source)

    def source(self) -> PackedSource:
        """Description of the checkpoint that has these weights, which is read again for that; empty if none has, or its
        files have changed."""
        if self._differ or not self.files:
            return PackedSource(files=[], digest="")
        try:
            source = _source_of(self)
            return digest_of([] if source is None or state_of(source) != self.files else source.files)
        except (StartupError, OSError):
            return PackedSource(files=[], digest="")

    def rows(self, name: str, count: int) -> Any:
        """The first ``count`` rows of a matrix, or numbers of a vector, as lists of floats, as the model has them.

        Raises:
            BadRequest: if the checkpoint has no weight of that name, or it is too much at once.
        """
        self.check_awake()
        own_name = self.model.own_name(name)
        weight = self.model.find_weight(name if own_name is None else own_name)
        if weight is None:
            raise BadRequest(f"name: this model has no weight {name!r}", param="name")
        count = min(count, weight.shape[0])
        size = count * weight.shape[1:].numel()
        if size > MOST_NUMBERS_READ:
            raise BadRequest(
                f"truncate_size: {count} rows of {name} are {size} numbers, and at most {MOST_NUMBERS_READ} are read "
                "at a time",
                param="truncate_size",
            )
        return weight.read(count).float().tolist()

    def _fill(self, source: WeightSource | None, *, is_checked: bool = False) -> None:
        if self.is_mapped:
            return
        if source is None:
            fill_with_random_weights(self.model, self.seed)
        else:
            load_checkpoint(self.model, source, is_checked=is_checked)
        _wait_for_copies(self.model)

    def _restore(self, cause: Exception) -> None:
        path = self.config.model_path
        if self._differ:
            raise EngineDead(f"new weights could not be loaded ({cause}), and the old ones were in no checkpoint")
        logger.error("New weights could not be loaded, so those of %s are loaded again: %s", path, cause)
        try:
            self.read_again()
        except Exception as error:
            raise EngineDead(
                f"new weights could not be loaded ({cause}), and those of {path} not again ({error})"
            ) from error

    def _check_model(self, config: ModelConfig) -> None:
        """Refuse what is no checkpoint of the same model; how long it may be used for is for the start to say."""
        if config.architecture != self.config.architecture:
            raise _other_model("architecture", config.architecture, self.config.architecture)
        if config.derived_context_len < self._context_len:
            raise _other_model("longest context", config.derived_context_len, f"{self._context_len} or more")
        if config.num_layers != self.config.num_layers:
            raise _other_model("num_layers", config.num_layers, self.config.num_layers)
        for each in fields(ModelFacts):
            if each.name != "derived_context_len":
                _check_equal(each.name, getattr(config, each.name), getattr(self.config, each.name))
        if config.implementation == "transformers":
            self._check_entries(config)
        if self.holds_codes and config.stored_quantization != self.config.stored_quantization:
            raise BadRequest(
                "model_path: this server holds the codes of a quantised checkpoint, and the other one is quantised in "
                "another way or not at all",
                param="model_path",
            )

    def _check_entries(self, config: ModelConfig) -> None:
        """Refuse another configuration of a model of transformers, which may follow any entry."""
        there, here = config.hf_config, self.config.hf_config
        for key in sorted((there.keys() | here.keys()) - _FREE_ENTRIES):
            if there.get(key) != here.get(key):
                raise _other_model(key, there.get(key), here.get(key))

    def _check_kv_scales(self, source: WeightSource) -> None:
        if self.kv_scales is not None and source.kv_scales() != self.kv_scales:
            raise BadRequest(
                "model_path: the other checkpoint has other scales for keys and values, which the KV cache was made "
                "with; start anew, or with --kv-cache-dtype auto",
                param="model_path",
            )


def _source_of(live: LiveWeights) -> WeightSource | None:
    """Open the checkpoint that weights are of once more."""
    return open_source(live.config, live.load_format, live.rank)


def _other_model(name: str, there: object, here: object) -> BadRequest:
    return BadRequest(
        f"model_path: the checkpoint is of another model: its {name} is {there}, and this server's is {here}",
        param="model_path",
    )


def _check_equal(name: str, there: Any, here: Any) -> None:
    """Refuse facts that differ, by the name of the first one that does."""
    if there == here:
        return
    if isinstance(here, tuple) and len(there) == len(here):
        for number, (one, other) in enumerate(zip(there, here, strict=True)):
            _check_equal(f"{name}[{number}]", one, other)
    elif is_dataclass(here) and type(there) is type(here):
        # Plain rotation does not depend on the number of positions.
        is_plain = isinstance(here, RopeParameters) and here.rope_type == "default"
        for each in fields(here):
            if not (is_plain and each.name in _POSITIONS):
                _check_equal(f"{name}.{each.name}", getattr(there, each.name), getattr(here, each.name))
    else:
        raise _other_model(name, there, here)


def state_of(source: WeightSource | None) -> FileStates:
    """What changes with the files of a checkpoint: trainers may write the next one in the same place."""
    files = [] if source is None else [(file, file.stat()) for file in source.files]
    return [(str(file), stat.st_ino, stat.st_size, stat.st_mtime_ns) for file, stat in files]


def _wait_for_copies(model: Model) -> None:
    device = next(model.parameters()).device
    if device.type == "cuda":
        torch.cuda.synchronize(device)
