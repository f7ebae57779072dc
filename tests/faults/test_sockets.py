"""What somebody can do to the sockets between processes: nothing, as another user; little, as the same one."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from bough.config.ranks import SCHEDULER, ProcessKey
from bough.ipc.codec import encode
from bough.ipc.messages import (
    AbortReq,
    BatchEmbeddingOutput,
    BatchStrOutput,
    BatchTokenIDOutput,
    ControlReply,
    ControlReq,
    DecodeInit,
    FinishReason,
    Heartbeat,
    OutputDelta,
    RequestExtras,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
)
from bough.observability.stats import SchedulerStats
from bough.sampling.sampling_params import SamplingParams
from tests.e2e.server import Server
from tests.entrypoints.leftovers import directories_of, eventually
from tests.soak.measuring import resident_bytes, server_without_model

NOBODY = 65534
QUESTION = {"text": "who is there", "sampling_params": {"max_new_tokens": 20, "temperature": 0, "ignore_eos": True}}

GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
"""The start of ZMTP 3.0 (rfc.zeromq.org/spec/23), as a PUSH socket sends it."""
READY = b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PUSH"
RAW = [
    b"GET / HTTP/1.1\r\n\r\n",
    bytes(1000),
    b"\xff" * 1000,
    GREETING,
    GREETING + b"\x04\xff",
    GREETING + READY + b"\x02" + struct.pack(">Q", 2**62),  # announces 4 EiB
    GREETING + READY + b"\x02" + struct.pack(">Q", 2**40) + b"x" * 1000,
    GREETING + READY + b"\x00\x7fcut off",
    GREETING + READY * 100,
]

PARAMS = SamplingParams(max_new_tokens=3)
HOSTILE = [
    TokenizedGenerateReqInput([], b"", PARAMS),
    TokenizedGenerateReqInput(["a"], b"\x01", PARAMS),
    TokenizedGenerateReqInput(["a", "a"], b"\x01\0\0\0", PARAMS),
    TokenizedGenerateReqInput(["b"], b"\xff\xff\xff\xff" * 3, PARAMS),
    TokenizedGenerateReqInput(["c"], b"\x01\0\0\0" * 100_000, PARAMS),
    TokenizedGenerateReqInput(["d"], b"\x01\0\0\0", SamplingParams(temperature=-5.0, top_p=7.0, top_k=-9)),
    TokenizedGenerateReqInput(["e"], b"\x01\0\0\0", SamplingParams(stop_regex=("(a+)+$",), max_new_tokens=5)),
    TokenizedGenerateReqInput(["f"], b"\x01\0\0\0", SamplingParams(json_schema="{", max_new_tokens=5)),
    TokenizedGenerateReqInput(["g"], b"\x01\0\0\0", PARAMS, extras=RequestExtras(2**62, -1e300, "\0" * 1000)),
    TokenizedGenerateReqInput(["h"], b"\x01\0\0\0", PARAMS, return_logprob=True, logprob_start_len=-(2**60)),
    TokenizedGenerateReqInput(["i"], b"\x01\0\0\0", PARAMS, banned_sequences=((2**40,), ())),
    TokenizedEmbeddingReqInput("j", b"\x01\0\0\0", token_types=b"\xff" * 7, dimensions=-3),
    AbortReq("nobody"),
    ControlReq("x", "no_such_method", {"a": [[[[]]]]}),
    ControlReq("zz", "flush_cache", {"timeout": float("nan")}),
    ControlReq("y", "get_internal_state", {"unexpected": True}),
    BatchTokenIDOutput([OutputDelta("nobody", [1, 2], None)]),
    BatchTokenIDOutput([OutputDelta("k", [-5, 2**31, 2**60], None, decode=DecodeInit([2**50, -1]))]),
    BatchTokenIDOutput([OutputDelta("l", [], None, FinishReason("abort", status_code=-1))] * 50),
    BatchStrOutput([OutputDelta("nobody", [1], "text", FinishReason("length", length=-1))]),
    BatchEmbeddingOutput([OutputDelta("nobody", [], None, embedding=b"\xff" * 7)]),
    ControlReply("nobody", SCHEDULER, True, "", {}),
    Heartbeat(ProcessKey("scheduler", -3), stats=SchedulerStats(num_queue_reqs=-5)),
    Heartbeat(ProcessKey("detokenizer", 2**40), lag_total=-1),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with server_without_model(tmp_path_factory.mktemp("server"), "--watchdog-timeout", "20") as server:
        yield server


@pytest.fixture
def server(shared: Server) -> Iterator[Server]:
    """Whatever is done to it, the processes stay, answer, and hold nothing."""
    processes = [process.pid for process in shared.processes()]
    answer = shared.generate(**QUESTION)["text"]
    yield shared
    assert [process.pid for process in shared.processes()] == processes
    assert shared.generate(**QUESTION)["text"] == answer
    assert shared.client.get("/ready").status_code == 200
    shared.assert_idle_and_whole()


def sockets(server: Server) -> list[Path]:
    (directory,) = directories_of(*(process.pid for process in server.processes()))
    return sorted(path for path in Path(directory).iterdir() if path.is_socket())


def malformed(server: Server) -> float:
    return server.metric("malformed_messages_total")


def attempts_as_nobody(paths: list[Path]) -> list[str]:
    """What another user is told who tries the directory and every socket in it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        results = []
        for path in [paths[0].parent, *paths]:
            try:
                if path is paths[0].parent or path == paths[0].parent:
                    os.listdir(path)
                else:
                    socket.socket(socket.AF_UNIX).connect(str(path))
                results.append("let in")
            except OSError as error:
                results.append(type(error).__name__)
        os.write(write, ",".join(results).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    with os.fdopen(read) as pipe:
        return pipe.read().split(",")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_gets_nowhere(server: Server) -> None:
    paths = sockets(server)
    assert len(paths) == 3
    assert attempts_as_nobody(paths) == ["PermissionError"] * 4


def test_bytes_that_are_no_messages_end_their_connection_alone(server: Server) -> None:
    for path in sockets(server):
        for data in RAW:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.settimeout(0.2)
                try:
                    connection.sendall(data)
                    connection.recv(4096)
                except (BrokenPipeError, ConnectionResetError, TimeoutError):
                    pass


def send(path: Path, frames: list[list[bytes]]) -> None:
    with zmq.Context() as context:
        for kind in (zmq.PUSH, zmq.DEALER):
            with context.socket(kind) as peer:
                peer.setsockopt(zmq.LINGER, 500)
                peer.setsockopt(zmq.SNDTIMEO, 500)
                peer.connect(f"ipc://{path}")
                try:
                    for each in frames:
                        peer.send_multipart(each)
                except zmq.Again:
                    return  # the socket takes none of this kind


def test_damaged_and_hostile_messages_are_counted_and_dropped(server: Server) -> None:
    rng = random.Random(3)
    before = malformed(server)
    frames: list[list[bytes]] = [[b""], [b"\xc1"], [b"\x91" * 50_000], [b"a", b"b", b"c"], [os.urandom(10_000)]]
    for message in HOSTILE:
        whole = encode(message)
        cut = whole[: rng.randrange(len(whole))]
        spoilt = bytearray(whole)
        for _ in range(3):
            spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        frames += [[whole], [cut], [bytes(spoilt)]]
    for path in sockets(server):
        send(path, frames)
    assert server.generate(**QUESTION)
    # Every socket has refused what is for another one, and what is for nobody; heartbeats tell.
    assert eventually(lambda: malformed(server) - before > 3 * len(HOSTILE)), malformed(server)
    assert "Dropped a malformed message on" in server.log.read_text()


def test_a_process_that_lags_holds_up_nobody_and_loses_nothing(server: Server) -> None:
    """Stops the detokenizer while answers are computed, for longer than any queue between the processes lasts."""
    detokenizer = server.processes()[2].pid
    body = {**QUESTION, "sampling_params": {**QUESTION["sampling_params"], "max_new_tokens": 900}}  # type: ignore[dict-item]
    expected = server.generate(**body)["output_ids"]
    memory = resident_bytes(server)[1]
    with server.client.stream("POST", "/generate", json={**body, "stream": True}) as response:
        lines = response.iter_lines()
        next(lines)
        os.kill(detokenizer, signal.SIGSTOP)
        try:
            # Replies of the scheduler come straight to the main process, past the detokenizer.
            assert eventually(lambda: server.state()["idle"], 15), "the scheduler waits for nobody"
            assert resident_bytes(server)[1] - memory < 8 * 2**20
        finally:
            os.kill(detokenizer, signal.SIGCONT)
        events = [line for line in lines if line.startswith("data: {")]
    assert json.loads(events[-1][6:])["output_ids"] == expected
