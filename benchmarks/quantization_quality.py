"""What quantisation costs in quality, beside llama.cpp's formats of as many bits on the same weights.

Run with ``python -m benchmarks.quantization_quality [--texts N] [--length N] [--choices N] [--only PART] [--output
FILE]``; it needs transformers, which ``make test`` installs and ``make serve`` does not.

The models are the bundled one and random ones of two families, as they are and with outliers in three channels:
activations 20 or 100 times larger (with weights as much smaller in the bundled model, so that it still computes the
same), or weights larger and activations smaller. Rescaled: all channels are, at random by a tenth, so that the bundled
model computes the same and all of its numbers are rounded anew. ``error`` is that of the logits against float32,
relative; ``perplexity`` that of text which the float32 model has written. Q8_0 and Q4_0 are emulated in float32
(``tests/common_formats.py``): rounded weights, inputs of products rounded to Q8_0, embeddings and head in Q8_0.

Which channels are large is much a matter of chance, and so is which way single numbers are rounded: the last column is
the ratio of the errors, the geometric mean over the choices, and its standard error.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
import transformers
from tests.model_executor.quality import (
    COMMON_FORMATS,
    Quality,
    bundled_model,
    measure,
    plant_outliers,
    rescale,
    sampled_texts,
)
from tests.models.checkpoints import save_checkpoint

CHANNELS = 3
"""How many are large."""

RANDOM = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512}


def choices(count: int) -> list[tuple[int, ...]]:
    """Channels of the residual stream, the same ones every time."""
    generator = torch.Generator().manual_seed(1)
    size = RANDOM["hidden_size"]  # that of the bundled model, too
    return [tuple(torch.randperm(size, generator=generator)[:CHANNELS].tolist()) for _ in range(count)]


def models(directory: Path, channels: Sequence[tuple[int, ...]], only: str) -> Iterator[tuple[str, list[Any]]]:
    """Names that contain ``only``, and under each a model for every choice of channels."""

    def planted(make: Callable[[], Any], factor: float, weights: bool) -> list[Any]:
        made = []
        for choice in channels[: 1 if factor == 1 else None]:
            made.append(make())
            plant_outliers(made[-1], factor, weights=weights, channels=choice)
        return made

    if only in "bundled, rescaled":
        several = [bundled_model() for _ in channels]
        for seed, model in enumerate(several):
            rescale(model, seed)
        yield "bundled, rescaled", several
    for factor in (1.0, 20.0, 100.0, 1 / 20, 1 / 100):
        what = f"activations x{factor:g}" if factor > 1 else f"weights x{1 / factor:g}"
        name = "bundled" if factor == 1 else f"bundled, {what}"
        if only in name:
            yield name, planted(bundled_model, factor, True)
    for family in ("Qwen2", "Llama"):
        make = partial(save_checkpoint, directory, family, tie_word_embeddings=True, **RANDOM)
        for factor in (1.0, 20.0, 100.0):
            name = f"random {family}" if factor == 1 else f"random {family}, activations x{factor:g}"
            if only in name:
                yield name, planted(lambda make=make: make().reference, factor, False)


def mean(qualities: Sequence[Quality]) -> Quality:
    names = [field.name for field in fields(Quality)]
    return Quality(**{name: sum(getattr(each, name) for each in qualities) / len(qualities) for name in names})


def ratio(pairs: Sequence[tuple[Quality, Quality]]) -> tuple[float, float]:
    """Of errors, the geometric mean, and its standard error."""
    logarithms = [math.log(ours.error / theirs.error) for ours, theirs in pairs]
    middle = math.exp(fmean(logarithms))
    return middle, middle * stdev(logarithms) / math.sqrt(len(pairs)) if len(pairs) > 1 else math.nan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--length", type=int, default=200, help="tokens of each text")
    parser.add_argument("--choices", type=int, default=3, help="of the channels that are large")
    parser.add_argument("--only", default="", help="what the name of a model has to contain")
    args = parser.parse_args()
    if args.choices < 1:
        parser.error("argument --choices: must be at least 1")
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)  # the models are small
    print(
        f"{'model':<34} {'':>5} {'error':>8} {'perplexity':>11} {'':>6} {'error':>8} {'perplexity':>11} {'ratio':>14}"
    )
    figures = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for model_name, several in models(directory, choices(args.choices), args.only):
            texts = [sampled_texts(model, args.texts, args.length) for model in several]
            for kind, common in COMMON_FORMATS.items():
                pairs = [measure(model, directory, kind, text) for model, text in zip(several, texts, strict=True)]
                ours, theirs = mean([pair[0] for pair in pairs]), mean([pair[1] for pair in pairs])
                middle, spread = ratio(pairs)
                figure = {"model": model_name, kind: asdict(ours), common: asdict(theirs)}
                figures.append({**figure, "ratio": middle, "ratio_error": None if math.isnan(spread) else spread})
                print(
                    f"{model_name:<34} {kind:>5} {ours.error:>8.4f} {ours.perplexity:>11.4f} {common:>6} "
                    f"{theirs.error:>8.4f} {theirs.perplexity:>11.4f} {middle:>6.3f}"
                    + ("" if math.isnan(spread) else f" ± {spread:.3f}"),
                    flush=True,
                )
    if args.output:
        args.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
