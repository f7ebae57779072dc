"""A program lends its functions to the model until the model has an answer.

The bundled model is too small to choose tools; so the first step demands a call, and the second forbids another. Larger
models decide by themselves, with `tool_choice` left out in both.

python examples/tools.py                          starts a server of its own
python examples/tools.py http://127.0.0.1:30000   talks with one that runs
"""

from __future__ import annotations

import contextlib
import json
import sys

from openai import OpenAI

from bough import Runtime

HEIGHTS = {"oak": 30, "birch": 25, "pine": 35}


def height_of(tree: str) -> dict[str, int]:
    """What the program knows and the model may ask."""
    return {"metres": HEIGHTS[tree]}


FUNCTIONS = {"height_of": height_of}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "height_of",
            "description": "The height that a kind of tree reaches.",
            "parameters": {
                "type": "object",
                "properties": {"tree": {"enum": sorted(HEIGHTS)}},
                "required": ["tree"],
                "additionalProperties": False,
            },
        },
    }
]
MOST_STEPS = 4

with contextlib.ExitStack() as stack:
    url = sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(Runtime()).url
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    model = client.models.list().data[0].id
    messages: list = [{"role": "user", "content": "How tall does an oak grow?"}]
    for step in range(MOST_STEPS):
        message = (
            client.chat.completions.create(
                model=model,
                messages=messages,
                tools=TOOLS,
                tool_choice="required" if step == 0 else "none",
                parallel_tool_calls=False,
                temperature=0,
                max_tokens=60,
            )
            .choices[0]
            .message
        )
        messages.append(message)
        if not message.tool_calls:
            print("answer:", message.content)
            break
        for call in message.tool_calls:
            arguments = json.loads(call.function.arguments)
            result = FUNCTIONS[call.function.name](**arguments)
            print(f"call: {call.function.name}({arguments}) = {result}")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
