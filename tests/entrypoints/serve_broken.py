"""The echo server with something in its main process that breaks: ``python -m tests.entrypoints.serve_broken [flags]``.

What that is says ``--served-model-name``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from bough.cli import run_reporting_errors
from bough.cli_commands.serve import parse_server_args
from bough.entrypoints import launch, launch_plan
from bough.entrypoints.http.server import HttpServer
from bough.entrypoints.running_engine import RunningEngine
from bough.managers.request_log import RecentRequests
from bough.managers.tokenizer_manager import TokenizerManager
from tests.entrypoints.serve_echo import ECHO_SCHEDULER


def fail(*args: Any) -> Any:
    raise RuntimeError("told to break")


def write_where_impossible(self: RecentRequests, cause: str, alive: Any, write: Any = RecentRequests.write) -> Path:
    self._folder = Path("a\0b")  # this is a ValueError, not an OSError
    path: Path = write(self, cause, alive)
    return path


async def watch_and_fail(*args: Any) -> None:
    await asyncio.sleep(1)
    fail()


async def serve_and_fail(self: HttpServer, main_loop: Any = HttpServer.main_loop) -> None:
    loop = asyncio.get_running_loop()
    failing = loop.create_future()
    loop.call_later(3, failing.set_exception, RuntimeError("told to break"))
    await failing


def download_for_ever(*args: Any) -> Any:
    print("downloading", file=sys.stderr, flush=True)
    time.sleep(3600)


def break_what_is_named(name: str | None) -> None:
    if name == "dump":
        RecentRequests.write = write_where_impossible
    elif name == "health check":
        RunningEngine._watch_health = watch_and_fail
    elif name == "download":
        launch_plan.with_local_files = download_for_ever
    elif name == "http":
        HttpServer.main_loop = serve_and_fail
    elif name == "end":
        TokenizerManager.close = HttpServer.abort_connections = fail


def main(argv: list[str]) -> int:
    server_args = parse_server_args(argv, prog="serve_broken")
    break_what_is_named(server_args.served_model_name)
    return launch.launch_server(server_args, scheduler_module=ECHO_SCHEDULER)


if __name__ == "__main__":
    sys.exit(run_reporting_errors(main, sys.argv[1:]))
