"""Metrics and logs: what an operator sees."""
