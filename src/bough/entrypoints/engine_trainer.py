"""The methods of an engine that trainers call while it runs: other weights, pauses, ends of requests."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bough.config.engine_args import LoadFormat
from bough.entrypoints.engine_state import StateMethods
from bough.errors import BadRequest, RequestFailed
from bough.ipc.messages import CheckAction, ControlReply
from bough.managers.served_weights import (
    DEFAULT_GROUP,
    GroupBackend,
    TrainerGroup,
    UpdateOptions,
    UpdateOutcome,
    passing_file,
)
from bough.managers.tokenizer_manager import PauseRequest

if TYPE_CHECKING:
    import torch


class WeightUpdate(NamedTuple):
    """Outcome of an update, or of a group."""

    success: bool
    """True if it was done; else the old weights are being served, or the engine ends."""
    message: str
    """Description of what was done, or why it was not."""


class CheckpointUpdate(NamedTuple):
    """Outcome of an update from disk; the first two fields are those of :class:`WeightUpdate`."""

    success: bool
    message: str
    num_paused_requests: int
    """Requests that were paused meanwhile, and go on with the new weights."""


class TrainerMethods(StateMethods):
    """What :class:`~bough.entrypoints.engine.Engine` offers to trainers."""

    def flush_cache(self) -> ControlReply:
        """Forget all cached prefixes; ``success`` is false if requests are running."""
        return self._parts.loop.call(self._parts.manager.flush_cache())

    def abort_request(self, rid: str = "", abort_all: bool = False) -> None:
        """End every request whose id starts with ``rid``, or all of them; their callers get what there is so far."""
        self._parts.loop.run(lambda: self._parts.manager.abort_request(rid, abort_all))

    abort = abort_request

    def pause_generation(self, mode: PauseRequest = "abort") -> None:
        """Compute nothing until :meth:`continue_generation`; see :meth:`TokenizerManager.pause_generation`."""
        self._parts.loop.call(self._parts.manager.pause_generation(mode))

    def continue_generation(self) -> None:
        """Go on after :meth:`pause_generation`."""
        self._parts.loop.call(self._parts.manager.continue_generation())

    def update_weights_from_disk(
        self,
        model_path: str,
        load_format: LoadFormat | None = None,
        *,
        weight_version: str | None = None,
        abort_all_requests: bool = False,
        flush_cache: bool = True,
    ) -> CheckpointUpdate:
        """Serve another checkpoint of the same model; requests that come meanwhile wait.

        Args:
            model_path: local directory or file, or hub id.
            load_format: as at the start; by default the same, or ``auto`` if that was ``dummy`` or ``packed``.
            weight_version: name of the new weights; by default that of the old ones.
            abort_all_requests: end running requests instead of waiting for them.
            flush_cache: forget what the old weights have computed.

        Raises:
            BoughError: as :meth:`ServedWeights.update_from_disk`.
        """
        options = UpdateOptions(
            weight_version=weight_version, abort_all_requests=abort_all_requests, flush_cache=flush_cache
        )
        done = self._parts.loop.call(self._parts.manager.weights.update_from_disk(model_path, load_format, options))
        return CheckpointUpdate(done.success, done.message, done.num_paused_requests)

    def update_weights_from_tensor(
        self,
        named_tensors: Iterable[tuple[str, torch.Tensor]],
        load_format: None = None,
        flush_cache: bool = True,
        *,
        weight_version: str | None = None,
    ) -> WeightUpdate:
        """Take some weights from this process: names as in the checkpoint, and tensors on any device.

        Others stay as they are. Further arguments, and what is raised, as in :meth:`update_weights_from_disk`.

        Raises:
            BadRequest: if a name comes twice.
        """
        if load_format is not None:
            raise BadRequest(f"load_format must be None, got {load_format!r}", param="load_format")
        options = UpdateOptions(weight_version=weight_version, flush_cache=flush_cache)
        with written_tensors(named_tensors) as path:
            return self._done(self._parts.manager.weights.update_from_file(path, options))

    def begin_weight_update(self) -> WeightUpdate:
        """Have the weights that come from now on wait until :meth:`end_weight_update`; requests go on with the old.

        They stand still while weights are received: in a group, until the trainer has sent all of a call. Takes as much
        memory as the weights of the checkpoint. ``success`` is false where there is not so much.
        """
        return self._done(self._parts.manager.weights.begin_update())

    def end_weight_update(
        self,
        discard: bool = False,
        *,
        weight_version: str | None = None,
        abort_all_requests: bool = False,
        flush_cache: bool = True,
    ) -> WeightUpdate:
        """Write all weights that have come since :meth:`begin_weight_update` at the same time, or forget them.

        Further arguments as in :meth:`update_weights_from_disk`; those of the calls in between have no effect, except
        ``weight_version``. If the weights do not fit together, the old ones stay, and the new ones are forgotten.
        """
        options = UpdateOptions(
            weight_version=weight_version, abort_all_requests=abort_all_requests, flush_cache=flush_cache
        )
        return self._done(self._parts.manager.weights.end_update(options, discard=discard))

    def init_weights_update_group(
        self,
        master_address: str,
        master_port: int,
        rank_offset: int,
        world_size: int,
        group_name: str = DEFAULT_GROUP,
        backend: GroupBackend = "nccl",
    ) -> WeightUpdate:
        """Become part of a group in which a trainer is rank 0; see :class:`TrainerGroup`."""
        group = TrainerGroup(master_address, master_port, rank_offset, world_size, group_name, backend)
        return self._done(self._parts.manager.weights.join_group(group))

    def destroy_weights_update_group(self, group_name: str = DEFAULT_GROUP) -> WeightUpdate:
        """Leave such a group."""
        return self._done(self._parts.manager.weights.leave_group(group_name))

    def update_weights_from_distributed(
        self,
        names: Sequence[str],
        dtypes: Sequence[str | torch.dtype],
        shapes: Sequence[Sequence[int]],
        group_name: str = DEFAULT_GROUP,
        flush_cache: bool = True,
        load_format: None = None,
        *,
        weight_version: str | None = None,
    ) -> WeightUpdate:
        """Take some weights that a trainer broadcasts, in this order; see :meth:`ServedWeights.update_from_group`."""
        if load_format is not None:
            raise BadRequest(f"load_format must be None, got {load_format!r}", param="load_format")
        options = UpdateOptions(weight_version=weight_version, flush_cache=flush_cache)
        return self._done(
            self._parts.manager.weights.update_from_group(
                list(names), [str(each) for each in dtypes], [list(each) for each in shapes], group_name, options
            )
        )

    # The name that trainers for vLLM use; see :meth:`update_weight`.
    init_process_group = init_weights_update_group

    def update_weight(
        self,
        name: str,
        dtype: str | torch.dtype,
        shape: Sequence[int],
        empty_cache: bool = False,
        *,
        group_name: str = DEFAULT_GROUP,
    ) -> WeightUpdate:
        """Take one weight that a trainer broadcasts; the prefix cache is forgotten.

        ``empty_cache`` is without effect: device memory is set aside at the start.
        """
        return self.update_weights_from_distributed([name], [dtype], [shape], group_name)

    def update_weight_version(self, new_version: str, abort_all_requests: bool = True) -> None:
        """Call the weights by another name; see :meth:`ServedWeights.set_version`."""
        weights = self._parts.manager.weights
        self._parts.loop.call(weights.set_version(new_version, abort_all_requests=abort_all_requests))

    def check_weights(self, action: CheckAction) -> WeightUpdate:
        """Do one step of a check that updates reach every weight; see :meth:`ServedWeights.check`."""
        return self._done(self._parts.manager.weights.check(action))

    def get_weights_by_name(self, name: str, truncate_size: int = 100) -> Any:
        """The first rows of a weight, or numbers of a vector, as lists.

        Raises:
            BadRequest: if there is no such weight, or that is too much.
        """
        return self._parts.loop.call(self._parts.manager.weights.rows(name, truncate_size))

    def _done(self, update: Coroutine[Any, Any, UpdateOutcome]) -> WeightUpdate:
        outcome = self._parts.loop.call(update)
        return WeightUpdate(outcome.success, outcome.message)


@contextlib.contextmanager
def written_tensors(named_tensors: Iterable[tuple[str, torch.Tensor]]) -> Iterator[str]:
    """Yield the path of a file that has these tensors, for as long as it is needed; in memory where that has room.

    Raises:
        BadRequest: if a name comes twice.
        RequestFailed: if it cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    storages: set[int] = set()
    for name, tensor in named_tensors:
        if name in tensors:
            raise BadRequest(f"named_tensors: weight {name} is there twice", param="named_tensors")
        whole = tensor.detach().cpu().contiguous()
        # Files cannot have tensors that share memory. A copy takes twice as long as the file does.
        if whole.untyped_storage().data_ptr() in storages:
            whole = whole.clone()
        storages.add(whole.untyped_storage().data_ptr())
        tensors[name] = whole
    with passing_file(sum(tensor.nbytes for tensor in tensors.values())) as path:
        try:
            save_file(tensors, path)
        except SafetensorError as error:
            raise RequestFailed(f"the weights could not be handed over: {error}") from error
        del tensors
        yield path
