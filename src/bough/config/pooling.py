"""What an embedding or classification model makes of a sequence, read from its JSON files. No torch here.

The files ``modules.json``, ``1_Pooling/config.json``, ``sentence_bert_config.json`` and
``config_sentence_transformers.json`` are those of the sentence-transformers library; where they are missing, the
conventions of the architecture hold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from bough.config.architectures import makes_vectors
from bough.config.checkpoint import read_json
from bough.errors import CheckpointError, ConfigError

PoolingMethod = Literal["cls", "mean", "max", "last"]
Activation = Literal["identity", "sigmoid", "softmax"]

STORED_POOLING = "gguf_pooling"
"""Entry of a GGUF file's configuration: the method of an embedding model, as its ``pooling_type`` says."""

_MOST_NUMBERED_LABELS = 100_000
"""Classes without names that a number alone may ask for."""
_CLASSIFIER_SUFFIX = "ForSequenceClassification"
_REWARD_SUFFIX = "ForRewardModel"

_MODES: dict[str, PoolingMethod] = {"cls": "cls", "mean": "mean", "max": "max", "lasttoken": "last"}
_SWITCH = re.compile(r"pooling_mode_(\w+?)(?:_tokens?)?")
"""A switch of one of them, as older files have it: ``pooling_mode_mean_tokens``."""
_ACTIVATIONS: dict[str, Activation] = {"Identity": "identity", "Sigmoid": "sigmoid", "Softmax": "softmax"}
_PROBLEMS: dict[str, Activation] = {"regression": "identity", "multi_label_classification": "sigmoid"}

_MODULES_FILE = "modules.json"
_LOGITS_STAGE = "LogitScore"
_LIBRARY_FILE = "config_sentence_transformers.json"
_TRANSFORMER_FILES = tuple(
    f"sentence_{kind}_config.json"
    for kind in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""The first of these that says something counts; all but one are older names."""


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
    usual: PoolingMethod,
    is_embedding: bool,
    method: PoolingMethod | None,
) -> PoolingConfig | None:
    """What a checkpoint makes of a sequence; ``None`` if it generates text.

    A language model is an embedding model if the user says so, or if it comes with a sentence-transformers pipeline,
    of which a GGUF file has the method.

    Args:
        usual: the family's method, which holds where nothing is said, and for classes always.
        is_embedding: whether the user wants embeddings of a language model.

    Raises:
        ConfigError: if the files say something that cannot be served, or the choice makes no sense.
    """
    modules = _modules(directory)
    stored = _stored_method(config, directory)
    # A pipeline that ends in this stage reads relevance from what a language model would say next, as /v1/rerank does.
    makes_embeddings = stored is not None or (bool(modules) and modules[-1][0] != _LOGITS_STAGE)
    if not (makes_vectors(architecture) or is_embedding or makes_embeddings):
        if method is not None:
            raise ConfigError(
                f"--pooling-method {method}: {architecture} generates text; --is-embedding makes embeddings of it",
                param="pooling_method",
            )
        return None
    if architecture.endswith((_CLASSIFIER_SUFFIX, _REWARD_SUFFIX)):
        if method not in (None, usual):
            raise ConfigError(
                f"--pooling-method {method}: {architecture} reads its classes from the {usual} token",
                param="pooling_method",
            )
        has_classes = architecture.endswith(_CLASSIFIER_SUFFIX)
        labels = _labels(config, directory) if has_classes else ("LABEL_0",)
        activation = _activation(config, len(labels), directory)
        padding_id = _padding_id(config, directory) if has_classes and usual == "last" else None
        return PoolingConfig(usual, False, len(labels), labels, activation, padding_id)
    read, normalize = _pipeline(directory, modules) if modules else (stored, True)
    return PoolingConfig(
        method or read or usual,
        normalize,
        hidden_size,
        matryoshka=_matryoshka(config, hidden_size, directory),
    )


def max_sequence_tokens(directory: Path, positions: int) -> int:
    """Longest sequence of a model that pools, in tokens, as its files say.

    Raises:
        ConfigError: if a file is damaged, or says no such number.
    """
    path, config = _transformer_settings(directory)
    limit = config.get("max_seq_length")
    if limit is None:
        return min(_tokenizer_limit(directory) or positions, positions)
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise CheckpointError(f"{path}: max_seq_length must be a whole number of at least 1, got {limit!r}")
    return min(limit, positions)


def lowers_text(directory: Path) -> bool:
    """Whether a model's pipeline makes text lower case, whatever its tokenizer does by itself.

    Raises:
        ConfigError: if a file is damaged, or says neither yes nor no.
    """
    path, config = _transformer_settings(directory)
    lowers = config.get("do_lower_case")
    if lowers not in (None, True, False):
        raise CheckpointError(f"{path}: do_lower_case must be true or false, got {lowers!r}")
    return bool(lowers)


def _transformer_settings(directory: Path) -> tuple[Path, dict[str, Any]]:
    """What the pipeline says of its first stage, and the file that does; nothing if there is none."""
    for path in (directory / name for name in _TRANSFORMER_FILES):
        config = read_json(path) if path.is_file() else None
        if isinstance(config, dict) and config:
            return path, config
    return directory / _TRANSFORMER_FILES[0], {}


def _tokenizer_limit(directory: Path) -> int | None:
    """Where the library's versions from 6 on write the longest sequence of a pipeline, in tokens."""
    path = directory / "tokenizer_config.json"
    if not ((directory / _MODULES_FILE).is_file() and path.is_file()):
        return None
    config = read_json(path)
    limit = config.get("model_max_length") if isinstance(config, dict) else None
    # Where there is no limit it is a whole number of thirty digits, in some files a floating-point one.
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1 else None


def _modules(directory: Path) -> list[tuple[str, str]]:
    """Class name and folder of each stage of the sentence-transformers pipeline; empty if there is none."""
    path = directory / _MODULES_FILE
    if not path.is_file():
        return []
    stages = read_json(path)
    if not isinstance(stages, list) or not all(
        isinstance(stage, dict) and isinstance(stage.get("type"), str) for stage in stages
    ):
        raise CheckpointError(f"{path} must hold a list of objects with a type; download it again", param="model_path")
    found = [(stage["type"].rpartition(".")[2], str(stage.get("path") or "")) for stage in stages]
    for _, folder in found:
        if PurePosixPath(folder).is_absolute() or ".." in PurePosixPath(folder).parts:
            raise CheckpointError(f"{path}: the path {folder!r} is not one inside the checkpoint", param="model_path")
    return found


def _stored_method(config: dict[str, Any], directory: Path) -> PoolingMethod | None:
    method: PoolingMethod | None = config.get(STORED_POOLING)
    if method not in (None, *get_args(PoolingMethod)):
        raise ConfigError(
            f"{directory}: {STORED_POOLING} must be one of {', '.join(get_args(PoolingMethod))}, got {method!r}",
            param="model_path",
        )
    return method


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
                f"{directory / _MODULES_FILE}: stage {kind} is not supported; supported are Transformer, Pooling and "
                f"Normalize",
                param="model_path",
            )
    return method, normalize


