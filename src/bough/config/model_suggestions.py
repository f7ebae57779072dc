"""What somebody who mistyped the name of a model may have meant."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from bough.config.engine_args import BUNDLED_MODEL_NAME
from bough.config.options import did_you_mean
from bough.config.user_paths import user_path

_MOST_NAMES = 10_000
"""Names of a directory that are compared, so that a huge one does not hold up an error."""


def path_like(path: str) -> str:
    """``"; did you mean …?"`` with an existing path of which each part is like that of ``path``, or nothing."""
    given = user_path(path)
    found = Path(given.anchor)
    for part in given.relative_to(given.anchor).parts:
        names = [part] if os.path.exists(found / part) else difflib.get_close_matches(part, _names_in(found), 1, 0.7)
        if not names:
            return ""
        found /= names[0]
    return f"; did you mean {str(found)!r}?"


def hub_id_like(model_id: str) -> str:
    """``"; did you mean …?"`` with a model in the hub's local cache, or the bundled one, or nothing."""
    if difflib.get_close_matches(model_id, [BUNDLED_MODEL_NAME], cutoff=0.7):
        return f"; did you mean {BUNDLED_MODEL_NAME!r}, which comes with Bough?"
    from huggingface_hub import constants

    cached = (name.removeprefix("models--").replace("--", "/") for name in _names_in(Path(constants.HF_HUB_CACHE)))
    return did_you_mean(model_id, cached) or path_like(model_id)


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)[:_MOST_NAMES]
    except OSError:
        return []
