"""How long a step will take, so that a step can be given as much work as fits a budget in time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_CHUNK_TOKENS = 16
"""The prompt that chooses first in a step advances by at least this much, even beyond the target in time, as long as
the gaps of running requests do not double."""

REFIT_INTERVAL_STEPS = 32
_FORGETTING = 0.995
"""Weight that an observation loses with every later one: the memory is a few hundred steps."""

_PRIOR_WEIGHT = 1.0
"""How many observations the probes at warm-up count as: steady load says nothing about what it does not do."""

_LEAST_SHARE = 0.25
"""The cost of a token, and of context, never falls below this share of what the probes found: hours of decoding, in
which a token more or less costs nothing, must not make prompts look free."""

_MAX_CONTEXT_SHARE = 2e-2
"""A token of context that seems to cost more than this, compared with a token, is noise in the probes."""

_CONTEXT_SHARE = 1e-4
"""What a token of context costs compared with a token, where no probe could tell."""

_MIN_CONTEXT_TOKENS = 32
"""Without a probe at a longer context than this, the cost of context cannot be told from noise."""

_SMALLEST = np.array([1e-6, 1e-8, 1e-12])
"""Seconds below which a coefficient is as good as zero."""

_FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepCost:
    """One measurement: a step of ``tokens`` new tokens at ``token_context`` took ``seconds``.

    ``token_context`` is the sum over new tokens of the number of earlier tokens each attends to.
    """

    tokens: int
    token_context: float
    seconds: float


class CostModel:
    """seconds = base + per_token * tokens + per_token_context * token_context, with coefficients never negative.

    Fitted to probes at warm-up, and then followed by recursive least squares with forgetting (Haykin, Adaptive Filter
    Theory, ch. 10) over relative errors, since the machine's clock and neighbours change.
    """

    def __init__(
        self, base: float, per_token: float, per_token_context: float, *, least_share: float = _LEAST_SHARE
    ) -> None:
        """Begin with these coefficients, in seconds; what tokens cost stays above ``least_share`` of them."""
        self.base = base
        self.per_token = per_token
        self.per_token_context = per_token_context
        # Of the features of all observations, each divided by its seconds: products of pairs, and the features.
        self._sums = [0.0] * 9
        self._observed = 0
        self._least_share = least_share
        self._probed: _FloatArray = np.array([base, per_token, per_token_context or per_token * _CONTEXT_SHARE])

    @classmethod
    def fit(cls, measurements: list[StepCost], *, least_share: float = _LEAST_SHARE) -> CostModel:
        """Least squares over relative errors.

        Args:
            measurements: probes.
            least_share: see :class:`CostModel`.

        Raises:
            ValueError: with fewer than two measurements.
        """
        if len(measurements) < 2:
            raise ValueError("a cost model needs at least two measurements")
        rows = np.array([_features(m.tokens, m.token_context) / m.seconds for m in measurements])
        knows_context = any(m.token_context > _MIN_CONTEXT_TOKENS * m.tokens for m in measurements)
        columns = (0, 1, 2) if knows_context else (0, 1)
        coefficients = _solve(rows.T @ rows, rows.sum(axis=0), columns)
        # Noise may hide what a token costs; to take it for free would make one step of any number of them.
        largest = max(measurements, key=lambda m: m.tokens)
        coefficients[1] = max(coefficients[1], _LEAST_SHARE * largest.seconds / largest.tokens)
        coefficients[2] = min(coefficients[2], _MAX_CONTEXT_SHARE * coefficients[1])
        return cls(*coefficients.tolist(), least_share=least_share)

    def seconds(self, tokens: int, token_context: float) -> float:
        """Predicted duration of a step."""
        return self.base + self.added_seconds(tokens, token_context)

    def added_seconds(self, tokens: int, token_context: float) -> float:
        """Predicted duration of work that is added to a step."""
        return self.per_token * tokens + self.per_token_context * token_context

    def observe(self, tokens: int, token_context: float, seconds: float) -> None:
        """Learn from a finished step."""
        if seconds <= 0.0:
            return
        overrun = seconds > 2 * self.seconds(tokens, token_context)
        # Once a step: arrays of three numbers cost more than the numbers.
        x, y, z = 1.0 / seconds, tokens / seconds, token_context / seconds
        added = (x * x, x * y, x * z, y * y, y * z, z * z, x, y, z)
        self._sums = [_FORGETTING * total + each for total, each in zip(self._sums, added, strict=True)]
        self._observed += 1
        if overrun or self._observed % REFIT_INTERVAL_STEPS == 0:
            self._refit()

    def tokens_within(self, seconds: float, context: int) -> int:
        """Most tokens of one prompt, after ``context`` earlier ones, that fit in ``seconds`` of added time.

        The i-th new token attends to ``context + i`` tokens, so n tokens cost
        ``n * (per_token + per_token_context * context) + per_token_context * n² / 2``.
        """
        if seconds <= 0.0:
            return 0
        linear = self.per_token + self.per_token_context * context
        quadratic = self.per_token_context / 2
        if quadratic <= 0.0:
            return int(seconds / linear) if linear > 0.0 else 2**30
        return int((-linear + (linear * linear + 4 * quadratic * seconds) ** 0.5) / (2 * quadratic))

    def _refit(self) -> None:
        probed = np.maximum(self._probed, _SMALLEST)
        prior = np.diag(_PRIOR_WEIGHT / probed**2)
        xx, xy, xz, yy, yz, zz, *targets = self._sums
        moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        fitted = _solve(moments + prior, np.array(targets) + prior @ probed, (0, 1, 2))
        fitted[1:] = np.maximum(fitted[1:], self._least_share * self._probed[1:])
        self.base, self.per_token, self.per_token_context = fitted.tolist()


def _features(tokens: int, token_context: float) -> _FloatArray:
    return np.array([1.0, tokens, token_context])


def _solve(moments: _FloatArray, targets: _FloatArray, columns: tuple[int, ...]) -> _FloatArray:
    """Solve the normal equations for ``columns``; those that come out negative are held at zero."""
    active = list(columns)
    solution = np.zeros(3)
    # Columns differ by many orders of magnitude: scale each to one before solving.
    scale = 1.0 / np.sqrt(np.maximum(np.diag(moments), 1e-300))
    while active:
        scaled = moments[np.ix_(active, active)] * np.outer(scale[active], scale[active])
        part, *_ = np.linalg.lstsq(scaled, targets[active] * scale[active], rcond=None)
        if (part >= 0).all():
            solution[active] = part * scale[active]
            break
        active = [column for column, value in zip(active, part, strict=True) if value >= 0]
    return solution
