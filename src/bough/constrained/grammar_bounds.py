"""Limits on the memory and time of one grammar, and of all grammars, compared with measurements."""

MAX_COMPILED_BYTES = 16 * 2**20
"""Memory of one grammar, compiled and followed for a few tokens."""

MAX_GROWN_BYTES = 32 * 2**20
"""Memory that one grammar may reach in use; beyond it, its outputs end with an error."""

MAX_HELD_BYTES = 96 * 2**20
"""Memory of all compiled grammars: cached, in use by running requests, and being compiled."""

MAX_BUILD_SECONDS = 1.0
MAX_HOLD_SECONDS = 0.005
"""Processor time to compile a grammar, create a matcher, or accept a token and find the text it forces. The last two
hold the GIL and mostly take less than 0.4 ms."""

MAX_MASK_SECONDS = 0.02
MAX_MEAN_MASK_SECONDS = 0.001
MASK_SECONDS_PER_TOKEN = 40e-9
"""Processor time of a mask per token of the vocabulary, as a maximum and as an average, beyond its fixed cost."""
