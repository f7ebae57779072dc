"""The scheduler without processes or sockets: requests are added at any time, and each step advances all of them.

python examples/step_by_step.py
"""

from __future__ import annotations

from bough import LLMEngine

with LLMEngine() as engine:
    engine.add_request("first", "The oak is", {"max_new_tokens": 12, "temperature": 0})
    steps = 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                print(output.request_id, "->", output.outputs[0].text.strip())
        steps += 1
        if steps == 3:
            engine.add_request("second", "The birch is", {"max_new_tokens": 12, "temperature": 0})
        if steps == 5:
            engine.add_request("third", "A request that is not wanted any more", {"max_new_tokens": 1000})
        if steps == 8:
            engine.abort_request("third")
print(steps, "steps")
