"""Engines and their arguments, where older programs look for them."""
