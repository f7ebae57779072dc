"""The detokenizer process: ids in, text out. Never imports torch."""

from __future__ import annotations

import gc
import sys

from bough.child_main import Child, run_child
from bough.ipc.channels import HEARTBEAT_INTERVAL_S, DetokenizerChannels
from bough.ipc.messages import BatchStrOutput, Heartbeat
from bough.managers.detokenizer_manager import DetokenizerManager, event_loop
from bough.tokenization.loading import load_tokenizer


def run_detokenizer_process(child: Child) -> int:
    """Load the tokenizer, report, and decode until told to end; returns the exit status."""
    args = child.server_args
    manager = DetokenizerManager(load_tokenizer(args.tokenizer_path or args.model_path))
    channels = DetokenizerChannels(child.port_args)
    child.ready()
    gc.freeze()

    def send(output: BatchStrOutput) -> None:
        channels.send_deltas(output.deltas)

    def beat() -> None:
        if channels.heartbeat_due:
            channels.send(Heartbeat("detokenizer", num_failed_total=manager.num_failed))

    event_loop(manager, lambda: channels.recv(HEARTBEAT_INTERVAL_S), send, beat)
    channels.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_child(run_detokenizer_process, sys.argv[1:]))
