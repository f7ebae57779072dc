from __future__ import annotations

import pytest
import torch

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
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    device = torch.device("cuda")
    assert why_not_triton(device) == problem
    answer = why_not_float8(device)
    assert answer is None if float8_problem is None else float8_problem in str(answer)
