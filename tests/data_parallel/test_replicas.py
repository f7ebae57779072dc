"""Real servers with replicas and no model: every token that comes back is checked."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from tests.e2e.server import Server, running_server
from tests.e2e.test_fake_model import make_checkpoint
from tests.entrypoints.leftovers import eventually
from tests.scheduler.harness import prompt_of

from bough_fake.model import FakeModel

CONCURRENCY = 64
GROUPS, SHARED_TOKENS = 6, 128
NUM_CHECKPOINTS = 4
FLAGS = ("--max-total-tokens", "4096", "--max-running-requests", "16")


def assert_all_idle_and_whole(server: Server) -> None:
    assert eventually(lambda: all(state["idle"] for state in server.states()), 30), server.states()
    for state in server.states():
        assert state["kv_discrepancy"] is None
        assert state["kv_accounting_repairs_total"] == 0
        assert state["num_running_reqs"] == state["num_queue_reqs"] == state["num_waiting_tokens"] == 0


def make_checkpoints(directory: Path, **settings: Any) -> tuple[list[Path], int]:
    """Return checkpoints of one model whose greedy tokens differ, the i-th with a shift of i, and their vocabulary."""
    paths = [directory / f"w{shift}" for shift in range(NUM_CHECKPOINTS)]
    vocab_size = 0
    for shift, path in enumerate(paths):
        path.mkdir()
        vocab_size = make_checkpoint(path, shift=shift, **settings)
    return paths, vocab_size


def is_right(prompt: list[int], output: list[int], info: dict[str, Any], vocab_size: int) -> bool:
    """Return whether each token is that of the weights which ``meta_info`` names: ``wI`` for a shift of I."""
    spans = info.get("weight_versions") or [{"version": info["weight_version"], "start": 0, "end": len(output)}]
    expected: list[int] = []
    for span in spans:
        model = FakeModel(vocab_size, shift=int(span["version"][1:]))
        expected += model.expected_tokens([*prompt, *expected], span["end"] - span["start"])
    return output == expected


class Clients:
    """Clients that ask, leave and interfere at random."""

    def __init__(self, url: str, checkpoints: list[Path], vocab_size: int, count: int) -> None:
        self.url, self.checkpoints, self.vocab_size = url, checkpoints, vocab_size
        self.numbers = iter(range(count))
        self.wrong: list[str] = []
        self.done: Counter[str] = Counter()
        """Requests that had all of their tokens, and interference that was not refused, by kind."""

    async def run(self) -> None:
        self.pausing = asyncio.Lock()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self.session:
            await asyncio.gather(*(self._work(random.Random(i)) for i in range(CONCURRENCY)))

    async def _work(self, rng: random.Random) -> None:
        for number in self.numbers:
            kind = rng.choice(["stream"] * 10 + ["samples", "aborted", "left"] * 2 + ["paused", "flushed", "updated"])
            if kind in ("paused", "flushed", "updated"):
                await self._interfere(kind, rng)
            else:
                await self._ask_for_tokens(kind, number, rng)

    async def _ask_for_tokens(self, kind: str, number: int, rng: random.Random) -> None:
        prompt = prompt_of(SHARED_TOKENS, rng.randrange(GROUPS), self.vocab_size)
        prompt = prompt[: rng.randrange(SHARED_TOKENS)] + prompt_of(rng.randrange(1, 30), number, self.vocab_size)
        tokens = rng.randrange(1, 40)
        sampling: dict[str, Any] = {"temperature": 0, "max_new_tokens": tokens, "ignore_eos": True}
        body = {"input_ids": prompt, "stream": True, "sampling_params": sampling}
        if kind == "samples":
            sampling["n"] = 3
            body["stream"] = False
            answers = json.loads(await self._ask("/generate", body))
        elif kind == "left":
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ask("/generate", {**body, "rid": f"left-{number}"}), rng.random() / 20)
            return
        else:
            asking = asyncio.create_task(self._ask("/generate", {**body, "rid": f"one-{number}-"}))
            if kind == "aborted":
                await asyncio.sleep(rng.random() / 20)
                await self._ask("/abort_request", {"rid": f"one-{number}-"})
            lines = [line for line in (await asking).split(b"\n") if line.startswith(b"data: {")]
            answers = [json.loads(lines[-1][6:])]
        for answer in answers:
            output, info = answer["output_ids"], answer["meta_info"]
            is_whole = len(output) == tokens
            may_end = kind == "aborted" or info["finish_reason"].get("message") == "aborted by a pause"
            if not is_right(prompt, output, info, self.vocab_size) or not (is_whole or may_end):
                self.wrong.append(f"{kind} {number}: {len(output)} of {tokens} tokens, {info}")
            self.done[kind] += is_whole

    async def _interfere(self, kind: str, rng: random.Random) -> None:
        if kind == "flushed":
            self.done[kind] += await self._ask("/flush_cache", {}, may_fail=True) is not None
            return
        if kind == "updated" and rng.random() < 0.5:
            await self._update("alone", rng, flush_cache=rng.random() < 0.5)
            return
        # Most pauses are left alone; some are ended by somebody else.
        async with self.pausing if rng.random() < 0.8 else contextlib.nullcontext():
            mode = rng.choice(["in_place", "retract"])
            await self._ask("/pause_generation", {"mode": mode})
            await asyncio.sleep(0.01)
            if kind == "updated":
                await self._update("in a pause", rng, flush_cache=mode == "retract")
            await self._ask("/continue_generation", {})

    async def _update(self, when: str, rng: random.Random, *, flush_cache: bool) -> None:
        path = rng.choice(self.checkpoints)
        body = {"model_path": str(path), "weight_version": path.name, "flush_cache": flush_cache}
        # Refused if somebody else has ended the pause, or has paused while requests hold memory.
        answer = await self._ask("/update_weights_from_disk", body, may_fail=True)
        self.done[f"updated {when}"] += answer is not None

    async def _ask(self, path: str, body: dict[str, Any], *, may_fail: bool = False) -> Any:
        async with self.session.post(self.url + path, json=body) as response:
            text = await response.read()
            if response.status == 200:
                return text
            if not may_fail or response.status != 400:
                self.wrong.append(f"{path}: {response.status} {text[:200]!r}")
            return None


@pytest.mark.parametrize(
    ("replicas", "count"), [(2, 200), pytest.param(4, 2000, marks=pytest.mark.slow)], ids=["two", "four"]
)
def test_every_token_is_right_whatever_clients_do(tmp_path: Path, replicas: int, count: int) -> None:
    checkpoints, vocab_size = make_checkpoints(tmp_path, seconds_per_step=0.001)
    flags = ("--model-path", str(checkpoints[0]), "--weight-version", "w0", "--dp-size", str(replicas))
    flags += ("--schedule-conservativeness", "0.1", *FLAGS)
    with running_server(tmp_path, *flags) as server:
        clients = Clients(server.url, checkpoints, vocab_size, count)
        asyncio.run(clients.run())
        assert clients.wrong == []
        assert clients.done["stream"] > count / 4
        assert min(clients.done[f"updated {how}"] for how in ("alone", "in a pause")) > 0, clients.done
        assert_all_idle_and_whole(server)
        generated = [state["decode_tokens_total"] for state in server.states()]
        assert len(generated) == replicas
        assert min(generated) > sum(generated) / replicas / 3
        assert server.post("/flush_cache").status_code == 200
        assert [state["evictable_tokens"] for state in server.states()] == [0] * replicas
        names = {label for label in range(replicas) if server.metric("scheduler_steps_total", dp_rank=str(label)) > 0}
        assert names == set(range(replicas))


def test_a_prompt_finds_its_prefix_and_unseeded_requests_differ(tmp_path: Path) -> None:
    vocab_size = make_checkpoint(tmp_path)
    with running_server(tmp_path, "--model-path", str(tmp_path), "--dp-size", "3", *FLAGS) as server:
        for group in range(6):
            shared = prompt_of(256, group, vocab_size)
            for follower in range(4):
                sampling = {"max_new_tokens": 1, "temperature": 0}
                answer = server.generate(input_ids=[*shared, follower], sampling_params=sampling)
                assert (answer["meta_info"]["cached_tokens"] > 0) == (follower > 0)
        sampling = {"max_new_tokens": 24, "temperature": 1.0, "ignore_eos": True}
        outputs = {
            tuple(server.generate(input_ids=prompt_of(3, 0, vocab_size), sampling_params=sampling)["output_ids"])
            for _ in range(6)
        }
        assert len(outputs) == 6
        with server.client.stream("GET", "/playground/events") as events:
            picture = json.loads(next(line for line in events.iter_lines() if line).removeprefix("data: "))
        roots = [node for node in picture["nodes"] if not node["parent_id"]]
        assert [root["text"] for root in roots] == ["replica 0", "replica 1", "replica 2"]
        assert sum(root["num_tokens"] for root in roots) == picture["protected_tokens"] + picture["evictable_tokens"]
        ids = {node["node_id"] for node in picture["nodes"]}
        assert len(ids) == len(picture["nodes"]) > len(roots)
        assert {node["parent_id"] for node in picture["nodes"]} <= {"", *ids}


@pytest.mark.parametrize("victim", ["controller", "scheduler"])
def test_the_server_ends_if_one_of_its_processes_dies(tmp_path: Path, victim: str) -> None:
    make_checkpoint(tmp_path)
    with running_server(tmp_path, "--model-path", str(tmp_path), "--dp-size", "2", *FLAGS) as server:
        processes = server.processes()[1:]
        named = {"controller": "data_parallel_controller", "scheduler": "scheduler.process"}[victim]
        process = next(each for each in reversed(processes) if named in " ".join(each.cmdline()))
        process.kill()
        assert server.process.wait(10) != 0
        _gone, alive = psutil.wait_procs(processes, timeout=5)
        assert not alive


def test_a_request_may_name_its_replica(tmp_path: Path) -> None:
    vocab_size = make_checkpoint(tmp_path)
    with running_server(tmp_path, "--model-path", str(tmp_path), "--dp-size", "2", *FLAGS) as server:
        sampling = {"max_new_tokens": 2, "temperature": 0}
        body = {"input_ids": prompt_of(200, 0, vocab_size), "sampling_params": sampling}
        for rank in (1, 0, 1):
            for name in ("routed_dp_rank", "data_parallel_rank"):
                assert server.generate(**body, **{name: rank})["meta_info"]["dp_rank"] == rank
            lines = server.post("/generate", **body, routed_dp_rank=rank, stream=True).text.splitlines()
            events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
            assert [event["meta_info"]["dp_rank"] for event in events] == [rank] * len(events) != []
        header = {"X-Data-Parallel-Rank": "1"}
        answer = server.client.post("/generate", json={**body, "routed_dp_rank": 0}, headers=header)
        assert answer.json()["meta_info"]["dp_rank"] == 1
        of_others = (
            ("/v1/completions", {"prompt": "a", "max_tokens": 1}),
            ("/api/generate", {"model": "m", "prompt": "a", "raw": True, "options": {"num_predict": 1}}),
        )
        for path, other in of_others:
            before = [state["prefill_tokens_total"] for state in server.states()]
            for wanted in ({"json": other, "headers": header}, {"json": {**other, "data_parallel_rank": 1}}):
                assert server.client.post(path, **wanted).status_code == 200, path
            after = [state["prefill_tokens_total"] for state in server.states()]
            assert (after[0], after[1] > before[1]) == (before[0], True), path
        for path, wrong in (("/generate", body), *of_others):
            assert server.client.post(path, json=wrong, headers={"X-Data-Parallel-Rank": "x"}).status_code == 400
            refused = server.client.post(path, json={**wrong, "routed_dp_rank": 2})
            assert refused.status_code == 400
            assert "routed_dp_rank" in refused.text
        outputs = server.generate(**{**body, "sampling_params": {**sampling, "n": 4}})
        assert len({output["meta_info"]["dp_rank"] for output in outputs}) == 1