def _pooling_mode(path: Path) -> PoolingMethod:
    config = read_json(path)
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} must hold a JSON object; download it again", param="model_path")
    named = config.get("pooling_mode")
    if named is None:
        switches = [_SWITCH.fullmatch(key) for key, value in config.items() if value is True]
        wanted = [switch[1] for switch in switches if switch] or ["mean"]  # the library's default
    else:
        wanted = [str(each) for each in (named if isinstance(named, list) else [named])]
    if len(wanted) != 1 or wanted[0] not in _MODES:
        raise CheckpointError(
            f"{path}: one of the poolings cls, mean, max and lasttoken is supported, got {', '.join(wanted) or 'none'}",
            param="model_path",
        )
    return _MODES[wanted[0]]


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
    named = _named_activation(config, directory)
    if named is not None:
        name = str(named).rpartition(".")[2]
        if name not in _ACTIVATIONS:
            raise ConfigError(
                f"{directory}: activation {named} is not supported; supported are {', '.join(_ACTIVATIONS)}"
            )
        # The library writes Identity for whatever has several classes, which says nothing about them.
        if num_labels == 1 or name != "Identity":
            return _ACTIVATIONS[name]
    problem = config.get("problem_type")
    if isinstance(problem, str) and problem in _PROBLEMS:
        return _PROBLEMS[problem]
    return "sigmoid" if num_labels == 1 else "softmax"


def _named_activation(config: dict[str, Any], directory: Path) -> Any:
    """The class that the sentence-transformers library names, in the place of one of its versions or another."""
    library = config.get("sentence_transformers")
    named = library.get("activation_fn") if isinstance(library, dict) else None
    named = named or config.get("sbert_ce_default_activation_function")
    path = directory / _LIBRARY_FILE
    if named or not path.is_file():
        return named
    settings = read_json(path)
    return settings.get("activation_fn") if isinstance(settings, dict) else None


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
