"""From the names that a user gives to files on this machine: once per server, before any process needs them."""

from __future__ import annotations

import dataclasses

from bough.config.checkpoint import GGUF_SUFFIX, is_on_hub, resolve_model_path
from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.config.user_paths import path_kind, user_path


def with_local_files(args: ServerArgs) -> ServerArgs:
    """The same options with ``model_path`` and ``tokenizer_path`` as local paths, downloaded if they were hub ids.

    Args:
        args: resolved options.

    Raises:
        ConfigError: if there is no such model or tokenizer.
    """
    model = str(resolve_model_path(args.model_path, revision=args.revision, load_format=args.load_format))
    tokenizer = args.tokenizer_path or args.model_path
    if tokenizer == args.model_path:
        tokenizer = model
    elif path_kind(user_path(tokenizer), "tokenizer_path") == "file":  # a tokenizer.json or a GGUF file, as it is
        tokenizer = str(user_path(tokenizer))
    else:
        tokenizer = str(resolve_model_path(tokenizer, load_format="dummy", param="tokenizer_path"))
    return dataclasses.replace(args, model_path=model, tokenizer_path=tokenizer, revision=None)


def check_model(args: ServerArgs) -> None:
    """Find out what is wrong with a model as far as that takes no weights.

    Of a model on the hub its small files are downloaded; of a GGUF file there nothing, which is found out later.

    Args:
        args: resolved options.

    Raises:
        ConfigError: if there is no such model, or it is none that can be served with these options.
    """
    if not is_on_hub(args.model_path):
        load_model_config(with_local_files(args))
    elif not args.model_path.endswith(GGUF_SUFFIX):
        resolve_model_path(args.model_path, revision=args.revision, load_format="dummy")


def load_model_config(args: ServerArgs) -> ModelConfig:
    """The configuration of the model that ``args`` names.

    Raises:
        ConfigError: if it is no checkpoint that can be served with these options.
    """
    return ModelConfig.from_path(
        args.model_path,
        revision=args.revision,
        context_length=args.context_length,
        dtype=args.dtype,
        device=args.device,
        load_format=args.load_format,
        tokenizer_path=args.tokenizer_path,
        is_embedding=args.is_embedding,
        pooling_method=None if args.pooling_method == "auto" else args.pooling_method,
        overrides=args.json_model_override_args,
    )
