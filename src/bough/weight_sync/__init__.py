"""New weights for a model that is in use: from a checkpoint, from tensors, from a trainer."""
