"""The engine without an event loop, where newer programs look for it."""

from vllm.engine.llm_engine import LLMEngine

__all__ = ["LLMEngine"]
