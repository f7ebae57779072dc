"""Many prompts in one call. Prompts that start alike are computed together.

python examples/offline_batch.py
"""

from __future__ import annotations

from bough import Engine

PROMPT = (
    "<|im_start|>system\nYou are a friendly guide in a garden. Visitors of all ages come here, and they ask about "
    "trees, leaves, bark and fruit. Answer in one or two short and plain sentences.<|im_end|>\n"
    "<|im_start|>user\n{question}<|im_end|>\n"
    "<|im_start|>assistant\n"
)
QUESTIONS = [
    "How tall does an oak grow?",
    "What is the bark of a birch like?",
    "Why do leaves fall in autumn?",
    "How old does a beech get?",
]

with Engine() as engine:
    outputs = engine.generate(
        [PROMPT.format(question=question) for question in QUESTIONS],
        [{"max_new_tokens": 40, "temperature": 0.2 * number, "sampling_seed": 1} for number in range(len(QUESTIONS))],
    )

for question, output in zip(QUESTIONS, outputs, strict=True):
    meta = output["meta_info"]
    print(f"{question} {output['text'].strip()}")
    print(f"  {meta['prompt_tokens']} prompt tokens, {meta['cached_tokens']} of them reused")
