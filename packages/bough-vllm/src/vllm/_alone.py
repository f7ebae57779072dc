"""A check that this is the only package of the name ``vllm``."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

_OF_THE_REAL_ONE = ("_custom_ops.py", "env_override.py", "forward_context.py")
"""Files that vLLM has, and this package has not."""


def check_alone() -> None:
    """Refuse to stand in for a vLLM that is installed.

    Raises:
        ImportError: if one is found beside this package, or mixed with it.
    """
    here = Path(__file__).resolve().parent
    if any((here / name).exists() for name in _OF_THE_REAL_ONE):
        raise ImportError(f"vLLM and bough-vllm are both installed in {here}; uninstall both, then install one again")
    for entry in map(Path, sys.path):
        other = entry / "vllm" / "__init__.py"
        if other.is_file() and not (other.parent / Path(__file__).name).exists():
            raise ImportError(f"vLLM is installed in {other.parent}; bough-vllm does not stand in for it: remove one")
    # An editable one has no directory on the path.
    try:
        distribution = importlib.metadata.distribution("vllm")
    except importlib.metadata.PackageNotFoundError:
        return
    raise ImportError(f"vLLM {distribution.version} is installed; bough-vllm does not stand in for it: remove one")
