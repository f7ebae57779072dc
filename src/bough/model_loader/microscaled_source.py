"""Weights of checkpoints in safetensors format with experts in MXFP4, as those of gpt-oss.

A tensor ``NAME_blocks``, uint8 ``[experts, rows, groups, 16]``, has the codes of the matrices of all experts, two to a
byte, and ``NAME_scales``, uint8 ``[experts, rows, groups]``, the exponents.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import torch

from bough.errors import StartupError
from bough.layers.checkpoint_weight import StoredWeight
from bough.layers.stored_formats import StoredForm
from bough.model_loader.microscaling import GROUP, microscaled_rows
from bough.model_loader.sources import SafetensorsSource, is_of_attention, open_tensors
from bough.models.weight_names import BODY_PREFIX, expert_stack_of
from bough.observability.progress import Progress

_BLOCKS, _SCALES = "_blocks", "_scales"


class MicroscaledSource(SafetensorsSource):
    """Safetensors files with experts in MXFP4, which become a matrix for each expert."""

    group = GROUP

    def __init__(self, directory: Path) -> None:
        """Raises:
        StartupError: if files are missing or damaged.
        """
        super().__init__(directory)
        self._files = {name: file for file in self.files for name in self.names_in(file, open_tensors(file))}
        self._stacks = {name.removesuffix(_BLOCKS) for name in self._files if name.endswith(_BLOCKS)}

    @property
    def quantized(self) -> bool:
        return bool(self._stacks)

    def form(self, name: str) -> StoredForm | None:
        stack = expert_stack_of(name) or ""
        return "mxfp4" if self._stacks.intersection((stack, stack.removeprefix(BODY_PREFIX))) else None

    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, StoredWeight]]:
        with open_tensors(file) as tensors:
            for name in self.names_in(file, tensors):
                tensor = tensors.get_tensor(name)
                if name.endswith(_BLOCKS):
                    yield from self._experts(name.removesuffix(_BLOCKS), tensor)
                elif not is_of_attention(name) and not (
                    name.endswith(_SCALES) and name.removesuffix(_SCALES) in self._stacks
                ):
                    yield name, tensor
                progress.advance(tensor.nbytes)

    def _experts(self, stack: str, blocks: torch.Tensor) -> Iterator[tuple[str, StoredWeight]]:
        """Yield the matrix of each expert."""
        scales = self._tensor(f"{stack}{_SCALES}")
        fits = blocks.dtype == scales.dtype == torch.uint8 and blocks.ndim == 4
        if not fits or blocks.shape != (*scales.shape, GROUP // 2):
            raise StartupError(
                f"{stack} has blocks {blocks.dtype} {list(blocks.shape)} with scales {scales.dtype} "
                f"{list(scales.shape)}, which are no experts in MXFP4"
            )
        module, _, part = stack.rpartition(".")
        for expert, (own, exponents) in enumerate(zip(blocks, scales, strict=True)):
            yield f"{module}.{expert}.{part}.weight", microscaled_rows(own.flatten(1), exponents)

    def _tensor(self, name: str) -> torch.Tensor:
        if name not in self._files:
            raise StartupError(f"the checkpoint has no tensor {name}; download it again")
        with open_tensors(self._files[name]) as tensors:
            tensor: Any = tensors.get_tensor(name)
        return tensor  # type: ignore[no-any-return]
