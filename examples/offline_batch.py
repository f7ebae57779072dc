"""Many prompts in one call. Prompts that start alike are computed together.

python examples/offline_batch.py
"""

from __future__ import annotations

from bough import Engine

RULES = "Answer in one short sentence. Question: "
QUESTIONS = ["What is a river?", "What is a tree?", "What is the sun?", "What is a book?"]

with Engine() as engine:
    outputs = engine.generate(
        [RULES + question for question in QUESTIONS],
        [{"max_new_tokens": 30, "temperature": 0.2 * number, "sampling_seed": 1} for number in range(len(QUESTIONS))],
    )

for question, output in zip(QUESTIONS, outputs, strict=True):
    meta = output["meta_info"]
    print(f"{question} {output['text'].strip()}")
    print(f"  {meta['prompt_tokens']} prompt tokens, {meta['cached_tokens']} of them reused")
