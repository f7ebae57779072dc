"""Names that newer programs import from here."""
