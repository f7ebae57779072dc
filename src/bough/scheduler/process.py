"""The scheduler process: the only one that touches the device."""

from __future__ import annotations

import gc
import sys

from bough.child_main import Child, run_child
from bough.observability.startup_timer import StartupTimer


def run_scheduler_process(child: Child) -> int:
    """Load the model, report, and serve until told to end; returns the exit status."""
    timer = StartupTimer.from_process_start()
    # Late, so that the parent is told what is wrong with an installation whose torch cannot be imported.
    from bough.config.model_config import ModelConfig
    from bough.distributed.place import RankPlace
    from bough.ipc.channels import SchedulerChannels
    from bough.model_executor.create_worker import worker_factory
    from bough.scheduler.scheduler import Scheduler
    from bough.tokenization.loading import load_tokenizer

    timer.end_phase("Python and imports")
    args, key = child.server_args, child.config.key
    model_config = ModelConfig.from_args(args)
    tokenizer = None
    if not args.skip_tokenizer_init and not key.tp:
        tokenizer = load_tokenizer(args.tokenizer_path or args.model_path)
    timer.end_phase("configuration and tokenizer")
    place = RankPlace.of(key, child.config.layout, child.port_args)
    load = worker_factory(model_config, child.config.share, place)
    timer.end_phase("importing torch and the model")
    worker = load(args, model_config)
    if place is not None and place.is_follower:
        child.ready()
        gc.freeze()
        worker.follow()
        return 0
    channels = SchedulerChannels(
        child.port_args,
        key,
        has_detokenizer=tokenizer is not None,
        has_embeddings=not model_config.is_generation,
    )
    scheduler = Scheduler(args, model_config, worker, tokenizer, key=key, send_to_detokenizer=channels.send_deltas)
    timer.end_phase("other")
    info = scheduler.init_info
    parts: dict[str, float] = info["timings"]
    timer.phases["other"] -= sum(seconds for phase, seconds in parts.items() if phase != "other")
    child.ready({**info, "timings": {**parts, **timer.phases}})
    gc.freeze()
    scheduler.run_event_loop(channels)
    channels.close()
    worker.close()
    return 0


if __name__ == "__main__":
    sys.exit(run_child(run_scheduler_process, sys.argv[1:]))
