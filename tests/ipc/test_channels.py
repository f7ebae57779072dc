from __future__ import annotations

import asyncio
import os
import resource
import select
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest
import uvloop
import zmq

from bough.config.port_args import PortArgs
from bough.config.ranks import DETOKENIZER, SCHEDULER
from bough.errors import BadRequest, EngineDead, Overloaded
from bough.ipc import channels as channels_module
from bough.ipc.channels import DetokenizerChannels, SchedulerChannels, TokenizerChannels
from bough.ipc.messages import (
    AbortReq,
    BatchStrOutput,
    BatchTokenIDOutput,
    ControlReply,
    FinishReason,
    Heartbeat,
    OutputDelta,
    RequestExtras,
    ShutdownReq,
    TokenizedGenerateReqInput,
)
from bough.ipc.sockets import receive_all, receiver, sender, writable
from bough.sampling.sampling_params import SamplingParams

REQUEST = TokenizedGenerateReqInput(["r"], b"\x01\0\0\0", SamplingParams())


class Ends:
    """Makes the ends of the channels of one server."""

    def __init__(self) -> None:
        self.ports = PortArgs.create()
        self._opened: list = []

    def scheduler(self, **options) -> SchedulerChannels:
        return self._keep(SchedulerChannels(self.ports, **options))

    def detokenizer(self) -> DetokenizerChannels:
        return self._keep(DetokenizerChannels(self.ports))

    def main(self) -> TokenizerChannels:
        return self._keep(TokenizerChannels(self.ports))

    def _keep(self, end):
        self._opened.append(end)
        return end

    def close(self) -> None:
        for each in self._opened:
            each.close()
        self.ports.cleanup()


@pytest.fixture
def ends(monkeypatch) -> Iterator[Ends]:
    monkeypatch.setattr(channels_module, "FINISH_TIMEOUT_S", 0.2)
    made = Ends()
    yield made
    made.close()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop(request) -> Iterator[asyncio.AbstractEventLoop]:
    event_loop = request.param()
    yield event_loop
    event_loop.close()


def receive(channels: SchedulerChannels, count: int) -> list:
    messages: list = []
    deadline = time.monotonic() + 5
    while len(messages) < count and time.monotonic() < deadline:
        messages += channels.recv(0.1)
    return messages


def test_requests_arrive_in_order(ends, loop):
    scheduler, main = ends.scheduler(), ends.main()
    sent = [REQUEST, *(AbortReq(str(i)) for i in range(3000)), ShutdownReq()]

    async def send() -> None:
        for message in sent:
            main.send(message)

    loop.run_until_complete(send())
    assert receive(scheduler, len(sent)) == sent
    assert scheduler.recv() == []


def test_descriptors_can_be_read_from_once_something_arrives(ends, loop):
    scheduler, main = ends.scheduler(), ends.main()

    def news(timeout: float) -> bool:
        return bool(select.select(scheduler.descriptors, [], [], timeout)[0])

    async def send() -> None:
        main.send(REQUEST)

    loop.run_until_complete(send())
    assert receive(scheduler, 1) == [REQUEST]
    assert scheduler.recv() == []
    assert not news(0.0)
    for _ in range(3):
        loop.run_until_complete(send())
        assert news(5.0)
        assert receive(scheduler, 1) == [REQUEST]
        assert scheduler.recv() == []
        assert not news(0.0)


def test_what_was_sent_before_the_scheduler_exists_arrives(ends, loop):
    main = ends.main()

    async def send() -> None:
        main.send(REQUEST)

    loop.run_until_complete(send())
    scheduler = ends.scheduler()
    assert receive(scheduler, 1) == [REQUEST]


