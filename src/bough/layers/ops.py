"""Operations that language models are made of: a block is written once, and is computed or recorded by a kind of these.

:class:`TorchOps` computes with tensors, :class:`~bough.layers.recorded_ops.RecordOps` records a native program. A model
passes values from one operation to the next and never looks into them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import nn

from bough.errors import ModelError
from bough.layers.attention.base import HeadNorms, RotatingBackend
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.rotary import RotaryEmbedding, apply_rotary

if TYPE_CHECKING:
    from bough.layers.embedding import LMHead, VocabEmbedding
    from bough.layers.forward_batch import ForwardBatch
    from bough.layers.linear import GatedLinear, MergedLinear, QKVLinear
    from bough.layers.moe.experts import Experts
    from bough.layers.moe.router import Router
    from bough.layers.norm import RMSNorm

Value = TypeVar("Value")
"""Rows of numbers, one for each token of a step: a tensor, or a buffer of a program."""

Rotation = tuple[Value, ...]
"""Angles of a step's tokens, from :meth:`Ops.rotation` for :meth:`Ops.attend`."""

NO_NORMS = HeadNorms()


class NotRecordable(ModelError):
    """The native program has no such operation, so torch has to compute the model."""


@dataclass(slots=True)
class Stream(Generic[Value]):
    """The residual stream ``[num_tokens, hidden_size]`` that blocks read and add to."""

    value: Value
    pending: Value | None = None
    """Still to be added to ``value``, which the next norm does on its way"""


class Ops(ABC, Generic[Value]):
    """One step of a model. ``T`` is its number of tokens."""

    @abstractmethod
    def embed(self, table: VocabEmbedding, scale: float = 1.0) -> Stream[Value]:
        """Begin the stream with the step's tokens, multiplied by ``scale``."""

    @abstractmethod
    def rotation(self, rotary: RotaryEmbedding) -> Rotation[Value]:
        """Compute the angles of the step's positions, which layers share."""

    @abstractmethod
    def norm(self, norm: RMSNorm, stream: Stream[Value]) -> Value:
        """Normalise the stream: ``[T, hidden_size]`` in the model's dtype."""

    @abstractmethod
    def add_normed(self, stream: Stream[Value], norm: RMSNorm, x: Value) -> None:
        """Add the norm of ``x`` ``[T, hidden_size]`` to the stream."""

    @abstractmethod
    def linear(self, layer: MergedLinear | QKVLinear, x: Value) -> Value:
        """Multiply ``x`` ``[T, in_features]`` by a matrix: ``[T, out_features]``."""

    @abstractmethod
    def gated(self, layer: GatedLinear, x: Value) -> Value:
        """Compute gates and values of ``x`` ``[T, in_features]``, and their product ``[T, out_features / 2]``."""

    @abstractmethod
    def attend(
        self, attention: RadixAttention, heads: Value, rotation: Rotation[Value] | None, norms: HeadNorms = NO_NORMS
    ) -> Value:
        """Normalise and rotate queries and keys, store keys and values, attend.

        Args:
            attention: numbers of heads, window and layer.
            heads: ``[T, (num_heads + 2 * num_kv_heads) * head_dim]``: queries, keys, values. Overwritten.
            rotation: of the step's tokens, of a head or its first dimensions; ``None``: nothing is rotated.
            norms: of single heads, if the family has them.

        Returns:
            ``[T, num_heads * head_dim]``
        """

    @abstractmethod
    def add_linear(self, stream: Stream[Value], layer: MergedLinear, x: Value) -> None:
        """Add the product of ``x`` ``[T, in_features]`` and a matrix to the stream."""

    @abstractmethod
    def add_experts(
        self,
        stream: Stream[Value],
        router: Router,
        experts: Experts,
        x: Value,
        shared: tuple[Value, Value] | None = None,
    ) -> None:
        """Add to the stream the weighted sum of the experts that ``router`` chooses for each token.

        Each token's experts are summed in ascending order of their numbers, whatever the other tokens are.

        Args:
            stream: gets the sums, ``[T, hidden_size]``.
            router: of the layer.
            experts: of the layer.
            x: ``[T, hidden_size]``
            shared: ``[T, hidden_size]`` of a network beside the experts, added as well, times the sigmoid of
                ``[T, 1]``.
        """

    @abstractmethod
    def finish(self, norm: RMSNorm, stream: Stream[Value], head: LMHead | None) -> Value:
        """End the model with its last norm.

        Args:
            norm: the last one.
            stream: of the last block.
            head: computes logits, of rows that are chosen elsewhere; ``None`` if the model has none.

        Returns:
            Hidden states, ``[T, hidden_size]``.
        """

    @abstractmethod
    def compute(self, function: Callable[..., torch.Tensor], *values: Value) -> Value:
        """Compute with torch what no other operation does: ``function(*values)``, ``[T, any width]``.

        Raises:
            NotRecordable: if a native program is recorded, which has no such operation.
        """

    @abstractmethod
    def forward(self, model: nn.Module) -> Value:
        """Compute a model, or a body, that another package brings with nothing but a ``forward`` for torch.

        Raises:
            NotRecordable: as :meth:`compute`.
        """


