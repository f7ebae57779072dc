"""What quantisation costs in quality, beside llama.cpp's formats of as many bits on the same weights.

Run with ``python -m benchmarks.quantization_quality [--texts N] [--length N] [--output FILE]``. The models are the
bundled one and random ones of two families, as they are and with outliers in three channels: activations 20 or 100
times larger (with weights as much smaller in the bundled model, so that it still computes the same), or weights
larger and activations smaller. ``error`` is that of the logits against float32, relative; ``perplexity`` that of text
which the float32 model has written. Q8_0 and Q4_0 are emulated in float32 (``tests/common_formats.py``): rounded
weights, inputs of products rounded to Q8_0, embeddings and head in Q8_0.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers
from tests.model_executor.quality import COMMON_FORMATS, bundled_model, measure, plant_outliers, sampled_texts
from tests.models.checkpoints import save_checkpoint

RANDOM = {"hidden_size": 256, "intermediate_size": 512, "vocab_size": 512}


def models(directory: Path) -> Iterator[tuple[str, Any]]:
    for factor in (1.0, 20.0, 100.0, 1 / 20, 1 / 100):
        model = bundled_model()
        plant_outliers(model, factor)
        what = f"activations x{factor:g}" if factor > 1 else f"weights x{1 / factor:g}"
        yield "bundled" if factor == 1 else f"bundled, {what}", model
    for family in ("Qwen2", "Llama"):
        for factor in (1.0, 20.0, 100.0):
            model = save_checkpoint(directory, family, tie_word_embeddings=True, **RANDOM).reference
            plant_outliers(model, factor, weights=False)
            yield f"random {family}" if factor == 1 else f"random {family}, activations x{factor:g}", model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--length", type=int, default=200, help="tokens of each text")
    args = parser.parse_args()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)  # the models are small
    print(f"{'model':<34} {'':>5} {'error':>8} {'perplexity':>11} {'':>6} {'error':>8} {'perplexity':>11} {'ratio':>6}")
    figures = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for model_name, model in models(directory):
            texts = sampled_texts(model, args.texts, args.length)
            for kind, common in COMMON_FORMATS.items():
                ours, theirs = measure(model, directory, kind, texts)
                figures.append({"model": model_name, kind: asdict(ours), common: asdict(theirs)})
                print(
                    f"{model_name:<34} {kind:>5} {ours.error:>8.4f} {ours.perplexity:>11.4f} {common:>6} "
                    f"{theirs.error:>8.4f} {theirs.perplexity:>11.4f} {ours.error / theirs.error:>6.3f}",
                    flush=True,
                )
    if args.output:
        args.output.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
