"""What an embedding or classification model makes of a sequence, read from its JSON files. No torch here.

The files ``modules.json``, ``1_Pooling/config.json`` and ``sentence_bert_config.json`` are those of the
sentence-transformers library; where they are missing, the conventions of the architecture hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bough.config.checkpoint import read_json
from bough.errors import ConfigError
from bough.models.registry import BACKBONES, ENCODER_MODULES

PoolingMethod = Literal["cls", "mean", "max", "last"]
Activation = Literal["identity", "sigmoid", "softmax"]

_MOST_NUMBERED_LABELS = 100_000
"""Classes without names that a number alone may ask for."""
_CLASSIFIER_SUFFIX = "ForSequenceClassification"
_REWARD_SUFFIX = "ForRewardModel"

_MODES: dict[str, PoolingMethod] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "last",
}
_MODE_NAMES: dict[str, PoolingMethod] = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "last"}
_ACTIVATIONS: dict[str, Activation] = {"Identity": "identity", "Sigmoid": "sigmoid", "Softmax": "softmax"}


@dataclass(frozen=True, slots=True)
class PoolingConfig:
    """How the states of a sequence's tokens become one vector."""

    method: PoolingMethod
    """First token, mean of all, maximum of all, last token."""
    normalize: bool
    """Whether the vector is scaled to length 1."""
    dim: int
    """Length of the vector; the number of classes if this is a classifier."""
    labels: tuple[str, ...] | None = None
    """Names of the classes; ``None`` if the vector is an embedding."""
    activation: Activation = "identity"
    """What turns a classifier's scores into probabilities or relevance."""
    padding_id: int | None = None
    """Token that a language model's classes are not read from, where it stands at the end; ``None``: there is none."""
    matryoshka: bool | tuple[int, ...] = False
    """Whether the vector's first dimensions are an embedding by themselves; which numbers of them, if only some."""

    @property
    def is_classifier(self) -> bool:
        """Whether the vector holds class scores (logits)."""
        return self.labels is not None


def read_pooling(
    directory: Path,
    architecture: str,
    config: dict[str, Any],
    hidden_size: int,
    *,
    is_embedding: bool,
    method: PoolingMethod | None,
) -> PoolingConfig | None:
    """What a checkpoint makes of a sequence; ``None`` if it generates text.

    A language model is an embedding model if the user says so, or if it comes with a sentence-transformers pipeline.

    Args:
        directory: the checkpoint's.
        architecture: of the model.
        config: its config.json.
        hidden_size: width of the model's states.
        is_embedding: whether the user wants embeddings of a language model.
        method: the user's choice, in place of the checkpoint's.

    Raises:
        ConfigError: if the files say something that cannot be served, or the choice makes no sense.
    """
    modules = _modules(directory)
    pooled = architecture in ENCODER_MODULES or architecture in BACKBONES
    if not (pooled or is_embedding or modules):
        if method is not None:
            raise ConfigError(
                f"--pooling-method {method}: {architecture} generates text; --is-embedding makes embeddings of it",
                param="pooling_method",
            )
        return None
    is_encoder = architecture in ENCODER_MODULES
    if architecture.endswith((_CLASSIFIER_SUFFIX, _REWARD_SUFFIX)):
        fixed: PoolingMethod = "cls" if is_encoder else "last"
        if method not in (None, fixed):
            raise ConfigError(
                f"--pooling-method {method}: {architecture} reads its classes from the {fixed} token",
                param="pooling_method",
            )
        has_classes = architecture.endswith(_CLASSIFIER_SUFFIX)
        labels = _labels(config, directory) if has_classes else ("LABEL_0",)
        activation = _activation(config, len(labels), directory)
        padding_id = _padding_id(config, directory) if has_classes and not is_encoder else None
        return PoolingConfig(fixed, False, len(labels), labels, activation, padding_id)
    read, normalize = _pipeline(directory, modules) if modules else (None, True)
    return PoolingConfig(
        method or read or ("cls" if is_encoder else "last"),
        normalize,
        hidden_size,
        matryoshka=_matryoshka(config, hidden_size, directory),
    )


def max_sequence_tokens(directory: Path) -> int | None:
    """Longest sequence that ``sentence_bert_config.json`` gives the model, in tokens; ``None`` if it does not say."""
    path = directory / "sentence_bert_config.json"
    if not path.is_file():
        return None
    config = read_json(path)
    limit = config.get("max_seq_length") if isinstance(config, dict) else None
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ConfigError(f"{path}: max_seq_length must be a whole number of at least 1, got {limit!r}")
    return limit


