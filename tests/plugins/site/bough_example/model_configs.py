"""What the config.json of an Orchard says. No torch here."""

from __future__ import annotations

from typing import Any, ClassVar

from bough.config.model_facts import ModelFacts
from bough.models.qwen3_config import Qwen3Reader


class OrchardReader(Qwen3Reader):
    """Qwen3's, with shorter contexts where the file is silent, and trees in rows."""

    defaults: ClassVar[dict[str, Any]] = {**Qwen3Reader.defaults, "max_position_embeddings": 8192}

    def read(self) -> ModelFacts:
        """See :class:`FamilyReader`."""
        self.values.choice("tree_layout", ("rows",), "rows")
        return super().read()
