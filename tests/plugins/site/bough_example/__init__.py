"""What another package may bring: see ``entry_points.txt`` beside it, which a build makes of ``pyproject.toml``."""
