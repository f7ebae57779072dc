"""Benchmarks: a client that measures a server over HTTP, and one that measures the engine alone."""
