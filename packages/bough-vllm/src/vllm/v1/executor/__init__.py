"""Executors, where newer programs look for them."""

from vllm.executor.executor_base import ExecutorBase as Executor

__all__ = ["Executor"]
