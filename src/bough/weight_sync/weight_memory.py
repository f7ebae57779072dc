"""Memory of a model's weights, which is given back while the engine sleeps, and what they come back from."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch

from bough.config.engine_args import EngineArgs, Quantization
from bough.config.packed_manifest import PackedSource
from bough.config.user_paths import user_path
from bough.errors import BoughError, RequestFailed
from bough.ipc.messages import WeightsAsleep
from bough.kernels.host_memory import give_back
from bough.kernels.packed_weights import PackedWeights
from bough.kernels.shared_memory import SharedMapping
from bough.model_loader.loader import load_checkpoint
from bough.model_loader.packed_state import PackedState, save_packed_state
from bough.model_loader.sharded_state import ShardedState, save_sharded_state
from bough.models.base import Model
from bough.weight_sync.live_weights import LiveWeights


class Pieces(Protocol):
    """The pieces of memory in which the parameters of a model lie."""

    def give_back(self) -> None:
        """Give them back to the system, with what they hold; raises ``OSError``."""

    def take_again(self) -> None:
        """Have the system commit them again; raises :class:`BoughError` or ``MemoryError`` if it does not."""


class WeightMemory:
    """The memory of the weights :attr:`live`, in ``mapping`` where several schedulers have them together.

    ``args.sleep_directory`` is where weights that are of no checkpoint are kept meanwhile.
    """

    def __init__(self, live: LiveWeights, mapping: SharedMapping | None, args: EngineArgs) -> None:
        self.live = live
        self._pieces = _pieces_of(live.model, mapping)
        self._quantization, self._directory = args.quantization, args.sleep_directory
        self._restore: Callable[[], None] | None = None

    @property
    def num_bytes(self) -> int:
        """Memory that :meth:`resume` takes, in bytes."""
        if self._restore is None or self.live.is_mapped:
            return 0
        return sum(parameter.nbytes for parameter in self.live.model.parameters())

    def release(self, what: WeightsAsleep) -> None:
        """Give the memory back. Nothing may be computed until :meth:`resume`; twice does nothing.

        Args:
            what: ``keep`` weights that a trainer has sent, in the sleep directory, or else where they are; ``reread``
                those of a checkpoint, and keep others in the sleep directory or not at all; ``drop`` all. Those of a
                checkpoint are read from it again unless they are dropped.

        Raises:
            RequestFailed: if they cannot be put aside. All is as before then.
        """
        live = self.live
        if live.is_asleep:
            return
        try:
            self._restore = self._way_back(what)
            if self._restore is not None and not live.is_mapped:
                self._pieces.give_back()
        except OSError as error:
            raise RequestFailed(f"the weights cannot be put aside: {error.strerror or error}") from None
        live.is_asleep = True

    def resume(self) -> None:
        """Take the memory again, with the weights that were there unless they were dropped; twice does nothing.

        Raises:
            RequestFailed: if they cannot be had. The memory is given back again then.
        """
        live = self.live
        if not live.is_asleep:
            return
        if self._restore is not None:
            try:
                if not live.is_mapped:
                    self._pieces.take_again()
                self._restore()
            except (BoughError, OSError, MemoryError, torch.OutOfMemoryError) as error:
                if not live.is_mapped:
                    self._pieces.give_back()
                raise RequestFailed(f"the weights of {live.config.model_path} cannot be had again: {error}") from None
        self._restore = None
        live.is_asleep = False

    def _way_back(self, what: WeightsAsleep) -> Callable[[], None] | None:
        """Return what brings the weights back; ``None`` if they stay where they are."""
        live = self.live
        if what == "drop":
            return live.discard
        if next(live.model.parameters()).device.type == "cuda":
            return _HostCopies(live.model).restore
        if live.are_of_checkpoint():
            return live.read_again
        if live.is_mapped:
            return _nothing if what == "keep" or self._directory is not None else live.discard
        if self._directory is not None:
            return _KeptOnDisk(live, self._quantization, self._directory).restore
        return None if what == "keep" else live.discard


class _KeptOnDisk:
    """Weights in a directory of their own, which is removed with this object."""

    def __init__(self, live: LiveWeights, quantization: Quantization, directory: str) -> None:
        """Write them.

        Raises:
            OSError: if that cannot be done.
        """
        parent = user_path(directory)
        parent.mkdir(parents=True, exist_ok=True)
        self._model, self._rank = live.model, live.rank
        self._path = Path(tempfile.mkdtemp(prefix="bough-asleep-", dir=parent))
        weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        self._is_packed = any(hasattr(module, "packed") for module in live.model.modules())
        if not self._is_packed:
            save_sharded_state(self._model, self._path, rank=self._rank, pattern=None, max_bytes=None)
            return
        save_packed_state(
            self._model,
            self._path,
            rank=self._rank,
            architecture=live.config.architecture,
            dtype=live.config.dtype,
            quantization=quantization,
            holds_codes=live.holds_codes,
            source=PackedSource(files=[], digest=""),
        )

    def restore(self) -> None:
        """Read them again; raises :class:`StartupError`."""
        path, rank = self._path, self._rank
        load_checkpoint(self._model, PackedState(path, rank) if self._is_packed else ShardedState(path, rank))


class _HostCopies:
    """Weights of a device in the host's memory."""

    def __init__(self, model: Model) -> None:
        self._copies = [(each, each.detach().to("cpu", copy=True)) for each in model.parameters()]

    def restore(self) -> None:
        """Copy them back, at whatever addresses they have now."""
        for parameter, copy in self._copies:
            parameter.data.copy_(copy)


class _HostPieces(Pieces):
    """Private memory of the host; addresses stay."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def give_back(self) -> None:
        for parameter in _one_of_each_storage(self._model):
            give_back(parameter)

    def take_again(self) -> None:
        for module in self._model.modules():
            packed: PackedWeights | None = getattr(module, "packed", None)
            if packed is not None:
                packed.place()


class _SharedPieces(Pieces):
    """Memory that all schedulers of a machine map, given back for all at once; addresses stay."""

    def __init__(self, mapping: SharedMapping) -> None:
        self._mapping = mapping

    def give_back(self) -> None:
        self._mapping.give_back()

    def take_again(self) -> None:
        self._mapping.take_again()


class _DevicePieces(Pieces):
    """Memory of a CUDA device, which may have other addresses afterwards: recorded steps have to be recorded again."""

    def __init__(self, model: Model) -> None:
        self._storages = [each.untyped_storage() for each in _one_of_each_storage(model)]
        self._sizes = [each.nbytes() for each in self._storages]

    def give_back(self) -> None:
        for storage in self._storages:
            storage.resize_(0)
        torch.cuda.empty_cache()

    def take_again(self) -> None:
        for storage, size in zip(self._storages, self._sizes, strict=True):
            storage.resize_(size)


def _pieces_of(model: Model, mapping: SharedMapping | None) -> Pieces:
    if mapping is not None:
        return _SharedPieces(mapping)
    is_on_gpu = next(model.parameters()).device.type == "cuda"
    return _DevicePieces(model) if is_on_gpu else _HostPieces(model)


def _one_of_each_storage(model: Model) -> list[torch.Tensor]:
    return list({each.untyped_storage().data_ptr(): each for each in model.parameters()}.values())


def _nothing() -> None:
    """Restore what another scheduler restores."""
