from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch
import transformers
from safetensors.torch import save_file

from bough import plugins
from bough.config.architectures import supported_architectures
from bough.config.engine_args import bundled_model_path
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.models.llama import LlamaMLP
from bough.parsers.dialect import find_reasoning_format, find_tool_format, make_dialect
from tests.e2e.server import running_server
from tests.in_process import output_of
from tests.model_executor.plan_builder import PlanBuilder, make_runner
from tests.native import needs_native
from tests.tables import table

SITE = Path(__file__).parent / "site"
WEATHER = {
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"warm": {"type": "boolean"}}, "required": ["warm"]},
}
TOOLS = [{"type": "function", "function": WEATHER}]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example package, beside Bough."""
    monkeypatch.syspath_prepend(str(SITE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SITE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    plugins.declared.cache_clear()
    yield
    plugins.declared.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "bough_example"]:
        del sys.modules[name]


def garden(directory: Path, architecture: str = "GardenForCausalLM") -> Path:
    """The bundled model, under another architecture's name."""
    path = directory / "garden"
    shutil.copytree(bundled_model_path(), path)
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "architectures": [architecture]}))
    return path


def test_nothing_is_there_unless_it_is_installed() -> None:
    assert "GardenForCausalLM" not in supported_architectures()
    with pytest.raises(ConfigError, match="no tool-call parser 'arrow'"):
        find_tool_format("arrow")


@pytest.mark.usefixtures("installed")
def test_names_of_other_packages_are_known_and_nothing_is_imported_for_it() -> None:
    assert "GardenForCausalLM" in supported_architectures()
    ServerArgs(tool_call_parser="arrow", reasoning_parser="musing")
    with pytest.raises(ConfigError, match=r"must be one of .*arrow.* \(did you mean 'arrow'\?\), got arow"):
        ServerArgs(tool_call_parser="arow")
    with pytest.raises(ConfigError, match=r"pythonic.*arrow"):
        ServerArgs(tool_call_parser="bow")
    assert not any(name.startswith("bough_example") for name in sys.modules)


@pytest.mark.usefixtures("installed")
def test_parsers_of_another_package_read_calls_and_thoughts() -> None:
    assert find_reasoning_format("musing").start == "(muses: "
    assert find_tool_format("arrow").name == "arrow"
    assert make_dialect(None, tool_call_parser="arrow", reasoning_parser="musing").tool_format is not None


@pytest.mark.usefixtures("installed")
def test_what_is_no_parser_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no_format of bough-example \(.*:CALL\) is no ToolFormat"):
        find_tool_format("no_format")


