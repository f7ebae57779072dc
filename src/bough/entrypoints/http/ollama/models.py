"""The served model, as Ollama's clients ask about it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from bough.config.model_config import STORED_AS, ModelConfig
from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.ollama.render import timestamp
from bough.managers.tokenizer_manager import TokenizerManager

_FOREVER = "2318-12-31T23:59:59Z"
"""When the model is unloaded: after any date that a client can mean."""


class ModelCard:
    """What is said of the model."""

    def __init__(self, manager: TokenizerManager, core: ChatCore, *, fills_gaps: bool) -> None:
        config = manager.model_config
        self._name = manager.served_model_name
        self._modified = timestamp()
        path = Path(config.model_path)
        self._size = sum(file.stat().st_size for file in weight_files(path))
        self._digest = hashlib.sha256(msgspec.json.encode(config.hf_config, order="deterministic")).hexdigest()
        family = str(config.hf_config.get("model_type", ""))
        num_parameters = manager.scheduler_info.get("num_parameters", 0)
        self._details = {
            "parent_model": "",
            "format": "gguf" if path.is_file() else "safetensors",
            "family": family,
            "families": [family],
            "parameter_size": parameter_size(num_parameters),
            "quantization_level": quantization_level(config, manager.server_args.quantization),
        }
        attention = config.attention_shapes()[0]
        self._info = {
            "general.architecture": family,
            "general.parameter_count": num_parameters,
            f"{family}.context_length": manager.limits.context_len,
            f"{family}.embedding_length": config.hidden_size,
            f"{family}.block_count": config.num_layers,
            f"{family}.attention.head_count": attention.num_heads,
            f"{family}.attention.head_count_kv": attention.num_kv_heads,
            f"{family}.vocab_size": config.vocab_size,
        }
        self._context_len = manager.limits.context_len
        template = manager.chat_template
        self._template = "" if template is None else next(iter(template.sources.values()), "")
        self._capabilities = ["completion"] if config.is_generation else []
        if config.pooling is not None and not config.pooling.is_classifier:
            self._capabilities.append("embedding")
        if template is not None and config.is_generation:
            self._capabilities.append("tools")
        if core.reasons:
            self._capabilities.append("thinking")
        if fills_gaps:
            self._capabilities.append("insert")
        parameters = {name: config.generation_config.get(name) for name in ("temperature", "top_p", "top_k")}
        self._parameters = "\n".join(f"{name} {value}" for name, value in parameters.items() if value is not None)

    def listed(self) -> dict[str, Any]:
        """An entry of ``/api/tags``."""
        return {
            "name": self._name,
            "model": self._name,
            "modified_at": self._modified,
            "size": self._size,
            "digest": self._digest,
            "details": self._details,
        }

    def running(self) -> dict[str, Any]:
        """An entry of ``/api/ps``."""
        listed = self.listed()
        del listed["modified_at"]
        return {**listed, "expires_at": _FOREVER, "size_vram": 0, "context_length": self._context_len}

    def shown(self) -> dict[str, Any]:
        """The answer to ``/api/show``."""
        return {
            "modelfile": f"FROM {self._name}\n",
            "parameters": self._parameters,
            "template": self._template,
            "details": self._details,
            "model_info": self._info,
            "capabilities": self._capabilities,
            "modified_at": self._modified,
        }


def weight_files(path: Path) -> Iterable[Path]:
    """The files of a model: of a directory, or of one that GGUF files hold, of which the first is named."""
    if not path.is_file():
        return path.glob("*.safetensors")
    part = re.fullmatch(r"(.*-)00001(-of-\d{5}\.gguf)", path.name, re.DOTALL)
    if part is None:
        return [path]
    return [file for file in path.parent.iterdir() if re.fullmatch(rf"{re.escape(part[1])}\d{{5}}{part[2]}", file.name)]


def parameter_size(number: int) -> str:
    """A number of parameters in three digits or so, such as ``7.6B`` or ``6.80M``; nothing where it is not known."""
    for unit, letter, digits in ((1e9, "B", 1), (1e6, "M", 2), (1e3, "K", 0)):
        if number >= unit:
            return f"{number / unit:.{digits}f}{letter}"
    return str(number or "")


def quantization_level(config: ModelConfig, quantization: str) -> str:
    """What the weights are kept as."""
    if quantization != "none":
        return quantization
    stored = config.stored_quantization
    if stored is not None:
        return stored.layout if stored.is_float8 or stored.is_microscaled else f"{stored.layout}-int{stored.bits}"
    return str(config.hf_config.get(STORED_AS, config.dtype))
