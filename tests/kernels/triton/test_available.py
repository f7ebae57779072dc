from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest
import torch

from bough.kernels.triton import available
from bough.kernels.triton.available import why_not_float8, why_not_triton


@pytest.mark.parametrize(
    ("capability", "problem", "float8_problem"),
    [
        ((7, 5), "Triton's kernels: compute capability 8.0 is needed, cuda has 7.5", "capability 8.0 is needed"),
        ((8, 0), None, "8-bit floating point: compute capability 8.9 is needed, cuda has 8.0"),
        ((8, 9), None, None),
        ((10, 0), None, None),
    ],
)
def test_older_devices_are_told_what_they_lack(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], problem: str | None, float8_problem: str | None
) -> None:
    monkeypatch.setattr(available, "_why_not_started", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    device = torch.device("cuda")
    assert why_not_triton(device) == problem
    answer = why_not_float8(device)
    assert answer is None if float8_problem is None else float8_problem in str(answer)


def test_a_machine_without_a_compiler_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoCompiler:
        @property
        def active(self) -> None:
            raise RuntimeError("no compiler was found")

    monkeypatch.setattr("triton.runtime.driver", NoCompiler())
    problem = available._why_not_started.__wrapped__()
    assert "C compiler and the headers of Python" in problem
    assert "no compiler was found" in problem


def test_layers_do_without_kernels_on_devices_that_cannot_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    capabilities = {"cuda:0": (7, 5), "cuda:1": (9, 0)}
    monkeypatch.setattr(available, "_why_not_started", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capabilities[str(device)])
    available._module.cache_clear()
    found = []
    for device in (*capabilities, "cpu"):
        x = SimpleNamespace(is_cuda=device != "cpu", device=torch.device(device))
        found.append(available.kernels_for(cast("torch.Tensor", x), "available"))
    available._module.cache_clear()
    assert found == [None, available, None]


@pytest.mark.parametrize(("version", "fits"), [("3.5.1", False), ("3.6.0+git1a2b", True), ("4.0.0", True)])
def test_older_releases_of_triton_are_not_used(monkeypatch: pytest.MonkeyPatch, version: str, fits: bool) -> None:
    monkeypatch.setattr(available, "_why_not_started", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr("triton.__version__", version)
    problem = why_not_triton(torch.device("cuda"))
    assert problem == (None if fits else f"Triton 3.6 or newer is needed, and {version} is installed")
