"""Empty modules for what SGLang's server imports and does not need on a processor.

Its packages for CUDA are many gigabytes. Nothing on the way of a text request calls them.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any
from unittest.mock import MagicMock

ABSENT = ("IPython", "torchvision", "sgl_kernel", "flashinfer", "tilelang", "deep_gemm", "datasets")


class _AbsentModule(types.ModuleType):
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes :data:`ABSENT` importable."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in ABSENT:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def stub_absent() -> None:
    """Put empty modules in the place of :data:`ABSENT`; transformers decides before that what it has."""
    from transformers.utils import import_utils

    import_utils.is_torchvision_available()
    sys.meta_path.insert(0, _AbsentFinder())
