"""OpenRLHF, unmodified, drives engines: rollouts, pauses, sleep and wake, and new weights by its own extension.

Its trainer asks for GPUs in many places, so the trainer here is a few lines that broadcast what it would.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from bough.config.engine_args import bundled_model_path
from bough.entrypoints.engine import Engine
from tests.e2e.server import MAX_TOTAL_TOKENS, free_port
from tests.e2e.test_ranks import PROMPT
from tests.entrypoints.leftovers import eventually
from tests.on_ray.clusters import cluster_of, processes_of_ranks

ray = pytest.importorskip("ray")
pytest.importorskip("openrlhf")
transformers = pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / "packages/bough-vllm/src"), str(ROOT / "tests/on_ray/on_cpu")]
MODEL = str(bundled_model_path())
TOKENS = 24
CONTEXT = 2048
SECONDS = 120.0


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """A raylet that claims to have GPUs; all of its processes find the package with vLLM's names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([*PATHS, os.environ.get("PYTHONPATH", "")]))
        patch.syspath_prepend(PATHS[0])
        with cluster_of(8, gpus=8) as made:
            patch.setenv("RAY_ADDRESS", made.address)
            yield


class Trainer:
    """The model that is trained, and the group in which its weights are sent."""

    def __init__(self) -> None:
        self.model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.bfloat16)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        self._group: Any = None

    def join(self, engines: list[Any], tp_size: int) -> None:
        """As ``_init_vllm_sync_group`` of OpenRLHF's actor."""
        from openrlhf.utils.distributed_util import stateless_init_process_group

        port, world = free_port(), len(engines) * tp_size + 1
        joining = [
            engine.init_process_group.remote(
                "127.0.0.1", port, i * tp_size + 1, world, "openrlhf", backend="gloo", use_ray=False
            )
            for i, engine in enumerate(engines)
        ]
        self._group = stateless_init_process_group("127.0.0.1", port, 0, world, torch.device("cpu"))
        ray.get(joining, timeout=SECONDS)

    def train(self) -> None:
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in self.model.parameters():
                weight += (torch.randn(weight.shape, generator=generator) * weight.std()).to(weight.dtype)

    def send(self, engines: list[Any]) -> None:
        """As ``broadcast_to_vllm`` of OpenRLHF's actor."""
        ray.get([engine.reset_prefix_cache.remote() for engine in engines], timeout=SECONDS)
        weights = list(self.model.named_parameters())
        for count, (name, weight) in enumerate(weights, 1):
            sending = [
                engine.update_weight.remote(
                    name, dtype=weight.dtype, shape=weight.shape, empty_cache=count == len(weights)
                )
                for engine in engines
            ]
            self._group.broadcast(weight.data, src=0, stream=None)
            ray.get(sending, timeout=SECONDS)


def greedy(engine: Any, prompt: list[int]) -> tuple[list[int], list[float]]:
    """Token ids and their logprobs."""
    from vllm import SamplingParams

    params = SamplingParams(temperature=0.0, max_tokens=TOKENS, logprobs=1)
    (output,) = ray.get(engine.generate.remote(prompt, params), timeout=SECONDS).outputs
    logprobs = [entry[token].logprob for entry, token in zip(output.logprobs, output.token_ids, strict=True)]
    return list(output.token_ids), logprobs


def of_checkpoint(path: str, prompt: list[int], **options: Any) -> tuple[list[int], list[float]]:
    """The same of a fresh engine."""
    with Engine(model_path=path, dtype="bfloat16", max_total_tokens=MAX_TOTAL_TOKENS, **options) as engine:
        params = {"temperature": 0.0, "max_new_tokens": TOKENS}
        answer = engine.generate(input_ids=prompt, sampling_params=params, return_logprob=True)
    return answer["output_ids"], [entry[0] for entry in answer["meta_info"]["output_token_logprobs"]]


def roll_out(engine: Any, tokenizer: Any) -> list[Any]:
    from vllm import SamplingParams

    params = SamplingParams(
        temperature=1.0, top_p=1.0, top_k=-1, max_tokens=TOKENS, min_tokens=1, skip_special_tokens=False, logprobs=1
    )
    asked = engine.generate_responses.remote(PROMPT, "", params, CONTEXT, tokenizer, num_samples=2)
    found: list[Any] = ray.get(asked, timeout=SECONDS)
    return found


@pytest.mark.parametrize(("num_engines", "tp_size"), [(1, 1), (2, 1), (1, 2)])
def test_engines_follow_a_trainer_to_the_bit(tmp_path: Path, num_engines: int, tp_size: int) -> None:
    from openrlhf.trainer.ray.vllm_engine import batch_vllm_engine_call, create_vllm_engines

    from vllm import SamplingParams

    trainer = Trainer()
    prompt = trainer.tokenizer(PROMPT, add_special_tokens=False)["input_ids"]
    engines = create_vllm_engines(
        num_engines,
        tp_size,
        MODEL,
        seed=42,
        full_determinism=False,
        enable_prefix_caching=True,
        enforce_eager=True,
        max_model_len=CONTEXT,
        gpu_memory_utilization=0.5,
        vllm_enable_sleep=True,
    )
    try:
        batch_vllm_engine_call(engines, "wake_up")
        before = of_checkpoint(MODEL, prompt)
        assert all(greedy(engine, prompt) == before for engine in engines)
        samples = roll_out(engines[0], trainer.tokenizer)
        assert len(samples) == 2
        for sample in samples:
            assert len(sample["observation_tokens"]) == len(sample["rollout_log_probs"])
        assert ray.get([each.get_num_unfinished_requests.remote() for each in engines]) == [0] * num_engines

        trainer.join(engines, tp_size)
        trainer.train()
        batch_vllm_engine_call(engines, "sleep")
        batch_vllm_engine_call(engines, "wake_up", tags=["weights"])
        trainer.send(engines)
        batch_vllm_engine_call(engines, "wake_up", tags=["kv_cache"])

        trainer.model.save_pretrained(tmp_path / "new")
        trainer.tokenizer.save_pretrained(tmp_path / "new")
        after = of_checkpoint(str(tmp_path / "new"), prompt)
        assert after[0] != before[0]
        assert [greedy(engine, prompt) for engine in engines] == [after] * num_engines

        batch_vllm_engine_call(engines, "pause_generation")
        waiting = engines[0].generate.remote(prompt, SamplingParams(temperature=0.0, max_tokens=TOKENS, logprobs=1))
        trainer.send(engines)
        assert not ray.wait([waiting], timeout=0.5)[0]
        batch_vllm_engine_call(engines, "resume_generation")
        assert ray.get(waiting, timeout=SECONDS).outputs[0].token_ids == after[0]
    finally:
        for engine in engines:
            ray.kill(engine)
    assert eventually(lambda: not processes_of_ranks(), 15.0)
