"""Options that several benchmarks have, and the files that their results go to."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.server_args import ServerArgs
from bough.config.user_paths import path_kind, rewrite, user_path
from bough.errors import BadRequest, ConfigError, StartupError

if TYPE_CHECKING:
    from bough.entrypoints.engine import Engine


def output_file(group: str) -> Any:
    """The option ``--output-file`` of a table."""
    return option(
        None,
        help="Write the figures to this file, as JSON.",
        group=group,
        metavar="FILE",
        aliases=("output",),
        default_text="only print them",
    )


_NO_SETTINGS = frozenset({"model_path", "tokenizer_path", "served_model_name", "random_seed", "log_level"})
"""Options of an engine of which a comparison need not tell: what differs by itself, or says nothing of how it runs."""


def options_of_engine(engine: Engine) -> dict[str, Any]:
    """The options that an engine runs with, without secrets, for who compares its figures with others."""
    options = engine.server_args.to_public_dict()
    return {name: value for name, value in options.items() if name not in _NO_SETTINGS}


@contextmanager
def flags_of_length(flags: str) -> Iterator[None]:
    """Let a prompt that is too long for the context be told with the ``flags`` that made it so long.

    Raises:
        ConfigError: if there is one.
    """
    try:
        yield
    except BadRequest as error:
        if error.code == "context_length_exceeded":
            raise ConfigError(f"{flags}: {error.message}") from None
        raise


def engine_arguments(
    argv: list[str], name: str, description: str, *tables: type[OptionTable]
) -> tuple[Namespace, dict[str, Any]]:
    """Read the command line of a benchmark that makes an engine: the namespace, and the keywords of ``Engine``."""
    parser = CommandParser(
        prog=f"bough bench {name}",
        usage=f"bough bench {name} [flags]",
        description=description,
        stray="a model is named with --model",
    )
    add_config_option(parser)
    for each in (*tables, ServerArgs):
        add_options(parser, each)
    namespace = parser.parse_args(argv)
    return namespace, given_options(namespace, ServerArgs, config=namespace.config)


def result_path(text: str | None) -> Path | None:
    """Where results are to be written; tried at once, because a benchmark takes its time.

    Makes the directory.

    Raises:
        ConfigError: if there can be no such file.
        StartupError: if it cannot be written.
    """
    if text is None:
        return None
    path = user_path(text)
    kind = path_kind(path, "output_file")
    if kind == "directory":
        raise ConfigError(f"{path} is a directory", param="output_file")
    if kind == "disk":
        raise ConfigError(f"{path} is a disk", param="output_file")
    if kind != "other":
        rewrite(path, None)
    return path


def write_json(path: Path, result: Any) -> None:
    """Write ``result`` to ``path``, making its directory. What was there stays until all of it is written.

    Raises:
        StartupError: if the file cannot be written.
    """
    content = json.dumps(result, indent=2) + "\n"
    if path_kind(path, "output_file") != "other":
        rewrite(path, lambda file: file.write(content.encode()))
        return
    try:
        path.write_text(content, encoding="utf-8")  # a pipe or a terminal
    except OSError as error:
        raise StartupError(f"cannot write {path}: {error.strerror}") from None