def test_results_pass_through_the_detokenizer(ends, loop):
    scheduler, main = ends.scheduler(), ends.main()
    detokenizer = ends.detokenizer()
    scheduler.send_deltas([OutputDelta("a", [1]), OutputDelta("b", [2])])
    batch = detokenizer.recv(5)
    assert isinstance(batch, BatchTokenIDOutput)
    for delta in batch.deltas:
        delta.text = str(delta.token_ids)
    detokenizer.send_deltas(batch.deltas)
    detokenizer.send_to_tokenizer(Heartbeat(DETOKENIZER))
    scheduler.send_to_tokenizer(ControlReply("c", SCHEDULER, True))

    async def collect() -> list:
        return [await asyncio.wait_for(main.recv(), 5) for _ in range(3)]

    received = loop.run_until_complete(collect())
    assert BatchStrOutput([OutputDelta("a", [1], text="[1]"), OutputDelta("b", [2], text="[2]")]) in received
    assert ControlReply("c", SCHEDULER, True) in received
    (beat,) = (message for message in received if isinstance(message, Heartbeat))
    assert beat.process == DETOKENIZER
    assert beat.cpu_seconds > 0
    assert beat.resident_bytes > 2**20


def test_without_a_detokenizer_ids_go_straight_to_the_main_process(ends, loop):
    scheduler, main = ends.scheduler(has_detokenizer=False), ends.main()
    scheduler.send_deltas([OutputDelta("a", [1])])
    received = loop.run_until_complete(asyncio.wait_for(main.recv(), 5))
    assert received == BatchTokenIDOutput([OutputDelta("a", [1])])


def test_nothing_is_missed_when_messages_come_in_bursts(ends, loop):
    """The descriptor of a ZeroMQ socket signals edges; a message that comes while others are read must not be lost."""
    scheduler, main = ends.scheduler(has_detokenizer=False), ends.main()
    count = 3000

    def produce() -> None:
        for i in range(count):
            scheduler.send_deltas([OutputDelta(str(i), [i], finish_reason=FinishReason("stop"))])
            if i % 97 == 0:
                time.sleep(0.002)
        while not scheduler._results.flush():
            time.sleep(0.001)

    async def collect() -> list[str]:
        rids: list[str] = []
        while len(rids) < count:
            message = await asyncio.wait_for(main.recv(), 5)
            rids += [delta.rid for delta in message.deltas]
        return rids

    producer = threading.Thread(target=produce)
    producer.start()
    assert loop.run_until_complete(collect()) == [str(i) for i in range(count)]
    producer.join()


