"""Bounds of requests that options may lower and nothing may raise."""

from __future__ import annotations

OUTPUTS_PER_REQUEST = 2048
"""Prompts times ``n`` of one HTTP request, in every dialect."""

PARALLEL_SAMPLES = 128
"""``n``."""

TOP_LOGPROBS = 128
"""Alternatives per position."""

STOP_STRINGS = 32
"""Stop strings of a request, and as many stop patterns."""
