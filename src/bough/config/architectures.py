"""Architectures that can be served, and where their classes are. Imports none of them before it is asked to."""

from __future__ import annotations

import importlib

from bough import plugins

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
    """True if an architecture never generates text."""
    return architecture in ENCODER_MODULES or architecture in BACKBONES


def load_reader(architecture: str) -> type:
    """Import the class that reads a model's config.json; for models of other packages that have none, the common one.

    Returns:
        A class below :class:`~bough.models.family_reader.FamilyReader`.

    Raises:
        ConfigError: if the class of another package cannot be had.
    """
    common: type = importlib.import_module("bough.models.family_reader").FamilyReader
    family = {**MODEL_MODULES, **ENCODER_MODULES}.get(BACKBONES.get(architecture, architecture))
    if family is not None:
        return getattr(importlib.import_module(f"{family}_config"), READERS[family])  # type: ignore[no-any-return]
    if architecture in plugins.declared(plugins.MODEL_CONFIGS):
        return plugins.load(plugins.MODEL_CONFIGS, architecture, common)  # type: ignore[no-any-return]
    return common
