"""Base of all models: how they are called, and how weights get into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.errors import ConfigError, ModelError
from bough.layers.attention.sinks import Sinks
from bough.layers.checkpoint_weight import (
    CheckpointWeight,
    ExpertStack,
    StackedWeight,
    StoredWeight,
    TensorWeight,
    Weight,
)
from bough.layers.embedding import LMHead, VocabEmbedding
from bough.layers.linear import Linear, MergedLinear, QKVLinear
from bough.layers.linear_method import MethodChoice
from bough.layers.moe.experts import Experts
from bough.layers.ops import Ops, TorchOps, Value
from bough.layers.quantized_rows import QuantizedRows
from bough.models.weight_names import BODY_PREFIX, EXPERTS, expert_stacks, stacks, text_name

if TYPE_CHECKING:
    from bough.layers.forward_batch import ForwardBatch

_IGNORED_SUFFIXES = ("rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached")
"""Tensors that old checkpoints carry and that follow from config.json."""


def torch_dtype(config: ModelConfig) -> torch.dtype:
    """The torch type of the configuration's ``dtype``."""
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[config.dtype]


class Model(nn.Module, ABC):
    """Any model: it knows which tensor of a checkpoint goes where."""

    def own_name(self, name: str) -> str | None:
        """This model's name for a tensor that a checkpoint calls ``name``; ``None`` for one that is not needed."""
        return name

    def measure_kernels(self) -> None:
        """Choose between equivalent ways of computing by timing them, once the weights are there."""
        for module in self.modules():
            if isinstance(module, LMHead):
                module.measure()

    def keep_experts(self, kept: torch.Tensor | None) -> None:
        """Let layers with experts keep which of them compute each token, from now on.

        Args:
            kept: int16 ``[num_slots, layers with experts, experts of a token]``, by KV slot; ``None``: do not.

        Raises:
            ConfigError: if the model has its experts in layers of another kind.
        """
        layers = [each for each in self.modules() if isinstance(each, Experts)]
        if kept is not None and len(layers) != kept.shape[1]:
            raise ConfigError(
                f"--enable-return-routed-experts: {type(self).__name__} does not tell its experts; leave it out",
                param="enable_return_routed_experts",
            )
        for index, experts in enumerate(layers):
            experts.kept = None if kept is None else kept[:, index]

    @cached_property
    def checkpoint_weights(self) -> dict[str, CheckpointWeight]:
        """Every name that a checkpoint of this model has, and what it fills."""
        return dict(_checkpoint_weights(self, ""))

    @property
    def checkpoint_bytes(self) -> int:
        """Memory that the weights of a checkpoint take, in the types that they are to have."""
        weights = (self.checkpoint_weights[name] for name in self.required_names)
        return sum(weight.shape.numel() * weight.dtype.itemsize for weight in weights)

    @cached_property
    def stacked_weights(self) -> dict[str, StackedWeight]:
        """Names under which some checkpoints have several of those weights as one."""
        weights = self.checkpoint_weights
        found: dict[str, StackedWeight] = {}
        for stack, names in stacks(weights):
            parts = {name: weights[name] for name in names}
            found[stack] = self.stack_expert(parts) if EXPERTS in stack else self.stack(parts)
        for stack, experts in expert_stacks(weights):
            found[stack] = self.stack_experts([{name: weights[name] for name in names} for names in experts])
        return found

    def stack(self, parts: Mapping[str, CheckpointWeight]) -> StackedWeight:
        """The tensor in which a checkpoint has several projections of one input, given those by name."""
        return StackedWeight(parts)

    def stack_expert(self, parts: Mapping[str, CheckpointWeight]) -> StackedWeight:
        """The same of one expert."""
        return self.stack(parts)

    def stack_experts(self, experts: Sequence[Mapping[str, CheckpointWeight]]) -> ExpertStack:
        """The tensor in which a checkpoint has weights of all experts of a layer, given those of each by name."""
        return ExpertStack([self.stack_expert(parts) for parts in experts])

    def find_weight(self, own_name: str) -> CheckpointWeight | None:
        """Return the weight, or stack of weights, of that name; ``None`` if there is none."""
        return self.checkpoint_weights.get(own_name) or self.stacked_weights.get(own_name)

    def parts(self, own_name: str) -> tuple[str, ...]:
        """Return the names of the weights that a weight, or stack of weights, consists of."""
        stack = self.stacked_weights.get(own_name)
        return (own_name,) if stack is None else stack.names

    @cached_property
    def required_names(self) -> frozenset[str]:
        """The names without which a checkpoint is incomplete: one for each piece of memory."""
        first_names: dict[tuple[int, ...], str] = {}
        for name, weight in self.checkpoint_weights.items():
            first_names.setdefault(weight.key, name)
        return frozenset(first_names.values())

    @cached_property
    def required_shares(self) -> Mapping[str, CheckpointWeight]:
        """This rank's shares of the weights that a checkpoint must have, by name, as far as there are any."""
        weights = self.checkpoint_weights
        shares = {name: weights[name].share for name in weights if name in self.required_names}
        return {name: share for name, share in shares.items() if share is not None}

    @torch.no_grad()
    def load_weights(self, weights: Iterable[tuple[str, StoredWeight]], *, shares: bool = False) -> set[str]:
        """Copy weights into the model, casting to its dtype. Addresses stay; the model may be in use between steps.

        Args:
            weights: names as in the checkpoint, and tensors on any device, what is quantised already, or still packed,
                of which only this rank's part is unpacked; any subset, in any order.
            shares: the tensors are what this rank has of the weights, instead of the whole.

        Returns:
            The model's own names of what was copied. Derived tensors are skipped, and second names of tied weights
            checked only: the first one counts, whatever the order.

        Raises:
            ModelError: at the first name that is unknown, or tensor whose shape or kind of dtype is wrong, that has
                numbers which are not finite in the model's dtype, whose scales are too large, or that a matrix which is
                held in a checkpoint's 4 bits cannot hold exactly, before anything is changed for it; what came before
                it has been copied.
        """

        def load(parts: Sequence[tuple[CheckpointWeight, Weight]]) -> None:
            for weight, numbers in parts:
                weight.check(numbers)
            _write(parts)

        return self._go_through(weights, load, shares=shares)

    @torch.no_grad()
    def write_weights(self, weights: Iterable[tuple[str, StoredWeight]], *, shares: bool = False) -> set[str]:
        """Copy weights as :meth:`load_weights` that :meth:`check_weights` has accepted: numbers are not looked at."""
        return self._go_through(weights, _write, shares=shares)

    def check_weights(self, weights: Iterable[tuple[str, StoredWeight]], *, shares: bool = False) -> set[str]:
        """Return the names that :meth:`load_weights` would copy of the same weights; nothing is changed.

        Args:
            weights: as there; tensors may be on the device ``meta``, without numbers.
            shares: as there.

        Raises:
            ModelError: as there.
        """

        def check(parts: Sequence[tuple[CheckpointWeight, Weight]]) -> None:
            for weight, numbers in parts:
                if isinstance(numbers, QuantizedRows) or not numbers.is_meta:
                    weight.check(numbers)

        return self._go_through(weights, check, shares=shares)

    def _go_through(
        self,
        weights: Iterable[tuple[str, StoredWeight]],
        use: Callable[[Sequence[tuple[CheckpointWeight, Weight]]], None],
        *,
        shares: bool,
    ) -> set[str]:
        """Use each weight that has a place of its own; the model's own names of them."""
        used: set[str] = set()
        for name, tensor in weights:
            place = self._place_of(name, tensor, shares)
            if place is None:
                continue
            own_names, target = place
            try:
                use(list(target.own(tensor)))
            except ModelError as error:
                raise ModelError(f"weight {name}: {error.message}", param=name) from None
            used.update(own_names)
            del tensor  # or it would stay while the next one is made
        return used

    def first_name(self, name: str) -> str | None:
        """The name that counts of the memory that a checkpoint's ``name`` fills; ``None`` if it fills none."""
        own_name = self.own_name(name)
        weight = None if own_name is None else self.find_weight(own_name)
        return None if weight is None else self._first_names.get(weight.key, own_name)

    @cached_property
    def _first_names(self) -> dict[tuple[int, ...], str]:
        return {self.checkpoint_weights[name].key: name for name in self.required_names}

    def _place_of(
        self, name: str, tensor: StoredWeight, shares: bool
    ) -> tuple[tuple[str, ...], CheckpointWeight] | None:
        """Own names of what a weight fills, and where it goes; ``None`` for one that is not to be copied.

        Raises:
            ModelError: if the name is unknown, or shape or kind of dtype are wrong.
        """
        own_name = None if name.endswith(_IGNORED_SUFFIXES) else self.own_name(name)
        if own_name is None:
            return None
        found = self.find_weight(own_name)
        if found is None:
            raise ModelError(f"{type(self).__name__} has no weight named {name}", param=name)
        target = found.share if shares else found
        if target is None:
            return None
        if tensor.shape != target.shape:
            raise ModelError(
                f"weight {name} must have shape {list(target.shape)}, got {list(tensor.shape)}", param=name
            )
        if isinstance(tensor, torch.Tensor) and not tensor.is_floating_point():
            raise ModelError(f"weight {name} must be floating point, got {tensor.dtype}", param=name)
        if isinstance(tensor, torch.Tensor) and tensor.element_size() == 1:
            raise ModelError(f"weight {name} has no scales, which {tensor.dtype} needs", param=name)
        own_names = found.names if isinstance(found, StackedWeight) else (own_name,)
        return (own_names, target) if self.required_names.issuperset(own_names) else None


