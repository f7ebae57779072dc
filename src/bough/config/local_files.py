"""From the names that a user gives to files on this machine: once per server, before any process needs them."""

from __future__ import annotations

import dataclasses

from bough.config.checkpoint import GGUF_SUFFIX, is_on_hub, resolve_model_path
from bough.config.model_config import ModelConfig
from bough.config.packed_manifest import with_packed_options
from bough.config.server_args import ServerArgs
from bough.config.user_paths import path_kind, user_path


def with_local_files(args: ServerArgs) -> ServerArgs:
    """The same options with ``model_path`` and ``tokenizer_path`` as local paths, downloaded if they were hub ids, and
    with what a packed state decides.

    Raises:
        ConfigError: if there is no such model or tokenizer, or a packed state is damaged or of other options.
    """
    directory = resolve_model_path(args.model_path, revision=args.revision, load_format=args.load_format)
    model = str(directory)
    local = dataclasses.replace(args, model_path=model, tokenizer_path=_local_tokenizer(args) or model, revision=None)
    return with_packed_options(local, directory)


def check_model(args: ServerArgs) -> None:
    """Find out what is wrong with a model as far as that takes no weights.

    Of a model on the hub its small files are downloaded; of a GGUF file there nothing, so that only a tokenizer beside
    it is looked at.

    Raises:
        ConfigError: if there is no such model, or it is none that can be served with these options.
    """
    if not is_on_hub(args.model_path):
        ModelConfig.from_args(with_local_files(args))
    elif args.model_path.endswith(GGUF_SUFFIX):
        _local_tokenizer(args)
    else:
        # Of such a model gguf is refused before anything is downloaded, and dummy is without weights.
        local = with_local_files(args if args.load_format == "gguf" else dataclasses.replace(args, load_format="dummy"))
        ModelConfig.from_args(dataclasses.replace(local, load_format=args.load_format))


def _local_tokenizer(args: ServerArgs) -> str | None:
    """The local path of the tokenizer, downloaded if it was a hub id; ``None`` if it is the model's own."""
    tokenizer = args.tokenizer_path
    if not tokenizer or tokenizer == args.model_path:
        return None
    if path_kind(user_path(tokenizer), "tokenizer_path") == "file":  # a tokenizer.json or a GGUF file, as it is
        return str(user_path(tokenizer))
    return str(resolve_model_path(tokenizer, load_format="dummy", param="tokenizer_path"))
