"""Servers and engines whose ranks are actors of Ray, on several raylets, and what becomes of them when a part dies."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from bough.entrypoints.engine import Engine
from bough.errors import ConfigError, StartupError
from tests.e2e.server import MAX_TOTAL_TOKENS, running_server
from tests.e2e.test_ranks import GREEDY, PROMPT
from tests.entrypoints.leftovers import eventually
from tests.in_process import output_of
from tests.on_ray.clusters import (
    STORE_BYTES,
    actors,
    cluster_of,
    is_left_nothing,
    machine_apart,
    nodes_of_groups,
    processes_of_ranks,
)

ray = pytest.importorskip("ray")

from ray.util.placement_group import placement_group, remove_placement_group  # noqa: E402
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: E402

FLAGS = ("--use-ray", "--tp-size=2", "--dtype=float32", "--cpu-threads=1", "--watchdog-timeout=5")
END_SECONDS = 15.0
ENGINE: dict[str, Any] = {"dtype": "float32", "cpu_threads": 1, "max_total_tokens": MAX_TOTAL_TOKENS}
ENDLESS = {"temperature": 0, "max_new_tokens": 3000, "ignore_eos": True}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two raylets of one CPU each, so that no two ranks fit into one."""
    with cluster_of(1, 1) as made:
        yield made


@pytest.fixture(autouse=True)
def _finds_the_cluster(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)


def logprobs_of(answer: dict[str, Any]) -> list[float]:
    return [entry[0] for entry in answer["meta_info"]["output_token_logprobs"]]


def wanted_logprobs() -> list[float]:
    found = output_of(PROMPT, GREEDY, dtype="float32").logprobs
    assert found is not None
    return [entry.logprob for entry in found]


def test_ranks_on_two_raylets_answer_as_one_process(tmp_path: Path) -> None:
    with running_server(tmp_path, *FLAGS) as server:
        (nodes,) = nodes_of_groups("CREATED")
        assert len(nodes) == len(actors()) == 2
        answer = server.generate(text=PROMPT, sampling_params=GREEDY, return_logprob=True)
        # On one machine native kernels compute in memory that the ranks share: not a bit differs.
        assert logprobs_of(answer) == wanted_logprobs()
        server.assert_idle_and_whole()
    assert server.process.returncode == 0, server.log.read_text()
    assert eventually(is_left_nothing, END_SECONDS)


@pytest.mark.parametrize("victim", ["actor", "rank", "stopped rank", "server"])
def test_whatever_dies_nothing_is_left(tmp_path: Path, victim: str) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running_server(tmp_path, *FLAGS))
        clients = stack.enter_context(concurrent.futures.ThreadPoolExecutor(1))
        asked = clients.submit(server.post, "/generate", text=PROMPT, sampling_params=ENDLESS)
        assert eventually(lambda: server.state()["num_running_reqs"] == 1)
        actor = actors()[-1]
        (rank,) = [each for each in processes_of_ranks() if each.ppid() == actor.pid]
        if victim == "actor":
            actor.kill()
        elif victim == "server":
            server.process.kill()
        else:
            rank.send_signal(signal.SIGKILL if victim == "rank" else signal.SIGSTOP)
        status = server.process.wait(END_SECONDS)
        assert status == (-signal.SIGKILL if victim == "server" else 1), server.log.read_text()
        assert_failed(asked)
    assert eventually(is_left_nothing, END_SECONDS), processes_of_ranks()


def assert_failed(asked: concurrent.futures.Future[httpx.Response]) -> None:
    try:
        status = asked.result().status_code
    except httpx.TransportError:
        return
    assert status >= 500


def test_an_engine_ends_with_its_actor_and_tells_its_callers() -> None:
    with Engine(tp_size=2, distributed_executor_backend="ray", **ENGINE) as engine:
        assert engine.generate("The oak", {"max_new_tokens": 4})["meta_info"]["completion_tokens"] == 4
        actors()[0].kill()
        with pytest.raises(Exception, match="actor of the scheduler") as caught:
            engine.generate("The oak", ENDLESS)
        assert type(caught.value).__name__ == "EngineDead"
    assert eventually(is_left_nothing, END_SECONDS)
    assert ray.is_initialized()  # the host's connection is the host's


def test_replicas_are_actors_as_well() -> None:
    with Engine(dp_size=2, use_ray=True, load_balance_method="round_robin", **ENGINE) as engine:
        assert len(actors()) == 2
        answers = engine.generate([PROMPT] * 4, GREEDY)
        assert len({answer["text"] for answer in answers}) == 1
        states = engine.get_server_info()["internal_states"]
        assert all(state["decode_tokens_total"] for state in states), states
    assert eventually(is_left_nothing, END_SECONDS)


