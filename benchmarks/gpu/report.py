"""Results that are written after each cell, so that a run that is cut short still counts."""

from __future__ import annotations

import json
import platform
import time
import traceback
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

_OURS = ("bough", "benchmarks", "tests")


class Report:
    """Runs cells one by one, prints a line for each, and keeps a JSON file up to date.

    Attributes:
        left_out: names of cells that were not run for lack of time, or of a package that is not optional.
    """

    def __init__(
        self, path: Path, device: torch.device, budget: float, *, optional_packages: tuple[str, ...] = ()
    ) -> None:
        """``budget``: seconds after which no further cell begins."""
        self._path, self._budget, self._begin = path, budget, time.perf_counter()
        self.cells: list[dict[str, Any]] = []
        self.left_out: list[str] = []
        self._optional_packages = optional_packages
        self._missing: set[str] = set()
        self._head = {"device": _device_name(device), "python": platform.python_version(), **_versions()}
        path.parent.mkdir(parents=True, exist_ok=True)
        print("  ".join(f"{key} {value}" for key, value in self._head.items()), flush=True)

    def run(self, name: str, cell: Callable[[], dict[str, Any]]) -> None:
        """Run a cell, unless time is up.

        A cell's figures may have ``ok``. One that raises is not ok, but one that asks for a package which is not
        installed is skipped.
        """
        begin = time.perf_counter()
        figures: dict[str, Any]
        if begin - self._begin > self._budget:
            figures = {"skipped": f"{self._budget:.0f} s are over"}
            self.left_out.append(name)
        else:
            try:
                figures = cell()
            except Exception as error:
                package = (
                    error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else None
                )
                if package is None or package in _OURS:
                    traceback.print_exc()
                    figures = {"ok": False, "error": f"{type(error).__name__}: {error}"}
                else:
                    self._missing.add(package)
                    if package not in self._optional_packages:
                        self.left_out.append(name)
                    figures = {"skipped": f"not installed: {package}"}
        figures = {"name": name, **figures, "seconds": round(time.perf_counter() - begin, 2)}
        self.cells.append(figures)
        self._path.write_text(json.dumps({**self._head, "cells": self.cells}, indent=2) + "\n")
        shown = "  ".join(f"{key}={_short(value)}" for key, value in figures.items() if key != "name")
        print(f"{name:<44} {shown}", flush=True)

    def summary(self) -> str:
        """How many cells there were of each kind, and which packages would have been needed for more."""
        skipped = [cell["name"] for cell in self.cells if "skipped" in cell]
        done = len(self.cells) - len(skipped) - len(self.failed)
        lines = [f"{done} done, {len(self.failed)} wrong, {len(skipped)} skipped; {self._path}"]
        if skipped:
            lines.append(f"skipped: {', '.join(skipped)}")
        if self._missing:
            lines.append(f"not installed: {', '.join(sorted(self._missing))}")
        if not self.cells:
            lines.append("no name begins so: nothing was run")
        if self.left_out:
            lines.append("this is not all: nothing is known of what was skipped")
        return "\n".join(lines)

    @property
    def status(self) -> int:
        """For the shell: 1 if a cell is not ok, else 2 if there was none, else 3 if any was left out, else 0."""
        return 1 if self.failed else 2 if not self.cells else 3 if self.left_out else 0

    @property
    def failed(self) -> list[str]:
        """Names of cells that are not ok."""
        return [cell["name"] for cell in self.cells if cell.get("ok") is False]


def _device_name(device: torch.device) -> str:
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu (Triton's interpreter)"


def _versions() -> dict[str, str]:
    found = {}
    for package in ("torch", "triton", "transformers"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
