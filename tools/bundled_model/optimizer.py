"""Muon for the matrices and Adam for the rest.

Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") turns the momentum of a matrix into
the nearest matrix whose singular values are all about one, by a few steps of a Newton-Schulz iteration.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from network import PRODUCTS
from torch import Tensor

# The coefficients of the paper: they bring singular values fast to somewhere near one, rather than exactly there.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5


def orthogonal(matrix: Tensor) -> Tensor:
    """A matrix ``[rows, columns]`` with singular values of about one, of ``PRODUCTS``."""
    x = matrix.to(PRODUCTS)
    tall = x.shape[0] > x.shape[1]
    x = x.t().contiguous() if tall else x
    x = x / (x.float().norm().to(PRODUCTS) + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.t()
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=_B, alpha=_C), x, beta=_A)
    return x.t() if tall else x


class Optimizer:
    """One step after the other, with all of its state in tensors that have names."""

    def __init__(
        self, parameters: dict[str, Tensor], matrix_rate: float, rate: float, weight_decay: float = 0.05
    ) -> None:
        self.parameters = parameters
        self.matrix_rate, self.rate, self.weight_decay = matrix_rate, rate, weight_decay
        self._matrices = [name for name, value in parameters.items() if value.dim() == 2 and "embed" not in name]
        self._others = [name for name in parameters if name not in self._matrices]
        self.state = {f"momentum.{name}": torch.zeros_like(value) for name, value in parameters.items()}
        self.state |= {f"square.{name}": torch.zeros_like(parameters[name]) for name in self._others}

    @property
    def order(self) -> list[str]:
        """All parameters, the largest first, so that nobody who shares the work waits long for the last."""
        return sorted(self.parameters, key=lambda name: -self.parameters[name].numel())

    def step(self, gradients: Mapping[str, Tensor], step: int, scale: float) -> None:
        """Change all parameters; as for :meth:`change`."""
        for name in self.order:
            self.change(name, gradients[name], step, scale)

    @torch.no_grad()
    def change(self, name: str, gradient: Tensor, step: int, scale: float) -> None:
        """Change one parameter, which may be done for several at a time.

        Args:
            name: of the parameter.
            gradient: of its shape.
            step: counts from 0.
            scale: multiplies the learning rates.
        """
        if name in self._matrices:
            # Momentum is short while the gradient still turns quickly.
            self._turn(name, gradient, 0.85 + 0.10 * min(1.0, step / 300), self.matrix_rate * scale)
            return
        first, second = self.state[f"momentum.{name}"], self.state[f"square.{name}"]
        first.lerp_(gradient, 1 - 0.9)
        second.lerp_(gradient.square(), 1 - 0.98)
        mean = first / (1 - 0.9 ** (step + 1))
        spread = (second / (1 - 0.98 ** (step + 1))).sqrt_().add_(1e-10)
        self.parameters[name].addcdiv_(mean, spread, value=-self.rate * scale)

    def _turn(self, name: str, gradient: Tensor, momentum: float, rate: float) -> None:
        value, slow = self.parameters[name], self.state[f"momentum.{name}"]
        slow.lerp_(gradient, 1 - momentum)
        update = orthogonal(gradient.lerp(slow, momentum))
        value.mul_(1 - rate * self.weight_decay)
        value.add_(update, alpha=-rate * max(1.0, value.shape[0] / value.shape[1]) ** 0.5)
