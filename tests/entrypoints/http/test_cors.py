"""Web pages: none may call the server unless it is told which, and keys are asked of them, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.cors import CrossOrigin
from bough.errors import ConfigError
from tests.entrypoints.http.server import running_server

FRIEND, STRANGER = "https://chat.example.org:8443", "https://evil.example"
KEY = "sk-test"
GENERATE = {"text": "a", "sampling_params": {"max_new_tokens": 3}}
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type,x-stainless-os",
}


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    origins = f"http://localhost:3000, {FRIEND}"
    with (
        running_server(tmp_path_factory.mktemp("cors"), cors_allow_origins=origins, api_key=KEY) as server,
        httpx.Client(base_url=server.url, timeout=20) as client,
    ):
        yield client


def cors_headers(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def test_no_page_is_welcome_by_default(client: httpx.Client) -> None:
    answer = client.options("/v1/chat/completions", headers={"Origin": FRIEND, **PREFLIGHT})
    assert answer.status_code == 405
    assert not cors_headers(answer)
    answer = client.post("/generate", json=GENERATE, headers={"Origin": FRIEND})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")
    assert not cors_headers(answer)
    assert "vary" not in answer.headers
    own = {"Origin": str(client.base_url).rstrip("/")}
    assert client.post("/generate", json=GENERATE, headers=own).status_code == 200


def test_a_browser_is_told_which_pages_may_call_before_any_key_is_shown(friendly: httpx.Client) -> None:
    for path in ("/v1/chat/completions", "/v1/models/x", "/flush_cache"):
        answer = friendly.options(path, headers={"Origin": FRIEND, **PREFLIGHT})
        assert answer.status_code == 204
        assert answer.content == b""
        assert answer.headers["vary"] == "origin"
        assert cors_headers(answer) == {
            "access-control-allow-origin": FRIEND,
            "access-control-allow-methods": "POST",
            "access-control-allow-headers": PREFLIGHT["Access-Control-Request-Headers"],
            "access-control-max-age": "600",
        }


@pytest.mark.parametrize("origin", [STRANGER, "null", "https://chat.example.org", f"{FRIEND}.evil.example", "*", ""])
def test_other_pages_stay_out(friendly: httpx.Client, origin: str) -> None:
    answer = friendly.options("/generate", headers={"Origin": origin, **PREFLIGHT})
    assert answer.status_code == 405
    assert not cors_headers(answer)
    answer = friendly.get("/model_info", headers={"Origin": origin, "Authorization": f"Bearer {KEY}"})
    assert not cors_headers(answer)
    assert answer.headers["vary"] == "origin", "a cache must not give it to the friend"


def test_answers_errors_and_streams_may_be_read(friendly: httpx.Client) -> None:
    headers = {"Origin": FRIEND, "Authorization": f"Bearer {KEY}"}
    answers = [
        friendly.post("/generate", json=GENERATE, headers=headers),
        friendly.post("/generate", json={**GENERATE, "stream": True}, headers=headers),
        friendly.post("/generate", json={}, headers=headers),
        friendly.get("/nowhere", headers=headers),
        friendly.get("/openapi.json", headers={"Origin": FRIEND}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 400, 404, 200]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == FRIEND
        assert "retry-after" in answer.headers["access-control-expose-headers"]
        assert "access-control-allow-credentials" not in answer.headers
    assert answers[1].text.endswith("data: [DONE]\n\n")


def test_keys_are_asked_of_pages_too(friendly: httpx.Client) -> None:
    refusal = friendly.post("/generate", json=GENERATE, headers={"Origin": FRIEND})
    assert refusal.status_code == 401
    assert refusal.headers["access-control-allow-origin"] == FRIEND, "the page may read why"


def test_all_pages_may_be_let_in(tmp_path: Path) -> None:
    with running_server(tmp_path, cors_allow_origins="*") as server, httpx.Client(base_url=server.url) as client:
        preflight = client.options("/generate", headers={"Origin": STRANGER, **PREFLIGHT})
        assert preflight.headers["access-control-allow-origin"] == "*"
        headers = {"Origin": STRANGER, "Sec-Fetch-Site": "cross-site"}
        assert client.post("/generate", json=GENERATE, headers=headers).status_code == 200


def test_what_a_page_of_another_site_sends_unseen_does_nothing(client: httpx.Client) -> None:
    """A browser sends plain text and images' requests without asking first."""
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Content-Type": "text/plain"}
    for method, path in (("POST", "/generate"), ("POST", "/abort_request"), ("GET", "/flush_cache")):
        refusal = client.request(method, path, headers=foreign, content=b'{"abort_all": true, "text": "a"}')
        assert (refusal.status_code, refusal.json()["error"]["code"]) == (403, "cross_site")
    assert client.get("/docs", headers=foreign).status_code == 200
    for site in ("same-origin", "same-site", "none"):
        assert client.get("/model_info", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_a_key_is_as_good_as_a_welcome(friendly: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Authorization": f"Bearer {KEY}"}
    assert friendly.get("/model_info", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "value", [",", "https://", "example.org", "https://a.example/", "https://A.example", "*, https://a"]
)
def test_what_is_no_origin_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(ConfigError, match="cors_allow_origins must be origins"):
        ServerArgs(cors_allow_origins=value)


@pytest.mark.parametrize(
    "value", ["*", "http://localhost:3000", "https://a.example,http://[::1]:80", "app://obsidian.md"]
)
def test_origins_are_taken_as_browsers_write_them(value: str) -> None:
    assert ServerArgs(cors_allow_origins=value).cors_allow_origins == value


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"origin": "http://127.0.0.1:30000", "host": "127.0.0.1:30000"}, False),
        ({"origin": "http://evil.example", "host": "127.0.0.1:30000"}, True),
        ({"origin": "null", "host": "127.0.0.1:30000"}, True),
        ({"origin": "https://chat.example", "host": "127.0.0.1:30000", "x-forwarded-host": "chat.example"}, False),
        ({"origin": "https://chat.example", "host": "127.0.0.1:30000", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "https://allowed.example", "host": "127.0.0.1:30000"}, False),
    ],
)
def test_browsers_that_send_no_metadata_name_their_pages_all_the_same(
    headers: dict[str, str], is_foreign: bool
) -> None:
    cross = CrossOrigin(ServerArgs(cors_allow_origins="https://allowed.example"))
    assert cross.is_foreign([(name.encode(), value.encode()) for name, value in headers.items()]) == is_foreign
