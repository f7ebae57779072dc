"""Docstrings of public methods: their own, or one to inherit, which ``help`` and editors show as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import bough

PACKAGE = Path(bough.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Classes at the top of modules and of other classes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        pending: list[ast.stmt] = list(ast.parse(path.read_text(encoding="utf-8")).body)
        while pending:
            node = pending.pop()
            if isinstance(node, ast.ClassDef):
                yield path, node
                pending += node.body


def name_of(base: ast.expr) -> str:
    base = base.value if isinstance(base, ast.Subscript) else base
    return base.attr if isinstance(base, ast.Attribute) else ast.unparse(base)


def test_public_methods_have_a_docstring_or_inherit_one() -> None:
    bases: dict[str, set[str]] = {}
    documented: dict[str, set[str]] = {}
    for _, node in classes():
        bases.setdefault(node.name, set()).update(map(name_of, node.bases))
        methods = {each.name for each in node.body if isinstance(each, FUNCTIONS) and ast.get_docstring(each)}
        documented.setdefault(node.name, set()).update(methods)

    def inherits(owner: str, method: str) -> bool:
        known = [each for each in bases.get(owner, ()) if each != owner]
        return any(method in documented.get(each, ()) or inherits(each, method) for each in known)

    bare = [
        f"{path.relative_to(PACKAGE)}: {node.name}.{each.name}"
        for path, node in classes()
        if not node.name.startswith("_")
        for each in node.body
        if isinstance(each, FUNCTIONS)
        and not each.name.startswith("_")
        and not ast.get_docstring(each)
        and not any(
            ast.unparse(mark) == "overload" or ast.unparse(mark).endswith(".setter") for mark in each.decorator_list
        )
        and not inherits(node.name, each.name)
    ]
    assert not bare
