"""Predicted duration of a step, so that a step can be given as much work as fits a budget in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_CHUNK_TOKENS = 16
"""The prompt that chooses first in a step advances by at least this much, even beyond the target in time, as long as
the gaps of running requests do not double, or stay too short to be noticed."""

REFIT_INTERVAL_STEPS = 32
_FORGETTING = 0.995
"""Weight that an observation loses with every later one: the memory is a few hundred steps."""

_PRIOR_WEIGHT = 1.0
"""Number of observations that the probes at warm-up count as: steady load says nothing about other load."""

_DOUBTED_WEIGHT = 1 / 16
"""Part of that, for a token, where launching costs more than the tokens of probes: steps of about as many tokens each
cannot tell the one from the other, and if it were put down to the tokens, they would look dear and stay few."""

_LEAST_SHARE = 0.25
"""The cost of a token, and of context, never falls below this share of what the probes found: hours of decoding, in
which a token more or less costs nothing, must not make prompts look free."""

_MAX_CONTEXT_SHARE = 2e-2
"""A token of context that seems to cost more than this, compared with a token, is noise in the probes."""

_CONTEXT_SHARE = 1e-4
"""Cost of a token of context compared with that of a token, where no probe could tell."""

_MIN_CONTEXT_TOKENS = 32
"""Without a probe at a longer context than this, the cost of context cannot be told from noise."""

_SMALLEST = np.array([1e-6, 1e-8, 1e-12, 1e-6, 1e-6])
"""Seconds below which a coefficient is as good as zero."""

_COLUMNS = range(5)
"""Columns of the coefficients: seconds of a step, a token, a token of context, a prompt, the weights of all experts."""

_FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepCost:
    """One measurement: a step of ``tokens`` new tokens at ``token_context`` took ``seconds``.

    ``token_context`` is the sum over new tokens of the number of earlier tokens each attends to. ``has_prompt``: not
    all of its rows are decode rows.
    """

    tokens: int
    token_context: float
    seconds: float
    has_prompt: bool = False


class CostModel:
    """seconds = base + per_token * tokens + per_token_context * token_context, with coefficients never negative.

    Where decode steps are recorded and others are launched kernel by kernel, these take ``prompt_base`` more, however
    few their tokens.

    Where each token chooses a share of the experts, a step also takes the time of reading those that any of its tokens
    has chosen: of all of them ``experts``, of those of n tokens about ``1 - (1 - share)^n`` of that.

    Fitted to probes at warm-up, and then followed by recursive least squares with forgetting (Haykin, Adaptive Filter
    Theory, ch. 10) over relative errors, since the machine's clock and neighbours change.
    """

    def __init__(
        self,
        base: float,
        per_token: float,
        per_token_context: float,
        prompt_base: float | None = None,
        *,
        least_share: float = _LEAST_SHARE,
        experts: float = 0.0,
        expert_share: float = 0.0,
    ) -> None:
        """Begin with these coefficients, in seconds; what tokens cost stays above ``least_share`` of them.

        Without a ``prompt_base``, there is none, whatever is observed; without an ``expert_share``, no ``experts``.
        """
        self.base = base
        self.per_token = per_token
        self.per_token_context = per_token_context
        self.prompt_base = prompt_base or 0.0
        self.experts = experts
        self._unchosen_share = 1.0 - expert_share
        # Of the features of all observations, each divided by its seconds: products of pairs, and the features.
        self._sums = [0.0] * 19
        self._observed = 0
        self._least_share = least_share
        context = per_token_context or per_token * _CONTEXT_SHARE
        self._probed: _FloatArray = np.array([base, per_token, context, self.prompt_base, experts])
        self._knows_prompts = prompt_base is not None
        known = [True, True, True, self._knows_prompts, expert_share > 0.0]
        self._columns = [column for column in _COLUMNS if known[column]]

    @classmethod
    def fit(
        cls,
        measurements: list[StepCost],
        *,
        knows_prompts: bool = False,
        least_share: float = _LEAST_SHARE,
        expert_share: float = 0.0,
    ) -> CostModel:
        """Least squares over relative errors of the probes.

        Args:
            measurements: at least two, or :class:`ValueError` is raised.
            knows_prompts: steps with a prompt may take longer than others of as many tokens.
            least_share: of what tokens cost by the probes, below which that never falls.
            expert_share: of the experts that a token chooses; 0: there are none.
        """
        if len(measurements) < 2:
            raise ValueError("a cost model needs at least two measurements")
        rows = np.array([_features(m, 1.0 - expert_share) / m.seconds for m in measurements])
        knows_context = any(m.token_context > _MIN_CONTEXT_TOKENS * m.tokens for m in measurements)
        columns = [0, 1]
        if knows_context:
            columns.append(2)
        if knows_prompts:
            columns.append(3)
        if expert_share:
            columns.append(4)
        coefficients = _solve(rows.T @ rows, rows.sum(axis=0), columns)
        # Noise may hide what a token costs; to take it for free would make one step of any number of them.
        largest = max(measurements, key=lambda m: m.tokens)
        coefficients[1] = max(coefficients[1], _LEAST_SHARE * largest.seconds / largest.tokens)
        coefficients[2] = min(coefficients[2], _MAX_CONTEXT_SHARE * coefficients[1])
        base, per_token, per_context, prompt_base, experts = coefficients.tolist()
        return cls(
            base,
            per_token,
            per_context,
            prompt_base if knows_prompts else None,
            least_share=least_share,
            experts=experts,
            expert_share=expert_share,
        )

    def seconds(self, tokens: int, token_context: float, has_prompt: bool = False) -> float:
        """Predicted duration of a step."""
        base = self.base + self.prompt_base if has_prompt else self.base
        if self.experts:
            base += self.experts * _share_read(self._unchosen_share, tokens)
        return base + self.added_seconds(tokens, token_context)

    def prompt_seconds(self, num_decode: int) -> float:
        """Predicted duration of having a prompt in a step of ``num_decode`` other tokens, beside what its tokens
        cost: it makes use of nearly all experts."""
        return self.prompt_base + self.experts * (1.0 - _share_read(self._unchosen_share, num_decode))

    def added_seconds(self, tokens: int, token_context: float) -> float:
        """Predicted duration of work that is added to a step."""
        return self.per_token * tokens + self.per_token_context * token_context

    def observe(
        self, tokens: int, token_context: float, seconds: float, has_prompt: bool = False, count: int = 1
    ) -> None:
        """Learn from a finished step, or from ``count`` of them that took so many seconds each."""
        if seconds <= 0.0:
            return
        overrun = seconds > 2 * self.seconds(tokens, token_context, has_prompt)
        # Once a step: arrays of a few numbers cost more than the numbers.
        x, y, z = 1.0 / seconds, tokens / seconds, token_context / seconds
        p = x if has_prompt else 0.0
        e = _share_read(self._unchosen_share, tokens) / seconds
        of_pairs = (x * x, x * y, x * z, y * y, y * z, z * z, p * x, p * y, p * z, e * x, e * y, e * z, e * p, e * e)
        added = (*of_pairs, x, y, z, p, e)
        kept = _FORGETTING**count
        weight = (1.0 - kept) / (1.0 - _FORGETTING)
        self._sums = [kept * total + weight * each for total, each in zip(self._sums, added, strict=True)]
        before, self._observed = self._observed, self._observed + count
        if overrun or self._observed // REFIT_INTERVAL_STEPS != before // REFIT_INTERVAL_STEPS:
            self._refit()

    def tokens_within(self, seconds: float, context: int) -> int:
        """Most tokens of one prompt, after ``context`` earlier ones, that fit in ``seconds`` of added time.

        The i-th new token attends to ``context + i`` tokens, so n tokens cost
        ``n * (per_token + per_token_context * context) + per_token_context * n² / 2``.
        """
        if seconds <= 0.0:
            return 0
        linear = self.per_token + self.per_token_context * context
        # Of the two ways to write the root the one without a difference, in which a small quadratic would be lost.
        slowest = linear + (linear * linear + 2 * self.per_token_context * seconds) ** 0.5
        most = 2**30
        return min(int(2 * seconds / slowest), most) if slowest > 2 * seconds / most else most

    def _refit(self) -> None:
        probed = np.maximum(self._probed, _SMALLEST)
        # That probes saw no such constant does not say that there is none.
        prior = np.diag(_PRIOR_WEIGHT / np.array([*probed[:3], max(probed[0], probed[3]), probed[4]]) ** 2)
        if self._knows_prompts:
            prior[1, 1] *= _DOUBTED_WEIGHT
        xx, xy, xz, yy, yz, zz, px, py, pz, ex, ey, ez, ep, ee, *targets = self._sums
        moments = np.array(
            [
                [xx, xy, xz, px, ex],
                [xy, yy, yz, py, ey],
                [xz, yz, zz, pz, ez],
                [px, py, pz, px, ep],
                [ex, ey, ez, ep, ee],
            ]
        )
        fitted = _solve(moments + prior, np.array(targets) + prior @ probed, self._columns)
        fitted[1:3] = np.maximum(fitted[1:3], self._least_share * self._probed[1:3])
        self.base, self.per_token, self.per_token_context, self.prompt_base, self.experts = fitted.tolist()


def _share_read(unchosen_share: float, tokens: int) -> float:
    """Expected share of the experts that ``tokens`` tokens choose between them, of which one leaves that share."""
    return 1.0 - unchosen_share**tokens


def _features(measured: StepCost, unchosen_share: float) -> _FloatArray:
    read = _share_read(unchosen_share, measured.tokens)
    return np.array([1.0, measured.tokens, measured.token_context, float(measured.has_prompt), read])


def _solve(moments: _FloatArray, targets: _FloatArray, columns: Sequence[int]) -> _FloatArray:
    """Solve the normal equations for ``columns``; those that come out negative are held at zero."""
    active = list(columns)
    solution = np.zeros(len(targets))
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
