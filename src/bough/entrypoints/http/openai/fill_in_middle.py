"""Prompts for filling a gap in a text (``suffix`` of completions)."""

from __future__ import annotations

from dataclasses import dataclass

from bough.tokenization.tokenizer import Tokenizer


@dataclass(frozen=True)
class GapFormat:
    """How a model family wants to see a text with a gap (Bavarian et al., "Efficient Training of Language Models to
    Fill in the Middle", 2022, in the order of the parts that the family was trained with).

    Attributes:
        prefix: special token before the text in front of the gap.
        suffix: special token before the text behind it.
        middle: special token after which the model fills the gap; may be empty.
        suffix_first: whether the text behind the gap comes first.
    """

    prefix: str
    suffix: str
    middle: str
    suffix_first: bool = False

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens that a tokenizer must know."""
        return tuple(token for token in (self.prefix, self.suffix, self.middle) if token)

    def prompt(self, before: str, after: str) -> str:
        """The prompt for a gap between two texts."""
        if self.suffix_first:
            return f"{self.suffix}{after}{self.prefix}{before}{self.middle}"
        return f"{self.prefix}{before}{self.suffix}{after}{self.middle}"


GAP_FORMATS = (
    GapFormat("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),  # Qwen-Coder, CodeGemma
    GapFormat("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),  # StarCoder, Granite
    GapFormat("<fim-prefix>", "<fim-suffix>", "<fim-middle>"),  # SantaCoder
    GapFormat("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),  # DeepSeek-Coder
    GapFormat("<PRE>", "<SUF>", "<MID>"),
    GapFormat("▁<PRE>", "▁<SUF>", "▁<MID>"),  # Code Llama
    GapFormat("[PREFIX]", "[SUFFIX]", "", suffix_first=True),  # Codestral
    GapFormat("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),  # GLM
)


def find_gap_format(tokenizer: Tokenizer) -> GapFormat | None:
    """The format whose special tokens the tokenizer knows; ``None`` if it knows those of none."""
    for format_ in GAP_FORMATS:
        if all(tokenizer.token_to_id(token) is not None for token in format_.tokens):
            return format_
    return None
