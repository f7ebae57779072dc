"""Where a checkpoint's files are: a local directory, or a model on the hub brought into the local cache."""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec

from bough.config.engine_args import BUNDLED_MODEL_NAME, bundled_model_path
from bough.config.file_kinds import but_is
from bough.config.model_suggestions import hub_id_like, path_like
from bough.config.user_paths import path_kind, user_path
from bough.errors import CheckpointError, ConfigError

SMALL_FILES = ("*.json", "*.jinja", "*.model", "*.spm", "*.tiktoken", "merges.txt", "vocab.txt")
"""Patterns of everything but the weights: configuration, tokenizer, chat templates."""

WEIGHT_SUFFIX = ".safetensors"
WEIGHT_FILES = (f"*{WEIGHT_SUFFIX}",)

OTHER_WEIGHTS = ("consolidated*", "*/consolidated*", "original/*", "onnx/*", "openvino/*")
"""Patterns of the same weights in other forms, which some models have beside these."""

GGUF_SUFFIX = ".gguf"

ADAPTER_CONFIG = "adapter_config.json"
ADAPTER_WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
"""Files of PEFT: what it changes in a model, without the model."""

_HUB_ID = re.compile(r"[\w][\w.\-]*(/[\w][\w.\-]*)?", re.ASCII)
_HUB_GGUF = re.compile(r"([\w][\w.\-]*/[\w][\w.\-]*)/((?:[\w][\w.\- ]*/)*[\w][\w.\- ]*\.gguf)", re.ASCII)
_MAX_JSON_BYTES = 32 * 2**20
"""Largest JSON file that is read: the parsed values take many times its length."""

STAGE_FILES = ("[0-9]*_*/*.json", "additional_chat_templates/*.jinja")
"""Patterns of small files in directories of their own: steps of embedding models, further chat templates."""
_KINDS = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


def resolve_model_path(
    model_path: str, *, revision: str | None = None, load_format: str = "auto", param: str = "model_path"
) -> Path:
    """Directory that holds the files of ``model_path``, downloading them from the hub if it is no local directory.

    A GGUF file stands for itself, and for a directory with no other weights. The name of the bundled model stands for
    its directory where there is no other one of that name.

    What ``huggingface_hub`` honours holds here too: its cache, access tokens, endpoint and offline mode.

    Args:
        model_path: a local directory, a local GGUF file, the bundled model's name, or the id of a model on the hub
            (``owner/name``), followed by the path of a GGUF file there if it is to be that one.
        revision: branch, tag or commit on the hub; a local directory has none.
        load_format: ``gguf`` wants the directory's GGUF file, whatever else it has; with ``dummy`` no weights are
            downloaded, and with ``safetensors`` those of a GGUF file are not taken.
        param: the option that ``model_path`` comes from.

    Raises:
        ConfigError: if there is neither such a directory nor such a model, or it cannot be downloaded.
    """
    local = user_path(model_path)
    kind = path_kind(local, param)
    if model_path == BUNDLED_MODEL_NAME and kind != "directory":
        local, kind = bundled_model_path(), "directory"
    if kind is not None and revision is not None:
        is_bundled = local == bundled_model_path()
        what = "the model that comes with Bough" if is_bundled else f"a local {kind}"
        raise ConfigError(
            f"--revision {revision} is for models on the hub, and {model_path} is {what}", param="revision"
        )
    if kind == "directory":
        return _weights_in(local.resolve(), load_format, param)
    if kind == "file" and local.suffix == GGUF_SUFFIX and load_format != "safetensors":
        return local.absolute()  # not resolved: the hub's cache has links to files without names
    if kind in ("other", "disk"):
        raise ConfigError(f"{model_path} is neither a file nor a directory", param=param)
    if kind is not None:
        raise ConfigError(
            f"{model_path} is a file; give a GGUF file, or the directory of a checkpoint in Hugging Face format",
            param=param,
        )
    if what := but_is(local):
        raise ConfigError(f"there is no {model_path}{what}", param=param)
    on_hub = _hub_gguf(model_path)
    if on_hub is not None:
        return _download_gguf(on_hub[1], on_hub[2], revision, param)
    if local.suffix == GGUF_SUFFIX:
        raise ConfigError(f"no such file: {model_path}{path_like(model_path)}", param=param)
    if _looks_like_path(model_path) or not _HUB_ID.fullmatch(model_path):
        advice = path_like(model_path) or "; give the directory of a checkpoint or the id of a model on the hub"
        raise ConfigError(f"no such directory: {model_path}{advice}", param=param)
    if load_format == "gguf":
        raise ConfigError(
            f"{model_path} is a model on the hub; name one of its GGUF files, {model_path}/NAME.gguf",
            param=param,
        )
    if load_format == "dummy":
        return _download(model_path, revision, SMALL_FILES, param)
    directory = _download(model_path, revision, SMALL_FILES + WEIGHT_FILES, param)
    if not any(directory.glob("*.safetensors")):
        check_is_no_adapter(directory, param)
        raise ConfigError(f"cannot serve model {model_path}: {_why_no_weights(model_path, revision)}", param=param)
    return directory


