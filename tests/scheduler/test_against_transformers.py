"""A real model under the scheduler says what transformers says: cached, chunked, retracted, batched, overlapped."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs, resolve
from bough.ipc.messages import TokenizedGenerateReqInput
from bough.model_executor.tp_worker import TpModelWorker
from bough.model_executor.tp_worker_client import TpModelWorkerClient
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.executor import InlineExecutor
from bough.scheduler.scheduler import Scheduler
from tests.model_executor.deferring import running_ahead
from tests.models.checkpoints import VOCAB_SIZE, Checkpoint, save_checkpoint
from tests.models.test_against_transformers import CASES
from tests.scheduler.harness import Output
from tests.tables import table

LOGPROB_TOLERANCE = 1e-3
NEW_TOKENS = 24


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Qwen3", head_dim=24, tie_word_embeddings=True)


def serve(
    path: Path, prompts: list[list[int]], *, overlap: bool | str, max_total_tokens: int, **options: object
) -> tuple[Scheduler, dict[str, Output]]:
    args = resolve(
        ServerArgs(
            model_path=str(path),
            dtype="float32",
            device="cpu",
            cpu_threads=1,
            random_seed=0,
            skip_tokenizer_init=True,
            max_total_tokens=max_total_tokens,
            max_running_requests=8,
            **options,  # type: ignore[arg-type]
        )
    )
    config = ModelConfig.from_path(args.model_path, dtype=args.dtype)
    outputs = {f"r{i}": Output() for i in range(len(prompts))}
    worker = TpModelWorker(args, config)
    make_executor: Any = TpModelWorkerClient if overlap else InlineExecutor
    if overlap == "ahead":
        make_executor = running_ahead(worker)
    scheduler = Scheduler(
        args,
        config,
        worker,
        None,
        send_to_detokenizer=lambda deltas: [outputs[delta.rid].add(delta) for delta in deltas] and None,
        make_executor=make_executor,
        strict_accounting=True,
    )
    params = SamplingParams(temperature=0.0, max_new_tokens=NEW_TOKENS)
    for i, prompt in enumerate(prompts):
        ids = np.array(prompt, dtype="<i4").tobytes()
        message = TokenizedGenerateReqInput(
            [f"r{i}"], ids, params, stream=True, return_logprob=True, top_logprobs_num=2,
            logprob_start_len=0 if i % 2 else -1,
        )  # fmt: skip
        scheduler.process_input_requests([message])
        if i == 0:
            # The first one runs alone, so that the others find its prefix in the cache.
            while scheduler.has_unfinished_requests():
                scheduler.step()
    while scheduler.has_unfinished_requests():
        scheduler.step()
    scheduler.step()
    scheduler.executor.close()
    return scheduler, outputs


@pytest.mark.parametrize("overlap", [False, True, "ahead"])
@pytest.mark.parametrize(
    "options",
    [
        {"max_total_tokens": 4096},
        {"max_total_tokens": 4096, "page_size": 1, "chunked_prefill_size": 13},
        {"max_total_tokens": 240, "schedule_conservativeness": 0.05, "page_size": 4},
        {"max_total_tokens": 4096, "disable_radix_cache": True},
    ],
    ids=["cached", "chunked", "retracted", "uncached"],
)
@pytest.mark.parametrize("native", [True, False], ids=["native", "torch"])
def test_ids_and_logprobs_are_the_reference(
    checkpoint: Checkpoint,
    overlap: bool | str,
    options: dict[str, object],
    native: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not native:
        monkeypatch.setattr("bough.model_executor.execution_choice.native_threads", lambda *_: None)
    rng = random.Random(1)
    shared = rng.choices(range(VOCAB_SIZE), k=40)
    prompts = [shared + rng.choices(range(VOCAB_SIZE), k=rng.randint(1, 30)) for _ in range(8)]
    scheduler, outputs = serve(checkpoint.path, prompts, overlap=overlap, **options)  # type: ignore[arg-type]
    if options["max_total_tokens"] == 240:
        assert scheduler.requests.stats.num_retracted_total > 0
    assert_as_reference(checkpoint, prompts, outputs)


@table("native", [True, False])
@table(
    "case",
    [
        *("gemma3", "glm4-moe", "gpt-oss", "llama-3", "ministral3", "mistral-window", "mixtral-window", "phi3"),
        *("phi3-long", "qwen2", "qwen2-moe", "qwen3-moe", "smollm3-windows"),
    ],
)
def test_retracted_requests_of_every_family_say_what_the_reference_says(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, case: str, native: bool
) -> None:
    """Prompts share a prefix, come in chunks, run beside each other, and some give their memory back and return."""
    family, overrides = CASES[case]
    checkpoint = save_checkpoint(tmp_path_factory.mktemp(case), family, seed=1, **overrides)
    rng = random.Random(1)
    shared = rng.choices(range(VOCAB_SIZE), k=24)
    prompts = [shared + rng.choices(range(VOCAB_SIZE), k=rng.randint(1, 20)) for _ in range(4)]
    options = {"max_total_tokens": 112, "schedule_conservativeness": 0.05, "page_size": 4, "chunked_prefill_size": 16}
    with monkeypatch.context() as patch:
        if not native:
            patch.setattr("bough.model_executor.execution_choice.native_threads", lambda *_: None)
        scheduler, outputs = serve(checkpoint.path, prompts, overlap=False, **options)  # type: ignore[arg-type]
    assert scheduler.requests.stats.num_retracted_total > 0
    assert_as_reference(checkpoint, prompts, outputs, tolerance=1e-4)
    has_experts = any(name in case for name in ("moe", "mixtral", "gpt-oss"))
    loads = scheduler.reports.internal_state()["expert_loads"]
    assert [min(layer) > 0 for layer in loads] == [True] * (len(loads) if has_experts else 0)
    assert (scheduler.reports.stats().expert_imbalance > 1.0) == has_experts


def assert_as_reference(
    checkpoint: Checkpoint, prompts: list[list[int]], outputs: dict[str, Output], tolerance: float = LOGPROB_TOLERANCE
) -> None:
    for i, prompt in enumerate(prompts):
        output = outputs[f"r{i}"]
        reference = checkpoint.logits(prompt + output.token_ids[:-1]).log_softmax(-1)
        continuation = reference[len(prompt) - 1 :]
        assert output.token_ids == continuation.argmax(-1).tolist()
        expected = continuation.max(-1).values
        ours = torch.tensor([entry.logprob for entry in output.logprobs])
        torch.testing.assert_close(ours, expected, atol=tolerance, rtol=0.0)
        if i % 2:
            entries = output.input_logprobs or []
            assert [entry.token_id for entry in entries] == prompt
            of_prompt = reference[torch.arange(len(prompt) - 1), torch.tensor(prompt[1:])]
            ours = torch.tensor([entry.logprob for entry in entries[1:]])
            torch.testing.assert_close(ours, of_prompt, atol=tolerance, rtol=0.0)
