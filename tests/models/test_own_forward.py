"""Models of other packages: a ``forward`` for torch is not recorded as that of the class that it is derived from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from bough.config.model_config import ModelConfig
from bough.config.model_facts import DenseFacts
from bough.errors import ConfigError
from bough.layers.attention.radix_attention import RadixAttention
from bough.layers.forward_batch import ForwardBatch
from bough.layers.linear_method import TORCH, MethodChoice
from bough.layers.ops import NotRecordable
from bough.layers.recorded_ops import RecordOps
from bough.models.llama import LlamaForCausalLM, LlamaModel
from tests.models.checkpoints import save_checkpoint


class Zeros:
    """Mixed in before a family's class."""

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        return torch.zeros(batch.num_tokens, 48)


class MixedForCausalLM(Zeros, LlamaForCausalLM):
    pass


class OwnBody(LlamaModel):
    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        return torch.zeros(batch.num_tokens, 48)


class BodiedForCausalLM(LlamaForCausalLM):
    @classmethod
    def make_body(cls, config: ModelConfig, method: MethodChoice) -> LlamaModel:
        body = super().make_body(config, method)
        body.__class__ = OwnBody
        return body


def test_a_forward_is_torch_s_alone(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "Llama")
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    for family in (MixedForCausalLM, BodiedForCausalLM):
        with pytest.raises(NotRecordable):
            family(config, TORCH).run_on(RecordOps(Mock(), Mock()))


def test_sinks_of_another_type_are_torch_s() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        attention = RadixAttention(2, 8, 1, 0, sinks=torch.zeros(2, dtype=dtype))
        with pytest.raises(NotRecordable):
            RecordOps(Mock(), Mock()).attend(attention, Mock(), None)


def test_a_gate_that_is_not_there_is_named(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "Llama")
    config = ModelConfig.from_path(str(tmp_path), device="cpu")
    relu = DenseFacts(width=80, activation="relu")
    layers = tuple(replace(layer, feed_forward=relu) for layer in config.layers)
    with pytest.raises(ConfigError, match="'relu'"):
        LlamaForCausalLM(replace(config, layers=layers), TORCH)
