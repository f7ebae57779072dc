"""``bough serve``: start a server."""

from __future__ import annotations

from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError


def parse_server_args(argv: list[str], *, prog: str) -> ServerArgs:
    """Options of a server from a command line.

    Args:
        prog: what the user typed to get here, for messages.

    Raises:
        ConfigError: if something is unknown or not allowed.
        SystemExit: after printing help.
    """
    parser = CommandParser(
        prog=prog,
        usage=f"{prog} [MODEL] [flags]",
        description="Serve a model over HTTP. Without a model, the small one that comes with Bough is served.",
        epilog="--help-all shows all flags. A switch has a --no- form, which undoes the file of --config.",
    )
    parser.add_argument("model", metavar="MODEL", nargs="?", help="Same as --model-path.")
    add_config_option(parser)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    given = given_options(namespace, ServerArgs, config=namespace.config)
    if namespace.model is not None:
        if hasattr(namespace, "model_path"):
            raise ConfigError(f"the model is given twice: {namespace.model} and --model-path {namespace.model_path}")
        given["model_path"] = namespace.model
    return ServerArgs(**given)


def main(argv: list[str], *, prog: str = "bough serve") -> int:
    """Serve until the server ends; returns its exit status."""
    server_args = parse_server_args(argv, prog=prog)
    from bough.entrypoints.launch import launch_server

    status: int = launch_server(server_args)
    return status
