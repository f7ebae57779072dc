"""Sockets between machines: encrypted, and closed to processes that are not of the engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
import zmq
from msgspec.structs import replace as replace_struct

from bough.config.network import Address, KeyPair, Network, listen
from bough.config.port_args import PortArgs
from bough.config.ranks import SCHEDULER, ParallelLayout
from bough.errors import StartupError
from bough.ipc.channels import SchedulerChannels, TokenizerChannels
from bough.ipc.context import ChannelContext
from bough.ipc.messages import TokenizedGenerateReqInput
from bough.sampling.sampling_params import SamplingParams

HOST = "127.0.0.1"
AHEAD = 1000.0
HWM = 10


class Machines:
    """The main process's machine, and another one, which has the schedulers."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        ports, layout = PortArgs.create(), ParallelLayout(tp_size=2)
        stack.callback(ports.cleanup)
        leader, follower = layout.schedulers
        self.main, self.other = KeyPair.make(), KeyPair.make()
        addresses: dict[str, Address] = {}
        own: dict[str, int] = {}
        for keys, endpoints in (
            (self.main, [ports.tokenizer_ipc_name, ports.detokenizer_ipc_name]),
            (self.other, [*ports.endpoints_of(leader, layout), *ports.endpoints_of(follower, layout)]),
        ):
            for endpoint in endpoints:
                listener = stack.enter_context(listen(HOST))
                own[endpoint] = listener.fileno()
                addresses[endpoint] = Address(HOST, listener.getsockname()[1], keys.public)
        members = (self.main.public, self.other.public)
        network = Network(HOST, self.main, addresses, own, members)
        self.ports = replace(ports, network=network)
        self.ports_there = replace(ports, network=replace_struct(network, keys=self.other, clock_offset=AHEAD))

    def strangers(self, keys: KeyPair) -> PortArgs:
        network = self.ports.network
        assert network is not None
        return replace(self.ports, network=replace_struct(network, keys=keys))


@pytest.fixture
def machines() -> Iterator[Machines]:
    with contextlib.ExitStack() as stack:
        yield Machines(stack)


def test_messages_arrive_and_times_are_those_of_the_receiver(machines):
    main = TokenizerChannels(machines.ports)
    there = SchedulerChannels(machines.ports_there, SCHEDULER)
    try:
        params = SamplingParams()
        main.send(TokenizedGenerateReqInput(["r"], b"\1\0\0\0", params, arrival_time=1.0))
        (message,) = there.recv(10.0)
        assert message.rids == ["r"]
        assert message.arrival_time == 1.0 + AHEAD
    finally:
        main.close()
        there.close()


@contextlib.contextmanager
def context_of(ports: PortArgs) -> Iterator[tuple[ChannelContext, contextlib.ExitStack]]:
    """A context, and what closes its sockets before it ends."""
    context = ChannelContext(ports)
    try:
        with contextlib.ExitStack() as sockets:
            yield context, sockets
    finally:
        context.term()


def test_a_stranger_is_not_heard(machines):
    endpoint = machines.ports.tokenizer_ipc_name
    with (
        context_of(machines.ports) as (main, sockets),
        context_of(machines.strangers(KeyPair.make())) as (stranger, its_sockets),
        context_of(machines.ports_there) as (member, other_sockets),
        zmq.Context() as plain,
        plain.socket(zmq.PUSH) as unencrypted,
    ):
        receiver = sockets.enter_context(main.receiver(endpoint, HWM))
        unencrypted.setsockopt(zmq.LINGER, 0)
        unencrypted.connect(machines.ports.network.addresses[endpoint].url)
        unencrypted.send(b"plain")
        its_sockets.enter_context(stranger.sender(endpoint, HWM)).send(b"of a stranger")
        assert not receiver.poll(1000)
        other_sockets.enter_context(member.sender(endpoint, HWM)).send(b"of a member")
        assert receiver.poll(10_000)
        assert receiver.recv() == b"of a member"


def test_a_receiver_with_other_keys_gets_nothing(machines):
    """A process that has taken a member's port does not learn what is sent there."""
    endpoint = machines.ports.tokenizer_ipc_name
    with (
        context_of(machines.strangers(KeyPair.make())) as (impostor, its_sockets),
        context_of(machines.ports_there) as (member, other_sockets),
    ):
        receiver = its_sockets.enter_context(impostor.receiver(endpoint, HWM))
        other_sockets.enter_context(member.sender(endpoint, HWM)).send(b"secret")
        assert not receiver.poll(1000)


def test_an_address_of_another_machine_is_an_error():
    with pytest.raises(StartupError, match=r"cannot listen on 192\.0\.2\.77"):
        listen("192.0.2.77").close()


def test_secret_keys_are_not_shown():
    keys = KeyPair.make()
    assert keys.secret.decode() not in repr(keys)
