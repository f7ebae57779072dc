"""Drives the playground in a headless Chromium; run by ``make browser``, in an environment that has Playwright."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, running_server

try:
    from playwright.sync_api import Browser, Page, sync_playwright
except ModuleNotFoundError:  # as in the environment of `make test`
    collect_ignore_glob = ["test_*.py"]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="package")
def shared_server(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Server]:
    directory = tmp_path_factory.mktemp("playground")
    python = pytestconfig.getoption("server_python") or sys.executable
    with running_server(directory, "--cpu-threads", "1", "--page-size", "4", python=python) as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    yield shared_server
    shared_server.assert_idle_and_whole()


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium of the system, if there is one, else the one that ``playwright install chromium`` fetches."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    # Chromium's sandbox refuses to run as root, as in containers.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        yield browser
        browser.close()


@contextmanager
def opened_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    """The playground of a server; scripts that fail and requests to elsewhere are errors at the end."""
    page = browser.new_page(**options)
    page.set_default_timeout(20_000)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(url) else problems.append(request.url))
    page.goto(url)
    yield page
    page.close()
    assert problems == []


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with opened_page(browser, server.url, viewport={"width": 1280, "height": 800}) as page:
        page.wait_for_selector('#model:has-text("sapling")')
        yield page