def _modules(directory: Path) -> list[tuple[str, str]]:
    """Class name and folder of each stage of the sentence-transformers pipeline; empty if there is none."""
    path = directory / "modules.json"
    if not path.is_file():
        return []
    stages = read_json(path)
    if not isinstance(stages, list) or not all(
        isinstance(stage, dict) and isinstance(stage.get("type"), str) for stage in stages
    ):
        raise ConfigError(f"{path} must hold a list of objects with a type; download it again", param="model_path")
    return [(stage["type"].rpartition(".")[2], str(stage.get("path") or "")) for stage in stages]


def _pipeline(directory: Path, modules: list[tuple[str, str]]) -> tuple[PoolingMethod | None, bool]:
    method: PoolingMethod | None = None
    normalize = False
    for kind, folder in modules:
        if kind == "Pooling":
            method = _pooling_mode(directory / folder / "config.json")
        elif kind == "Normalize":
            normalize = True
        elif kind != "Transformer":
            raise ConfigError(
                f"{directory / 'modules.json'}: stage {kind} is not supported; supported are Transformer, Pooling and "
                f"Normalize",
                param="model_path",
            )
    return method, normalize


def _pooling_mode(path: Path) -> PoolingMethod:
    config = read_json(path)
    if not isinstance(config, dict):
        raise ConfigError(f"{path} must hold a JSON object; download it again", param="model_path")
    named = config.get("pooling_mode")
    wanted = [named] if isinstance(named, str) else [key for key, value in config.items() if _is_mode(key, value)]
    known = {**_MODES, **_MODE_NAMES}
    if len(wanted) != 1 or wanted[0] not in known:
        raise ConfigError(
            f"{path}: one of the poolings cls, mean, max and lasttoken is supported, got {', '.join(wanted) or 'none'}",
            param="model_path",
        )
    return known[wanted[0]]


def _is_mode(key: str, value: Any) -> bool:
    return key.startswith("pooling_mode_") and value is True


def _labels(config: dict[str, Any], directory: Path) -> tuple[str, ...]:
    """Names of the classes, in the order of the scores; two that are just numbered where the file is silent."""
    names = config.get("id2label")
    count = config.get("num_labels")
    if names is None:
        count = 2 if count is None else count
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ConfigError(f"{directory}: num_labels must be a whole number of at least 1, got {count!r}")
        if count > _MOST_NUMBERED_LABELS:
            raise ConfigError(f"{directory}: num_labels must be at most {_MOST_NUMBERED_LABELS}, got {count!r}")
        return tuple(f"LABEL_{index}" for index in range(count))
    if not isinstance(names, dict) or set(names) != {str(index) for index in range(len(names))} or not names:
        raise ConfigError(f"{directory}: id2label must name the classes 0, 1 and so on, got {names!r}")
    return tuple(str(names[str(index)]) for index in range(len(names)))


def _padding_id(config: dict[str, Any], directory: Path) -> int | None:
    token_id = config.get("pad_token_id")
    if token_id is not None and (isinstance(token_id, bool) or not isinstance(token_id, int)):
        raise ConfigError(f"{directory}: pad_token_id must be a token id, got {token_id!r}", param="model_path")
    return token_id if token_id is not None and token_id >= 0 else None  # some files write -1 for none


def _activation(config: dict[str, Any], num_labels: int, directory: Path) -> Activation:
    library = config.get("sentence_transformers")
    named = library.get("activation_fn") if isinstance(library, dict) else None
    named = named or config.get("sbert_ce_default_activation_function")
    if named is not None:
        name = str(named).rpartition(".")[2]
        if name not in _ACTIVATIONS:
            raise ConfigError(
                f"{directory}: activation {named} is not supported; supported are {', '.join(_ACTIVATIONS)}"
            )
        return _ACTIVATIONS[name]
    if num_labels == 1 or config.get("problem_type") == "multi_label_classification":
        return "sigmoid"
    return "softmax"


def _matryoshka(config: dict[str, Any], hidden_size: int, directory: Path) -> bool | tuple[int, ...]:
    sizes = config.get("matryoshka_dimensions")
    if sizes is None:
        return config.get("is_matryoshka") is True
    if not isinstance(sizes, list) or not all(
        isinstance(size, int) and not isinstance(size, bool) and 0 < size <= hidden_size for size in sizes
    ):
        raise ConfigError(
            f"{directory}: matryoshka_dimensions must list numbers from 1 to {hidden_size}, got {sizes!r}"
        )
    return tuple(sorted(sizes))
