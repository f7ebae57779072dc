"""Tokenizers without a ``tokenizer.json``: read by ``transformers``, which is needed for nothing else."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer as Backend

from bough.errors import ConfigError
from bough.tokenization.pieces import DecoderKind
from bough.tokenization.tokenizer import SpecialTokens, TokenIds, Tokenizer
from bough.tokenization.tokenizer_files import TokenizerFiles


def load_with_transformers(files: TokenizerFiles) -> Tokenizer:
    """Load a tokenizer that only ``transformers`` can read, converting it to a fast one where that is possible.

    Code that a checkpoint brings along is never run.

    Raises:
        ConfigError: if ``transformers`` is not installed, or cannot read it either.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise ConfigError(
            f"{files.directory} has no tokenizer.json; install transformers to read other tokenizers "
            "(pip install transformers), or convert it once with AutoTokenizer and save_pretrained",
            param="tokenizer_path",
        ) from None
    try:
        loaded = AutoTokenizer.from_pretrained(str(files.directory), trust_remote_code=False, local_files_only=True)
    except Exception as error:  # anything from a missing file to a missing library
        reason = " ".join(str(error).split())[:300]
        raise ConfigError(
            f"{files.directory} has no tokenizer.json, and transformers cannot read its tokenizer: {reason}",
            param="tokenizer_path",
        ) from None
    backend = getattr(loaded, "backend_tokenizer", None)
    if isinstance(backend, Backend):
        return Tokenizer.from_backend(backend, files)
    return TransformersTokenizer(loaded, files)


class TransformersTokenizer(Tokenizer):
    """A tokenizer in Python, behind the same interface. Slower, and it holds the GIL while it works."""

    def __init__(self, loaded: Any, files: TokenizerFiles) -> None:
        self._loaded = loaded
        self.special = SpecialTokens.from_strings(files.special)
        self.chat_templates = dict(files.chat_templates)
        self.special_ids = frozenset(loaded.all_special_ids)
        self.decoder_kind = DecoderKind.OTHER
        self.vocab_size = len(loaded)
        self._decoder_config = None

    def _encode_batch(self, texts: Sequence[str], add_special_tokens: bool) -> list[TokenIds]:
        encode = self._loaded.encode
        return [array("i", encode(text, add_special_tokens=add_special_tokens)) for text in texts]

    def _max_token_bytes(self) -> int | None:
        return None

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

    def id_to_token(self, token_id: int) -> str | None:
        """See :meth:`Tokenizer.id_to_token`."""
        if not 0 <= token_id < self.vocab_size:
            return None
        token: str | None = self._loaded.convert_ids_to_tokens(token_id)
        return token

    def token_to_id(self, token: str) -> int | None:
        """See :meth:`Tokenizer.token_to_id`."""
        token_id: int | None = self._loaded.get_vocab().get(token)
        return token_id
