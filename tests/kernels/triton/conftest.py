from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def device() -> torch.device:
    """A GPU where there is one; else the CPU, where Triton's interpreter runs the kernels."""
    return DEVICE


@pytest.fixture(params=[torch.float32, torch.float16, torch.bfloat16], ids=["float32", "float16", "bfloat16"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    """What heads and weights are made of."""
    if request.param == torch.bfloat16 and DEVICE.type == "cpu":
        pytest.skip("Triton's interpreter multiplies bfloat16 wrongly")
    chosen: torch.dtype = request.param
    return chosen
