"""Programs for vLLM, run with bough-vllm on the path; see test_vllm_names.py."""

from __future__ import annotations

import asyncio
import copy
import importlib
import pickle
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import vllm
from bough import Engine
from bough.config.engine_args import bundled_model_path
from bough.errors import BadRequest, BoughError, ConfigError, RequestFailed
from bough.weight_sync.weight_groups import GROUP_TIMEOUT
from tests.minilm import minilm_path
from tests.model_companions import write_other_checkpoint
from tests.models.vector_checkpoints import save_vector_checkpoint, save_wordpiece_tokenizer
from tests.vllm_names.extension import Trained
from vllm import LLM, AsyncEngineArgs, AsyncLLMEngine, EngineArgs, LLMEngine, PoolingParams, SamplingParams
from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator
from vllm.distributed.utils import StatelessProcessGroup
from vllm.executor.executor_base import ExecutorBase
from vllm.inputs import TokensPrompt
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
from vllm.utils import random_uuid

IDS = list(range(300, 340))
MODEL = str(bundled_model_path())
SMALL: dict[str, Any] = {"model": MODEL, "max_model_len": 1024, "max_num_seqs": 8}
GREEDY: dict[str, Any] = {"temperature": 0.0, "max_tokens": 16, "ignore_eos": True}


async def last_of(outputs: AsyncIterator[Any]) -> Any:
    found = None
    async for output in outputs:
        found = output
    return found


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("model") / "other")


@pytest.fixture(scope="module")
def expected(other: Path) -> list[int]:
    """The answer with the weights of the other checkpoint, the same with any number of ranks."""
    params = {"temperature": 0.0, "max_new_tokens": 16, "ignore_eos": True}
    with Engine(model_path=str(other), max_total_tokens=4096) as engine:
        ids: list[int] = engine.generate(input_ids=IDS, sampling_params=params)["output_ids"]
        return ids


def serve_weights(port: int, world_size: int, weights: dict[str, torch.Tensor]) -> None:
    """Be the trainer: rank 0 of a group, which sends all weights."""
    group = StatelessProcessGroup.create(host="127.0.0.1", port=port, rank=0, world_size=world_size)
    communicator = PyNcclCommunicator(group, device="cpu")
    for weight in weights.values():
        communicator.broadcast(weight, src=0)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_trainer_drives_the_engine_as_it_drives_vllm(other: Path, expected: list[int], ranks: int) -> None:
    weights = load_file(other / "model.safetensors")
    port = free_port()

    async def drive() -> None:
        args = AsyncEngineArgs(
            model=MODEL,
            enforce_eager=True,
            worker_extension_cls=f"{Trained.__module__}.Trained",
            tensor_parallel_size=ranks,
            seed=3,
            distributed_executor_backend="uni" if ranks == 1 else "mp",
            max_model_len=1024,
            enable_prefix_caching=True,
            dtype="bfloat16",
            trust_remote_code=True,
            gpu_memory_utilization=0.5,
            enable_sleep_mode=True,
            logprobs_mode="processed_logprobs",
            max_logprobs=1,
        )
        engine = AsyncLLMEngine.from_engine_args(args)
        try:
            assert not await engine.is_sleeping()
            params = SamplingParams(**GREEDY, logprobs=1, min_tokens=1, skip_special_tokens=False)
            request_id = random_uuid()
            before = await last_of(engine.generate(TokensPrompt(prompt_token_ids=IDS), params, request_id=request_id))
            (output,) = before.outputs
            assert before.finished
            assert before.request_id == request_id
            assert [*IDS, *output.token_ids] == IDS + output.token_ids
            assert output.finish_reason == "length"
            assert isinstance(output.text, str)
            assert len(output.token_ids) == len(output.logprobs) == 16
            for token, position in zip(output.token_ids, output.logprobs, strict=True):
                assert position[token].logprob <= 0.0
                assert position[token].rank == 1
            assert output.token_ids != expected
            await engine.sleep(level=1)
            assert await engine.is_sleeping()
            await engine.wake_up(tags=["weights"])
            await engine.wake_up(tags=["kv_cache"])
            assert not await engine.is_sleeping()
            running = engine.generate(TokensPrompt(prompt_token_ids=IDS), SamplingParams(max_tokens=None), "running")
            await anext(running)
            assert engine.output_processor.get_num_unfinished_requests() == 1
            with ThreadPoolExecutor(1) as pool:
                sending = pool.submit(serve_weights, port, ranks + 1, weights)
                joined = await engine.collective_rpc("init_process_group", args=("127.0.0.1", port, 1, ranks + 1))
                assert joined == list(range(1, ranks + 1))
                await engine.pause_generation(mode="keep")
                for name, weight in weights.items():
                    arguments = (name, weight.dtype, weight.shape, False)
                    assert await engine.collective_rpc("update_weight", args=arguments) == [None] * ranks
                sending.result()
            await engine.reset_prefix_cache()
            await engine.resume_generation()
            after = await last_of(engine.generate(TokensPrompt(prompt_token_ids=IDS), params, request_id=random_uuid()))
            assert after.outputs[0].token_ids == expected
            await anext(running)
            await running.aclose()
            assert engine.output_processor.get_num_unfinished_requests() == 0
            assert await engine.reset_prefix_cache()
            await engine.check_health()
        finally:
            engine.shutdown()
        assert engine.errored

    asyncio.run(drive())


