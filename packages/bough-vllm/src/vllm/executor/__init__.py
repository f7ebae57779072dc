"""Executors, where older programs look for them."""
