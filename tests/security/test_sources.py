"""What must not be in the sources, because it would run what others have sent."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import bough
from tests.tables import table

PACKAGE = Path(bough.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "multiprocessing", "code"}
BUILTINS = {"eval", "exec", "compile", "__import__"}
METHODS = {"os.system", "os.popen", "torch.load", "yaml.load", "yaml.unsafe_load", "numpy.load", "np.load"}


def findings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        yield from (f"line {node.lineno}: import {name}" for name in names if name.split(".")[0] in MODULES)
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in BUILTINS | METHODS:
            yield f"line {node.lineno}: {called}"
        for keyword in node.keywords:
            if keyword.arg in ("shell", "allow_pickle", "trust_remote_code") and ast.unparse(keyword.value) != "False":
                yield f"line {node.lineno}: {keyword.arg}={ast.unparse(keyword.value)}"


@table("path", FILES)
def test_nothing_unpickles_or_runs_what_it_is_given(path: Path) -> None:
    assert list(findings(ast.parse(path.read_text(encoding="utf-8")))) == []


@table(
    "source",
    [
        *("import pickle", "from dill import loads", "eval(x)", "torch.load(p)"),
        *("np.load(p, allow_pickle=True)", "subprocess.run(x, shell=True)"),
    ],
)
def test_it_would_be_found(source: str) -> None:
    assert list(findings(ast.parse(source)))
