from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import anthropic
import httpx
import openai
import pytest
import uvloop

from bough.bench.datasets import DatasetArgs
from bough.bench.serve import BenchServeArgs, run_benchmark
from bough.config.server_args import ServerArgs
from bough.entrypoints.http.access import Access, Gate, read_keys
from bough.entrypoints.http.routes import ROUTES
from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import BadRequest, ConfigError, RequestFailed, TooManyRequests
from bough.other_engines import ROUTES as UNSUPPORTED_ROUTES
from tests.entrypoints.http.server import RunningServer, running_server

KEY, SPARE_KEY, ADMIN_KEY = "sk-test-123", "sk-spare", "sk-admin"
GENERATE = {"text": "a", "sampling_params": {"max_new_tokens": 2}}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    directory = tmp_path_factory.mktemp("guarded")
    keys = directory / "keys"
    keys.write_text(f"{SPARE_KEY}\n\n")
    keys.chmod(0o600)
    with running_server(directory, api_key=KEY, api_key_file=str(keys), admin_api_key=ADMIN_KEY) as running:
        yield running


@pytest.fixture
def http(guarded: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=guarded.url, timeout=20) as client:
        yield client
    guarded.assert_idle()


def test_every_route_but_probes_and_the_documentation_needs_a_key(http: httpx.Client) -> None:
    for info in ROUTES:
        path = info.path.replace("{model:path}", "x").replace("{response_id}", "x")
        for name in (path, *info.paths[1:]):
            for method in (*info.methods, *(("HEAD",) if "GET" in info.methods else ())):
                status = http.request(method, name).status_code
                assert (status == 401) == (not info.is_probe), (method, name)
    for path in ("/", "/docs", "/openapi.json", "/health", "/metrics"):
        assert http.get(path).status_code == 200


def test_routes_of_other_servers_need_a_key(http: httpx.Client) -> None:
    for path in UNSUPPORTED_ROUTES:
        for method in ("GET", "POST", "PUT", "DELETE", "HEAD"):
            assert http.request(method, path).status_code == 401, (method, path)
        assert http.get(path, headers=bearer(KEY)).status_code == 404, path


def test_what_is_no_route_says_so_to_everybody(http: httpx.Client) -> None:
    assert http.get("/nowhere").status_code == 404
    assert http.delete("/generate").status_code == 405


def ask(guarded: RunningServer, data: bytes) -> list[int]:
    """The statuses of all answers to what is sent at once; the last request asks for the end of the connection."""
    with guarded.connect() as connection:
        connection.sendall(data)
        answers = b"".join(iter(lambda: connection.recv(65536), b""))
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", answers)]


def test_no_other_spelling_of_a_path_gets_around_the_key(guarded: RunningServer) -> None:
    for path in ["/flush%5Fcache", "/%66lush_cache", "/flush_cache?timeout=1", "/flush_cache#x"]:
        for spelt in (path, f"http://x{path}"):
            head = f"POST {spelt} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
            assert ask(guarded, f"{head}\r\n".encode()) == [401]
            assert ask(guarded, f"{head}authorization: Bearer {KEY}\r\n\r\n".encode()) == [401]
            assert ask(guarded, f"{head}authorization: Bearer {ADMIN_KEY}\r\n\r\n".encode()) == [200]


def test_a_key_opens_its_own_request_alone(guarded: RunningServer) -> None:
    key = f"authorization: Bearer {KEY}\r\n"
    requests = [
        f"GET {path} HTTP/1.1\r\nhost: x\r\n{more}\r\n"
        for path, more in (("/health", ""), ("/model_info", key), ("/model_info", ""), ("/model_info", key))
    ]
    last = "GET /model_info HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    assert ask(guarded, "".join((*requests, last)).encode()) == [200, 200, 401, 200, 401]


def test_any_of_the_keys_opens_inference(http: httpx.Client) -> None:
    for key in [KEY, SPARE_KEY, ADMIN_KEY]:
        for headers in (bearer(key), {"authorization": f"bEaReR  {key}"}, {"X-Api-Key": key}):
            assert http.post("/generate", json=GENERATE, headers=headers).status_code == 200


