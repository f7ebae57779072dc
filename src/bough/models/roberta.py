"""RoBERTa (Liu et al. 2019) and XLM-RoBERTa (Conneau et al. 2019): BERT with other positions and another head."""

from __future__ import annotations

import torch

from bough.config.model_config import ModelConfig
from bough.models.base import TwoLayerHead
from bough.models.bert import BertModel


class RobertaModel(BertModel):
    """RoBERTa without a head."""

    prefix = "roberta."
    unused = ("pooler.", "lm_head.")


class RobertaForSequenceClassification(RobertaModel):
    """RoBERTa with class scores."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        assert config.pooling is not None, "a classifier pools"
        self.classifier = TwoLayerHead(config, config.pooling.dim, ("dense", "out_proj"), torch.tanh)

    def project(self, pooled: torch.Tensor) -> torch.Tensor:
        """Class scores, float32 ``[R, num_labels]``."""
        scores: torch.Tensor = self.classifier(pooled.to(self.classifier.hidden.weight.dtype))
        return scores.float()


RobertaForMaskedLM = XLMRobertaForMaskedLM = XLMRobertaModel = RobertaModel
"""XLM-RoBERTa has the same architecture, and nothing asks for the head that guesses words."""

XLMRobertaForSequenceClassification = RobertaForSequenceClassification
