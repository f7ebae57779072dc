"""A whole model with Triton's kernels instead of torch's operations, in the interpreter or on a GPU."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bough.config.model_facts import KVLayout
from bough.layers.attention.radix_attention import RadixAttention
from bough.mem_cache.kv_pool import KVPool
from tests.model_executor.plan_builder import PlanBuilder, RecordingRunner, int32, make_runner
from tests.model_executor.test_model_runner import prompt
from tests.models.checkpoints import Checkpoint, save_checkpoint
from tests.models.test_against_transformers import CASES
from tests.tables import table

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

from bough.layers.attention.triton import TritonBackend
from tests.triton_interpreter import same_bits_in_every_row  # noqa: F401 (a fixture)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    shape = {"head_dim": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Qwen3", **shape)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every layer uses Triton's kernels, wherever its tensors are; little is computed to measure memory."""
    from bough.kernels.triton import elementwise, sampling

    modules = {"elementwise": elementwise, "sampling": sampling}
    monkeypatch.setattr("bough.model_executor.runner_memory._MEASURED_TOKENS_ON_CPU", 1)
    layers = ("norm", "activation", "linear_method", "sampler", "logprobs")
    for user in (*(f"layers.{layer}" for layer in layers), "sampling.penalties"):
        monkeypatch.setattr(f"bough.{user}.kernels_for", lambda x, name: modules[name])


def triton_runner(path: Path, **options: Any) -> RecordingRunner:
    return make_runner(path, native=False, attention_backend="triton", **options)


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


@pytest.mark.usefixtures("fused")
@table("case", ["gemma3", "gpt-oss", "phi3-long", "ministral3", "smollm3-windows"])
def test_families_with_parts_of_their_own_match_transformers(
    tmp_path_factory: pytest.TempPathFactory, case: str
) -> None:
    """Norms with offsets and sums of norms, several rotations or none, partial and scaled ones, windows by layer."""
    family, overrides = CASES[case]
    checkpoint = save_checkpoint(tmp_path_factory.mktemp(case), family, **overrides)
    builder = PlanBuilder(triton_runner(checkpoint.path))
    sequence = builder.add(prompt(15))
    builder.generate(sequence, 3, chunks=[11])
    reference = checkpoint.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
    assert float((torch.stack(sequence.logits) - reference).abs().max()) <= 1e-4


def test_decode_rows_without_scratch_memory_for_all_have_the_same_bits_in_groups() -> None:
    pool = KVPool(max_total_tokens=512, page_size=16, layout=KVLayout(1, 1, 64), dtype=torch.float32, device=CPU)
    torch.manual_seed(0)
    for buffer in (pool.get_key_buffer(0), pool.get_value_buffer(0)):
        buffer.normal_()
    table = torch.randperm(512, dtype=torch.int32).repeat(4, 1)
    q = torch.randn(4, 2, 64)
    # The first row sees two pieces of keys, but with a window only the latter of them.
    rows = {"req_slots": int32(0, 1, 2, 3), "prefix_lens": int32(280, 5, 6, 7), "extend_lens": int32(1, 1, 1, 1)}
    plan: Any = SimpleNamespace(num_decode_rows=4, **rows)
    found: dict[int, list[torch.Tensor]] = {}
    for room, groups in ((8, [slice(0, 4)]), (2, [slice(0, 1), slice(1, 3), slice(3, 4)])):
        backend = TritonBackend(pool, [None, 20], 2, max_pieces=room)
        metadata = backend.init_forward_metadata(plan, table)
        assert [each.rows for each in metadata.decode] == groups
        layers = [RadixAttention(2, 64, 1, 0, sliding_window=window) for window in (None, 20)]
        found[room] = [backend.forward_decode(q, layer, metadata) for layer in layers]
    assert all(torch.equal(*each) for each in zip(*found.values(), strict=True))
    assert not torch.equal(*found[2])


@pytest.mark.usefixtures("same_bits_in_every_row")
@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(
    "quantization", ["none", *(pytest.param(each, marks=pytest.mark.slow) for each in ("int4", "fp8"))]
)
def test_deterministic_rows_have_the_same_bits_alone_among_others_cut_and_as_part_of_a_prompt(
    checkpoint: Checkpoint, quantization: str
) -> None:
    runner = triton_runner(checkpoint.path, enable_deterministic_inference=True, quantization=quantization)
    builder = PlanBuilder(runner)
    alone = builder.add(prompt(21))
    tokens = builder.generate(alone, 3)
    other, again = builder.add(prompt(13, seed=1)), builder.add(prompt(21))
    builder.step([(other, 12), (again, 10)])
    builder.step([(again, 10), (other, 1)])
    while len(again.output) < 3:
        builder.step([(other, 1), (again, 1)])
    assert again.output == tokens
    assert torch.equal(torch.stack(again.logits), torch.stack(alone.logits))
    # The last token of a prompt that has what was generated above.
    longer = builder.add([*prompt(21), *tokens[:2]])
    builder.generate(longer, 1, chunks=[5])
    assert torch.equal(longer.logits[0], alone.logits[2])
    if quantization == "none":
        reference = checkpoint.logits(alone.tokens[:-1])[alone.prompt_len - 1 :]
        assert float((torch.stack(alone.logits) - reference).abs().max()) <= 1e-4
