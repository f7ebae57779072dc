"""Thoughts are counted by token, however the output was cut."""

from __future__ import annotations

from array import array

import pytest

from bough.managers.reasoning_span import ReasoningMarkers
from bough.parsers.reasoning import REASONING_FORMATS
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).tolist()


@pytest.mark.parametrize("step", [1, 2, 7, 1000])
@pytest.mark.parametrize(
    ("name", "prompt", "output", "thoughts"),
    [
        ("qwen3", "Hi", "<think>Hm, an oak.</think>Yes.", "Hm, an oak."),
        ("qwen3", "Hi", "\n<think>Hm.</think>Yes.", "Hm."),
        ("qwen3", "Hi", "Yes. <think>No.</think>", ""),
        ("qwen3", "Hi<think>\n", "Hm, an oak.</think>Yes.", "Hm, an oak."),
        ("qwen3", "Hi<think>\n", "Hm </thin an oak", "Hm </thin an oak"),
        ("qwen3", "Hi", "<think>Hm, </thi", "Hm, </thi"),
        ("qwen3", "Hi<think>\n", "Hm, an oak \n\n", "Hm, an oak \n\n"),
        ("deepseek-r1", "Hi", "Hm.</think>Yes.</think>", "Hm."),
        ("deepseek-r1", "Hi", "<think>Hm.</think>Yes.", "Hm."),
        ("deepseek-r1", "Hi", "", ""),
        ("glm45", "Hi", "<think>Hm.<tool_call>f</think>", "Hm."),
        (
            "gpt-oss",
            "Hi",
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>So.<|end|>"
            "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>4",
            "Hm.Hm.",
        ),
    ],
)
def test_tokens_between_the_markers_are_counted(name: str, prompt: str, output: str, thoughts: str, step: int) -> None:
    span = ReasoningMarkers(REASONING_FORMATS[name], TOKENIZER).begin(array("i", ids(prompt)))
    tokens = ids(output)
    for start in range(0, len(tokens), step):
        span.add(tokens[start : start + step])
    span.finish()
    assert span.total == len(ids(thoughts))
