"""Bounds of requests that options may lower and nothing may raise."""

from __future__ import annotations

OUTPUTS_PER_REQUEST = 2048
"""Prompts times ``n`` of one HTTP request, in every dialect."""

PARALLEL_SAMPLES = 128
"""``n``."""

TOP_LOGPROBS = 128
"""Alternatives per position."""

LOGPROB_ENTRIES = 4 * 2**20
"""Logprobs of one HTTP request: those of all alternatives at all positions of all outputs. Each takes about 130 bytes
in the main process until it is written."""

STOP_STRINGS = 32
"""Stop strings of a request, and as many stop patterns."""

GRAMMAR_BYTES = 256 * 1024
"""Bytes of a schema, pattern, grammar or list of choices, in UTF-8."""

GRAMMAR_DEPTH = 64
"""Nested brackets of a JSON schema or structural tag; an object within an object takes two levels."""
