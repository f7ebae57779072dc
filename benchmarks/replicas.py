"""Prefix cache of replicas beside that of one server.

Groups of prompts that start alike go in a mixed order to one server, and to two replicas by several methods of
``--load-balance-method``. One server has as much KV cache as the replicas together. Shown are the share of prompt
tokens that were found in the cache, and that share beside one server's.

    python benchmarks/replicas.py --output results/replicas.json
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bough import Engine
from bough.bench.datasets import BenchRequest, DatasetArgs, make_requests
from bough.bench.options import write_json

REPLICAS = 2
CLIENTS = 16
CACHE_TOKENS = 40_960
TRAFFIC = DatasetArgs(
    dataset_name="generated-shared-prefix",
    gsp_num_groups=24,
    gsp_prompts_per_group=8,
    gsp_system_prompt_len=936,
    gsp_question_len=64,
    gsp_output_len=8,
)
METHODS = ("cache_aware", "total_tokens", "total_requests", "round_robin")
VOCAB_SIZE = 2048
"""Ids below it exist in every vocabulary."""


async def ask_all(engine: Engine, requests: Sequence[BenchRequest]) -> None:
    """Ask some at a time; raises as the engine does."""
    waiting = iter(requests)

    async def work() -> None:
        for request in waiting:
            params = {"temperature": 0, "max_new_tokens": request.output_len, "ignore_eos": True}
            await engine.async_generate(input_ids=request.input_ids, sampling_params=params)

    await asyncio.gather(*(work() for _ in range(CLIENTS)))


def measure(requests: Sequence[BenchRequest], **options: Any) -> dict[str, float]:
    """Figures of one configuration."""
    with Engine(log_level="error", disable_radix_cache=False, **options) as engine:
        asyncio.run(ask_all(engine, requests))
        states = engine.get_server_info()["internal_states"]
    cached = sum(state["cached_tokens_total"] for state in states)
    computed = sum(state["prefill_tokens_total"] for state in states)
    return {"hit_rate": cached / (cached + computed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model-path", help="by default the bundled model")
    parser.add_argument("--output", type=Path, default=Path("results/replicas.json"))
    args = parser.parse_args()
    model = {"model_path": args.model_path} if args.model_path else {}
    requests = make_requests(TRAFFIC, vocab_size=VOCAB_SIZE)
    one = measure(requests, max_total_tokens=CACHE_TOKENS, **model)
    results = {"one server": one}
    for method in METHODS:
        share = CACHE_TOKENS // REPLICAS
        results[method] = measure(
            requests, dp_size=REPLICAS, load_balance_method=method, max_total_tokens=share, **model
        )
    print(f"{'':>16} {'hit rate':>9} {'to one':>7}")
    for name, figures in results.items():
        ratio = figures["hit_rate"] / one["hit_rate"]
        print(f"{name:>16} {figures['hit_rate']:9.3f} {ratio:7.3f}")
    write_json(args.output, results)


if __name__ == "__main__":
    main()
