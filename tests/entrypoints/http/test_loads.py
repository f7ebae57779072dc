from __future__ import annotations

import httpx
from prometheus_client.parser import text_string_to_metric_families


def test_load_of_every_scheduler(client: httpx.Client) -> None:
    answer = client.get("/v1/loads").json()
    (load,) = answer["loads"]
    assert answer["timestamp"]
    assert answer["version"]
    assert load["dp_rank"] == 0
    assert load["num_running_reqs"] == load["num_waiting_reqs"] == 0
    assert {"memory", "queues"} <= load.keys()


def test_sections_are_chosen(client: httpx.Client) -> None:
    cases = [
        ("core", {"num_running_reqs"}),
        ("queues", {"queues"}),
        ("core,queues", {"num_running_reqs", "queues"}),
        ("lora", set()),
    ]
    for include, keys in cases:
        (load,) = client.get("/v1/loads", params={"include": include, "dp_rank": 0}).json()["loads"]
        assert load.keys() & {"num_running_reqs", "queues", "memory"} == keys


def test_prometheus_form(client: httpx.Client) -> None:
    response = client.get("/v1/loads", params={"format": "prometheus"})
    assert response.headers["content-type"].startswith("text/plain")
    names = {family.name for family in text_string_to_metric_families(response.text)}
    assert {"bough_num_running_reqs", "bough_memory_weight_gb", "bough_queues_waiting"} <= names


def test_bad_query_is_refused_naming_the_parameter(client: httpx.Client) -> None:
    for query in [
        "include=x",
        "include=",
        "format=xml",
        "dp_rank=1",
        "dp_rank=-1",
        "dp_rank=x",
        "dp_rank=" + "9" * 5000,
    ]:
        response = client.get(f"/v1/loads?{query}")
        assert response.status_code == 400
        assert response.json()["error"]["param"] == query.partition("=")[0]


def test_every_field_that_routers_know_is_there(client: httpx.Client) -> None:
    (load,) = client.get("/v1/loads").json()["loads"]
    assert load["num_active_tokens"] == load["num_total_tokens"] >= load["num_used_tokens"]
    assert load["num_waiting_uncached_tokens"] == load["num_prealloc_ready_tokens"] == 0
    assert load["decode_moments"] is None
    assert load["memory"]["graph_gb"] == 0.0
    assert load["disaggregation"]["mode"] == "null"
    assert load["queues"] == {"waiting": 0, "grammar": 0, "paused": 0, "retracted": 0, "prealloc_ready": 0}
    gauges = client.get("/v1/loads", params={"format": "prometheus"}).text
    assert "bough_disagg_kv_transfer_latency_ms" in gauges
    assert "mode" not in gauges
    assert "decode_moments" not in gauges
