"""Parameters of requests to models that make vectors, as vLLM has them."""

from __future__ import annotations

import copy
from dataclasses import dataclass


@dataclass
class PoolingParams:
    """Parameters of a request for a vector, with vLLM's names and defaults."""

    use_activation: bool | None = None
    """Whether class scores become probabilities, or one score a relevance; by default they do. Embeddings are scaled to
    length 1 if the checkpoint says so, and another wish is refused."""
    dimensions: int | None = None
    """How many numbers of the embedding to return, for models trained for that (Matryoshka)."""

    def clone(self) -> PoolingParams:
        """Return a copy."""
        return copy.copy(self)
