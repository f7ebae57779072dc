"""Imports run downwards only: no folder imports one above it, late imports counted."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import bough

PACKAGE = Path(bough.__file__).parent


def imported(node: ast.AST) -> Iterator[str]:
    """Modules that are imported when the code runs, be it late: names for types alone are not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom) and child.module:
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from imported(child)


def folder_of(module: str) -> str | None:
    """A folder of the package, or a module beside the folders; ``None`` for the package itself and other packages."""
    top, _, rest = module.partition(".")
    name = rest.partition(".")[0]
    is_known = (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()
    return name if top == "bough" and name and is_known else None


def test_no_folder_imports_one_above_it() -> None:
    below: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        folder = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        names = map(folder_of, imported(ast.parse(path.read_text(encoding="utf-8"))))
        below[folder] |= {name for name in names if name is not None and name != folder}
    resting = {folder for folder, names in below.items() if not names}
    while len(resting) < len(below):
        lowest = {folder for folder, names in below.items() if folder not in resting and names <= resting}
        circle = sorted(below.keys() - resting)
        assert lowest, f"these import each other: { {each: sorted(below[each] & set(circle)) for each in circle} }"
        resting |= lowest
