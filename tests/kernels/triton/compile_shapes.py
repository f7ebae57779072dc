"""Launches every Triton kernel for one model and steps of many shapes; prints how often each was compiled, as JSON, and
what counting them anew on a GPU would say, once with all there and once with nothing.

Launches are only compiled, as in :mod:`tests.kernels.triton.compile_all`. What differs from step to step (rows, tokens,
lengths) must not be what a kernel is compiled for: else requests would wait for the compiler.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import numpy as np
import torch
from benchmarks.gpu.served_checks import compilations, forget_compiled
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from tests.kernels.triton.compile_all import NoDevice

COUNTS = (1, 2, 15, 16, 17, 48, 80)
"""Of rows and tokens: ones, multiples of 16 and others are what Triton tells apart."""


def main() -> None:
    driver.set_active(NoDevice(90))
    launch, hashes = JITFunction.run, defaultdict[str, set[str]](set)

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        kernel = launch(self, *args, grid=(1, 1, 1), warmup=True, **options)
        hashes[self.fn.__name__].add(kernel.hash)
        return kernel

    JITFunction.run = compile_only
    from tests.kernels.triton import cases

    cpu, rng, dtype = torch.device("cpu"), np.random.default_rng(0), torch.bfloat16
    shape: dict[str, Any] = {"head_dim": 64, "group": 4}
    for count in COUNTS:
        cases.decode(rng, dtype, cpu, lens=[count] * count, **shape)
        cases.extend(rng, dtype, cpu, prefix_lens=[0, count], extend_lens=[count, 1], **shape)
        cases.rms_norm(rng, dtype, cpu, rows=count, width=64, delta=True)
        cases.rotate_and_store(rng, dtype, cpu, tokens=count, heads=4, kv_heads=2, head_dim=64, norm=True)
        cases.store(rng, dtype, cpu, tokens=count, kv_heads=2, head_dim=64)
        cases.gate_and_mul(rng, dtype, cpu, rows=count, width=64, gate="silu")
        cases.gather_rows(rng, dtype, cpu, rows=count, width=64, vocab_size=32)
        product: dict[str, Any] = {"rows": count, "inputs": 128, "outputs": 64, "bias": False}
        cases.linear(rng, dtype, cpu, **product)
        experts: dict[str, Any] = {"experts": 8, "per_token": 2, "inputs": 128, "outputs": 64, "bias": False}
        cases.grouped(rng, dtype, cpu, tokens=count, one_tile=True, **experts)
        cases.integer_linear(rng, dtype, cpu, bits=4, span=128, offsets=False, **product)
        cases.float8_linear(rng, dtype, cpu, span=128, **product)
        logits = torch.zeros(count, 3200)
        cases.sampling.choose_tokens(logits, torch.zeros(count, 6, dtype=torch.float64))
        cases.sampling.log_total_weights(logits, logits[:, :1].contiguous())
        rows = torch.arange(count)
        counts = torch.zeros(count, 3200, dtype=torch.int32)
        cases.sampling.penalise(logits, rows, rows, torch.zeros(3, count), counts)
        cases.sampling.mask_tokens(logits, rows, torch.zeros(count, 100, dtype=torch.int32))
        int32 = torch.zeros(count, dtype=torch.int32)
        table = torch.zeros(96, 96, dtype=torch.int32)
        cases.elementwise.enter_decode_rows(int32, int32, int32, torch.zeros(96, dtype=torch.int64), table, rows)
        cases.elementwise.enter_tokens(int32, int32, int32, table)
    print(json.dumps({name: len(found) for name, found in hashes.items()}))
    for forgets in (False, True):
        if forgets:
            forget_compiled()
        with compilations() as names:
            cases.store(rng, dtype, cpu, tokens=3, kv_heads=2, head_dim=64)
        print(json.dumps({"compiled": names}))


if __name__ == "__main__":
    main()
