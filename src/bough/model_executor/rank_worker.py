"""Workers of the ranks that compute a model together: the first one plans and samples, the others follow.

Each rank runs the forward pass of every plan, in one order. Tokens are chosen by the first rank alone, and the others
learn them, so that nothing that they hold can differ.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable

import torch
from msgspec.structs import replace

from bough.config.model_config import ModelConfig
from bough.config.ranks import MachineShare
from bough.config.server_args import ServerArgs
from bough.distributed.place import RankPlace
from bough.distributed.rank_group import ProcessRanks
from bough.ipc.rank_channels import FollowerChannel, LeaderChannel, RankCall
from bough.layers.sampler import SampleOutput
from bough.model_executor.launched_step import LaunchedStep, StepOutcome
from bough.model_executor.model_runner import IndexArray
from bough.model_executor.rank_memory import LeaderMemory, memory_calls
from bough.model_executor.tp_worker import TpModelWorker, resolve_device
from bough.model_executor.worker_calls import LeaderCalls, follower_calls
from bough.sampling.sampling_params import SamplingParams
from bough.step_codec import decode_plan, encode_plan
from bough.step_plan import StepPlan
from bough.weight_sync.rank_weights import AllRanks, FollowerCalls, LeaderWeights

logger = logging.getLogger(__name__)

_UNSAMPLED = SamplingParams(temperature=0.0)
"""Parameters of requests on ranks that do not choose tokens."""


class RankWorker(TpModelWorker):
    """The worker of one of several ranks, which meet before they load their parts."""

    def __init__(
        self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare, place: RankPlace
    ) -> None:
        """Load this rank's part of the model while the others load theirs.

        Raises:
            BoughError: as :class:`TpModelWorker`, and if a rank does not come in time.
        """
        super().__init__(server_args, model_config, share, self._meet(place, server_args, share), place.index)

    @staticmethod
    def _meet(place: RankPlace, server_args: ServerArgs, share: MachineShare) -> ProcessRanks:
        """Meet the other ranks, to add up what each computes."""
        device, meeting_place = resolve_device(server_args.device, share), place.port_args.meeting_place(place.leader)
        return ProcessRanks(place.spec("reduce"), meeting_place, device, server_args.startup_timeout, place.backend)


class FirstRank(RankWorker):
    """The first rank, with its channel to the others."""

    def __init__(
        self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare, place: RankPlace
    ) -> None:
        """Load this rank's part; raises as :class:`RankWorker`."""
        super().__init__(server_args, model_config, share, place)
        self._channel = LeaderChannel(place.port_args, place.key, place.followers)
        self._all = AllRanks(self._channel, self._interrupt)
        self.weights = LeaderWeights(server_args, self.live_weights, self.device, self._all, self.weights.available)
        self.memory = LeaderMemory(self, self._all)
        self.calls = LeaderCalls(self.calls, self._all)

    def _interrupt(self) -> None:
        """Have the other ranks look for a message, which those that wait for plans do anyway."""

    def close(self) -> None:
        """Let the followers end."""
        self._interrupt()
        self._channel.close()
        self.ranks.close()


class OtherRank(RankWorker):
    """Any other rank, with its channel to the first."""

    def __init__(
        self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare, place: RankPlace
    ) -> None:
        """Load this rank's part; raises as :class:`RankWorker`."""
        super().__init__(server_args, model_config, share, place)
        self._channel = FollowerChannel(place.port_args, place.key, place.leader)
        others = {**self._own_calls(), **memory_calls(self.memory), **follower_calls(self.calls)}
        self._calls = FollowerCalls(self.weights, place.key, others)

    def _own_calls(self) -> dict[str, Callable[..., object]]:
        """Return what the first rank of this kind calls beside weights, memory and workers' methods, by name."""
        return {}

    def _end(self) -> None:
        """Leave the group, since the first rank has no more to do."""
        self._channel.close()
        self.ranks.close()


class LeadingWorker(FirstRank):
    """The first rank. A step that fails here alone leaves the ranks apart, and none can be computed any more."""

    _is_apart = False

    def forward(self, plan: StepPlan) -> StepOutcome:
        """Have all ranks compute a step, and choose its tokens."""
        if self._is_apart:
            raise RuntimeError("the ranks are no longer in step")
        self._channel.send_plan(encode_plan(plan_of_followers(plan)))
        self._is_apart = True
        outcome = super().forward(plan)
        self._is_apart = False
        return outcome

    def sample(self, plan: StepPlan, logits: torch.Tensor, rows: IndexArray) -> SampleOutput:
        """Choose tokens and tell the other ranks.

        If that fails, these learn others; the requests are computed anew.
        """
        try:
            output = super().sample(plan, logits, rows)
        except Exception:
            self.ranks.take_from_first(torch.zeros(len(rows), dtype=torch.int64, device=self.device))
            # They go on to compute logits for these, in which this rank has no part.
            self._is_apart = any(len(request.targets) for request in plan.logprobs)
            raise
        self.ranks.take_from_first(output.next_token_ids)
        return output


class FollowingWorker(OtherRank):
    """Any other rank."""

    def follow(self) -> None:
        """Run the plans of the first rank until it has no more."""
        self._channel.begin_heartbeats()
        launched: deque[LaunchedStep] = deque()
        depth = 1 if self.runs_ahead else 0  # a device is given a step before it is done with the last one
        while (received := self._channel.receive()) is not None:
            if isinstance(received, RankCall):
                self._channel.reply(self._calls.run(received))
                continue
            launched.append(self.launch(decode_plan(received)))
            while len(launched) > depth:
                launched.popleft().result()
        self._end()

    def forward(self, plan: StepPlan) -> StepOutcome:
        """Compute this rank's part of a step, of which it reports nothing."""
        outcome = super().forward(plan)
        outcome.targets, outcome.logprobs = (), ()
        return outcome

    def sample(self, plan: StepPlan, logits: torch.Tensor, rows: IndexArray) -> SampleOutput:
        """Learn the tokens that the first rank has chosen."""
        tokens = torch.zeros(len(rows), dtype=torch.int64, device=self.device)
        self.ranks.take_from_first(tokens)
        self.sampling_state.record(self.sampling_state.rows(plan.req_slots[rows]), tokens)
        return SampleOutput(tokens, logits.amax(-1).abs() < math.inf)


def plan_of_followers(plan: StepPlan) -> StepPlan:
    """Return what ranks need that choose no tokens: all that has to do with keys, values and logits."""
    new_requests = tuple(
        replace(new, sampling_params=_UNSAMPLED, masked_until_min=(), banned_sequences=(), prompt_ids=None)
        for new in plan.new_requests
    )
    targets = tuple(replace(each, top_n=0, token_ids=()) for each in plan.logprobs if len(each.targets))
    return replace(plan, new_requests=new_requests, logprobs=targets, pooling=(), masks=None)
