"""A worker extension as trainers write it for vLLM: it joins a group, and takes one weight at a time."""

from __future__ import annotations

from typing import Any

import torch


class Trained:
    """Has what OpenRLHF's extension has, on whatever device the worker is."""

    def init_process_group(self, host: str, port: int, rank_offset: int, world_size: int) -> int:
        from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
        from vllm.distributed.utils import StatelessProcessGroup

        rank = torch.distributed.get_rank() + rank_offset
        group = StatelessProcessGroup.create(host=host, port=port, rank=rank, world_size=world_size)
        self._communicator = PyNcclCommunicator(group, device=self.device)  # type: ignore[attr-defined]
        return rank

    def meet(self) -> None:
        self._communicator.group.barrier()

    def update_weight(self, name: str, dtype: torch.dtype, shape: Any, empty_cache: bool = False) -> None:
        assert dtype == self.model_config.dtype, f"mismatch: {dtype}"  # type: ignore[attr-defined]
        weight = torch.empty(shape, dtype=dtype, device=self.device)  # type: ignore[attr-defined]
        self._communicator.broadcast(weight, src=0, stream=None)
        self.model_runner.model.load_weights(weights=[(name, weight)])  # type: ignore[attr-defined]
        del weight
