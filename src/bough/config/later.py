"""Flags that people bring along from other servers: what does not work yet, and what is named otherwise here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from bough.config.features_later import feature_of

_ONE = (
    *("tp", "pp", "dp", "ep", "tensor-parallel", "pipeline-parallel", "data-parallel", "expert-parallel"),
    *("attn-dp", "attention-data-parallel", "attn-cp", "attention-context-parallel", "moe-dp", "moe-data-parallel"),
    *("dcp", "decode-context-parallel", "dwdp"),
)
_NEUTRAL: dict[str, tuple[int | str, ...]] = {
    **{f"{name}{end}": (1,) for name in _ONE for end in ("", "-size")},
    **dict.fromkeys(("nnodes", "gpu-id-step", "tokenizer-worker-num", "detokenizer-worker-num"), (1,)),
    **dict.fromkeys(("node-rank", "base-gpu-id", "cpu-offload-gb", "ep-num-redundant-experts"), (0,)),
    **dict.fromkeys(("disaggregation-mode", "decoupled-spec-role"), ("null",)),
    **dict.fromkeys(("tokenizer-mode", "model-impl", "moe-runner-backend", "model-config-parser"), ("auto",)),
    "load-balance-method": ("auto", "round_robin"),
    "moe-a2a-backend": ("none",),
    "tokenizer-backend": ("huggingface",),
}
"""Flags that do not work yet, and the values with which they ask for what is so anyway."""

_SO_ANYWAY = frozenset(
    {
        *("enable-metrics", "enable-metrics-for-all-schedulers", "enable-mixed-chunk", "enable-cache-report"),
        *("enable-response-store", "enable-streaming-session"),
        *("enable-auto-tool-choice", "enable-prefix-caching", "enable-chunked-prefill", "disable-log-requests"),
        *("jinja", "cont-batching", "metrics", "flash-attn", "fa"),
    }
)
"""Switches of SGLang, vLLM and llama.cpp's server for what is so here."""

_NOT_THERE = frozenset(
    {
        *("language-model-only", "disable-custom-all-reduce", "disable-shared-experts-fusion"),
        *("disable-chunked-prefix-cache", "disable-hybrid-swa-memory", "disable-fast-image-processor"),
        *("disable-outlines-disk-cache", "enforce-disable-flashinfer-allreduce-fusion"),
    }
)
"""Switches that turn off what is not there, so that neither on nor off they ask for anything."""

_UNLESS = {
    "enable-response-store": ("max-stored-responses", 0),
    "enable-streaming-session": ("max-sessions", 0),
    "enable-prefix-caching": ("disable-radix-cache", True),
    "enable-chunked-prefill": ("chunked-prefill-size", -1),
    "disable-log-requests": ("log-requests", True),
}
"""Switches for what is so here that another flag may contradict, and the value with which it does."""

_NEEDLESS = {
    "allow-unknown-fields": "unknown fields are ignored unless --strict-fields is given; leave it out",
    "trust-remote-code": "code from checkpoints is never run, and no model that is supported needs it; leave it out",
    **dict.fromkeys(
        ("enable-torch-compile", "enable-torch-compile-debug-mode", "torch-compile-max-bs"),
        "kernels come compiled; leave it out",
    ),
    "enable-strict-thinking": "a request's thinking_token_budget holds without it; leave it out",
}
"""Others that change nothing here, and why."""

FLAGS_OF_OTHERS = {
    "max-model-len": "context-length",
    **dict.fromkeys(("ctx-size", "max-seq-len", "n-ctx"), "context-length"),
    **dict.fromkeys(("n-gpu-layers", "gpu-layers", "ngl"), "device"),
    **dict.fromkeys(("hf-repo", "hf", "hfr"), "model-path"),
    **dict.fromkeys(("cache-type-k", "cache-type-v", "ctk", "ctv"), "kv-cache-dtype"),
    **dict.fromkeys(("hf-overrides", "rope-scaling"), "json-model-override-args"),
    "alias": "served-model-name",
    "batch-size": "max-prefill-tokens",
    "ubatch-size": "chunked-prefill-size",
    "block-size": "page-size",
    "chat-template-file": "chat-template",
    "embeddings": "is-embedding",
    "generation-config": "sampling-defaults",
    "override-generation-config": "preferred-sampling-params",
    "reasoning-format": "reasoning-parser",
    "seed": "random-seed",
    "temp": "preferred-sampling-params",
    "uvicorn-log-level": "log-level",
    "gpu-memory-utilization": "mem-fraction-static",
    "max-num-seqs": "max-running-requests",
    **dict.fromkeys(("parallel", "np"), "max-running-requests"),
    **dict.fromkeys(("threads", "t"), "cpu-threads"),
    "enforce-eager": "disable-cuda-graph",
    "max-num-batched-tokens": "max-prefill-tokens",
    "cuda-graph-max-bs-decode": "cuda-graph-max-bs",
    "disable-decode-cuda-graph": "disable-cuda-graph",
    "prefill-attention-backend": "attention-backend",
    "decode-attention-backend": "attention-backend",
    "enable-trace": "otlp-traces-endpoint",
    "log-level-http": "log-level",
    "log-requests-format": "log-format",
    "hf-chat-template-name": "chat-template",
}
"""Flags of vLLM, SGLang and llama.cpp's server, and which of ours comes nearest; what a value means may differ."""

