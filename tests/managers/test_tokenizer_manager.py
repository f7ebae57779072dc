"""The TokenizerManager on its own, with the fake engine at the other end of its channels."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from bough.config.ranks import SCHEDULER
from bough.config.server_args import ServerArgs
from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.chat.job import ChatJob
from bough.entrypoints.http.errors import error_headers
from bough.errors import BadRequest, EngineDead, Overloaded, PayloadTooLarge, RequestFailed
from bough.ipc.messages import BatchStrOutput, ControlReply, FinishReason, OutputDelta, RequestExtras
from bough.managers.embedding_struct import probe_request
from bough.managers.io_struct import GenerateReqInput, GenerateRequest
from bough.managers.req_state import ReqState
from bough.managers.sessions import SessionParams
from bough.managers.tokenizer_manager import TokenizerManager
from bough.observability.request_context import CURRENT, RequestContext
from bough.sampling.sampling_params import SamplingParams
from tests.entrypoints.http.fake_engine import FakeEngine
from tests.entrypoints.http.server import CONTEXT_LEN, tiny_model_config
from tests.entrypoints.http.streams import TIMES
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer

LONG = {"max_new_tokens": 300, "ignore_eos": True, "sampling_seed": 1}


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    """Runs a coroutine function with a manager and its engine, and checks that nothing is left behind."""

    def run(test: Callable[[TokenizerManager, FakeEngine], Awaitable[None]], **args: Any) -> None:
        async def main() -> None:
            with_tokenizer = not args.get("skip_tokenizer_init", False)
            tokenizer = tiny_tokenizer() if with_tokenizer else None
            engine = FakeEngine(tokenizer, eos_id=tokenizer.eos_token_id if tokenizer is not None else None)
            info = {"max_req_input_len": CONTEXT_LEN - 1, "max_req_len": CONTEXT_LEN, "max_running_requests": 2}
            manager = TokenizerManager(
                ServerArgs(model_path=str(tmp_path), **args), tiny_model_config(tmp_path, 300), tokenizer, engine, info
            )
            await manager.start()
            await asyncio.wait_for(test(manager, engine), 20)
            engine.gate.set()
            while manager.rid_to_state or engine.running:
                await asyncio.sleep(0.001)
            async with manager.model_update_lock.writer_lock():
                pass
            assert manager.outputs.queue.num_taken == 0
            await manager.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(main())

    return run


async def results_of(manager: TokenizerManager, **fields: Any) -> list[Any]:
    return [result async for result in manager.generate_request(GenerateReqInput(**fields))]


async def running(engine: FakeEngine, count: int = 1) -> None:
    while len(engine.running) < count:
        await asyncio.sleep(0.001)


class TestResults:
    def test_whole_answer(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            (result,) = await results_of(manager, text="Hi", sampling_params=LONG, rid="r")
            assert manager.tokenizer is not None
            assert result["text"] == manager.tokenizer.decode(result["output_ids"])
            info = result["meta_info"]
            assert info["id"] == "r"
            assert info["finish_reason"] == {"type": "length", "length": 300}
            assert (info["prompt_tokens"], info["completion_tokens"], info["cached_tokens"]) == (2, 300, 1)
            assert info["e2e_latency"] > 0

        run(test)

    @pytest.mark.parametrize("incremental", [False, True])
    def test_stream_says_what_the_whole_answer_says(self, run: Any, incremental: bool) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            fields = {"text": "Hi", "sampling_params": LONG, "return_logprob": True, "logprob_start_len": 0}
            (whole,) = await results_of(manager, **fields)
            results = await results_of(manager, **fields, stream=True)
            assert len(results) > 50
            if incremental:
                assert "".join(result["text"] for result in results) == whole["text"]
                assert [i for result in results for i in result["output_ids"]] == whole["output_ids"]
                for side in ("input", "output"):
                    key = f"{side}_token_logprobs"
                    assert [x for r in results for x in r["meta_info"][key]] == whole["meta_info"][key]
            else:
                assert results[-1]["text"] == whole["text"]
                assert results[-1]["output_ids"] == whole["output_ids"]
                assert len({len(result["output_ids"]) for result in results}) == len(results), "results do not change"
                for name, value in whole["meta_info"].items():
                    if name not in ("id", *TIMES):
                        assert results[-1]["meta_info"][name] == value

        run(test, incremental_streaming_output=incremental)

    def test_batches_come_in_order(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            prompts = ["first", "second", "third " * 100]
            (results,) = await results_of(manager, text=prompts, sampling_params={**LONG, "n": 2, "max_new_tokens": 9})
            assert len(results) == 6
            alone = [await results_of(manager, text=p, sampling_params={**LONG, "max_new_tokens": 9}) for p in prompts]
            assert [results[i]["text"] for i in (0, 2, 4)] == [result[0]["text"] for result in alone]

        run(test)

    def test_without_tokenizer_ids_go_in_and_out(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            (result,) = await results_of(manager, input_ids=[4, 5, 6], sampling_params={"max_new_tokens": 3})
            assert result["output_ids"] == [5, 6, 7]
            assert "text" not in result
            for fields in (
                {"text": "Hi"},
                {"input_ids": [1], "sampling_params": {"stop": "x"}},
                {"input_ids": [1], "return_text_in_logprobs": True},
            ):
                with pytest.raises(BadRequest, match="tokenizer"):
                    await results_of(manager, **fields)

        run(test, skip_tokenizer_init=True)


class TestFailures:
    def test_refusal_of_the_scheduler_is_raised(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            for status, kind in ((400, BadRequest), (503, Overloaded), (500, RequestFailed)):
                engine.refusal = FinishReason("abort", message="no", status_code=status)
                for stream in (False, True):
                    with pytest.raises(kind, match="no"):
                        await results_of(manager, text="Hi", stream=stream)
                    with pytest.raises(kind, match="no"):
                        await results_of(manager, text=["Hi", "Ho"], stream=stream)
            assert manager.metrics.requests.failed_requests.total > 0

        run(test)

    def test_failure_in_the_middle_of_a_stream_is_its_last_result(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.fail_after = 5
            results = await results_of(manager, text="Hi", sampling_params=LONG, stream=True)
            assert results[-1]["meta_info"]["finish_reason"]["type"] == "abort"
            assert results[-1]["meta_info"]["finish_reason"]["status_code"] == 500
            with pytest.raises(RequestFailed, match="out of luck"):
                await results_of(manager, text="Hi", sampling_params=LONG)

        run(test)

    def test_bad_requests_reach_nobody(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            for fields in (
                {"input_ids": [300]},
                {"input_ids": [-1]},
                {"text": "x " * 3000},
                {"text": ["fine", ""]},
                {"text": "Hi", "token_ids_logprob": [300]},
                {"text": "Hi", "return_logprob": True, "logprob_start_len": 5},
                {"text": "Hi", "sampling_params": {"stream_interval": 10**30}},
                {"text": "\ud800 half a character"},
            ):
                with pytest.raises(BadRequest):
                    await results_of(manager, **fields)
            assert engine.received == []
            assert not manager.rid_to_state

        run(test)

    def test_death_of_the_engine_fails_all(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            waiting = [asyncio.create_task(results_of(manager, text="Hi")) for _ in range(5)]
            await running(engine, 5)
            manager.fail_all(EngineDead("gone"))
            engine.dead = True
            for result in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(result, EngineDead)
                assert result.message == "gone"
            with pytest.raises(EngineDead, match="gone"):
                await results_of(manager, text="Hi")
            with pytest.raises(EngineDead, match="gone"):
                await manager.flush_cache()
            assert manager.health.why_not_alive() == "gone"
            for task in list(engine.running.values()):
                task.cancel()

        run(test)

    def test_result_that_cannot_be_handled_ends_its_call_and_nobody_elses(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            on_tokens = manager.outputs.records.on_tokens

            def fail_for_one(state: ReqState, *rest: Any) -> None:
                if state.rid == "unlucky":
                    raise ZeroDivisionError
                on_tokens(state, *rest)

            manager.outputs.records.on_tokens = fail_for_one  # type: ignore[method-assign]
            engine.gate.clear()
            unlucky = asyncio.create_task(results_of(manager, text="Hi", rid="unlucky", sampling_params=LONG))
            others = [asyncio.create_task(results_of(manager, text="Hi", sampling_params=LONG)) for _ in range(3)]
            await running(engine, 4)
            engine._emit([OutputDelta(rid, [1], "x") for rid in ("unlucky", *engine.running)])
            engine.gate.set()
            with pytest.raises(RequestFailed, match="internal error"):
                await unlucky
            assert engine.aborted == ["unlucky"]
            for (result,) in await asyncio.gather(*others):
                assert result["output_ids"][0] == 1
                assert len(result["output_ids"]) == 301

        run(test)

    def test_turn_whose_last_result_cannot_be_handled_is_forgotten(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            def fail(*_: Any) -> None:
                raise ZeroDivisionError

            on_tokens = manager.outputs.records.on_tokens
            manager.outputs.records.on_tokens = fail  # type: ignore[method-assign]
            manager.sessions.open(session_id="s", is_linear=True)
            turn = SessionParams(id="s")
            engine.gate.clear()
            waiting = asyncio.create_task(results_of(manager, text="Hi", rid="r", session_params=turn))
            await running(engine)
            engine.running.pop("r").cancel()
            engine._emit([OutputDelta("r", [1], "x", FinishReason("stop"))])
            with pytest.raises(RequestFailed, match="internal error"):
                await waiting
            engine.gate.set()
            manager.outputs.records.on_tokens = on_tokens  # type: ignore[method-assign]
            (result,) = await results_of(manager, text="Hi", session_params=turn, sampling_params={"max_new_tokens": 4})
            assert len(result["output_ids"]) == 4, "the session is not busy"

        run(test)

    def test_output_that_the_detokenizer_gives_up_ends_in_the_scheduler_too(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            waiting = asyncio.create_task(results_of(manager, text="Hi", rid="r", sampling_params=LONG))
            await running(engine)
            reason = FinishReason("abort", message="out of room", status_code=503)
            engine._emit([OutputDelta("r", [1], None, reason), OutputDelta("r", [1], None, reason)])
            with pytest.raises(Overloaded, match="out of room"):
                await waiting
            assert engine.aborted == ["r"]
            engine.gate.set()
            (result,) = await results_of(manager, text="Hi", rid="r", sampling_params={"max_new_tokens": 4})
            assert len(result["output_ids"]) == 4, "not what was left of the first request"
            assert manager.metrics.requests.failed_requests.total == 1

        run(test)

    def test_message_that_cannot_be_handled_is_dropped(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine._emit([OutputDelta("nobody", [1], "x")])
            engine._outbox.put_nowait(BatchStrOutput(None))  # type: ignore[arg-type]
            (result,) = await results_of(manager, text="Hi", sampling_params={"max_new_tokens": 2})
            assert len(result["output_ids"]) == 2

        run(test)

    def test_nothing_is_taken_before_the_start_and_while_draining(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            manager.health.start_draining()
            with pytest.raises(Overloaded, match="shutting down"):
                await results_of(manager, text="Hi")

        run(test)


class TestCounting:
    """Every output that ends is counted once, and logged once if that is wanted."""

    @staticmethod
    def counts(manager: TokenizerManager) -> dict[str, int]:
        metrics = manager.metrics
        return {
            "all": metrics.requests.num_requests,
            "aborted": metrics.requests.aborted_requests.total,
            "refused": metrics.requests.refused_requests.total,
            "failed": metrics.requests.failed_requests.total,
        }

    @pytest.mark.parametrize(
        "fields",
        [
            {"text": "x " * 3000},
            {"text": "Hi", "sampling_params": {"stop_token_ids": [5000]}},
            {"input_ids": [300]},
            {"text": "Hi", "return_logprob": True, "logprob_start_len": 5},
        ],
    )
    def test_refusals(self, run: Any, fields: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")

        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            with pytest.raises(BadRequest):
                await results_of(manager, **fields, rid="r")
            assert self.counts(manager) == {"all": 1, "aborted": 0, "refused": 1, "failed": 0}

        run(test, log_requests=True)
        (line,) = [message for message in caplog.messages if message.startswith("Request 'r'")]
        assert "refused: " in line

    def test_everything_else(self, run: Any, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")

        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            await results_of(manager, text="Hi", rid="whole", sampling_params={"max_new_tokens": 2})
            engine.refusal = FinishReason("abort", message="no room", status_code=503)
            with pytest.raises(Overloaded):
                await results_of(manager, text="Hi", rid="full")
            engine.refusal = FinishReason("abort", message="broken", status_code=500)
            with pytest.raises(RequestFailed):
                await results_of(manager, text="Hi", rid="broken")
            engine.refusal = None
            leaving = manager.generate_request(
                GenerateReqInput(text="Hi", rid="left", sampling_params=LONG, stream=True)
            )
            await anext(leaving)
            await leaving.aclose()  # type: ignore[attr-defined]
            engine.gate.clear()
            waiting = asyncio.create_task(results_of(manager, text="Hi", rid="dead", sampling_params=LONG))
            await running(engine)
            manager.fail_all(EngineDead("gone"))
            with pytest.raises(EngineDead):
                await waiting
            with pytest.raises(EngineDead):
                await results_of(manager, text="Hi", rid="late")
            assert self.counts(manager) == {"all": 6, "aborted": 1, "refused": 1, "failed": 3}
            for task in list(engine.running.values()):
                task.cancel()

        run(test, log_requests=True)
        outcomes = {}
        for message in caplog.messages:
            if message.startswith("Request '"):
                name = message.split("'")[1]
                assert name not in outcomes, "logged twice"
                outcomes[name] = message
        expected = {
            "whole": "2 generated, length",
            "full": "refused: overloaded",
            "broken": "failed: internal_error",
            "left": "the client left",
            "dead": "failed: engine_dead",
            "late": "failed: engine_dead",
        }
        assert set(outcomes) == set(expected)
        assert all(text in outcomes[name] for name, text in expected.items())


class TestTimeLimits:
    @pytest.mark.parametrize("chat", [False, True])
    def test_time_counts_from_before_the_prompt_is_encoded(
        self, run: Any, monkeypatch: pytest.MonkeyPatch, chat: bool
    ) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            name = "encode_rendered" if chat else "encode"
            encode = getattr(manager.prompt_encoder, name)
            begun: list[float] = []

            async def noting_when(*args: Any, **options: Any) -> Any:
                begun.append(time.monotonic())
                return await encode(*args, **options)

            monkeypatch.setattr(manager.prompt_encoder, name, noting_when)
            before = time.monotonic()
            if chat:
                hi = [{"role": "user", "content": "Hi"}]
                job = ChatJob(messages=hi, rids=["r"], extras=RequestExtras(timeout=7.0))
                async for _ in (core := ChatCore(manager)).deltas(await core.prepare(job)):
                    pass
            else:
                await results_of(manager, text="Hi", sampling_params={"max_new_tokens": 1}, timeout=7.0)
            (message,) = engine.received
            assert message.arrival_time is not None
            assert before <= message.arrival_time <= begun[0]
            assert message.extras.timeout == 7.0, "counted from the arrival"

        run(test)


class TestPlaces:
    """The fake engine computes two outputs at a time, and one may wait."""

    @pytest.mark.parametrize("end", ["finished", "left", "aborted"])
    def test_what_the_scheduler_has_no_place_for_is_not_sent_to_it(self, run: Any, end: str) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            params = {"max_new_tokens": 2}
            calls = [
                asyncio.create_task(results_of(manager, text="Hi", sampling_params=params, rid=str(index)))
                for index in range(3)
            ]
            await running(engine, 3)
            with pytest.raises(Overloaded, match="queue is full") as raised:
                await results_of(manager, text="Hi")
            assert raised.value.code == "queue_full"
            assert len(engine.received) == 3
            assert manager.metrics.requests.refused_requests.counts["queue_full"] == 1
            if end == "left":
                calls[0].cancel()  # the scheduler hears of that before what comes next
                await asyncio.sleep(0)
            elif end == "aborted":
                manager.abort_request("0")
                await calls[0]
            else:
                engine.gate.set()
                await calls[0]
            assert manager.outputs.queue.num_taken < 3, "there is room at once"
            engine.gate.set()
            await results_of(manager, text="Hi", sampling_params=params)
            await asyncio.gather(*calls, return_exceptions=True)

        run(test, max_queued_requests=1)

    @pytest.mark.parametrize(
        "bound", [{"max_queued_requests": 1}, {"max_queued_bytes": 4000}], ids=["requests", "bytes"]
    )
    def test_who_is_refused_is_told_to_wait_as_long_as_others_have(self, run: Any, bound: dict[str, int]) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            params = {"max_new_tokens": 2}
            engine.queue_time = 20.0
            for _ in range(40):
                await results_of(manager, text="Hi", sampling_params=params)
            engine.gate.clear()
            waiting = [asyncio.create_task(results_of(manager, text="Hi", sampling_params=params)) for _ in range(3)]
            await running(engine, 3)
            with pytest.raises(Overloaded) as raised:
                await results_of(manager, text="Hi")
            assert raised.value.retry_after == pytest.approx(20.0, abs=0.2)
            assert (b"retry-after", b"20") in error_headers(raised.value)
            engine.gate.set()
            await asyncio.gather(*waiting)

        run(test, **bound)

    def test_the_scheduler_decides_while_it_may_have_a_place(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            first = asyncio.create_task(results_of(manager, text="Hi", sampling_params={"max_new_tokens": 2}))
            await running(engine)
            # More than there are places for: whether it can ever be computed is for the scheduler to say.
            second = asyncio.create_task(results_of(manager, text="Hi", sampling_params={"max_new_tokens": 2, "n": 5}))
            await running(engine, 6)
            probe = probe_request("probe", is_generation=True, max_new_tokens=1)
            async with manager.generation([probe], all_the_way=True) as generation:
                await running(engine, 7)
                engine.gate.set()
                while generation.unfinished:
                    await generation.deltas()
            await asyncio.gather(first, second)

        run(test, max_queued_requests=1)

    def test_what_is_not_sent_yet_takes_no_place(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            encoder, gate = manager.prompt_encoder, asyncio.Event()
            assert encoder is not None
            encode = encoder.encode

            async def when_told(texts: Any, *args: Any, **options: Any) -> Any:
                if len(texts) > 1:
                    await gate.wait()
                return await encode(texts, *args, **options)

            monkeypatch.setattr(encoder, "encode", when_told)
            params = {"max_new_tokens": 2}
            batch = asyncio.create_task(results_of(manager, text=["Hi"] * 9, sampling_params=params))
            await asyncio.sleep(0.01)
            assert not engine.received
            await results_of(manager, text="Hi", sampling_params=params)
            gate.set()
            await batch

        run(test, max_queued_requests=1)

    @pytest.mark.parametrize("chat", [False, True])
    def test_a_fault_of_the_client_is_told_though_the_queue_is_full(self, run: Any, chat: bool) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            others = asyncio.create_task(results_of(manager, text="Hi", sampling_params={"max_new_tokens": 2, "n": 3}))
            await running(engine, 3)
            job = ChatJob(
                messages=[{"role": "user", "content": "Hi"}],
                rids=["r"],
                params=SamplingParams(logit_bias={1_000_000: 1.0}),
            )
            plain = results_of(manager, text="Hi", sampling_params={"logit_bias": {"1000000": 1}})
            with pytest.raises(BadRequest, match="logit_bias"):
                await (ChatCore(manager).prepare(job) if chat else plain)
            plain.close()
            many = asyncio.create_task(results_of(manager, text="Hi", sampling_params={"max_new_tokens": 2, "n": 4}))
            await running(engine, 7)  # the scheduler says that these could never be taken
            engine.gate.set()
            await asyncio.gather(others, many)

        run(test, max_queued_requests=1)

    @pytest.mark.parametrize("closed", ["full", "draining"])
    def test_no_prompt_is_made_of_a_conversation_that_cannot_be_taken(self, run: Any, closed: str) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            core = ChatCore(manager)
            job = ChatJob(messages=[{"role": "user", "content": "Hi"}], rids=["a", "b"])
            await core.prepare(job)
            engine.gate.clear()
            params = {"max_new_tokens": 2, "n": 3}
            others = asyncio.create_task(results_of(manager, text="Hi", sampling_params=params))
            await running(engine, 3)
            if closed == "draining":
                manager.start_draining()
            manager.conversations = None  # type: ignore[assignment]
            with pytest.raises(Overloaded) as raised:
                await core.prepare(job)
            code = "queue_full" if closed == "full" else "shutting_down"
            assert raised.value.code == code
            assert manager.metrics.requests.refused_requests.counts[code] == 2, "one for each output"
            engine.gate.set()
            await others

        run(test, max_queued_requests=1)


class TestWaitingPrompts:
    def test_more_than_may_wait_is_refused_until_it_is_computed(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            params = {"max_new_tokens": 2}
            waiting = [asyncio.create_task(results_of(manager, text="Hi", sampling_params=params)) for _ in range(3)]
            await running(engine, 3)
            assert manager.outputs.waiting.num_bytes == 3 * 1024
            with pytest.raises(Overloaded, match=r"max-queued-bytes") as raised:
                await results_of(manager, text="Hi")
            assert raised.value.code == "queue_full"
            engine.gate.set()
            await asyncio.gather(*waiting)
            await results_of(manager, text="Hi", sampling_params=params)
            assert manager.outputs.waiting.num_bytes == 0

        run(test, max_queued_bytes=4000)

    def test_whatever_comes_alone_is_taken_and_forgotten_however_it_ends(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            with pytest.raises(BadRequest):
                await results_of(manager, text="x " * 3000)
            results = manager.generate_request(
                GenerateReqInput(text="y" * 200, sampling_params={**LONG, "n": 3}, stream=True)
            )
            await anext(results)
            await results.aclose()  # type: ignore[attr-defined]
            while manager.rid_to_state:
                await asyncio.sleep(0.001)
            assert manager.outputs.waiting.num_bytes == 0

        run(test, max_queued_bytes=1024)

    def test_contexts_of_sessions_count_for_each_prompt_that_goes_on_from_them(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            manager.sessions.open(session_id="s")
            params = {"max_new_tokens": 1}
            first = SessionParams(id="s")
            await results_of(manager, input_ids=[5] * 400, rid="first", session_params=first, sampling_params=params)
            received = len(engine.received)
            engine.gate.clear()
            fields = {
                "input_ids": [[7]] * 20,
                "session_params": [SessionParams(id="s", rid="first")] * 20,
                "sampling_params": params,
            }
            waiting = asyncio.create_task(results_of(manager, **fields))
            await running(engine, 20)
            assert manager.outputs.waiting.num_bytes == 20 * 4 * 402
            assert [len(each.input_ids) for each in engine.received[received:]] == [4 * 402] * 20
            with pytest.raises(Overloaded, match=r"max-queued-bytes"):
                await results_of(manager, **fields)
            assert len(engine.received) == received + 20
            engine.gate.set()
            await waiting
            token = CURRENT.set(RequestContext("r"))
            try:
                with pytest.raises(PayloadTooLarge, match=r"contexts of their sessions"):
                    await results_of(
                        manager, **{**fields, "input_ids": [[7]] * 40, "session_params": fields["session_params"] * 2}
                    )
            finally:
                CURRENT.reset(token)
            assert manager.outputs.waiting.num_bytes == 0
            assert manager.sessions.num_tokens == 401 + 20 * 2

        run(test, max_queued_bytes=64_000)

    def test_token_ids_of_a_text_count_once_they_are_known(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            text = "y " * 220
            waiting = asyncio.create_task(results_of(manager, text=text, sampling_params={"max_new_tokens": 2}))
            await running(engine)
            assert manager.outputs.waiting.num_bytes == len(text) + len(engine.received[0].input_ids) > 1024
            engine.gate.set()
            await waiting

        run(test)

    def test_nothing_is_kept_of_a_text_but_the_end_that_was_asked_for(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            params = SamplingParams(max_new_tokens=2)
            request = GenerateRequest(rids=["r"], text="x" * 100_000, truncate_prompt_tokens=7, sampling_params=params)
            async with manager.generation([request]) as generation:
                assert len(engine.received[0].input_ids) == 4 * 7
                assert generation.states[0].obj.text is None
                assert manager.outputs.waiting.num_bytes == 1024

        run(test)

    @pytest.mark.parametrize("end", ["finished", "aborted", "refused", "failed", "left"])
    def test_parameters_count_for_each_prompt_until_it_has_begun_or_ended(self, run: Any, end: str) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            params = {"max_new_tokens": 2, "logit_bias": {str(token): 1.0 for token in range(200)}}
            fields = {"text": ["Hi", "Ho"], "sampling_params": params, "rid": "r"}
            if end == "refused":
                engine.refusal = FinishReason("abort", message="no", status_code=503)
                with pytest.raises(Overloaded):
                    await results_of(manager, **fields)
                assert manager.outputs.waiting.num_bytes == 0
                return
            engine.fail_after = 1 if end == "failed" else None
            waiting = asyncio.create_task(results_of(manager, **fields))
            await running(engine, 2)
            assert manager.outputs.waiting.num_bytes > 2 * 200 * 88, "what a scheduler holds of 200 entries, twice"
            if end == "left":
                waiting.cancel()
            elif end == "aborted":
                manager.abort_request("r")
            else:
                engine.gate.set()
            await asyncio.wait([waiting])
            while manager.rid_to_state:
                await asyncio.sleep(0.001)
            assert manager.outputs.waiting.num_bytes == 0

        run(test)


class TestLeaving:
    def test_abandoned_stream_is_ended_in_the_engine(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            results = manager.generate_request(
                GenerateReqInput(text="Hi", sampling_params={**LONG, "n": 2}, rid="r", stream=True)
            )
            await anext(results)
            await results.aclose()  # type: ignore[attr-defined]
            assert sorted(engine.aborted) == ["r_0", "r_1"]
            assert manager.metrics.requests.aborted_requests.total == 2

        run(test)

    def test_only_unfinished_outputs_are_ended(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            params = [{"max_new_tokens": 1}, LONG]
            results = manager.generate_request(
                GenerateReqInput(text=["a", "b"], sampling_params=params, rid="r", stream=True)
            )
            async for result in results:
                if result["index"] == 0:
                    assert result["meta_info"]["finish_reason"]
                    break
            await results.aclose()  # type: ignore[attr-defined]
            assert engine.aborted == ["r_1"]

        run(test)

    def test_cancelled_while_its_prompt_is_encoded(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            started = asyncio.Event()

            async def encode_for_ever(*_: Any, **__: Any) -> Any:
                started.set()
                await asyncio.Event().wait()

            monkeypatch.setattr(manager.prompt_encoder, "encode", encode_for_ever)
            waiting = asyncio.create_task(results_of(manager, text="Hi", rid="r"))
            await started.wait()
            assert "r" in manager.rid_to_state
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert not manager.rid_to_state
            assert engine.received == []

        run(test)

    def test_aborted_while_its_prompt_is_encoded(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            assert manager.prompt_encoder is not None
            encode = manager.prompt_encoder.encode

            async def abort_meanwhile(*args: Any, **options: Any) -> Any:
                manager.abort_request("r")
                return await encode(*args, **options)

            monkeypatch.setattr(manager.prompt_encoder, "encode", abort_meanwhile)
            (result,) = await results_of(manager, text="Hi", rid="r")
            assert result["meta_info"]["finish_reason"]["type"] == "abort"
            assert engine.received == []

        run(test)

    def test_id_is_taken_until_the_engine_has_let_go_of_it(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            results = manager.generate_request(GenerateReqInput(text="Hi", sampling_params=LONG, rid="r", stream=True))
            await anext(results)
            with pytest.raises(BadRequest, match="in use"):
                await results_of(manager, text="Hi", rid="r")
            await results.aclose()  # type: ignore[attr-defined]
            (result,) = await results_of(manager, text="Hi", rid="r", sampling_params={"max_new_tokens": 4})
            assert len(result["output_ids"]) == 4, "not what was left of the first request"

        run(test)

    @pytest.mark.parametrize("how", ["dead", "draining"])
    def test_waiting_for_an_id_ends_with_the_engine(self, run: Any, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            monkeypatch.setattr(engine, "_abort", lambda message: None)
            results = manager.generate_request(GenerateReqInput(text="Hi", sampling_params=LONG, rid="r", stream=True))
            await anext(results)
            engine.gate.clear()
            await results.aclose()  # type: ignore[attr-defined]
            waiting = asyncio.create_task(results_of(manager, text="Hi", rid="r"))
            while manager.rid_to_state["r"].gone is None:
                await asyncio.sleep(0.001)
            if how == "dead":
                manager.fail_all(EngineDead("gone"))
                error: type[Exception] = EngineDead
            else:
                manager.health.start_draining()
                engine.gate.set()
                error = Overloaded
            with pytest.raises(error):
                await waiting
            assert len(engine.received) == 1
            for task in list(engine.running.values()):
                task.cancel()

        run(test)


class TestUpdates:
    def test_writer_does_not_wait_for_results_to_be_taken(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            params = {**LONG, "n": 2, "max_new_tokens": 20}
            results = manager.generate_request(GenerateReqInput(text="Hi", sampling_params=params, stream=True))
            await anext(results)
            async with manager.model_update_lock.writer_lock():
                assert not engine.running
            assert len([result async for result in results]) >= 2

        run(test)

    def test_writer_waits_for_requests_and_requests_wait_for_it(self, run: Any) -> None:
        async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
            engine.gate.clear()
            first = asyncio.create_task(results_of(manager, text="Hi", sampling_params={"max_new_tokens": 2}))
            await running(engine)
            order: list[str] = []

            async def update() -> None:
                async with manager.model_update_lock.writer_lock():
                    order.append("update")
                    assert not engine.running

            updating = asyncio.create_task(update())
            await asyncio.sleep(0.01)
            second = asyncio.create_task(results_of(manager, text="Ho", sampling_params={"max_new_tokens": 2}))
            await asyncio.sleep(0.01)
            assert len(engine.received) == 1
            engine.gate.set()
            await asyncio.gather(first, updating, second)
            assert order == ["update"]
            assert len(engine.received) == 2

        run(test)


def test_control_call_without_answer_times_out(run: Any) -> None:
    async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
        answer = engine._control
        engine._control = lambda message: ControlReply("of somebody else", SCHEDULER, True)  # type: ignore[method-assign]
        with pytest.raises(RequestFailed, match="did not answer flush_cache") as raised:
            await manager.control.call("flush_cache", timeout=0.02)
        assert raised.value.status_code == 504
        engine._control = answer  # type: ignore[method-assign]
        assert (await manager.flush_cache()).success

    run(test)


def test_long_prompts_do_not_hold_up_the_event_loop(run: Any) -> None:
    async def test(manager: TokenizerManager, engine: FakeEngine) -> None:
        assert manager.prompt_encoder is not None
        turns = 0
        encoding = asyncio.create_task(manager.prompt_encoder.encode(["word and number " * 100] * 40, ["text"] * 40))
        while not encoding.done():
            turns += 1
            await asyncio.sleep(0)
        assert len((await encoding)[0]) > 500
        assert turns > 5

    run(test)
