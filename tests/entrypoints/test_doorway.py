from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.config.server_args import ServerArgs
from bough.entrypoints.doorway import Doorway
from bough.errors import ConfigError, StartupError


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


@pytest.fixture
def free() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_it_listens_where_all_is_well(tmp_path: Path, free: int) -> None:
    (tmp_path / "mine.jinja").write_text("{{ messages }}")
    doorway = Doorway.open(ServerArgs(port=free, chat_template=str(tmp_path / "mine.jinja")))
    with doorway.listener:
        assert doorway.listener.getsockname()[1] == free
        assert doorway.tls is None


def test_all_that_is_wrong_is_said_in_one_go(taken: int) -> None:
    args = ServerArgs(
        model_path="/no/such/model",
        port=taken,
        api_key_file="/no/keys",
        ssl_certfile="/no/certificate",
        chat_template="chatnl",
    )
    with pytest.raises(ConfigError) as caught:
        Doorway.open(args)
    assert re.fullmatch(
        r"no such directory: /no/such/model; .* \(besides: --api-key-file /no/keys cannot be read: No such file .*; "
        r"--ssl-certfile /no/certificate is no file; --chat-template chatnl: .*; did you mean 'chatml'\?; "
        rf"cannot listen on 127.0.0.1:{taken}: Address already in use; choose another --port or --host\)",
        str(caught.value),
    )


def test_an_address_that_cannot_be_had_is_no_wrong_option(taken: int) -> None:
    with pytest.raises(StartupError, match=r"^cannot listen .* choose another --port or --host$") as caught:
        Doorway.open(ServerArgs(port=taken))
    assert not isinstance(caught.value, ConfigError)


def test_a_wrong_file_leaves_no_socket(tmp_path: Path) -> None:
    (tmp_path / "bad.jinja").write_text("{% for %}")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        with pytest.raises(ConfigError, match=r"^--chat-template .*bad.jinja: .* not valid Jinja: .* \(line 1\)$"):
            Doorway.open(ServerArgs(chat_template=str(tmp_path / "bad.jinja")), listener)
        assert listener.fileno() == -1


def test_a_template_that_nothing_needs_is_not_looked_for(free: int) -> None:
    Doorway.open(ServerArgs(port=free, chat_template="nope", skip_tokenizer_init=True)).listener.close()


class TestUnixSockets:
    def test_only_this_user_may_connect_and_nothing_is_left(self, tmp_path: Path) -> None:
        path = tmp_path / "socket"
        before = os.umask(0)
        try:
            doorway = Doorway.open(ServerArgs(uds=str(path)))
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        doorway.close()
        assert not path.exists()

    def test_what_a_killed_server_has_left_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "socket"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        Doorway.open(ServerArgs(uds=str(path))).close()

    def test_a_server_that_listens_and_what_is_no_socket_are_left_alone(self, tmp_path: Path) -> None:
        path, file = tmp_path / "socket", tmp_path / "file"
        file.write_text("mine")
        doorway = Doorway.open(ServerArgs(uds=str(path)))
        for taken in (path, file, tmp_path, tmp_path / "absent" / "socket", tmp_path / ("x" * 200)):
            with pytest.raises(StartupError, match="--uds") as refused:
                Doorway.open(ServerArgs(uds=str(taken)))
            assert refused.value.param == "uds"
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
        assert file.read_text() == "mine"
        doorway.close()

    @pytest.mark.parametrize("other", [{"port": 30001}, {"host": "127.0.0.2"}])
    def test_it_is_instead_of_an_address(self, tmp_path: Path, other: dict[str, Any]) -> None:
        with pytest.raises(ConfigError, match="exclude each other") as refused:
            Doorway.open(ServerArgs(uds=str(tmp_path / "socket"), **other))
        assert refused.value.param in other

    def test_a_server_that_is_given_its_socket_takes_no_other(self, tmp_path: Path) -> None:
        with socket.socket() as listener, pytest.raises(ConfigError, match="--uds"):
            Doorway.open(ServerArgs(uds=str(tmp_path / "socket")), listener)


def test_what_is_no_path_of_a_proxy_is_refused() -> None:
    for value in ["/", "llm", "/llm/", "//llm", "/a b", "/ä", "http://x/llm", "/a?b", ""]:
        with pytest.raises(ConfigError, match="root_path"):
            ServerArgs(root_path=value)
