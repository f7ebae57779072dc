"""The server that a :class:`~bough.entrypoints.runtime.Runtime` starts: ``bough serve`` on an inherited socket."""

from __future__ import annotations

import os
import socket
import sys

from bough.child_main import Child, run_child


def run_runtime_process(child: Child) -> int:
    """Serve until told to end; returns the exit status."""
    from bough.entrypoints.launch import launch_server

    listener_fd = child.config.listener_fd
    assert listener_fd is not None
    os.set_inheritable(listener_fd, False)
    return launch_server(child.server_args, listener=socket.socket(fileno=listener_fd), on_ready=child.ready)


if __name__ == "__main__":
    sys.exit(run_child(run_runtime_process, sys.argv[1:]))
