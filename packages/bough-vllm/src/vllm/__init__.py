"""Bough under vLLM's names, for programs that drive vLLM's classes.

What is here does what it says; names of vLLM that Bough has no function for are absent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vllm._alone import check_alone
from vllm.version import __version__

check_alone()

if TYPE_CHECKING:
    from vllm.engine.arg_utils import AsyncEngineArgs, EngineArgs
    from vllm.engine.async_llm_engine import AsyncLLMEngine
    from vllm.engine.llm_engine import LLMEngine
    from vllm.entrypoints import LLM
    from vllm.inputs import TextPrompt, TokensPrompt
    from vllm.outputs import (
        ClassificationOutput,
        ClassificationRequestOutput,
        CompletionOutput,
        EmbeddingOutput,
        EmbeddingRequestOutput,
        PoolingOutput,
        PoolingRequestOutput,
        RequestOutput,
        ScoringOutput,
        ScoringRequestOutput,
    )
    from vllm.pooling_params import PoolingParams
    from vllm.sampling_params import SamplingParams

_MODULES = {
    "AsyncEngineArgs": "vllm.engine.arg_utils",
    "AsyncLLMEngine": "vllm.engine.async_llm_engine",
    "ClassificationOutput": "vllm.outputs",
    "ClassificationRequestOutput": "vllm.outputs",
    "CompletionOutput": "vllm.outputs",
    "EmbeddingOutput": "vllm.outputs",
    "EmbeddingRequestOutput": "vllm.outputs",
    "EngineArgs": "vllm.engine.arg_utils",
    "LLM": "vllm.entrypoints.llm",
    "LLMEngine": "vllm.engine.llm_engine",
    "PoolingOutput": "vllm.outputs",
    "PoolingParams": "vllm.pooling_params",
    "PoolingRequestOutput": "vllm.outputs",
    "RequestOutput": "vllm.outputs",
    "SamplingParams": "vllm.sampling_params",
    "ScoringOutput": "vllm.outputs",
    "ScoringRequestOutput": "vllm.outputs",
    "TextPrompt": "vllm.inputs",
    "TokensPrompt": "vllm.inputs",
}
"""Modules of the names here, which are imported when they are asked for."""

__all__ = [
    "LLM",
    "AsyncEngineArgs",
    "AsyncLLMEngine",
    "ClassificationOutput",
    "ClassificationRequestOutput",
    "CompletionOutput",
    "EmbeddingOutput",
    "EmbeddingRequestOutput",
    "EngineArgs",
    "LLMEngine",
    "PoolingOutput",
    "PoolingParams",
    "PoolingRequestOutput",
    "RequestOutput",
    "SamplingParams",
    "ScoringOutput",
    "ScoringRequestOutput",
    "TextPrompt",
    "TokensPrompt",
    "__version__",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'vllm' has no attribute {name!r}: bough-vllm has no function of that name")
    return getattr(importlib.import_module(module), name)
