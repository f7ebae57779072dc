"""Microseconds per token of incremental decoding, stop matching and the detokenizer's whole step.

Compared with ``tokenizers.decoders.DecodeStream`` in the same run: it does the job of the incremental decoder, in Rust.

    python benchmarks/detokenizer.py [--tokenizer PATH] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers
from tokenizers.decoders import DecodeStream

from bough.ipc.messages import BatchStrOutput, BatchTokenIDOutput, DecodeInit, OutputDelta
from bough.managers.detokenizer_manager import DetokenizerManager
from bough.tokenization.incremental_decoder import incremental_decoder
from bough.tokenization.pieces import DecoderKind
from bough.tokenization.stop_matcher import StopMatcher
from bough.tokenization.tokenizer import Tokenizer

ROUNDS = 7
NUM_TOKENS = 20_000
NUM_REQUESTS = 256
STOP_STRINGS = ("\n\nUser:", "</answer>", "STOP", "###")
STOP_REGEX = (r"\n\n(?:User|Human):",)

WORDS = ["the", "of", "model", "naïve", "café", "快速", "すばやい", "😀", "value", "0.25", "def", "return", "été"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tokenizer", type=Path, help="a checkpoint with a byte-level tokenizer (default: a small one)"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    backend = Backend.from_file(str(args.tokenizer / "tokenizer.json")) if args.tokenizer else byte_level()
    results = measure(backend)
    print(f"{'':46}{'µs/token':>10}{'ratio to DecodeStream':>24}")
    for name, figures in results.items():
        print(f"{name:46}{figures['us_per_token']:10.3f}{figures['ratio']:24.2f}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def measure(backend: Backend) -> dict[str, dict[str, float]]:
    tokenizer = Tokenizer(backend)
    windowed = Tokenizer(backend)
    windowed.decoder_kind = DecoderKind.OTHER
    sentencepiece = Tokenizer(metaspace())
    generator = random.Random(0)
    text = " ".join(generator.choice(WORDS) for _ in range(NUM_TOKENS))
    ids = tokenizer.encode(text).tolist()[:NUM_TOKENS]
    meta_ids = sentencepiece.encode(text).tolist()[:NUM_TOKENS]

    def stream() -> None:
        step = DecodeStream(skip_special_tokens=True).step
        for token_id in ids:
            step(backend, token_id)

    def decode(with_: Tokenizer, given: Sequence[int]) -> Callable[[], None]:
        def run() -> None:
            push = incremental_decoder(with_, given[:5]).push
            for token_id in given:
                push((token_id,))

        return run

    def stops(stop: Sequence[str], regex: Sequence[str]) -> Callable[[], None]:
        def run() -> None:
            decoder = incremental_decoder(tokenizer, ids[:5])
            matcher = StopMatcher(stop, regex)
            for token_id in ids:
                new, _ = decoder.push((token_id,))
                if new:
                    matcher.push(new)

        return run

    cases: dict[str, Callable[[], None]] = {
        "tokenizers DecodeStream": stream,
        "byte-level": decode(tokenizer, ids),
        "metaspace": decode(sentencepiece, meta_ids),
        "any decoder (window)": decode(windowed, ids),
        f"byte-level, {len(STOP_STRINGS)} stop strings": stops(STOP_STRINGS, ()),
        "byte-level, 1 stop pattern": stops((), STOP_REGEX),
    }
    times = {name: best(case) / len(ids) for name, case in cases.items()}
    times |= batches(tokenizer, ids)
    base = times["tokenizers DecodeStream"]
    return {name: {"us_per_token": t * 1e6, "ratio": t / base} for name, t in times.items()}


def batches(tokenizer: Tokenizer, ids: Sequence[int]) -> dict[str, float]:
    """Seconds per delta of one step of ``NUM_REQUESTS`` requests, one token each."""
    manager = DetokenizerManager(tokenizer)
    rids = [f"{i:032x}" for i in range(NUM_REQUESTS)]
    begin = [OutputDelta(rid, [ids[0]], decode=DecodeInit(list(ids[:5]))) for rid in rids]
    manager.handle_batch(BatchTokenIDOutput(begin))
    encode = msgspec.msgpack.Encoder().encode
    read = msgspec.msgpack.Decoder(BatchTokenIDOutput).decode
    steps = [
        encode(
            BatchTokenIDOutput(
                [
                    OutputDelta(rid, [ids[(step + 37 * i) % len(ids)]], completion_tokens=step, prompt_tokens=9)
                    for i, rid in enumerate(rids)
                ]
            )
        )
        for step in range(50)
    ]

    def coding() -> None:
        for frame in steps:
            encode(BatchStrOutput(read(frame).deltas))

    def whole() -> None:
        for frame in steps:
            encode(manager.handle_batch(read(frame)))

    per_delta = len(steps) * NUM_REQUESTS
    only_coding, everything = best(coding) / per_delta, best(whole) / per_delta
    return {
        f"step of {NUM_REQUESTS}: message coding alone": only_coding,
        f"step of {NUM_REQUESTS}: coding and handle_batch": everything,
        f"step of {NUM_REQUESTS}: handle_batch (difference)": everything - only_coding,
    }


def best(case: Callable[[], None]) -> float:
    """Seconds of the fastest of several rounds; the first one fills caches and does not count."""
    case()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        case()
        times.append(time.perf_counter() - begin)
    return min(times)


def byte_level() -> Backend:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    return backend


def metaspace() -> Backend:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.train_from_iterator([" ".join(WORDS)] * 3, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    return backend


if __name__ == "__main__":
    main()
