"""SGLang's and vLLM's servers on a processor, in environments of their own.

Both want CUDA's packages and other versions of much that Bough uses, so their packages go without dependencies on top
of torch for processors and what Bough requires::

    python -m venv sglang-env
    sglang-env/bin/pip install -c constraints.txt .  # or a .pth file that leads to where all that is installed
    sglang-env/bin/pip install --no-deps -r benchmarks/peers/sglang.txt  # or vllm.txt

vLLM's packages hold kernels for CUDA only; beside them belongs the extension for processors, ``_C_AVX2`` or its like,
compiled from vLLM's sources.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import torch
from benchmarks.peers.http_server import http_server

START_SECONDS = 600.0  # vLLM compiles at its first start
VLLM_CACHE_GIB = 4

PythonServer = Callable[..., contextlib.AbstractContextManager[str]]


def own_dtype() -> str:
    """The type in which torch, and so these engines, compute a bfloat16 model faster; it is slow without AVX-512."""
    return "bfloat16" if torch.backends.cpu.get_cpu_capability() == "AVX512" else "float32"


def sglang_server(
    python: Path, model: Path, *, threads: int, max_tokens: int
) -> contextlib.AbstractContextManager[str]:
    """SGLang with the attention that it has for any processor; gives its URL.

    Args:
        python: of its environment.
        model: in Hugging Face's format.
        threads: that compute.
        max_tokens: of its cache.
    """
    command = [str(python), "-m", "benchmarks.peers.serve_sglang", "--model-path", str(model), "--dtype", own_dtype()]
    command += ["--device", "cpu", "--attention-backend", "torch_native", "--max-total-tokens", str(max_tokens)]
    command += ["--skip-server-warmup", "--sleep-on-idle"]  # without which it keeps a core from the others
    environment = {"SGLANG_USE_CPU_ENGINE": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads)}
    return http_server(command, environment, start_seconds=START_SECONDS)


def vllm_server(python: Path, model: Path, *, threads: int, max_tokens: int) -> contextlib.AbstractContextManager[str]:
    """vLLM; arguments and result as those of :func:`sglang_server`, but that its cache is :data:`VLLM_CACHE_GIB`."""
    del max_tokens
    command = [str(python), "-m", "vllm.entrypoints.cli.main", "serve", str(model), "--dtype", own_dtype()]
    command += ["--served-model-name", "any", "--max-model-len", "4096", "--disable-uvicorn-access-log"]
    environment = {
        "VLLM_TARGET_DEVICE": "cpu",
        "VLLM_CPU_KVCACHE_SPACE": str(VLLM_CACHE_GIB),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",  # by default it leaves one core to others
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
    }
    return http_server(command, environment, start_seconds=START_SECONDS)


PYTHON_SERVERS: dict[str, PythonServer] = {"sglang": sglang_server, "vllm": vllm_server}
