"""``bough serve`` with the echo scheduler of the tests: ``python -m tests.entrypoints.serve_echo [flags]``."""

from __future__ import annotations

import sys

from bough.cli import run_reporting_errors
from bough.cli_commands.serve import parse_server_args
from bough.entrypoints.launch import launch_server

ECHO_SCHEDULER = "tests.entrypoints.echo_scheduler"


def main(argv: list[str]) -> int:
    return launch_server(parse_server_args(argv, prog="serve_echo"), scheduler_module=ECHO_SCHEDULER)


if __name__ == "__main__":
    sys.exit(run_reporting_errors(main, sys.argv[1:]))
