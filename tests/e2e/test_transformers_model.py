"""A server of a model that transformers computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.server import running_server
from tests.models.transformers_checkpoints import SERVED, save_transformers_checkpoint

PROMPT = list(range(3, 43))
GREEDY = {"temperature": 0, "max_new_tokens": 8, "ignore_eos": True}


@pytest.mark.one_scheduler
def test_server_answers_and_says_what_computes(tmp_path: Path) -> None:
    path = tmp_path / "model"
    model_type, overrides = SERVED["DeepseekV3ForCausalLM"]
    checkpoint = save_transformers_checkpoint(path, model_type, overrides)
    flags = ["--model-path", str(path), "--dtype", "float32", "--cpu-threads", "1", "--page-size", "16"]
    with running_server(tmp_path, *flags, "--skip-tokenizer-init") as server:
        first = server.generate(input_ids=PROMPT, sampling_params=GREEDY)
        again = server.generate(input_ids=PROMPT, sampling_params=GREEDY)
        assert first["output_ids"] == again["output_ids"] == checkpoint.greedy(PROMPT, 8)
        assert (first["meta_info"]["cached_tokens"], again["meta_info"]["cached_tokens"]) == (0, 32)
        info = json.loads(server.client.get("/server_info").content)
        assert (info["model_impl"], info["startup_time"] > 0) == ("transformers", True)
        assert "transformers computes the model" in server.log.read_text()
        server.assert_idle_and_whole()
