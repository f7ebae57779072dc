"""A whole model with Triton's kernels instead of torch's operations, in the interpreter or on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, make_runner
from tests.model_executor.test_model_runner import prompt
from tests.models.checkpoints import Checkpoint, save_checkpoint

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    shape = {"head_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Qwen3", **shape)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layer uses Triton's kernels, wherever its tensors are; little is computed to measure memory."""
    from bough.kernels.triton import elementwise, sampling

    modules = {"elementwise": elementwise, "sampling": sampling}
    monkeypatch.setattr("bough.model_executor.model_runner._MEASURED_TOKENS_ON_CPU", 1)
    for user in ("layers.norm", "layers.activation", "layers.linear_method", "layers.sampler", "sampling.penalties"):
        monkeypatch.setattr(f"bough.{user}.kernels_for", lambda x, name: modules[name])


def triton_runner(path: Path) -> RecordingRunner:
    return make_runner(path, native=False, attention_backend="triton")


@pytest.mark.usefixtures("fused")
def test_prompts_in_chunks_and_decode_rows_match_transformers(checkpoint: Checkpoint) -> None:
    builder = PlanBuilder(triton_runner(checkpoint.path))
    long, short = builder.add(prompt(20)), builder.add(prompt(4, seed=1))
    builder.step([(long, 13), (short, 4)])
    builder.step([(short, 1), (long, 7)])
    builder.step([(long, 1), (short, 1)])
    for sequence in (long, short):
        reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
        assert sequence.output == reference.argmax(-1).tolist()
        assert float((torch.stack(sequence.logits) - reference).abs().max()) <= 1e-4
