"""The engine for batches of prompts."""

from vllm.entrypoints.llm import LLM

__all__ = ["LLM"]
