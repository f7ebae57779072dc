"""What it gains to answer many prompts at a time, and prompts that begin alike.

python examples/benchmark.py [model]

`bough bench` measures more, and servers as well; this shows how to measure in a program of your own.
"""

from __future__ import annotations

import random
import sys
import time

from bough import Engine

OUTPUT_TOKENS = 32
SHARED_TOKENS = 512

options = {"model_path": sys.argv[1]} if len(sys.argv) > 1 else {}
with Engine(**options) as engine:
    vocabulary = engine.get_server_info()["vocab_size"]
    numbers = random.Random(1)

    def prompt(length: int) -> list[int]:
        """Random tokens: no cache knows them."""
        return [numbers.randrange(vocabulary) for _ in range(length)]

    def seconds(prompts: list[list[int]], tokens: int) -> tuple[float, int]:
        """How long answers of so many tokens take, and how many tokens of the prompts were reused."""
        started = time.perf_counter()
        outputs = engine.generate(
            input_ids=prompts,
            sampling_params={"max_new_tokens": tokens, "ignore_eos": True, "temperature": 0},
        )
        return time.perf_counter() - started, sum(output["meta_info"]["cached_tokens"] for output in outputs)

    seconds([prompt(64)], OUTPUT_TOKENS)  # the first one pays for what is made once
    for batch in (1, 8, 32):
        taken, _ = seconds([prompt(64) for _ in range(batch)], OUTPUT_TOKENS)
        print(f"batch of {batch:>2}: {batch * OUTPUT_TOKENS / taken:>8,.0f} tokens/s")

    shared = prompt(SHARED_TOKENS)
    first, _ = seconds([shared + prompt(16)], 1)
    again, reused = seconds([shared + prompt(16)], 1)
    print(f"prefix of {SHARED_TOKENS} tokens: first token after {first * 1000:.1f} ms,", end=" ")
    print(f"again after {again * 1000:.1f} ms, {reused} reused")
