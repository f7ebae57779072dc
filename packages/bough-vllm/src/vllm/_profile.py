"""Profiles of an engine, by vLLM's names."""

from __future__ import annotations

import os
import tempfile
import time
import uuid

from bough import Engine

_DIRECTORY = "VLLM_TORCH_PROFILER_DIR"
"""Variable that names the directory of profiles, as in vLLM."""


def start_profile(engine: Engine) -> None:
    """Record what scheduler and model do, into the directory that ``VLLM_TORCH_PROFILER_DIR`` names, or a new one.

    Raises:
        RequestFailed: if a profile is being recorded.
    """
    directory = os.environ.get(_DIRECTORY) or tempfile.mkdtemp(prefix="bough-profile-")
    os.makedirs(directory, exist_ok=True)
    name = time.strftime("%Y%m%d-%H%M%S") + f"-{time.time_ns() % 1_000_000_000:09d}"
    engine.call_scheduler(
        "start_profile",
        directory=os.path.realpath(directory),
        name=name,
        call=uuid.uuid4().hex,
        num_steps=None,
        torch_activities=["CPU", "GPU"],
        with_stack=False,
        record_shapes=False,
    )


def stop_profile(engine: Engine) -> list[str]:
    """End the recording; return the paths of its files.

    Raises:
        RequestFailed: if none is being recorded.
    """
    paths: list[str] = engine.call_scheduler("stop_profile")["paths"]
    return paths
