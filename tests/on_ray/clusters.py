"""Clusters of Ray on this machine, and what an engine leaves in them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.entrypoints.leftovers import eventually

ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402
from ray.util.placement_group import placement_group_table  # noqa: E402

STORE_BYTES = 80 * 2**20
"""Ray's least object store."""

RAYLET_SECONDS = 30.0


@contextlib.contextmanager
def cluster_of(*cpus: int, gpus: int = 0) -> Iterator[Cluster]:
    """A cluster with a raylet for each number of CPUs, all with the same address; GPUs are only said to be there.

    This process is connected to it, with no resources of its own.
    """
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": cpus[0], "num_gpus": gpus, "object_store_memory": STORE_BYTES},
    )
    try:
        for each in cpus[1:]:
            cluster.add_node(num_cpus=each, object_store_memory=STORE_BYTES)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextlib.contextmanager
def machine_apart(cluster: Cluster, cpus: int) -> Iterator[None]:
    """A raylet that shares neither temporary files, on disk or in memory, nor the clock with this process.

    Skips the test where namespaces are not allowed.
    """
    hidden = tempfile.gettempdir()
    unshared = ["unshare", "--mount", "--time", "--fork", "--kill-child", "--monotonic", "5000"]
    if subprocess.run([*unshared, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this process may not make namespaces")
    start = (
        f"mount -t tmpfs none {hidden} && mount -t tmpfs none /dev/shm && exec {Path(sys.executable).parent}/ray start "
        f"--block --address={cluster.address} --num-cpus={cpus} --object-store-memory={STORE_BYTES}"
    )
    nodes = num_alive()
    raylet = subprocess.Popen([*unshared, "sh", "-c", start], stdout=subprocess.DEVNULL)
    try:
        assert eventually(lambda: num_alive() > nodes, RAYLET_SECONDS)
        yield
    finally:
        children = psutil.Process(raylet.pid).children(recursive=True)
        for process in children:  # unshare itself does not heed the signal
            process.terminate()
        for process in psutil.wait_procs(children, timeout=5)[1]:
            process.kill()
        raylet.wait(RAYLET_SECONDS)


def num_alive() -> int:
    """Number of nodes; those that have gone stay in Ray's list."""
    return sum(node["Alive"] for node in ray.nodes())


def processes_of_ranks() -> list[psutil.Process]:
    """Actors of ranks, and schedulers."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, IndexError):
            line = process.cmdline()
            is_rank = "bough.scheduler.process" in line and _is_of_an_actor(process)
            if is_rank or line[0].startswith("ray::RankActor"):
                found.append(process)
    return found


def _is_of_an_actor(process: psutil.Process) -> bool:
    parent = process.parent()
    return parent is None or parent.pid == 1 or parent.cmdline()[0].startswith("ray::")


def actors() -> list[psutil.Process]:
    """Processes of actors that have ranks, in the order of their start."""
    found = [process for process in processes_of_ranks() if process.cmdline()[0].startswith("ray::RankActor")]
    return sorted(found, key=lambda process: process.create_time())


def nodes_of_groups(state: str) -> list[set[str]]:
    """Ids of the nodes of each placement group in a state."""
    groups = placement_group_table().values()
    return [set(group["bundles_to_node_id"].values()) for group in groups if group["state"] == state]


def is_left_nothing() -> bool:
    """True if neither processes nor placement groups are left."""
    return not processes_of_ranks() and not nodes_of_groups("CREATED") and not nodes_of_groups("PENDING")
