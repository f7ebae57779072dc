"""Tokenizers without a ``tokenizer.json``: read by ``transformers``, which is needed for nothing else.

``python -m bough.tokenization.transformers_tokenizer DIRECTORY`` writes one JSON object to standard output:
``tokenizer`` (the converted tokenizer as text), ``python_only`` (whether it exists in Python only), ``error``. It
runs in a process of its own because ``transformers`` brings torch along, which the HTTP process and the detokenizer do
without.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from array import array
from collections.abc import Callable, Container, Sequence
from importlib.util import find_spec
from typing import Any

from tokenizers import Tokenizer as Backend

from bough.child_process import module_command, module_environment
from bough.errors import CheckpointError
from bough.tokenization.pieces import DecoderKind
from bough.tokenization.tokenizer import SpecialTokens, TokenIds, Tokenizer, check_room
from bough.tokenization.tokenizer_files import TokenizerFiles

logger = logging.getLogger(__name__)

CONVERSION_TIMEOUT_S = 300

_TOKENIZER_FILES = ("tokenizer*", "vocab*", "merges.txt", "*.model", "*.tiktoken", "*.spm")
"""One of these is there wherever transformers could find a tokenizer."""


def load_with_transformers(files: TokenizerFiles) -> Backend | Tokenizer:
    """Load a tokenizer that only ``transformers`` can read: a backend if it can be converted to one.

    It is converted in a process of its own, so that neither ``transformers`` nor the torch that comes with it are
    imported here. Only a tokenizer that is written in Python is imported into this process.

    Raises:
        ConfigError: if ``transformers`` is not installed, or cannot read it either.
    """
    if not any(any(files.directory.glob(pattern)) for pattern in _TOKENIZER_FILES):
        raise CheckpointError(
            f"{files.directory} has no tokenizer; name one with --tokenizer-path, or serve token ids with "
            "--skip-tokenizer-init",
            param="tokenizer_path",
        )
    if find_spec("transformers") is None:
        raise CheckpointError(
            f"{files.directory} has no tokenizer.json; install transformers to read other tokenizers "
            "(pip install transformers), or convert it once with AutoTokenizer and save_pretrained",
            param="tokenizer_path",
        )
    logger.warning(
        "%s has no tokenizer.json; converting its tokenizer takes some seconds at every start", files.directory
    )
    converted = _convert(files)
    if "tokenizer" in converted:
        backend = Backend.from_str(converted["tokenizer"])
        if backend.get_vocab_size(with_added_tokens=False) == 0:
            raise CheckpointError(
                f"{files.directory} has no tokenizer.json, and transformers finds no vocabulary in its other files",
                param="tokenizer_path",
            )
        return backend
    if not converted.get("python_only"):
        raise CheckpointError(
            f"{files.directory} has no tokenizer.json, and transformers cannot read its tokenizer: "
            f"{converted['error']}",
            param="tokenizer_path",
        )
    if files.lowers_text:
        raise CheckpointError(
            f"{files.directory}: do_lower_case of its pipeline is not supported by a tokenizer written in Python",
            param="tokenizer_path",
        )
    return TransformersTokenizer(_load(str(files.directory)), files)


def _convert(files: TokenizerFiles) -> dict[str, Any]:
    command = module_command("bough.tokenization.transformers_tokenizer", str(files.directory))
    try:
        result = subprocess.run(
            command, capture_output=True, check=True, timeout=CONVERSION_TIMEOUT_S, env=module_environment()
        )
        converted: dict[str, Any] = json.loads(result.stdout)
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return {"error": last or f"exit status {error.returncode}"}
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        return {"error": str(error)}
    return converted


class TransformersTokenizer(Tokenizer):
    """A tokenizer in Python, behind the same interface. Slower, and it holds the GIL while it works."""

    def __init__(self, loaded: Any, files: TokenizerFiles) -> None:
        self._loaded = loaded
        self._growth = None
        self.special = SpecialTokens.from_strings(files.special)
        self.chat_templates = dict(files.chat_templates)
        self.special_ids = frozenset(loaded.all_special_ids)
        self.decoder_kind = DecoderKind.OTHER
        self.vocab_size = len(loaded)
        self._decoder_steps = []

    def _encode_batch(self, texts: Sequence[str], add_special_tokens: bool) -> list[TokenIds]:
        encode = self._loaded.encode
        return [array("i", encode(text, add_special_tokens=add_special_tokens)) for text in texts]

    def encode_segments(
        self,
        segments: Sequence[tuple[str, str | None]],
        limits: Sequence[int | None],
        params: Sequence[str],
    ) -> list[tuple[TokenIds, bytes | None]]:
        loaded = self._loaded
        results: list[tuple[TokenIds, bytes | None]] = []
        for (first, second), limit, param in zip(segments, limits, params, strict=True):
            ids = loaded.encode(first, add_special_tokens=False)
            pair = None if second is None else loaded.encode(second, add_special_tokens=False)
            if limit is not None:
                room = limit - loaded.num_special_tokens_to_add(pair is not None) - (0 if pair is None else len(ids))
                check_room(room, limit, param)
                ids, pair = (ids[:room], None) if pair is None else (ids, pair[:room])
            whole = loaded.prepare_for_model(ids, pair, return_token_type_ids=True)
            types = None if pair is None else bytes(whole["token_type_ids"])
            results.append((array("i", whole["input_ids"]), types))
        return results

    @property
    def highest_id(self) -> int:
        """Same as :attr:`Tokenizer.highest_id`."""
        return self.vocab_size - 1

    @property
    def max_token_bytes(self) -> None:
        """No bound is known."""

    def decode(
        self,
        token_ids: Sequence[int],
        *,
        skip_special_tokens: bool = True,
        spaces_between_special_tokens: bool = True,
    ) -> str:
        """See :meth:`Tokenizer.decode`. Here ``spaces_between_special_tokens`` has an effect."""
        text: str = self._loaded.decode(
            list(token_ids),
            skip_special_tokens=skip_special_tokens,
            spaces_between_special_tokens=spaces_between_special_tokens,
            clean_up_tokenization_spaces=False,
        )
        return text

    def running_text_encoder(self, special_ids: Container[int] = ()) -> Callable[[str], Sequence[int]]:
        """See :meth:`Tokenizer.running_text_encoder`. All added tokens' strings are text, and prefixes may be put."""
        return lambda text: self._loaded.encode(text, add_special_tokens=False, split_special_tokens=True)

    def id_to_token(self, token_id: int) -> str | None:
        if not 0 <= token_id < self.vocab_size:
            return None
        token: str | None = self._loaded.convert_ids_to_tokens(token_id)
        return token

    def token_to_id(self, token: str) -> int | None:
        token_id: int | None = self._loaded.get_vocab().get(token)
        return token_id


def main() -> None:
    """Convert the tokenizer of the directory that the command line names."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed must not get in between
        json.dump(convert(sys.argv[1]), output)


def convert(directory: str) -> dict[str, Any]:
    """What ``main`` writes."""
    try:
        backend = getattr(_load(directory), "backend_tokenizer", None)
    except Exception as error:  # anything from a missing file to a missing library
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    if not isinstance(backend, Backend):
        return {"python_only": True}
    return {"tokenizer": backend.to_str()}


def _load(directory: str) -> Any:
    """The tokenizer as ``transformers`` reads it; code that a checkpoint brings along is never run."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(directory, trust_remote_code=False, local_files_only=True)


if __name__ == "__main__":
    main()