def test_a_trainer_that_dies_changes_nothing() -> None:
    port = free_port()
    trainer = (
        "import os, time; from vllm.distributed.utils import StatelessProcessGroup as Group; "
        "from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator as Communicator; "
        # The variable keeps the store until the end: the worker may look at it after this process has gone on.
        f"trainer = Communicator(Group.create('127.0.0.1', {port}, 0, 2), 'cpu'); "
        "trainer.group.barrier(); time.sleep(1); os._exit(1)"
    )
    llm = LLM(**SMALL, worker_extension_cls=f"{Trained.__module__}.Trained")
    try:
        before = llm.generate(TokensPrompt(prompt_token_ids=IDS), SamplingParams(**GREEDY))[0].outputs[0].token_ids
        with subprocess.Popen([sys.executable, "-c", trainer]) as dying:
            assert llm.collective_rpc("init_process_group", args=("127.0.0.1", port, 1, 2)) == [1]
            llm.collective_rpc("meet")
            dying.wait(30)
        with pytest.raises(RequestFailed, match="update_weight"):
            llm.collective_rpc("update_weight", args=("model.norm.weight", torch.bfloat16, torch.Size([256])))
        llm.collective_rpc("check_health")
        llm.reset_prefix_cache()
        after = llm.generate(TokensPrompt(prompt_token_ids=IDS), SamplingParams(**GREEDY))[0].outputs[0].token_ids
        assert after == before
    finally:
        llm.shutdown()


def test_a_trainer_that_hangs_is_given_up() -> None:
    port = free_port()
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(StatelessProcessGroup.create, "127.0.0.1", port, 0, 2)
        group = StatelessProcessGroup.create("127.0.0.1", port, 1, 2, store_timeout=2.0)
        making = pool.submit(PyNcclCommunicator, joining.result(), "cpu")
        communicator = PyNcclCommunicator(group, "cpu")
        trainer = making.result()
    with pytest.raises(RuntimeError):
        communicator.broadcast(torch.empty(4), src=0)
    assert trainer.group.timeout == GROUP_TIMEOUT


def test_sampling_params_are_plain_objects() -> None:
    params = SamplingParams(temperature=0.5, top_k=-1, max_tokens=None, logprobs=1)
    params.max_tokens = 7
    for same in (copy.deepcopy(params), pickle.loads(pickle.dumps(params)), params.clone()):
        assert same == params
        assert same is not params
    fields = params.request_fields()
    assert fields["sampling_params"]["max_new_tokens"] == 7
    assert fields["sampling_params"]["temperature"] == 0.5
    with pytest.raises(TypeError):
        SamplingParams(no_such_field=1)  # type: ignore[call-arg]


