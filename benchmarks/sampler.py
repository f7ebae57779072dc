"""Time to choose tokens, beside the obvious implementation and the time to read the logits once.

Run with ``python benchmarks/sampler.py [--output FILE]``. The obvious implementation is what one writes first: argmax
for greedy rows, softmax and multinomial for plain sampling, and a full sort of the vocabulary for top-k and top-p. All
three are measured in turn, on the same logits and threads; figures are medians. ``peaked`` logits have most of their
mass in some dozens of tokens, as those of language models do; ``flat`` ones spread it over most of the vocabulary, the
worst case for a selection.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from bough.layers.sampler import Sampler
from bough.sampling.device_state import SamplingState
from bough.sampling.sampling_params import ALL_TOKENS, SamplingParams
from bough.step_plan import NewRequest, ReqSlot

KINDS = {
    "greedy": SamplingParams(temperature=0.0),
    "temperature": SamplingParams(temperature=0.8),
    "top-p": SamplingParams(temperature=0.8, top_p=0.9),
    "top-k+top-p": SamplingParams(temperature=0.8, top_k=50, top_p=0.9),
}


def make_logits(rows: int, vocab_size: int, shape: str, device: torch.device) -> torch.Tensor:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((rows, vocab_size), dtype=np.float32)
    if shape == "peaked":
        head = np.linspace(16.0, 3.0, 200, dtype=np.float32)
        for row in logits:
            row[rng.choice(vocab_size, 200, replace=False)] += head
    return torch.from_numpy(logits).to(device)


def make_sampler(rows: int, vocab_size: int, params: SamplingParams, device: torch.device) -> Sampler:
    state = SamplingState(rows, vocab_size, device)
    nothing = np.zeros(0, dtype=np.int32)
    for slot in range(rows):
        state.admit(NewRequest(ReqSlot(slot), params, slot, (), 1, nothing))
    return Sampler(state)


def obvious(logits: torch.Tensor, params: SamplingParams) -> torch.Tensor:
    if params.is_greedy:
        return logits.argmax(-1)
    probabilities = torch.softmax(logits / params.temperature, -1)
    if params.top_p == 1.0 and params.top_k == ALL_TOKENS:
        return torch.multinomial(probabilities, 1)
    ordered, ids = probabilities.sort(-1, descending=True)
    drop = ordered.cumsum(-1) - ordered >= params.top_p
    if params.top_k != ALL_TOKENS:
        drop[:, params.top_k :] = True
    ordered[drop] = 0.0
    return ids.gather(1, torch.multinomial(ordered, 1))


def median_seconds(functions: dict[str, Callable[[], object]], budget: float, device: torch.device) -> dict[str, float]:
    """Run the functions in turn until ``budget`` seconds are spent, twice at least."""
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    start = time.perf_counter()
    while len(samples[next(iter(samples))]) < 2 or time.perf_counter() - start < budget:
        for name, function in functions.items():
            if device.type == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter()
            function()
            if device.type == "cuda":
                torch.cuda.synchronize()
            samples[name].append(time.perf_counter() - begin)
    return {name: statistics.median(values) for name, values in samples.items()}


@torch.inference_mode()
def measure(
    rows: int, vocab_size: int, kind: str, shape: str, budget: float, device: torch.device
) -> dict[str, object]:
    params = KINDS[kind]
    logits = make_logits(rows, vocab_size, shape, device)
    sampler = make_sampler(rows, vocab_size, params, device)
    slots = np.arange(rows, dtype=np.int32)
    seconds = median_seconds(
        {
            "bough": lambda: sampler.sample(logits, slots),
            "obvious": lambda: obvious(logits, params),
            "read": logits.sum,
        },
        budget,
        device,
    )
    return {
        "vocab_size": vocab_size,
        "rows": rows,
        "kind": kind,
        "logits": shape,
        "bough_us": seconds["bough"] * 1e6,
        "obvious_us": seconds["obvious"] * 1e6,
        "read_us": seconds["read"] * 1e6,
        "times_faster_than_obvious": seconds["obvious"] / seconds["bough"],
        "times_the_read": seconds["bough"] / seconds["read"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, help="write the figures to this file as JSON")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds per line (default 0.5)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads of torch")
    parser.add_argument("--device", default="cpu", help="torch device (default cpu)")
    parser.add_argument("--vocab-size", type=int, nargs="+", default=[151_936, 8_192])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32, 256])
    parser.add_argument("--logits", choices=["peaked", "flat"], nargs="+", default=["peaked"])
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    print(
        f"{'vocabulary':>10} {'rows':>5} {'logits':>7} {'kind':<12} {'µs':>10} {'µs/row':>8} {'faster':>8} {'reads':>7}"
    )
    figures = []
    for vocab_size in args.vocab_size:
        for rows in args.rows:
            for shape in args.logits:
                for kind in KINDS:
                    line = measure(rows, vocab_size, kind, shape, args.budget, device)
                    figures.append(line)
                    print(
                        f"{vocab_size:>10} {rows:>5} {shape:>7} {kind:<12} {line['bough_us']:>10.1f} "
                        f"{line['bough_us'] / rows:>8.2f} {line['times_faster_than_obvious']:>7.1f}x "
                        f"{line['times_the_read']:>7.1f}",
                        flush=True,
                    )
    if args.output:
        environment = {"torch": torch.__version__, "threads": args.threads, "device": args.device}
        args.output.write_text(json.dumps({"environment": environment, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
