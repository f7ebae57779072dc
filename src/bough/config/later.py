"""Flags that people bring along from other servers: what does not work yet, and what is named otherwise here."""

from __future__ import annotations

_FEATURES = {
    "tensor parallelism": ("tp", "tp-size", "tensor-parallel-size"),
    "pipeline parallelism": ("pp", "pp-size", "pipeline-parallel-size"),
    "data parallelism": ("dp", "dp-size", "data-parallel-size"),
    "expert parallelism": ("ep", "ep-size", "expert-parallel-size"),
    "several machines": ("nnodes", "node-rank", "dist-init-addr"),
    "LoRA": ("enable-lora", "lora-paths", "max-loras-per-batch", "max-lora-rank"),
    "code from checkpoints": ("trust-remote-code",),
    "speculative decoding": ("speculative-algorithm", "speculative-draft-model-path", "speculative-num-steps"),
    "a choice of sampling kernels": ("sampling-backend",),
    "images, sound and video": ("enable-multimodal", "mm-attention-backend"),
    "a choice of batch sizes for CUDA graphs": ("cuda-graph-bs",),
    "disaggregation": ("disaggregation-mode",),
}
_FEATURE_OF = {flag: feature for feature, flags in _FEATURES.items() for flag in flags}

FLAGS_OF_OTHERS = {
    "max-model-len": "context-length",
    "ctx-size": "context-length",
    "gpu-memory-utilization": "mem-fraction-static",
    "max-num-seqs": "max-running-requests",
    "parallel": "max-running-requests",
    "threads": "cpu-threads",
    "enforce-eager": "disable-cuda-graph",
}
"""Flags of vLLM and of llama.cpp's server, and which of ours comes nearest; what a value means may differ."""


def feature_of(flag: str) -> str | None:
    """What a flag (``"--tp"``, ``"tp_size"``) is for that does not work yet, or ``None``."""
    return _FEATURE_OF.get(flag.lstrip("-").replace("_", "-"))


def names_here(flag: str) -> tuple[str, ...]:
    """What comes nearest to a flag of another server, in all spellings: ``("--context-length", "--context_length")``.

    Empty for flags that nobody is known to have.
    """
    bare = flag.lstrip("-")
    name = FLAGS_OF_OTHERS.get(bare.replace("_", "-"))
    if name is None:
        return ()
    dashes = flag[: len(flag) - len(bare)]
    return dashes + name, dashes + name.replace("-", "_")
