"""What a Llama's config.json says."""

from __future__ import annotations

from bough.models.family_reader import FamilyReader


class LlamaReader(FamilyReader):
    """Llama has no windows, whatever the file says."""

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        return (None,) * num_layers
