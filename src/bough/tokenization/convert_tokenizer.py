"""``python -m bough.tokenization.convert_tokenizer DIRECTORY``: a checkpoint's tokenizer as a ``tokenizer.json``.

A program of its own because ``transformers`` brings torch along, which the HTTP process and the detokenizer do without.
Writes one JSON object to standard output: ``tokenizer`` (the converted tokenizer as text), ``python_only`` (whether
it exists in Python only), ``error``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tokenizers import Tokenizer as Backend


def main() -> None:
    """Convert the tokenizer of the directory that the command line names."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as output:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed must not get in between
        json.dump(convert(sys.argv[1]), output)


def convert(directory: str) -> dict[str, Any]:
    """What ``main`` writes."""
    try:
        backend = getattr(load(directory), "backend_tokenizer", None)
    except Exception as error:  # anything from a missing file to a missing library
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    if not isinstance(backend, Backend):
        return {"python_only": True}
    return {"tokenizer": backend.to_str()}


def load(directory: str) -> Any:
    """The tokenizer as ``transformers`` reads it; code that a checkpoint brings along is never run."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(directory, trust_remote_code=False, local_files_only=True)


if __name__ == "__main__":
    main()
