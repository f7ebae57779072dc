"""The worker of a rank, which a program's ``worker_cls`` derives from."""

from bough.model_executor.worker_face import WorkerFace as Worker

__all__ = ["Worker"]
