"""The worker of a rank, where newer programs look for it."""

from vllm.worker.worker import Worker

__all__ = ["Worker"]
