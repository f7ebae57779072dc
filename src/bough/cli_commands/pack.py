"""``bough pack``: write a checkpoint's packed state, from which servers start without packing and quantising."""

from __future__ import annotations

import dataclasses

from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.server_args import ServerArgs
from bough.config.user_paths import user_path

_CACHE_TOKENS = 1024
"""KV cache of the engine that packs, in tokens: nothing is generated."""


def main(argv: list[str]) -> int:
    """Run ``bough pack``."""
    parser = CommandParser(
        prog="bough pack",
        usage="bough pack MODEL DIRECTORY [flags]",
        description="Write a model as it lies in memory, packed and quantised, into a new directory. Serve that like "
        "any model; it starts without packing and quantising.",
        epilog="--help-all shows all flags. Those that say how weights are held count: --quantization, --dtype, "
        "--tp-size.",
    )
    parser.add_argument("model", metavar="MODEL", help="Same as --model-path of bough serve.")
    parser.add_argument("directory", metavar="DIRECTORY", help="Where to write; it must not exist, or be empty.")
    add_config_option(parser)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    given = given_options(namespace, ServerArgs, config=namespace.config)
    args = ServerArgs(**{**given, "model_path": namespace.model})
    from bough.entrypoints.engine import Engine
    from bough.managers.saved_weights import check_place

    check_place(user_path(namespace.directory).absolute())  # before the model is loaded
    args = dataclasses.replace(args, max_total_tokens=args.max_total_tokens or _CACHE_TOKENS, dp_size=1)
    with Engine(server_args=args) as engine:
        engine.save_packed_state(namespace.directory)
    print(f"{namespace.directory}: packed from {namespace.model}")
    return 0
