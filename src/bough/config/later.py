"""Flags that people bring along from other servers: what does not work yet, and what is named otherwise here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

_FEATURES = {
    "tensor parallelism": ("tp", "tp-size", "tensor-parallel-size"),
    "pipeline parallelism": ("pp", "pp-size", "pipeline-parallel-size"),
    "data parallelism": ("dp", "dp-size", "data-parallel-size"),
    "expert parallelism": ("ep", "ep-size", "expert-parallel-size"),
    "several machines": ("nnodes", "node-rank", "dist-init-addr"),
    "LoRA": ("enable-lora", "lora-paths", "max-loras-per-batch", "max-lora-rank"),
    "speculative decoding": ("speculative-algorithm", "speculative-draft-model-path", "speculative-num-steps"),
    "a choice of sampling kernels": ("sampling-backend",),
    "images, sound and video": ("enable-multimodal", "mm-attention-backend"),
    "a choice of batch sizes for CUDA graphs": ("cuda-graph-bs",),
    "disaggregation": ("disaggregation-mode",),
    "a cache in host memory": ("enable-hierarchical-cache", "hicache-ratio", "hicache-size"),
    "giving memory back while nothing runs": ("enable-memory-saver",),
}
_FEATURE_OF = {flag: feature for feature, flags in _FEATURES.items() for flag in flags}

_ONE = ("tp", "pp", "dp", "ep", "tensor-parallel", "pipeline-parallel", "data-parallel", "expert-parallel")
_NEUTRAL = {**{f"{name}{end}": 1 for name in _ONE for end in ("", "-size")}, "nnodes": 1, "node-rank": 0}
"""Flags that do not work yet, and the value with which they ask for what is so anyway."""

_SO_ANYWAY = frozenset(
    {
        *("enable-metrics", "enable-mixed-chunk"),
        *("enable-auto-tool-choice", "enable-prefix-caching", "enable-chunked-prefill", "disable-log-requests"),
        *("jinja", "cont-batching"),
    }
)
"""Switches of SGLang, vLLM and llama.cpp's server for what is so here."""

_UNLESS = {
    "enable-prefix-caching": "disable-radix-cache",
    "enable-chunked-prefill": "chunked-prefill-size",
    "disable-log-requests": "log-requests",
}
"""Those of them that another flag may contradict, beside which they are refused."""

_NEEDLESS = {
    "trust-remote-code": "code from checkpoints is never run, and no model that is supported needs it; leave it out",
    "enable-torch-compile": "kernels come compiled; leave it out",
}
"""Others that change nothing here, and why."""

FLAGS_OF_OTHERS = {
    "max-model-len": "context-length",
    "ctx-size": "context-length",
    "gpu-memory-utilization": "mem-fraction-static",
    "max-num-seqs": "max-running-requests",
    "parallel": "max-running-requests",
    "threads": "cpu-threads",
    "enforce-eager": "disable-cuda-graph",
    "max-num-batched-tokens": "max-prefill-tokens",
}
"""Flags of vLLM and of llama.cpp's server, and which of ours comes nearest; what a value means may differ."""


_STORED = "a checkpoint that is quantised says so itself; leave it out"
_VALUES = {
    "dtype": {"half": "float16", "float": "float32", "fp16": "float16", "bf16": "bfloat16"},
    "kv-cache-dtype": {"fp8": "fp8_e4m3"},
    "log-level": {"warn": "warning", "trace": "debug"},
    "grammar-backend": dict.fromkeys(("xgrammar", "outlines", "guidance"), "llguidance"),
    "quantization": dict.fromkeys(("awq", "gptq", "awq_marlin", "gptq_marlin", "compressed-tensors"), _STORED),
}
"""Values that options have elsewhere: what comes nearest, or a sentence."""


def nearest_value(option: str, value: Any) -> str:
    """What to say of a value that an option (``"dtype"``) has in other servers; empty if nobody is known to have it."""
    nearest = _VALUES.get(option, {}).get(value if isinstance(value, str) else "", "")
    return f"; {nearest}" if " " in nearest else nearest and f"; the nearest here is {nearest!r}"


def refusal(flag: str) -> str | None:
    """What to say of a flag (``"--tp"``, ``"tp_size"``) that people bring along; ``None`` if nobody is known to."""
    name = _bare(flag)
    if name in _NEEDLESS:
        return f"{flag} is not needed: {_NEEDLESS[name]}"
    feature = _FEATURE_OF.get(name)
    return None if feature is None else f"{flag} is not supported yet: {feature}"


def without_neutral(words: Sequence[str]) -> list[str]:
    """A command line without flags that ask for what is so anyway, such as ``--tp 1``."""
    kept: list[str] = []
    given_names = {_bare(word.partition("=")[0]) for word in words if word.startswith("--")}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        name = _bare(flag) if flag.startswith("--") else ""
        if name in _SO_ANYWAY and not equals and _UNLESS.get(name) not in given_names:
            continue
        if name in _NEUTRAL:
            given = value if equals else next(rest, None)
            if given == str(_NEUTRAL[name]):
                continue
            kept += [word] if equals or given is None else [word, given]
            continue
        kept.append(word)
    return kept


def without_neutral_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of an engine without those that ask for what is so anyway, such as ``tp_size=1``."""
    given_names = {_bare(name) for name in options}
    return {name: value for name, value in options.items() if not _asks_for_nothing(_bare(name), value, given_names)}


def _asks_for_nothing(name: str, value: Any, given_names: Set[str]) -> bool:
    if name in _NEUTRAL:
        return value is None or (value == _NEUTRAL[name] and not isinstance(value, bool))
    if name in _SO_ANYWAY:
        return value is True and _UNLESS.get(name) not in given_names
    return name in _NEEDLESS and value in (None, False)


def _bare(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")


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
