from __future__ import annotations

import concurrent.futures
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from bough.config.ranks import SCHEDULER
from bough.ipc.messages import ControlReply, ControlReq
from tests.entrypoints.http.server import CONTEXT_LEN, MODEL_NAME, RunningServer, running_server

RUN = {"text": "Hi", "sampling_params": {"max_new_tokens": 400, "ignore_eos": True}}


def test_root(client: httpx.Client) -> None:
    assert client.get("/").json() == "Bough is running"


def test_models(client: httpx.Client) -> None:
    (card,) = client.get("/v1/models").json()["data"]
    assert card["id"] == MODEL_NAME
    assert card["max_model_len"] == CONTEXT_LEN
    assert {"object", "created", "owned_by", "root", "parent"} <= card.keys()
    assert client.get(f"/v1/models/{MODEL_NAME}").json() == card
    missing = client.get("/v1/models/other")
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"
    assert missing.json()["error"]["param"] == "model"


def test_model_info(client: httpx.Client) -> None:
    info = client.get("/model_info").json()
    assert info == client.get("/get_model_info").json()
    assert info["served_model_name"] == MODEL_NAME
    assert info["is_generation"] is True
    assert info["weight_version"] == "default"
    assert info["architectures"] == ["Qwen3ForCausalLM"]
    assert info["model_type"] == "qwen3"


def test_server_info(client: httpx.Client) -> None:
    info = client.get("/server_info").json()
    assert info.keys() == client.get("/get_server_info").json().keys()
    assert info["schedule_policy"] == "lpm"
    assert info["launch_command"].startswith("bough serve --model-path ")
    assert info["max_total_num_tokens"] == 4096
    assert info["internal_states"][0]["last_gen_throughput"] == 1.0
    assert info["version"]


def test_flush_cache(server: RunningServer, client: httpx.Client) -> None:
    for call in (client.get, client.post):
        response = call("/flush_cache")
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/plain")
    assert client.post("/flush_cache?timeout=2.5").status_code == 200
    for wrong in ("x", "-1", "nan", "1e9"):
        assert client.post(f"/flush_cache?timeout={wrong}").status_code == 400


def test_flush_cache_fails_while_requests_run_unless_it_may_wait(server: RunningServer, client: httpx.Client) -> None:
    server.run(server.engine.gate.clear)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = pool.submit(httpx.post, f"{server.url}/generate", json=RUN)
        server.wait_until(lambda: server.engine.running)
        response = client.post("/flush_cache")
        assert response.status_code == 400
        assert "running" in response.text
        waiting = pool.submit(httpx.post, f"{server.url}/flush_cache?timeout=20")
        client.post("/abort_request", json={"abort_all": True})
        running.result()
        assert waiting.result().status_code == 200


class TestAbort:
    def run_and_abort(
        self, server: RunningServer, client: httpx.Client, bodies: list[dict[str, Any]], abort: dict[str, Any]
    ) -> list[httpx.Response]:
        server.run(server.engine.gate.clear)
        with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            calls = [pool.submit(httpx.post, f"{server.url}/generate", json=body, timeout=20) for body in bodies]
            server.wait_until(lambda: len(server.engine.running) >= len(bodies))
            assert client.post("/abort_request", json=abort).status_code == 200
            server.run(server.engine.gate.set)
            return [call.result() for call in calls]

    def reasons(self, responses: list[httpx.Response]) -> list[str]:
        assert all(response.status_code == 200 for response in responses)
        return [response.json()["meta_info"]["finish_reason"]["type"] for response in responses]

    def test_by_id(self, server: RunningServer, client: httpx.Client) -> None:
        bodies = [{**RUN, "rid": "job-a"}, {**RUN, "rid": "other"}]
        assert self.reasons(self.run_and_abort(server, client, bodies, {"rid": "job-a"})) == ["abort", "length"]

    def test_by_prefix(self, server: RunningServer, client: httpx.Client) -> None:
        bodies = [{**RUN, "rid": f"job-{i}"} for i in range(3)] + [{**RUN, "rid": "other"}]
        responses = self.run_and_abort(server, client, bodies, {"rid": "job-"})
        assert self.reasons(responses) == ["abort", "abort", "abort", "length"]

    def test_all(self, server: RunningServer, client: httpx.Client) -> None:
        responses = self.run_and_abort(server, client, [RUN, RUN], {"abort_all": True})
        assert self.reasons(responses) == ["abort", "abort"]
        assert "status_code" not in responses[0].json()["meta_info"]["finish_reason"]

    def test_stream_gets_a_last_event(self, server: RunningServer, client: httpx.Client) -> None:
        (response,) = self.run_and_abort(server, client, [{**RUN, "stream": True, "rid": "s"}], {"rid": "s"})
        assert '"type":"abort"' in response.text.split("\n\n")[-3]

    def test_parallel_samples_share_the_prefix_of_their_ids(self, server: RunningServer, client: httpx.Client) -> None:
        body = {**RUN, "rid": "many", "sampling_params": {**RUN["sampling_params"], "n": 3}}
        (response,) = self.run_and_abort(server, client, [body], {"rid": "many"})
        assert [item["meta_info"]["finish_reason"]["type"] for item in response.json()] == ["abort"] * 3

    def test_of_nothing_is_harmless(self, server: RunningServer, client: httpx.Client) -> None:
        for body in ({}, {"rid": ""}, {"rid": "unknown"}, {"rid": None, "abort_all": None}):
            assert client.post("/abort_request", json=body).status_code == 200
        assert client.post("/abort_request", json={"rid": 5}).status_code == 400