def test_ranks_of_machines_apart_talk_encrypted(cluster: Any, tmp_path: Path) -> None:
    with machine_apart(cluster, 2):
        # Packing puts both ranks of this server on that raylet, which alone has room for two.
        with running_server(tmp_path, *FLAGS) as server:
            answer = server.generate(text=PROMPT, sampling_params=GREEDY, return_logprob=True)
            assert logprobs_of(answer) == pytest.approx(wanted_logprobs(), abs=1e-3)
            # The clocks are hours apart, and a time limit is one of the server's.
            limited = server.generate(text=PROMPT, sampling_params={**GREEDY, "max_new_tokens": 4}, timeout=60)
            assert limited["meta_info"]["finish_reason"]["type"] == "length"
            server.assert_idle_and_whole()
        assert server.process.returncode == 0, server.log.read_text()
    assert eventually(is_left_nothing, END_SECONDS)


@ray.remote(num_cpus=1)
class Guest:
    """Takes a CPU."""

    def node(self) -> str:
        found: str = ray.get_runtime_context().get_node_id()
        return found


def test_a_rank_here_and_one_on_a_machine_apart_have_the_same_weights(cluster: Any) -> None:
    guest = Guest.remote()
    taken = ray.get(guest.node.remote())
    with machine_apart(cluster, 1):
        with Engine(tp_size=2, use_ray=True, **ENGINE) as engine:
            (nodes,) = nodes_of_groups("CREATED")
            here = {node.node_id for node in cluster.list_all_nodes()}
            assert len(nodes & here - {taken}) == len(nodes - here) == 1

            def logprobs() -> list[float]:
                return logprobs_of(engine.generate(PROMPT, GREEDY, return_logprob=True))

            before = logprobs()
            assert before == pytest.approx(wanted_logprobs(), abs=1e-3)
            name = "model.norm.weight"
            # The tensors come in a file, which only the rank here can read.
            refused = engine.update_weights_from_tensor([(name, torch.zeros(256))])
            assert not refused.success
            assert "machine" in refused.message
            assert logprobs() == before
        assert eventually(is_left_nothing, END_SECONDS)
    ray.kill(guest)


@ray.remote
class Host:
    """A trainer's actor that makes an engine in the placement group where it is itself."""

    def run(self, indices: str | None, **options: Any) -> tuple[str, list[str]]:
        if indices is not None:
            os.environ["VLLM_RAY_BUNDLE_INDICES"] = indices
        try:
            with Engine(distributed_executor_backend="ray", **ENGINE, **options) as engine:
                text: str = engine.generate(PROMPT, GREEDY)["text"]
                return text, sorted(str(each.cmdline()[0]) for each in actors())
        except (ConfigError, StartupError) as error:
            return f"{type(error).__name__}: {error.message}", []


def test_an_engine_takes_the_bundles_that_it_is_told_to(cluster: Any) -> None:
    node = cluster.add_node(num_cpus=3, num_gpus=3, object_store_memory=STORE_BYTES)
    group = placement_group([{"CPU": 1, "GPU": 1}] * 3)
    ray.get(group.ready())
    strategy = PlacementGroupSchedulingStrategy(group, 0, placement_group_capture_child_tasks=True)
    host = Host.options(num_cpus=0, scheduling_strategy=strategy).remote()
    wanted = output_of(PROMPT, GREEDY, dtype="float32").text
    text, found = ray.get(host.run.remote("1,2", tp_size=2))
    assert text == wanted
    assert len(found) == 2
    assert nodes_of_groups("CREATED"), "the group is its owner's"
    for indices in ("0", "1,1", "1,9", "a,b"):
        refusal, _ = ray.get(host.run.remote(indices, tp_size=2))
        assert refusal.startswith("ConfigError"), refusal
    ray.kill(host)
    remove_placement_group(group)
    cluster.remove_node(node)
    assert eventually(is_left_nothing, END_SECONDS)


def test_an_engine_that_finds_no_room_says_what_there_is() -> None:
    with pytest.raises(StartupError, match=r"room for 2 schedulers, 64 CPU.* the cluster has"):
        Engine(tp_size=2, use_ray=True, startup_timeout=2.0, **{**ENGINE, "cpu_threads": 64})
    assert eventually(is_left_nothing, END_SECONDS)