def test_arguments_are_translated_or_refused() -> None:
    args = AsyncEngineArgs(model=MODEL, max_model_len=512, tensor_parallel_size=2, enable_prefix_caching=False, seed=5)
    ours = args.server_args()
    assert (ours.model_path, ours.context_length, ours.tp_size, ours.random_seed) == (MODEL, 512, 2, 5)
    assert ours.disable_radix_cache
    for keywords in (
        {"pipeline_parallel_size": 2},
        {"enable_lora": True},
        {"distributed_executor_backend": "no"},
        {"quantization": "bitsandbytes"},
        {"scheduling_policy": "lpm"},
        {"runner": "draft"},
        {"generation_config": "/a/path"},
        {"override_generation_config": {"min_tokens": 3}},
        {"data_parallel_size": 2, "worker_extension_cls": f"{Trained.__module__}.Trained"},
    ):
        with pytest.raises(ConfigError, match=next(iter(keywords))):
            EngineArgs(**keywords).server_args()  # type: ignore[arg-type]
    assert EngineArgs(quantization="gptq").server_args().quantization == "none"
    assert EngineArgs(quantization="int8").server_args().quantization == "int8"
    assert EngineArgs(scheduling_policy="fcfs").server_args().schedule_policy == "fcfs"
    with pytest.raises(TypeError, match="max_model_len"):
        EngineArgs(max_model_length=3)
    assert pickle.loads(pickle.dumps(args)) == args


def test_logprobs_of_other_logits_or_of_all_tokens_are_told_apart() -> None:
    edits: list[dict[str, Any]] = [
        {"temperature": 0.5},
        {"presence_penalty": 0.5},
        {"repetition_penalty": 1.2},
        {"logit_bias": {3: 1.0}},
        {"min_tokens": 1},
        {"structured_outputs": StructuredOutputsParams(regex="a")},
    ]
    for fields in edits:
        assert SamplingParams(**fields).edits_logits, fields
        assert not SamplingParams(**fields).truncates, fields
    for fields in ({"top_p": 0.5}, {"top_k": 5}, {"min_p": 0.1}):
        assert SamplingParams(**fields).truncates, fields  # type: ignore[arg-type]
        greedy = SamplingParams(temperature=0.0, **fields)  # type: ignore[arg-type]
        assert not greedy.truncates, fields
        assert not greedy.edits_logits, fields


def test_batches_of_prompts() -> None:
    llm = LLM(
        **SMALL,
        runner="generate",
        override_generation_config={"max_new_tokens": 3},
        max_logprobs=4,
        logprobs_mode="raw_logprobs",
    )
    try:
        assert llm.get_default_sampling_params().max_tokens == 3
        assert len(llm.generate(TokensPrompt(prompt_token_ids=IDS))[0].outputs[0].token_ids) == 3
        both = SamplingParams(**{**GREEDY, "max_tokens": 2}, logprobs=1, prompt_logprobs=3)
        (told,) = llm.generate(TokensPrompt(prompt_token_ids=IDS), both)
        assert {len(each) for each in told.outputs[0].logprobs} == {1}
        assert {len(each) for each in told.prompt_logprobs[1:]} <= {3, 4}
        for refused in (
            SamplingParams(logprobs=5),
            SamplingParams(logprobs=-1),
            SamplingParams(logprobs=1, min_tokens=1),
        ):
            with pytest.raises(BadRequest, match="logprobs"):
                llm.generate(TokensPrompt(prompt_token_ids=IDS), refused)
        params = SamplingParams(**GREEDY, n=2, prompt_logprobs=0)
        by_ids, by_text = llm.generate([TokensPrompt(prompt_token_ids=IDS), "Once upon a time"], params)
        assert [each.index for each in by_ids.outputs] == [0, 1]
        assert by_ids.outputs[0].token_ids == by_ids.outputs[1].token_ids
        assert by_ids.prompt_logprobs[0] is None
        assert [next(iter(each)) for each in by_ids.prompt_logprobs[1:]] == IDS[1:]
        assert by_text.prompt == "Once upon a time"
        assert len(by_text.prompt_logprobs) == len(by_text.prompt_token_ids) > 1
        form = StructuredOutputsParams(regex="[a-z]{5}")
        (told,) = llm.chat(
            [{"role": "user", "content": "Hello"}], SamplingParams(max_tokens=20, structured_outputs=form)
        )
        assert len(told.outputs[0].text) == 5
        with pytest.raises(BadRequest, match="runner"):
            llm.embed("Once")
        assert told.outputs[0].stop_reason is None
        stopped = llm.generate("Once", SamplingParams(temperature=0.0, max_tokens=100, stop=["e"], seed=1))[0].outputs[
            0
        ]
        assert (stopped.finish_reason, stopped.stop_reason) == ("stop", "e")
        with pytest.raises(BadRequest, match="images"):
            llm.generate({"prompt_token_ids": IDS, "multi_modal_data": {"image": [1]}})
        with pytest.raises(BadRequest, match="sampling_params"):
            llm.generate(["a", "b"], [params])
        assert llm.reset_prefix_cache()
    finally:
        llm.shutdown()


