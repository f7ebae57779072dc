"""The engine, by its newer names."""