class TestPause:
    def test_running_requests_end_with_what_they_have_and_new_ones_wait(
        self, server: RunningServer, client: httpx.Client
    ) -> None:
        server.engine.token_delay = 0.005
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            running = pool.submit(httpx.post, f"{server.url}/generate", json=RUN)
            server.wait_until(lambda: server.engine.running)
            answer = client.post("/pause_generation", json={})
            assert answer.json().keys() == {"message", "status"}
            assert running.result().json()["meta_info"]["finish_reason"]["type"] == "abort"
            assert not server.manager.rid_to_state, "all had their last event before the answer"
            short = {"text": "Hi", "sampling_params": {"max_new_tokens": 2}}
            waiting = pool.submit(httpx.post, f"{server.url}/generate", json=short)
            server.wait_until(lambda: server.engine.running)
            assert client.get("/ready").status_code == 503
            assert client.get("/health").status_code == client.get("/health_generate").status_code == 200
            assert not waiting.done()
            assert client.post("/continue_generation").json()["status"] == "ok"
            assert waiting.result().json()["meta_info"]["completion_tokens"] == 2
        assert client.get("/ready").status_code == 200

    def test_running_requests_may_stay(self, server: RunningServer, client: httpx.Client) -> None:
        server.engine.token_delay = 0.001
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(httpx.post, f"{server.url}/generate", json=RUN)
            server.wait_until(lambda: server.engine.running)
            client.post("/pause_generation", json={"mode": "in_place"})
            assert not running.done()
            client.post("/continue_generation", json={"torch_empty_cache": False})
            assert running.result().json()["meta_info"]["completion_tokens"] == 400

    @pytest.mark.parametrize("path", ["/pause_generation", "/continue_generation"])
    def test_callers_that_leave_before_the_answer_change_nothing(
        self, server: RunningServer, client: httpx.Client, path: str
    ) -> None:
        if path == "/continue_generation":
            client.post("/pause_generation", json={"mode": "in_place"})
        answer = server.engine._control
        unsent: list[ControlReply] = []

        def without_answer(message: ControlReq) -> ControlReply:
            unsent.append(answer(message))
            return ControlReply("of somebody else", SCHEDULER, True)

        server.engine._control = without_answer  # type: ignore[method-assign]
        with pytest.raises(httpx.ReadTimeout):
            client.post(path, timeout=0.2)
        server.engine._control = answer  # type: ignore[method-assign]
        assert client.get("/ready").status_code == (503 if path == "/pause_generation" else 200)
        server.run(lambda: server.manager.control.on_reply(unsent[0]))
        client.post("/continue_generation")
        assert client.get("/ready").status_code == 200

    def test_a_server_that_drains_goes_on_and_cannot_be_paused(self, tmp_path: Path) -> None:
        with running_server(tmp_path) as server, httpx.Client(base_url=server.url) as client:
            client.post("/pause_generation")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                waiting = pool.submit(httpx.post, f"{server.url}/generate", json=RUN)
                server.wait_until(lambda: server.engine.running)
                server.run(server.manager.start_draining)
                assert waiting.result().status_code == 200
            assert client.post("/pause_generation").status_code == 503

    def test_what_makes_no_sense_is_refused(self, client: httpx.Client) -> None:
        refused = client.post("/pause_generation", json={"mode": "later"})
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "mode"
        assert client.get("/ready").status_code == 200


class TestRequestIds:
    def test_duplicate_is_refused_and_the_first_goes_on(self, server: RunningServer, client: httpx.Client) -> None:
        server.run(server.engine.gate.clear)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(httpx.post, f"{server.url}/generate", json={**RUN, "rid": "same"})
            server.wait_until(lambda: server.engine.running)
            second = client.post("/generate", json={**RUN, "rid": "same"})
            assert second.status_code == 400
            assert second.json()["error"]["param"] == "rid"
            assert second.json()["error"]["code"] == "duplicate_request_id"
            server.run(server.engine.gate.set)
            assert first.result().json()["meta_info"]["id"] == "same"

    def test_id_is_free_again_after_the_end_and_after_an_abort(
        self, server: RunningServer, client: httpx.Client
    ) -> None:
        short = {"text": "Hi", "rid": "again", "sampling_params": {"max_new_tokens": 1}}
        for _ in range(3):
            assert client.post("/generate", json=short).status_code == 200

    def test_id_of_a_client_that_left_can_be_used_at_once(self, server: RunningServer, client: httpx.Client) -> None:
        server.engine.token_delay = 0.005
        for _ in range(5):
            with client.stream("POST", "/generate", json={**RUN, "rid": "again", "stream": True}) as response:
                next(response.iter_bytes())
            # closing the stream closes the connection
        body = {"text": "Hi", "rid": "again", "sampling_params": {"max_new_tokens": 3}}
        server.wait_until(lambda: all(s.abandoned for s in server.manager.rid_to_state.values()))
        answer = client.post("/generate", json=body)
        assert answer.status_code == 200
        assert answer.json()["meta_info"]["completion_tokens"] == 3

    def test_answers_carry_the_id(self, client: httpx.Client) -> None:
        chat = {"messages": [{"role": "user", "content": "Hi"}], "rid": "my-chat", "max_tokens": 1}
        assert client.post("/v1/chat/completions", json=chat).json()["id"] == "my-chat"
        batch = {"text": ["a", "b"], "rid": "my-batch", "sampling_params": {"max_new_tokens": 1}}
        assert [x["meta_info"]["id"] for x in client.post("/generate", json=batch).json()] == [
            "my-batch_0",
            "my-batch_1",
        ]


