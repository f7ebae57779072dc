"""Which architectures can be served, and where their classes are. No torch here: front ends read the table."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bough.models.base import CausalLM

MODEL_MODULES: dict[str, str] = {
    "LlamaForCausalLM": "bough.models.llama",
    "MistralForCausalLM": "bough.models.mistral",
    "Qwen2ForCausalLM": "bough.models.qwen2",
    "Qwen3ForCausalLM": "bough.models.qwen3",
}
"""``architectures[0]`` of a config.json to the module with the class of that name."""

FAKE_ARCHITECTURE = "BoughFakeForCausalLM"
"""What a config.json names to have everything real but the device's compute: see
:mod:`bough.model_executor.fake_model_runner`."""


def load_model_class(architecture: str) -> type[CausalLM]:
    """Import the class of an architecture. Imports torch.

    Args:
        architecture: a key of :data:`MODEL_MODULES`.
    """
    module = importlib.import_module(MODEL_MODULES[architecture])
    model_class: type[CausalLM] = getattr(module, architecture)
    return model_class
