"""Compiles every Triton kernel without a GPU, and prints what each takes, as JSON lines.

For compute capability 9.0; attention, products and what has to do with 8-bit floating point for 8.9 as well, which has
less memory for a program. Launches are made as the tests make them, but only compiled: what comes out of them is never
looked at.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

HEADS = ((64, 4), (80, 1), (128, 4), (128, 16), (256, 2))


class NoDevice:
    """What the compiler asks of a driver."""

    def __init__(self, capability: int) -> None:
        self.capability = capability

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        # Triton keeps what it has compiled by device.
        return self.capability

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)


def spilled_bytes(ptx: str) -> int:
    """What the assembler keeps in memory because registers do not suffice."""
    assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "kernel.ptx")
        source.write_text(ptx)
        target = re.search(r"\.target (\w+)", ptx)
        assert target is not None
        command = [str(assembler), "-v", f"--gpu-name={target[1]}", str(source), "-o", str(Path(directory, "out"))]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return sum(int(number) for number in re.findall(r"(\d+) bytes spill", said))


def compile_tiles(cases: Any, rng: np.random.Generator, dtype: torch.dtype) -> None:
    """Whatever takes much of the memory of a program."""
    cpu = torch.device("cpu")
    for head_dim, group in HEADS:
        shape: dict[str, Any] = {"head_dim": head_dim, "group": group}
        cases.decode(rng, dtype, cpu, lens=[1, 300], **shape)
        cases.extend(rng, dtype, cpu, prefix_lens=[0, 64], extend_lens=[128, 9], **shape)
    bounded: dict[str, Any] = {"head_dim": 128, "window": 64, "cap": 5.0}
    cases.decode(rng, dtype, cpu, lens=[1, 300], **bounded)
    cases.extend(rng, dtype, cpu, prefix_lens=[0, 64], extend_lens=[128, 9], **bounded)
    sinking: dict[str, Any] = {"head_dim": 64, "group": 8, "window": 128, "sinks": True}
    cases.decode(rng, dtype, cpu, lens=[1, 300], **sinking)
    cases.extend(rng, dtype, cpu, prefix_lens=[0, 64], extend_lens=[128, 9], **sinking)
    # What comes out is arbitrary: that rows differ is no reason to stop.
    cases.linear(rng, dtype, cpu, rows=64, inputs=4096, outputs=128, bias=True)
    for tokens in (4, 16, 128):  # a tile of each size
        cases.grouped(rng, dtype, cpu, tokens=tokens, experts=2, per_token=2, inputs=256, outputs=128, bias=True)


def compile_float8(cases: Any, rng: np.random.Generator, dtype: torch.dtype) -> None:
    """Whatever reads or writes 8-bit floating point."""
    cpu = torch.device("cpu")
    for stored_as in (torch.float8_e4m3fn, torch.float8_e5m2):
        shape: dict[str, Any] = {"head_dim": 128, "stored_as": stored_as}
        cases.decode(rng, dtype, cpu, lens=[1, 300], group=4, **shape)
        for tile_queries in (None, 16):
            cases.extend(
                rng, dtype, cpu, prefix_lens=[0, 64], extend_lens=[128, 9], group=4, tile_queries=tile_queries, **shape
            )
        cases.store_float8(rng, dtype, cpu, tokens=16, **shape)
    for rows in (16, 64, 128):
        for span in (None, 128):
            cases.float8_linear(rng, dtype, cpu, rows=rows, inputs=256, outputs=64, span=span, bias=True)


def compile_integers(cases: Any, rng: np.random.Generator, dtype: torch.dtype) -> None:
    """Products with whole numbers, in every tile; inner dimensions are divided where rows are few."""
    cpu = torch.device("cpu")
    for rows in (16, 64, 128):
        product: dict[str, Any] = {"rows": rows, "inputs": 1024, "outputs": 64, "bias": True}
        for span, offsets in ((32, True), (128, False), (128, True)):
            cases.integer_linear(rng, dtype, cpu, bits=4, span=span, offsets=offsets, **product)
        cases.integer_linear(rng, dtype, cpu, bits=8, span=128, **product)


def compile_float32(cases: Any, rng: np.random.Generator) -> None:
    """What holds most in registers, where tensor cores do not help."""
    cpu, dtype = torch.device("cpu"), torch.float32
    stored: dict[str, Any] = {"head_dim": 128, "group": 4, "stored_as": torch.float8_e4m3fn}
    cases.decode(rng, dtype, cpu, lens=[1, 300], **stored)
    for shape in (stored, {"head_dim": 256, "group": 2}):
        cases.extend(rng, dtype, cpu, prefix_lens=[0, 64], extend_lens=[128, 9], **shape)
    cases.integer_linear(rng, dtype, cpu, bits=4, span=128, offsets=False, rows=64, inputs=256, outputs=64, bias=True)


def main() -> None:
    device = NoDevice(90)
    driver.set_active(device)
    launch, seen = JITFunction.run, set()

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = launch(self, *args, grid=(1, 1, 1), warmup=True, **options)
        if kernel.hash not in seen:
            seen.add(kernel.hash)
            figures = {
                "kernel": self.fn.__name__,
                "capability": device.capability,
                "float32": args[0].dtype == torch.float32,
                "shared_bytes": kernel.metadata.shared,
                "spilled_bytes": spilled_bytes(kernel.asm["ptx"]),
            }
            print(json.dumps(figures), flush=True)
        return kernel

    JITFunction.run = compile_only
    from tests.kernels.triton import cases

    cpu, rng = torch.device("cpu"), np.random.default_rng(0)
    dtypes = (torch.bfloat16, torch.float32) if "--all" in sys.argv else (torch.bfloat16,)
    for dtype in dtypes:
        compile_tiles(cases, rng, dtype)
        for delta in (False, True):
            cases.rms_norm(rng, dtype, cpu, rows=16, width=4096, delta=delta)
            cases.rotate_and_store(rng, dtype, cpu, tokens=16, heads=32, kv_heads=8, head_dim=128, norm=delta)
        cases.store(rng, dtype, cpu, tokens=16, kv_heads=8, head_dim=128)
        cases.extend(rng, dtype, cpu, prefix_lens=[0], extend_lens=[20], head_dim=128, group=4, tile_queries=16)
        for gate in ("silu", "gelu", "gelu_tanh", "clamped_swish"):
            cases.gate_and_mul(rng, dtype, cpu, rows=16, width=4096, gate=gate)
        cases.gather_rows(rng, dtype, cpu, rows=16, width=4096, vocab_size=32)
        compile_integers(cases, rng, dtype)
        compile_float8(cases, rng, dtype)
    logits = torch.zeros(2, 32000)
    for draws in (None, torch.zeros(2, 6, dtype=torch.float64)):
        cases.sampling.choose_tokens(logits, draws)
    cases.edits(rng, cpu, rows=4, vocab_size=3200)
    cases.log_totals(rng, cpu, vocab_size=3200)
    int64 = torch.zeros(16, dtype=torch.int64)
    int32 = int64.to(torch.int32)
    table = torch.zeros(16, 16, dtype=torch.int32)
    cases.elementwise.enter_decode_rows(int32, int32, int32, int64, table, int64)
    cases.elementwise.enter_tokens(int32, int32, int32, table)
    if torch.float32 not in dtypes:
        compile_float32(cases, rng)
    device.capability = 89
    compile_tiles(cases, rng, torch.bfloat16)
    compile_integers(cases, rng, torch.bfloat16)
    compile_float8(cases, rng, torch.bfloat16)


if __name__ == "__main__":
    main()
