"""The actor of Ray that starts one scheduler on the machine where Ray has put it, and watches it.

Ray pickles what it carries; to it, all that Bough sends and returns is numbers and MessagePack.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Union

import msgspec
from msgspec.structs import replace

from bough.config.local_files import with_local_files
from bough.config.network import KeyPair, listen
from bough.config.ranks import MachineShare
from bough.config.server_args import ServerArgs
from bough.entrypoints.launcher import ChildProcess
from bough.errors import BoughError, ConfigError
from bough.ipc.handshake import ChildConfig, ChildFailed, read_message
from bough.model_executor.machine import Machine

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Proof(msgspec.Struct, frozen=True):
    """Proves to a process that it can use the main process's sockets and memory: they are on one machine."""

    path: str
    """A file in the private directory of the sockets."""
    pid: int
    """Process id of the main process."""
    descriptor: int
    """The main process's descriptor of the file."""

    @property
    def holds(self) -> bool:
        """True if this process sees the same file at the path and behind the descriptor."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.stat(self.path), os.stat(_descriptor_path(self.pid, self.descriptor)))
        return False


class Site(msgspec.Struct, frozen=True):
    """Facts about the machine that an actor runs on."""

    node: str
    """Id of Ray's node, of which a machine may have several."""
    machine: str
    """Id of the machine as long as it runs; nodes of Ray are told apart by ids, since addresses may be the same."""
    host: str
    """Numeric address."""
    is_main: bool
    """True if the main process is there, too."""
    clock: float
    """Seconds on the monotonic clock."""
    memory: int
    """Bytes that can still be taken."""
    device: int | None
    """Number of the CUDA device that Ray has assigned, among those that the actor sees; ``None`` without one."""


class Doors(msgspec.Struct, frozen=True):
    """Sockets that an actor listens on for its scheduler."""

    ports: dict[str, int]
    """By endpoint."""
    key: bytes
    """Public key of the scheduler."""


class LaunchRequest(msgspec.Struct, frozen=True):
    """Everything about a scheduler that an actor is to start."""

    module: str
    config: ChildConfig
    main_pid: int | None
    """Owner of the descriptors in the share; ``None`` if it is on another machine."""


class Launched(msgspec.Struct, frozen=True, tag_field="status", tag="launched"):
    """A scheduler has started."""

    pid: int


LaunchReply = Union[Launched, ChildFailed]  # noqa: UP007 (evaluated by msgspec on Python 3.10)


class RankActor:
    """Starts one scheduler. Its methods may run at the same time."""

    def __init__(self) -> None:
        self._keys: KeyPair | None = None
        self._listeners: dict[str, socket.socket] = {}
        self._child: ChildProcess | None = None
        self._launched: Future[bytes] = Future()
        self._report: Future[bytes | None] = Future()
        self._end: Future[int] = Future()

    def look(self, proof: bytes) -> bytes:
        """Return the :class:`Site`, given a :class:`Proof`."""
        import ray

        context = ray.get_runtime_context()
        return msgspec.msgpack.encode(
            Site(
                node=context.get_node_id(),
                machine=_BOOT_ID.read_text().strip(),
                host=ray.util.get_node_ip_address(),
                is_main=msgspec.msgpack.decode(proof, type=Proof).holds,
                clock=time.monotonic(),
                memory=Machine().available_bytes(),
                device=_device(ray.get_gpu_ids()),
            )
        )

    def listen(self, request: bytes) -> bytes:
        """Listen for the scheduler on an address, once for each endpoint; return the :class:`Doors`."""
        host, endpoints = msgspec.msgpack.decode(request, type=tuple[str, list[str]])
        self._keys = KeyPair.make()
        self._listeners = {endpoint: listen(host) for endpoint in endpoints}
        ports = {endpoint: each.getsockname()[1] for endpoint, each in self._listeners.items()}
        return msgspec.msgpack.encode(Doors(ports, self._keys.public))

    def launch(self, request: bytes) -> bytes:
        """Start the scheduler of a :class:`LaunchRequest`; return a :data:`LaunchReply`."""
        decoded = msgspec.msgpack.decode(request, type=LaunchRequest)
        # The kernel ends the child with the thread that started it, so this one waits for the child's end.
        threading.Thread(target=self._run, args=(decoded,), name="bough-rank", daemon=True).start()
        return self._launched.result()

    def report(self) -> bytes | None:
        """Wait for the scheduler's report, and return it as it is; ``None`` if it died before."""
        return self._report.result()

    def wait(self) -> int:
        """Wait for the scheduler's end; return its exit status."""
        return self._end.result()

    def hang_up(self) -> None:
        """Make the scheduler end at once, unless it hangs."""
        self._on_child(ChildProcess.hang_up)

    def dump_stacks(self) -> None:
        """Make the scheduler write the stacks of its threads to the log."""
        self._on_child(ChildProcess.dump_stacks)

    def kill(self) -> None:
        """Kill the scheduler."""
        self._on_child(ChildProcess.kill)

    def _on_child(self, method: Callable[[ChildProcess], None]) -> None:
        if self._child is not None:
            method(self._child)

    def _run(self, request: LaunchRequest) -> None:
        try:
            child = self._child = self._started(request)
        except BoughError as error:
            failed = ChildFailed(error.message, isinstance(error, ConfigError))
            self._launched.set_result(msgspec.msgpack.encode(failed))
            return
        except BaseException as error:
            self._launched.set_exception(error)
            raise
        self._launched.set_result(msgspec.msgpack.encode(Launched(child.pid)))
        self._report.set_result(read_message(child.status_fd))
        self._end.set_result(child.wait_for_end())

    def _started(self, request: LaunchRequest) -> ChildProcess:
        config = request.config
        config.parent_pid, config.started_by_main_thread = os.getpid(), True
        if config.network is not None:
            assert self._keys is not None, "it listens before"
            descriptors = {endpoint: each.fileno() for endpoint, each in self._listeners.items()}
            config.network = replace(config.network, keys=self._keys, listeners=descriptors)
        with contextlib.ExitStack() as undo:
            if request.main_pid is None:
                config.server_args = with_local_files(ServerArgs(**config.server_args)).to_dict()
            else:
                config.share = _opened(config.share, request.main_pid, undo)
            for each in self._listeners.values():
                undo.callback(each.close)
            return ChildProcess(request.module, config)


def _opened(share: MachineShare, pid: int, undo: contextlib.ExitStack) -> MachineShare:
    """Open the memory that a process has descriptors of, until ``undo``."""
    opened: dict[str, Any] = {}
    for name in ("weights", "group"):
        if (descriptor := getattr(share, name)) is not None:
            opened[name] = os.open(_descriptor_path(pid, descriptor), os.O_RDWR | os.O_CLOEXEC)
            undo.callback(os.close, opened[name])
    return replace(share, **opened)


def _descriptor_path(pid: int, descriptor: int) -> str:
    return f"/proc/{pid}/fd/{descriptor}"


def _device(assigned: list[Any]) -> int | None:
    if not assigned:
        return None
    # Ray shows an actor its own devices alone, unless it has been told not to.
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    return visible.index(str(assigned[0])) if str(assigned[0]) in visible else int(assigned[0])
