"""Version of vLLM whose names are here, which programs compare."""

__version__ = "0.32.0+bough"
