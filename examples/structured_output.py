"""Answers that are always valid JSON, whatever model gives them.

python examples/structured_output.py                          starts a server of its own
python examples/structured_output.py http://127.0.0.1:30000   talks with one that runs
"""

from __future__ import annotations

import contextlib
import json
import sys

from openai import OpenAI

from bough import Runtime

SCHEMA = {
    "type": "object",
    "properties": {
        "tree": {"enum": ["oak", "birch", "pine", "other"]},
        "height_in_metres": {"type": "integer", "minimum": 1, "maximum": 130},
    },
    "required": ["tree", "height_in_metres"],
    "additionalProperties": False,
}
QUESTIONS = ["How tall does an oak grow?", "How tall does a birch grow?", "How tall does a pine grow?"]

with contextlib.ExitStack() as stack:
    url = sys.argv[1] if len(sys.argv) > 1 else stack.enter_context(Runtime()).url
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    model = client.models.list().data[0].id
    for question in QUESTIONS:
        answer = client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": question}],
            temperature=0,
            max_tokens=100,
            response_format={"type": "json_schema", "json_schema": {"name": "tree", "schema": SCHEMA, "strict": True}},
        )
        print(question, json.loads(answer.choices[0].message.content))
