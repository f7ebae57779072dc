"""Executors, where newer programs look for them."""

from vllm.executor.executor_base import ExecutorBase as Executor
from vllm.executor.executor_base import UniProcExecutor

__all__ = ["Executor", "UniProcExecutor"]