def _write(parts: Sequence[tuple[CheckpointWeight, Weight]]) -> None:
    for weight, numbers in parts:
        weight.write(numbers)


class Block(nn.Module):
    """A part of a model that says in ``run``, once for torch and the native program, what it computes."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if {"forward", "record"} & vars(cls).keys():
            raise TypeError(f"{cls.__name__} must say in run() what it computes: forward() and record() are not called")


class Described(nn.Module):
    """A language model, or its body, that says in ``run`` what it computes.

    A class of another package may bring a ``forward`` for torch instead, which native kernels do not run.
    """

    _has_forward: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # The nearest definition counts, of a class that is mixed in as well.
        nearest = next(base for base in cls.__mro__ if {"forward", "run"} & vars(base).keys())
        cls._has_forward = "run" not in vars(nearest)

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """Hidden states after the final norm, ``[num_tokens, hidden_size]``. Mutates the batch's KV pool."""
        return self.run(TorchOps(batch))

    def run_on(self, ops: Ops[Value], head: LMHead | None = None) -> Value:
        """Compute or record what the class defines: :meth:`run`, or a :meth:`forward` of its own.

        Raises:
            NotRecordable: as :meth:`run`.
        """
        return ops.forward(self) if self._has_forward else self.run(ops, head)

    def run(self, ops: Ops[Value], head: LMHead | None = None) -> Value:
        """Go all the way from tokens to hidden states.

        Args:
            ops: compute, or record.
            head: of the model that this is the body of; ``None``: hidden states are all that is wanted.

        Returns:
            Hidden states after the final norm, ``[num_tokens, hidden_size]``.

        Raises:
            NotRecordable: if the native program cannot do it.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither run() nor forward()")


class CausalLM(Model, Described):
    """A language model: tokens of a batch in, hidden states out, logits of chosen rows on request.

    Attributes:
        can_be_shared: true if it makes its layers for the share that the choice of methods asks for
            (:attr:`MethodChoice.shard`), so that several ranks can compute it.
    """

    can_be_shared: ClassVar[bool] = False

    def own_name(self, name: str) -> str | None:
        """Same as :meth:`Model.own_name`.

        Checkpoints of the body alone lack its prefix, which transformers also adds; wrapped models have another one.
        """
        name_in_text = text_name(name)
        if name_in_text is None:
            return None
        below = f"{BODY_PREFIX}{name_in_text}"
        is_of_body = self.find_weight(name_in_text) is None and self.find_weight(below) is not None
        return below if is_of_body else name_in_text

    @abstractmethod
    def compute_logits(self, hidden_states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Logits, float32 ``[num_rows, vocab_size]``, of hidden states ``[num_rows, hidden_size]``: ``out``, or new."""

    @classmethod
    def make_body(cls, config: ModelConfig, method: MethodChoice) -> Described:
        """The model without its head, with the checkpoint's names below ``model.``.

        Raises:
            ModelError: if this family cannot do without its head.
        """
        raise ModelError(f"{cls.__name__} cannot make embeddings")


