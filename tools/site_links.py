"""A hook of mkdocs: pages link to sources, which are no pages of the site; there the path takes the link's place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

ROOT = Path(__file__).resolve().parent.parent

_SOURCE_LINK = re.compile(r"\[(?P<text>[^\]]*)\]\(\.\./(?P<path>[^)#]*)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to sources.

    Raises:
        PluginError: if there is no such source.
    """

    def replace(link: re.Match[str]) -> str:
        text, path = link["text"], link["path"]
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri} links to {path}, which does not exist")
        if path.rstrip("/").endswith(text.strip("`/")):
            return f"`{path}`"
        return f"{text} (`{path}`)"

    return _SOURCE_LINK.sub(replace, markdown)
