"""Token counts, as OpenAI reports them."""

from __future__ import annotations

from bough.ipc.messages import OutputDelta
from bough.managers.req_state import ReqState

_FORMAT = (
    b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d,'
    b'"prompt_tokens_details":{"cached_tokens":%d},"reasoning_tokens":0,"completion_tokens_details":null}'
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

    def update(self, state: ReqState, delta: OutputDelta) -> None:
        """Take note of the counts of an output."""
        self._completion[state.index] = delta.completion_tokens
        prompt, sample = divmod(state.index, self._n)
        self._prompt[prompt] = delta.prompt_tokens
        if sample == 0:  # the other samples of a prompt reuse all that the first has computed
            self._cached[prompt] = delta.cached_tokens

    def to_json(self) -> bytes:
        """The ``usage`` object."""
        prompt, completion = sum(self._prompt), sum(self._completion)
        return _FORMAT % (prompt, prompt + completion, completion, sum(self._cached))

    def of_one(self, delta: OutputDelta) -> bytes:
        """The ``usage`` object of one output so far."""
        return _FORMAT % (
            delta.prompt_tokens,
            delta.prompt_tokens + delta.completion_tokens,
            delta.completion_tokens,
            delta.cached_tokens,
        )
