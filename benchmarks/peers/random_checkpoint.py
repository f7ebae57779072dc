"""A checkpoint with random weights, and a tokenizer of made-up words that fills its vocabulary."""

from __future__ import annotations

import contextlib
import itertools
import json
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import torch
from benchmarks.peers.shapes import SHAPES, norm_offset, tensor_shapes
from safetensors.torch import save_file

END = "<|endoftext|>"


def add_model_options(parser: ArgumentParser, shape: str) -> None:
    """Add the options that :func:`chosen_checkpoint` reads; ``shape`` is the default."""
    parser.add_argument("--model-path", type=Path, help="by default a random checkpoint")
    parser.add_argument("--shape", default=shape, choices=sorted(SHAPES), help="of the random checkpoint")


@contextlib.contextmanager
def chosen_checkpoint(options: Namespace) -> Iterator[tuple[Path, Path]]:
    """Yield the checkpoint that the options name, or a random one, and a directory for what is made of it."""
    with tempfile.TemporaryDirectory(prefix="bough-benchmark-") as directory:
        source = options.model_path or Path(directory, "checkpoint")
        if options.model_path is None:
            write_checkpoint(source, SHAPES[options.shape])
        yield source, Path(directory)


def write_checkpoint(directory: Path, config: dict[str, Any]) -> None:
    """Write ``config.json``, ``model.safetensors`` in bfloat16 and the tokenizer's files. The same at every call."""
    directory.mkdir()
    generator, offset = torch.Generator().manual_seed(0), norm_offset(config)
    tensors = {
        name: random_tensor(shape, config["initializer_range"], generator, 1.0 - offset if "norm" in name else 0.0)
        for name, shape in tensor_shapes(config).items()
    }
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    tokenizer_config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": END, "eos_token": END}
    for name, content in (
        ("config.json", config),
        ("generation_config.json", {"bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"]}),
        ("tokenizer.json", make_tokenizer(config["vocab_size"])),
        ("tokenizer_config.json", tokenizer_config),
    ):
        directory.joinpath(name).write_text(json.dumps(content), encoding="utf-8")


def random_tensor(
    shape: tuple[int, ...], deviation: float, generator: torch.Generator, mean: float = 0.0
) -> torch.Tensor:
    """Normally distributed weights, in bfloat16."""
    values = torch.empty(shape, dtype=torch.float32).normal_(0.0, deviation, generator=generator)
    return (values + mean).to(torch.bfloat16)


def make_tokenizer(vocab_size: int) -> dict[str, Any]:
    """``tokenizer.json`` of a byte-level BPE whose tokens are the bytes, words of two to four letters, and an end.

    Args:
        vocab_size: number of tokens; between 18,509 and 475,465.
    """
    letters = list(ascii_lowercase)
    pairs = [a + b for a, b in itertools.product(letters, letters)]
    merges = [(a, b) for a, b in itertools.product(letters, letters)]
    merges += itertools.product(pairs, letters)
    missing = vocab_size - 1 - 256 - len(merges)
    merges += itertools.islice(itertools.product(pairs, pairs), missing)
    tokens = [*_byte_characters(), *(a + b for a, b in merges)]
    assert len(tokens) == vocab_size - 1 == len(set(tokens))
    end = {"id": vocab_size - 1, "content": END, "single_word": False, "lstrip": False, "rstrip": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [end | {"normalized": False, "special": True}],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: index for index, token in enumerate([*tokens, END])},
            "merges": [list(merge) for merge in merges],
        },
    }


def _byte_characters() -> list[str]:
    """The characters that stand for the 256 bytes in byte-level BPE: printable ones for themselves (GPT-2's table)."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = itertools.count(256)
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]
