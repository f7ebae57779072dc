"""Parameters of requests to models that make vectors, as vLLM has them."""

from __future__ import annotations

import copy
from dataclasses import dataclass


@dataclass
class PoolingParams:
    """Parameters of a request for a vector, with vLLM's names and defaults."""

    use_activation: bool | None = None
    """Turn class scores into probabilities, or a single score into a relevance; true by default. Embeddings are scaled
    to length 1 if the checkpoint says so, and a value that contradicts it is refused."""
    dimensions: int | None = None
    """Number of elements of the embedding to return, for models trained for that (Matryoshka)."""

    def clone(self) -> PoolingParams:
        """Return a copy."""
        return copy.copy(self)
