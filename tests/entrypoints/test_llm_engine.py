from __future__ import annotations

import gc
import re
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from bough import LLMEngine, SamplingParams
from bough.config.engine_args import bundled_model_path
from bough.entrypoints.llm_engine import RequestOutput
from bough.errors import BadRequest, BoughError, EngineDead, Overloaded
from tests.entrypoints.leftovers import children
from tests.native import needs_native

GREEDY = {"temperature": 0.0, "max_new_tokens": 6, "ignore_eos": True}


@pytest.fixture(scope="module")
def engine() -> LLMEngine:
    return LLMEngine(dtype="float32", cpu_threads=1, max_total_tokens=8192)


@pytest.fixture(autouse=True)
def whole(engine) -> Iterator[None]:
    yield
    assert not engine.has_unfinished_requests()
    assert engine.scheduler.reports.internal_state()["kv_discrepancy"] is None


def run(engine: LLMEngine) -> dict[str, RequestOutput]:
    finished = {}
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                finished[output.request_id] = output
    return finished


def test_requests_run_together_and_each_gets_its_answer(engine):
    engine.add_request("alone", "A tree", GREEDY)
    alone = run(engine)["alone"].outputs[0]
    engine.add_request("a", "A tree", GREEDY)
    engine.add_request("b", "The hedgehog", SamplingParams(max_new_tokens=3, temperature=0.0))
    outputs = run(engine)
    assert outputs["a"].outputs[0].text == alone.text != ""
    assert outputs["a"].outputs[0].token_ids == alone.token_ids
    assert (outputs["b"].outputs[0].finish_reason, len(outputs["b"].outputs[0].token_ids)) == ("length", 3)
    assert outputs["a"].prompt_token_ids == list(engine.tokenizer.encode("A tree"))


def test_a_step_reports_what_there_is_so_far(engine):
    engine.add_request("r", "A tree", GREEDY)
    lengths = []
    while engine.has_unfinished_requests():
        lengths += [len(output.outputs[0].token_ids) for output in engine.step()]
    assert lengths == [1, 2, 3, 4, 5, 6]


def test_parallel_samples_and_logprobs(engine):
    params = {"max_new_tokens": 4, "n": 3, "sampling_seed": 7, "ignore_eos": True, "temperature": 3.0}
    engine.add_request("r", "A tree", params, return_logprob=True, logprob_start_len=0, top_logprobs_num=2)
    result = run(engine)["r"]
    assert [output.index for output in result.outputs] == [0, 1, 2]
    assert len({tuple(output.token_ids) for output in result.outputs}) > 1
    for output in result.outputs:
        assert [entry.token_id for entry in output.logprobs] == output.token_ids
        assert all(len(entry.top) == 2 for entry in output.logprobs)
    assert [entry.token_id for entry in result.prompt_logprobs] == result.prompt_token_ids


def test_stop_string_ends_the_text(engine):
    engine.add_request("free", "A tree", {**GREEDY, "max_new_tokens": 12})
    text = run(engine)["free"].outputs[0].text
    stop = text[4:8]
    engine.add_request("stopped", "A tree", {**GREEDY, "max_new_tokens": 12, "stop": stop})
    output = run(engine)["stopped"].outputs[0]
    assert (output.text, output.finish_reason, output.stop_reason) == (text[: text.index(stop)], "stop", stop)


def test_bad_words_do_not_come(engine):
    engine.add_request("free", "A tree", {**GREEDY, "max_new_tokens": 30})
    words = re.findall("[a-z]{3,}", run(engine)["free"].outputs[0].text)[:2]
    assert words
    engine.add_request("without", "A tree", {**GREEDY, "max_new_tokens": 30, "bad_words": words})
    assert not set(words) & set(re.findall("[a-z]+", run(engine)["without"].outputs[0].text))


