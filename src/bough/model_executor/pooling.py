"""The end of a step of an embedding model: from hidden states to the vectors that are wanted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from bough.config.model_config import ModelConfig
from bough.layers.pooler import ChunkPooler, shorten
from bough.models.pooled import PooledCausalLM
from bough.step_plan import RowEmbedding, RowPooling, StepPlan


class CausalPooling:
    """Pools the prompts of a language model, which come in chunks."""

    def __init__(
        self, config: ModelConfig, model: PooledCausalLM, max_running_requests: int, device: torch.device
    ) -> None:
        assert config.pooling is not None, "the model pools"
        self._model = model
        self._normalize = config.pooling.normalize
        self._chunks = ChunkPooler(config.pooling.method, max_running_requests, config.hidden_size, device)
        self._device = device

    def pool(self, plan: StepPlan, hidden_states: torch.Tensor) -> tuple[tuple[RowEmbedding, ...], list[int]]:
        """Take the states of a step in, ``[T, hidden_size]``; all its rows are pooled, or none (a probe).

        Returns:
            The vectors of the sequences that end here, and the rows whose vector would not be finite.
        """
        if not plan.pooling:
            return (), []
        pooled = self._chunks.add(
            hidden_states,
            self._on_device(plan.extend_lens),
            self._on_device(plan.req_slots),
            self._on_device(plan.prefix_lens),
        )
        ending = [each for each in plan.pooling if each.ends]
        if not ending:
            return (), []
        rows = self._on_device(np.array([each.row for each in ending]))
        return finish(ending, self._model.project(pooled.index_select(0, rows)), normalize=self._normalize)

    def _on_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array).to(self._device, torch.int64)


def finish(
    ending: Sequence[RowPooling], vectors: torch.Tensor, *, normalize: bool
) -> tuple[tuple[RowEmbedding, ...], list[int]]:
    """Cut vectors, float32 ``[len(ending), dim]``, to the wanted length, scale them and bring them to the host.

    Returns:
        The vectors, and the rows whose vector is not finite.
    """
    by_size: dict[int | None, np.ndarray] = {
        size: shorten(vectors, size, normalize=normalize).cpu().numpy() for size in {each.dimensions for each in ending}
    }
    embeddings: list[RowEmbedding] = []
    failed: list[int] = []
    for index, each in enumerate(ending):
        vector = by_size[each.dimensions][index]
        if np.isfinite(vector).all():
            embeddings.append(RowEmbedding(each.row, vector))
        else:
            failed.append(each.row)
    return tuple(embeddings), failed
