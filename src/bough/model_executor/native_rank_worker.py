"""Workers of ranks that native kernels compute in one shared memory: a step takes no Python on any but the first.

The first rank writes each step where the others wait for it, in a native call. Whatever else they are to do together
goes over sockets: the first one makes them leave that call.
"""

from __future__ import annotations

import torch

from bough.config.model_config import ModelConfig
from bough.config.ranks import MachineShare
from bough.config.server_args import ServerArgs
from bough.distributed.place import RankPlace
from bough.distributed.rank_group import ProcessRanks
from bough.ipc.rank_channels import FollowerChannel, LeaderChannel
from bough.kernels.native_group import FollowEnd, NativeGroup, RankLost
from bough.model_executor.cpu_graph_runner import CpuGraphRunner
from bough.model_executor.machine import Machine
from bough.model_executor.rank_memory import LeaderMemory, memory_calls
from bough.model_executor.tp_worker import TpModelWorker
from bough.model_executor.worker_calls import LeaderCalls, follower_calls
from bough.step_plan import StepPlan
from bough.weight_sync.rank_weights import AllRanks, FollowerCalls, LeaderWeights

_FOLLOW_SECONDS = 0.25
"""Longest time in the native call, so that Python handles signals."""

_CPU = torch.device("cpu")


class NativeLeadingWorker(TpModelWorker):
    """The first rank."""

    def __init__(
        self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare, place: RankPlace
    ) -> None:
        """Load this rank's part of the model while the others load theirs; raises as :class:`TpModelWorker`."""
        ranks = join_natively(place, server_args, share)
        super().__init__(server_args, model_config, share, ranks, place.index)
        self._channel = LeaderChannel(place.port_args, place.key, place.followers)
        self._all = AllRanks(self._channel, ranks.require_native().call)
        self.weights = LeaderWeights(server_args, self.live_weights, self.device, self._all, self.weights.available)
        self.memory = LeaderMemory(self, self._all)
        self.calls = LeaderCalls(self.calls, self._all)
        self._native = ranks.require_native()

    def close(self) -> None:
        """Let the followers end."""
        self._native.call()
        self._channel.close()
        self.ranks.close()

    def _scrub(self, plan: StepPlan, rows: list[int], num_steps: int) -> None:
        if self.attn_backend.reads_neighbours:
            slots = self.slots_of(plan, rows, num_steps)
            self._all.call("scrub", {"slots": slots.tolist()}, lambda: self.kv_pool.scrub(slots))


class NativeFollowingWorker(TpModelWorker):
    """Any other rank."""

    def __init__(
        self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare, place: RankPlace
    ) -> None:
        """Load this rank's part of the model; raises as :class:`NativeLeadingWorker`."""
        ranks = join_natively(place, server_args, share)
        super().__init__(server_args, model_config, share, ranks, place.index)
        self._channel = FollowerChannel(place.port_args, place.key, place.leader)
        others = {"scrub": self._scrub_slots, **memory_calls(self.memory), **follower_calls(self.calls)}
        self._calls = FollowerCalls(self.weights, place.key, others)

    def follow(self) -> None:
        """Compute the steps of the first rank until it has no more.

        Raises:
            RankLost: if another rank is gone.
        """
        assert isinstance(self.step_runner, CpuGraphRunner), "native kernels compute"
        self._channel.begin_heartbeats()
        native, num_served = self.ranks.require_native(), 0
        while self.step_runner.follow(_FOLLOW_SECONDS) is not FollowEnd.FAILED:
            # For each time that the first rank called there is a message, which comes at about the same time.
            while num_served < native.num_calls:
                call = self._channel.receive()
                if call is None:
                    self._channel.close()
                    self.ranks.close()
                    return
                assert not isinstance(call, list), "plans come through shared memory"
                self._channel.reply(self._calls.run(call))
                num_served += 1
        raise RankLost("another rank of the model is gone")

    def _scrub_slots(self, slots: list[int]) -> None:
        self.kv_pool.scrub(torch.tensor(slots, dtype=torch.int64))


def join_natively(place: RankPlace, server_args: ServerArgs, share: MachineShare) -> ProcessRanks:
    """Meet the other ranks, and map the memory that all of them compute in."""
    assert share.group is not None, "it was asked for before"
    meeting_place = place.port_args.meeting_place(place.leader)
    spec = place.spec("gather")
    crowded = share.count * (server_args.cpu_threads or 1) > Machine().usable_threads()
    native = NativeGroup(share.group, spec.rank, spec.world, crowded=crowded)
    return ProcessRanks(spec, meeting_place, _CPU, server_args.startup_timeout, native=native)
