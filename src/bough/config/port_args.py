"""Where the processes of one server find each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import BinaryIO, NamedTuple

from msgspec.structs import replace

from bough.config.network import Network
from bough.config.ranks import ParallelLayout, ProcessKey
from bough.config.user_paths import shown_path
from bough.errors import StartupError

MAX_SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket: ``sun_path`` holds 108 bytes with the closing NUL (unix(7))."""

_RANKS_BYTES = len(".DP9999.PP9999.TP9999.replies")
"""Room that a path leaves for the ranks of a scheduler, and what is for them."""

_PREFIX = "bough-"

_OWNER = "owner"
"""Name of the lock file in a directory of sockets, locked for the lifetime of the server. The lock ends even if the
server is killed. A process id would not do: containers may share the directory and reuse ids."""

_FALLBACK_DIRECTORIES = ("/tmp", "/var/tmp", "/dev/shm")


class MeetingAddress(NamedTuple):
    """Where the ranks of a replica meet that are on several machines."""

    host: str
    port: int
    listener: int | None
    """Descriptor of the socket, in the process of the first rank."""
    own_host: str
    """Numeric address of this machine."""


@dataclass(frozen=True, slots=True)
class PortArgs:
    """ZeroMQ endpoints of the channels between the processes of one server.

    The sockets lie in ``directory``, which only the user who started the server may enter, under names that cannot be
    guessed.
    """

    directory: str
    scheduler_input_ipc_name: str
    """Requests and control, TokenizerManager to Scheduler, or to the controller of several."""
    detokenizer_ipc_name: str
    """Token ids, Scheduler to DetokenizerManager."""
    tokenizer_ipc_name: str
    """Text and replies, back to the TokenizerManager."""
    network: Network | None = field(default=None, kw_only=True)
    """Sockets that stand for the endpoints if processes are on other machines; ``None`` if all are on this one."""
    owner: BinaryIO | None = field(default=None, kw_only=True, compare=False, repr=False)
    """Lock that keeps other servers from removing the directory; set only in the process that created it."""

    @classmethod
    def create(cls) -> PortArgs:
        """Create a private directory (mode 0700) and name endpoints in it; the caller must call :meth:`cleanup`.

        If the path of the temporary directory is too long for a socket name, a shorter one is used. Directories left
        there by this user's killed servers are removed.

        Raises:
            StartupError: if none of the candidate directories can be created.
        """
        failures = []
        for base in dict.fromkeys((tempfile.gettempdir(), *_FALLBACK_DIRECTORIES)):
            if shown_path(base) != base:
                failures.append(f"{shown_path(base)}: not UTF-8")
                continue
            try:
                _remove_abandoned(base)
                directory = tempfile.mkdtemp(prefix=_PREFIX, dir=base)
            except OSError as error:
                failures.append(f"{base}: {error.strerror}")
                continue
            names = [f"{name}-{secrets.token_hex(8)}" for name in ("scheduler", "detokenizer", "tokenizer")]
            paths = [os.path.join(directory, name) for name in names]
            if all(len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES - _RANKS_BYTES for path in paths):
                return cls(directory, *(f"ipc://{path}" for path in paths), owner=_own(directory))
            os.rmdir(directory)
            failures.append(f"{base}: path too long for a socket")
        raise StartupError(
            f"cannot make a directory for sockets ({'; '.join(failures)}); set TMPDIR to a short writable path"
        )

    def scheduler_input(self, key: ProcessKey) -> str:
        """Return the endpoint of one scheduler: of requests and control, or, of a follower, of plans.

        That of the first rank of a replica is the replica's.
        """
        named = replace(key, pp=key.pp or None, tp=key.tp or None)
        return ".".join((self.scheduler_input_ipc_name, *named.ranks.split()))

    def rank_replies(self, leader: ProcessKey) -> str:
        """Return the endpoint where the first rank of a replica gets the replies of the others."""
        return f"{self.scheduler_input(leader)}.replies"

    def meeting_place(self, leader: ProcessKey) -> Path | MeetingAddress:
        """Return the file in which the ranks of a replica meet, or the address; raises as :meth:`check_private`."""
        if self.network is not None:
            name = self._meeting(leader)
            address = self.network.addresses[name]
            return MeetingAddress(address.host, address.port, self.network.listeners.get(name), self.network.host)
        self.check_private()
        return Path(self._meeting(leader))

    def _meeting(self, leader: ProcessKey) -> str:
        return str(Path(self.directory) / ".".join(("ranks", *([] if leader.dp is None else [f"DP{leader.dp}"]))))

    def endpoints_of(self, key: ProcessKey, layout: ParallelLayout) -> list[str]:
        """Return the endpoints on which a process listens."""
        if key.kind == "server":
            return [self.tokenizer_ipc_name]
        if key.kind == "detokenizer":
            return [self.detokenizer_ipc_name]
        if key.kind == "controller":
            return [self.scheduler_input_ipc_name]
        shared = [self.rank_replies(key), self._meeting(key)] if key in layout.leaders and layout.tp_size > 1 else []
        return [self.scheduler_input(key), *shared]

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
        if self.owner is not None:
            self.owner.close()

    def to_dict(self) -> dict[str, str]:
        """Return the directory and the names, for MessagePack or JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("owner", "network")}

    @classmethod
    def from_dict(cls, values: dict[str, str], network: Network | None = None) -> PortArgs:
        """Inverse of :meth:`to_dict`."""
        return cls(**values, network=network, owner=None)


def _own(directory: str) -> BinaryIO | None:
    """Lock a new directory; return ``None`` if the file system has no locks, and then nothing is ever removed."""
    path = os.path.join(directory, _OWNER)
    file = open(f"{path}.new", "xb")  # noqa: SIM115 (it is open for as long as the lock is held)
    try:
        # The file must be locked before it gets its name: an unlocked one looks abandoned.
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(file.name, path)
    except OSError:
        file.close()
        return None
    return file


def _remove_abandoned(base: str) -> None:
    """Remove directories of sockets in ``base`` left behind by this user's servers that have exited."""
    with os.scandir(base) as entries:
        candidates = [entry for entry in entries if entry.name.startswith(_PREFIX)]
    for entry in candidates:
        with contextlib.suppress(OSError):  # in use, not such a directory, owned by another user, or already gone
            found = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                continue
            with open(os.path.join(entry.path, _OWNER), "rb") as owner:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(entry.path)