def test_other_keys_are_refused(http: httpx.Client) -> None:
    for given in ["sk-test-12", "sk-test-1234", "SK-TEST-123", f"{KEY},{SPARE_KEY}", "\xe9"]:
        refusal = http.post(
            "/v1/completions", json={"prompt": "a"}, headers={"Authorization": f"Bearer {given}".encode()}
        )
        assert refusal.status_code == 401
        assert refusal.headers["www-authenticate"] == "Bearer"
        assert refusal.json()["error"]["code"] == "invalid_api_key"
        assert given not in refusal.text


def test_other_schemes_are_no_key(http: httpx.Client) -> None:
    refusal = http.post("/generate", json=GENERATE, headers={"Authorization": f"Basic {KEY}"})
    assert (refusal.status_code, refusal.json()["error"]["code"]) == (401, "missing_api_key")


def test_control_takes_the_administrators_key_alone(http: httpx.Client) -> None:
    assert http.post("/flush_cache", headers=bearer(KEY)).status_code == 401
    assert http.post("/abort_request", json={"abort_all": True}, headers=bearer(SPARE_KEY)).status_code == 401
    assert http.post("/flush_cache", headers=bearer(ADMIN_KEY)).status_code == 200


def test_keys_are_shown_nowhere(http: httpx.Client) -> None:
    shown = http.get("/server_info", headers=bearer(KEY)).text
    assert KEY not in shown
    assert ADMIN_KEY not in shown
    info = json.loads(shown)
    assert (info["api_key_file"], info["admin_api_key_file"]) == ("(set)", None)
    assert "keys" not in info["launch_command"]
    args = ServerArgs(api_key=KEY, ssl_keyfile="/private/a.pem", admin_api_key_file="/private/keys")
    assert "/private" not in repr(args)
    assert "/private" not in json.dumps([args.to_public_dict(), args.to_flags()])
    assert KEY not in repr(args)
    assert args.to_public_dict()["api_key"] == "(set)"