class TwoLayerHead(nn.Module):
    """Two linear layers on top of a pooled state, with a function in between; the names are the checkpoint's."""

    def __init__(
        self,
        config: ModelConfig,
        num_labels: int,
        names: tuple[str, str],
        function: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        super().__init__()
        size, dtype = config.hidden_size, torch_dtype(config)
        self.hidden = Linear(names[0], size, size, bias=True, dtype=dtype)
        self.output = Linear(names[1], size, num_labels, bias=True, dtype=dtype)
        self.function = function

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """``[R, hidden_size]`` to ``[R, num_labels]``."""
        scores: torch.Tensor = self.output(self.function(self.hidden(pooled)))
        return scores


def _checkpoint_weights(module: nn.Module, prefix: str) -> Iterator[tuple[str, CheckpointWeight]]:
    """Weights in ``module``, by names that start with ``prefix``."""
    for name, tensor in module.named_parameters(recurse=False):
        yield prefix + name, TensorWeight(tensor.data)
    for child_name, child in module.named_children():
        if isinstance(child, (MergedLinear, QKVLinear, Sinks)):
            yield from ((prefix + name, weight) for name, weight in child.checkpoint_weights())
        elif isinstance(child, (VocabEmbedding, LMHead, Experts)):
            yield from ((f"{prefix}{child_name}.{name}", weight) for name, weight in child.checkpoint_weights())
        else:
            yield from _checkpoint_weights(child, f"{prefix}{child_name}.")
