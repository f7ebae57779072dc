"""Collectives of tensors between processes: torch's NCCL on CUDA devices, its gloo on CPUs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from vllm.distributed.utils import StatelessProcessGroup

_dist: Any = dist
"""Backends have no types there."""

_NCCL_PATIENCE = 4
"""How many times longer NCCL waits for the others: when it runs out of time, it ends the process."""


class PyNcclCommunicator:
    """Collectives of one process, on one device.

    Args:
        group: the processes.
        device: of all tensors; a number is a CUDA device.
        library_path: without effect: torch's NCCL is used.

    Attributes:
        disabled: true in a group of one, where there is nothing to do.
    """

    def __init__(
        self, group: StatelessProcessGroup, device: int | str | torch.device, library_path: str | None = None
    ) -> None:
        self.group = group
        self.rank, self.world_size = group.rank, group.world_size
        self.device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        self.disabled = self.world_size == 1
        self.available = not self.disabled
        self._backend = None if self.disabled else self._make_backend()

    def _make_backend(self) -> Any:
        store = _dist.PrefixStore("tensors", self.group.store)
        if self.device.type == "cuda":
            options = _dist.ProcessGroupNCCL.Options()
            options._timeout = timedelta(seconds=self.group.timeout * _NCCL_PATIENCE)
            with torch.cuda.device(self.device):
                return _dist.ProcessGroupNCCL(store, self.rank, self.world_size, options)
        patience = timedelta(seconds=self.group.timeout)
        return _dist.ProcessGroupGloo(store, self.rank, self.world_size, patience)

    def broadcast(self, tensor: torch.Tensor, src: int, stream: Any = None) -> None:
        """Fill a tensor with that of rank ``src``."""
        options = _dist.BroadcastOptions()
        options.rootRank, options.rootTensor = src, 0
        self._do(stream, lambda backend: backend.broadcast([self._checked(tensor)], options))

    def all_reduce(
        self,
        in_tensor: torch.Tensor,
        out_tensor: torch.Tensor | None = None,
        op: Any = dist.ReduceOp.SUM,
        stream: Any = None,
    ) -> torch.Tensor:
        """Return the sum, or another reduction, of what all ranks have."""
        out = in_tensor.clone() if out_tensor is None else out_tensor.copy_(in_tensor)
        options = _dist.AllreduceOptions()
        options.reduceOp = op
        self._do(stream, lambda backend: backend.allreduce([self._checked(out)], options))
        return out

    def all_gather(self, output_tensor: torch.Tensor, input_tensor: torch.Tensor, stream: Any = None) -> None:
        """Fill a tensor with those of all ranks, one after the other along the first dimension."""
        parts = list(output_tensor.chunk(self.world_size))
        if self.disabled:
            output_tensor.copy_(input_tensor)
        self._do(stream, lambda backend: backend.allgather([parts], [self._checked(input_tensor)]))

    def send(self, tensor: torch.Tensor, dst: int, stream: Any = None) -> None:
        """Send a tensor to one rank."""
        self._do(stream, lambda backend: backend.send([self._checked(tensor)], dst, 0))

    def recv(self, tensor: torch.Tensor, src: int, stream: Any = None) -> None:
        """Fill a tensor with what one rank sends."""
        self._do(stream, lambda backend: backend.recv([self._checked(tensor)], src, 0))

    def _checked(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device != self.device:
            raise ValueError(f"the tensor is on {tensor.device}, and the group's are on {self.device}")
        return tensor

    def _do(self, stream: Any, collective: Any) -> None:
        """Carry a collective out; on a CUDA device the stream waits for it, and this process does not."""
        if self.disabled:
            return
        if self.device.type == "cuda":
            with torch.cuda.device(self.device), torch.cuda.stream(stream):  # the current one where it is None
                collective(self._backend).wait()
        else:
            collective(self._backend).wait()
