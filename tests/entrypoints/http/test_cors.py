"""Web pages: which may call the server by default, which where they are named; keys are asked of them, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from bough.config.server_args import ServerArgs
from bough.entrypoints.http.access import Access, Gate
from bough.entrypoints.http.cors import CrossOrigin
from bough.errors import ConfigError, RequestFailed
from tests.entrypoints.http.server import running_server

FRIEND, STRANGER = "https://chat.example.org:8443", "https://evil.example"
LOCAL = (
    *("http://localhost", "http://localhost:3000", "https://localhost:8443", "http://127.0.0.1:5173"),
    *("https://127.0.0.1", "http://[::1]:8080", "app://obsidian.md", "app://.", "vscode-webview://0abc1def"),
    *("vscode-file://vscode-app", "tauri://localhost"),
)
FOREIGN = (
    *(
        "null",
        "",
        "*",
        "file://",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
    ),
    *("http://evil.example:127", "http://localhost@evil.example", "http://localhost:3000/", "http://LOCALHOST:3000"),
    *("http://evil.localhost", "ftp://localhost", "xapp://localhost", "https://app://x", "chrome-extension://abcdef"),
    *("http://128.0.0.1", "http://0.0.0.0:3000", "http://[::2]", "http://localhost:3000, https://evil.example"),
)
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


def test_no_page_of_a_site_is_welcome_by_default(client: httpx.Client) -> None:
    for origin in FOREIGN:
        answer = client.options("/v1/chat/completions", headers={"Origin": origin, **PREFLIGHT})
        assert answer.status_code == 405
        assert not cors_headers(answer)
        for more in ({}, {"Sec-Fetch-Site": "cross-site"}):
            answer = client.post("/generate", json=GENERATE, headers={"Origin": origin, **more})
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "cross_site")
            assert not cors_headers(answer)


def test_programs_and_the_servers_own_page_are_no_other_origin(client: httpx.Client) -> None:
    for headers in ({}, {"Origin": str(client.base_url).rstrip("/")}):
        answer = client.post("/generate", json=GENERATE, headers=headers)
        assert answer.status_code == 200
    assert "vary" not in client.post("/generate", json=GENERATE).headers


def test_pages_of_the_machine_itself_may_use_the_model_but_not_control(client: httpx.Client) -> None:
    for origin in LOCAL:
        for site in ["cross-site", "same-site", None]:
            headers = {"Origin": origin, **({} if site is None else {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"})}
            preflight = client.options("/v1/chat/completions", headers={**headers, **PREFLIGHT})
            assert preflight.status_code == 204
            assert preflight.headers["access-control-allow-origin"] == origin
            for body in (GENERATE, {**GENERATE, "stream": True}):
                answer = client.post("/generate", json=body, headers=headers)
                assert answer.status_code == 200
                assert answer.headers["access-control-allow-origin"] == origin
            for method, path in (("GET", "/flush_cache"), ("POST", "/abort_request"), ("GET", "/playground/events")):
                refusal = client.request(method, path, headers=headers)
                assert (refusal.status_code, refusal.json()["error"]["code"]) == (403, "cross_site")


def test_on_this_machine_another_port_is_no_stranger_to_a_browser_but_to_control(client: httpx.Client) -> None:
    """A page's simple ``GET`` has no ``Origin``, and all ports of a machine are of one site."""
    headers = {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/flush_cache", headers=headers).status_code == 403
    assert client.get("/model_info", headers=headers).status_code == 200


def test_pages_of_one_machine_are_foreign_to_another() -> None:
    for host in ["0.0.0.0", "::", "192.0.2.1", "example.org"]:
        cross = CrossOrigin(ServerArgs(host=host))
        assert not cross.is_open
        for origin in LOCAL:
            assert cross.is_foreign([(b"origin", origin.encode()), (b"host", b"192.0.2.1:30000")])


REBOUND = {"Origin": "http://evil.example:30000", "Host": "evil.example:30000"}


def test_a_name_that_comes_to_lead_here_makes_no_page_the_servers_own() -> None:
    cases = [
        (REBOUND, {}, 403),
        ({**REBOUND, "Host": "evil.example", "Origin": "http://evil.example"}, {}, 403),
        ({**REBOUND, "X-Forwarded-Host": "evil.example:30000"}, {}, 403),
        ({**REBOUND, "Origin": "http://localhost:3000"}, {}, 200),
        ({**REBOUND, "Sec-Fetch-Site": "same-origin"}, {}, 200),  # over HTTPS, with a certificate
        ({**REBOUND, "Host": "192.168.1.7:8080", "Origin": "http://192.168.1.7:8080"}, {}, 200),
        ({**REBOUND, "Host": "[fe80::1]:8080", "Origin": "http://[fe80::1]:8080"}, {}, 200),
        ({"Host": "model.internal"}, {}, 200),  # a program, through a proxy
        ({"Host": "127.0.0.1", "X-Forwarded-Host": "chat.example", "Origin": "https://chat.example"}, {}, 200),
        (REBOUND, {"cors_allow_origins": "http://evil.example:30000"}, 200),
        (REBOUND, {"cors_allow_origins": "*"}, 200),
        (REBOUND, {"api_key": KEY}, 401),
        (REBOUND, {"host": "0.0.0.0"}, 200),
    ]
    for headers, options, status in cases:
        gate = Gate(ServerArgs(**options))
        sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        if status == 200:
            gate.check(Access.CLIENT, sent)
            continue
        with pytest.raises(RequestFailed) as refused:
            gate.check(Access.CLIENT, sent)
        assert refused.value.status_code == status


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


def test_other_pages_stay_out(friendly: httpx.Client) -> None:
    for origin in [STRANGER, "null", "https://chat.example.org", f"{FRIEND}.evil.example", "*", ""]:
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
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    body = b'{"abort_all": true, "text": "a", "prompt": "a"}'
    for kind in ({"Content-Type": "text/plain"}, {}):
        for method, path in (
            *(("POST", "/generate"), ("POST", "/v1/completions"), ("POST", "/api/generate")),
            *(("POST", "/abort_request"), ("GET", "/flush_cache")),
        ):
            refusal = client.request(method, path, headers={**foreign, **kind}, content=body)
            assert refusal.status_code == 403, path
            assert "--cors-allow-origins" in refusal.text
    assert client.get("/docs", headers=foreign).status_code == 200
    for site in ("same-origin", "same-site", "none"):
        assert client.get("/model_info", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_a_key_is_as_good_as_a_welcome(friendly: httpx.Client) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Authorization": f"Bearer {KEY}"}
    assert friendly.get("/model_info", headers=headers).status_code == 200


def test_what_is_no_origin_is_refused_at_the_start() -> None:
    for value in [",", "https://", "example.org", "https://a.example/", "https://A.example", "*, https://a"]:
        with pytest.raises(ConfigError, match="cors_allow_origins must be origins"):
            ServerArgs(cors_allow_origins=value)


def test_origins_are_taken_as_browsers_write_them() -> None:
    for value in ["*", "http://localhost:3000", "https://a.example,http://[::1]:80", "app://obsidian.md"]:
        assert ServerArgs(cors_allow_origins=value).cors_allow_origins == value


def test_browsers_that_send_no_metadata_name_their_pages_all_the_same() -> None:
    cases = [
        ({}, False),
        ({"origin": "http://127.0.0.1:30000", "host": "127.0.0.1:30000"}, False),
        ({"origin": "http://evil.example", "host": "127.0.0.1:30000"}, True),
        ({"origin": "null", "host": "127.0.0.1:30000"}, True),
        ({"origin": "https://chat.example", "host": "127.0.0.1:30000", "x-forwarded-host": "chat.example"}, False),
        ({"origin": "https://chat.example", "host": "127.0.0.1:30000", "sec-fetch-site": "same-origin"}, False),
        ({"origin": "https://allowed.example", "host": "127.0.0.1:30000"}, False),
    ]
    for headers, is_foreign in cases:
        cross = CrossOrigin(ServerArgs(cors_allow_origins="https://allowed.example"))
        assert cross.is_foreign([(name.encode(), value.encode()) for name, value in headers.items()]) == is_foreign
