"""The documentation as a site: no link leads nowhere, and nothing is asked of another host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def build(directory: Path, *, docs: Path = ROOT / "docs") -> subprocess.CompletedProcess[str]:
    config = directory / "mkdocs.yml"
    config.write_text(
        (ROOT / "mkdocs.yml")
        .read_text(encoding="utf-8")
        .replace("docs_dir: docs", f"docs_dir: {docs}")
        .replace("[tools/site_links.py]", f"[{ROOT / 'tools' / 'site_links.py'}]")
    )
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(directory / "site")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_site_is_built_and_asks_nobody_else(tmp_path: Path) -> None:
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").glob("*.html"))
    assert {page.stem for page in pages} >= {page.stem for page in (ROOT / "docs").glob("*.md")}
    for page in pages:
        loaded = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="([^"]*)"', page.read_text(encoding="utf-8"))
        assert loaded
        assert not [address for address in loaded if "//" in address]


@pytest.mark.parametrize("link", ["(nowhere.md)", "(index.md#nothing)", "(../src/nothing.py)"])
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, link: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for page in (ROOT / "docs").glob("*.md"):
        (docs / page.name).write_text("# Page\n")
    (docs / "index.md").write_text(f"# Bough\n\n[Somewhere]{link}\n")
    done = build(tmp_path, docs=docs)
    assert done.returncode != 0
    assert link.strip("()").removeprefix("../").rpartition("#")[2] in done.stderr
