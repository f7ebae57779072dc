"""Which tokens end a sequence, by all files of a checkpoint. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bough.config.checkpoint import GGUF_SUFFIX, read_json
from bough.config.declared_tokens import declared_tokens, token_text
from bough.config.file_kinds import but_is
from bough.errors import CheckpointError


class _AddedToken(msgspec.Struct):
    id: int
    content: str


class _TokenizerFile(msgspec.Struct):
    added_tokens: list[_AddedToken] = []


_ENDS_OF_CALLS = ("<|eom_id|>", "<|call|>")
"""Tokens after which the model waits for the result of a call, those of Llama 3 and gpt-oss: they end a sequence even
where the files of a checkpoint do not say so."""


def read_eos_token_ids(
    config: dict[str, Any], generation_config: dict[str, Any], model: Path, tokenizer: Path, vocab_size: int
) -> tuple[int, ...]:
    """Union of what config.json, generation_config.json and the tokenizer call the end of a sequence, ascending.

    Args:
        config: the content of config.json, or what it would be of a GGUF file.
        generation_config: of generation_config.json in the same way.
        model: the checkpoint's directory, or GGUF file.
        tokenizer: the directory of the tokenizer, or a file there, or a GGUF file.
        vocab_size: ids from it on are left out.

    Raises:
        ConfigError: naming the file and the entry that is wrong.
    """
    found: set[int] = set()
    for source, values in (("config.json", config), ("generation_config.json", generation_config)):
        ids = values.get("eos_token_id")
        if ids is None:
            continue
        for token_id in ids if isinstance(ids, list) else [ids]:
            if isinstance(token_id, bool) or not isinstance(token_id, int):
                raise CheckpointError(
                    f"{source}: eos_token_id must be a token id or a list, got {ids!r}", param="model_path"
                )
            found.add(token_id)
    if tokenizer.suffix == GGUF_SUFFIX and tokenizer.is_file():
        if tokenizer != model:  # whose configuration has them already
            from bough.config.gguf_config import end_token_ids  # late: numpy
            from bough.config.gguf_file import GGUFFile

            found.update(end_token_ids(GGUFFile(tokenizer)))
    else:
        found |= _tokenizer_eos(tokenizer if tokenizer.is_dir() else tokenizer.parent)
    return tuple(sorted(token_id for token_id in found if 0 <= token_id < vocab_size))


def _tokenizer_eos(directory: Path) -> set[int]:
    """Ids of the tokens that end a sequence by the tokenizer's files, as far as they are known there: that which
    tokenizer_config.json names as ``eos_token``, and ends of messages that call something."""
    config_file = directory / "tokenizer_config.json"
    if not config_file.is_file():
        return set()
    config = read_json(config_file)
    if not isinstance(config, dict):
        return set()
    named = token_text(config_file, "eos_token", config.get("eos_token"))
    wanted = (named, *_ENDS_OF_CALLS)
    declared = declared_tokens(config_file, config)
    found = {entry["content"]: token_id for token_id, entry in declared.items() if entry["content"] in wanted}
    tokenizer_file = directory / "tokenizer.json"
    if named is not None and named not in found and tokenizer_file.is_file():
        try:
            tokens = msgspec.json.decode(tokenizer_file.read_bytes(), type=_TokenizerFile).added_tokens
        except (OSError, msgspec.DecodeError) as error:
            what = but_is(tokenizer_file) or f": {error}; download it again"
            raise CheckpointError(f"cannot read {tokenizer_file}{what}") from None
        found.update((entry.content, entry.id) for entry in tokens if entry.content in wanted)
    return set(found.values())
