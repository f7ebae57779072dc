from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
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


def test_nobody_can_guess_the_names_of_sockets(ports):
    other = PortArgs.create()
    try:
        ours, theirs = ({os.path.basename(each) for each in endpoints(made)} for made in (ports, other))
        assert not ours & theirs
    finally:
        other.cleanup()


def test_a_directory_that_others_may_enter_is_refused(ports):
    ports.check_private()
    os.chmod(ports.directory, 0o710)
    with pytest.raises(StartupError, match="only this user may enter"):
        ports.check_private()
    os.chmod(ports.directory, 0o700)


def test_a_link_to_a_private_directory_is_refused(ports, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(ports.directory)
    with pytest.raises(StartupError, match="only this user may enter"):
        replace(ports, directory=str(link)).check_private()
    with pytest.raises(StartupError, match="No such file"):
        replace(ports, directory=str(tmp_path / "none")).check_private()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
def test_a_directory_of_somebody_else_is_refused(ports):
    os.chown(ports.directory, 65534, 65534)
    with pytest.raises(StartupError, match="only this user may enter"):
        ports.check_private()


def test_endpoints_are_distinct_and_can_be_bound(ports):
    assert len(set(endpoints(ports))) == 3
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


CREATE = """
import time
from bough.config.port_args import PortArgs
made = PortArgs.create()
print(made.directory, flush=True)
time.sleep(60)
"""
CREATE_OFTEN = """
import os
from bough.config.port_args import PortArgs
for _ in range(50):
    made = PortArgs.create()
    assert os.path.exists(made.directory + "/owner")
    made.cleanup()
"""


@pytest.fixture
def short_path():
    """A directory whose path leaves room for the names of sockets, as that of ``tmp_path`` may not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        yield Path(directory)


def test_what_killed_servers_have_left_is_removed_and_nothing_else(short_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(short_path))
    monkeypatch.setattr(tempfile, "tempdir", str(short_path))
    others = [subprocess.Popen([sys.executable, "-c", CREATE], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        killed, alive = (Path(each.stdout.readline().strip()) for each in others)
        for name in ("bough-profile-x", "bough-", "boughs"):
            (short_path / name).mkdir()
            (short_path / name / "kept").touch()
        (short_path / "bough-file").touch()
        (short_path / "bough-link").symlink_to(alive)
        (killed / "scheduler-x").touch()
        others[0].kill()
        others[0].wait()
        before = set(short_path.iterdir())
        ports = PortArgs.create()
        assert set(short_path.iterdir()) == before - {killed} | {Path(ports.directory)}
        again = PortArgs.create()
        assert Path(ports.directory).exists(), "it is this process's own"
        for each in (ports, again):
            each.cleanup()
        assert set(short_path.iterdir()) == before - {killed}
    finally:
        for each in others:
            each.kill()
            each.wait()
            each.stdout.close()


def test_many_that_start_at_once_remove_nothing_of_each_other(short_path):
    env = {**os.environ, "TMPDIR": str(short_path)}
    running = [subprocess.Popen([sys.executable, "-c", CREATE_OFTEN], env=env) for _ in range(4)]
    assert [each.wait() for each in running] == [0] * 4
    assert list(short_path.iterdir()) == []


def test_a_temporary_directory_that_is_not_utf8_is_avoided(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", os.fsdecode(os.fsencode(tmp_path) + b"\xff"))
    os.mkdir(tempfile.tempdir)
    ports = PortArgs.create()
    try:
        json.dumps(ports.to_dict(), ensure_ascii=False).encode()
    finally:
        ports.cleanup()
