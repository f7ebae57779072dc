from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf import GGMLQuantizationType as Kind

from bough.config.model_config import ModelConfig
from bough.config.ranks import MachineShare
from bough.config.server_args import ServerArgs
from bough.errors import StartupError
from bough.kernels.host_memory import HugePageArena, OutlineArena
from bough.model_executor import machine
from bough.model_executor.encoder_worker import EncoderWorker
from bough.model_executor.weight_memory import check_weights_fit, weight_bytes
from tests.config.test_model_config import config_of
from tests.model_executor.plan_builder import make_runner
from tests.model_loader.test_quantized_source import make
from tests.models.checkpoints import save_checkpoint
from tests.models.gguf_files import write_gguf
from tests.models.vector_checkpoints import save_vector_checkpoint
from tests.native import needs_native

GIB = 2**30


def limit(monkeypatch: pytest.MonkeyPatch, num_bytes: int) -> None:
    monkeypatch.setattr(machine.Machine, "available", lambda _: (num_bytes, "on this machine"))


def forbid_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: Any) -> None:
        raise AssertionError("memory was taken for weights")

    monkeypatch.setattr(HugePageArena, "zeros", taken)
    monkeypatch.setattr("bough.model_executor.loaded_model.load_model", taken)
    monkeypatch.setattr("bough.model_executor.encoder_worker.load_model", taken)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"native": False}, id="torch"),
        pytest.param({}, id="native", marks=needs_native),
        pytest.param({"quantization": "int8"}, id="int8", marks=needs_native),
        pytest.param({"quantization": "int4"}, id="int4", marks=needs_native),
    ],
)
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_what_is_announced_is_what_is_taken(tmp_path: Path, options: dict[str, Any], tied: bool) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen2", tie_word_embeddings=tied)
    runner = make_runner(checkpoint.path, **options)
    outline = runner.choice.weights.method(None, options.get("quantization", "none"), OutlineArena())
    assert weight_bytes(runner.config, outline) == runner.weight_bytes > 0


@needs_native
def test_a_gguf_file_takes_what_its_own_formats_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = save_checkpoint(tmp_path / "hf", "Llama", hidden_size=256, intermediate_size=512)
    write_gguf(tmp_path / "model.gguf", original, Kind.Q4_K)
    with caplog.at_level("INFO"):
        taken = make_runner(tmp_path / "model.gguf").weight_bytes
    assert any(" GB as the checkpoint's codes; " in message for message in caplog.messages)
    limit(monkeypatch, taken - 1)
    with pytest.raises(StartupError, match=r"weights need .* available on this machine; free memory, or take"):
        make_runner(tmp_path / "model.gguf", max_total_tokens=None)


@needs_native
@pytest.mark.parametrize("case", ["gptq 4 bits", "awq", "integers"])
def test_so_does_a_checkpoint_that_is_quantised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    path = make(tmp_path, case).path
    taken = make_runner(path).weight_bytes
    limit(monkeypatch, taken - 1)
    with pytest.raises(StartupError, match=r"weights need .*; free memory, or take"):
        make_runner(path, max_total_tokens=None)


def test_a_model_of_terabytes_is_refused_with_the_numbers_before_anything_is_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_memory(monkeypatch)
    large = {"hidden_size": 16384, "intermediate_size": 65536, "num_hidden_layers": 200, "num_attention_heads": 128}
    config_of(tmp_path, {**large, "num_key_value_heads": 128})
    with pytest.raises(
        StartupError, match=r"^the weights need 160\d\.\d\d GiB, and [\d.]+ GiB are available .*; .*free"
    ):
        make_runner(tmp_path, load_format="dummy", max_total_tokens=None)


@needs_native
def test_only_what_would_help_is_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_memory(monkeypatch)
    config_of(tmp_path, {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 20})
    limit(monkeypatch, GIB)
    with pytest.raises(StartupError) as caught:
        make_runner(tmp_path, dtype="float32", load_format="dummy", max_total_tokens=None)
    message = caught.value.message
    assert "1.00 GiB are available on this machine" in message
    assert "use --quantization int4 (then 0." in message
    assert "--dtype" not in message
    assert "int8" not in message


def test_who_says_how_large_the_cache_is_is_warned_and_not_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    checkpoint = save_checkpoint(tmp_path, "Qwen2")
    limit(monkeypatch, 1000)
    with pytest.raises(StartupError, match=r"^--max-total-tokens 64 needs"):
        make_runner(checkpoint.path, max_total_tokens=64)  # the weights are loaded by then
    assert "the weights need 0.00 GiB, and 0.00 GiB are available on this machine" in caplog.text
    assert "tried all the same" in caplog.text


def test_an_encoder_is_refused_likewise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_memory(monkeypatch)
    save_vector_checkpoint(tmp_path, "BertModel")
    limit(monkeypatch, 1000)
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    args = ServerArgs(model_path=str(tmp_path), device="cpu")
    with pytest.raises(StartupError, match="weights need"):
        EncoderWorker(args, config)


def test_a_replica_is_refused_what_only_the_whole_machine_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_memory(monkeypatch)
    save_vector_checkpoint(tmp_path, "BertModel")
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    args = ServerArgs(model_path=str(tmp_path), device="cpu")
    with pytest.raises(StartupError, match="weights need"):
        EncoderWorker(args, config, MachineShare(0, 2, memory=2))


def test_a_graphics_card_is_asked_for_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (2 * GIB, 8 * GIB))
    check_weights_fit(torch.device("cuda:0"), 2 * GIB)
    with pytest.raises(StartupError, match=r"need 3\.00 GiB, and 2\.00 GiB are available on cuda:0; .*smaller model"):
        check_weights_fit(torch.device("cuda:0"), 3 * GIB)


def test_dtype_decides_about_the_size(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    assert weight_bytes(replace(config, dtype="float32")) == 2 * weight_bytes(replace(config, dtype="bfloat16"))


def test_measuring_does_not_import_torchs_compiler() -> None:
    """Some functions of the meta device import it: a second at every start, and a hundred megabytes."""
    program = """
import sys
from bough.config.model_config import ModelConfig
from bough.model_executor.weight_memory import weight_bytes
assert weight_bytes(ModelConfig.from_path(sys.argv[1])) > 0
assert "torch._dynamo" not in sys.modules
"""
    sapling = resources.files("bough") / "assets" / "sapling"
    subprocess.run([sys.executable, "-c", program, str(sapling)], check=True, timeout=60)
