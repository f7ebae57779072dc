"""Choice of the method that holds each weight of a model."""

from __future__ import annotations

import torch

from bough.config.engine_args import Quantization
from bough.errors import ConfigError
from bough.kernels.host_memory import Arena
from bough.kernels.thread_pool import ThreadPool
from bough.kernels.triton.available import why_not_float8, why_not_triton
from bough.layers.linear_method import TORCH, LinearMethod, MethodChoice, TorchMethod
from bough.layers.packed_method import packed_formats, packed_method
from bough.layers.quantize import QUANTIZING_BYTES
from bough.layers.stored_formats import StoredForm, StoredFormats
from bough.model_loader.sources import WeightSource

_ONLINE_INT4_GROUP = 64
_ONLINE_INT8_GROUP = 128
_GROUPS = (128, 64, 32)
"""Inputs to a scale that kernels know; a row is cut into the largest of these that its groups are made of."""
_FLOAT8_GROUPS = (128, 64)

_NEEDS_NATIVE = "needs the native CPU kernels; the log says why they do not run this model"


class WeightChoice:
    """Ways in which linear layers hold weights on one device."""

    def __init__(
        self,
        threads: ThreadPool | None,
        device: torch.device,
        *,
        interpreted: bool = False,
        batch_invariant: bool = False,
        own_layers: bool = True,
    ) -> None:
        """Args:
        interpreted: whether a CPU is to run Triton's kernels, in the interpreter.
        batch_invariant: whether a row of a product must not depend on the others; native kernels' never does.
        own_layers: whether the model's linear layers are Bough's; others hold weights as torch does.
        """
        self._own_layers = own_layers
        self._batch_invariant = batch_invariant
        self._threads, self._device = threads, device
        self._uses_triton = device.type == "cuda" or interpreted

    def why_not(self, quantization: Quantization) -> str | None:
        """Reason against quantising weights so; ``None`` if there is none."""
        if quantization == "none":
            return None
        if not self._own_layers:
            return "is for Bough's own families, and transformers computes this model"
        if self._threads is not None or not self._uses_triton:
            if quantization == "fp8":
                return "is for CUDA devices; use int8 here"
            return None if self._threads is not None else _NEEDS_NATIVE
        problem = (why_not_float8 if quantization == "fp8" else why_not_triton)(self._device)
        return None if problem is None else f"cannot be used: {problem}"

    def why_not_stored(self, source: WeightSource) -> str | None:
        """Reason against holding weights of few bits as the checkpoint has them; ``None`` if there is none."""
        if not (source.quantized or source.float8):
            return None
        if not self._own_layers:
            return "transformers computes the model"
        if not self._uses_triton:
            if source.float8:
                return "float8 is for CUDA devices; --quantization int8 takes as little here"
            return None if self._threads is not None else _NEEDS_NATIVE
        return (why_not_float8 if source.float8 else why_not_triton)(self._device)

    def check(self, quantization: Quantization) -> None:
        """Raises:
        ConfigError: if weights cannot be quantised so.
        """
        problem = self.why_not(quantization)
        if problem is not None:
            raise ConfigError(f"--quantization {quantization} {problem}", param="quantization")

    def method(
        self, source: WeightSource | None, quantization: Quantization, arena: Arena | None = None
    ) -> MethodChoice:
        """How weights from ``source`` are held, or random ones if it is ``None``."""
        if not self._own_layers:
            return TORCH
        if self._threads is not None:
            if source is not None and source.quantized and quantization == "none":
                return packed_formats(self._threads, source.form, arena)
            assert quantization != "fp8", "it was checked"
            return packed_method(self._threads, quantization, arena)
        if quantization != "none":
            return _online(quantization, self._plain())
        if source is None or not (source.quantized or source.float8):
            return self._plain()
        if not self._uses_triton or self.why_not_stored(source) is not None:
            return self._plain()
        return _stored(source, self._plain())

    def quantizing_bytes(self, source: WeightSource | None, quantization: Quantization) -> int:
        """Memory of the device that quantising takes while weights are loaded."""
        stored = source is not None and (source.quantized or source.float8)
        is_here = self._threads is None and self._uses_triton and self._own_layers
        return QUANTIZING_BYTES if is_here and (stored or quantization != "none") else 0

    def _plain(self) -> TorchMethod:
        """Method of weights that are not quantised."""
        if not self._batch_invariant:
            return TORCH
        from bough.layers.batch_invariant_method import BatchInvariantMethod

        return BatchInvariantMethod()


def _online(quantization: Quantization, plain: TorchMethod) -> LinearMethod:
    from bough.layers.coded_method import Float8Method, IntegerMethod

    if quantization == "fp8":
        return Float8Method(plain=plain)
    if quantization == "int8":
        return IntegerMethod(8, _ONLINE_INT8_GROUP, plain=plain)
    return IntegerMethod(4, _ONLINE_INT4_GROUP, plain=plain)


def _stored(source: WeightSource, plain: TorchMethod) -> StoredFormats[LinearMethod]:
    from bough.layers.coded_method import Float8Method, IntegerMethod

    def largest(groups: tuple[int, ...]) -> int | None:
        return next((each for each in groups if source.group is None or source.group % each == 0), None)

    methods: dict[StoredForm | None, LinearMethod] = {}
    if source.float8:
        group = None if source.group is None else largest(_FLOAT8_GROUPS)
        methods["float8"] = Float8Method(group, plain=plain) if source.group is None or group is not None else plain
    else:
        # Forms other than int8 have such groups.
        group = largest(_GROUPS) or _GROUPS[-1]
        eight = IntegerMethod(8, group, plain=plain)
        methods["mxfp4"] = eight
        methods["int4"] = IntegerMethod(4, group, exact=True, plain=plain)
        methods["uint4"] = IntegerMethod(4, group, minimums=True, exact=True, plain=plain)
        methods["int8"] = eight
    # What is not quantised stays so, and what is stored with it in one matrix becomes like it.
    return StoredFormats(source.form, {**methods, None: plain})
