"""What loading takes beside the loaded model: one tensor, and of safetensors the file that is mapped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors.torch import load_file, save_file

from bough.config.engine_args import Quantization
from tests.model_loader.test_quantized_source import gptq_in_random_order
from tests.models.checkpoints import save_checkpoint
from tests.models.gguf_files import write_gguf
from tests.models.quantized_checkpoints import gptq, quantize
from tests.native import needs_native

SHAPE = {
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 8192,
}

MEASURE = """
import sys, threading, torch
torch.set_num_threads(1)
from bough.config.model_config import ModelConfig
from bough.config.sharding import ShardSpec
from bough.kernels.thread_pool import ThreadPool
from bough.layers.collectives import ALONE
from bough.layers.sharding import ShardedChoice
from bough.model_executor.weight_choice import WeightChoice
from bough.model_executor.machine import peak_resident_bytes, reset_peak_resident_bytes
from bough.model_loader.loader import load_model, open_source
config = ModelConfig.from_path(sys.argv[1], device="cpu", dtype="bfloat16")
source = open_source(config, "auto")
threads = ThreadPool(1)
torch.zeros(100, 100) @ torch.zeros(100, 100)
cpu = torch.device("cpu")
method = WeightChoice(threads, cpu).method(source, sys.argv[2])
rank, world = int(sys.argv[3]), int(sys.argv[4])
method = method if world == 1 else ShardedChoice(method, ShardSpec(rank, world), ALONE)
before = reset_peak_resident_bytes()
model = load_model(config, source=source, device=cpu, seed=0, method=method)
print(peak_resident_bytes() - before, sum(parameter.nbytes for parameter in model.parameters()))
"""


def measure(path: Path, quantization: Quantization = "none", *, rank: int = 0, num_ranks: int = 1) -> tuple[int, int]:
    """Most memory while one of several ranks loads its part, and memory of its loaded weights, in bytes."""
    # Left to itself, glibc keeps some of the freed blocks of a few megabytes, now more of them and now less.
    settings = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**17)}
    command = [sys.executable, "-c", MEASURE, str(path), quantization, str(rank), str(num_ranks)]
    output = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120, check=False)
    assert output.returncode == 0, output.stderr
    peak, loaded = map(int, output.stdout.split())
    return peak, loaded


def in_shards(path: Path) -> int:
    """Cut the file of a checkpoint in three; the size of the largest."""
    whole = load_file(path / "model.safetensors")
    shards = [f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3)]
    weight_map = {name: shards[index * 3 // len(whole)] for index, name in enumerate(sorted(whole))}
    for shard in shards:
        save_file({name: whole[name] for name in weight_map if weight_map[name] == shard}, path / shard)
    (path / "model.safetensors").unlink()
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return max((path / shard).stat().st_size for shard in shards)


@needs_native
@pytest.mark.parametrize("kind", [pytest.param(Kind.Q8_0, marks=pytest.mark.slow), Kind.Q4_0])
def test_loading_a_gguf_file_takes_one_tensor_beside_the_model(tmp_path: Path, kind: Kind) -> None:
    write_gguf(tmp_path / "model.gguf", save_checkpoint(tmp_path / "hf", "Llama", **SHAPE), kind)
    peak, loaded = measure(tmp_path / "model.gguf")
    largest = SHAPE["vocab_size"] * SHAPE["hidden_size"]
    # Its codes and scales, and 4096 rows of it in float32; the rest is the process's own.
    assert peak < loaded + largest * (1 + 4 / 32) + 4096 * SHAPE["hidden_size"] * 4 + 20 * 2**20


@needs_native
def test_loading_quantised_safetensors_takes_one_file_and_one_tensor_beside_the_model(tmp_path: Path) -> None:
    config = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    shape = {**SHAPE, "vocab_size": 512}
    quantize(save_checkpoint(tmp_path, "Llama", **shape), config, gptq, bits=4, group=128, symmetric=True)
    largest_file = in_shards(tmp_path)
    peak, loaded = measure(tmp_path)
    # Codes, one to a byte, before and after they are put in order.
    assert peak < loaded + largest_file + 2 * SHAPE["hidden_size"] * SHAPE["intermediate_size"] + 2**24


@needs_native
def test_a_rank_unpacks_no_more_codes_than_its_part(tmp_path: Path) -> None:
    config = {"quant_method": "gptq", "bits": 4, "group_size": 128}
    shape = {**SHAPE, "intermediate_size": 32768, "num_hidden_layers": 1, "vocab_size": 512}
    quantize(save_checkpoint(tmp_path, "Llama", **shape), config, gptq, bits=4, group=128, symmetric=True)
    file = (tmp_path / "model.safetensors").stat().st_size
    peak, loaded = measure(tmp_path, rank=1, num_ranks=4)
    # Pages of the file, and a quarter of the codes of a matrix, one to a byte, at most four times.
    assert peak < loaded + file + shape["hidden_size"] * shape["intermediate_size"] + 2**22


@pytest.mark.slow
@needs_native
def test_loading_groups_in_the_order_of_activations_takes_each_number_once(tmp_path: Path) -> None:
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True}
    shape = {**SHAPE, "hidden_size": 1024, "intermediate_size": 10240, "num_hidden_layers": 1, "vocab_size": 512}
    checkpoint = save_checkpoint(tmp_path, "Llama", **shape)
    quantize(checkpoint, config, gptq_in_random_order, bits=4, group=32, symmetric=True)
    file = (tmp_path / "model.safetensors").stat().st_size
    peak, loaded = measure(tmp_path)
    numbers = shape["hidden_size"] * shape["intermediate_size"]
    # In float32, beside the codes that they are made of.
    assert peak < loaded + file + (4 + 1) * numbers + 2**24


@needs_native
@pytest.mark.parametrize("quantization", [pytest.param("int8", marks=pytest.mark.slow), "int4"])
def test_quantising_safetensors_takes_one_file_beside_what_becomes_of_it(
    tmp_path: Path, quantization: Quantization
) -> None:
    save_checkpoint(tmp_path, "Llama", dtype=torch.bfloat16, **{**SHAPE, "vocab_size": 32768})
    largest_file = in_shards(tmp_path)
    peak, loaded = measure(tmp_path, quantization)
    # And 4096 rows in float32.
    assert peak < loaded + largest_file + 4096 * SHAPE["hidden_size"] * 4 + 2**24


@needs_native
def test_a_rank_reads_no_more_of_a_file_than_its_part(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "Llama", dtype=torch.bfloat16, **{**SHAPE, "vocab_size": 32768})
    file = (tmp_path / "model.safetensors").stat().st_size
    for rank in (0, 2):
        peak, loaded = measure(tmp_path, rank=rank, num_ranks=4)
        assert loaded < file / 4 + 2**20
        # Pages of the file that it maps count.
        assert peak < loaded + file / 4 + 2**25
