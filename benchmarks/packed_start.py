"""Starts from a packed state beside starts from the checkpoint, with what they generate and how fast.

The checkpoint, by default a random one in the shape of Llama 3.2 1B, is packed once. Then engines start in turn from
the checkpoint, which packs and quantises, and from the packed state. Of each start the seconds from the first open of
a file of weights to the complete model and those until the engine takes requests are shown, and of each engine tokens
per second of greedy decoding, one sequence at a time. All have to generate the same tokens with the same logprobs.

    python -m benchmarks.packed_start --output results/packed_start.json
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.random_checkpoint import add_model_options, chosen_checkpoint

from bough import Engine
from bough.bench.options import write_json

PROMPT = list(range(100, 132))
TOKENS = 128
CACHE_TOKENS = 4096


def measure(path: Path, turns: int, **options: Any) -> tuple[dict[str, float], Any]:
    """Figures of one engine, and what it has generated."""
    begin = time.perf_counter()
    with Engine(model_path=str(path), skip_tokenizer_init=True, max_total_tokens=CACHE_TOKENS, **options) as engine:
        ready = time.perf_counter() - begin
        load = engine.get_server_info()["timings"]["load_weights"]
        greedy = {"temperature": 0.0, "max_new_tokens": TOKENS, "ignore_eos": True}
        told = engine.generate(input_ids=PROMPT, sampling_params=greedy, return_logprob=True)
        seconds = []
        for _ in range(turns):
            begin = time.perf_counter()
            engine.generate(input_ids=PROMPT, sampling_params=greedy)
            seconds.append(time.perf_counter() - begin)
    figures = {"load_s": load, "ready_s": ready, "decode_tokens_per_s": TOKENS / statistics.median(seconds)}
    return figures, (told["output_ids"], told["meta_info"]["output_token_logprobs"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_options(parser, "llama")
    parser.add_argument("--quantization", default="int4", choices=("none", "int8", "int4"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=5, help="measured answers of each engine")
    parser.add_argument("--output", type=Path, default=Path("results/packed_start.json"))
    args = parser.parse_args()
    with chosen_checkpoint(args) as (source, directory):
        packed = directory / "packed"
        options = {"quantization": args.quantization}
        with Engine(
            model_path=str(source), skip_tokenizer_init=True, max_total_tokens=CACHE_TOKENS, **options
        ) as engine:
            begin = time.perf_counter()
            engine.save_packed_state(str(packed))
            save_s = time.perf_counter() - begin
        pairs = []
        for _ in range(args.pairs):
            fresh, expected = measure(source, args.turns, **options)
            quick, generated = measure(packed, args.turns)
            assert generated == expected, "the packed state has other weights"
            pairs.append({"checkpoint": fresh, "packed": quick})
    names = list(pairs[0]["packed"])
    medians = {
        kind: {name: statistics.median(pair[kind][name] for pair in pairs) for name in names} for kind in pairs[0]
    }
    ratios = {
        name: statistics.median(pair["packed"][name] / pair["checkpoint"][name] for pair in pairs) for name in names
    }
    print(f"{'':12}" + "".join(f"{name:>22}" for name in names))
    for kind, values in {**medians, "ratio": ratios}.items():
        print(f"{kind:12}" + "".join(f"{values[name]:22.3f}" for name in names))
    print(f"saving took {save_s:.1f} s; all outputs are equal")
    write_json(args.output, {"save_s": save_s, "pairs": pairs, "medians": medians, "ratios": ratios})


if __name__ == "__main__":
    main()
