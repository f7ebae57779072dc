"""Code of the operator in the workers: each rank of each replica is called, and weights are checked as ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bough import Engine, Runtime
from bough.config.engine_args import bundled_model_path
from bough.config.server_args import ServerArgs
from bough.errors import BadRequest, BoughError, ConfigError, Overloaded, RequestFailed
from bough.model_executor.worker_face import WorkerFace, worker_class
from tests.e2e.worker_extension import Extension
from tests.model_companions import write_other_checkpoint
from tests.native import needs_native

CLASSES = Extension.__module__
IDS = list(range(300, 340))
GREEDY = {"temperature": 0.0, "max_new_tokens": 16, "ignore_eos": True}
OPTIONS: dict[str, Any] = {"max_total_tokens": 4096, "skip_tokenizer_init": True, "cpu_threads": 1}
NORM = "model.norm.weight"


DIVISIONS: tuple[dict[str, Any], ...] = (
    {},
    {"dp_size": 2, "load_balance_method": "round_robin"},
    {"tp_size": 2},
)

in_each_division = pytest.mark.parametrize("extended", DIVISIONS, indirect=True, ids=str)
undivided = pytest.mark.parametrize("extended", DIVISIONS[:1], indirect=True, ids=str)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_other_checkpoint(tmp_path_factory.mktemp("model") / "other")


@pytest.fixture(scope="module")
def expected(other: Path) -> Any:
    """The answer with the weights of the other checkpoint, the same however the model is divided."""
    with Engine(model_path=str(other), **OPTIONS) as engine:
        return answer(engine)


@pytest.fixture(scope="module")
def extended(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with Engine(**OPTIONS, worker_extension_cls=f"{CLASSES}.Extension", **request.param) as engine:
        yield engine


@pytest.fixture
def engine(extended: Engine) -> Engine:
    """An engine with the weights of the bundled model, whatever tests have done before."""
    updated = extended.update_weights_from_disk(str(bundled_model_path()))
    assert updated.success, updated.message
    return extended


def answer(engine: Engine) -> Any:
    told = engine.generate(input_ids=IDS, sampling_params=GREEDY, return_logprob=True)
    return told["output_ids"], told["meta_info"]["output_token_logprobs"]


def answers(engine: Engine) -> list[Any]:
    """Answers of all replicas, which take turns."""
    return [answer(engine) for _ in range(engine.server_args.dp_size)]


@needs_native
@in_each_division
def test_every_rank_is_called_and_all_or_none_get_new_weights(engine: Engine, other: Path, expected: Any) -> None:
    path, replicas, ranks = str(other / "model.safetensors"), engine.server_args.dp_size, engine.server_args.tp_size
    num_ranks = replicas * ranks
    before = answers(engine)
    described = engine.collective_rpc("describe")
    assert [each[0] for each in described] == list(range(num_ranks))
    assert [each[1] for each in described] == list(range(ranks)) * replicas
    assert {each[2:] for each in described} == {(torch.device("cpu"), torch.bfloat16)}
    for method, args, kwargs in (
        ("load", (path,), {"fails_on": num_ranks - 1}),
        ("load_misshapen", (NORM, num_ranks - 1), None),
        *([("load_on_one", (path,), None), ("load_one_each", (path,), None)] if num_ranks > 1 else []),
    ):
        with pytest.raises(BoughError):
            engine.collective_rpc(method, args=args, kwargs=kwargs)
        assert answers(engine) == before, method
    names = list(load_file(path))
    for part in (names[: len(names) // 2], names[len(names) // 2 :]):
        assert engine.collective_rpc("load", args=(path,), kwargs={"names": part}) == [len(part)] * num_ranks
    assert answers(engine) == [expected] * replicas


@needs_native
@undivided
def test_requests_go_on_and_later_ones_use_no_old_prefix(engine: Engine, other: Path, expected: Any) -> None:
    answer(engine)
    stream = engine.generate(input_ids=IDS, sampling_params={**GREEDY, "max_new_tokens": 3000}, stream=True)
    next(stream)
    engine.pause_generation("in_place")
    engine.collective_rpc("load", args=(str(other / "model.safetensors"),))
    engine.continue_generation()
    told = engine.generate(input_ids=IDS, sampling_params=GREEDY, return_logprob=True)
    assert told["meta_info"]["cached_tokens"] == 0
    assert (told["output_ids"], told["meta_info"]["output_token_logprobs"]) == expected
    next(stream)
    stream.close()
    again = engine.generate(input_ids=IDS, sampling_params=GREEDY)
    assert again["meta_info"]["cached_tokens"] > 0
    assert again["output_ids"] == expected[0]


@needs_native
@undivided
def test_values_cross_as_they_are_and_others_are_refused_by_name(engine: Engine) -> None:
    handle = (torch.multiprocessing.reductions.rebuild_cuda_tensor, (torch.Tensor, torch.Size([2]), (1,), b"handle"))
    values = [None, True, 2**63, -1.5, "text", b"bytes", [1, (2, [3])], {"a": {1: (None,)}}, torch.bfloat16]
    values += [torch.Size([2, 3]), torch.device("cuda", 1), handle]
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    ((args, kwargs),) = engine.collective_rpc("echo", args=(*values, tensor, np.arange(3)), kwargs={"key": values[-1]})
    assert args[: len(values)] == tuple(values)
    assert [type(each) for each in args[: len(values)]] == [type(each) for each in values]
    assert torch.equal(args[-2], tensor)
    assert args[-1].tolist() == [0, 1, 2]
    assert kwargs == {"key": values[-1]}
    for arguments, named in (
        ({"args": (1, [object()])}, r"args\[1\]\[0\]"),
        ({"kwargs": {"key": lambda: 1}}, r"kwargs\['key'\]"),
        ({"args": (torch.load,)}, r"args\[0\]"),
        ({"args": (2**64,)}, r"args\[0\]"),
    ):
        with pytest.raises(BadRequest, match=named):
            engine.collective_rpc("echo", **arguments)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match="outputs"):
        engine.collective_rpc("outputs")
    for method in ("_bough_runner", "__class__", "no_such_method", "rank", 3):
        with pytest.raises(BadRequest, match="method"):
            engine.collective_rpc(method)  # type: ignore[arg-type]
    with pytest.raises(RequestFailed, match="TypeError"):
        engine.collective_rpc("describe", args=(1,))


@needs_native
@undivided
def test_a_call_that_is_given_up_leaves_nothing_behind(engine: Engine, other: Path) -> None:
    before = answer(engine)
    with pytest.raises((RequestFailed, Overloaded)):  # before it begins, on a machine that is busy
        engine.collective_rpc("load", 0.001, (str(other / "model.safetensors"),))
    assert engine.collective_rpc("echo") == [((), {})]
    assert answer(engine) == before


@needs_native
def test_workers_have_the_names_of_vllm_and_classes_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with Engine(**OPTIONS, worker_cls=f"{CLASSES}.OwnWorker") as engine:
        (pages,) = engine.collective_rpc("pages")
        assert pages * 16 == engine.get_server_info()["max_total_num_tokens"]
        assert engine.collective_rpc("initialize_cache", args=(pages, 0)) == [None]
        with pytest.raises(BadRequest, match="num_gpu_blocks"):
            engine.collective_rpc("initialize_cache", args=(pages + 1, 0))
        assert engine.collective_rpc("get_cache_block_size_bytes")[0] > 0
        engine.collective_rpc("save_sharded_state", args=(str(tmp_path / "state"),))
        assert answer(engine) == answer(engine)
    for options, named in (
        ({"worker_extension_cls": f"{CLASSES}.Clashing"}, "vocab_size"),
        ({"worker_cls": "not a name"}, "worker.cls"),
    ):
        with pytest.raises(ConfigError, match=named):
            Engine(**OPTIONS, **options)


@needs_native
@in_each_division
def test_an_update_of_several_calls_is_written_at_its_end_or_not_at_all(
    engine: Engine, other: Path, expected: Any
) -> None:
    path = str(other / "model.safetensors")
    tensors = list(load_file(path).items())
    half = len(tensors) // 2
    first, second = tensors[:half], tensors[half:]
    before = answer(engine)
    assert not engine.end_weight_update().success
    assert engine.begin_weight_update().success
    assert not engine.begin_weight_update().success
    assert engine.update_weights_from_tensor(first).success
    assert not engine.update_weights_from_tensor([(NORM, torch.zeros(3))]).success
    assert not engine.update_weights_from_disk(str(other)).success
    assert answer(engine) == before
    assert engine.end_weight_update(discard=True).success
    assert answer(engine) == before
    assert engine.begin_weight_update().success
    stream = engine.generate(input_ids=IDS, sampling_params={**GREEDY, "max_new_tokens": 3000}, stream=True)
    next(stream)
    assert engine.update_weights_from_tensor(first, weight_version="two").success
    engine.collective_rpc("load", args=(path,), kwargs={"names": [name for name, _ in second]})
    next(stream)
    engine.pause_generation("in_place")
    assert not engine.end_weight_update().success  # the stream holds what would have to be flushed
    engine.continue_generation()
    next(stream)
    stream.close()
    assert answer(engine) == before
    done = engine.end_weight_update()
    assert done.success, done.message
    told = engine.generate(input_ids=IDS, sampling_params=GREEDY, return_logprob=True)
    assert (told["output_ids"], told["meta_info"]["output_token_logprobs"]) == expected
    assert told["meta_info"]["weight_version"] == "two"
    assert engine.update_weights_from_tensor(first).success


@needs_native
def test_http_calls_workers_only_where_the_operator_says_so() -> None:
    options = {**OPTIONS, "worker_extension_cls": f"{CLASSES}.Extension"}
    body = {"method": "describe"}
    with Runtime(**options, enable_collective_rpc=True) as runtime:
        told = runtime.endpoint.control("/collective_rpc", body)
        assert told == {"results": [[0, 0, "cpu", "bfloat16"]]}
        for wrong, status in (
            ({"method": "_call"}, 400),
            ({"method": "describe", "args": [1]}, 500),  # the method itself has failed
            ({}, 400),
        ):
            with runtime.endpoint.request("POST", "/collective_rpc", wrong) as answered:
                assert answered.status == status, wrong
        assert runtime.endpoint.control("/begin_weight_update", {})["success"]
        assert runtime.endpoint.control("/end_weight_update", {"discard": True})["success"]
    with Runtime(**options) as runtime, runtime.endpoint.request("POST", "/collective_rpc", body) as answered:
        assert answered.status == 404


def test_classes_that_do_not_fit_are_refused() -> None:
    for args, named in (
        (ServerArgs(worker_extension_cls=f"{CLASSES}.NoSuchClass"), "NoSuchClass"),
        (ServerArgs(worker_extension_cls=f"{CLASSES}.torch"), "no class"),
        (ServerArgs(worker_cls=f"{CLASSES}.Extension"), "subclass"),
    ):
        with pytest.raises(ConfigError, match=named):
            worker_class(args)
    assert worker_class(ServerArgs()) is WorkerFace
