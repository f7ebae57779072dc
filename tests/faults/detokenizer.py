"""The detokenizer process, with faults."""

from __future__ import annotations

import sys

from bough.child_main import run_child
from bough.ipc.channels import DetokenizerChannels
from bough.managers.detokenizer_manager import DetokenizerManager, run_detokenizer_process
from tests.faults.injection import before, hold_start, run_out_of_memory, strike

if __name__ == "__main__":
    before(DetokenizerManager, "__init__", lambda: hold_start("detokenizer"))
    before(DetokenizerChannels, "recv", lambda: strike("detokenizer"))
    before(DetokenizerManager, "_finish", lambda: run_out_of_memory("detokenizer"))
    sys.exit(run_child(run_detokenizer_process, sys.argv[1:]))