def test_embeddings_and_their_likeness() -> None:
    llm = LLM(str(minilm_path()), runner="pooling", max_model_len=64)
    try:
        texts = ["The oak is a tree.", "An oak", "Rain on the roof"]
        embedded = llm.embed(texts)
        assert [each.outputs.hidden_size for each in embedded] == [384] * 3
        ids = [each.prompt_token_ids for each in embedded]
        (encoded,) = llm.encode(TokensPrompt(prompt_token_ids=ids[1]), pooling_task="embed")
        assert encoded.outputs.data.tolist() == pytest.approx(embedded[1].outputs.embedding, abs=1e-5)
        near, far = llm.score(texts[0], texts[1:])
        assert near.outputs.score > 0.5 > far.outputs.score
        assert near.prompt_token_ids == ids[0] + ids[1]
        (cut,) = llm.embed("oak " * 100, tokenization_kwargs={"truncate_prompt_tokens": -1})
        assert len(cut.prompt_token_ids) == 64
        assert len({each.request_id for each in (*embedded, encoded, near, far, cut)}) == 7
        for call, named in (
            (lambda: llm.embed("oak " * 100), "64"),
            (lambda: llm.embed(texts, pooling_params=[PoolingParams()]), "pooling_params"),
            (lambda: llm.embed(texts, pooling_params=PoolingParams(use_activation=False)), "use_activation"),
            (lambda: llm.embed(texts, pooling_params=PoolingParams(dimensions=5)), "dimensions"),
            (lambda: llm.embed(texts, tokenization_kwargs={"padding": True}), "padding"),
            (lambda: llm.encode(texts, pooling_task="token_embed"), "token_embed"),  # type: ignore[arg-type]
            (lambda: llm.classify(texts), "pooling_task"),
            (lambda: llm.score(texts[:2], texts), "data_1"),
        ):
            with pytest.raises(BadRequest, match=named):
                call()
        pairs: list[tuple[Any, Any, str]] = [(texts, [1, 2, 3], "data_2"), ({"content": []}, texts, "data_1")]
        for data_1, data_2, param in pairs:
            with pytest.raises(BadRequest) as refused:
                llm.score(data_1, data_2)
            assert refused.value.param == param
    finally:
        llm.shutdown()


