"""Groups of processes, by vLLM's names."""
