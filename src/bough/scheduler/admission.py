"""Estimate of the memory that running requests will still ask for, kept free when a new one is admitted."""

from __future__ import annotations

INITIAL_RATIO = 0.7
"""Share of their remaining output that requests are expected to use, before anything is known."""

MIN_RATIO_FACTOR = 0.14
"""The ratio decays to this share of its initial value ..."""

DECAY_STEPS = 600
"""... over this many decode steps without a retraction."""

RETRACT_HEADROOM_STEPS = 20
"""After a retraction the estimate covers this many further tokens of every running request."""

OUTPUT_CLIP_TOKENS = 4096
"""No single request is reserved more than this for output: a client that asks for "as much as possible" rarely gets
there, and retraction handles the rest."""


class NewTokenRatio:
    """The adaptive estimate: falls while all goes well, jumps after a retraction."""

    def __init__(self, conservativeness: float = 1.0) -> None:
        self._initial = min(INITIAL_RATIO * conservativeness, 1.0)
        self._minimum = self._initial * MIN_RATIO_FACTOR
        self._decay = (self._initial - self._minimum) / DECAY_STEPS
        self.value = self._initial

    def on_decode_step(self, count: int = 1) -> None:
        """So many more steps in which all running requests got their slot."""
        self.value = max(self.value - count * self._decay, self._minimum)

    def on_retraction(self, decoded: int, max_new: int, num_running: int) -> None:
        """Memory ran out while ``num_running`` requests had ``decoded`` output tokens in all, of at most ``max_new``,
        each clipped."""
        estimate = (decoded + RETRACT_HEADROOM_STEPS * num_running) / (max_new + 1)
        self.value = min(max(estimate, self.value), 1.0)

    def reset(self) -> None:
        """Forget, because nothing is running."""
        self.value = self._initial
