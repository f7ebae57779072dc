from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from benchmarks.peers import llama_tools
from benchmarks.peers.cells import Cell
from benchmarks.peers.fairness import at_random, behind_a_long_one, traffic
from benchmarks.peers.identity import agreeing_tokens
from benchmarks.peers.random_checkpoint import make_tokenizer, write_checkpoint
from benchmarks.peers.runners import WorkerRunner
from benchmarks.peers.shapes import SHAPES, tensor_shapes
from benchmarks.peers.worker import decode
from benchmarks.peers.write_gguf import write as write_gguf

from bough.errors import StartupError
from bough.tokenization.loading import load_tokenizer
from tests.model_executor.plan_builder import PlanBuilder, make_runner
from tests.native import needs_native
from tests.tables import table

MODEL = Path("model.gguf")


def test_llama_bench_computes_a_prompt_and_every_repetition_counts() -> None:
    command = llama_tools.bench_command(Cell("qwen", "bf16", "prefill", 1, 7), MODEL, 2, 1)
    assert command == ["-m", "model.gguf", "-t", "2", "-p", "512", "-n", "0", "-r", "1", "-o", "json"]
    assert llama_tools.parse_bench(json.dumps([{"n_prompt": 512, "samples_ts": [500.5, 510]}])) == [500.5, 510.0]


def test_llama_bench_decodes_behind_a_long_context() -> None:
    command = llama_tools.bench_command(Cell("qwen", "bf16", "4k", 1, 7), MODEL, 2, 7)
    assert command[4:] == ["-p", "0", "-n", "9", "-d", "4096", "-r", "7", "-o", "json"]


@pytest.mark.parametrize("batch", [1, 8, 32])
def test_batched_bench_decodes_around_160_tokens(batch: int) -> None:
    command = llama_tools.batched_bench_command(Cell("qwen", "bf16", "decode", batch, 7), MODEL, 2)
    prompt, steps, sequences = (int(command[command.index(flag) + 1]) for flag in ("-npp", "-ntg", "-npl"))
    assert prompt + steps / 2 == 160
    assert sequences == batch
    assert int(command[command.index("-c") + 1]) >= batch * (prompt + steps)


def test_batched_bench_rate_is_that_of_decoding() -> None:
    line = {"n_kv_max": 512, "pl": 8, "speed_pp": 600.0, "speed_tg": 123.5, "speed": 200.0}
    assert llama_tools.parse_batched_bench(f"load: something\n{json.dumps(line)}\n") == 123.5


def test_outputs_agree_up_to_the_first_difference() -> None:
    assert agreeing_tokens([[1, 2, 3], [4, 5, 6], [7]], [[1, 2, 9], [4, 5, 6], [8]]) == [2, 3, 0]


def test_shapes_are_those_of_the_real_models() -> None:
    real = {"qwen": 494_032_768, "llama": 1_235_814_400, "gemma": 999_885_952}
    assert {name: sum(map(_product, tensor_shapes(SHAPES[name]).values())) for name in real} == real


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product


SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 20_480,
    "bos_token_id": 20_479,
    "eos_token_id": 20_479,
    "initializer_range": 0.3,
}
SMALL_GEMMA = {
    "head_dim": 32,
    "query_pre_attn_scalar": 32,
    "num_hidden_layers": 6,
    "sliding_window": 5,
    "layer_types": SHAPES["gemma"]["layer_types"][:6],
}


@table("name, more", [("qwen", {}), ("llama", {"head_dim": 16}), ("gemma", SMALL_GEMMA)])
def test_forms_of_a_shape_compute_the_same(
    tmp_path_factory: pytest.TempPathFactory, name: str, more: dict[str, Any]
) -> None:
    directory = tmp_path_factory.mktemp(name)
    write_checkpoint(directory / "hf", {**SHAPES[name], **SMALL, **more})
    write_gguf(directory / "hf", directory / "model.gguf")
    tokens = list(range(7, 27))
    found = []
    for path in (directory / "hf", directory / "model.gguf"):
        builder = PlanBuilder(make_runner(path, dtype="float32", native=False))
        sequence = builder.add(tokens)
        builder.generate(sequence, 3)
        found.append(torch.stack(sequence.logits))
    reference = transformers.AutoModelForCausalLM.from_pretrained(directory / "hf", dtype=torch.float32)
    expected = reference(torch.tensor([tokens])).logits[0, -1]
    assert torch.equal(*found)
    torch.testing.assert_close(found[0][0], expected, rtol=0, atol=1e-3)


