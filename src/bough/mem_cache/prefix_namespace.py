"""The namespace in which later requests use the prefix cache."""

from __future__ import annotations

from bough.mem_cache.radix_cache import RadixCache


class PrefixNamespace:
    """Part of all keys of a prefix cache, which changes when what is cached must not be used any more."""

    def __init__(self, cache: RadixCache) -> None:
        self._cache = cache
        self._prefix = ""
        self._count = 0

    def key(self, extra_key: str | None) -> str | None:
        """Return the key in the cache for a request's own namespace."""
        return self._prefix + (extra_key or "") if self._prefix else extra_key

    def leave(self) -> None:
        """Let no later request use what is cached now.

        While requests hold some of it, it stays in the cache, under keys that are not asked for any more, until it is
        evicted.
        """
        if self._cache.locks_held:
            self._count += 1
            self._prefix = f"{self._count}\0"
        else:
            self._cache.reset()
            self._prefix = ""
