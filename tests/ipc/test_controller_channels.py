"""Channels of the controller, from the front end's end to that of the schedulers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from bough.config.port_args import PortArgs
from bough.config.ranks import CONTROLLER, ParallelLayout
from bough.ipc.channels import SchedulerChannels, TokenizerChannels
from bough.ipc.codec import encode
from bough.ipc.controller_channels import ControllerChannels, Routed
from bough.ipc.messages import AbortReq, Heartbeat, TokenizedEmbeddingReqInput, TokenizedGenerateReqInput
from bough.ipc.routing import PAGE_TOKENS, RequestShape
from bough.managers.data_parallel_controller import DataParallelController
from bough.managers.load_balance import RoundRobin
from bough.observability.stats import SchedulerStats
from bough.sampling.sampling_params import SamplingParams

LAYOUT = ParallelLayout(dp_size=2)
PROMPT = bytes(4 * (2 * PAGE_TOKENS + 1))
REQUEST = TokenizedGenerateReqInput(["a", "b"], PROMPT, SamplingParams(n=2))


class Ends:
    """All ends of the channels of two replicas that requests pass."""

    def __init__(self, ports: PortArgs) -> None:
        self.ports = ports
        self.controller = ControllerChannels(ports, LAYOUT.leaders)
        self.replicas = [SchedulerChannels(ports, key, has_detokenizer=False) for key in LAYOUT.leaders]
        self.main = TokenizerChannels(ports, LAYOUT)

    def close(self) -> None:
        for end in (self.controller, *self.replicas, self.main):
            end.close()

    def arrived(self, count: int) -> list[Heartbeat | Routed]:
        found: list[Heartbeat | Routed] = []
        for _ in range(50):
            if len(found) >= count:
                break
            found += self.controller.recv(0.2)
        return found


@pytest.fixture
def ends() -> Iterator[Ends]:
    ports = PortArgs.create()
    made = Ends(ports)
    yield made
    made.close()
    ports.cleanup()


def test_requests_bring_their_shape_and_the_rest_is_for_all(ends: Ends) -> None:
    vector, abort = TokenizedEmbeddingReqInput("v", PROMPT), AbortReq("a")
    for message in (REQUEST, vector, abort):
        ends.main.send(message)
    shapes = [RequestShape.of(REQUEST), RequestShape.of(vector), None]
    assert shapes[0] is not None
    assert shapes[1] == RequestShape(2 * PAGE_TOKENS + 1, 1, shapes[0].pages)
    assert (shapes[0].num_outputs, len(shapes[0].pages)) == (2, 2)
    assert ends.arrived(3) == [
        Routed(shape, encode(message)) for shape, message in zip(shapes, (REQUEST, vector, abort), strict=True)
    ]


def test_messages_reach_their_replicas_in_order(ends: Ends) -> None:
    controller = DataParallelController(LAYOUT.leaders, RoundRobin())
    for message in (REQUEST, AbortReq("a"), REQUEST, AbortReq("b")):
        ends.main.send(message)
    for arrived in ends.arrived(4):
        assert isinstance(arrived, Routed)
        ends.controller.forward(controller.targets(arrived.shape), arrived.message)
    expected = [[REQUEST, AbortReq("a"), AbortReq("b")], [AbortReq("a"), REQUEST, AbortReq("b")]]
    for replica, messages in zip(ends.replicas, expected, strict=True):
        received: list = []
        while len(received) < 3:
            received += replica.recv(1.0)
        assert received == messages


def test_heartbeats_of_schedulers_reach_the_controller(ends: Ends) -> None:
    beat = Heartbeat(LAYOUT.leaders[1], SchedulerStats(num_running_reqs=3))
    ends.replicas[1].send_to_tokenizer(beat)
    (arrived,) = ends.arrived(1)
    assert isinstance(arrived, Heartbeat)
    assert (arrived.process, arrived.stats) == (beat.process, beat.stats)


def test_frames_that_are_no_messages_are_dropped_and_counted(ends: Ends) -> None:
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.connect(ends.ports.scheduler_input_ipc_name)
        for frames in ([b"\xc1"], [b"\xc1", b"x"], [b"a", b"b", b"c"], [b"", b"last"]):
            push.send_multipart(frames)
        assert ends.arrived(1) == [Routed(None, b"last")]
    assert ends.controller.malformed_total == 3


def test_the_controller_chooses_by_what_heartbeats_report() -> None:
    class Recorder(RoundRobin):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[list[int]] = []

        def choose(self, shape, loads):
            self.seen.append([load.num_requests for load in loads])
            return super().choose(shape, loads)

    policy = Recorder()
    controller = DataParallelController(LAYOUT.leaders, policy)
    controller.on_heartbeat(Heartbeat(LAYOUT.leaders[1], SchedulerStats(num_running_reqs=3)))
    controller.on_heartbeat(Heartbeat(CONTROLLER, SchedulerStats(num_running_reqs=9)))
    assert [list(controller.targets(RequestShape(5, num_outputs=2))) for _ in range(3)] == [[0], [1], [0]]
    assert policy.seen == [[0, 3], [2, 3], [2, 5]]
    assert list(controller.targets(None)) == [0, 1]