def metrics(client: httpx.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        sample.name
        + "".join(f",{v}" for k, v in sorted(sample.labels.items()) if k not in ("model_name", "le")): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def test_metrics_count_requests_and_tokens(server: RunningServer, client: httpx.Client) -> None:
    before = metrics(client)
    body = {"prompt": [1, 2, 3, 4], "max_tokens": 6, "stream": True}
    assert client.post("/v1/completions", json=body).status_code == 200
    client.post("/v1/completions", json={"prompt": "x", "temprature": 1})
    after = metrics(client)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0)

    assert grown("bough:num_requests_total") == 1
    assert grown("bough:prompt_tokens_total") == 4
    assert grown("bough:generation_tokens_total") == 6
    assert grown("bough:cached_tokens_total") == 2
    assert grown("bough:num_aborted_requests_total,client_left") == 0
    assert grown("bough:time_to_first_token_seconds_count") == 1
    assert grown("bough:inter_token_latency_seconds_count") == 5
    assert grown("bough:e2e_request_latency_seconds_count") == 1
    assert grown("bough:http_requests_total,/v1/completions,POST") == 2
    assert grown("bough:http_responses_total,/v1/completions,POST,200") == 1
    assert grown("bough:http_responses_total,/v1/completions,POST,400") == 1
    assert after["bough:http_requests_active"] == 0


def test_first_tokens_and_gaps_are_counted_of_whole_answers_too(server: RunningServer, client: httpx.Client) -> None:
    server.engine.token_delay = 0.002
    before = metrics(client)
    body = {"input_ids": [1, 2], "sampling_params": {"max_new_tokens": 6, "n": 2}}
    assert client.post("/generate", json=body).status_code == 200
    after = metrics(client)
    for name, count in (("time_to_first_token", 2), ("queue_time", 2), ("inter_token_latency", 10)):
        name = f"bough:{name}_seconds"
        assert after[f"{name}_count"] - before.get(f"{name}_count", 0) == count
        assert after[f"{name}_sum"] > before.get(f"{name}_sum", 0)


def test_metrics_show_the_schedulers_load(server: RunningServer, client: httpx.Client) -> None:
    server.run(
        lambda: server.engine.heartbeat(
            num_running_reqs=3, num_queue_reqs=5, num_used_tokens=1024, max_total_num_tokens=4096, gen_throughput=99.5
        )
    )
    server.wait_until(lambda: server.manager.metrics.heartbeats)
    shown = metrics(client)
    assert shown["bough:num_running_reqs"] == 3
    assert shown["bough:num_queue_reqs"] == 5
    assert shown["bough:num_used_tokens"] == 1024
    assert shown["bough:token_usage"] == 0.25
    assert shown["bough:gen_throughput"] == 99.5


def test_many_control_calls_at_once_get_their_own_answers(server: RunningServer, client: httpx.Client) -> None:
    results: list[int] = []

    def call(path: str, expected: str) -> None:
        response = httpx.get(f"{server.url}{path}")
        results.append(response.status_code if expected in response.text else 0)

    threads = [
        threading.Thread(target=call, args=args)
        for args in [("/flush_cache", "flushed"), ("/server_info", "last_gen_throughput")] * 8
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [200] * 16


def test_no_client_can_add_a_series(client: httpx.Client) -> None:
    def series() -> set[str]:
        return set(metrics(client))

    body = {"prompt": "Hi", "max_tokens": 1}
    client.post("/v1/completions", json=body)
    client.post("/v1/completions", json={"nonsense": 1})
    client.post("/v1/completions", json={**body, "temperature": -1})
    client.get("/v1/models/one")
    before = series()
    for name in ("first", "second", 'x",y="'):
        client.get(f"/nowhere/{name}")
        client.request("PATCH", "/v1/completions")
        client.get(f"/v1/models/{name}")
        client.post("/v1/completions", json={**body, "model": name, "rid": name, "user": name})
        client.post("/v1/completions", json={**body, name: 1})
        client.post(
            "/v1/completions", json=body, headers={"x-request-id": name, "user-agent": name, "traceparent": name}
        )
    assert series() == before
