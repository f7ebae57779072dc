from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from bough import Engine, SamplingParams, ServerArgs
from bough.errors import BadRequest, ConfigError, EngineDead, RequestFailed, StartupError
from tests.entrypoints.leftovers import (
    directories_of,
    eventually,
    is_running,
    loads_torch,
    own_resources,
    socket_directories,
)
from tests.entrypoints.serve_echo import ECHO_SCHEDULER

IDS = [300, 301, 302]


class EchoEngine(Engine):
    """Answers a prompt with its own ids, over and over."""

    scheduler_module = ECHO_SCHEDULER


@pytest.fixture(scope="module")
def engine() -> Iterator[EchoEngine]:
    with EchoEngine() as made:
        yield made


def running(engine: Engine) -> int:
    return engine.call_scheduler("get_internal_state")["num_running_reqs"]


def slowly(count: int = 1000) -> dict:
    """Arguments of a request that takes a while."""
    return {"input_ids": IDS, "sampling_params": {"max_new_tokens": count}, "extra_key": "slow"}


# --- generating -------------------------------------------------------------------------------------------------------


def test_one_prompt_gives_one_answer(engine):
    answer = engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 5})
    assert answer["output_ids"] == [300, 301, 302, 300, 301]
    assert answer["meta_info"]["prompt_tokens"] == 3
    assert answer["meta_info"]["finish_reason"] == {"type": "length", "length": 5}


def test_text_comes_back_as_text(engine):
    prompt = "A small tree"
    ids = engine.tokenizer_manager.tokenizer.encode(prompt)
    assert engine.generate(prompt, {"max_new_tokens": len(ids)})["text"] == prompt


def test_a_session_remembers_prompt_and_output(engine):
    session = engine.open_session()
    turn = {"sampling_params": {"max_new_tokens": 3}, "session_params": {"id": session}}
    first = engine.generate(input_ids=IDS, rid="turn", **turn)
    turn["session_params"]["rid"] = first["meta_info"]["id"]
    second = engine.generate(
        input_ids=[400], sampling_params={"max_new_tokens": 8}, session_params=turn["session_params"]
    )
    assert second["output_ids"] == [*IDS, *first["output_ids"], 400, IDS[0]]
    engine.close_session(session)
    with pytest.raises(BadRequest, match="no session"):
        engine.generate(input_ids=IDS, **turn)


def test_several_prompts_and_parallel_samples_give_lists(engine):
    answers = engine.generate(input_ids=[[300], [301]], sampling_params=[{"max_new_tokens": 1}, {"max_new_tokens": 2}])
    assert [answer["output_ids"] for answer in answers] == [[300], [301, 301]]
    assert len(engine.generate(["one"], {"max_new_tokens": 1})) == 1
    assert len(engine.generate("one", {"max_new_tokens": 1, "n": 3})) == 3


def test_arrays_tuples_and_sampling_params_objects_are_taken(engine):
    params = SamplingParams(max_new_tokens=3)
    for ids in (np.array(IDS), tuple(IDS)):
        assert engine.generate(input_ids=ids, sampling_params=params)["output_ids"] == IDS
    answers = engine.generate(input_ids=np.array([IDS, IDS]), sampling_params=[params, params])
    assert [answer["output_ids"] for answer in answers] == [IDS, IDS]


def test_stream_ends_with_the_whole_answer(engine):
    events = list(engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 10}, stream=True))
    whole = engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 10})
    assert len(events) > 1
    assert (events[-1]["text"], events[-1]["output_ids"]) == (whole["text"], whole["output_ids"])


def test_what_is_wrong_with_a_request_is_a_value_error(engine):
    with pytest.raises(ValueError, match="top_p"):
        engine.generate("x", {"top_p": 2.0})
    with pytest.raises(BadRequest, match="prompt or input_ids is required"):
        engine.generate()
    with pytest.raises(BadRequest, match="stream"):
        engine.generate("x", stream="yes")
    with pytest.raises(BadRequest):
        list(engine.generate("x", {"no_such_parameter": 1}, stream=True))
    assert engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 3})["output_ids"] == IDS


FURTHER_KEYWORDS = {
    **dict.fromkeys(("image_data", "audio_data", "video_data", "mm_hashes", "mm_content_hashes", "lora_path")),
    **dict.fromkeys(("custom_logit_processor", "kv_hints", "bootstrap_host", "bootstrap_port", "bootstrap_room")),
    **dict.fromkeys(("disagg_prefill_dp_rank", "external_trace_header", "session_id")),
    **dict.fromkeys(("require_reasoning", "return_hidden_states"), False),
}


