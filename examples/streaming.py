"""Print an answer while it is generated, without a server.

python examples/streaming.py ["a prompt"]
"""

from __future__ import annotations

import sys

from bough import Engine

prompt = sys.argv[1] if len(sys.argv) > 1 else "The oak is"

with Engine(incremental_streaming_output=True) as engine:
    print(prompt, end="", flush=True)
    for event in engine.generate(prompt, {"max_new_tokens": 60, "temperature": 0}, stream=True):
        print(event["text"], end="", flush=True)
    print()
    print(event["meta_info"]["finish_reason"])
