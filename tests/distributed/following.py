"""The process of a rank that follows: for each line of its input, a model that it computes with the first rank."""

from __future__ import annotations

import json
import sys

from bough.config.model_config import ModelConfig
from bough.config.port_args import PortArgs
from bough.config.ranks import WHOLE_MACHINE, ParallelLayout
from bough.config.server_args import ServerArgs
from bough.distributed.place import RankPlace
from bough.model_executor.rank_worker import FollowingWorker


def main(ep_size: int, world: int, rank: int) -> None:
    layout = ParallelLayout(tp_size=world, ep_size=ep_size)
    key = layout.schedulers[rank]
    for line in sys.stdin:
        request = json.loads(line)
        args = ServerArgs(**request["args"])
        place = RankPlace(key, layout, PortArgs.from_dict(request["ports"]), request["backend"])
        share = WHOLE_MACHINE if request["shares_device"] else layout.share_of(key)
        FollowingWorker(args, ModelConfig.from_args(args), share, place).follow()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
