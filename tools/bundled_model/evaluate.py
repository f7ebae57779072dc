"""Measure the bundled model on questions whose wording it has never seen, at temperature 0.

Run ``python tools/bundled_model/evaluate.py --model src/bough/assets/sapling`` for a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from generate_corpus import Case, build_corpus, held_out_cases
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

LONGEST_ANSWER = 200
BATCH_SIZE = 32


@dataclass
class Score:
    """What one group of cases came to."""

    cases: int = 0
    right: int = 0
    ended: int = 0
    well_formed: int = 0


def generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, conversations: Sequence[list[dict[str, str]]]
) -> list[tuple[str, bool]]:
    """Greedy answers, each with whether it ended by itself within ``LONGEST_ANSWER`` tokens."""
    tokenizer.padding_side = "left"
    prompts = [
        tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        for messages in conversations
    ]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.inference_mode():
        output = model.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            max_new_tokens=LONGEST_ANSWER,
            do_sample=False,
            temperature=None,
            top_p=None,
        )
    ends = set(model.generation_config.eos_token_id)
    answers = []
    for row in output[:, inputs["input_ids"].shape[1] :].tolist():
        ended = any(token in ends for token in row)
        answers.append((tokenizer.decode(row, skip_special_tokens=True), ended))
    return answers


def words_of(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return re.findall(r"[a-z]+", text.lower())


def known_words() -> set[str]:
    """All words that occur in the training text."""
    known: set[str] = set()
    for document in build_corpus():
        for text in [document.text or "", *(message["content"] for message in document.messages)]:
            known.update(words_of(text))
    return known


def is_well_formed(answer: str, known: set[str], case: Case) -> bool:
    """A coarse look at the language: sentences begin and end as they should and consist of words that exist."""
    asked = {word for message in case.messages for word in words_of(message["content"])}
    begins = answer[:1].isupper() or answer[:1].isdigit() or answer[:1] == '"'
    ends = answer.rstrip('"')[-1:] in {".", "!", "?"}
    return begins and ends and all(word in known or word in asked for word in words_of(answer))


def evaluate(directory: Path, failures: list[dict[str, object]]) -> dict[str, Score]:
    """Ask every case and count; answers that lack what they should hold go to ``failures``."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
    known = known_words()
    # Cases of similar length share a batch, which spares most of the padding.
    cases = sorted(held_out_cases(), key=lambda case: sum(len(message["content"]) for message in case.messages))
    scores: dict[str, Score] = defaultdict(Score)
    for begin in range(0, len(cases), BATCH_SIZE):
        batch = cases[begin : begin + BATCH_SIZE]
        for case, (answer, ended) in zip(
            batch, generate(model, tokenizer, [case.messages for case in batch]), strict=True
        ):
            score = scores[case.group]
            right = any(expected.lower() in answer.lower() for expected in case.expects)
            score.cases += 1
            score.right += right
            score.ended += ended
            score.well_formed += is_well_formed(answer, known, case)
            if not right:
                question = case.messages[-1]["content"]
                failures.append({"group": case.group, "asked": question, "answer": answer, "expects": case.expects})
    return dict(sorted(scores.items()))


def table(scores: dict[str, Score]) -> str:
    """The scores as a Markdown table."""
    total = Score()
    for score in scores.values():
        total.cases += score.cases
        total.right += score.right
        total.ended += score.ended
        total.well_formed += score.well_formed
    lines = ["| group | cases | right | ends by itself | well formed |", "|---|---:|---:|---:|---:|"]
    for group, score in [*scores.items(), ("**all**", total)]:
        shares = (f"{100 * part / score.cases:.0f} %" for part in (score.right, score.ended, score.well_formed))
        lines.append(f"| {group} | {score.cases} | {' | '.join(shares)} |")
    return "\n".join(lines)


def main() -> None:
    """Evaluate a model directory and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="directory of the model")
    parser.add_argument("--failures", type=Path, help="write the wrong answers to this file, one JSON object per line")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    failures: list[dict[str, object]] = []
    print(table(evaluate(arguments.model, failures)))
    if arguments.failures:
        lines = (json.dumps(failure, ensure_ascii=False) + "\n" for failure in failures)
        arguments.failures.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
