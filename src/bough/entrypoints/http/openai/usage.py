"""Token counts, as OpenAI reports them."""

from __future__ import annotations

from bough.ipc.messages import OutputDelta
from bough.managers.req_state import ReqState

_FORMAT = (
    b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,'
    b'"prompt_tokens_details":{"cached_tokens":%d},"reasoning_tokens":%d,"completion_tokens_details":%b}'
)


class Usage:
    """Adds up the tokens of one call. A prompt counts once, however many choices it has.

    Args:
        num_outputs: choices of the call, all prompts together.
        n: choices per prompt.
    """

    def __init__(self, num_outputs: int, n: int) -> None:
        self._n = n
        self._prompt = [0] * (num_outputs // n)
        self._cached = [0] * (num_outputs // n)
        self._completion = [0] * num_outputs
        self._reasoning: list[int | None] = [None] * num_outputs

    def update(self, state: ReqState, delta: OutputDelta, reasoning_tokens: int | None = None) -> None:
        """Take note of the counts of an output; ``reasoning_tokens`` is ``None`` where these are not told apart."""
        self._reasoning[state.index] = reasoning_tokens
        self._completion[state.index] = delta.completion_tokens
        prompt, sample = divmod(state.index, self._n)
        self._prompt[prompt] = delta.prompt_tokens
        if sample == 0:  # the other samples of a prompt reuse all that the first has computed
            self._cached[prompt] = delta.cached_tokens

    def to_json(self) -> bytes:
        """The ``usage`` object."""
        prompt, completion = sum(self._prompt), sum(self._completion)
        told_apart = [each for each in self._reasoning if each is not None]
        reasoning = sum(told_apart)
        details = b'{"reasoning_tokens":%d}' % reasoning if told_apart else b"null"
        return _FORMAT % (prompt, prompt + completion, completion, sum(self._cached), reasoning, details)
