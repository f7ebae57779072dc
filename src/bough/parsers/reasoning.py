"""How model families mark their thoughts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from bough.parsers.stream import Steps, Stream
from bough.parsers.structural import Format, const, regex


class Thoughts(Enum):
    """What a prompt makes of the thoughts of the answer."""

    BEGUN = "begun"
    """The answer begins inside of them."""
    POSSIBLE = "possible"
    """The answer may begin with their marker."""
    NONE = "none"
    """The answer has none."""


@dataclass(frozen=True)
class ReasoningFormat:
    """Thoughts that stand in front of the answer, between two markers.

    Attributes:
        always: whether an answer begins with thoughts even if neither the prompt nor the answer has ``start``.
        needs_special_tokens: whether the markers are special tokens, which are left out of text unless asked for.
        on_channels: whether all of an answer is on channels, as harmony has them, of which thoughts are one.
        gap: what comes between the thoughts and a call.
    """

    name: str
    start: str = "<think>"
    end: str = "</think>"
    always: bool = False
    needs_special_tokens: bool = False
    on_channels: bool = False
    gap: Format = field(default_factory=lambda: regex("\\n{0,2}"))

    def begins_inside(self, prompt: str) -> bool:
        """True if an answer to this prompt, of which the last 50 characters suffice, begins inside the thoughts."""
        return self.thoughts(prompt) is Thoughts.BEGUN

    def thoughts(self, prompt: str) -> Thoughts:
        """Place of the thoughts in an answer to this prompt, of which the last 50 characters suffice."""
        prompt = prompt.rstrip()
        if prompt.endswith(self.start.rstrip()):
            return Thoughts.BEGUN
        if self.on_channels:
            return Thoughts.POSSIBLE
        if prompt.endswith(self.end.rstrip()):
            return Thoughts.NONE
        return Thoughts.BEGUN if self.always else Thoughts.POSSIBLE

    def goes_on(self, text: str, prompt: str) -> Thoughts:
        """Place of the thoughts in an answer that continues a message.

        ``text`` is the message's; it comes last in ``prompt``, perhaps without white space around it.
        """
        stem = text.strip()
        if not stem:  # what the message has of thoughts may be told elsewhere
            text = prompt
        elif self.start not in text and self.end not in text:
            # What a template writes before it; what others have said does not count.
            before = prompt[: max(prompt.rfind(stem), 0)].rstrip()
            return Thoughts.BEGUN if before.endswith(self.start.rstrip()) else Thoughts.NONE
        return Thoughts.BEGUN if text.rfind(self.start) > text.rfind(self.end) else Thoughts.NONE

    def begin(self, stream: Stream, *, inside: bool, separate: bool) -> Steps[bool]:
        """Read up to the thoughts at the beginning of an answer; false if there are none.

        Args:
            inside: the answer begins inside the thoughts; it may still repeat the marker.
            separate: separate thoughts from content; otherwise they stay in the content with their markers.
        """
        yield from stream.skip_space()
        opened = yield from stream.take(self.start)
        if not (opened or inside):
            if separate and (yield from stream.take(self.end)):  # end of thoughts that the prompt has already closed
                yield from self.end_of(stream, separate=True)
            stream.turn_back()
            return False
        if separate:
            yield from _skip(stream, self.start)
        else:
            stream.resume = stream.pos
            stream.reject()
        return True

    def end_of(self, stream: Stream, *, separate: bool) -> Steps[None]:
        """Skip the text between the end marker of the thoughts, which has been read, and the answer."""
        if separate:
            yield from _skip(stream, self.end)
        else:
            stream.reject()


def _skip(stream: Stream, marker: str) -> Steps[None]:
    """Skip white space, and a repeated marker."""
    yield from stream.skip_space()
    while (yield from stream.take(marker)):
        yield from stream.skip_space()
    stream.commit()


_HARMONY = ReasoningFormat(
    "gpt-oss",
    "<|channel|>analysis<|message|>",
    "<|end|>",
    needs_special_tokens=True,
    on_channels=True,
    gap=const("<|start|>assistant"),
)

_THINK = {
    "deepseek-r1": ReasoningFormat("deepseek-r1", always=True),
    "deepseek-v3": ReasoningFormat("deepseek-v3"),
    "glm45": ReasoningFormat("glm45"),
    "gpt-oss": _HARMONY,
    "interns1": ReasoningFormat("interns1"),
    "kimi": ReasoningFormat("kimi", "◁think▷", "◁/think▷", needs_special_tokens=True),
    "kimi_k2": ReasoningFormat("kimi_k2"),
    "mistral": ReasoningFormat("mistral", "[THINK]", "[/THINK]", needs_special_tokens=True),
    "nemotron_3": ReasoningFormat("nemotron_3"),
    "qwen3": ReasoningFormat("qwen3"),
    "qwen3-thinking": ReasoningFormat("qwen3-thinking", always=True),
    "seed_oss": ReasoningFormat("seed_oss", "<seed:think>", "</seed:think>"),
    "step3": ReasoningFormat("step3", always=True),
}

REASONING_FORMATS: dict[str, ReasoningFormat] = dict(sorted(_THINK.items()))
"""By the names that ``--reasoning-parser`` takes."""
