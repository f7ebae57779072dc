"""The whole server without a model: every token over the wire is checked against what its prompt alone determines."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from bough_fake.model import expected_tokens
from bough_fake.worker import FAKE_ARCHITECTURE
from tests.e2e.server import running_server
from tests.scheduler.harness import prompt_of
from tests.tokenization.small_tokenizers import byte_level_bpe

STREAMS = 128
TOKENS = 60
CONFIG = {
    "architectures": [FAKE_ARCHITECTURE],
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "max_position_embeddings": 1024,
}


def make_checkpoint(directory: Path, **settings: float) -> int:
    """Make a checkpoint of the fake model, which behaves as the settings say; return the size of its vocabulary."""
    tokenizer = byte_level_bpe()
    vocab_size = tokenizer.get_vocab_size()
    config = {**CONFIG, "vocab_size": vocab_size, "bough_fake": settings}
    directory.joinpath("config.json").write_text(json.dumps(config))
    tokenizer.save(str(directory / "tokenizer.json"))
    return vocab_size


async def stream_all(url: str, prompts: list[list[int]]) -> list[list[int]]:
    async with aiohttp.ClientSession() as session:

        async def one(prompt: list[int]) -> list[int]:
            sampling = {"temperature": 0, "max_new_tokens": TOKENS, "ignore_eos": True}
            body = {"input_ids": prompt, "stream": True, "sampling_params": sampling}
            async with session.post(f"{url}/generate", json=body) as response:
                assert response.status == 200
                lines = [line async for line in response.content if line.startswith(b"data: {")]
            return json.loads(lines[-1][6:])["output_ids"]

        return await asyncio.gather(*(one(prompt) for prompt in prompts))


@pytest.mark.one_scheduler
def test_many_streams_of_a_real_server_are_exact_in_a_tiny_pool(tmp_path: Path) -> None:
    # So long that all clients have come before the first of them leaves.
    vocab_size = make_checkpoint(tmp_path, seconds_per_step=0.02)
    shared = prompt_of(64, 0, vocab_size)
    prompts = [shared[: 16 * (i % 5)] + prompt_of(5 + i % 7, i, vocab_size) for i in range(STREAMS)]
    flags = ["--model-path", str(tmp_path), "--max-total-tokens", "4096", "--schedule-conservativeness", "0.1"]
    with running_server(tmp_path, *flags, "--page-size", "16") as server:
        outputs = asyncio.run(stream_all(server.url, prompts))
        for prompt, output in zip(prompts, outputs, strict=True):
            assert output == expected_tokens(prompt, TOKENS, vocab_size)
        assert server.state()["num_retracted_total"] > 0, "the pool was meant to run out"
        server.assert_idle_and_whole()
