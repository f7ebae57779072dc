"""Ways into the engine: HTTP servers, the in-process engines, launching."""