@pytest.mark.usefixtures("installed")
def test_a_model_of_another_package_may_bring_a_reader_for_its_configuration(tmp_path: Path) -> None:
    path = garden(tmp_path, "OrchardForCausalLM")
    silent = {"max_position_embeddings": None, "sliding_window": None, "head_dim": None}
    content = {key: value for key, value in json.loads((path / "config.json").read_text()).items() if key not in silent}
    (path / "config.json").write_text(json.dumps(content))
    config = ModelConfig.from_path(str(path))
    assert (config.context_len, config.kv_layout().head_dim) == (8192, 128)
    with pytest.raises(ConfigError, match=r"config\.json: tree_layout must be rows, got 'circle'"):
        ModelConfig.from_path(str(path), json_model_override_args={"tree_layout": "circle"})
    plain = ModelConfig.from_path(str(path), json_model_override_args={"architectures": ["GardenForCausalLM"]})
    assert (plain.context_len, plain.kv_layout().head_dim) == (2048, plain.hidden_size // plain.num_query_heads())
    assert "bough_example.models" not in sys.modules


@pytest.mark.usefixtures("installed")
def test_what_is_no_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ThornForCausalLM of bough-example \(.*:CALL\) is no FamilyReader"):
        ModelConfig.from_path(str(garden(tmp_path, "ThornForCausalLM")))


@pytest.mark.usefixtures("installed")
def test_a_model_that_cannot_be_imported_ends_the_start_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bough", "generate", "--model-path", str(garden(tmp_path, "BrokenForCausalLM"))]
    done = subprocess.run([*command, "--prompt", "x"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert "BrokenForCausalLM of bough-example (bough_example.absent:BrokenForCausalLM) cannot be imported" in line


@pytest.mark.usefixtures("installed")
def test_a_model_of_another_package_computes_what_is_its_own(tmp_path: Path) -> None:
    """Biases in its feed-forward networks, which no Qwen3 has."""
    path = garden(tmp_path)
    reference = transformers.Qwen3ForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(0)
    for layer in reference.model.layers:
        for linear in (layer.mlp.gate_proj, layer.mlp.up_proj, layer.mlp.down_proj):
            linear.bias = torch.nn.Parameter(torch.randn(linear.out_features, generator=generator) / 4)
    tensors = {name: tensor for name, tensor in reference.state_dict().items() if name != "lm_head.weight"}
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "mlp_bias": True}))
    builder = PlanBuilder(make_runner(path, dtype="float32"))
    sequence = builder.add(list(range(400, 420)))
    output = builder.generate(sequence, 8)
    with torch.no_grad():
        logits = reference(torch.tensor([sequence.tokens])).logits[0, sequence.prompt_len - 1 : -1]
    assert output == logits.argmax(-1).tolist()
    torch.testing.assert_close(torch.stack(sequence.logits), logits, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("installed")
@needs_native
@table("architecture", ["MossForCausalLM", "FernForCausalLM"])
def test_a_model_that_native_programs_lack_an_operation_for_is_computed_by_torch_and_the_log_says_so_once(
    architecture: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = garden(tmp_path / architecture, architecture)
    for options in ({"quantization": "int8"}, {"kv_cache_dtype": "int8"}, {"bind_threads": True}):
        with pytest.raises(ConfigError, match="native CPU kernels"):
            make_runner(path, dtype="float32", **options)
    caplog.clear()
    runner = make_runner(path, dtype="float32")
    assert runner.threads is None
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING)
    assert {"MossForCausalLM": "sharp_silu", "FernForCausalLM": "FernForCausalLM"}[architecture] in warning
    builders = PlanBuilder(runner), PlanBuilder(make_runner(bundled_model_path(), dtype="float32", native=False))
    theirs, plain = (builder.add(list(range(400, 420))) for builder in builders)
    for builder, sequence in zip(builders, (theirs, plain), strict=True):
        builder.generate(sequence, 3)
    difference = float((theirs.logits[0] - plain.logits[0]).abs().max())
    assert difference > 1e-2
    if architecture == "FernForCausalLM":
        torch.testing.assert_close(2 * theirs.logits[0], plain.logits[0])


def test_a_block_that_brings_what_is_not_called_is_refused() -> None:
    for name in ("forward", "record"):
        with pytest.raises(TypeError, match="run"):
            type("Block", (LlamaMLP,), {name: lambda self, x: x})


@pytest.mark.usefixtures("installed")
def test_a_server_serves_a_model_and_parsers_of_another_package(tmp_path: Path) -> None:
    question = "How tall does an oak grow?"
    flags = ("--tool-call-parser", "arrow", "--cpu-threads", "1", "--dtype", "float32")
    with running_server(tmp_path, str(garden(tmp_path)), *flags) as server:
        url = f"{server.url}/v1/chat/completions"
        body = {"model": "x", "messages": [{"role": "user", "content": question}], "temperature": 0}
        answer = httpx.post(url, json=body, timeout=30).json()["choices"][0]["message"]["content"]
        called = httpx.post(
            url, json={**body, "tools": TOOLS, "tool_choice": "required", "max_tokens": 200}, timeout=30
        )
        calls = called.json()["choices"][0]["message"]["tool_calls"]
        name = calls[0]["function"]["name"]
        assert name in {tool["function"]["name"] for tool in TOOLS}
        text = f'Well. => {{"name": "{name}", "arguments": {{}}}} <='
        body = {"text": text, "tools": TOOLS, "tool_call_parser": "arrow"}
        parsed = httpx.post(f"{server.url}/parse_function_call", json=body, timeout=30).json()
        assert parsed["calls"][0]["name"] == name
        body = {"text": "(muses: Hm.) Yes.", "reasoning_parser": "musing"}
        parsed = httpx.post(f"{server.url}/separate_reasoning", json=body, timeout=30).json()
        assert (parsed["reasoning_text"], parsed["text"].strip()) == ("Hm.", "Yes.")
        server.assert_idle_and_whole()
    prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    assert answer == output_of(prompt, {"temperature": 0, "max_new_tokens": 500}, dtype="float32").text != ""