def is_on_hub(model_path: str) -> bool:
    """Whether a name can only be that of a model on the hub, if it is one at all: nothing here has it.

    Raises:
        ConfigError: if nobody can tell what is here.
    """
    if model_path == BUNDLED_MODEL_NAME or path_kind(user_path(model_path), "model_path") is not None:
        return False
    is_id = _HUB_ID.fullmatch(model_path) is not None and not model_path.endswith(GGUF_SUFFIX)
    return is_id or _hub_gguf(model_path) is not None


def _weights_in(directory: Path, load_format: str, param: str) -> Path:
    check_files(directory)
    wanted = load_format == "gguf"
    if not wanted and (load_format != "auto" or any(directory.glob("*.safetensors"))):
        return directory
    from bough.config.gguf_file import find_gguf  # late: numpy, which --help does without

    found = find_gguf(directory)
    if wanted and found is None:
        raise ConfigError(f"{directory} has no GGUF file", param=param)
    return found or directory


def check_files(directory: Path) -> None:
    """Refuse a checkpoint in which a file is not a regular file or is a link out of the checkpoint.

    Raises:
        CheckpointError: naming the file and its kind.
    """
    patterns = (*SMALL_FILES, *WEIGHT_FILES, f"*{GGUF_SUFFIX}")
    # No globbing: a pattern without wildcards skips broken links.
    for name in sorted(os.listdir(directory)):
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            has_file(directory / name)
    for pattern in STAGE_FILES:
        for path in directory.glob(pattern):
            has_file(path, directory)


def has_file(path: Path, directory: Path | None = None) -> bool:
    """True if a checkpoint has a file. It may be a link within the checkpoint, or into the hub's cache.

    Weights may be links to anywhere: they are too large to copy, and their content is never shown.

    Args:
        directory: the checkpoint; by default the directory of the file.

    Raises:
        CheckpointError: if the path is something else, such as a pipe, reading from which would never end.
    """
    if not os.path.lexists(path):
        return False
    try:
        mode = path.stat().st_mode
        target = path.resolve(strict=True)
    except FileNotFoundError:
        raise CheckpointError(f"cannot read {path}{but_is(path)}") from None
    except (OSError, RuntimeError) as error:  # RuntimeError: a circle of links, up to Python 3.12
        raise CheckpointError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(mode):
        raise CheckpointError(f"{path} is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, and no file")
    is_free = path.suffix in (WEIGHT_SUFFIX, GGUF_SUFFIX) or target.is_relative_to((directory or path.parent).resolve())
    if not is_free and not (target.parent.name == "blobs" and target.parent.parent.name.startswith("models--")):
        raise CheckpointError(
            f"{path} is a link out of the checkpoint, to {target}; put the file itself there if it belongs to it"
        )
    return True


