"""The comparison of two versions of the products: that it finds what differs."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from benchmarks.gemm_versions import DTYPES, compile_version, measure

SOURCES = Path(__file__).parents[2] / "csrc"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_versions_are_compared_bit_by_bit(tmp_path: Path) -> None:
    changed = tmp_path / "csrc"
    shutil.copytree(SOURCES, changed)
    source = (changed / "gemm_inputs.h").read_text()
    of_a_group = "behind[0] = bits_of(factor / kScaleFactor);"
    assert source.count(of_a_group) == 1
    (changed / "gemm_inputs.h").write_text(
        source.replace(of_a_group, "behind[0] = bits_of(2 * factor / kScaleFactor);")
    )
    before = compile_version(SOURCES, tmp_path / "before.so", "portable", "-O0")
    after = compile_version(changed, tmp_path / "after.so", "portable", "-O0")
    for dtype in DTYPES:
        line = measure([before, after], dtype, rows=3, outputs=48, inputs=70, seconds=0.0)
        assert line["same_bits"] == (dtype in ("float32", "bfloat16")), dtype
        assert line["ratio"] > 0
    same = measure([before, before], "int8", rows=3, outputs=48, inputs=70, seconds=0.0)
    assert same["same_bits"]


def test_ratio_is_of_the_later_to_the_earlier() -> None:
    def version(rate: float) -> Any:
        numbers = (ctypes.c_float * 6)()
        return SimpleNamespace(
            new_product=lambda *_: None,
            operations_per_second=lambda *_: rate,
            results=lambda _: ctypes.cast(numbers, ctypes.POINTER(ctypes.c_float)),
        )

    versions = cast("list[ctypes.CDLL]", [version(2e9), version(6e9)])
    line = measure(versions, "int8", rows=2, outputs=3, inputs=4, seconds=0.0)
    assert (line["gigaflops_before"], line["gigaflops_after"], line["ratio"]) == (2.0, 6.0, 3.0)
    assert line["same_bits"]
