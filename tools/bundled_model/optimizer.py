"""Muon for the matrices and Adam for the rest.

Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks") turns the momentum of a matrix into
the nearest matrix whose singular values are all about one, by a few steps of a Newton-Schulz iteration.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The coefficients of the paper: they bring singular values fast to somewhere near one, rather than exactly there.
_A, _B, _C = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5


def orthogonal(matrices: Tensor) -> Tensor:
    """Matrices ``[count, rows, columns]`` with singular values of about one, in bfloat16."""
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.transpose(1, 2) if tall else x
    x = x / (x.float().norm(dim=(1, 2), keepdim=True).bfloat16() + 1e-7)
    for _ in range(_ITERATIONS):
        gram = x @ x.transpose(1, 2)
        x = _A * x + (_B * gram + _C * gram @ gram) @ x
    return x.transpose(1, 2) if tall else x


class Optimizer:
    """One step after the other, with all of its state in tensors that have names."""

    def __init__(
        self, parameters: dict[str, Tensor], matrix_rate: float = 0.02, rate: float = 3e-3, weight_decay: float = 0.05
    ) -> None:
        self.parameters = parameters
        self.matrix_rate, self.rate, self.weight_decay = matrix_rate, rate, weight_decay
        self._matrices = [name for name, value in parameters.items() if value.dim() == 2 and "embed" not in name]
        self._others = [name for name in parameters if name not in self._matrices]
        self.state = {f"momentum.{name}": torch.zeros_like(value) for name, value in parameters.items()}
        self.state |= {f"square.{name}": torch.zeros_like(parameters[name]) for name in self._others}

    @torch.no_grad()
    def step(self, step: int, scale: float) -> None:
        """Change the parameters; ``step`` counts from 0, ``scale`` multiplies the learning rates."""
        # Momentum is short while the gradient still turns quickly.
        momentum = 0.85 + 0.10 * min(1.0, step / 300)
        by_shape: dict[torch.Size, list[str]] = {}
        for name in self._matrices:
            gradient = self.parameters[name].grad
            assert gradient is not None
            self.state[f"momentum.{name}"].lerp_(gradient, 1 - momentum)
            by_shape.setdefault(gradient.shape, []).append(name)
        for shape, names in by_shape.items():
            stacked = torch.stack(
                [self.parameters[name].grad.lerp(self.state[f"momentum.{name}"], momentum) for name in names]  # type: ignore[union-attr]
            )
            rate = self.matrix_rate * scale
            for name, update in zip(names, orthogonal(stacked), strict=True):
                self.parameters[name].mul_(1 - rate * self.weight_decay)
                self.parameters[name].add_(update, alpha=-rate * max(1.0, shape[0] / shape[1]) ** 0.5)
        for name in self._others:
            gradient = self.parameters[name].grad
            assert gradient is not None
            first, second = self.state[f"momentum.{name}"], self.state[f"square.{name}"]
            first.lerp_(gradient, 1 - 0.9)
            second.lerp_(gradient.square(), 1 - 0.98)
            mean = first / (1 - 0.9 ** (step + 1))
            spread = (second / (1 - 0.98 ** (step + 1))).sqrt_().add_(1e-10)
            self.parameters[name].addcdiv_(mean, spread, value=-self.rate * scale)
        for value in self.parameters.values():
            value.grad = None
