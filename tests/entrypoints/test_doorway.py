from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

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
