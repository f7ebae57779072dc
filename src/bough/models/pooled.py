"""Language models whose states are pooled: embeddings, class scores and rewards."""

from __future__ import annotations

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.layers.embedding import LMHead
from bough.layers.linear import Linear
from bough.layers.linear_method import TORCH, MethodChoice
from bough.layers.ops import Ops, Value
from bough.models.base import CausalLM, TwoLayerHead, torch_dtype


class PooledCausalLM(CausalLM):
    """The body of a language model, with the head that the architecture's name calls for."""

    def __init__(self, config: ModelConfig, language_model: type[CausalLM], method: MethodChoice = TORCH) -> None:
        super().__init__()
        assert config.pooling is not None, "models that generate text have a class of their own"
        self.model = language_model.make_body(config, method)
        self.score: nn.Module | None = None
        if config.architecture.endswith("ForRewardModel"):
            self.score = TwoLayerHead(config, config.pooling.dim, ("0", "2"), torch.relu)
        elif config.pooling.is_classifier:
            self.score = Linear("score", config.hidden_size, config.pooling.dim, bias=False, dtype=torch_dtype(config))

    def run(self, ops: Ops[Value], head: LMHead | None = None) -> Value:
        """Run the body; pooling and scores follow elsewhere."""
        return self.model.run_on(ops)

    def compute_logits(self, hidden_states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """Class scores, or the states themselves: float32 ``[num_rows, dim]``."""
        scores = self.project(hidden_states)
        return scores if out is None else out.copy_(scores)

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """What follows the pooling: float32 ``[R, hidden_size]`` to float32 ``[R, dim]``."""
        if self.score is None:
            return pooled.float()
        scores: torch.Tensor = self.score(pooled.to(next(self.score.parameters()).dtype))
        return scores.float()

    def own_name(self, name: str) -> str | None:
        own_name = super().own_name(name)
        return None if own_name is None or own_name.startswith("lm_head.") else own_name