def test_thoughts_have_as_many_tokens_as_they_may_have(engine):
    prompt = "<|im_start|>user\nA tree?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    engine.add_request("r", prompt, {**GREEDY, "max_new_tokens": 20, "thinking_token_budget": 3})
    text = run(engine)["r"].outputs[0].text
    thoughts, _, answer = text.partition("</think>")
    assert answer.strip()
    assert len(engine.tokenizer.encode(thoughts)) <= 3 + 1  # and the end of a line


def test_abort_is_reported_by_the_next_step(engine):
    engine.add_request("r", "A tree", {**GREEDY, "max_new_tokens": 1000})
    engine.step()
    engine.abort_request("r")
    engine.abort_request("unknown")
    output = run(engine)["r"].outputs[0]
    assert output.finish_reason == "abort"
    assert output.error is None
    engine.add_request("r", "A tree", GREEDY)
    assert run(engine)["r"].outputs[0].finish_reason == "length"


def test_what_is_wrong_is_said_and_leaves_no_trace(engine):
    limit = engine.scheduler.info.max_req_input_len
    for arguments, message in (
        ({"prompt": "x", "sampling_params": {"top_p": 3.0}}, "top_p"),
        ({}, "prompt or input_ids is required"),
        ({"input_ids": [10**6]}, "must hold token ids in"),
        ({"input_ids": [1] * (limit + 1)}, f"your prompt has {limit + 1} tokens"),
        ({"input_ids": [[1, 2], [3]]}, "one prompt at a time"),
        ({"prompt": ["A", "B"]}, "one prompt at a time"),
        (
            {"prompt": "A tree", "return_logprob": True, "token_ids_logprob": [10**6]},
            "token_ids_logprob must hold token ids in",
        ),
        ({"prompt": "A tree", "token_ids_logprob": [1]}, "token_ids_logprob needs return_logprob"),
        ({"input_ids": [1], "return_logprob": True, "logprob_start_len": 1}, "logprob_start_len"),
        ({"input_ids": [1], "sampling_params": {"bad_words": ["x y " * 40]}}, "bad_words must be texts of 1 to 32"),
        ({"input_ids": [1], "sampling_params": SamplingParams(allowed_token_ids=())}, "allowed_token_ids must be 1"),
    ):
        with pytest.raises(BadRequest, match=message):
            engine.add_request("r", **arguments)
    engine.add_request("r", "A tree", GREEDY)
    with pytest.raises(BadRequest, match="in use"):
        engine.add_request("r", "A tree", GREEDY)
    assert len(run(engine)) == 1


def test_requests_whose_outputs_would_share_an_id_are_refused(engine):
    engine.add_request("a", "A tree", {**GREEDY, "n": 2})
    with pytest.raises(BadRequest, match="'a_0' is in use"):
        engine.add_request("a_0", "A tree", GREEDY)
    assert run(engine).keys() == {"a"}
    engine.add_request("a_0", "A tree", GREEDY)
    assert run(engine).keys() == {"a_0"}


def test_request_that_cannot_be_decoded_ends_in_the_scheduler_too(engine):
    class Broken:
        def push(self, token_ids: object) -> None:
            raise ZeroDivisionError

    engine.add_request("r", "A tree", {**GREEDY, "max_new_tokens": 500})
    engine.step()
    engine._detokenizer._statuses["r"].decoder = Broken()
    (output,) = engine.step()
    assert output.finished
    assert "could not be decoded" in output.outputs[0].error
    assert engine.scheduler.reports.stats().num_running_reqs == 0
    run(engine)
    engine.add_request("r", "A tree", GREEDY)
    assert run(engine)["r"].outputs[0].finish_reason == "length"


def test_statistics(engine):
    before = engine.get_stats().decode_tokens_total
    engine.add_request("r", "A tree", GREEDY)
    run(engine)
    assert engine.get_stats().decode_tokens_total == before + 6
    assert engine.get_stats().num_running_reqs == 0


def test_no_other_process():
    before = children()
    with small_engine() as engine:
        engine.add_request("r", "A tree", GREEDY)
        engine.step()
        assert children() == before


