"""RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2019): BERT with other positions and another head."""

from __future__ import annotations

import torch
from torch import nn

from bough.config.model_config import ModelConfig
from bough.layers.linear import Linear
from bough.models.base import torch_dtype
from bough.models.bert import BertModel


class RobertaModel(BertModel):
    """RoBERTa without a head."""

    prefix = "roberta."
    unused = ("pooler.", "lm_head.")


class RobertaClassificationHead(nn.Module):
    """Two layers on top of the first token's state; the names are the checkpoint's."""

    def __init__(self, config: ModelConfig, num_labels: int) -> None:
        super().__init__()
        size, dtype = config.hidden_size, torch_dtype(config)
        self.hidden = Linear("dense", size, size, bias=True, dtype=dtype)
        self.output = Linear("out_proj", size, num_labels, bias=True, dtype=dtype)

    def forward(self, pooled: torch.Tensor) -> torch.Tensor:
        """``[R, hidden_size]`` to ``[R, num_labels]``."""
        scores: torch.Tensor = self.output(torch.tanh(self.hidden(pooled)))
        return scores


class RobertaForSequenceClassification(RobertaModel):
    """RoBERTa with class scores."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        assert config.pooling is not None, "a classifier pools"
        self.classifier = RobertaClassificationHead(config, config.pooling.dim)

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """Class scores, float32 ``[R, num_labels]``."""
        scores: torch.Tensor = self.classifier(pooled.to(self.classifier.hidden.weight.dtype))
        return scores.float()


RobertaForMaskedLM = XLMRobertaForMaskedLM = XLMRobertaModel = RobertaModel
"""XLM-RoBERTa has the same architecture, and nothing asks for the head that guesses words."""

XLMRobertaForSequenceClassification = RobertaForSequenceClassification
