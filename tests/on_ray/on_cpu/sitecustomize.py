"""Lets the extension of OpenRLHF, which writes "cuda", run where there is no GPU.

Python imports this file at its start, in every process that has its folder on its path. The extension is imported as it
is; while one of its methods runs, torch makes tensors for "cuda" on the CPU and has no stream.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

_EXTENSION = "openrlhf.trainer.ray.vllm_worker_wrap"


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        if name != _EXTENSION:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: Any) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        wrap = module.WorkerWrap
        for name, method in list(vars(wrap).items()):
            if callable(method):
                setattr(wrap, name, _without_cuda(method))


def _without_cuda(method: Any) -> Any:
    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        import torch
        from torch.overrides import TorchFunctionMode

        class OnCpu(TorchFunctionMode):
            def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                kwargs = dict(kwargs or {})
                if kwargs.get("device") == "cuda":
                    kwargs["device"] = "cpu"
                return function(*args, **kwargs)

        current_stream = torch.cuda.current_stream
        torch.cuda.current_stream = lambda device=None: None  # type: ignore[assignment]
        try:
            with OnCpu():
                return method(*args, **kwargs)
        finally:
            torch.cuda.current_stream = current_stream

    return run


sys.meta_path.insert(0, _Finder())