def test_calls_written_for_sglang_run_if_they_ask_for_nothing_else(engine):
    params = {"max_new_tokens": 3}
    for further in (FURTHER_KEYWORDS, {"image_data": [], "session_id": "x", "external_trace_header": {"a": "b"}}):
        assert engine.generate(input_ids=IDS, sampling_params=params, **further)["output_ids"] == IDS
        answer = asyncio.run(engine.async_generate(input_ids=IDS, sampling_params=params, **further))
        assert answer["output_ids"] == IDS
    per_prompt = {"lora_path": [None, None], "return_hidden_states": (False, False)}
    assert len(engine.generate(input_ids=[IDS, IDS], sampling_params=params, **per_prompt)) == 2
    assert engine.generate(None, params, IDS, return_logprob=None, rid=None)["output_ids"] == IDS


def test_further_keywords_that_ask_for_something_are_refused_as_over_http(engine) -> None:
    cases = [
        ({"lora_path": "adapter"}, r"lora_path is not supported"),
        ({"lora_path": [None, "adapter"]}, r"lora_path is not supported"),
        ({"image_data": ["a.png"]}, r"image_data is not supported"),
        ({"return_hidden_states": True}, "return_hidden_states is not supported"),
        ({"routed_dp_rank": 1}, "routed_dp_rank must be in"),
        ({"session_id": 3}, "session_id must be a string, got 3"),
        ({"session_id": "x", "session_params": {"id": "y"}}, "give either session_params or session_id, not both"),
    ]
    for further, message in cases:
        with pytest.raises(BadRequest, match=message):
            engine.generate("x", **further)
        with pytest.raises(BadRequest, match=message):
            asyncio.run(engine.async_generate("x", **further))


def test_keywords_of_vectors_are_accepted_and_refused_alike(engine):
    with pytest.raises(BadRequest, match="embed_overrides is not supported"):
        engine.encode("x", embed_overrides=[[1.0]])
    with pytest.raises(BadRequest, match="this model generates text"):  # and nothing is said of the keywords
        engine.encode("x", image_data=None, audio_data=None, lora_path=None, embed_override_token_id=None)
    with pytest.raises(TypeError, match=r"encode\(\) got .* 'dimension'; did you mean 'dimensions'\?"):
        asyncio.run(engine.async_encode("x", dimension=3))


def test_a_keyword_that_nobody_knows_is_a_type_error(engine) -> None:
    cases = [
        ("sampling_param", "; did you mean 'sampling_params'?"),
        ("lora_paths", "; did you mean 'lora_path'?"),
        ("qq", ""),
    ]
    for name, hint in cases:
        with pytest.raises(TypeError) as told:
            engine.generate("x", **{name: None})
        assert str(told.value) == f"generate() got an unexpected keyword argument {name!r}{hint}"


def test_what_is_reranked_are_pairs(engine) -> None:
    for pairs in ["ab", ["ab", "cd"], [("a", "b"), "cd"], [("a", 1)], [("a",)], [1], 1, None, []]:
        with pytest.raises(BadRequest, match="prompt must be a list of pairs"):
            engine.rerank(pairs)


def test_it_works_inside_a_running_event_loop(engine):
    async def notebook() -> None:
        params = {"max_new_tokens": 3}
        assert engine.generate(input_ids=IDS, sampling_params=params)["output_ids"] == IDS
        assert (await engine.async_generate(input_ids=IDS, sampling_params=params))["output_ids"] == IDS
        answers = await asyncio.gather(*(engine.async_generate(input_ids=[i], sampling_params=params) for i in IDS))
        assert [answer["output_ids"] for answer in answers] == [[i] * 3 for i in IDS]
        events = [e async for e in await engine.async_generate(input_ids=IDS, sampling_params=params, stream=True)]
        assert events[-1]["output_ids"] == IDS
        with pytest.raises(BadRequest):
            await engine.async_generate()

    asyncio.run(notebook())


