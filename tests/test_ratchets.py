"""Bounds on size and language of the sources, which may be lowered and never raised."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import bough

PACKAGE = Path(bough.__file__).parent

MAX_METHODS = 20
MAX_ATTRIBUTES = 25
MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 600

LARGE_CLASSES = {
    "tokenization/chat_template.py:ChatTemplate",
    "tokenization/tokenizer.py:Tokenizer",
}
LONG_FUNCTIONS = {
    "kernels/triton/attention.py:_decode_pieces",
    "kernels/triton/attention.py:_extend_tiles",
    "kernels/triton/attention.py:decode_attention",
    "kernels/triton/elementwise.py:_rotate_and_store_heads",
    "kernels/triton/quantized_gemm.py:_coded_tiles",
    "kernels/triton/sampling.py:_choose",
    "parsers/json_scanner.py:scan",
    "parsers/tagged_values.py:json_until",
}
"""Exceptions of today; one that is mended is taken off its list, and none is added."""

MAX_CIRCLES = 1
"""Most groups of files that import each other, late imports counted."""

BEGINNINGS = re.compile(r"(What|Whether|Who|Whose|Whom|Which|Where|How|Of|That|See)\b")
PEOPLE = re.compile(r"\b(whoever|whom|whose|nobody|somebody|everybody)\b", re.IGNORECASE)
MAX_BEGINNINGS = 460
MAX_PEOPLE = 299


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Docstrings, and strings below attributes and constants."""
    for node in ast.walk(tree):
        body = getattr(node, "body", ())
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield text.strip()


def attributes(node: ast.ClassDef) -> set[str]:
    declared = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    stored = {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }
    return declared | stored


def is_data(node: ast.ClassDef) -> bool:
    """Records declare as many fields as they have."""
    text = " ".join(ast.unparse(each) for each in (*node.decorator_list, *node.bases))
    return any(kind in text for kind in ("dataclass", "Struct", "NamedTuple", "TypedDict", "Options", "Args", "Fields"))


def test_classes_are_small() -> None:
    large = set()
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body)
                if methods > MAX_METHODS or (len(attributes(node)) > MAX_ATTRIBUTES and not is_data(node)):
                    large.add(f"{name_of(path)}:{node.name}")
    assert large == LARGE_CLASSES


def test_functions_and_files_are_short() -> None:
    functions = {
        f"{name_of(path)}:{node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 - docstring_lines(node) > MAX_FUNCTION_LINES
    }
    assert functions == LONG_FUNCTIONS
    files = {name_of(path) for path in trees() if len(path.read_text(encoding="utf-8").splitlines()) > MAX_FILE_LINES}
    assert not files


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and first.end_lineno):
        return 0
    return first.end_lineno - first.lineno + 1


def imports(tree: ast.AST) -> Iterator[str]:
    """Files of the package that one imports when it runs, be it late."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bough"):
            base = PACKAGE.parent.joinpath(*node.module.split("."))
            for alias in node.names:
                inner = base / f"{alias.name}.py"
                yield str(inner if inner.is_file() else base.with_suffix(".py"))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield str(PACKAGE.parent.joinpath(*alias.name.split(".")).with_suffix(".py"))
        else:
            yield from imports(node)


def test_few_files_import_each_other() -> None:
    edges = {str(path): set(imports(tree)) for path, tree in trees().items()}
    reach: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for each in edges.get(stack.pop(), ()):
                if each in edges and each not in seen:
                    seen.add(each)
                    stack.append(each)
        reach[start] = seen
    groups: dict[frozenset[str], list[str]] = defaultdict(list)
    for file in edges:
        circle = frozenset(other for other in reach[file] if file in reach[other])
        if circle:
            groups[circle].append(name_of(Path(file)))
    assert len(groups) <= MAX_CIRCLES, sorted(groups.values())


def test_the_language_gets_plainer() -> None:
    texts = [text for tree in trees().values() for text in docstrings(tree)]
    beginnings = sum(BEGINNINGS.match(text) is not None for text in texts)
    sources = "\n".join(path.read_text(encoding="utf-8") for path in trees())
    people = len(PEOPLE.findall(sources))
    assert beginnings <= MAX_BEGINNINGS, f"{beginnings} docstrings begin with a word of {BEGINNINGS.pattern}"
    assert people <= MAX_PEOPLE, f"{people} words of {PEOPLE.pattern}"
