"""Where the processes of one server find each other."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from bough.errors import StartupError

MAX_SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket: ``sun_path`` holds 108 bytes with the closing NUL (unix(7))."""

_FALLBACK_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm")


@dataclass(frozen=True, slots=True)
class PortArgs:
    """ZeroMQ endpoints of the channels between the processes of one server.

    The sockets lie in ``directory``, which only the user who started the server may enter, under names that cannot be
    guessed.
    """

    directory: str
    scheduler_input_ipc_name: str
    """Requests and control, TokenizerManager to Scheduler."""
    detokenizer_ipc_name: str
    """Token ids, Scheduler to DetokenizerManager."""
    tokenizer_ipc_name: str
    """Text and replies, back to the TokenizerManager."""
    rpc_ipc_name: str
    """Calls of named scheduler methods, Engine to Scheduler."""

    @classmethod
    def create(cls) -> PortArgs:
        """Make a private directory (mode 0700) and name endpoints in it; whoever calls must :meth:`cleanup`.

        Where the temporary directory's own path leaves no room for a socket's name, a shorter one is used.

        Raises:
            StartupError: if no directory can be made in any of the places tried.
        """
        failures = []
        for base in dict.fromkeys((tempfile.gettempdir(), *_FALLBACK_DIRECTORIES)):
            try:
                directory = tempfile.mkdtemp(prefix="bough-", dir=base)
            except OSError as error:
                failures.append(f"{base}: {error.strerror}")
                continue
            names = [f"{name}-{secrets.token_hex(8)}" for name in ("scheduler", "detokenizer", "tokenizer", "rpc")]
            paths = [os.path.join(directory, name) for name in names]
            if all(len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES for path in paths):
                return cls(directory, *(f"ipc://{path}" for path in paths))
            os.rmdir(directory)
            failures.append(f"{base}: path too long for a socket")
        raise StartupError(
            f"cannot make a directory for sockets ({'; '.join(failures)}); set TMPDIR to a short writable path"
        )

    def check_private(self) -> None:
        """Make sure, before a socket is opened, that nobody else could have put one there.

        Raises:
            StartupError: if the directory is another user's, or others may enter it.
        """
        try:
            found = os.lstat(self.directory)
        except OSError as error:
            raise StartupError(f"cannot use {self.directory} for sockets: {error.strerror}") from None
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if not is_ours or stat.S_IMODE(found.st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            raise StartupError(f"{self.directory} is not a directory that only this user may enter; set TMPDIR to one")

    def cleanup(self) -> None:
        """Remove the directory and the sockets in it. Calling it again does nothing."""
        if Path(self.directory).exists():
            shutil.rmtree(self.directory)

    def to_dict(self) -> dict[str, str]:
        """All fields, for MessagePack or JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, str]) -> PortArgs:
        """Inverse of :meth:`to_dict`."""
        return cls(**values)
