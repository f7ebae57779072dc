"""The bundled model as a GGUF file, with nothing beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import openai
import pytest
import transformers
from gguf import GGMLQuantizationType as Kind
from tokenizers import Tokenizer as Backend

from bough.config.engine_args import bundled_model_path
from tests.e2e.server import running_server
from tests.models.checkpoints import Checkpoint
from tests.models.gguf_files import merges_of, vocabulary, write_gguf

QUESTION = [{"role": "user", "content": "Tell me about the oak."}]


def write_bundled_model(path: Path, kind: Kind) -> None:
    directory = bundled_model_path()
    reference = transformers.AutoModelForCausalLM.from_pretrained(directory, dtype="float32")
    backend = Backend.from_file(str(directory / "tokenizer.json"))
    tokenizer = {
        **vocabulary(backend, "gpt2"),
        "ggml.pre": "qwen2",
        "ggml.merges": merges_of(backend),
        "ggml.eos_token_id": backend.token_to_id("<|im_end|>"),
        "ggml.add_bos_token": False,
        "chat_template": json.loads((directory / "tokenizer_config.json").read_text())["chat_template"],
    }
    entries = {f"tokenizer.{key}": value for key, value in tokenizer.items()}
    write_gguf(path, Checkpoint(directory, reference), kind, metadata=entries)


def ask(client: openai.OpenAI) -> str:
    answer = client.chat.completions.create(model="x", messages=QUESTION, temperature=0, max_tokens=60)
    assert answer.choices[0].finish_reason == "stop"
    return answer.choices[0].message.content


@pytest.mark.parametrize(
    ("kind", "flags"), [(Kind.F32, ["--cpu-threads", "1"]), pytest.param(Kind.Q8_0, [], marks=pytest.mark.slow)]
)
def test_a_file_answers_chats_as_the_checkpoint_does(
    tmp_path: Path, openai_client: openai.OpenAI, kind: Kind, flags: list[str]
) -> None:
    path = tmp_path / "sapling.gguf"
    write_bundled_model(path, kind)
    with running_server(tmp_path, "--model-path", str(path), *flags) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
        assert [model.id for model in client.models.list()] == ["sapling"]
        answer = ask(client)
        assert "oak" in answer.lower()
        if kind is Kind.F32:
            assert answer == ask(openai_client)
        server.assert_idle_and_whole()


def test_a_file_that_is_none_ends_the_command_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 60)
    command = [sys.executable, "-m", "bough", "serve", str(path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode != 0
    assert "GGUF version" in result.stderr
    assert "Traceback" not in result.stderr
