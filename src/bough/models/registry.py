"""Models of a configuration: their classes are imported when one of them is made."""

from __future__ import annotations

import importlib

from bough import plugins
from bough.config.architectures import BACKBONES, ENCODER_MODULES, MODEL_MODULES
from bough.config.model_config import ModelConfig
from bough.layers.linear_method import MethodChoice
from bough.models.base import CausalLM, Model
from bough.models.encoder import Encoder
from bough.models.pooled import PooledCausalLM


def load_model_class(architecture: str) -> type[CausalLM]:
    """Import the class of a language model.

    Args:
        architecture: a key of :data:`MODEL_MODULES`, or what another package declares.

    Raises:
        ConfigError: if the class of another package cannot be had.
    """
    model_class: type[CausalLM]
    if architecture in MODEL_MODULES:
        model_class = _import(MODEL_MODULES, architecture)
    else:
        model_class = plugins.load(plugins.MODELS, architecture, CausalLM)
    return model_class


def complete_config(config: ModelConfig) -> ModelConfig:
    """Return a configuration with what only the code of its model says; that of Bough's own families says nothing more.

    Raises:
        ConfigError: naming what of a model of transformers cannot be served.
    """
    if config.implementation == "bough" or config.attention_arguments:
        return config
    from bough.models.transformers_facts import complete  # late: the package need not be installed

    return complete(config)


def make_model(config: ModelConfig, method: MethodChoice | None = None) -> Model:
    """Make the model of a configuration, its weights not set.

    Args:
        method: how the linear layers of a language model hold their weights; ``None``: torch's way.
    """
    architecture = config.architecture
    if architecture in ENCODER_MODULES:
        encoder_class: type[Encoder] = _import(ENCODER_MODULES, architecture)
        return encoder_class(config)
    options = () if method is None else (method,)
    if config.implementation == "transformers":
        from bough.models.transformers_model import TransformersCausalLM

        return TransformersCausalLM(config, *options)
    if config.pooling is not None:
        return PooledCausalLM(config, load_model_class(BACKBONES.get(architecture, architecture)), *options)
    return load_model_class(architecture)(config, *options)


def _import(modules: dict[str, str], architecture: str) -> type:
    model_class: type = getattr(importlib.import_module(modules[architecture]), architecture)
    return model_class
