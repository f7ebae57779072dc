"""KV memory: request table, slot allocator, prefix caches, device pools."""
