"""The controller: hands each request to one of several replicas, and everything else to all. Never imports torch.

It decodes neither prompts nor control calls: the front end sends a frame before each message, the request's shape, or
nothing where the message is for all. Results do not pass through it; loads come from heartbeats of the schedulers.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from bough.child_main import Child, run_child
from bough.config.ranks import CONTROLLER, ProcessKey
from bough.ipc.channels import HEARTBEAT_INTERVAL_S
from bough.ipc.codec import encode
from bough.ipc.controller_channels import ControllerChannels
from bough.ipc.messages import Heartbeat, ShutdownReq
from bough.ipc.routing import RequestShape
from bough.managers.load_balance import POLICIES, LoadBalancer, ReplicaLoad

_SHUTDOWN = encode(ShutdownReq())


class DataParallelController:
    """Chooses the replicas that get what arrives; belongs to one thread.

    Args:
        replicas: keys of the schedulers, in the order of the policy's replicas.
    """

    def __init__(self, replicas: Sequence[ProcessKey], policy: LoadBalancer) -> None:
        self._indices = {key: index for index, key in enumerate(replicas)}
        self._policy = policy
        self._loads = [ReplicaLoad() for _ in replicas]

    def targets(self, shape: RequestShape | None) -> Sequence[int]:
        """Return the replicas that get a message: one for a request, all for a message without a shape."""
        if shape is None:
            return range(len(self._loads))
        chosen = shape.dp_rank
        if chosen is None:
            chosen = self._policy.choose(shape, [load.now for load in self._loads])
        self._policy.on_sent(shape, chosen)
        self._loads[chosen].on_sent(shape)
        return (chosen,)

    def on_heartbeat(self, beat: Heartbeat) -> None:
        """Learn the load of a replica; heartbeats of other processes are ignored."""
        index = self._indices.get(beat.process)
        if index is not None and beat.stats is not None:
            self._loads[index].on_heartbeat(beat.stats)
            self._policy.on_heartbeat(index, beat.stats)

    def event_loop(self, channels: ControllerChannels) -> None:
        """Forward what arrives until a :class:`~bough.ipc.messages.ShutdownReq`, which goes to all replicas."""
        is_over = False
        while not is_over:
            for arrived in channels.recv(HEARTBEAT_INTERVAL_S):
                if isinstance(arrived, Heartbeat):
                    self.on_heartbeat(arrived)
                else:
                    channels.forward(self.targets(arrived.shape), arrived.message)
                    is_over = is_over or arrived.message == _SHUTDOWN
            if channels.heartbeat_due:
                channels.send_to_tokenizer(Heartbeat(CONTROLLER))


def run_controller_process(child: Child) -> int:
    """Open the channels, report, and forward until the end; returns the exit status."""
    replicas, method = child.config.layout.leaders, child.server_args.load_balance_method
    channels = ControllerChannels(child.port_args, replicas)
    child.ready()
    gc.freeze()
    DataParallelController(replicas, POLICIES[method](len(replicas))).event_loop(channels)
    channels.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_child(run_controller_process, sys.argv[1:]))