_SAME_VALUES = {"dtype": {"half": "float16", "float": "float32"}}
"""Other words for values, which mean the same in SGLang and vLLM."""

_STORED = "a checkpoint that is quantised says so itself; leave it out"
_VALUES = {
    "dtype": {"fp16": "float16", "bf16": "bfloat16"},
    "kv-cache-dtype": {"fp8": "fp8_e4m3"},
    "log-level": {"warn": "warning", "trace": "debug"},
    "grammar-backend": dict.fromkeys(("xgrammar", "outlines", "guidance"), "llguidance"),
    "quantization": dict.fromkeys(("awq", "gptq", "awq_marlin", "gptq_marlin", "compressed-tensors"), _STORED),
}
"""Values that options have elsewhere: what comes nearest, or a sentence."""


def value_here(option: str, value: Any) -> Any:
    """A value of an option (``"dtype"``) by the name that it has here: ``float16`` for ``half``."""
    return _SAME_VALUES.get(option, {}).get(value, value) if isinstance(value, str) else value


def nearest_value(option: str, value: Any) -> str:
    """What to say of a value that an option (``"dtype"``) has in other servers; empty if nobody is known to have it."""
    nearest = _VALUES.get(option, {}).get(value if isinstance(value, str) else "", "")
    return f"; {nearest}" if " " in nearest else nearest and f"; the nearest here is {nearest!r}"


def refusal(flag: str) -> str | None:
    """What to say of a flag (``"--tp"``, ``"tp_size"``) that people bring along; ``None`` if nobody is known to."""
    name = _bare(flag)
    if name in _NEEDLESS:
        return f"{flag} is not needed: {_NEEDLESS[name]}"
    if name in _UNLESS:
        other, value = _UNLESS[name]
        return f"{flag} takes no value and is so unless --{other}{'' if value is True else f' {value}'} is given"
    if name in _SO_ANYWAY:
        return f"{flag} takes no value and is always so; leave it out"
    feature = None if name in FLAGS_OF_OTHERS else feature_of(name)
    return None if feature is None else f"{flag} is not supported yet: {feature}"


def without_neutral(words: Sequence[str]) -> list[str]:
    """A command line without flags that ask for what is so anyway, such as ``--tp 1``."""
    kept: list[str] = []
    given = _given(words)
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        name = _bare(flag) if flag.startswith("--") else ""
        if not equals and (name in _NOT_THERE or (name in _SO_ANYWAY and not _is_contradicted(name, given))):
            continue
        if name in _NEUTRAL:
            own = value if equals else next(rest, None)
            if own is not None and _is_neutral(name, own):
                continue
            kept += [word] if equals or own is None else [word, own]
            continue
        kept.append(word)
    return kept


def without_neutral_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of an engine without those that ask for what is so anyway, such as ``tp_size=1``."""
    return {name: value for name, value in options.items() if not asks_for_nothing(name, value, options)}


def asks_for_nothing(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    """Whether a keyword (``"tp_size"``), or a key of a configuration file, asks for what is so anyway.

    Args:
        name: of the keyword.
        value: its value.
        given: all that are given, this one among them.
    """
    bare = _bare(name)
    if bare in _NOT_THERE:
        return value is None or isinstance(value, bool)
    if bare in _SO_ANYWAY:
        others = {_bare(each): other for each, other in given.items()}
        return value is None or (value is True and not _is_contradicted(bare, others))
    if bare in _NEUTRAL and value is not None:
        return _is_neutral(bare, value)
    return (value is None or value is False) and refusal(name) is not None


def _given(words: Sequence[str]) -> dict[str, str | bool]:
    """The flags of a command line and what stands behind them, ``True`` where that is another flag or nothing."""
    given: dict[str, str | bool] = {}
    for word, following in zip_longest(words, words[1:], fillvalue="--"):
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            given[_bare(flag)] = value if equals else following.startswith("--") or following
    return given


def _is_contradicted(name: str, given: Mapping[str, Any]) -> bool:
    """Whether one of the flags that are given turns off what a switch of ``_SO_ANYWAY`` turns on."""
    other, value = _UNLESS.get(name, ("", None))
    if value is True:  # a switch, behind which the path of the model may stand
        return given.get(other, False) not in (False, None)
    return other in given and _is_same(given[other], value)


def _is_neutral(name: str, value: Any) -> bool:
    return any(_is_same(value, each) for each in _NEUTRAL[name])


def _is_same(value: Any, wanted: int | str | None) -> bool:
    """Whether a value, which on command lines is text, is the one that is wanted."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return False  # True is 1, and no number of ranks
    if isinstance(wanted, int):
        try:
            return float(value) == wanted
        except ValueError:
            return False
    return value == wanted


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
    dashes = "--" if flag.startswith("-") else ""
    return dashes + name, dashes + name.replace("-", "_")