def test_made_up_tokenizer_fills_the_vocabulary_and_gives_text_back(tmp_path: Path) -> None:
    tmp_path.joinpath("tokenizer.json").write_text(json.dumps(make_tokenizer(20_480)))
    tmp_path.joinpath("tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    tokenizer = load_tokenizer(str(tmp_path))
    assert len(json.loads(tmp_path.joinpath("tokenizer.json").read_text())["model"]["vocab"]) == 20_480
    assert tokenizer.decode(tokenizer.encode("Grüße, Baum! zzz")) == "Grüße, Baum! zzz"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny"
    write_checkpoint(path, SHAPES["tiny"])
    return path


@needs_native
def test_worker_measures_bough_step_by_step_and_lets_go_of_its_requests(checkpoint: Path) -> None:
    runner = WorkerRunner(Path(sys.executable), "bough", checkpoint, "bf16", threads=1, vocab_size=20_480)
    try:
        assert runner.facts["weight_bytes"] > 0
        assert runner.facts["threads"] == 1
        cells = [Cell("tiny", "bf16", "decode", batch, 2) for batch in (8, 32)]
        for cell in (Cell("tiny", "bf16", "prefill", 1, 2), *cells):
            runner.begin(cell)
            assert runner.measure(cell) > 0
            runner.end(cell)
        prompts = [[1, 2, 3, 4 + i] for i in range(3)]
        outputs = runner.ask("generate", prompts=prompts, max_tokens=5)["outputs"]
        assert [len(output) for output in outputs] == [5, 5, 5]
        assert runner.ask("serve", prompts=prompts, max_tokens=5, concurrency=2)["seconds"] > 0
        moments = [0.0, 0.0, 0.2]
        times = runner.ask("arrive", moments=moments, prompts=prompts, max_tokens=[5, 1, 2])["times"]
        assert [len(each) for each in times] == [5, 1, 2]
        assert all(each[0] > at and each == sorted(each) for at, each in zip(moments, times, strict=True))
    finally:
        runner.close()


def test_the_same_requests_arrive_at_the_same_moments_at_every_engine() -> None:
    job = traffic(1000, 50)
    assert at_random(job, 2.0, 7) == at_random(job, 2.0, 7) != at_random(job, 2.0, 8)
    arrivals = at_random(job, 2.0, 7)
    assert 15 < arrivals[-1].at < 35
    assert {128 <= len(each.request.input_ids or ()) <= 256 for each in arrivals} == {True}


def test_short_requests_come_behind_a_long_one_in_the_order_of_their_moments() -> None:
    arrivals = behind_a_long_one(1000, 3)
    assert [each.at for each in arrivals] == sorted(each.at for each in arrivals)
    sizes = [len(each.request.input_ids or ()) for each in arrivals]
    assert sizes.count(8192) == 1
    assert all(each.at > arrivals[sizes.index(8192)].at for each in arrivals if each.is_timed)


class _OneTokenAStep:
    """An engine that decodes one sequence at a time."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}

    def add(self, key: int, prompt: list[int], max_tokens: int) -> None:
        del key, prompt, max_tokens

    def step(self) -> dict[int, list[int]]:
        return {0: [1]}

    def drop(self) -> None:
        pass


def test_steps_that_do_not_decode_the_whole_batch_are_no_measurement() -> None:
    assert decode(_OneTokenAStep(), 4, 1)["tokens"] == 4
    with pytest.raises(RuntimeError, match="4 steps of 32 sequences made 4 tokens, not 128"):
        decode(_OneTokenAStep(), 4, 32)


@needs_native
def test_worker_that_cannot_open_its_engine_says_why(checkpoint: Path) -> None:
    with pytest.raises(StartupError, match="quantization must be one of"):
        WorkerRunner(Path(sys.executable), "bough", checkpoint, "int3", threads=1, vocab_size=20_480)
