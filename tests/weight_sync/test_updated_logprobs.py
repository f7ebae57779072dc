"""An updated engine computes what transformers computes with the new weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from bough import Engine
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.native import needs_native

PROMPT = [(7 * each + 3) % VOCAB_SIZE for each in range(40)]
GREEDY = {"temperature": 0.0, "max_new_tokens": 24, "ignore_eos": True}


def answer(engine: Engine) -> tuple[list[int], list[float]]:
    """Tokens that follow the prompt, and the logprobs of all tokens but the first."""
    found: Any = engine.generate(input_ids=PROMPT, sampling_params=GREEDY, return_logprob=True, logprob_start_len=0)
    told = found["meta_info"]
    entries = [*told["input_token_logprobs"][1:], *told["output_token_logprobs"]]
    assert [entry[1] for entry in entries] == [*PROMPT[1:], *found["output_ids"]]
    return found["output_ids"], [entry[0] for entry in entries]


def logprobs(checkpoint: Checkpoint, tokens: list[int]) -> torch.Tensor:
    """Logprobs of all tokens but the first, by transformers."""
    rows = checkpoint.logits(tokens)[:-1].log_softmax(-1)
    return rows.gather(1, torch.tensor(tokens[1:])[:, None])[:, 0]


@needs_native
def test_logprobs_after_an_update_of_all_weights_are_those_of_transformers(tmp_path: Path) -> None:
    first, second = (save_checkpoint(tmp_path / str(seed), "Qwen2", seed=seed) for seed in range(2))
    options: dict[str, Any] = {"dtype": "float32", "cpu_threads": 1, "max_total_tokens": 512}
    with Engine(model_path=str(first.path), skip_tokenizer_init=True, **options) as engine:
        for checkpoint in (first, second):
            if checkpoint is second:
                done = engine.update_weights_from_tensor(second.reference.state_dict().items())
                assert done.success, done.message
            tokens, found = answer(engine)
            assert tokens == checkpoint.greedy(PROMPT, GREEDY["max_new_tokens"])
            expected = logprobs(checkpoint, [*PROMPT, *tokens])
            torch.testing.assert_close(torch.tensor(found), expected, atol=1e-3, rtol=0.0)
            other = logprobs(first if checkpoint is second else second, [*PROMPT, *tokens])
            assert float((expected - other).abs().max()) > 0.1
