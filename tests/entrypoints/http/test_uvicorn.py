"""uvicorn's private classes, of which the connection is made, are those that were read when it was written."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from packaging.specifiers import SpecifierSet
from uvicorn.protocols.http import flow_control, httptools_impl

KNOWN = "0.54.0"
DIGEST = "ea814cf42e50628dba76b72e12900943da6801b4bcf097f11dff4ea2cdc99455"


def test_the_classes_that_are_extended_are_known() -> None:
    sources = [Path(module.__file__ or "").read_bytes() for module in (httptools_impl, flow_control)]
    assert hashlib.sha256(b"".join(sources)).hexdigest() == DIGEST, (
        f"uvicorn is not what it was in {KNOWN}: compare what connection.py and chunk_writer.py override, "
        "then move KNOWN, DIGEST and the bound in pyproject.toml"
    )


def test_a_version_that_is_not_known_is_not_installed() -> None:
    text = (Path(__file__).resolve().parents[3] / "pyproject.toml").read_text()
    (bound,) = re.findall(r'"uvicorn([^"]+)"', text)
    major, minor, _ = map(int, KNOWN.split("."))
    assert SpecifierSet(bound).contains(KNOWN)
    assert not SpecifierSet(bound).contains(f"{major}.{minor + 1}.0")
