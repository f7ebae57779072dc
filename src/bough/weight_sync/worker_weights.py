"""How a worker gets other weights, from wherever they are."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from bough.config.engine_args import LoadFormat
from bough.config.model_config import ModelConfig
from bough.config.packed_manifest import SavedForm
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, RequestFailed
from bough.ipc.messages import CheckAction
from bough.model_loader.packed_state import save_packed_state
from bough.model_loader.sharded_state import save_sharded_state
from bough.model_loader.tensorizer_state import save_tensorizer_state
from bough.models.registry import complete_config
from bough.weight_sync.change import Change
from bough.weight_sync.live_weights import LiveWeights
from bough.weight_sync.staged_weights import StagedWeights
from bough.weight_sync.weight_check import WeightCheck
from bough.weight_sync.weight_groups import WeightGroups, empty_tensors


class WorkerWeights:
    """The weights of a worker. They may be changed while no step is in flight, and by one call at a time.

    Attributes:
        available: returns the bytes of memory of a device that can be taken now.
        loaded: what code of the operator has loaded in a call that has not ended on all workers.
        staged: what has come since :meth:`begin_update`; ``None`` if updates are written as they come.
    """

    def __init__(
        self,
        server_args: ServerArgs,
        live: LiveWeights,
        device: torch.device,
        available: Callable[[torch.device], int] = lambda device: sys.maxsize,
    ) -> None:
        self._server_args = server_args
        self._live, self._device = live, device
        self.available = available
        self._check = WeightCheck(live)
        self.groups = WeightGroups(device)
        self.loaded = StagedWeights(live, available)
        self.staged: StagedWeights | None = None

    def prepare_disk(self, model_path: str, load_format: LoadFormat) -> Change:
        """Check another checkpoint of the same model, a local directory or file, as
        :meth:`LiveWeights.prepare_replacement` does.
        """
        self.check_not_begun()
        options = dataclasses.replace(self._server_args, model_path=model_path, load_format=load_format)
        return self._live.prepare_replacement(complete_config(ModelConfig.from_args(options)), load_format)

    def prepare_file(self, path: str) -> Change:
        """Check some weights, those of a safetensors file, as :meth:`LiveWeights.prepare_update` does."""
        try:
            with safe_open(Path(path), "pt") as file:
                weights = [(name, file.get_tensor(name)) for name in file.keys()]  # noqa: SIM118 (not a mapping)
            return self._prepare_update(weights)
        except SafetensorError as error:
            message = f"the tensors are not in safetensors format: {error}"
        except FileNotFoundError:
            message = "tensors come in a file of the server's machine, and a rank is on another: send them in a group"
        except BadRequest as error:
            message = error.message
        raise BadRequest(message, param="serialized_named_tensors[0]")

    def prepare_group(
        self, group: str, names: Sequence[str], dtypes: Sequence[str], shapes: Sequence[Sequence[int]]
    ) -> Change:
        """Receive some weights that a trainer broadcasts (:meth:`WeightGroups.receive`), and check them as
        :meth:`LiveWeights.prepare_update` does.

        Raises:
            BoughError: also if names, types or shapes do not fit, before anything is received.
        """
        for param, given in (("dtypes", dtypes), ("shapes", shapes)):
            if len(given) != len(names):
                raise BadRequest(
                    f"{param} must have as many elements as names, {len(names)}, got {len(given)}", param=param
                )
        expected = empty_tensors(dtypes, shapes, torch.device("meta"))
        self._live.check(list(zip(names, expected, strict=True)))
        return self._prepare_update(self.groups.receive(group, names, dtypes, shapes))

    def load_weights(self, weights: Iterable[tuple[str, torch.Tensor]]) -> set[str]:
        """Take some weights from code of the operator; they are written when its call has ended on all workers.

        Returns:
            Their names.

        Raises:
            BoughError: as :meth:`LiveWeights.update_weights`, and if there is no room for copies.
        """
        copies = self.loaded.copies(weights)
        self._live.check(copies)
        self.loaded.add(copies)
        return {name for name, _ in copies}

    def prepare_loaded(self) -> Change:
        """Look at what waits in :attr:`loaded`, as :meth:`LiveWeights.prepare_update` does; none waits any more."""
        return self._prepare_update(self.loaded.take(), are_copies=True)

    def drop_loaded(self) -> None:
        """Forget what waits in :attr:`loaded`."""
        self.loaded.clear()

    def prepare_check(self, action: CheckAction) -> Change:
        """Do what may fail of a step of the check that updates reach every weight; see :meth:`WeightCheck.prepare`."""
        return self._check.prepare(action)

    def begin_update(self) -> None:
        """Keep copies of the weights that come from now on, until :meth:`prepare_end`.

        Raises:
            BadRequest: if an update has begun already, or the weights are asleep.
            RequestFailed: (503) if there is no memory for a second copy of the weights.
        """
        self.check_not_begun()
        self._live.check_awake()
        staged = StagedWeights(self._live, self.available)
        if not self._live.is_mapped:
            staged.check_room(self._live.model.checkpoint_bytes, self._device)
        self.staged = staged

    def check_not_begun(self) -> None:
        """Raise :class:`BadRequest` if an update has begun."""
        if self.staged is not None:
            raise BadRequest("an update has begun already; end it first")

    def check_begun(self) -> None:
        """Raise :class:`BadRequest` unless an update has begun, and while the weights are asleep."""
        if self.staged is None:
            raise BadRequest("no update has begun")
        self._live.check_awake()

    def prepare_end(self) -> Change:
        """Look at all that has come since :meth:`begin_update`, as :meth:`LiveWeights.prepare_update` does.

        Nothing waits any more, and what does not fit is forgotten, but if :meth:`check_begun` refuses, all stays.
        """
        self.check_begun()
        staged, self.staged = self.staged, None
        assert staged is not None
        return self._live.prepare_update(staged.take())

    def unstage(self, call: str) -> None:
        """Forget what a call has added to an update, since it has failed elsewhere; nothing unless it came last."""
        if self.staged is not None and self.staged.call == call:
            self.undo_staged()

    def undo_staged(self) -> None:
        """Forget what was added to an update last."""
        if self.staged is not None:
            self.staged.undo()

    def abandon_update(self) -> None:
        """Forget what has come since :meth:`begin_update`; nothing if no update has begun."""
        self.staged = None

    def _prepare_update(self, weights: Sequence[tuple[str, torch.Tensor]], *, are_copies: bool = False) -> Change:
        """Look at weights, and return what writes them, or keeps copies where an update has begun.

        Copies are made here, since they may fail, and what is returned must not.
        """
        staged = self.staged
        if staged is None:
            return self._live.prepare_update(weights)
        self._live.check(weights)
        copies = weights if are_copies else staged.copies(weights)
        return Change(lambda: staged.add(copies))

    @property
    def num_missing(self) -> int:
        """Weights that were discarded and have not been sent since."""
        return len(self._live.missing)

    def save(self, form: SavedForm, directory: str, *, pattern: str | None, max_bytes: int | None) -> None:
        """Write the files of all ranks of a saved state into a directory; raises as :meth:`save_part`."""
        self.save_part(form, directory, pattern=pattern, max_bytes=max_bytes)

    def save_part(self, form: SavedForm, directory: str, *, pattern: str | None, max_bytes: int | None) -> int:
        """Write this rank's files of a saved state into a directory; returns the bytes of its weights.

        Raises:
            BadRequest: if the weights cannot be had in this form.
            RequestFailed: if they cannot be written.
        """
        live, quantization, path = self._live, self._server_args.quantization, Path(directory)
        live.check_awake()
        try:
            if form == "packed":
                return save_packed_state(
                    live.model,
                    path,
                    rank=live.rank,
                    architecture=live.config.architecture,
                    dtype=live.config.dtype,
                    quantization=quantization,
                    holds_codes=live.holds_codes,
                    source=live.source(),
                )
            if quantization != "none" or live.config.stored_quantization is not None:
                raise BadRequest(
                    "the weights are quantised, and this form has only what they stand for; use save_packed_state",
                    code="unsupported_by_model",
                )
            if form == "tensorizer":
                return save_tensorizer_state(live.model, path, rank=live.rank)
            return save_sharded_state(live.model, path, rank=live.rank, pattern=pattern, max_bytes=max_bytes)
        except OSError as error:
            raise RequestFailed(f"the weights cannot be written: {error.strerror or error}") from None

    def rows(self, name: str, count: int) -> Any:
        """See :meth:`LiveWeights.rows`."""
        return self._live.rows(name, count)