def small_engine(**options: Any) -> LLMEngine:
    return LLMEngine(dtype="float32", cpu_threads=1, max_total_tokens=2048, **options)


def test_options_that_bound_requests_are_heeded():
    with small_engine(max_parallel_samples=2, max_logprobs=3, max_stop_strings=1) as engine:
        for arguments, message in (
            ({"sampling_params": {"n": 3}}, "n must be at most 2"),
            ({"return_logprob": True, "top_logprobs_num": 4}, "must be at most 3"),
            ({"sampling_params": {"stop": ["a", "b"]}}, "must be at most 1"),
            ({"sampling_params": {"max_new_tokens": 1}, "prompt": ""}, "empty"),
        ):
            with pytest.raises(BadRequest, match=message):
                engine.add_request("r", **{"prompt": "A tree", **arguments})


def test_closing_ends_its_threads_and_frees_the_model(caplog):
    before = {thread.ident for thread in threading.enumerate()}
    engine = small_engine(disable_overlap_schedule=False)
    engine.add_request("r", "A tree", {**GREEDY, "json_schema": '{"type": "integer"}', "ignore_eos": False})
    for _ in range(3):
        engine.step()
    model = weakref.ref(engine.scheduler.worker)
    engine.close()
    engine.close()
    with pytest.raises(EngineDead):
        engine.step()
    with pytest.raises(EngineDead):
        engine.add_request("s", "A tree")
    with pytest.raises(EngineDead):
        engine.get_stats()
    assert not engine.has_unfinished_requests()
    deadline = time.monotonic() + 5
    while {thread.ident for thread in threading.enumerate()} - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert {thread.ident for thread in threading.enumerate()} <= before
    caplog.clear()  # may hold an exception, and with it the frames that it came through
    gc.collect()
    assert model() is None


def test_program_may_end_with_a_step_in_flight():
    code = """
from bough import LLMEngine
engine = LLMEngine(dtype="float32", cpu_threads=1, max_total_tokens=8192, disable_overlap_schedule=False)
engine.add_request("r", "A tree " * 500, {"max_new_tokens": 100, "ignore_eos": True})
engine.step()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert not re.search("Traceback|Fatal|terminate", ended.stderr)


def test_ids_only_engine_needs_no_tokenizer():
    engine = LLMEngine(skip_tokenizer_init=True, load_format="dummy", cpu_threads=1, max_total_tokens=2048)
    with pytest.raises(BadRequest, match="no tokenizer"):
        engine.add_request("r", "text")
    engine.add_request("r", input_ids=[1, 2, 3], sampling_params=GREEDY)
    output = run(engine)["r"].outputs[0]
    assert (len(output.token_ids), output.text) == (6, "")


@needs_native
def test_it_sleeps_between_requests_and_gets_other_weights(engine):
    def answer() -> list[int]:
        engine.add_request("r", "A tree", GREEDY)
        return run(engine)["r"].outputs[0].token_ids

    expected = answer()
    engine.add_request("unfinished", "A tree", GREEDY)
    with pytest.raises(BadRequest, match="unfinished"):
        engine.sleep()
    run(engine)
    engine.sleep()
    assert engine.is_sleeping()
    with pytest.raises(Overloaded):
        engine.add_request("r", "A tree", GREEDY)
    engine.wake_up(["weights"])
    assert engine.is_sleeping()
    engine.wake_up(["kv_cache"])
    assert not engine.is_sleeping()
    assert answer() == expected

    engine.sleep(level=2)
    engine.wake_up()
    with pytest.raises(Overloaded):
        engine.add_request("r", "A tree", GREEDY)
    tensors = load_file(bundled_model_path() / "model.safetensors")
    engine.update_weights_from_tensor(tensors.items())
    assert answer() == expected
    for wrong in (lambda: engine.sleep(3), lambda: engine.wake_up(["everything"])):
        with pytest.raises(BadRequest):
            wrong()
    with pytest.raises(BoughError):
        engine.update_weights_from_tensor([("model.norm.weight", torch.zeros(3))])
    assert answer() == expected
