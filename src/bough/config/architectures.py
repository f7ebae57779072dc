"""Architectures that can be served, and where their classes are. Imports none of them before it is asked to."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Literal

from bough import plugins
from bough.config.engine_args import ModelImpl
from bough.errors import ConfigError

MODEL_MODULES: dict[str, str] = {
    "Gemma3ForCausalLM": "bough.models.gemma3",
    "Glm4MoeForCausalLM": "bough.models.glm4_moe",
    "GptOssForCausalLM": "bough.models.gpt_oss",
    "LlamaForCausalLM": "bough.models.llama",
    "Ministral3ForCausalLM": "bough.models.ministral3",
    "MistralForCausalLM": "bough.models.mistral",
    "MixtralForCausalLM": "bough.models.mixtral",
    "Phi3ForCausalLM": "bough.models.phi3",
    "Qwen2ForCausalLM": "bough.models.qwen2",
    "Qwen2MoeForCausalLM": "bough.models.qwen2_moe",
    "Qwen3ForCausalLM": "bough.models.qwen3",
    "Qwen3MoeForCausalLM": "bough.models.qwen3_moe",
    "SmolLM3ForCausalLM": "bough.models.smollm3",
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

TESTED_WITH_TRANSFORMERS: tuple[str, ...] = (
    "Cohere2ForCausalLM",
    "DeepseekV3ForCausalLM",
    "Exaone4ForCausalLM",
    "Gemma2ForCausalLM",
    "Glm4ForCausalLM",
    "GPT2LMHeadModel",
    "GraniteForCausalLM",
    "Olmo2ForCausalLM",
    "Starcoder2ForCausalLM",
)
"""Models that the tests compare with transformers where that computes them here; it computes others as well."""

WRAPPERS = frozenset({"Gemma3ForConditionalGeneration", "Mistral3ForConditionalGeneration"})
"""Architectures of a text model, described by ``text_config``, beside parts that read images: text is served alone."""

TEXT_MODELS: dict[str, str] = {
    "gemma3_text": "Gemma3ForCausalLM",
    "ministral3": "Ministral3ForCausalLM",
    "mistral": "MistralForCausalLM",
}
"""``model_type`` of a ``text_config`` to the language model that serves it."""

BACKBONES: dict[str, str] = {
    "Gemma3TextModel": "Gemma3ForCausalLM",
    "Gemma3TextForSequenceClassification": "Gemma3ForCausalLM",
    "LlamaModel": "LlamaForCausalLM",
    "LlamaForSequenceClassification": "LlamaForCausalLM",
    "Ministral3Model": "Ministral3ForCausalLM",
    "Ministral3ForSequenceClassification": "Ministral3ForCausalLM",
    "MistralModel": "MistralForCausalLM",
    "MistralForSequenceClassification": "MistralForCausalLM",
    "Phi3Model": "Phi3ForCausalLM",
    "Phi3ForSequenceClassification": "Phi3ForCausalLM",
    "Qwen2Model": "Qwen2ForCausalLM",
    "Qwen2ForSequenceClassification": "Qwen2ForCausalLM",
    "Qwen2ForRewardModel": "Qwen2ForCausalLM",
    "Qwen3Model": "Qwen3ForCausalLM",
    "Qwen3ForSequenceClassification": "Qwen3ForCausalLM",
    "Qwen3ForRewardModel": "Qwen3ForCausalLM",
    "SmolLM3Model": "SmolLM3ForCausalLM",
    "SmolLM3ForSequenceClassification": "SmolLM3ForCausalLM",
}
"""Models that are a language model but for its head, to that language model."""

READERS: dict[str, str] = {
    "bough.models.bert": "BertReader",
    "bough.models.gemma3": "Gemma3Reader",
    "bough.models.glm4_moe": "Glm4MoeReader",
    "bough.models.gpt_oss": "GptOssReader",
    "bough.models.llama": "LlamaReader",
    "bough.models.ministral3": "Ministral3Reader",
    "bough.models.mistral": "MistralReader",
    "bough.models.mixtral": "MixtralReader",
    "bough.models.phi3": "Phi3Reader",
    "bough.models.qwen2": "Qwen2Reader",
    "bough.models.qwen2_moe": "Qwen2MoeReader",
    "bough.models.qwen3": "Qwen3Reader",
    "bough.models.qwen3_moe": "Qwen3MoeReader",
    "bough.models.roberta": "RobertaReader",
    "bough.models.smollm3": "SmolLM3Reader",
}
"""A family's module to the class that reads what config.json says of its models, without torch: that of
``bough.models.llama`` is in ``bough.models.llama_config``, and so on."""


def supported_architectures() -> list[str]:
    """All that can be served, also thanks to other packages, sorted."""
    others = (*plugins.declared(plugins.MODELS), *plugins.declared(plugins.WORKERS))
    return sorted({*MODEL_MODULES, *ENCODER_MODULES, *BACKBONES, *WRAPPERS, *others})


Implementation = Literal["bough", "transformers"]
"""Origin of the code that computes a model: Bough, and packages that extend it; or the package transformers."""

TRANSFORMERS_EXTRA = "pip install 'bough-llm[transformers]'"
"""Command that installs transformers in a version that can be served."""


def chosen_implementation(architecture: str, wanted: ModelImpl) -> Implementation | None:
    """Return what computes an architecture; ``None`` if nothing here does.

    Raises:
        ConfigError: if transformers is wanted and not installed, or for a model that generates no text.
    """
    is_ours = architecture in supported_architectures()
    if wanted == "bough" or (is_ours and wanted == "auto"):
        return "bough" if is_ours else None
    if wanted == "transformers" and not has_transformers():
        raise ConfigError(
            f"--model-impl transformers needs the package transformers: {TRANSFORMERS_EXTRA}", param="model_impl"
        )
    if not architecture.endswith(("ForCausalLM", "LMHeadModel")):
        if wanted == "transformers":
            raise ConfigError(
                f"--model-impl transformers is for text models (…ForCausalLM), and {architecture} is none",
                param="model_impl",
                code=UNSUPPORTED_MODEL,
            )
        return None
    return "transformers" if has_transformers() else None


def has_transformers() -> bool:
    """True if the package transformers is installed; it is not imported."""
    return importlib.util.find_spec("transformers") is not None


UNSUPPORTED_MODEL = "unsupported_model"
"""Code of errors about a model that transformers could compute and Bough cannot serve."""


def makes_vectors(architecture: str) -> bool:
    """True if an architecture never generates text."""
    return architecture in ENCODER_MODULES or architecture in BACKBONES


def load_reader(architecture: str, implementation: Implementation = "bough") -> type:
    """Import the class that reads a model's config.json; for models of other packages that have none, the common one.

    Returns:
        A class below :class:`~bough.models.family_reader.FamilyReader`.

    Raises:
        ConfigError: if the class of another package cannot be had.
    """
    if implementation == "transformers":
        return importlib.import_module("bough.models.transformers_config").TransformersReader  # type: ignore[no-any-return]
    common: type = importlib.import_module("bough.models.family_reader").FamilyReader
    family = {**MODEL_MODULES, **ENCODER_MODULES}.get(BACKBONES.get(architecture, architecture))
    if family is not None:
        return getattr(importlib.import_module(f"{family}_config"), READERS[family])  # type: ignore[no-any-return]
    if architecture in plugins.declared(plugins.MODEL_CONFIGS):
        return plugins.load(plugins.MODEL_CONFIGS, architecture, common)  # type: ignore[no-any-return]
    return common
