"""The command line: ``bough serve | generate | chat | bench | pack | check-env | completion | version``."""

from __future__ import annotations

import errno
import importlib
import io
import itertools
import os
import sys
import traceback
from collections.abc import Callable

from bough import __version__
from bough.cli_commands import COMMANDS
from bough.cli_commands.terminal_markdown import harmless
from bough.errors import BoughError, CheckpointError, ConfigError, Terminated

USAGE_STATUS = 2
"""Exit status where the command line is at fault."""
FAILURE_STATUS = 1
INTERRUPTED_STATUS = 130
"""128 + SIGINT, as shells have it."""
TERMINATED_STATUS = 143
"""128 + SIGTERM."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a standard output that takes no more fails with."""


def main(argv: list[str] | None = None) -> int:
    """Run one command with the arguments ``argv``, by default the process's own; returns the exit status."""
    return run_reporting_errors(_dispatch, sys.argv[1:] if argv is None else argv)


def run_reporting_errors(command: Callable[[list[str]], int], argv: list[str]) -> int:
    """Run ``command(argv)``; an error becomes one line on stderr and a status, with a traceback in debug mode only."""
    _mend_standard_streams()
    try:
        try:
            status = command(argv)
        except SystemExit:  # argparse has printed help; its errors are of another kind (see CommandParser)
            status = 0
        sys.stdout.flush()
        return status
    except Terminated:
        return TERMINATED_STATUS
    except KeyboardInterrupt:
        return INTERRUPTED_STATUS
    except BrokenPipeError:
        # The reader of our output has gone. What is still buffered must go somewhere when Python flushes it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE_STATUS
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            return _report_internal(error, argv)
        _report(error, f"cannot write: {error.strerror}", argv)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILURE_STATUS
    except BoughError as error:
        _report(error, str(error), argv)
        is_usage = isinstance(error, ConfigError) and not isinstance(error, CheckpointError)
        return USAGE_STATUS if is_usage else FAILURE_STATUS
    except Exception as error:
        return _report_internal(error, argv)


def _mend_standard_streams() -> None:
    """Let streams that the process was started without lead nowhere, and spell out what a terminal cannot show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _report_internal(error: Exception, argv: list[str]) -> int:
    hint = " (--log-level debug shows where)" if _has_log_level(argv) else ""
    _report(error, f"internal error: {type(error).__name__}: {error}{hint}", argv)
    return FAILURE_STATUS


def _has_log_level(argv: list[str]) -> bool:
    """Whether the command has the flags of a server; a command line without a command is ``launch_server``'s."""
    name = " ".join(argv[:2]) if argv[:1] == ["bench"] else "".join(argv[:1])
    return name in ("", "serve", "generate", "chat", "pack", "bench offline", "bench latency") or name.startswith("-")


def _report(error: Exception, message: str, argv: list[str]) -> None:
    if _wants_traceback(argv):
        print(harmless("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    # What a server wrote may be in the message: a terminal must not obey it.
    print(f"bough: error: {harmless(' '.join(message.splitlines()))}", file=sys.stderr)


def _wants_traceback(argv: list[str]) -> bool:
    return "--log-level=debug" in argv or ("--log-level", "debug") in itertools.pairwise(argv)


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if argv else USAGE_STATUS
    name, rest = argv[0], argv[1:]
    if name in ("version", "--version", "-V"):
        if rest:
            raise ConfigError(f"bough {name} takes no arguments, and got {rest[0][:64]!r}")
        print(f"bough {__version__}")
        return 0
    from bough.config.command_line import choose_command

    choose_command(name, list(COMMANDS), "bough")
    module = importlib.import_module(f"bough.cli_commands.{name.replace('-', '_')}")
    status: int = module.main(rest)
    return status


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {meaning}" for name, meaning in COMMANDS.items()]
    return "\n".join(
        [
            "usage: bough COMMAND [arguments]",
            "",
            *lines,
            "",
            "bough COMMAND --help says more. To try it: bough serve",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
