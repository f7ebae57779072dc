"""What a RoBERTa's or XLM-RoBERTa's config.json says."""

from __future__ import annotations

from bough.models.bert_config import BertReader


class RobertaReader(BertReader):
    """As BERT's, with positions that begin after those for padding."""

    def first_position(self) -> int:
        """The first rows, up to that of the padding token's id, are for padding."""
        return self.values.integer("pad_token_id", 1, minimum=0) + 1