def check_is_no_adapter(directory: Path, param: str = "model_path") -> None:
    """Refuse a directory with an adapter alone: it has changes to a model, and no model.

    Raises:
        ConfigError: if it is one, with the model that the changes are for.
    """
    file = directory / ADAPTER_CONFIG
    if not file.is_file() or (directory / "config.json").is_file():
        return
    config = read_json(file)
    base = config.get("base_model_name_or_path") if isinstance(config, dict) else None
    shown = _one_line(base) if isinstance(base, str) and base.strip() else "a model that it does not name"
    raise ConfigError(
        f"{directory} is an adapter of {shown}, no model of its own; merge it into that one (PEFT's merge_and_unload "
        "and save_pretrained do), and serve the result",
        param=param,
    )


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. Raises :class:`CheckpointError` if it cannot be read or is not valid JSON."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CheckpointError(f"{path} is no regular file")
            if status.st_size > _MAX_JSON_BYTES:
                raise CheckpointError(f"{path} is larger than {_MAX_JSON_BYTES} bytes; is it the right file?")
            return msgspec.json.decode(file.read())
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}{but_is(path)}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        what = but_is(path) or f" ({error}); download it again"
        raise CheckpointError(f"{path} is not valid JSON{what}") from None


def wrong_entry(path: Path, entry: str, rule: str, value: Any) -> ConfigError:
    """The error of an entry of a JSON file that does not follow ``rule``, with what there is instead."""
    return CheckpointError(f"{path}: {entry} {rule}, got {value!r:.100}")


def _looks_like_path(text: str) -> bool:
    return text.startswith((".", "~", os.sep)) or text.count("/") > 1 or os.path.isabs(text)


def _hub_gguf(model_path: str) -> re.Match[str] | None:
    """A model on the hub and a GGUF file of it; a missing file of a directory that is here is none."""
    return None if user_path(model_path).parent.exists() else _HUB_GGUF.fullmatch(model_path)


def _download_gguf(model_id: str, name: str, revision: str | None, param: str) -> Path:
    """A GGUF file of a model on the hub, with the others if the model is split."""
    parts = re.sub(r"-\d{5}-of-(\d{5})\.gguf$", r"-?????-of-\1.gguf", name)
    file = _download(model_id, revision, (parts,), param) / name
    if not file.is_file():
        raise ConfigError(f"the hub's model {model_id} has no file {name}", param=param)
    return file


def _download(model_id: str, revision: str | None, patterns: tuple[str, ...], param: str) -> Path:
    # Late: half a second that local checkpoints need not pay.
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub import errors as hub_errors

    shown = f"{model_id} at revision {revision}" if revision else model_id
    try:
        return Path(
            snapshot_download(
                model_id, revision=revision, allow_patterns=list(patterns), ignore_patterns=list(OTHER_WEIGHTS)
            )
        )
    except hub_errors.GatedRepoError:
        reason = "access to it is restricted; ask for access on the hub and log in with `hf auth login`"
    except hub_errors.RevisionNotFoundError:
        reason = "the hub has the model, but not this revision"
    except hub_errors.RepositoryNotFoundError:
        reason = f"there is neither a local directory nor a public model on the hub of that name{hub_id_like(model_id)}"
    except hub_errors.LocalEntryNotFoundError:
        reason = (
            "there is neither a local directory of that name nor such a model in the hub's local cache "
            f"({constants.HF_HUB_CACHE}), and the hub cannot be reached or is switched off by HF_HUB_OFFLINE; look for "
            "a mistyped name, or download the model where there is a network and give the path of its directory"
            f"{hub_id_like(model_id)}"
        )
    except hub_errors.HFValidationError as error:
        reason = _one_line(error)
    except Exception as error:  # a connection breaks with the errors of several libraries
        reason = f"the download failed: {_one_line(error) or type(error).__name__}"
    raise ConfigError(f"cannot get model {shown}: {reason}", param=param)


def _why_no_weights(model_id: str, revision: str | None) -> str:
    """What is the matter with a model on the hub of which no weights came."""
    from huggingface_hub import HfApi

    try:
        names = [name for name in HfApi().list_repo_files(model_id, revision=revision) if name.endswith(GGUF_SUFFIX)]
    except Exception:  # there may be no network, and this is only to say more
        names = []
    if names:
        return f"its weights are GGUF files; name one of them, as in {model_id}/{names[0]}"
    return (
        "it has no weights as *.safetensors; pickled ones (*.bin, *.pt), which can run code when opened, are neither "
        "downloaded nor read: convert them (transformers' save_pretrained does)"
    )


def _one_line(what: Exception | str) -> str:
    return " ".join(str(what).split())[:300]
