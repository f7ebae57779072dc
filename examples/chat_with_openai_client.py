"""An unmodified OpenAI client talks with Bough.

python examples/chat_with_openai_client.py                          starts a server of its own
python examples/chat_with_openai_client.py http://127.0.0.1:30000   talks with one that runs
"""

from __future__ import annotations

import sys

from openai import OpenAI

from bough import Runtime


def chat(url: str) -> None:
    client = OpenAI(base_url=f"{url}/v1", api_key="none")
    model = client.models.list().data[0].id
    messages = [{"role": "user", "content": "Hello! What is your name?"}]

    answer = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=60)
    print("answer:", answer.choices[0].message.content)
    print("tokens:", answer.usage.prompt_tokens, "in,", answer.usage.completion_tokens, "out")

    print("stream: ", end="")
    stream = client.chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=60, stream=True)
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


if len(sys.argv) > 1:
    chat(sys.argv[1])
else:
    runtime = Runtime()
    try:
        chat(runtime.url)
    finally:
        runtime.shutdown()
