from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

import bough
from bough.entrypoints.http.native.live import MAX_WATCHERS
from bough.entrypoints.http.playground import PREFIX
from bough.entrypoints.starting_app import StartingApp
from tests.entrypoints.http.server import RunningServer, running_server

ASSETS = Path(bough.__file__).parent / "assets" / "playground"
BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


def first_event(client: httpx.Client) -> dict[str, Any]:
    with client.stream("GET", "/playground/events") as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        line = next(line for line in answer.iter_lines() if line)
    picture: dict[str, Any] = json.loads(line.removeprefix("data: "))
    return picture


def test_browsers_get_a_page_and_programs_what_they_always_got(client: httpx.Client) -> None:
    assert client.get("/").json() == "Bough is running"
    page = client.get("/", headers=BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(part.split(" ", 1) for part in page.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}


def test_everything_that_the_page_loads_is_there(client: httpx.Client) -> None:
    page = client.get("/", headers=BROWSER).text
    wanted = {f"/{path}" for path in re.findall(r'(?:src|href)="(playground/[^"]+)"', page)}
    for script in ASSETS.glob("*.js"):
        wanted |= {PREFIX + name for name in re.findall(r'from "\./([^"]+)"', script.read_text(encoding="utf-8"))}
    assert {path.name for path in ASSETS.iterdir()} == {path.removeprefix(PREFIX) for path in wanted} | {"index.html"}
    for path in wanted:
        assert client.get(path).status_code == 200, path


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in ASSETS.iterdir():
        for address in re.findall(r"https?://[\w.]+", path.read_text(encoding="utf-8")):
            assert address == "http://www.w3.org", (path.name, address)


def test_only_its_parts_can_be_fetched(client: httpx.Client) -> None:
    for name in ["absent.js", "../docs.html", "%2e%2e/docs.html", "index.html/..", ""]:
        assert client.get(PREFIX + name).status_code == 404


def test_it_can_be_left_out(tmp_path: Path) -> None:
    with running_server(tmp_path, disable_playground=True) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/", headers=BROWSER).json() == "Bough is running"
        assert client.get("/playground/main.js").status_code == 404
        assert client.get("/playground/events").status_code == 404


def test_the_page_is_open_and_what_it_shows_needs_an_administrator(tmp_path: Path) -> None:
    keys = {"api_key": "sk-client", "admin_api_key": "sk-admin"}
    with running_server(tmp_path, **keys) as server, httpx.Client(base_url=server.url) as client:
        assert client.get("/", headers=BROWSER).status_code == 200
        for key, status in ((None, 401), ("sk-client", 401), ("sk-admin", 200)):
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            with client.stream("GET", "/playground/events", headers=headers) as answer:
                assert answer.status_code == status


def test_watchers_are_bounded_and_those_who_leave_make_room(server: RunningServer, client: httpx.Client) -> None:
    watchers = [httpx.Client(base_url=server.url, timeout=20) for _ in range(MAX_WATCHERS)]
    streams = [watcher.stream("GET", "/playground/events") for watcher in watchers]
    for stream in streams:
        assert stream.__enter__().status_code == 200
    refused = client.get("/playground/events")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    for stream, watcher in zip(streams, watchers, strict=True):
        stream.__exit__(None, None, None)
        watcher.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with client.stream("GET", "/playground/events") as answer:
            if answer.status_code == 200:
                return
    raise AssertionError("there is no room for a new watcher")


def test_a_picture_shows_text_where_the_tree_has_ids(server: RunningServer, client: httpx.Client) -> None:
    assert server.manager.tokenizer is not None
    head = list(server.manager.tokenizer.encode("a small"))
    node = {"node_id": "x", "parent_id": "", "namespace": None, "head": head, "num_tokens": 9}
    before = server.engine.cache_outline
    server.engine.cache_outline = {"nodes": [node], "protected_tokens": 4, "evictable_tokens": 5}
    try:
        picture = first_event(client)
    finally:
        server.engine.cache_outline = before
    del node["head"]
    assert picture["nodes"] == [{**node, "text": "a small"}]
    assert (picture["protected_tokens"], picture["evictable_tokens"], picture["server_state"]) == (4, 5, "ready")
    histogram = picture["latencies"]["time_to_first_token"]
    assert len(histogram["counts"]) == len(histogram["bounds"]) + 1


def test_the_tokens_of_a_picture_are_those_that_the_scheduler_has_counted(
    server: RunningServer, client: httpx.Client
) -> None:
    # Those of requests that are not streamed come dozens at a time.
    server.engine.internal_state = {"decode_tokens_total": 7}
    try:
        assert first_event(client)["generated_total"] == 7
    finally:
        server.engine.internal_state = {}
    assert first_event(client)["generated_total"] == 0


def test_the_first_picture_has_what_was_before_and_the_others_do_not(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=20) as client:
        server.run(lambda: server.engine.heartbeat(num_running_reqs=3, decode_tokens_total=70))
        server.wait_until(lambda: server.manager.metrics.heartbeats)
        calls = len(server.engine.control_calls)
        for _ in range(2):  # a page, and one that opens later
            with client.stream("GET", "/playground/events") as answer:
                lines = (line for line in answer.iter_lines() if line)
                first, second = (json.loads(next(lines).removeprefix("data: ")) for _ in range(2))
            history = first["history"]
            assert (history["running"][0], history["generated_total"][0]) == (3, 70)
            assert 0 < history["time"][0] <= history["time"][-1] <= first["uptime"]
            assert "history" not in second
            for histogram in first["latencies"].values():
                assert len(histogram["recent"]) == len(histogram["counts"])
        assert len(server.engine.control_calls) - calls <= 2 * 4, "the past is not asked of the scheduler"


def test_many_watchers_ask_the_engine_as_often_as_one(server: RunningServer) -> None:
    server.engine.control_calls.clear()

    async def watch(client: httpx.AsyncClient) -> int:
        async with client.stream("GET", "/playground/events") as answer:
            lines = [line async for line in _first(answer.aiter_lines(), 8)]
        return sum(line.startswith("data: ") for line in lines)

    async def watch_all() -> list[int]:
        async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
            return await asyncio.gather(*(watch(client) for _ in range(10)))

    assert asyncio.run(watch_all()) == [4] * 10
    # Everybody's first picture is their own; the three that follow are shared, give or take who came late.
    assert len(server.engine.control_calls) <= 2 * (10 + 6)


async def _first(lines: AsyncIterator[str], count: int) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        count -= 1
        if not count:
            return


def test_the_stream_ends_when_the_server_shuts_down(tmp_path: Path) -> None:
    with (
        running_server(tmp_path) as server,
        httpx.Client(base_url=server.url, timeout=20) as client,
        client.stream("GET", "/playground/events") as answer,
    ):
        lines = answer.iter_lines()
        assert next(lines).startswith("data: ")
        server.run(server.manager.health.start_draining)
        assert len(list(lines)) <= 6


def test_the_stream_shows_how_a_server_that_shuts_down_finishes(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, httpx.Client(base_url=server.url, timeout=20) as client:
        server.run(server.engine.gate.clear)
        with ThreadPoolExecutor(1) as pool, client.stream("GET", "/playground/events") as answer:
            pool.submit(httpx.post, f"{server.url}/generate", json={"text": "Once"}, timeout=20)
            lines = answer.iter_lines()
            pictures = (json.loads(line.removeprefix("data: ")) for line in lines if line)
            assert next(pictures)["server_state"] == "ready"
            server.wait_until(lambda: server.manager.rid_to_state)
            server.run(server.manager.health.start_draining)
            while next(pictures)["server_state"] != "draining":
                pass
            assert [next(pictures)["server_state"] for _ in range(3)] == ["draining"] * 3
            server.run(server.engine.gate.set)
            assert {picture["server_state"] for picture in pictures} <= {"draining"}


def test_a_page_that_a_rebound_name_leads_here_sees_nothing(client: httpx.Client) -> None:
    for host, status in (("evil.example:30000", 403), ("localhost:30000", 200), ("[::1]:30000", 200)):
        with client.stream("GET", "/playground/events", headers={"Host": host}) as answer:
            assert answer.status_code == status, host


def test_asking_for_the_head_of_the_stream_holds_no_place(client: httpx.Client) -> None:
    assert client.head("/playground/events").headers["content-type"].startswith("text/event-stream")
    assert client.get("/v1/models").status_code == 200


def luminance(colour: str) -> float:
    """Of a colour such as ``#84897f`` or ``#fff``: WCAG 2.2, relative luminance."""
    digits = colour.lstrip("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def colours_of(theme: str) -> dict[str, str]:
    """The named colours of the style sheet, where each is written once for both themes or as ``light-dark(…, …)``."""
    sheet = (ASSETS / "style.css").read_text(encoding="utf-8")
    colours = re.findall(r"--([\w-]+): (?:light-dark\()?(#\w+)(?:, (#\w+)\))?;", sheet.partition("}")[0])
    return {name: (dark or light) if theme == "dark" else light for name, light, dark in colours}


def test_texts_and_edges_stand_out() -> None:
    for theme in ["light", "dark"]:
        colours = colours_of(theme)
        needed = {
            **{(text, ground): 4.5 for text in ("ink", "soft", "accent", "bad") for ground in ("page", "raised")},
            ("on-accent", "accent"): 4.5,
            **{(part, ground): 3.0 for part in ("line", "second") for ground in ("page", "raised")},
            ("line", "code"): 3.0,
        }
        for (one, other), least in needed.items():
            bright, dim = sorted((luminance(colours[one]), luminance(colours[other])), reverse=True)
            assert (bright + 0.05) / (dim + 0.05) >= least, (theme, one, other)


def test_the_page_of_a_server_that_starts_has_the_colours_of_what_follows() -> None:
    async def ask() -> str:
        transport = httpx.ASGITransport(StartingApp())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get("/", headers=BROWSER)).text

    page = asyncio.run(ask())
    light, dark = colours_of("light"), colours_of("dark")
    assert "color-scheme: light dark;" in page
    for use, name in (("background", "page"), ("color", "ink")):
        assert f"{use}: light-dark({light[name]}, {dark[name]});" in page
    assert "bough.theme" in page
    assert "bough.theme" in (ASSETS / "theme.js").read_text(encoding="utf-8"), "where the choice is kept"
