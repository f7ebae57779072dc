"""Parts of matrices that are cut before they are unpacked have the numbers of the whole."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from bough.config.model_config import ModelConfig
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.stored_matrix import StoredMatrix
from bough.model_loader.loader import open_source
from bough.observability.progress import Progress
from tests.model_loader.test_quantized_source import CASES, make
from tests.models.checkpoints import save_checkpoint
from tests.models.gguf_files import write_gguf

SPANS = ((0, 32), (32, 96), (40, 57), (64, 128))
"""Also rows that begin and end within a word of codes."""

MATRICES = ("self_attn.q_proj", "self_attn.k_proj", "mlp.gate_proj", "mlp.down_proj")


def matrices(path: Path) -> list[StoredMatrix]:
    """Those of a checkpoint's first layer."""
    source = open_source(ModelConfig.from_path(str(path), device="cpu"), "auto")
    assert source is not None
    weights = dict(source.read(source.files[0], Progress("", 1), ()))
    found = [weights[f"model.layers.0.{name}.weight"] for name in MATRICES]
    assert all(isinstance(each, StoredMatrix) for each in found)
    return [each for each in found if isinstance(each, StoredMatrix)]


def numbers_of(matrix: StoredMatrix) -> torch.Tensor:
    unpacked = matrix.unpacked()
    assert unpacked.shape == matrix.shape
    return unpacked.dequantize() if isinstance(unpacked, QuantizedRows) else unpacked


def expect_parts(matrix: StoredMatrix, group: int) -> None:
    whole = numbers_of(matrix)
    num_rows, num_inputs = whole.shape
    for first, end in SPANS:
        if end <= num_rows:
            assert torch.equal(numbers_of(matrix.part(first, end)), whole[first:end])
        if first % group == 0 and end <= num_inputs:
            assert torch.equal(numbers_of(matrix.columns(first, end)), whole[:, first:end])
            assert torch.equal(numbers_of(matrix.part(3, 11).columns(first, end)), whole[3:11, first:end])


def test_parts_of_codes_in_safetensors(tmp_path: Path) -> None:
    for case, (_, _, _, group, _) in CASES.items():
        for matrix in matrices(make(tmp_path / case, case).path):
            expect_parts(matrix, max(group, 1))


KINDS = (Kind.F16, Kind.Q8_0, Kind.Q4_K, Kind.Q6_K, Kind.Q3_K, Kind.IQ4_XS, Kind.MXFP4)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_parts_of_gguf_files(tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.model_loader.gguf_source._CHUNK_BYTES", 2000)
    original = save_checkpoint(tmp_path / "hf", "Llama", hidden_size=256, intermediate_size=512)
    for matrix in matrices(write_gguf(tmp_path / "model.gguf", original, kind).path):
        expect_parts(matrix, 32)
