"""Names of a published checkpoint's tensors, and the pieces of a model of transformers that they fill.

transformers holds some tensors together that checkpoints have apart, such as the matrices of experts, and describes
how it takes its own apart again to save them. Applied to the memory of a model, that gives for each name of a
checkpoint the piece to write to.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightRenaming, apply_renamings, revert_weight_conversion

from bough.config.architectures import UNSUPPORTED_MODEL
from bough.errors import ConfigError


class CheckpointNames:
    """Tensors of a checkpoint by name.

    Args:
        model: a ``PreTrainedModel``, its weights tied.

    Attributes:
        tensors: pieces of the model's memory by their names in a checkpoint.

    Raises:
        ConfigError: if a tensor of the checkpoint is more than a piece of one of the model's.
    """

    def __init__(self, model: Any) -> None:
        held: dict[str, torch.Tensor] = model.state_dict()
        views = revert_weight_conversion(model, {name: tensor.as_subclass(_View) for name, tensor in held.items()})
        memory = {tensor.untyped_storage()._cdata for tensor in held.values()}
        for name, view in views.items():
            if view.untyped_storage()._cdata not in memory:
                raise ConfigError(
                    f"{type(model).__name__} of transformers cannot be served: its {name} is stored in another order "
                    f"than it is used",
                    param="model_impl",
                    code=UNSUPPORTED_MODEL,
                )
        self.tensors = {name: view.as_subclass(torch.Tensor) for name, view in views.items()}
        self._prefix = f"{model.base_model_prefix}."
        self._ignored = [re.compile(pattern) for pattern in model._keys_to_ignore_on_load_unexpected or ()]
        self._renamings = [each for each in get_model_conversion_mapping(model) if isinstance(each, WeightRenaming)]
        places = {_place(view): name for name, view in self.tensors.items()}
        self._by_held_name = {name: places[_place(tensor)] for name, tensor in held.items() if _place(tensor) in places}

    def own_name(self, name: str) -> str | None:
        """Key of :attr:`tensors` for a tensor that a checkpoint calls ``name``; ``None`` if the model does without it.

        Checkpoints may lack the prefix of the model's body, have it on top, or use names of older versions.
        """
        for candidate in (name, f"{self._prefix}{name}", name.removeprefix(self._prefix)):
            if candidate in self.tensors:
                return candidate
        if any(pattern.search(name) for pattern in self._ignored):
            return None
        held_name: str = apply_renamings(name, self._renamings)
        own_name: str = self._by_held_name.get(held_name, name)
        return own_name


def _place(tensor: torch.Tensor) -> tuple[int, int, torch.Size]:
    """Memory of a tensor, comparable."""
    return tensor.untyped_storage()._cdata, int(tensor.storage_offset()), tensor.shape


class _View(torch.Tensor):
    """A tensor of which only views are made: what would copy fails, or leaves it as it is."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch."""
        if func is torch.Tensor.contiguous:
            return args[0]
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[no-untyped-call]
