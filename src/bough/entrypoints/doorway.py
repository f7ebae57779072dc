"""Where clients of a server come in, made before anything is started, so that whatever is wrong is told in one go."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bough.config.local_files import check_model
from bough.config.server_args import ServerArgs, resolve
from bough.config.user_paths import user_path
from bough.entrypoints.http.access import Gate
from bough.entrypoints.http.tls import tls_context
from bough.errors import ConfigError, StartupError

Made = TypeVar("Made")


@dataclass(frozen=True)
class Doorway:
    """A listening socket, and who may come in there."""

    listener: socket.socket
    gate: Gate
    tls: ssl.SSLContext | None
    """``None`` for plain HTTP."""
    socket_path: str | None = None
    """Path of a Unix socket."""

    @classmethod
    def open(cls, args: ServerArgs, listener: socket.socket | None = None) -> Doorway:
        """Read the files of keys and certificates, look at the chat template, and listen.

        Args:
            listener: a listening socket to take instead of one at the address of the options; it is closed if there
                is an error.

        Raises:
            ConfigError: if something is wrong with one of the files, with all that is wrong: the model, of which
                nothing but small files is downloaded for that, and the address, too.
            StartupError: if only the address cannot be had.
        """
        problems: list[StartupError] = []
        gate = _tried(lambda: Gate(args), problems)
        tls = _tried(lambda: tls_context(args), problems)
        _tried(lambda: _check_template(args), problems)
        if listener is None:
            listener = _tried(lambda: _listen(args), problems)
        elif args.uds is not None:
            problems.append(ConfigError("--uds is no place for a server that is given its socket", param="uds"))
        if gate is not None and listener is not None and not problems:
            path = listener.getsockname() if listener.family == socket.AF_UNIX else None
            return cls(listener, gate, tls, path)
        if listener is not None:
            listener.close()
        model_problems: list[StartupError] = []
        _tried(lambda: check_model(resolve(args)), model_problems)
        raise _all_in_one([*model_problems, *problems])

    def close(self) -> None:
        """Listen no more; a Unix socket is removed."""
        self.listener.close()
        if self.socket_path is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.socket_path)


def _tried(make: Callable[[], Made], problems: list[StartupError]) -> Made | None:
    """What ``make`` returns; ``None`` if it finds something wrong, which is added to ``problems``."""
    try:
        return make()
    except StartupError as problem:
        problems.append(problem)
        return None


def _listen(args: ServerArgs) -> socket.socket:
    from bough.entrypoints.http.server import bind_socket, bind_unix_socket

    if args.uds is None:
        return bind_socket(args.host, args.port)
    defaults = {each.name: each.default for each in dataclasses.fields(args)}
    for name in ("host", "port"):
        if getattr(args, name) != defaults[name]:
            raise ConfigError(f"--uds and --{name} exclude each other: a server listens on one of them", param=name)
    return bind_unix_socket(str(user_path(args.uds)))


def _check_template(args: ServerArgs) -> None:
    if args.chat_template is not None and not args.skip_tokenizer_init:
        from bough.tokenization.chat_template import check_template_option  # late: a tenth of a second

        check_template_option(args.chat_template)


def _all_in_one(problems: list[StartupError]) -> StartupError:
    """One error for several, of which there is at least one."""
    first, *others = problems
    if not others:
        return first
    besides = "; ".join(each.message for each in others)
    kind = ConfigError if any(isinstance(each, ConfigError) for each in problems) else StartupError
    return kind(f"{first.message} (besides: {besides})", param=first.param)