def test_a_body_without_a_key_is_not_waited_for(guarded: RunningServer) -> None:
    for length in [50, 999_999_999_999]:
        with guarded.connect() as connection:
            connection.sendall(b"POST /generate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % length)
            assert connection.recv(65536).startswith(b"HTTP/1.1 401 ")


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[tuple[RunningServer, httpx.Client]]:
    """A server that works on two requests of a key at a time; answers wait for its engine's gate."""
    keys = tmp_path / "keys"
    keys.write_text(f"{KEY}\n{SPARE_KEY}\n")
    keys.chmod(0o600)
    with (
        running_server(tmp_path, api_key_file=str(keys), max_requests_per_key=2) as running,
        httpx.Client(base_url=running.url, headers=bearer(KEY), timeout=20) as client,
    ):
        running.run(running.engine.gate.clear)
        yield running, client
        running.run(running.engine.gate.set)
        running.assert_idle()


def begin(running: RunningServer, stream: bool = False) -> socket.socket:
    """Send a request whose answer nobody waits for."""
    body = json.dumps({**GENERATE, "stream": stream})
    head = f"POST /generate HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
    started = len(running.engine.running)
    connection = running.connect()
    connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n{body}".encode())
    running.wait_until(lambda: len(running.engine.running) > started)
    return connection


class TestRequestsOfAKey:
    def test_beyond_the_limit_they_are_refused_at_once_and_other_keys_are_not(
        self, limited: tuple[RunningServer, httpx.Client]
    ) -> None:
        running, client = limited
        waiting = [begin(running), begin(running, stream=True)]
        for path, body in (("/generate", GENERATE), ("/v1/completions", {"prompt": "a"}), ("/generate", "no request")):
            refusal = client.post(path, json=body)
            assert (refusal.status_code, refusal.headers["retry-after"]) == (429, "1")
            error = refusal.json()["error"]
            assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
            assert "--max-requests-per-key" in error["message"]
        api = openai.OpenAI(base_url=f"{running.url}/v1", api_key=KEY, max_retries=0)
        with pytest.raises(openai.RateLimitError):
            api.completions.create(model="m", prompt="a")
        with pytest.raises(TooManyRequests) as refused:
            RuntimeEndpoint(running.url, api_key=KEY).generate(text="a")
        assert refused.value.code == "rate_limit_exceeded"
        assert client.get("/v1/models").status_code == 200
        assert client.post("/abort_request", json={"rid": "nobody"}).status_code == 200
        assert running.manager.metrics.http_responses["/generate", "POST", 429] == 3
        running.run(running.engine.gate.set)
        assert client.post("/generate", json=GENERATE, headers=bearer(SPARE_KEY)).status_code == 200
        for connection in waiting:
            assert b" 200 " in connection.recv(65536)
            connection.close()

    def test_each_that_is_over_makes_room_for_one(self, limited: tuple[RunningServer, httpx.Client]) -> None:
        running, client = limited
        left, stays = begin(running, stream=True), begin(running)
        left.close()
        running.wait_until(lambda: len(running.engine.running) == 1)
        running.run(running.engine.gate.set)
        assert b" 200 " in stays.recv(65536)
        stays.close()
        for _ in range(4):
            for body, status in ((GENERATE, 200), ({"nonsense": 1}, 400), ({**GENERATE, "stream": True}, 200)):
                assert client.post("/generate", json=body).status_code == status

    def test_what_goes_on_in_the_background_counts_until_its_end(
        self, limited: tuple[RunningServer, httpx.Client]
    ) -> None:
        _, client = limited
        body = {"input": "a", "background": True}
        first, second = (client.post("/v1/responses", json=body) for _ in range(2))
        assert (first.status_code, second.status_code) == (200, 200)
        assert client.post("/v1/responses", json=body).status_code == 429
        assert client.post("/close_session", json={"session_id": "unknown"}).status_code != 429, "it only frees"
        assert client.post(f"/v1/responses/{first.json()['id']}/cancel").json()["status"] == "cancelled"
        third = client.post("/v1/responses", json=body)
        assert third.status_code == 200
        assert client.post("/v1/responses", json=body).status_code == 429
        for response in (second, third):
            assert client.post(f"/v1/responses/{response.json()['id']}/cancel").status_code == 200


def test_a_limit_of_keys_takes_keys() -> None:
    for options in ({}, {"admin_api_key": ADMIN_KEY}):
        with pytest.raises(ConfigError, match="limits nothing without --api-key"):
            Gate(ServerArgs(max_requests_per_key=1, **options))


def test_clients_of_others_say_what_is_wrong(guarded: RunningServer) -> None:
    wrong, right = (openai.OpenAI(base_url=f"{guarded.url}/v1", api_key=key, max_retries=0) for key in ("no", KEY))
    with pytest.raises(openai.AuthenticationError, match="not one of the server's"):
        wrong.models.list()
    assert right.models.list().data
    message = {"model": "m", "max_tokens": 2, "messages": [{"role": "user", "content": "a"}]}
    with pytest.raises(anthropic.AuthenticationError):
        anthropic.Anthropic(base_url=guarded.url, api_key="no", max_retries=0).messages.create(**message)  # type: ignore[call-overload]
    with pytest.raises(BadRequest, match="a key is needed"):
        RuntimeEndpoint(guarded.url).get_model_info()
    assert RuntimeEndpoint(guarded.url, api_key=SPARE_KEY).get_model_info()


def test_the_benchmark_brings_its_key(guarded: RunningServer) -> None:
    args = BenchServeArgs(base_url=guarded.url, api_key=ADMIN_KEY, warmup_requests=0)
    dataset = DatasetArgs(num_prompts=2, random_input_len=4, random_output_len=2)
    assert uvloop.run(run_benchmark(args, dataset))["failed"] == 0


def test_who_comes_without_a_key() -> None:
    cases = [
        ({}, Access.CLIENT, None),
        ({}, Access.CONTROL, None),
        ({"host": "0.0.0.0"}, Access.CLIENT, None),
        ({"host": "0.0.0.0"}, Access.CONTROL, 403),
        ({"host": "::"}, Access.CONTROL, 403),
        ({"host": "::1"}, Access.CONTROL, None),
        ({"host": "localhost"}, Access.CONTROL, None),
        ({"host": "example.org"}, Access.CONTROL, 403),
        ({"api_key": KEY}, Access.CONTROL, 401),
        ({"api_key": KEY, "host": "0.0.0.0"}, Access.CONTROL, 403),
        ({"admin_api_key": KEY}, Access.CLIENT, None),
        ({"admin_api_key": KEY}, Access.CONTROL, 401),
        ({"api_key": KEY, "host": "0.0.0.0"}, Access.OPEN, None),
    ]
    for options, access, status in cases:
        gate = Gate(ServerArgs(**options))
        if status is None:
            gate.check(access, [])
            continue
        with pytest.raises(RequestFailed) as refused:
            gate.check(access, [])
        assert refused.value.status_code == status


def test_no_link_leads_to_a_control_route(client: httpx.Client) -> None:
    for site in ["same-origin", "same-site", "none"]:
        opened = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        for method, path in (("GET", "/flush_cache"), ("POST", "/flush_cache"), ("GET", "/playground/events")):
            refusal = client.request(method, path, headers=opened)
            assert (refusal.status_code, refusal.json()["error"]["code"]) == (403, "navigation"), path
        for path in ("/", "/docs", "/model_info", "/metrics"):
            assert client.get(path, headers=opened).status_code == 200
        for program in ({}, {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}):
            assert client.get("/flush_cache", headers=program).status_code == 200


def test_a_key_is_as_good_by_a_link() -> None:
    gate = Gate(ServerArgs(api_key=KEY))
    key = (b"authorization", b"Bearer " + KEY.encode())
    gate.check(Access.CONTROL, [key, (b"sec-fetch-mode", b"navigate")])


def test_clients_keys_open_no_control_where_other_machines_are_let_in() -> None:
    for host in ["0.0.0.0", "::", "192.0.2.1", "example.org"]:
        gate = Gate(ServerArgs(api_key=KEY, host=host))
        for headers in ([], [(b"authorization", b"Bearer " + KEY.encode())]):
            with pytest.raises(RequestFailed, match="--admin-api-key or --admin-api-key-file opens them") as refused:
                gate.check(Access.CONTROL, headers)
            assert (refused.value.status_code, refused.value.code) == (403, "control_closed")
        gate.check(Access.CLIENT, [(b"authorization", b"Bearer " + KEY.encode())])


def test_clients_keys_open_control_on_a_loopback_address_without_an_administrator() -> None:
    for host in ["127.0.0.1", "::1", "localhost"]:
        gate = Gate(ServerArgs(api_key=KEY, host=host))
        gate.check(Access.CONTROL, [(b"authorization", b"Bearer " + KEY.encode())])


def test_an_administrators_key_opens_control_to_other_machines() -> None:
    for keys in [{"admin_api_key": ADMIN_KEY}, {"admin_api_key": ADMIN_KEY, "api_key": KEY}]:
        gate = Gate(ServerArgs(host="0.0.0.0", **keys))
        gate.check(Access.CONTROL, [(b"authorization", b"Bearer " + ADMIN_KEY.encode())])
        with pytest.raises(RequestFailed, match="needs an administrator's key") as refused:
            gate.check(Access.CONTROL, [(b"authorization", b"Bearer " + KEY.encode())])
        assert refused.value.status_code == 401


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"host": "127.0.0.1"}, []),
        ({"host": "0.0.0.0"}, ["may use the model", "Control routes are closed"]),
        ({"host": "0.0.0.0", "api_key": KEY}, ["Control routes are closed"]),
        ({"host": "0.0.0.0", "admin_api_key": ADMIN_KEY}, ["may use the model"]),
        ({"host": "0.0.0.0", "api_key": KEY, "admin_api_key": ADMIN_KEY}, []),
    ],
)
def test_what_is_open_or_closed_to_other_machines_is_logged(
    caplog: pytest.LogCaptureFixture, options: dict[str, str], told: list[str]
) -> None:
    with caplog.at_level("INFO"):
        Gate(ServerArgs(**options))
    assert len(caplog.messages) == len(told)
    for message, part in zip(caplog.messages, told, strict=True):
        assert part in message


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("", "holds no key"), ("a b\n", "the key in line 1 must be printable"), ("a\n\nü\n", "the key in line 3")],
)
def test_files_of_keys_are_checked(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=complaint):
        Gate(ServerArgs(api_key_file=str(file)))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Gate(ServerArgs(admin_api_key_file=str(tmp_path / "absent")))


def test_files_of_keys_may_be_in_a_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "keys").write_text("a\n")
    assert read_keys(None, "~/keys", "api_key_file") == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize(
    ("mode", "told"), [(0o600, False), (0o440, False), (0o640, False), (0o644, True), (0o660, True), (0o602, True)]
)
def test_files_that_are_open_to_others_are_told_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, told: bool
) -> None:
    file = tmp_path / "keys"
    file.write_text("a\n")
    file.chmod(mode)
    Gate(ServerArgs(api_key_file=str(file)))
    assert ("is open to other users" in caplog.text) == told


def test_a_wrong_key_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        ServerArgs(api_key="two words")
    assert "two words" not in str(refused.value)
