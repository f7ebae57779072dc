"""llama.cpp's HTTP server."""

from __future__ import annotations

import contextlib
from pathlib import Path

from benchmarks.peers.http_server import http_server

SPARE_TOKENS = 64


def llama_server(
    program: Path, model: Path, *, threads: int, slots: int, slot_tokens: int
) -> contextlib.AbstractContextManager[str]:
    """A server for as long as it is measured; gives its URL.

    Args:
        program: ``llama-server``.
        model: a GGUF file.
        threads: that compute.
        slots: sequences at the same time.
        slot_tokens: prompt and output of one.
    """
    command = [str(program), "-m", str(model), "-t", str(threads), "--parallel", str(slots)]
    return http_server([*command, "--ctx-size", str(slots * (slot_tokens + SPARE_TOKENS))])