def test_many_threads_use_one_engine_and_several_engines_live_side_by_side(engine):
    results: dict[tuple[int, int], list[int]] = {}
    with EchoEngine() as second:

        def work(which: int, thread: int) -> None:
            for _ in range(5):
                answer = (engine, second)[which].generate(input_ids=[thread], sampling_params={"max_new_tokens": 4})
                results[which, thread] = answer["output_ids"]

        threads = [threading.Thread(target=work, args=(which, i)) for which in range(2) for i in range(10, 14)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert results == {(which, i): [i] * 4 for which in range(2) for i in range(10, 14)}


# --- giving up --------------------------------------------------------------------------------------------------------


def test_leaving_a_stream_early_ends_the_request(engine):
    for event in engine.generate(**slowly(), stream=True):
        assert event["output_ids"]
        assert running(engine) == 1
        break
    gc.collect()
    assert eventually(lambda: running(engine) == 0)


def test_cancelling_a_coroutine_ends_the_request(engine):
    async def scenario() -> None:
        task = asyncio.create_task(engine.async_generate(**slowly()))
        while running(engine) == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        events = await engine.async_generate(**slowly(), stream=True)
        async for _ in events:
            break
        await events.aclose()

    asyncio.run(scenario())
    assert eventually(lambda: running(engine) == 0)


def test_abort_gives_the_caller_what_there_is(engine):
    answers: list[dict] = []
    caller = threading.Thread(target=lambda: answers.append(engine.generate(**slowly(), rid="mine")))
    caller.start()
    assert eventually(lambda: running(engine) == 1)
    engine.abort("nobody's")
    engine.abort_request("mine")
    caller.join(5)
    assert answers[0]["meta_info"]["finish_reason"]["type"] == "abort"


# --- control ----------------------------------------------------------------------------------------------------------


def test_information_about_engine_and_model(engine):
    assert engine.flush_cache().success
    assert engine.get_model_info()["is_generation"] is True
    info = engine.get_server_info()
    assert info["max_total_num_tokens"] == 1000
    assert info["internal_states"][0]["idle"] is True
    assert info["startup_time"] > 0
    assert len(engine.get_all_child_pids()) == 2
    with pytest.raises(RequestFailed, match="unknown method no_such_method"):
        engine.call_scheduler("no_such_method", a=1)
    with pytest.raises(BadRequest):
        engine.call_scheduler("flush_cache", timeout=object())


def test_the_detokenizer_does_not_load_torch(engine):
    assert not loads_torch(engine.get_all_child_pids()[1])


# --- a guest ----------------------------------------------------------------------------------------------------------


def test_the_host_is_left_as_it_was():
    def host_state() -> tuple:
        loggers = [logging.getLogger(name) for name in (None, "bough", "uvicorn", "asyncio")]
        return (
            [signal.getsignal(number) for number in signal.valid_signals()],
            [(logger.level, list(logger.handlers), logger.propagate) for logger in loggers],
            dict(os.environ),
            type(asyncio.get_event_loop_policy()),
            threading.excepthook,
            sys.excepthook,
        )

    before = host_state()
    with EchoEngine() as engine:
        engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 3})
        assert host_state() == before
    assert host_state() == before


def test_ten_engines_leave_nothing(own_tmp):
    def one() -> None:
        with EchoEngine(skip_tokenizer_init=True) as engine:
            engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 3})

    def engines(count: int) -> int:
        for _ in range(count):
            one()
        gc.collect()
        return psutil.Process().memory_info().rss

    rss = engines(3)
    before = own_resources()
    grown = engines(10) - rss
    assert own_resources() == before
    assert socket_directories() == set()
    assert grown < 3 * 2**20


@pytest.mark.slow
def test_three_engines_with_models_leave_nothing(own_tmp):
    def one() -> int:
        with Engine(dtype="float32", cpu_threads=1, max_total_tokens=2048) as engine:
            answer = engine.generate("A tree", {"max_new_tokens": 3, "ignore_eos": True})
            pids = engine.get_all_child_pids()
        assert answer["meta_info"]["completion_tokens"] == 3
        assert not any(map(is_running, pids))
        gc.collect()
        return psutil.Process().memory_info().rss

    one()
    before = own_resources()
    rss = one()
    grown = one() - rss
    assert own_resources() == before
    assert socket_directories() == set()
    assert grown < 6 * 2**20


def test_shutdown_waits_for_the_threads_that_encode(own_tmp):
    engine = EchoEngine()
    begun = threading.Event()

    def work() -> None:
        begun.set()
        time.sleep(0.3)

    encoder = engine._parts.manager.prompt_encoder
    assert encoder is not None
    future = encoder._apart.submit(0.0, work)
    assert begun.wait(10)
    engine.shutdown()
    assert future.done()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("bough-patterns")]


