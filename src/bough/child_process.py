"""How this program starts others that are parts of it."""

from __future__ import annotations

import os
import sys

_RUN_MODULE = (
    "import sys; sys.path.pop(0); sys.argv.pop(0); import runpy; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""What ``-m`` does, but for the working directory, which comes first there and may hold anybody's modules."""


def module_command(module: str, *args: str) -> list[str]:
    """The command line that runs a module of ours, whatever modules lie in the working directory.

    Needs :func:`module_environment`.
    """
    # PYTHONSAFEPATH is known from 3.11 on.
    how = ["-m"] if sys.version_info >= (3, 11) else ["-c", _RUN_MODULE]
    return [sys.executable, *how, module, *args]


def module_environment() -> dict[str, str]:
    """This process's environment, with its module search path: the child must find the very same ``bough``."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path),
        "PYTHONSAFEPATH": "1",
    }
