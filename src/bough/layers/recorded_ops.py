"""Operations of models, recorded as a native program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

from bough.config.sharding import Span
from bough.kernels.buffers import Buffer, Columns
from bough.kernels.program import ExpertMatrices, NormWeight, Program
from bough.kernels.structures import ExpertScores, KVLayer, RoutingKind
from bough.layers.activation import NATIVE_GATES
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import GatedLinear, MergedLinear, QKVLinear
from bough.layers.linear_method import TORCH, packed_matrix
from bough.layers.moe.router import PreciseLinear
from bough.layers.ops import NO_NORMS, NotRecordable, Ops, Rotation, Stream

if TYPE_CHECKING:
    from bough.config.model_facts import RoutingFacts
    from bough.layers.attention.base import HeadNorms
    from bough.layers.attention.radix_attention import RadixAttention
    from bough.layers.moe.experts import Experts
    from bough.layers.moe.router import Router
    from bough.layers.norm import RMSNorm
    from bough.layers.rotary import RotaryEmbedding


class RecordOps(Ops[Buffer]):
    """Records a model with packed matrices. The stream and all sums are float32.

    Reads addresses and sizes only, so that an outline without memory can be recorded, too.

    Args:
        program: gets the calls.
        kv_layer: memory of a layer's keys and values.
    """

    def __init__(self, program: Program, kv_layer: Callable[[int], KVLayer]) -> None:
        self._program, self._kv_layer = program, kv_layer

    def embed(self, table: VocabEmbedding, scale: float = 1.0) -> Stream[Buffer]:
        first = table.rows.start
        if table.method is TORCH:
            return Stream(self._program.embed(table.get_parameter("weight"), scale, first))
        return Stream(self._program.embed_packed(packed_matrix(table), scale, first))

    def rotation(self, rotary: RotaryEmbedding) -> Rotation[Buffer]:
        return (self._program.rotary_table(rotary.inv_freq, rotary.attention_scaling),)

    def norm(self, norm: RMSNorm, stream: Stream[Buffer]) -> Buffer:
        return self._program.rms_norm(stream.value, _weight(norm))

    def add_normed(self, stream: Stream[Buffer], norm: RMSNorm, x: Buffer) -> None:
        self._program.rms_norm_add(x, _weight(norm), stream.value)

    def linear(self, layer: MergedLinear | QKVLinear, x: Buffer) -> Buffer:
        """Multiply by a matrix; in float32."""
        if isinstance(layer, QKVLinear):
            return self._program.linear(x, [packed_matrix(matrix) for matrix in layer.matrices], is_local=True)
        if isinstance(layer, PreciseLinear):  # small, and each rank has all of it
            return self._program.linear(x, [packed_matrix(layer)], is_local=True, role="precise")
        return self._program.linear(x, [packed_matrix(layer)], _outputs(layer))

    def gated(self, layer: GatedLinear, x: Buffer) -> Buffer:
        return self._program.linear_gated(x, packed_matrix(layer), NATIVE_GATES[layer.gate], _outputs(layer))

    def attend(
        self, attention: RadixAttention, heads: Buffer, rotation: Rotation[Buffer] | None, norms: HeadNorms = NO_NORMS
    ) -> Buffer:
        if attention.logit_cap is not None:
            raise NotRecordable("the native program has no soft-caps")
        if attention.sinks is not None and attention.sinks.dtype != torch.float32:
            raise NotRecordable(f"the native program takes float32 sinks, not {attention.sinks.dtype}")
        kv = self._kv_layer(attention.layer_id)
        self._program.rotate_and_store(
            heads,
            None if rotation is None else rotation[0],
            kv,
            num_heads=attention.num_heads,
            num_kv_heads=attention.num_kv_heads,
            q_norm=norms.q_weight,
            k_norm=norms.k_weight,
            eps=norms.eps,
            norm_offset=norms.offset,
            query_scale=attention.query_scale or (0.0, 1),
        )
        outputs = _columns(attention.queries.times(attention.head_dim))
        return self._program.attend(heads, kv, attention.shape, outputs, attention.sinks)

    def add_linear(self, stream: Stream[Buffer], layer: MergedLinear, x: Buffer) -> None:
        self._program.linear_add(x, packed_matrix(layer), stream.value, _outputs(layer))

    def add_experts(
        self,
        stream: Stream[Buffer],
        router: Router,
        experts: Experts,
        x: Buffer,
        shared: tuple[Buffer, Buffer] | None = None,
    ) -> None:
        products = self.linear(router, x)
        matrices = expert_matrices(router, experts)
        self._program.add_experts(x, products, matrices, stream.value, NATIVE_GATES[experts.gate], shared)

    def finish(self, norm: RMSNorm, stream: Stream[Buffer], head: LMHead | None) -> Buffer:
        """Last norm and head; the states are those of rows that end in the step."""
        if head is None:
            return self._program.finish(stream.value, _weight(norm), None)
        return self._program.finish(stream.value, _weight(norm), packed_matrix(head.holder), head.rows.start)

    def compute(self, function: Callable[..., torch.Tensor], *values: Buffer) -> Buffer:
        raise NotRecordable(f"the native program has no {getattr(function, '__name__', repr(function))}")

    def forward(self, model: nn.Module) -> Buffer:
        raise NotRecordable(f"{type(model).__name__} has a forward for torch alone")


def _weight(norm: RMSNorm) -> NormWeight:
    return NormWeight(norm.weight, norm.eps, norm.offset)


def _columns(span: Span) -> Columns:
    return Columns(span.start, span.size, span.total)


def _outputs(layer: MergedLinear) -> Columns | None:
    """The columns of what a layer returns that are here; ``None`` if there are several projections side by side."""
    spans = set(layer.spans.values())
    return _columns(spans.pop()) if len(spans) == 1 and (layer.gated or len(layer.spans) == 1) else None


def routing_kind(facts: RoutingFacts) -> RoutingKind:
    """Return the choice of experts as native kernels take it."""
    return RoutingKind(
        num_experts=facts.num_experts,
        experts_per_row=facts.experts_per_token,
        scores=ExpertScores.SIGMOID if facts.scores == "sigmoid" else ExpertScores.SOFTMAX,
        renormalised=facts.renormalised,
        scaling=facts.scaling,
        num_groups=facts.num_groups,
        groups_per_row=facts.groups_per_token,
        group_best=1 if facts.group_score == "largest" else 2,
    )


def expert_matrices(router: Router, experts: Experts) -> ExpertMatrices:
    """Return the experts of a layer as native kernels take them; the weights of the router are not among them.

    Raises:
        ModelError: if experts differ in type.
    """
    correction = router.get_parameter("correction") if router.facts.is_corrected else None
    pairs = {
        number: (packed_matrix(expert.gate_up_proj), packed_matrix(expert.down_proj))
        for number, expert in experts.each()
    }
    first = experts.first
    gates, outputs = _outputs(first.gate_up_proj), _outputs(first.down_proj)
    return ExpertMatrices.of(
        routing_kind(router.facts),
        correction,
        pairs,
        experts.loads,
        gates=gates,
        outputs=outputs,
        kept=experts.kept,
    )