class TorchOps(Ops[torch.Tensor]):
    """Computes at once, with torch and Triton's kernels.

    Args:
        batch: the step.
    """

    def __init__(self, batch: ForwardBatch) -> None:
        self._batch = batch

    def embed(self, table: VocabEmbedding, scale: float = 1.0) -> Stream[torch.Tensor]:
        rows: torch.Tensor = table(self._batch.input_ids)
        return Stream(rows if scale == 1.0 else rows.mul_(scale))

    def rotation(self, rotary: RotaryEmbedding) -> Rotation[torch.Tensor]:
        return rotary(self._batch.positions)  # type: ignore[no-any-return]

    def norm(self, norm: RMSNorm, stream: Stream[torch.Tensor]) -> torch.Tensor:
        pending, stream.pending = stream.pending, None
        return norm.after_adding(stream.value, pending)

    def add_normed(self, stream: Stream[torch.Tensor], norm: RMSNorm, x: torch.Tensor) -> None:
        self._flush(stream)
        stream.pending = norm.after_adding(x, None)

    def linear(self, layer: MergedLinear | QKVLinear, x: torch.Tensor) -> torch.Tensor:
        return layer(x)  # type: ignore[no-any-return]

    def gated(self, layer: GatedLinear, x: torch.Tensor) -> torch.Tensor:
        return layer(x)  # type: ignore[no-any-return]

    def attend(
        self,
        attention: RadixAttention,
        heads: torch.Tensor,
        rotation: Rotation[torch.Tensor] | None,
        norms: HeadNorms = NO_NORMS,
    ) -> torch.Tensor:
        batch, backend = self._batch, self._batch.attn_backend
        heads = heads.view(len(heads), -1, attention.head_dim)
        keys, values = attention.num_heads, attention.num_heads + attention.num_kv_heads
        rotates_all = rotation is not None and rotation[0].shape[-1] == attention.head_dim
        if isinstance(backend, RotatingBackend) and rotates_all and attention.query_scale is None:
            return backend.rotate_and_attend(heads, _pair(rotation), norms, attention, batch)
        rotated = norms.apply(heads[:, :values], keys)
        if rotation is not None:
            rotated = apply_rotary(rotated, _pair(rotation))
        q, k, v = rotated[:, :keys], rotated[:, keys:], heads[:, values:]
        if attention.query_scale is not None:
            beta, period = attention.query_scale
            factors = 1.0 + beta * torch.log1p((batch.positions // period).float())  # [num_tokens]
            q = q * factors[:, None, None].to(q.dtype)
        if isinstance(backend, RotatingBackend):  # its kernels take whole tensors
            q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        return backend.forward(q, k, v, attention, batch)

    def add_linear(self, stream: Stream[torch.Tensor], layer: MergedLinear, x: torch.Tensor) -> None:
        self._flush(stream)
        stream.pending = layer(x)

    def add_experts(
        self,
        stream: Stream[torch.Tensor],
        router: Router,
        experts: Experts,
        x: torch.Tensor,
        shared: tuple[torch.Tensor, torch.Tensor] | None = None,
    ) -> None:
        self._flush(stream)
        routed = router.choose(router(x))
        experts.take_note(routed, self._batch.out_cache_loc)
        results: torch.Tensor = experts(x, routed)
        if shared is not None:
            beside, gate = shared
            results = results + (beside * gate.sigmoid()).to(results.dtype)
        stream.pending = results

    def finish(self, norm: RMSNorm, stream: Stream[torch.Tensor], head: LMHead | None) -> torch.Tensor:
        return self.norm(norm, stream)

    def compute(self, function: Callable[..., torch.Tensor], *values: torch.Tensor) -> torch.Tensor:
        return function(*values)

    def forward(self, model: nn.Module) -> torch.Tensor:
        return model(self._batch)  # type: ignore[no-any-return]

    def _flush(self, stream: Stream[torch.Tensor]) -> None:
        if stream.pending is not None:
            stream.value.add_(stream.pending)
            stream.pending = None


def _pair(rotation: Rotation[torch.Tensor] | None) -> tuple[torch.Tensor, torch.Tensor]:
    assert rotation is not None
    cos, signed_sin = rotation
    return cos, signed_sin
