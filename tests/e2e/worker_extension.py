"""Classes of an operator that are mixed into workers in tests."""

from __future__ import annotations

from typing import Any

import torch
from safetensors.torch import load_file

from bough.model_executor.worker_face import WorkerFace


class Extension:
    """Expects of its worker what trainers' extensions expect."""

    def describe(self) -> tuple[Any, ...]:
        return self.rank, torch.distributed.get_rank(), self.device, self.model_config.dtype  # type: ignore[attr-defined]

    def echo(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    def load(self, path: str, names: list[str] | None = None, *, fails_on: int | None = None) -> int:
        """Load one weight after the other, from one piece of memory that is used again."""
        weights = {name: value for name, value in load_file(path).items() if names is None or name in names}
        buffer = torch.empty(max(each.numel() for each in weights.values()), dtype=torch.bfloat16)
        for name, value in weights.items():
            tensor = buffer[: value.numel()].view(value.shape).copy_(value)
            self.model_runner.model.load_weights(weights=[(name, tensor)])  # type: ignore[attr-defined]
            buffer.fill_(float("nan"))
        if fails_on == self.rank:  # type: ignore[attr-defined]
            raise RuntimeError("the trainer is gone")
        return len(weights)

    def load_on_one(self, path: str) -> None:
        if self.rank == 0:  # type: ignore[attr-defined]
            self.load(path)

    def load_one_each(self, path: str) -> None:
        """Load a weight that no other rank does."""
        self.load(path, sorted(load_file(path))[self.rank :][:1])  # type: ignore[attr-defined]

    def load_misshapen(self, name: str, rank: int) -> None:
        shape = (3,) if self.rank == rank else (256,)  # type: ignore[attr-defined]
        self.model_runner.model.load_weights(weights=[(name, torch.zeros(shape))])  # type: ignore[attr-defined]

    def outputs(self) -> Any:
        return object()


class Clashing:
    """Has a name that workers have."""

    def load_model(self) -> None:
        pass

    def vocab_size(self) -> int:
        return 1


class OwnWorker(WorkerFace):
    """A worker by the older way."""

    def pages(self) -> int:
        return self.determine_num_available_blocks()[0]
