"""The steps that a tokenizer's description consists of."""

from __future__ import annotations

import json
from typing import Any

Step = dict[str, Any]
"""A normaliser, pre-tokenizer, post-processor or decoder as ``tokenizer.json`` describes it, by its ``type``."""

_LISTS = ("normalizers", "pretokenizers", "processors", "decoders")


def steps_of(part: Any) -> list[Step]:
    """Steps of a part of a tokenizer of the ``tokenizers`` library, in order; none for ``None``."""
    return [] if part is None else _flattened(json.loads(part.__getstate__()))


def _flattened(step: Step) -> list[Step]:
    if step["type"] != "Sequence":
        return [step]
    return [each for name in _LISTS for inner in step.get(name) or () for each in _flattened(inner)]
