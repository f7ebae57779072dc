"""How far a quantised model is from the one in float32, beside llama.cpp's formats on the same weights."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch
import transformers

from bough.config.engine_args import Quantization
from bough.step_plan import RowLogprobs
from tests.common_formats import compute_as
from tests.model_executor.plan_builder import PlanBuilder, int32, make_runner

COMMON_FORMATS: dict[Quantization, str] = {"int8": "Q8_0", "int4": "Q4_0"}

OUTLIERS = (3, 20, 41)
"""Channels of the residual stream."""


@dataclass(frozen=True)
class Quality:
    error: float
    """Of logits against float32: of their differences to the row's mean, root mean square, relative."""
    perplexity: float
    """Of text that the float32 model has written."""


def bundled_model() -> Any:
    """The model that comes with Bough, in float32."""
    with as_file(files("bough") / "assets" / "sapling") as path:
        return transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()


@torch.no_grad()
def plant_outliers(model: Any, factor: float, *, weights: bool = True, channels: tuple[int, ...] = OUTLIERS) -> None:
    """Make some channels larger where they enter products.

    Args:
        model: is changed.
        factor: below 1 they become smaller.
        channels: which.
        weights: make their weights smaller in turn, so that what is computed stays.
    """
    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for norm, projections in (
            (layer.input_layernorm, (attention.q_proj, attention.k_proj, attention.v_proj)),
            (layer.post_attention_layernorm, (mlp.gate_proj, mlp.up_proj)),
        ):
            norm.weight[list(channels)] *= factor
            if not weights:
                continue
            for projection in projections:
                projection.weight[:, list(channels)] /= factor


@torch.no_grad()
def rescale(model: Any, seed: int) -> None:
    """Make channels larger or smaller by about a tenth where they enter products, and their weights smaller or larger.

    What is computed stays, and all numbers are rounded anew.
    """
    generator = torch.Generator().manual_seed(seed)

    def factors(size: int) -> torch.Tensor:
        return torch.exp(0.1 * torch.randn(size, generator=generator))

    for layer in model.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for norm, projections in (
            (layer.input_layernorm, (attention.q_proj, attention.k_proj, attention.v_proj)),
            (layer.post_attention_layernorm, (mlp.gate_proj, mlp.up_proj)),
        ):
            by = factors(len(norm.weight))
            norm.weight *= by
            for projection in projections:
                projection.weight /= by
        by = factors(len(mlp.up_proj.weight))
        mlp.up_proj.weight *= by[:, None]
        mlp.down_proj.weight /= by


@torch.no_grad()
def sampled_texts(model: Any, count: int, length: int) -> list[list[int]]:
    """What a model says at temperature 1, the same every time."""
    generator = torch.Generator().manual_seed(1)
    texts = torch.randint(10, 200, (count, 1), generator=generator)
    cache = None
    for _ in range(length - 1):
        output = model(texts[:, -1:], past_key_values=cache, use_cache=True)
        cache = output.past_key_values
        texts = torch.cat([texts, output.logits[:, -1].softmax(-1).multinomial(1, generator=generator)], dim=1)
    rows: list[list[int]] = texts.tolist()
    return rows


def measure(reference: Any, directory: Path, kind: Quantization, texts: list[list[int]]) -> tuple[Quality, Quality]:
    """Quality of Bough's quantisation and of the common format of as many bits. Saves the model in ``directory``."""
    exact = _reference_logprobs(reference, texts)
    reference.save_pretrained(directory)
    ours = _native_logprobs(directory, kind, texts)
    common = copy.deepcopy(reference)
    compute_as(common, COMMON_FORMATS[kind])
    theirs = _reference_logprobs(common, texts)
    return _quality(ours, exact, texts), _quality(theirs, exact, texts)


@torch.no_grad()
def _reference_logprobs(model: Any, texts: list[list[int]]) -> list[torch.Tensor]:
    return list(model(torch.tensor(texts), use_cache=False).logits[:, :-1].log_softmax(-1))  # all of one length


def _native_logprobs(directory: Path, kind: Quantization, texts: list[list[int]]) -> list[torch.Tensor]:
    runner = make_runner(directory, dtype="float32", quantization=kind)
    every_id = tuple(range(runner.config.vocab_size))
    logprobs = []
    for text in texts:
        builder = PlanBuilder(runner)
        request = RowLogprobs(0, 0, int32(*text[1:]), 0, every_id)
        (answer,) = builder.step([(builder.add(text), len(text))], logprobs=(request,)).logprobs
        assert answer.target_chosen is not None
        logprobs.append(torch.from_numpy(answer.target_chosen))
    return logprobs


def _quality(logprobs: list[torch.Tensor], exact: list[torch.Tensor], texts: list[list[int]]) -> Quality:
    ours, theirs = torch.cat(logprobs).double(), torch.cat(exact).double()
    ours, theirs = ours - ours.mean(-1, keepdim=True), theirs - theirs.mean(-1, keepdim=True)
    tokens = torch.cat([torch.tensor(text[1:]) for text in texts])
    surprise = -torch.cat(logprobs).double().gather(-1, tokens[:, None]).mean()
    return Quality(float((ours - theirs).norm() / theirs.norm()), math.exp(float(surprise)))
