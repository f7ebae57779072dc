"""Checkpoints with experts in MXFP4: every number is exactly what its code and its scale stand for."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.model_loader.loader import open_source
from bough.model_loader.microscaling import microscaled_rows
from tests.common_formats import e2m1, e8m0
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint
from tests.models.microscaled_checkpoints import STACKS, pack_pairs, save_microscaled_checkpoint
from tests.native import needs_native

LOGIT_TOLERANCE = 1e-4
MOST_ERROR = 0.2
"""Of logits, relative to their size: what rounding of inputs to 8 bits makes of random weights, whatever the format."""


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_microscaled_checkpoint(tmp_path_factory.mktemp("checkpoint"))


def logits_of(runner: RecordingRunner) -> tuple[list[int], torch.Tensor]:
    """Tokens of a prompt in chunks and what follows it, and the logits of the latter."""
    builder = PlanBuilder(runner)
    sequence = builder.add(random.Random(1).choices(range(VOCAB_SIZE), k=40))
    builder.generate(sequence, 8, chunks=[7, 19])
    return sequence.tokens, torch.stack(sequence.logits)


def test_every_code_with_every_scale_is_what_the_specification_says() -> None:
    codes = torch.arange(16, dtype=torch.uint8).repeat(256, 2)
    exponents = torch.arange(256, dtype=torch.uint8)[:, None]
    rows = microscaled_rows(pack_pairs(codes).flatten(1), exponents)
    expected = torch.tensor([[e2m1(code) * e8m0(exponent) for code in range(16)] * 2 for exponent in range(256)])
    torch.testing.assert_close(rows.dequantize(), expected, rtol=0, atol=0, equal_nan=True)


def test_numbers_are_those_that_transformers_reads(checkpoint: Checkpoint) -> None:
    tensors = load_file(checkpoint.path / "model.safetensors")
    source = open_source(ModelConfig.from_path(str(checkpoint.path)), "auto")
    assert source is not None
    read = dict(source.read(source.files[0], _Silent(), ()))  # type: ignore[arg-type]
    for stack in STACKS:
        layer = "model.layers.1.mlp.experts"
        blocks, scales = (tensors[f"{layer}.{stack}_{part}"] for part in ("blocks", "scales"))
        theirs = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)  # [experts, inputs, rows]
        ours = [read[f"{layer}.{expert}.{stack}.weight"].dequantize() for expert in range(len(blocks))]
        assert torch.equal(torch.stack(ours).mT, theirs)


class _Silent:
    def advance(self, amount: int) -> None:
        """Take no notice."""


def test_logits_are_those_of_the_decoded_model(checkpoint: Checkpoint) -> None:
    tokens, logits = logits_of(make_runner(checkpoint.path, dtype="float32", native=False))
    reference = checkpoint.logits(tokens[:-1])[-len(logits) :]
    assert float((logits - reference).abs().max()) <= LOGIT_TOLERANCE


@needs_native
def test_native_kernels_hold_the_codes_and_lose_what_rounding_of_inputs_loses(checkpoint: Checkpoint) -> None:
    runner = make_runner(checkpoint.path, dtype="float32")
    layer = runner.model.model.layers[1]
    for number, expert in layer.mlp.experts.each():
        assert (expert.gate_up_proj.packed.stored, expert.down_proj.packed.stored) == ("mxfp4", "mxfp4")
        theirs = checkpoint.reference.model.layers[1].mlp.experts
        pairs = theirs.gate_up_proj[number].T
        assert torch.equal(expert.gate_up_proj.packed.read(0, 2 * 96), torch.cat((pairs[::2], pairs[1::2])))
        assert torch.equal(expert.down_proj.packed.read(0, 64), theirs.down_proj[number].T)
    tokens, logits = logits_of(runner)
    reference = checkpoint.logits(tokens[:-1])[-len(logits) :]
    assert float((logits - reference).norm() / reference.norm()) < MOST_ERROR
    stack = runner.live_weights.rows("model.layers.0.mlp.experts.down_proj", 1)
    assert torch.equal(torch.tensor(stack), checkpoint.reference.model.layers[0].mlp.experts.down_proj[:1])


def test_experts_that_are_none_are_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    whole = load_file(checkpoint.path / "model.safetensors")
    (tmp_path / "config.json").write_text((checkpoint.path / "config.json").read_text())
    scales = "model.layers.0.mlp.experts.down_proj_scales"
    for change, said in (({scales: None}, scales), ({scales: whole[scales][:, :-1].contiguous()}, "no experts")):
        tensors = {name: tensor for name, tensor in {**whole, **change}.items() if tensor is not None}
        save_file(tensors, tmp_path / "model.safetensors")
        with pytest.raises(StartupError, match=said):
            make_runner(tmp_path, dtype="float32", native=False)
