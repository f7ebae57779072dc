"""Collectives on devices, by vLLM's names."""
