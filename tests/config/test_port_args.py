from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
import zmq

from bough.config.port_args import MAX_SOCKET_PATH_BYTES, PortArgs
from bough.errors import StartupError


@pytest.fixture
def ports():
    made = PortArgs.create()
    yield made
    made.cleanup()


def endpoints(ports: PortArgs) -> list[str]:
    return [value for name, value in ports.to_dict().items() if name.endswith("_ipc_name")]


def test_only_the_owner_may_enter_the_directory(ports):
    assert stat.S_IMODE(os.stat(ports.directory).st_mode) == 0o700


def test_endpoints_are_distinct_and_can_be_bound(ports):
    assert len(set(endpoints(ports))) == 4
    with zmq.Context() as context:
        for endpoint in endpoints(ports):
            with context.socket(zmq.PULL) as socket:
                socket.bind(endpoint)


def test_a_long_temporary_directory_is_avoided(tmp_path, monkeypatch):
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    ports = PortArgs.create()
    try:
        for endpoint in endpoints(ports):
            assert len(endpoint.removeprefix("ipc://").encode()) <= MAX_SOCKET_PATH_BYTES
        assert list(long.iterdir()) == []
    finally:
        ports.cleanup()


def test_no_place_for_sockets_is_a_start_up_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    monkeypatch.setattr("bough.config.port_args._FALLBACK_DIRECTORIES", ())
    with pytest.raises(StartupError, match="set TMPDIR to a short writable path"):
        PortArgs.create()


def test_cleaning_up_removes_everything_and_can_be_repeated():
    ports = PortArgs.create()
    Path(ports.directory, "tokenizer").touch()
    ports.cleanup()
    ports.cleanup()
    assert not Path(ports.directory).exists()


def test_a_dictionary_holds_everything(ports):
    assert PortArgs.from_dict(ports.to_dict()) == ports
