"""``python -m bough.launch_server --model-path … [flags]``: the same as ``bough serve``."""

from __future__ import annotations

import sys

from bough.cli import run_reporting_errors
from bough.cli_commands import serve


def main(argv: list[str] | None = None) -> int:
    """Serve until the server ends; returns the exit status."""
    return run_reporting_errors(
        lambda arguments: serve.main(arguments, prog="python -m bough.launch_server"),
        sys.argv[1:] if argv is None else argv,
    )


if __name__ == "__main__":
    sys.exit(main())
