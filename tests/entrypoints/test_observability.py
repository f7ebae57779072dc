"""What a real server, in processes of its own, tells those who watch it, and what it keeps to itself."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.entrypoints.leftovers import eventually
from tests.entrypoints.test_launch import serve  # noqa: F401  # a fixture

KEY, FILE_KEY, ADMIN_KEY, WRONG_KEY = "sk-one-1111", "sk-two-2222", "sk-admin-3333", "sk-wrong-4444"
PROMPT = (300, 301)


def stage_counts(url: str) -> dict[str, float]:
    families = text_string_to_metric_families(httpx.get(f"{url}/metrics").text)
    return {
        sample.labels["stage"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "bough:per_stage_req_latency_seconds_count"
    }


def test_logs_are_json_and_name_no_secret(serve, tmp_path: Path) -> None:  # noqa: F811
    keys = tmp_path / "keys"
    keys.write_text(FILE_KEY)
    keys.chmod(0o600)
    flags = ("--api-key", KEY, "--api-key-file", str(keys), "--admin-api-key", ADMIN_KEY)
    server = serve(
        *flags, "--log-level", "debug", "--log-format", "json", "--log-requests", "--log-requests-level", "1"
    ).wait_until_ready()
    with httpx.Client(base_url=server.url, timeout=30) as client:
        shown = []
        for key in (KEY, FILE_KEY, ADMIN_KEY, WRONG_KEY):
            headers = {"authorization": f"Bearer {key}", "x-request-id": "call-7"}
            body = {"input_ids": list(PROMPT), "sampling_params": {"max_new_tokens": 2}}
            assert client.post("/generate", json=body, headers=headers).status_code == (200, 401)[key == WRONG_KEY]
            client.post("/flush_cache", headers=headers)
            shown.append(client.get("/server_info", headers=headers).text)
        shown += [client.get("/metrics").text, client.get("/openapi.json").text]
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    records = [json.loads(line) for line in server.lines]
    finished = [record for record in records if record.get("event") == "request_finished" and "request_id" in record]
    assert [(r["request_id"], r["completion_tokens"], r["outcome"]) for r in finished] == [
        ("call-7", 2, "finished")
    ] * 3
    assert sum(record.get("event") == "request_arrived" and "request_id" in record for record in records) == 3
    for key in (KEY, FILE_KEY, ADMIN_KEY, WRONG_KEY):
        assert not any(key in text for text in (*shown, *server.lines))


def test_a_server_whose_scheduler_dies_writes_down_what_it_was_doing(serve, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "dumps"
    server = serve("--crash-dump-folder", str(folder)).wait_until_ready()
    server.generate(rid="done")
    with contextlib.suppress(httpx.HTTPError), server.stream(1000):
        for pid in server.pids:
            if "echo_scheduler" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
        assert server.wait() == 1
    (path,) = folder.iterdir()
    assert any(str(path) in line for line in server.lines)
    dump = json.loads(path.read_text())
    assert dump["ended"][-1]["rid"] == "done"
    (alive,) = dump["unfinished"]
    assert alive["prompt_tokens"] == len(PROMPT)
    assert alive["prompt"] is None
    assert "scheduler" in dump["cause"]


def test_orderly_ends_leave_no_crash_dump(serve, tmp_path: Path) -> None:  # noqa: F811
    folder = tmp_path / "dumps"
    server = serve("--crash-dump-folder", str(folder), "--log-requests").wait_until_ready()
    server.generate()
    assert eventually(lambda: stage_counts(server.url).get("tokenize") == 1, 5)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not folder.exists()
    assert any(re.search(r"Request '\w{32}': 2 prompt tokens", line) for line in server.lines)
