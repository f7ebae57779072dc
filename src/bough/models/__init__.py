"""One readable file per model family, and the table of what is supported."""
