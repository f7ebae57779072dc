"""``sglang serve`` for the interpreter of SGLang's environment, where modules for CUDA are absent."""

from __future__ import annotations

import sys

from benchmarks.peers.absent_modules import stub_absent

# Not only where this is the program: SGLang's processes import it again before they unpickle what they run.
stub_absent()

if __name__ == "__main__":
    from sglang.srt.entrypoints.http_server import launch_server
    from sglang.srt.server_args import prepare_server_args

    launch_server(prepare_server_args(sys.argv[1:]))
