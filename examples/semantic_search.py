"""Find the sentence that is closest in meaning to a question.

python examples/semantic_search.py [model]

A model made for embeddings tells which texts mean alike; without another one, all-MiniLM-L6-v2 is fetched from the hub
(91 MB), unless it has been before.
"""

from __future__ import annotations

import sys

from bough import Engine

SENTENCES = [
    "Dig a hole twice as wide as the roots, and water it well.",
    "An oak can stand for a thousand years.",
    "The train to the coast leaves at half past nine.",
]
QUESTION = "How do I plant a tree?"

model = sys.argv[1] if len(sys.argv) > 1 else "sentence-transformers/all-MiniLM-L6-v2"
with Engine(model_path=model) as engine:
    question, *sentences = engine.encode([QUESTION, *SENTENCES])

ranked = []
for sentence, result in zip(SENTENCES, sentences, strict=True):
    # The vectors have length 1, so that their product is the cosine of the angle between them.
    similarity = sum(a * b for a, b in zip(question["embedding"], result["embedding"], strict=True))
    ranked.append((similarity, sentence))

print(QUESTION)
for similarity, sentence in sorted(ranked, reverse=True):
    print(f"  {similarity:.3f} {sentence}")
