"""``bough bench serve``, ``offline``, ``latency`` and ``compare``."""

from __future__ import annotations

import importlib

from bough.config.command_line import choose_command

COMMANDS = {
    "serve": "send requests to a running server; measure latencies and throughput",
    "offline": "measure the throughput of the engine alone",
    "latency": "measure how long one batch takes, for several batch sizes",
    "compare": "put results beside each other, and draw them",
}


def main(argv: list[str]) -> int:
    """Run one of the benchmarks."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: bough bench COMMAND [flags]\n")
        for name, meaning in COMMANDS.items():
            print(f"  {name:<8} {meaning}")
        return 0 if argv else 2
    choose_command(argv[0], list(COMMANDS), "bough bench")
    module = importlib.import_module(f"bough.bench.{argv[0]}")
    status: int = module.main(argv[1:])
    return status
