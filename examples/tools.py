"""A program lends its functions to the model, which calls those that it needs until it has an answer.

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


def tree_height(tree: str) -> dict[str, int]:
    """What the program knows and the model may ask."""
    return {"metres": HEIGHTS[tree]}


def get_weather(city: str) -> dict[str, str | int]:
    """A weather service would be asked here."""
    return {"sky": "sunny", "temperature": len(city)}


def tool(name: str, description: str, parameter: str) -> dict:
    """A function with one argument, as the API describes it."""
    parameters = {
        "type": "object",
        "properties": {parameter: {"type": "string"}},
        "required": [parameter],
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


FUNCTIONS = {"tree_height": tree_height, "get_weather": get_weather}
TOOLS = [
    tool("tree_height", "The height of a kind of tree.", "tree"),
    tool("get_weather", "The weather in a city.", "city"),
]
MOST_STEPS = 4


def result_of(name: str, arguments: str) -> dict:
    """What a function returns, or what is wrong with the call: the model may mend that."""
    try:
        return FUNCTIONS[name](**json.loads(arguments))
    except (KeyError, TypeError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


with contextlib.ExitStack() as stack:
    url = sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(Runtime()).url
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    model = client.models.list().data[0].id
    for question in ("How tall is the oak?", "What is the weather in Lisbon?", "Who are you?"):
        print("question:", question)
        messages: list = [{"role": "user", "content": question}]
        for _ in range(MOST_STEPS):
            completion = client.chat.completions.create(
                model=model, messages=messages, tools=TOOLS, temperature=0, max_tokens=100
            )
            message = completion.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                print("answer:", message.content)
                break
            for call in message.tool_calls:
                result = result_of(call.function.name, call.function.arguments)
                print(f"call: {call.function.name}({call.function.arguments}) = {result}")
                messages.append(
                    {"role": "tool", "tool_call_id": call.id, "content": json.dumps(result, ensure_ascii=False)}
                )
