"""Attention: the layer that models use, and the backends that compute it."""
