"""Thoughts are counted by token, however the output was cut."""

from __future__ import annotations

from array import array

from bough.managers.reasoning_span import ReasoningMarkers
from bough.parsers.reasoning import REASONING_FORMATS
from bough.tokenization.chat_template import ChatTemplate
from bough.tokenization.tokenizer import SpecialTokens, Tokenizer
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer
from tests.tokenization.small_tokenizers import sentencepiece_bpe

TOKENIZER = tiny_tokenizer()


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False).tolist()


def test_tokens_between_the_markers_are_counted() -> None:
    cases = [
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
        ("glm45", "Hi", "<think>Hm.<tool_call>f</think>", "Hm.<tool_call>f"),
        ("glm45", "Hi", "<think><think>Hm.</think></think>Yes.", "Hm."),
        (
            "gpt-oss",
            "Hi",
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>So.<|end|>"
            "<|start|>assistant<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>4",
            "Hm.Hm.",
        ),
    ]
    for step in [1, 2, 7, 1000]:
        for name, prompt, output, thoughts in cases:
            span = ReasoningMarkers(REASONING_FORMATS[name], TOKENIZER).begin(array("i", ids(prompt)))
            tokens = ids(output)
            for start in range(0, len(tokens), step):
                span.add(tokens[start : start + step])
            span.finish()
            assert span.total == len(ids(thoughts))


SHOWS = (
    "{% for message in messages %}{% if message.reasoning_content %}<think>\n{{ message.reasoning_content }}"
    "\n</think>\n\n{% endif %}{{ message.content }}{% endfor %}"
)


def test_thoughts_are_ended_as_the_template_writes_them() -> None:
    template = ChatTemplate({"default": SHOWS}, SpecialTokens())
    markers = ReasoningMarkers(REASONING_FORMATS["qwen3"], TOKENIZER, template).bounded(begun=True)
    assert (markers.start, markers.ends, markers.begun) == ("<think>", ("</think>",), True)
    assert (list(markers.close), list(markers.behind)) == (ids("\n</think>"), ids("\n\n"))


def test_every_format_can_be_ended() -> None:
    for name in REASONING_FORMATS:
        for tokenizer in [TOKENIZER, Tokenizer(sentencepiece_bpe(), special=SpecialTokens())]:
            format_ = REASONING_FORMATS[name]
            markers = ReasoningMarkers(format_, tokenizer).bounded(begun=False)
            assert b"".join(map(tokenizer.id_to_piece_bytes, markers.close)).decode() == format_.end
            assert not markers.begun
            assert markers.ends == (format_.end,)
            assert ReasoningMarkers(format_, tokenizer).bounded(begun=True, triggers=("<call>",)).ends == (
                format_.end,
                "<call>",
            )
            behind = b"".join(map(tokenizer.id_to_piece_bytes, (*markers.behind, *markers.at_last))).decode()
            assert behind == ("<|start|>assistant<|channel|>final<|message|>" if name == "gpt-oss" else "")
