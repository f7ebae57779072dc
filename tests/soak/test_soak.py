"""Many requests of mixed kinds: nothing grows, and the last ones are answered as fast as the first."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.soak.measuring import NAMES, Run, percentile, resident_bytes, run_mixed, server_without_model, slope

CONCURRENCY = 16
POINTS = 40


@pytest.mark.parametrize(
    ("count", "most_bytes", "most_slowdown"),
    [
        # A short run is for finding what goes wrong at once: the caches of the processes still fill, and what
        # allocators hold grows most at first: 2,700 bytes a request from the 200th to the 800th, then 470, and 3 from
        # the 100,000th on.
        pytest.param(3200, 1500.0, 4.0, marks=pytest.mark.slow, id="short"),
        pytest.param(200_000, 20.0, 1.3, marks=pytest.mark.soak, id="long"),
    ],
)
def test_memory_and_latency_stay_what_they_are(
    tmp_path: Path, count: int, most_bytes: float, most_slowdown: float
) -> None:
    run = Run()
    done: list[float] = []
    memory: list[list[int]] = []
    with server_without_model(tmp_path) as server:
        for point in range(POINTS):
            asyncio.run(run_mixed(server.url, count // POINTS, CONCURRENCY, point, run))
            done.append((point + 1) * (count // POINTS))
            memory.append(resident_bytes(server))
        server.assert_idle_and_whole()
    assert not run.wrong, run.wrong[:5]
    settled = POINTS // 2
    for name, values in zip(NAMES, zip(*memory, strict=True), strict=True):
        growth = slope(done[settled:], values[settled:])
        print(f"{name}: {values[settled] / 2**20:.1f} MiB, {growth} bytes a request (95 %) in the second half")
        assert growth.value + growth.error < most_bytes, f"{name} may grow by {growth} bytes with every request"
    tenth = len(run.latencies) // 10
    first, last = run.latencies[tenth : 2 * tenth], run.latencies[-tenth:]
    for share in (0.5, 0.9, 0.99):
        before, after = percentile(first, share), percentile(last, share)
        print(f"p{share * 100:g}: {before * 1e3:.1f} ms in the second tenth, {after * 1e3:.1f} ms in the last")
        assert after < most_slowdown * before, f"p{share * 100:g}"
