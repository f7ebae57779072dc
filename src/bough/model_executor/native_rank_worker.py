"""Workers of ranks that native kernels compute in one shared memory: a step takes no Python on any but the first.

The first rank writes each step where the others wait for it, in a native call. Whatever else they are to do together
goes over sockets: the first one makes them leave that call.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from bough.config.ranks import MachineShare
from bough.config.server_args import ServerArgs
from bough.distributed.place import RankPlace
from bough.distributed.rank_group import ProcessRanks
from bough.kernels.native_group import FollowEnd, NativeGroup, RankLost
from bough.model_executor.cpu_graph_runner import CpuGraphRunner
from bough.model_executor.machine import Machine
from bough.model_executor.rank_worker import FirstRank, OtherRank, RankWorker
from bough.step_plan import StepPlan

_FOLLOW_SECONDS = 1.0
"""Longest time in the native call. A signal ends it, except one that comes between Python and the wait in it."""

_CPU = torch.device("cpu")


class NativeRank(RankWorker):
    """A rank whose steps are computed in shared memory."""

    @staticmethod
    def _meet(place: RankPlace, server_args: ServerArgs, share: MachineShare) -> ProcessRanks:
        """Meet the other ranks, and map the memory that all of them compute in."""
        assert share.group is not None, "it was asked for before"
        spec, meeting_place = place.spec("gather"), place.port_args.meeting_place(place.leader)
        crowded = share.count * (server_args.cpu_threads or 1) > Machine().usable_threads()
        native = NativeGroup(share.group, spec.rank, spec.world, crowded=crowded)
        return ProcessRanks(spec, meeting_place, _CPU, server_args.startup_timeout, native=native)


class NativeLeadingWorker(NativeRank, FirstRank):
    """The first rank."""

    def _interrupt(self) -> None:
        """Have the other ranks leave the native call in which they wait for steps."""
        self.ranks.require_native().call()

    def _scrub(self, plan: StepPlan, rows: list[int], num_steps: int) -> None:
        if self.attn_backend.reads_neighbours:
            slots = self.slots_of(plan, rows, num_steps)
            self._all.call("scrub", {"slots": slots.tolist()}, lambda: self.kv_pool.scrub(slots))


class NativeFollowingWorker(NativeRank, OtherRank):
    """Any other rank."""

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
                    self._end()
                    return
                assert not isinstance(call, list), "plans come through shared memory"
                self._channel.reply(self._calls.run(call))
                num_served += 1
        raise RankLost("another rank of the model is gone")

    def _own_calls(self) -> dict[str, Callable[..., object]]:
        return {"scrub": self._scrub_slots}

    def _scrub_slots(self, slots: list[int]) -> None:
        self.kv_pool.scrub(torch.tensor(slots, dtype=torch.int64))
