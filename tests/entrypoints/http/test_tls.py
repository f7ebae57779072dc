from __future__ import annotations

import math
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop

from bough.bench.datasets import DatasetArgs
from bough.bench.serve import BenchServeArgs, run_benchmark
from bough.cli import main
from bough.config.server_args import ServerArgs
from bough.entrypoints.http import server as http_server
from bough.entrypoints.http.tls import tls_context
from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import ConfigError, StartupError
from tests.entrypoints.http.server import running_server

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")


def openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, a server and a client that it has signed, and the server's key once more, encrypted."""
    directory = tmp_path_factory.mktemp("pems")
    new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    authority = ("-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-x509", *new_key, *authority, "-days", "2", cwd=directory)
    # From Python 3.13 on, certificates have to say whose they are.
    (directory / "extensions").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    for name in ("server", "client"):
        openssl("req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}", cwd=directory)
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extensions")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem", cwd=directory)
    encrypt = ("-in", "server.key", "-aes256", "-passout", "pass:secret", "-out", "locked.key")
    openssl("ec", *encrypt, cwd=directory)
    return directory


def test_streams_over_https(pems: Path, tmp_path: Path) -> None:
    options = {"ssl_certfile": str(pems / "server.pem"), "ssl_keyfile": str(pems / "server.key")}
    with running_server(tmp_path, **options) as server:
        url = server.url.replace("http://", "https://")
        context = ssl.create_default_context(cafile=str(pems / "ca.pem"))
        body = {"text": "a", "sampling_params": {"max_new_tokens": 5}, "stream": True}
        with httpx.Client(base_url=url, verify=context, timeout=20) as client:
            assert client.get("/health").status_code == 200
            with client.stream("POST", "/generate", json=body) as answer:
                events = [line for line in answer.iter_lines() if line]
        assert events[-1] == "data: [DONE]"
        assert len(events) > 2
        assert RuntimeEndpoint(url, verify=str(pems / "ca.pem")).get_model_info()
        assert RuntimeEndpoint(url, verify=False).get_model_info()
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{url}/health")
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{server.url}/health")
        server.assert_idle()


def test_clients_without_a_certificate_are_turned_away(pems: Path, tmp_path: Path) -> None:
    options = {
        f"ssl_{name}": str(pems / file) for name, file in (("certfile", "server.pem"), ("keyfile", "server.key"))
    }
    with running_server(tmp_path, **options, ssl_ca_certs=str(pems / "ca.pem")) as server:
        url = server.url.replace("http://", "https://") + "/health"
        context = ssl.create_default_context(cafile=str(pems / "ca.pem"))
        with pytest.raises(httpx.HTTPError):
            httpx.get(url, verify=context)
        context.load_cert_chain(pems / "client.pem", pems / "client.key")
        assert httpx.get(url, verify=context).status_code == 200


@pytest.fixture(scope="module")
def https(pems: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server with a certificate that only ``ca.pem`` vouches for."""
    files = {"ssl_certfile": str(pems / "server.pem"), "ssl_keyfile": str(pems / "server.key")}
    with running_server(tmp_path_factory.mktemp("https"), **files) as server:
        yield server.url.replace("http://", "https://")


def test_chat_trusts_the_certificates_that_are_named(
    pems: Path, https: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: "/exit")
    assert main(["chat", "--url", https, "--ca-cert", str(pems / "ca.pem")]) == 0
    assert "Talking with" in capsys.readouterr().err  # standard output is no terminal
    assert main(["chat", "--url", https]) == 1
    assert "certificate verify failed" in capsys.readouterr().err
    for argv, complaint in (
        (["--url", https, "--ca-cert", "absent.pem"], "absent.pem cannot be used: no such file"),
        (["--url", https.replace("https", "http"), "--ca-cert", "ca.pem"], "begins with no https://"),
        (["--ca-cert", "ca.pem"], "--ca-cert is for a server that runs already"),
    ):
        assert main(["chat", *argv]) == 2
        assert complaint in capsys.readouterr().err


def test_chat_believes_the_server_that_it_has_started(
    pems: Path, https: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Started:
        url = https

        def __init__(self, launch_timeout: float, **options: Any) -> None:
            assert launch_timeout == math.inf, "whoever waits at a terminal can give up without being told when"
            self.server_args = ServerArgs(**options)

        def shutdown(self) -> None:
            pass

    monkeypatch.setattr("bough.Runtime", Started)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: "/exit")
    assert main(["chat", "--ssl-certfile", str(pems / "server.pem"), "--ssl-keyfile", str(pems / "server.key")]) == 0
    assert "Talking with" in capsys.readouterr().err


def test_the_benchmark_trusts_the_certificates_that_are_named(pems: Path, https: str) -> None:
    dataset = DatasetArgs(num_prompts=2, random_input_len=4, random_output_len=2)
    options = {"base_url": https, "ready_check_timeout_sec": 0.0}
    assert uvloop.run(run_benchmark(BenchServeArgs(**options, ca_cert=str(pems / "ca.pem")), dataset))["failed"] == 0
    with pytest.raises(StartupError, match="certificate verify failed"):
        uvloop.run(run_benchmark(BenchServeArgs(**options), dataset))


def test_a_silent_handshake_is_given_up(pems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKE_TIMEOUT", 0.2)
    files = {"ssl_certfile": str(pems / "server.pem"), "ssl_keyfile": str(pems / "server.key")}
    with running_server(tmp_path, **files) as server:
        for beginning in (b"", b"\x16\x03\x01\x02\x00\x01"):
            with server.connect() as connection:
                connection.sendall(beginning)
                assert connection.recv(100) == b""


def test_clients_may_not_renegotiate(pems: Path) -> None:
    files = {"ssl_certfile": str(pems / "server.pem"), "ssl_keyfile": str(pems / "server.key")}
    context = tls_context(ServerArgs(**files))
    assert context is not None
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_encrypted_keys_need_their_password(pems: Path) -> None:
    files = {"ssl_certfile": str(pems / "server.pem"), "ssl_keyfile": str(pems / "locked.key")}
    assert tls_context(ServerArgs(**files, ssl_keyfile_password="secret")) is not None
    for password in (None, "wrong"):
        with pytest.raises(ConfigError, match="cannot be used with its private key"):
            tls_context(ServerArgs(**files, ssl_keyfile_password=password))


def test_files_may_be_in_a_home_directory(pems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(pems))
    names = {"ssl_certfile": "server.pem", "ssl_keyfile": "server.key", "ssl_ca_certs": "server.pem"}
    assert tls_context(ServerArgs(**{option: f"~/{name}" for option, name in names.items()})) is not None


def test_files_that_do_not_serve_are_named(pems: Path) -> None:
    cases = [
        ({"ssl_certfile": "x" * 300}, "cannot read .*: File name too long"),
        ({"ssl_keyfile": "server.key"}, "--ssl-keyfile needs --ssl-certfile"),
        ({"ssl_certfile": "absent.pem"}, "absent.pem is no file"),
        ({"ssl_certfile": "server.pem", "ssl_keyfile": "client.key"}, "key values mismatch"),
        ({"ssl_certfile": "server.key", "ssl_keyfile": "server.key"}, "cannot be used with its private key"),
        ({"ssl_certfile": "server.key"}, "cannot be used with its private key: it is not in PEM"),
        ({"ssl_certfile": "server.pem", "ssl_keyfile": "server.key", "ssl_ca_certs": "server.key"}, "--ssl-ca-certs"),
    ]
    for options, complaint in cases:
        with pytest.raises(ConfigError, match=complaint):
            tls_context(ServerArgs(**{name: str(pems / file) for name, file in options.items()}))