def test_engine_that_is_forgotten_ends_by_itself():
    before = own_resources()
    engine = EchoEngine()
    assert len(own_resources()[2]) == len(before[2]) + 2
    del engine
    gc.collect()
    assert eventually(lambda: own_resources() == before)


SCRIPT = textwrap.dedent(
    """
    import asyncio, os, signal, sys, threading, time
    from bough.errors import EngineDead
    from tests.entrypoints.test_engine import EchoEngine, IDS

    # Ignored, and inherited as such, where a shell runs the tests in its background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    how = sys.argv[1]
    engine = EchoEngine()
    print(*engine.get_all_child_pids(), flush=True)
    params = {"max_new_tokens": 3}
    if how == "guardless":
        assert engine.generate(input_ids=IDS, sampling_params=params)["output_ids"] == IDS
        assert "torch" not in sys.modules
    elif how == "thread":
        thread = threading.Thread(target=lambda: engine.generate(input_ids=IDS, sampling_params=params))
        thread.start()
        thread.join()
    elif how == "exception":
        raise ValueError("the script fails")
    elif how == "stream":
        stream = engine.generate(input_ids=IDS, sampling_params=params, stream=True)
        next(stream)
    elif how == "fork":
        pid = os.fork()
        if pid == 0:
            stream = engine.generate(input_ids=IDS, sampling_params=params, stream=True)
            for call in (engine.flush_cache, lambda: engine.call_scheduler("flush_cache"), lambda: next(stream)):
                try:
                    call()
                except EngineDead as error:
                    assert "fork" in error.message
                else:
                    os._exit(1)
            engine.shutdown()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert engine.generate(input_ids=IDS, sampling_params=params)["output_ids"] == IDS
    elif how == "signal in shutdown":
        signal.signal(signal.SIGTERM, lambda *_: engine.shutdown())
        end_loop = engine._parts._end_loop
        engine._parts._end_loop = lambda: (signal.raise_signal(signal.SIGTERM), end_loop())
        engine.shutdown()
    elif how == "signal in a call":
        signal.signal(signal.SIGTERM, lambda *_: engine.shutdown())
        os.kill(engine.get_all_child_pids()[0], signal.SIGSTOP)
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        try:
            engine.call_scheduler("get_internal_state")
        except EngineDead:
            pass
    elif how == "wait":
        engine.generate(input_ids=IDS, sampling_params={"max_new_tokens": 1000}, extra_key="slow")
    """
)


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("guardless", 0),
        ("thread", 0),
        ("exception", 1),
        ("stream", 0),
        ("fork", 0),
        ("signal in shutdown", 0),
        ("signal in a call", 0),
    ],
)
def test_script_without_a_guard_that_never_shuts_down_ends_cleanly(tmp_path, how, status):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        # From Python 3.12 on it warns of forks in a process with threads.
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", script, how],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=_with_tests(),
    )
    assert done.returncode == status, done.stderr
    assert (done.stderr == "") == (status == 0), done.stderr
    pids = list(map(int, done.stdout.split()))
    assert len(pids) == 2
    assert not any(map(is_running, pids))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_of_the_host_are_its_own_and_leave_no_child(tmp_path, number):
    """A terminal sends Ctrl-C to the whole group; the host decides what it means."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    host = subprocess.Popen(
        [sys.executable, script, "wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=_with_tests(),
    )  # fmt: skip
    assert host.stdout is not None
    pids = list(map(int, host.stdout.readline().split()))
    directories = directories_of(*pids)
    assert len(directories) == 1
    time.sleep(0.3)
    if number == signal.SIGINT:
        os.killpg(host.pid, number)
    else:
        os.kill(host.pid, number)
    try:
        _, stderr = host.communicate(timeout=20)
    finally:
        host.kill()
    assert host.returncode == -number
    assert ("KeyboardInterrupt" in stderr) == (number == signal.SIGINT)
    assert eventually(lambda: not any(map(is_running, pids)), timeout=5)
    assert eventually(lambda: not any(map(os.path.exists, directories)), timeout=5)


def _with_tests() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.getcwd()}


# --- death ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", [0, 1], ids=["scheduler", "detokenizer"])
def test_dead_child_makes_pending_and_later_calls_raise(victim):
    with EchoEngine() as engine:
        pids = engine.get_all_child_pids()
        errors: list[BaseException] = []

        def call(**how) -> None:
            try:
                for _ in engine.generate(**slowly(), **how) if how else [engine.generate(**slowly())]:
                    pass
            except EngineDead as error:
                errors.append(error)

        callers = [threading.Thread(target=call), threading.Thread(target=call, kwargs={"stream": True})]
        for each in callers:
            each.start()
        assert eventually(lambda: running(engine) == 2)
        os.kill(pids[victim], signal.SIGKILL)
        for each in callers:
            each.join(10)
        assert len(errors) == 2
        name = ("scheduler", "detokenizer")[victim]
        assert str(errors[0]).startswith(f"the {name} process was killed by SIGKILL")
        with pytest.raises(EngineDead, match="SIGKILL"):
            engine.generate(input_ids=IDS)
        with pytest.raises(EngineDead, match="SIGKILL"):
            engine.flush_cache()
        with pytest.raises(EngineDead, match="SIGKILL"):
            engine.call_scheduler("get_internal_state")
        assert eventually(lambda: not any(map(is_running, pids)), timeout=5)


@pytest.mark.parametrize("how", ["die", "hang"])
def test_crash_dump_tells_what_was_unfinished(tmp_path, how):
    with EchoEngine(watchdog_timeout=2.0, crash_dump_folder=str(tmp_path)) as engine:
        with pytest.raises(EngineDead):
            engine.generate(input_ids=IDS, extra_key=how)
        assert eventually(lambda: any(path.stat().st_size for path in tmp_path.iterdir()))
        (path,) = tmp_path.iterdir()
        assert [each["outcome"] for each in json.loads(path.read_text())["unfinished"]] == ["unfinished"]


def test_hung_child_is_dead_after_the_watchdog_time():
    with EchoEngine(watchdog_timeout=2.0) as engine:
        pids = engine.get_all_child_pids()
        with pytest.raises(EngineDead, match="no sign of life from scheduler"):
            engine.generate(input_ids=IDS, extra_key="hang")
        assert eventually(lambda: not any(map(is_running, pids)), timeout=5)


def test_shutdown_that_is_interrupted_leaves_no_process_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EchoEngine()
    pids = engine.get_all_child_pids()
    loop_thread = engine._parts._loop_thread
    assert loop_thread is not None

    def interrupted(ending: Coroutine[Any, Any, None]) -> None:
        ending.close()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(loop_thread, "call", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.shutdown()
    assert not any(map(is_running, pids))
    loop_thread.call(engine._parts._stop())
    loop_thread.close()


def test_shutdown_fails_pending_calls_and_later_ones():
    engine = EchoEngine()
    errors: list[BaseException] = []

    def call() -> None:
        try:
            engine.generate(**slowly())
        except EngineDead as error:
            errors.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    assert eventually(lambda: running(engine) == 1)
    pids = engine.get_all_child_pids()
    engine.shutdown()
    assert not any(map(is_running, pids))
    caller.join(5)
    assert [str(error) for error in errors] == ["the engine was shut down"]
    engine.shutdown()
    for later in (lambda: engine.generate("x"), engine.flush_cache, lambda: list(engine.generate("x", stream=True))):
        with pytest.raises(EngineDead, match="the engine was shut down"):
            later()


def test_engine_that_cannot_start_says_why_and_leaves_nothing(own_tmp) -> None:
    for how, error, message in [
        ("config-error", ConfigError, "no such device"),
        ("killed", StartupError, "was killed by SIGKILL"),
    ]:
        before = own_resources()
        with pytest.raises(error, match=message):
            EchoEngine(served_model_name=how)
        gc.collect()
        assert eventually(lambda: own_resources() == before)
        assert socket_directories() == set()


def test_wrong_options_are_refused_before_anything_starts():
    with pytest.raises(ConfigError, match="did you mean"):
        EchoEngine(max_running_request=3)
    with pytest.raises(ConfigError, match="no such directory"):
        EchoEngine(model_path="/no/such/directory")
    with pytest.raises(ConfigError, match="otlp_traces_endpoint is for servers"):
        EchoEngine(otlp_traces_endpoint="http://localhost:4318/v1/traces")
    with pytest.raises(ConfigError, match="not both"):
        EchoEngine(server_args=ServerArgs(), log_level="info")
