"""Load the tokenizer of a checkpoint, whatever its format."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer as Backend
from tokenizers import normalizers

from bough.config.checkpoint import GGUF_SUFFIX
from bough.config.file_kinds import but_is
from bough.errors import CheckpointError
from bough.tokenization.text_growth import TextGrowth
from bough.tokenization.tokenizer import SpecialTokens, Tokenizer
from bough.tokenization.tokenizer_files import TokenizerFiles, add_declared_tokens, surround
from bough.tokenization.transformers_tokenizer import load_with_transformers
from bough.tokenization.wordpiece import load_wordpiece


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Load the tokenizer of a checkpoint: a local directory, a ``tokenizer.json``, or a GGUF file.

    Raises:
        ConfigError: if there is no tokenizer in it, or none that can be read.
    """
    if Path(path).suffix == GGUF_SUFFIX:
        from bough.tokenization.gguf_tokenizer import load_gguf_tokenizer  # late: numpy

        return _completed(*load_gguf_tokenizer(Path(path)))
    files = TokenizerFiles.read(Path(path))
    file = files.tokenizer_json
    if file is not None:
        try:
            # The library's own from_file accepts only UTF-8 paths.
            backend = Backend.from_buffer(file.read_bytes())
        except Exception as error:  # the library raises bare ``Exception``
            raise CheckpointError(f"cannot read {file}{but_is(file) or f': {error}'}", param="tokenizer_path") from None
        return _completed(backend, files)
    missing = files.directory / "tokenizer.json"
    if what := but_is(missing):
        raise CheckpointError(f"cannot read {missing}{what}", param="tokenizer_path")
    loaded = load_wordpiece(files.directory) or load_with_transformers(files)
    return loaded if isinstance(loaded, Tokenizer) else _completed(loaded, files)


def _completed(backend: Backend, files: TokenizerFiles) -> Tokenizer:
    """Complete a backend with what the other files of the checkpoint say."""
    add_declared_tokens(backend, files)
    surround(backend, files)
    if files.normalizer is not None and isinstance(backend.normalizer, normalizers.BertNormalizer):
        backend.normalizer = files.normalizer
    if files.lowers_text:
        lower = [normalizers.Lowercase(), *([] if backend.normalizer is None else [backend.normalizer])]
        backend.normalizer = normalizers.Sequence(lower)
    return Tokenizer(
        backend,
        special=SpecialTokens.from_strings(files.special),
        chat_templates=files.chat_templates,
        growth=TextGrowth(backend, files.tokenizer_json or files.directory),
    )
