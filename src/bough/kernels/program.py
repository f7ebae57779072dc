"""Recording a forward pass as a native program, and running it.

Models are recorded by :class:`bough.layers.recorded_ops.RecordOps`; this class makes calls of the library and owns the
buffers that the calls work on. The residual stream and all sums are float32, the inputs of matrix products have the
model's dtype.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from bough.errors import ModelError
from bough.kernels.buffers import KERNEL_DTYPES, Buffer, Buffers, Columns
from bough.kernels.library import load_library
from bough.kernels.native_group import NativeGroup
from bough.kernels.native_program import NativeProgram
from bough.kernels.structures import (
    Activation,
    AttentionCall,
    AttentionShape,
    DType,
    EmbeddingCall,
    Epilogue,
    ExpertsCall,
    ExpertsStage,
    GemmCall,
    KVLayer,
    NormCall,
    PackedMatrix,
    PanelLayout,
    ProgramLimits,
    QuantizeCall,
    RotaryStoreCall,
    RotaryTableCall,
    RoutingKind,
)
from bough.kernels.thread_pool import ThreadPool

QUANTIZED_GROUP = 32
"""Inputs that share a scale where they are quantised."""

QUANTIZED_DTYPES = frozenset({DType.I8, DType.I4, DType.U4, DType.F4})


@dataclass(frozen=True)
class NormWeight:
    """Weight of a root mean square norm: ``offset + weight`` multiplies what is normalised."""

    weight: torch.Tensor
    """``[size]``"""
    eps: float
    offset: float = 0.0

    def call(self, x: Buffer, output: Buffer) -> NormCall:
        """The norm of the rows of ``x``."""
        return NormCall(
            input=x.pointer,
            input_stride=x.stride,
            weight=self.weight.data_ptr(),
            weight_dtype=KERNEL_DTYPES[self.weight.dtype],
            eps=self.eps,
            output=output.pointer,
            output_stride=output.stride,
            output_dtype=output.dtype,
            size=x.columns,
            weight_offset=self.offset,
        )


@dataclass(frozen=True)
class ExpertMatrices:
    """Experts of a layer as native kernels take them."""

    routing: RoutingKind
    correction: torch.Tensor | None
    """float32 ``[num_experts]``"""
    gate_ups: ctypes.Array[PackedMatrix]
    downs: ctypes.Array[PackedMatrix]
    loads: torch.Tensor
    """int64 ``[num_experts]``, to which kernels add the rows of each."""

    held: range
    """Numbers of the experts that this rank has; the matrices of others have a shape and no panels."""
    gates: Columns | None = None
    """The gates that this rank computes of each expert, where it has a part of the outputs; ``None``: all."""
    outputs: Columns | None = None
    """The same of results"""
    kept: torch.Tensor | None = None
    """int16 ``[num_slots, experts of a row]``, where the experts of each token are kept by its KV slot"""

    @classmethod
    def of(
        cls,
        routing: RoutingKind,
        correction: torch.Tensor | None,
        pairs: Mapping[int, tuple[PackedMatrix, PackedMatrix]],
        loads: torch.Tensor,
        *,
        gates: Columns | None = None,
        outputs: Columns | None = None,
        kept: torch.Tensor | None = None,
    ) -> ExpertMatrices:
        """Experts of the matrices of gates and values, and of results, by ascending number.

        Raises:
            ModelError: if they differ in what their kernels need.
        """
        arrays = []
        for matrices in zip(*pairs.values(), strict=True):
            if len({(each.dtype, each.num_outputs, each.num_inputs) for each in matrices}) > 1:
                raise ModelError("experts of one layer are held in several types, which native kernels cannot multiply")
            elsewhere = PackedMatrix.from_buffer_copy(matrices[0])
            elsewhere.panels = elsewhere.bias = None
            of_all = dict.fromkeys(range(routing.num_experts), elsewhere) | dict(zip(pairs, matrices, strict=True))
            arrays.append((PackedMatrix * routing.num_experts)(*of_all.values()))
        held = range(min(pairs), max(pairs) + 1)
        gate_ups, downs = arrays
        return cls(routing, correction, gate_ups, downs, loads, held, gates, outputs, kept)

    @property
    def are_shared(self) -> bool:
        """True if each rank has some of the experts, whole."""
        return len(self.held) < len(self.gate_ups)


def scratch_bytes(
    limits: ProgramLimits, shapes: Collection[AttentionShape], routings: Sequence[RoutingKind], num_threads: int
) -> int:
    """Memory that a program takes beside its buffers, in bytes.

    Args:
        limits: of the program.
        shapes: of the attention of its layers, each once.
        routings: of its layers with experts, each of which has a plan of its own.
        num_threads: that run it.
    """
    library = load_library()
    total: int = library.bough_program_bytes(ctypes.byref(limits), num_threads)
    for shape in shapes:
        total += library.bough_attention_bytes(ctypes.byref(limits), ctypes.byref(shape), num_threads)
    for routing in routings:
        total += library.bough_experts_plan_bytes(ctypes.byref(routing), limits.max_tokens)
    return total


class Program(NativeProgram):
    """One model's forward pass.

    Attributes:
        dtype: of the inputs of matrix products; float32 where weights are quantised, whose inputs are made from it.
        limits: most rows, tokens and positions of a step.
    """

    def __init__(
        self, threads: ThreadPool, limits: ProgramLimits, dtype: torch.dtype, group: NativeGroup | None = None
    ) -> None:
        """Record for one of the ranks of ``group``, which has some outputs of every matrix; ``None``: there is one."""
        super().__init__(threads, limits, group)
        self.limits = limits
        self.dtype = dtype
        self._buffers = Buffers(group)
        self._num_plans = 0

    def buffer(
        self, role: str, columns: int, dtype: torch.dtype, rows: int | None = None, *, is_local: bool = False
    ) -> Buffer:
        """The buffer of that role, width and type, made when it is first asked for: layers share it in their order.

        Args:
            role: what it holds.
            columns: numbers of a row.
            dtype: of them.
            rows: the most tokens of a piece of a step unless given; must not change.
            is_local: whether no other rank has to do with it. Others are asked for alike by all ranks.
        """
        rows = self.limits.max_tokens if rows is None else rows
        return self._buffers.get(role, rows, columns, dtype, is_local=is_local)

    def embed_packed(self, table: PackedMatrix, scale: float = 1.0, first_token: int = 0) -> Buffer:
        """Look up the step's tokens in a packed table, times ``scale``: the residual stream.

        Args:
            first_token: token of the table's first row; other ranks look up tokens that it does not have.
        """
        output = self.buffer("residual", table.num_inputs, torch.float32)
        self._before([], [output])
        self._record("packed_embedding", ctypes.byref(table), first_token, scale, output.pointer, output.stride)
        return output

    def embed(self, table: torch.Tensor, scale: float = 1.0, first_token: int = 0) -> Buffer:
        """Look up the step's tokens in a plain table ``[num_tokens, hidden_size]``; see :meth:`embed_packed`."""
        output = self.buffer("residual", table.shape[1], torch.float32)
        self._before([], [output])
        call = EmbeddingCall(
            table=table.data_ptr(),
            table_dtype=KERNEL_DTYPES[table.dtype],
            size=table.shape[1],
            output=output.pointer,
            output_stride=output.stride,
            scale=scale,
            first_id=first_token,
            num_ids=len(table),
        )
        self._record("embedding", ctypes.byref(call))
        return output

    def rotary_table(self, inv_freq: torch.Tensor, attention_scaling: float) -> Buffer:
        """Cosines and sines of the step's positions, a table of its own; ``inv_freq`` is float32 ``[half_dim]``."""
        half_dim = len(inv_freq)
        output = self._buffers.add_table(self.limits.max_tokens, 2 * half_dim)
        self._before([], [output], by_rows=True)
        call = RotaryTableCall(
            inv_freq=inv_freq.data_ptr(),
            half_dim=half_dim,
            attention_scaling=attention_scaling,
            output=output.pointer,
        )
        self._record("rotary_table", ctypes.byref(call))
        return output

    def rms_norm(self, x: Buffer, weight: NormWeight) -> Buffer:
        """Normalise rows of the residual stream, in the model's dtype."""
        output = self.buffer("normed", x.columns, self.dtype)
        self._before([x], [output], by_rows=True, repeats_few=True)
        self._record("norm", ctypes.byref(weight.call(x, output)))
        return output

    def rms_norm_add(self, x: Buffer, weight: NormWeight, onto: Buffer) -> None:
        """Add the norm of ``x`` to ``onto``, both float32."""
        call = weight.call(x, onto)
        call.adds = 1
        self._before([x, onto], [onto], by_rows=True)
        self._record("norm", ctypes.byref(call))

    def linear(
        self,
        x: Buffer,
        matrices: Sequence[PackedMatrix],
        outputs: Columns | None = None,
        *,
        is_local: bool = False,
        role: str = "projected",
    ) -> Buffer:
        """``x Wᵀ + b`` of each of ``matrices``, side by side, in float32.

        Args:
            outputs: those of the matrices, where other ranks have the rest; by default all.
            is_local: whether no other rank needs them.
            role: what the buffer of the result holds.
        """
        outputs = outputs or Columns.all_of(sum(weights.num_outputs for weights in matrices))
        whole = self.buffer(role, outputs.total, torch.float32, is_local=is_local)
        places, start = [], outputs.start
        for weights in matrices:
            places.append(whole.part(Columns(start, weights.num_outputs, outputs.total)))
            start += weights.num_outputs
        self._record_products(x, matrices, Epilogue.STORE, places)
        return whole

    def linear_add(self, x: Buffer, weights: PackedMatrix, onto: Buffer, outputs: Columns | None = None) -> None:
        """``onto += x Wᵀ + b``; ``onto`` is float32. ``outputs`` are as in :meth:`linear`."""
        self._record_products(x, [weights], Epilogue.ADD, [onto if outputs is None else onto.part(outputs)])

    def linear_gated(
        self,
        x: Buffer,
        weights: PackedMatrix,
        activation: Activation = Activation.SILU,
        outputs: Columns | None = None,
    ) -> Buffer:
        """``activation(gate) * value`` of ``x Wᵀ + b`` = gates, values; in the model's dtype.

        ``outputs``, of the result, are as in :meth:`linear`.
        """
        if weights.layout != PanelLayout.GATED:
            raise ValueError("gates and values must be packed side by side")
        outputs = outputs or Columns.all_of(weights.num_outputs // 2)
        output = self.buffer("gated", outputs.total, self.dtype)
        self._record_products(x, [weights], Epilogue.GATE, [output.part(outputs)], activation)
        return output

    def rotate_and_store(
        self,
        heads: Buffer,
        rotation: Buffer | None,
        kv: KVLayer,
        *,
        num_heads: int,
        num_kv_heads: int,
        q_norm: torch.Tensor | None = None,
        k_norm: torch.Tensor | None = None,
        eps: float = 0.0,
        norm_offset: float = 0.0,
        query_scale: tuple[float, int] = (0.0, 1),
    ) -> None:
        """Normalise each head of q and k if there are weights for it, rotate q in place, and store k and v.

        Args:
            heads: float32, query heads, key heads, value heads.
            rotation: from :meth:`rotary_table`, of as many or fewer dimensions than a head has; ``None``: none.
            kv: where keys and values go.
            num_heads: of queries.
            num_kv_heads: of keys, and of values.
            q_norm: ``[head_dim]``
            k_norm: ``[head_dim]``, of the same dtype.
            eps: of both norms.
            norm_offset: added to the weights of both.
            query_scale: ``query_beta`` and ``query_period`` in ``kernels.h``.
        """
        head_dim = heads.columns // (num_heads + 2 * num_kv_heads)
        self._before([heads] if rotation is None else [heads, rotation], [heads])
        call = RotaryStoreCall(
            qkv=heads.pointer,
            qkv_stride=heads.stride,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            half_dim=0 if rotation is None else rotation.columns // 2,
            cos_sin=None if rotation is None else rotation.pointer,
            q_norm=None if q_norm is None else q_norm.data_ptr(),
            k_norm=None if k_norm is None else k_norm.data_ptr(),
            norm_dtype=DType.F32 if q_norm is None else KERNEL_DTYPES[q_norm.dtype],
            eps=eps,
            kv=kv,
            norm_offset=norm_offset,
            query_beta=query_scale[0],
            query_period=query_scale[1],
        )
        self._record("rotary_store", ctypes.byref(call))

    def attend(
        self,
        heads: Buffer,
        kv: KVLayer,
        shape: AttentionShape,
        outputs: Columns | None = None,
        sinks: torch.Tensor | None = None,
    ) -> Buffer:
        """Attention of the query heads at the front of ``heads`` over what the pool holds, in the model's dtype.

        Args:
            outputs: their columns, where other ranks have those of other heads.
            sinks: float32 ``[num_heads]``, scores that take a share of each head's weight and have no value.
        """
        outputs = outputs or Columns.all_of(shape.num_heads * shape.head_dim)
        whole = self.buffer("attended", outputs.total, self.dtype)
        output = whole.part(outputs)
        self._before([heads], [output])
        call = AttentionCall(
            shape=shape,
            kv=kv,
            queries=heads.pointer,
            query_stride=heads.stride,
            output=output.pointer,
            output_stride=output.stride,
            output_dtype=output.dtype,
            sinks=None if sinks is None else sinks.data_ptr(),
        )
        self._record("attention", ctypes.byref(call))
        return whole

    def add_experts(
        self,
        x: Buffer,
        products: Buffer,
        experts: ExpertMatrices,
        onto: Buffer,
        activation: Activation = Activation.SILU,
        shared: tuple[Buffer, Buffer] | None = None,
    ) -> None:
        """Add to ``onto``, float32, the weighted sum of each row's experts.

        Args:
            x: the rows, in the model's dtype.
            products: of the router, float32, one for each expert; each rank has computed all of them.
            experts: matrices and routing.
            onto: gets the sums.
            activation: of gates.
            shared: results of a network beside the experts, float32, which are added, too, times the sigmoid of
                products, float32, one for each row.
        """
        up, down = experts.gate_ups[0], experts.downs[0]
        rows = self.limits.max_tokens * experts.routing.experts_per_row
        gates = experts.gates or Columns.all_of(up.num_outputs // 2)
        outputs = experts.outputs or Columns.all_of(down.num_outputs)
        source = self._inputs(x, [up])[0][up.dtype]
        copies = self.buffer(f"experts_copies_{rows}", source.stride, source.memory.dtype, rows, is_local=True)
        is_local = experts.are_shared
        gated = self.buffer(f"experts_gated_{rows}", gates.total, self.dtype, rows, is_local=is_local)
        results = self.buffer(f"experts_results_{rows}", outputs.total, torch.float32, rows)
        call = ExpertsCall(
            routing=experts.routing,
            products=products.pointer,
            products_stride=products.stride,
            correction=None if experts.correction is None else experts.correction.data_ptr(),
            input=source.pointer,
            input_stride=source.stride,
            first_expert=experts.held.start,
            end_expert=experts.held.stop,
            gate_ups=ctypes.addressof(experts.gate_ups),
            downs=ctypes.addressof(experts.downs),
            activation=activation,
            gated_dtype=gated.dtype,
            output=onto.pointer,
            output_stride=onto.stride,
            size=onto.columns,
            copies=copies.pointer,
            gated=gated.part(gates).pointer,
            gated_stride=gated.stride,
            results=results.part(outputs).pointer,
            results_stride=results.stride,
            loads=experts.loads.data_ptr(),
        )
        if experts.kept is not None:
            call.record, call.record_stride = experts.kept.data_ptr(), experts.kept.stride(0)
        beside = list(shared or ())
        if shared is not None:
            call.shared, call.shared_stride = shared[0].pointer, shared[0].stride
            call.shared_products, call.shared_products_stride = shared[1].pointer, shared[1].stride
        self._num_plans += 1
        words = -(-self._library.bough_experts_plan_bytes(ctypes.byref(call.routing), self.limits.max_tokens) // 4)
        call.plan = self.buffer(f"experts_plan_{self._num_plans}", words, torch.int32, 1, is_local=True).pointer
        record = partial(self._record_stage, call)
        record(ExpertsStage.ROUTE_AND_GATE, [source, products], [gated])
        call.gated, made = gated.pointer, gated
        if down.dtype in QUANTIZED_DTYPES:
            made = self._quantized(down, f"experts_{rows}", rows, is_local=is_local)
            call.quantized, call.quantized_stride = made.pointer, made.stride
            record(ExpertsStage.QUANTIZE_GATES, [gated], [made], by_rows=True)
        record(ExpertsStage.MULTIPLY_DOWN, [made], [results])
        call.results = results.pointer
        record(ExpertsStage.COMBINE, [results, onto, *beside], [onto], by_rows=True)

    def finish(self, x: Buffer, weight: NormWeight, head: PackedMatrix | None, first_token: int = 0) -> Buffer:
        """Final norm and language-model head of the rows that end in a step. Nothing is recorded after it.

        Args:
            x: the residual stream.
            weight: of the norm.
            head: ``None`` if hidden states are all that is ever wanted.
            first_token: token of the head's first output.

        Returns:
            The norm's output.
        """
        output = self.buffer("head_input", x.columns, self.dtype, self.limits.max_rows)
        norm = weight.call(x, output)
        quantize = QuantizeCall()
        if head is not None and head.dtype in QUANTIZED_DTYPES:
            quantize = _quantize_call(output, head, self._quantized(head, "quantized_head_input", self.limits.max_rows))
        matrix = None if head is None else ctypes.byref(head)
        self._library.bough_program_finish(
            self._handle, ctypes.byref(norm), ctypes.byref(quantize), matrix, first_token
        )
        return output

    def _quantized(
        self, weights: PackedMatrix, name: str, rows: int | None = None, *, is_local: bool = False
    ) -> Buffer:
        """The buffer of inputs that are quantised for such weights."""
        words = self._library.bough_quantized_row_words(ctypes.byref(weights))
        return self.buffer(f"{name}_{DType(weights.dtype).name}_{words}", words, torch.int32, rows, is_local=is_local)

    def _inputs(self, x: Buffer, matrices: Sequence[PackedMatrix]) -> tuple[dict[int, Buffer], dict[int, QuantizeCall]]:
        """Make what the matrices take of ``x``, by their type, and the calls that quantise it for some of them."""
        quantizations: dict[int, QuantizeCall] = {}
        inputs = {
            weights.dtype: self._quantized(weights, "quantized") if weights.dtype in QUANTIZED_DTYPES else x
            for weights in matrices
        }
        for weights in matrices:
            quantized = weights.dtype in QUANTIZED_DTYPES
            if (x.dtype, x.columns) != (DType.F32 if quantized else weights.dtype, weights.num_inputs):
                raise ValueError(f"{x.columns} inputs of {x.dtype} do not fit weights for {weights.num_inputs}")
            if quantized:
                quantizations[weights.dtype] = _quantize_call(x, weights, inputs[weights.dtype])
        if quantizations:
            calls = (QuantizeCall * len(quantizations))(*quantizations.values())
            self._before([x], [inputs[dtype] for dtype in quantizations], by_rows=True, repeats_few=True)
            self._record("quantize", calls, len(calls))
        return inputs, quantizations

    def _record_products(
        self,
        x: Buffer,
        matrices: Sequence[PackedMatrix],
        epilogue: Epilogue,
        outputs: Sequence[Buffer],
        activation: Activation = Activation.SILU,
    ) -> None:
        """``x`` times each of the matrices, all of them in one operation that threads share.

        Args:
            x: the rows.
            matrices: the weights.
            epilogue: of each product.
            outputs: where each goes; no two have an element in common.
            activation: of gates.
        """
        inputs, quantizations = self._inputs(x, matrices)
        adds = outputs if epilogue == Epilogue.ADD else ()
        self._before([*inputs.values(), *adds], outputs)
        products = (GemmCall * len(matrices))()
        for product, weights, output in zip(products, matrices, outputs, strict=True):
            made = quantizations.get(weights.dtype)
            product.input, product.input_stride = x.pointer, x.stride
            if made is not None:
                product.input, product.input_stride = made.output, made.output_stride
            product.weights, product.epilogue, product.activation = weights, epilogue, activation
            product.output, product.output_stride, product.output_dtype = output.pointer, output.stride, output.dtype
        self._record("gemm", products, len(products))

    def _before(
        self, reads: Sequence[Buffer], writes: Sequence[Buffer], *, by_rows: bool = False, repeats_few: bool = False
    ) -> None:
        """Record that the ranks meet, if they have to before an operation; see :meth:`Buffers.have_to_meet`."""
        if self._group is None:
            return
        meet = self._buffers.have_to_meet(reads, writes, by_rows=by_rows, repeats_few=repeats_few)
        if any(meet):
            self._record("meet", meet.if_few, meet.if_more)

    def _record_stage(
        self,
        call: ExpertsCall,
        stage: ExpertsStage,
        reads: list[Buffer],
        writes: list[Buffer],
        *,
        by_rows: bool = False,
    ) -> None:
        self._before(reads, writes, by_rows=by_rows)
        self._record("experts", ctypes.byref(call), stage)

    def _record(self, kind: str, *arguments: object) -> None:
        getattr(self._library, f"bough_program_{kind}")(self._handle, *arguments)


def _quantize_call(x: Buffer, weights: PackedMatrix, output: Buffer) -> QuantizeCall:
    return QuantizeCall(
        input=x.pointer,
        input_stride=x.stride,
        size=x.columns,
        output=output.pointer,
        output_stride=output.stride,
        weights=weights.dtype,
    )
