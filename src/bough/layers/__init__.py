"""Building blocks of models, and what turns their logits into tokens."""
