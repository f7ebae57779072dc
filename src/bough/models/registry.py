"""Which architectures can be served, and where their classes are. No torch here: front ends read the tables."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from bough import plugins

if TYPE_CHECKING:
    from bough.config.model_config import ModelConfig
    from bough.layers.linear_method import MethodChoice
    from bough.models.base import CausalLM, Model
    from bough.models.encoder import Encoder
    from bough.models.family_reader import FamilyReader

MODEL_MODULES: dict[str, str] = {
    "LlamaForCausalLM": "bough.models.llama",
    "MistralForCausalLM": "bough.models.mistral",
    "Qwen2ForCausalLM": "bough.models.qwen2",
    "Qwen3ForCausalLM": "bough.models.qwen3",
}
"""Language models: ``architectures[0]`` of a config.json to the module with the class of that name."""

ENCODER_MODULES: dict[str, str] = {
    "BertModel": "bough.models.bert",
    "BertForMaskedLM": "bough.models.bert",
    "BertForSequenceClassification": "bough.models.bert",
    "RobertaModel": "bough.models.roberta",
    "RobertaForMaskedLM": "bough.models.roberta",
    "RobertaForSequenceClassification": "bough.models.roberta",
    "XLMRobertaModel": "bough.models.roberta",
    "XLMRobertaForMaskedLM": "bough.models.roberta",
    "XLMRobertaForSequenceClassification": "bough.models.roberta",
}
"""Encoders: bidirectional models that make one vector, or one row of class scores, of a sequence."""

BACKBONES: dict[str, str] = {
    "LlamaModel": "LlamaForCausalLM",
    "LlamaForSequenceClassification": "LlamaForCausalLM",
    "MistralModel": "MistralForCausalLM",
    "MistralForSequenceClassification": "MistralForCausalLM",
    "Qwen2Model": "Qwen2ForCausalLM",
    "Qwen2ForSequenceClassification": "Qwen2ForCausalLM",
    "Qwen2ForRewardModel": "Qwen2ForCausalLM",
    "Qwen3Model": "Qwen3ForCausalLM",
    "Qwen3ForSequenceClassification": "Qwen3ForCausalLM",
    "Qwen3ForRewardModel": "Qwen3ForCausalLM",
}
"""Models that are a language model but for its head, to that language model."""

READERS: dict[str, str] = {
    "bough.models.bert": "BertReader",
    "bough.models.llama": "LlamaReader",
    "bough.models.mistral": "MistralReader",
    "bough.models.qwen2": "Qwen2Reader",
    "bough.models.qwen3": "Qwen3Reader",
    "bough.models.roberta": "RobertaReader",
}
"""A family's module to the class that reads what config.json says of its models, without torch: that of
``bough.models.llama`` is in ``bough.models.llama_config``, and so on."""


def supported_architectures() -> list[str]:
    """All that can be served, also thanks to other packages, sorted."""
    others = (*plugins.declared(plugins.MODELS), *plugins.declared(plugins.WORKERS))
    return sorted({*MODEL_MODULES, *ENCODER_MODULES, *BACKBONES, *others})


def makes_vectors(architecture: str) -> bool:
    """Whether an architecture never generates text."""
    return architecture in ENCODER_MODULES or architecture in BACKBONES


def load_reader(architecture: str) -> type[FamilyReader]:
    """Import the class that reads a model's config.json; for models of other packages that have none, the common one.

    Args:
        architecture: one of :func:`supported_architectures`.

    Raises:
        ConfigError: if the class of another package cannot be had.
    """
    from bough.models.family_reader import FamilyReader

    reader: type[FamilyReader] = FamilyReader
    family = {**MODEL_MODULES, **ENCODER_MODULES}.get(BACKBONES.get(architecture, architecture))
    if family is not None:
        reader = getattr(importlib.import_module(f"{family}_config"), READERS[family])
    elif architecture in plugins.declared(plugins.MODEL_CONFIGS):
        reader = plugins.load(plugins.MODEL_CONFIGS, architecture, FamilyReader)
    return reader


def load_model_class(architecture: str) -> type[CausalLM]:
    """Import the class of a language model. Imports torch.

    Args:
        architecture: a key of :data:`MODEL_MODULES`, or what another package declares.

    Raises:
        ConfigError: if the class of another package cannot be had.
    """
    model_class: type[CausalLM]
    if architecture in MODEL_MODULES:
        model_class = _import(MODEL_MODULES, architecture)
    else:
        from bough.models.base import CausalLM

        model_class = plugins.load(plugins.MODELS, architecture, CausalLM)
    return model_class


def make_model(config: ModelConfig, method: MethodChoice | None = None) -> Model:
    """The model of a configuration, its weights not set. Imports torch.

    Args:
        config: of the model.
        method: how the linear layers of a language model hold their weights; ``None``: torch's way.
    """
    architecture = config.architecture
    if architecture in ENCODER_MODULES:
        encoder_class: type[Encoder] = _import(ENCODER_MODULES, architecture)
        return encoder_class(config)
    options = () if method is None else (method,)
    if config.pooling is not None:
        from bough.models.pooled import PooledCausalLM

        return PooledCausalLM(config, load_model_class(BACKBONES.get(architecture, architecture)), *options)
    return load_model_class(architecture)(config, *options)


def _import(modules: dict[str, str], architecture: str) -> type:
    model_class: type = getattr(importlib.import_module(modules[architecture]), architecture)
    return model_class