def test_a_lagging_receiver_costs_nothing_but_latency(ends):
    """Nobody reads for 20,000 steps: no send blocks, memory stays bounded, and in the end every token is there once."""
    scheduler, detokenizer = ends.scheduler(), ends.detokenizer()
    steps, rids = 20_000, [f"r{i}" for i in range(8)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for step in range(steps):  # would never end if a send waited for the reader
        scheduler.send_deltas([OutputDelta(rid, [step], completion_tokens=step + 1) for rid in rids])
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert 0 < scheduler.lag_total < steps / 100
    assert grown_kib < 40_000
    tokens: dict[str, list[int]] = {rid: [] for rid in rids}
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and len(tokens["r7"]) < steps:
        scheduler.recv()
        batch = detokenizer.recv(0.01)
        for delta in batch.deltas if isinstance(batch, BatchTokenIDOutput) else ():
            tokens[delta.rid] += delta.token_ids
            assert delta.completion_tokens == len(tokens[delta.rid])
    assert tokens == {rid: list(range(steps)) for rid in rids}


def test_control_replies_wait_for_a_lagging_receiver_and_stale_heartbeats_do_not(ends, loop):
    scheduler, main = ends.scheduler(has_detokenizer=False), ends.main()
    for i in range(1000):
        scheduler.send_to_tokenizer(ControlReply(str(i), SCHEDULER, True))
        scheduler.send_to_tokenizer(Heartbeat(SCHEDULER))

    async def collect() -> tuple[list[str], int]:
        calls: list[str] = []
        heartbeats = 0
        while len(calls) < 1000:
            message = await asyncio.wait_for(main.recv(), 5)
            if isinstance(message, ControlReply):
                calls.append(message.call_id)
            else:
                heartbeats += 1
        return calls, heartbeats

    def turn() -> None:
        while not done.is_set():
            scheduler.recv(0.01)

    done = threading.Event()
    turning = threading.Thread(target=turn)
    turning.start()
    calls, heartbeats = loop.run_until_complete(collect())
    done.set()
    turning.join()
    assert calls == [str(i) for i in range(1000)]
    assert heartbeats < 1000
    scheduler.send_to_tokenizer(Heartbeat(SCHEDULER))
    last = loop.run_until_complete(asyncio.wait_for(main.recv(), 5))
    assert isinstance(last, Heartbeat)
    assert last.lag_total > 0


def test_a_scheduler_far_behind_gets_no_new_requests_but_every_abort(ends, loop, monkeypatch):
    monkeypatch.setattr(channels_module, "REQUESTS_HWM", 8)
    main = ends.main()

    async def fill() -> int:
        for count in range(100):
            try:
                main.send(REQUEST)
            except Overloaded:
                return count
        return 100

    async def abort_and_read() -> tuple[int, list]:
        accepted = await fill()
        for i in range(50):
            main.send(AbortReq(str(i)))
        scheduler = ends.scheduler()
        messages: list = []
        deadline = time.monotonic() + 5
        while len(messages) < accepted + 50 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
            messages += scheduler.recv()
        main.send(REQUEST)
        messages += await asyncio.to_thread(scheduler.recv, 5)
        main.close()
        scheduler.close()
        return accepted, messages

    accepted, messages = loop.run_until_complete(abort_and_read())
    assert accepted == 8
    assert messages == [REQUEST] * accepted + [AbortReq(str(i)) for i in range(50)] + [REQUEST]


def test_messages_arrive_with_all_of_their_frames() -> None:
    sent = [[b"header", b"", b"x" * 100_000], [b"alone"], [b"a", b"b"]]
    with (
        zmq.Context() as context,
        receiver(context, "inproc://frames", 10) as pull,
        sender(context, "inproc://frames", 10) as push,
    ):
        for frames in sent:
            push.send_multipart(frames)
        assert pull.poll(1000)
        assert receive_all(pull, 2) + receive_all(pull, 10) == sent
        assert receive_all(pull, 10) == []


def test_malformed_messages_are_dropped_by_every_receiver(ends, loop):
    scheduler, detokenizer, main = ends.scheduler(), ends.detokenizer(), ends.main()
    context = zmq.Context()

    def send(endpoint: str, *frames: bytes) -> None:
        with context.socket(zmq.PUSH) as socket:
            socket.connect(endpoint)
            socket.send_multipart(list(frames))

    for endpoint in (
        ends.ports.scheduler_input_ipc_name,
        ends.ports.detokenizer_ipc_name,
        ends.ports.tokenizer_ipc_name,
    ):
        send(endpoint, b"\xc1junk")
        send(endpoint, b"two", b"frames")
    deadline = time.monotonic() + 5
    while scheduler.malformed_total < 2 and time.monotonic() < deadline:
        assert scheduler.recv(0.1) == []
    assert scheduler.malformed_total == 2
    assert [detokenizer.recv(1) for _ in range(2)] == [None, None]
    scheduler.send_to_tokenizer(Heartbeat(SCHEDULER))

    async def collect() -> list:
        received = []
        while main.malformed_total < 2 or not received:
            received.append(await asyncio.wait_for(main.recv(), 5))
            if main.malformed_total < 2:
                await asyncio.sleep(0.1)
                scheduler.send_to_tokenizer(Heartbeat(SCHEDULER))
        return received

    received = loop.run_until_complete(collect())
    assert all(isinstance(message, Heartbeat) for message in received)
    assert received[-1].malformed_total == 2
    context.term()


def test_a_string_that_is_no_unicode_fails_only_its_request(ends, loop):
    main, scheduler = ends.main(), ends.scheduler()

    async def send() -> None:
        with pytest.raises(BadRequest, match="Unicode"):
            main.send(msgspec.structs.replace(REQUEST, extras=RequestExtras(extra_key="\ud800")))
        main.send(REQUEST)

    loop.run_until_complete(send())
    assert receive(scheduler, 1) == [REQUEST]


def test_closing_wakes_whoever_waits(ends, loop):
    main = ends.main()

    async def scenario() -> None:
        waiting = asyncio.create_task(main.recv())
        await asyncio.sleep(0.01)
        main.close()
        with pytest.raises(EngineDead):
            await waiting
        with pytest.raises(EngineDead):
            main.send(REQUEST)
        main.close()

    loop.run_until_complete(scenario())


def test_ending_scheduler_delivers_its_last_results_and_ends_the_detokenizer(ends, monkeypatch):
    monkeypatch.setattr(channels_module, "FINISH_TIMEOUT_S", 20.0)  # somebody takes them, however busy the machine is
    scheduler, detokenizer = ends.scheduler(), ends.detokenizer()
    for i in range(500):
        scheduler.send_deltas([OutputDelta("r", [i])])
    received: list = []

    def read() -> None:
        while not received or not isinstance(received[-1], ShutdownReq):
            message = detokenizer.recv(20)
            assert message is not None
            received.append(message)
        detokenizer.close()

    reader = threading.Thread(target=read)
    reader.start()
    scheduler.close()
    reader.join(20)
    tokens = [t for batch in received[:-1] for delta in batch.deltas for t in delta.token_ids]
    assert tokens == list(range(500))


def test_the_detokenizer_is_told_of_the_end_though_the_last_result_takes_the_last_place(ends, monkeypatch):
    monkeypatch.setattr(channels_module, "FINISH_TIMEOUT_S", 20.0)  # somebody takes them, however busy the machine is
    scheduler, detokenizer = ends.scheduler(), ends.detokenizer()
    num_sent = looks = 0
    while looks < 100:  # until what is on its way has filled all places of the other end as well
        looks += 1
        while writable(scheduler._results.socket):
            scheduler.send_deltas([OutputDelta("r", [num_sent])])
            num_sent, looks = num_sent + 1, 0
        time.sleep(0.001)
    assert not scheduler._results.lagging, "all places are taken, and nothing waits"
    closer = threading.Thread(target=scheduler.close)
    closer.start()
    time.sleep(0.1)  # it has something to wait for
    received: list = []
    while not received or not isinstance(received[-1], ShutdownReq):
        received.append(detokenizer.recv(20))
        assert received[-1] is not None
    detokenizer.close()
    closer.join(20)
    assert not closer.is_alive()
    assert [t for batch in received[:-1] for delta in batch.deltas for t in delta.token_ids] == list(range(num_sent))


def test_closed_channels_leave_no_descriptor_or_thread(monkeypatch):
    monkeypatch.setattr(channels_module, "FINISH_TIMEOUT_S", 0.01)  # nothing reads what the scheduler sends at its end

    def count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def open_and_close() -> str:
        port_args = PortArgs.create()
        parts = (SchedulerChannels(port_args), DetokenizerChannels(port_args), TokenizerChannels(port_args))
        for each in parts:
            each.close()
        port_args.cleanup()
        return port_args.directory

    open_and_close()
    before = count()
    directories = [open_and_close() for _ in range(5)]
    assert count() == before
    assert not any(map(os.path.exists, directories))


def test_who_waits_for_messages_looks_twice_and_sleeps_in_between(ends, monkeypatch):
    scheduler = ends.scheduler()
    done = []

    def noted(name, call):
        return lambda *args: (done.append(name), call(*args))[1]

    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "_drain", noted("look", scheduler._drain))
        patch.setattr(zmq.Poller, "poll", noted("sleep", lambda poller, milliseconds: []))
        assert scheduler.recv(0.1) == []
    assert done == ["look", "sleep", "look"]
