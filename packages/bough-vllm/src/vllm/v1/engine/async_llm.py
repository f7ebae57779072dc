"""The engine for programs with an event loop, by its newer name."""

from vllm.engine.async_llm_engine import AsyncLLMEngine as AsyncLLM

__all__ = ["AsyncLLM"]
