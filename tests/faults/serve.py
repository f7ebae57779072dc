"""``bough serve``, with faults in all its processes: ``python -m tests.faults.serve [flags]``."""

from __future__ import annotations

import asyncio
import os
import sys

from bough.cli import run_reporting_errors
from bough.cli_commands.serve import parse_server_args
from bough.entrypoints import launch, running_engine
from bough.entrypoints.server_run import ServerRun
from bough.ipc.channels import TokenizerChannels
from bough.managers.output_handler import OutputHandler
from tests.faults.injection import SCHEDULER_VARIABLE, armed, before, directory, run_out_of_memory, strike

POLL_SECONDS = 0.02


def look() -> None:
    """Exceptions strike where messages are received; in a callback of its own one would only be logged."""
    if not armed("main", "exception"):
        strike("main")
    asyncio.get_running_loop().call_later(POLL_SECONDS, look)


async def start(self: ServerRun, original=ServerRun._start) -> None:
    look()

    async def fail_while_held() -> None:
        while (directory() / "hold").exists():
            await asyncio.sleep(POLL_SECONDS)
            strike("main")
            run_out_of_memory("main")

    await asyncio.gather(original(self), fail_while_held())


def main(argv: list[str]) -> int:
    running_engine.DETOKENIZER_MODULE = "tests.faults.detokenizer"
    ServerRun._start = start
    before(TokenizerChannels, "recv", lambda: strike("main"))
    before(OutputHandler, "_handle_delta", lambda: run_out_of_memory("main"))
    scheduler = os.environ.get(SCHEDULER_VARIABLE, "tests.faults.scheduler")
    return launch.launch_server(parse_server_args(argv, prog="serve"), scheduler_module=scheduler)


if __name__ == "__main__":
    sys.exit(run_reporting_errors(main, sys.argv[1:]))
