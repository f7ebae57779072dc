"""The documentation agrees with the code and with itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import generate_docs
from bough.cli_commands.completion import TABLES
from bough.config.options import options_by_key
from bough.entrypoints.http.routes import ROUTES

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.md")])
FLAGS_OF_OTHERS = {
    *("help", "config", "no-", "torch-backend", "repeats", "output", "check", "target", "sglang", "vllm", "seconds"),
    *("from-file", "only", "choices", "depth"),
}
"""Flags in the documentation that are in no table of options: of argparse, uv, docker, kubectl and this repository's
scripts."""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_generated_pages_are_what_the_code_says():
    assert generate_docs.stale_pages() == [], "run make docs"


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


def test_one_list_has_every_field_without_effect():
    text = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`([\w.]+)`", text.partition("## Accepted without effect\n")[2].partition("\n## ")[0]))
    assert {name for info in ROUTES if info.body is not None for name in info.body.no_effect} <= told


def test_the_page_of_flags_has_every_command_and_every_note():
    page, notes = generate_docs.flags_page(), generate_docs.NOTES
    assert re.findall(r"^## `bough (.+)`$", page, flags=re.MULTILINE) == list(TABLES)
    assert all(f"## `bough {command}`\n\n{note}\n" in page for command, note in notes.items())


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_flags_that_are_mentioned_exist(page):
    tables = {table for tables in TABLES.values() for table in tables}
    known = {"help", "help-all"}.union(FLAGS_OF_OTHERS, *(options_by_key(table) for table in tables))
    mentioned = set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]*)", page.read_text(encoding="utf-8")))
    assert mentioned <= known | {f"no-{key}" for key in known}, mentioned - known


def test_every_page_of_the_documentation_is_in_its_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs").glob("*.md"):
        assert path.name == "index.md" or f"({path.name})" in index


def test_tests_that_are_named_exist():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z0-9_/]+\.py)(?:::(\w+))?`", page)
    assert len(named) > 40
    for file, test in named:
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in source, (file, test)


def test_code_of_the_guide_for_extensions_can_be_run():
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, {"__name__": "extension"})
