"""The models that are compared: a checkpoint with random weights in Hugging Face's format, and the peers' forms of it.

Everything is made here, nothing is fetched. What is there already is kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from benchmarks.peers.build import PeerEnvironment
from benchmarks.peers.random_checkpoint import write_checkpoint
from benchmarks.peers.shapes import SHAPES

Precision = Literal["bf16", "int8", "int4"]
PRECISIONS: tuple[Precision, ...] = ("bf16", "int8", "int4")
GGUF_TYPES: dict[Precision, str] = {"bf16": "BF16", "int8": "Q8_0", "int4": "Q4_0"}
OPENVINO_WEIGHTS: dict[Precision, str] = {"bf16": "fp16", "int8": "int8", "int4": "int4"}
"""What ``optimum-cli export openvino`` is told. bfloat16 is exact in float16 but for tiny numbers, and becomes bfloat16
again when the pipeline is told to infer with it."""


class Checkpoints:
    """The forms of one shape's model, in a directory of its own.

    Args:
        directory: where models are kept; absolute.
        shape: a key of :data:`SHAPES`.
        environment: the peers' programs, which make their own forms.
    """

    def __init__(self, directory: Path, shape: str, environment: PeerEnvironment) -> None:
        self.config = SHAPES[shape]
        self._directory = directory / shape
        self._environment = environment

    def hugging_face(self) -> Path:
        """Directory with ``model.safetensors``, ``config.json`` and a tokenizer; what Bough and transformers read."""
        path = self._directory / "hf"
        if not path.exists():
            with _making(path) as unfinished:
                write_checkpoint(unfinished, self.config)
        return path

    def gguf(self, precision: Precision) -> Path:
        """The file that llama.cpp reads."""
        path = self._directory / f"{precision}.gguf"
        if not path.exists():
            with _making(path) as unfinished:
                if precision == "bf16":
                    self._environment.run_module("write_gguf", self.hugging_face(), unfinished)
                else:
                    self._quantize(self.gguf("bf16"), unfinished, GGUF_TYPES[precision])
        return path

    def openvino(self, precision: Precision) -> Path:
        """The directory that OpenVINO GenAI reads."""
        path = self._directory / f"openvino-{precision}"
        if not path.exists():
            with _making(path) as unfinished:
                self._export(unfinished, OPENVINO_WEIGHTS[precision])
        return path

    def _quantize(self, source: Path, target: Path, quantized_type: str) -> None:
        command = [str(part) for part in (self._environment.tool("llama-quantize"), source, target, quantized_type)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _export(self, target: Path, weight_format: str) -> None:
        command = [str(self._environment.script("optimum-cli")), "export", "openvino"]
        command += ["--model", str(self.hugging_face()), "--task", "text-generation-with-past"]
        command += ["--weight-format", weight_format, str(target)]
        subprocess.run(command, check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})


@contextlib.contextmanager
def _making(path: Path) -> Iterator[Path]:
    """A path to make something at, which becomes ``path`` once it is complete."""
    unfinished = path.with_name(f"unfinished-{path.name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if unfinished.is_dir():
        shutil.rmtree(unfinished)
    unfinished.unlink(missing_ok=True)
    yield unfinished
    unfinished.rename(path)
