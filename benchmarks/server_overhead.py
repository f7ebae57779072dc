"""The whole server with the model's cost nearly taken away: 2 layers, hidden size 64, a vocabulary of 8,192.

With ``--fake`` it is taken away altogether: the fake device computes tokens by a hash; all else is as it is.

Streams of 128 tokens from prompts of 32 ids, at several numbers of streams at once, against a real server on this
machine, with the client on it too. Events are those that the client counted: fewer than tokens where it was too late
for one each.

    python benchmarks/server_overhead.py --output results/server_overhead.json [flags of bough serve]
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from bough.bench.datasets import DatasetArgs
from bough.bench.options import write_json
from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.server_args import ServerArgs
from run_all import running_server, serve, warm_up

FAKE_PACKAGE = Path(__file__).parents[1] / "tests" / "fake_model"
FAKE_ARCHITECTURE = "BoughFakeForCausalLM"
VOCAB_SIZE = 8192
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "vocab_size": VOCAB_SIZE,
    "tie_word_embeddings": True,
    "eos_token_id": 0,
    "torch_dtype": "bfloat16",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class OverheadArgs(OptionTable):
    concurrency: str = option("1,16,64,256", help="Numbers of streams at once.", group="Run", metavar="N,N,…")
    fake: bool = option(False, help="No model at all.", group="Run")
    repeats: int = option(3, help="Runs of each; the one with the median duration is kept.", group="Run", minimum=1)
    output: str = option("results/server_overhead.json", help="Where the figures go.", group="Run", metavar="FILE")


def make_checkpoint(directory: Path, config: dict[str, Any]) -> None:
    """``config.json`` for dummy weights, and a byte-level BPE tokenizer of made-up words."""
    directory.joinpath("config.json").write_text(json.dumps(config), encoding="utf-8")
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(20_000)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB_SIZE,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(words)], trainer)
    tokenizer.save(str(directory / "tokenizer.json"))
    directory.joinpath("tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}', encoding="utf-8")


def cpu_seconds_of_servers() -> dict[str, float]:
    """Processor seconds so far of each process of the servers that this process has started."""
    usage: dict[str, float] = {}
    for process in psutil.Process().children(recursive=True):
        command = " ".join(process.cmdline())
        name = next((part for part in ("scheduler", "detokenizer") if part in command), "main")
        times = process.cpu_times()
        usage[name] = times.user + times.system
    return usage


def measure(url: str, streams: int, repeats: int) -> dict[str, Any]:
    """The median run with ``streams`` at once; also the processor time that each process used for a token."""
    dataset = DatasetArgs(
        num_prompts=max(2 * streams, 8),
        random_input_len=32,
        random_output_len=128,
        random_range_ratio=1.0,
        vocab_size=VOCAB_SIZE,
    )
    runs = []
    for _ in range(repeats):
        warm_up(url)
        before = cpu_seconds_of_servers()
        result = serve(url, dataset, max_concurrency=streams)
        after = cpu_seconds_of_servers()
        tokens = result["total_output_tokens"]
        result["cpu_us_per_token"] = {name: (after[name] - before[name]) / tokens * 1e6 for name in after}
        runs.append(result)
    return sorted(runs, key=lambda run: run["duration"])[len(runs) // 2]


def main(argv: list[str]) -> None:
    """Measure and print."""
    parser = CommandParser(prog="server_overhead.py", usage="server_overhead.py [flags]", description=__doc__ or "")
    add_options(parser, OverheadArgs)
    add_options(parser, ServerArgs)
    add_config_option(parser)
    namespace = parser.parse_args(argv)
    args = OverheadArgs(**given_options(namespace, OverheadArgs))
    if args.fake:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(FAKE_PACKAGE), os.environ.get("PYTHONPATH"))))
    results = []
    with tempfile.TemporaryDirectory() as directory:
        make_checkpoint(Path(directory), {**CONFIG, "architectures": [FAKE_ARCHITECTURE]} if args.fake else CONFIG)
        options = {
            "max_running_requests": 256,
            "max_total_tokens": 256 * 192,
            **given_options(namespace, ServerArgs, config=namespace.config),
            "model_path": directory,
            "load_format": "dummy",
        }
        with running_server(options) as url:
            serve(url, DatasetArgs(num_prompts=64, random_input_len=32, random_output_len=32, vocab_size=VOCAB_SIZE))
            for streams in map(int, args.concurrency.split(",")):
                results.append({"streams": streams, **measure(url, streams, args.repeats)})
    heads = f"{'streams':>8} {'tokens/s':>10} {'events/s':>10} {'ITL p50 ms':>11}"
    print(heads + "   µs of processor time per token, by process")
    for result in results:
        shares = ", ".join(f"{name} {value:.0f}" for name, value in sorted(result["cpu_us_per_token"].items()))
        print(
            f"{result['streams']:8} {result['output_throughput']:10.0f} "
            f"{result['total_events'] / result['duration']:10.0f} {result['p50_itl_ms']:11.2f}   {shares}, "
            f"client {result['client_cpu_seconds'] / result['total_output_tokens'] * 1e6:.0f}"
        )
    write_json(Path(args.output), {"results": results})


if __name__ == "__main__":
    main(sys.argv[1:])
