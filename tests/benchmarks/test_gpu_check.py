"""Checks for a GPU that the dry run leaves out, on a CPU that says of itself what a GPU would."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

from benchmarks.gpu import check, served_checks
from triton.runtime.jit import JITFunction

from bough.model_executor import cuda_graph_runner, runner_memory
from tests.model_executor.test_cuda_graph_runner import RerunRecorder

CPU = torch.device("cpu")
GIB = 1 << 30


@pytest.mark.slow
def test_recorded_steps_are_compared_with_launched_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def why_not_recorded(options: Any, *_: Any) -> str | None:
        return "--disable-cuda-graph is set" if options.disable_cuda_graph else None

    monkeypatch.setattr(runner_memory, "why_not_recorded", why_not_recorded)
    monkeypatch.setattr(runner_memory, "_MEASURED_TOKENS_ON_CPU", 1)
    monkeypatch.setattr(cuda_graph_runner, "CudaRecorder", lambda device: RerunRecorder())
    figures = check.graphs_equal_eager("float32", CPU, small=True)
    assert figures["ok"], figures
    assert figures["replays"] == 7 + 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacking", "free", "retries", "ok"),
    [(0, 64 * GIB, 0, True), (GIB // 4, 64 * GIB, 0, True), (0, 64 * GIB, 1, False), (0, 0, 0, False)],
)
def test_a_pool_must_leave_what_steps_need(
    monkeypatch: pytest.MonkeyPatch, lacking: int, free: int, retries: int, ok: bool
) -> None:
    readings = iter((3, 3 + retries))
    fakes: dict[str, Callable[..., Any]] = {
        "mem_get_info": lambda _: (free, 80 * GIB),
        "memory_stats": lambda _: {"num_alloc_retries": next(readings)},
        "empty_cache": lambda: None,
        "synchronize": lambda _: None,
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(runner_memory, "available_memory", lambda *_: (2 * GIB, "here"))
    figures = check.memory(CPU, lacking)
    assert figures["ok"] == ok, figures
    assert len(figures["pools"]) == 1 + bool(lacking)


def test_what_was_compiled_is_forgotten_but_stays_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiled:
        pass

    def kernel() -> None:
        pass

    function, compiled, module = JITFunction(kernel), Compiled(), ModuleType("bough.kernels.triton.another")
    function.device_caches = {0: ({"a key": compiled},)}
    module.kernel = function  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(served_checks, "_forgotten", [])
    loaded = weakref.ref(compiled)
    del compiled
    served_checks.forget_compiled()
    assert not function.device_caches
    gc.collect()
    assert loaded() is not None, "a graph may launch it"


def test_garbage_is_collected_between_checks_but_those_of_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events: list[str] = []

    class Told:
        status = 0

        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def run(self, name: str, cell: Callable[[], Any]) -> None:
            events.append(name.partition(" ")[0])

        def summary(self) -> str:
            return ""

    monkeypatch.setattr(check, "Report", Told)
    monkeypatch.setattr(check.gc, "collect", lambda: events.append("collected"))
    monkeypatch.setattr(sys, "argv", ["check", "--device", "cpu", "--output", str(tmp_path / "said.json")])
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert check.main() == 0
    assert events[events.index("model") :][:4] == ["model", "collected", "model", "collected"]
    assert "collected" not in events[: events.index("model")]
