"""Bounds of what a grammar may take, as it was measured."""

MAX_COMPILED_BYTES = 16 * 2**20
"""Memory that a grammar may take, compiled and followed for a few tokens."""

MAX_GROWN_BYTES = 32 * 2**20
"""Memory that it may come to while it is used; then its outputs end in an error."""

MAX_HELD_BYTES = 96 * 2**20
"""Memory of all compiled grammars: those that are remembered, those of running requests, those being compiled."""

MAX_BUILD_SECONDS = 1.0
MAX_HOLD_SECONDS = 0.005
"""Processor time to compile a grammar; and to make a matcher, or to accept a token and see what it forces, which both
hold the GIL and mostly take less than 0.4 ms."""

MAX_MASK_SECONDS = 0.02
MAX_MEAN_MASK_SECONDS = 0.001
MASK_SECONDS_PER_TOKEN = 40e-9
"""Processor time for a mask, at most and on average, beside what any takes for each token of a vocabulary."""
