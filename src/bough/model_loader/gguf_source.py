"""Weights from GGUF files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import torch

from bough.config.gguf_config import (
    LONG_FACTORS,
    NEIGHBOURS_ROTATE,
    ROPE_FACTORS,
    SHORT_FACTORS,
    TOKEN_TABLE,
)
from bough.config.gguf_file import GGUFFile, TensorInfo, TensorType
from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.layers.checkpoint_weight import StoredWeight, Weight
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.stored_formats import StoredForm
from bough.layers.stored_matrix import StoredMatrix
from bough.model_loader.gguf_blocks import read_numbers, read_quantized
from bough.model_loader.sources import WeightSource
from bough.models.weight_names import stored_names
from bough.observability.progress import Progress

_NAMES = {
    TOKEN_TABLE: "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
}
_EXPERT_NAMES = {"ffn_gate_exps": "gate_proj", "ffn_up_exps": "up_proj", "ffn_down_exps": "down_proj"}
"""Tensors with the matrices of all experts of a layer, to the name of each."""
_FACTORS = (ROPE_FACTORS, LONG_FACTORS, SHORT_FACTORS)
_LAYER_NAMES_OF = {
    "phi3": {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
    "gemma3": {
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
    "gpt-oss": {
        "post_attention_norm": "post_attention_layernorm",
        "attn_sinks": "self_attn.sinks",
        "ffn_gate_inp": "mlp.router",
    },
}
"""By ``general.architecture``, names that differ."""
_PARAMETERS = frozenset({"self_attn.sinks"})
"""Names that are those of tensors themselves, not of modules that have them."""
_NORMS_WITH_ONE = frozenset({"gemma3"})
"""Architectures with the 1 added to the weights of norms that models add themselves."""
_LAYER_TENSOR = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)", re.ASCII)

_FORMS: dict[TensorType, StoredForm] = {
    TensorType.Q4_0: "int4",
    TensorType.Q4_1: "uint4",
    TensorType.Q4_K: "uint4",
    TensorType.MXFP4: "mxfp4",
}

_CHUNK_BYTES = 2**24
"""Of stored rows that are taken apart at a time: what that takes beside the result stays small."""


class GGUFSource(WeightSource):
    """Weights of a GGUF file, or of several that belong together.

    Attributes:
        files: of one model, in their order.
    """

    def __init__(self, config: ModelConfig) -> None:
        """Raises:
        ConfigError: if the file is damaged.
        """
        self._file = GGUFFile(Path(config.model_path))
        self._config = config
        self.files = self._file.paths
        tensors, self._architecture = self._file.tensors, self._file.text("general.architecture") or ""
        layer_names = {**_LAYER_NAMES, **_LAYER_NAMES_OF.get(self._architecture, {})}
        self._infos = {
            hf_name: part
            for name in tensors
            if name not in _FACTORS
            for hf_name, part in _experts_apart(_hf_name(name, layer_names), tensors[name])
        }

    @property
    def quantized(self) -> bool:
        """See :class:`WeightSource`."""
        return any(info.block.bits is not None for info in self._infos.values())

    def form(self, name: str) -> StoredForm | None:
        """See :class:`WeightSource`."""
        info = next((self._infos[stored] for stored in stored_names(name) if stored in self._infos), None)
        if info is None or info.block.bits is None:
            return None
        return _FORMS.get(info.type, "int8")

    def read(self, file: Path, progress: Progress, known: Collection[str]) -> Iterator[tuple[str, StoredWeight]]:
        """See :class:`WeightSource`."""
        part = self.files.index(file)
        for name, info in self._infos.items():
            if info.part == part:
                yield name, self._read(name, info)
                progress.advance(info.num_bytes)

    def _read(self, name: str, info: TensorInfo) -> StoredWeight:
        order = self._row_order(name, info)
        if len(info.shape) == 2:
            return StoredMatrix.of(*info.shape, lambda rows, columns: self._part(info, order, rows, columns))
        if info.block.bits is not None:
            raise StartupError(f"tensor {info.name} is quantised, and no matrix but {list(info.shape)}")
        numbers = self._numbers(info, slice(0, info.num_rows)).reshape(info.shape)
        if self._architecture in _NORMS_WITH_ONE and name.endswith("norm.weight"):
            numbers = numbers.float() - 1.0
        return numbers if order is None else numbers[order]

    def _part(self, info: TensorInfo, order: torch.Tensor | None, rows: slice, columns: slice) -> Weight:
        """Some rows and columns of a matrix; ``order`` is as :meth:`_row_order` returns it."""
        places = None if order is None else order[rows]
        if places is not None:  # those of whole heads are neighbours, too
            rows = slice(int(places.min()), int(places.max()) + 1)
            places = places - rows.start
        if info.block.bits is None:
            numbers = self._numbers(info, rows)[:, columns]
            return numbers if places is None else numbers[places]
        part = self._quantized(info, rows, columns)
        return part if places is None else part.each(lambda tensor: tensor[places])

    def _numbers(self, info: TensorInfo, rows: slice) -> torch.Tensor:
        return read_numbers(info.type, self._stored(info, rows.start, rows.stop))

    def _quantized(self, info: TensorInfo, rows: slice, columns: slice) -> QuantizedRows:
        rows_at_a_time = max(_CHUNK_BYTES // info.row_bytes, 1)
        block = info.block
        first_block, end_block = columns.start // block.elements, -(-columns.stop // block.elements)
        in_row = slice(first_block * block.num_bytes, end_block * block.num_bytes)
        left_out = first_block * block.elements
        num_rows, whole = rows.stop - rows.start, None
        for first in range(rows.start, rows.stop, rows_at_a_time):
            end = min(first + rows_at_a_time, rows.stop)
            part = read_quantized(info.type, self._stored(info, first, end)[:, in_row])
            part = part.columns(columns.start - left_out, columns.stop - left_out)
            if end - first == num_rows:
                return part
            if whole is None:
                whole = part.each(lambda tensor: tensor.new_empty(num_rows, tensor.shape[1]))
            _copy(part, whole.part(first - rows.start, end - rows.start))
        assert whole is not None, "no part is empty"
        return whole

    def _stored(self, info: TensorInfo, first: int, end: int) -> torch.Tensor:
        """Bytes of some rows, uint8 ``[rows, row_bytes]``."""
        return torch.from_numpy(self._file.read_rows(info, first, end - first))

    def _row_order(self, name: str, info: TensorInfo) -> torch.Tensor | None:
        """Which stored row each row of a checkpoint is, if they differ.

        Some have the two halves of each head of queries and keys interleaved, for a rotation of neighbours.
        """
        is_query, is_key = ".q_proj." in name, ".k_proj." in name
        if not (is_query or is_key) or self._architecture not in NEIGHBOURS_ROTATE:
            return None
        if len(info.shape) > 2:
            raise StartupError(f"tensor {info.name} is neither matrix nor vector but {list(info.shape)}")
        facts = self._config.attention_shapes()[0]  # all layers of these have the same heads
        num_heads = facts.num_heads if is_query else facts.num_kv_heads
        rows = info.shape[0] if len(info.shape) == 2 else info.shape[-1]
        if rows != num_heads * facts.head_dim:
            raise StartupError(f"tensor {info.name} has {rows} rows in place of {num_heads * facts.head_dim}")
        return torch.arange(rows).view(num_heads, -1, 2).transpose(1, 2).reshape(-1)


def _hf_name(name: str, layer_names: Mapping[str, str]) -> str:
    """Return the Hugging Face name of a tensor; a name that is not known stays as it is."""
    match = _LAYER_TENSOR.fullmatch(name)
    if match is not None and match[2] in layer_names:
        module = layer_names[match[2]]
        return f"model.layers.{match[1]}.{module}{'' if module in _PARAMETERS else f'.{match[3]}'}"
    return _NAMES.get(name, name)


def _experts_apart(name: str, info: TensorInfo) -> Iterator[tuple[str, TensorInfo]]:
    """Yield a tensor under its name, or the parts of one with the matrices, or the biases, of a layer's experts."""
    match = _LAYER_TENSOR.fullmatch(name)
    if match is None or match[2] not in _EXPERT_NAMES or len(info.shape) != (3 if match[3] == "weight" else 2):
        yield name, info
        return
    num_bytes = info.num_bytes // info.shape[0]
    for expert in range(info.shape[0]):
        own = f"model.layers.{match[1]}.mlp.experts.{expert}.{_EXPERT_NAMES[match[2]]}.{match[3]}"
        yield own, replace(info, shape=info.shape[1:], offset=info.offset + expert * num_bytes)


def _copy(source: QuantizedRows, target: QuantizedRows) -> None:
    target.codes.copy_(source.codes)
    target.scales.copy_(source.scales)
    if target.minimums is not None and source.minimums is not None:
        target.minimums.copy_(source.minimums)