@pytest.mark.parametrize("num_labels", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_classes_of_prompts_and_pairs(tmp_path: Path, num_labels: int) -> None:
    checkpoint = save_vector_checkpoint(
        tmp_path, "BertForSequenceClassification", num_labels=num_labels, pad_token_id=0
    )
    save_wordpiece_tokenizer(tmp_path)
    llm = LLM(str(tmp_path))
    try:
        (classified,) = llm.classify("w1 w2")
        (logits,) = llm.encode("w1 w2", PoolingParams(use_activation=False), pooling_task="classify")
        expected = checkpoint.scores(classified.prompt_token_ids)
        assert logits.outputs.data.tolist() == pytest.approx(expected.tolist(), abs=1e-4)
        probabilities = expected.sigmoid() if num_labels == 1 else expected.softmax(-1)
        assert classified.outputs.probs == pytest.approx(probabilities.tolist(), abs=1e-4)
        assert classified.outputs.num_classes == num_labels
        if num_labels == 1:
            first, second = llm.score(["w1", "w2"], ["w3", "w4"])
            (alone,) = llm.score("w2", "w4", pooling_params=PoolingParams(use_activation=False))
            assert alone.prompt_token_ids == second.prompt_token_ids != first.prompt_token_ids
            assert second.outputs.score == pytest.approx(torch.tensor(alone.outputs.score).sigmoid().item(), abs=1e-5)
            with pytest.raises(BadRequest, match="dimensions"):
                llm.score("w1", "w2", pooling_params=PoolingParams(dimensions=1))
        else:
            with pytest.raises(BadRequest, match="3 classes"):
                llm.score("w1", "w2")
        with pytest.raises(BadRequest, match="embed"):
            llm.embed("w1")
    finally:
        llm.shutdown()


def test_a_model_that_makes_vectors_is_not_run_to_generate(tmp_path: Path) -> None:
    save_vector_checkpoint(tmp_path, "BertForSequenceClassification", num_labels=1, pad_token_id=0)
    with pytest.raises(ConfigError) as refused:
        LLM(str(tmp_path), runner="generate", skip_tokenizer_init=True)
    assert refused.value.param == "runner"


def test_requests_are_added_and_stepped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_TORCH_PROFILER_DIR", str(tmp_path))
    engine = LLMEngine.from_engine_args(EngineArgs(**SMALL))
    try:
        assert engine.step() == []
        kinds = {str(kind): kind for kind in RequestOutputKind}
        for name, kind in kinds.items():
            engine.add_request(name, TokensPrompt(prompt_token_ids=IDS), SamplingParams(**GREEDY, output_kind=kind))
        assert engine.get_num_unfinished_requests() == len(kinds)
        outputs: dict[str, list[Any]] = {name: [] for name in kinds}
        while engine.has_unfinished_requests():
            for output in engine.step():
                outputs[output.request_id].append(output)
        found = {
            name: [(each.finished, [one.token_ids for one in each.outputs]) for each in several]
            for name, several in outputs.items()
        }
        lengths = [len(ids[0]) for _, ids in found[str(RequestOutputKind.CUMULATIVE)]]
        assert lengths == sorted(set(lengths))
        assert all(each[-1][0] for each in found.values())
        whole = found[str(RequestOutputKind.FINAL_ONLY)]
        assert len(whole) == 1
        assert found[str(RequestOutputKind.CUMULATIVE)][-1] == whole[0]
        pieces = [ids for _, parts in found[str(RequestOutputKind.DELTA)] for ids in parts]
        assert [token for ids in pieces for token in ids] == whole[0][1][0]
        engine.add_request("long", "Once", SamplingParams(max_tokens=None, ignore_eos=True))
        engine.step()
        engine.abort_request("long")
        reasons = [
            output.outputs[0].finish_reason
            for _ in iter(engine.has_unfinished_requests, False)
            for output in engine.step()
        ]
        assert reasons[-1] == "abort"
        for _ in range(3):  # an id may be used again once its last output was returned
            engine.add_request("again", TokensPrompt(prompt_token_ids=IDS), SamplingParams(**GREEDY))
            with pytest.raises(BadRequest, match="again"):
                engine.add_request("again", "Once", SamplingParams())
            while not (last := engine.step())[0].finished:
                pass
            assert last[0].outputs[0].token_ids == whole[0][1][0]
            assert not engine.has_unfinished_requests()
        engine.add_request("at once", "Once", SamplingParams(max_tokens=None, ignore_eos=True))
        engine.abort_request("at once")
        while not (last := engine.step())[0].finished:
            pass
        assert last[0].outputs[0].finish_reason == "abort"
        engine.add_request("wrong", "Once", SamplingParams(temperature=-1.0))
        with pytest.raises(BadRequest, match="temperature"):
            engine.step()
        assert not engine.has_unfinished_requests()
        assert engine.do_log_stats()["idle"]
        engine.start_profile()
        assert sorted(engine.stop_profile()) == sorted(map(str, tmp_path.iterdir())) != []
        engine.sleep()
        assert engine.is_sleeping()
        engine.wake_up()
        assert not engine.is_sleeping()
    finally:
        engine.shutdown()


@pytest.mark.slow
def test_executors_call_all_workers_and_know_of_their_health() -> None:
    args = EngineArgs(**SMALL, tensor_parallel_size=2)
    kind = ExecutorBase.get_class(args)
    assert kind.__name__ == "MultiprocExecutor"
    assert ExecutorBase.get_class(EngineArgs(**SMALL)).__name__ == "UniProcExecutor"
    executor = kind(args)
    try:
        executor.check_health()
        pages, swapped = executor.determine_num_available_blocks()
        assert pages > 0
        assert swapped == 0
        executor.initialize_cache(pages, 0)
        executor.sleep()
        assert executor.is_sleeping
        executor.wake_up()
    finally:
        executor.shutdown()
    with pytest.raises(BoughError):
        executor.check_health()


def test_a_name_that_is_absent_is_said_to_be() -> None:
    for name in vllm.__all__:
        assert getattr(vllm, name) is not None
    with pytest.raises(AttributeError, match="LoRAConfig"):
        vllm.LoRAConfig
    for module in ("vllm.v1.engine.async_llm", "vllm.v1.engine.llm_engine", "vllm.v1.executor.abstract"):
        importlib.import_module(module)
