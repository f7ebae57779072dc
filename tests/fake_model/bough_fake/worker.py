"""The fake model as a worker: of arguments, or of a checkpoint."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import math
import os
import select
import time
from collections.abc import Sequence
from pathlib import Path

from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.model_executor.worker_info import Worker, WorkerInfo
from bough.step_plan import StepPlan, StepResult
from bough.weight_sync.change import Change
from bough_fake.model import FakeModel
from bough_fake.runner import FakeModelRunner, StepDuration

FAKE_ARCHITECTURE = "BoughFakeForCausalLM"

_CONFIG_KEY = "bough_fake"
_CONFIG_DEFAULTS = {
    "eos_probability": 0.0,
    "seconds_per_step": 0.0,
    "seconds_per_token": 0.0,
    "seconds_per_token_context": 0.0,
    "shift": 0.0,
}
_WRITING_SECONDS = 0.02
_DEFAULT_RUNNING_REQUESTS = 256
_DEFAULT_TOTAL_TOKENS = 1 << 20


class FakeWorker(Worker):
    """A :class:`FakeModelRunner` with the face of ``TpModelWorker``."""

    def __init__(
        self,
        *,
        vocab_size: int,
        max_total_num_tokens: int,
        max_running_requests: int,
        context_len: int,
        page_size: int = 1,
        verify: bool = False,
        eos_token_ids: tuple[int, ...] = (),
        eos_probability: float = 0.0,
        duration: StepDuration | None = None,
        max_steps: int = 1,
    ) -> None:
        """Make the runner; arguments as of :class:`FakeModel`, :class:`FakeModelRunner` and :class:`WorkerInfo`."""
        self.context_len = context_len
        self.max_steps = max_steps
        self.model_runner = FakeModelRunner(
            FakeModel(vocab_size, eos_token_ids, eos_probability),
            max_running_requests=max_running_requests,
            max_total_num_tokens=max_total_num_tokens,
            max_req_len=min(context_len, max_total_num_tokens),
            page_size=page_size,
            verify=verify,
            duration=duration,
        )

    def get_worker_info(self) -> WorkerInfo:
        """Limits of the fake."""
        runner = self.model_runner
        return WorkerInfo(
            max_total_num_tokens=runner.max_total_num_tokens,
            max_running_requests=runner.max_running_requests,
            max_req_len=runner.max_req_len,
            max_req_input_len=runner.max_req_len - 1,
            page_size=runner.page_size,
            vocab_size=runner.model.vocab_size,
            context_len=self.context_len,
            device="cpu",
            dtype="float32",
            max_steps=self.max_steps,
        )

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step."""
        return self.model_runner.forward_batch_generation(plan)

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on."""
        return self.model_runner.forward_further()

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""
        self.model_runner.stops_early = lambda: bool(select.select(descriptors, [], [], 0)[0])


class FakeWeights:
    """Weights of a worker of a checkpoint: the ``shift`` of its model.

    All replicas behave as if they shared them: the first one writes, and a step that any of them runs meanwhile fails,
    as does the writing. A lock on config.json of the checkpoint that the server was started with tells.
    """

    num_missing = 0
    """Weights that a sleeping worker has given back."""

    def __init__(self, runner: FakeModelRunner, checkpoint: str, share: MachineShare) -> None:
        self._runner = runner
        self._lock = os.open(Path(checkpoint) / "config.json", os.O_RDONLY)
        self.is_writer = share.index == 0

    def prepare_disk(self, model_path: str, load_format: str) -> Change:
        """Read the ``shift`` of another checkpoint."""
        config = json.loads(Path(model_path, "config.json").read_text())
        return Change(lambda: self.write(int(config[_CONFIG_KEY]["shift"])))

    def write(self, shift: int) -> int:
        """Take another ``shift``."""
        if self.is_writer:
            self.hold(fcntl.LOCK_EX)
            time.sleep(_WRITING_SECONDS)
        self._runner.model = dataclasses.replace(self._runner.model, shift=shift)
        if self.is_writer:
            self.release()
        return int(self.is_writer)

    def hold(self, kind: int) -> None:
        """Hold the lock, shared or alone; raises OSError if it is not free."""
        fcntl.flock(self._lock, kind | fcntl.LOCK_NB)

    def release(self) -> None:
        """Give the lock back."""
        fcntl.flock(self._lock, fcntl.LOCK_UN)


class CheckpointWorker(FakeWorker):
    """The worker for a checkpoint whose architecture is :data:`FAKE_ARCHITECTURE`.

    Such a checkpoint needs no weights. Its config.json may say how it behaves under ``bough_fake``: an object with
    numbers under ``eos_probability``, ``seconds_per_step``, ``seconds_per_token``, ``seconds_per_token_context`` and
    ``shift``.
    Pool and table sizes are those of the options, or else 2**20 tokens and 256 requests.

    Raises:
        ConfigError: that object is wrong.
    """

    def __init__(self, server_args: ServerArgs, model_config: ModelConfig, share: MachineShare = WHOLE_MACHINE) -> None:
        settings = model_config.hf_config.get(_CONFIG_KEY, {})
        if not isinstance(settings, dict) or not settings.keys() <= _CONFIG_DEFAULTS.keys():
            names = ", ".join(_CONFIG_DEFAULTS)
            raise ConfigError(f"{_CONFIG_KEY} in config.json may have {names}", param="model_path")
        values = {**_CONFIG_DEFAULTS, **settings}
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value < math.inf:
                raise ConfigError(
                    f"{_CONFIG_KEY}.{name} in config.json must be a number, got {value!r}", param="model_path"
                )
        if values["eos_probability"] and not model_config.eos_token_ids:
            raise ConfigError(f"{_CONFIG_KEY}.eos_probability needs an eos_token_id", param="model_path")
        page_size = server_args.page_size or 1
        max_total_tokens = max(server_args.max_total_tokens or _DEFAULT_TOTAL_TOKENS, page_size)
        duration = StepDuration(
            values["seconds_per_step"], values["seconds_per_token"], values["seconds_per_token_context"]
        )
        super().__init__(
            vocab_size=model_config.vocab_size,
            max_total_num_tokens=max_total_tokens // page_size * page_size,
            max_running_requests=server_args.max_running_requests or _DEFAULT_RUNNING_REQUESTS,
            context_len=model_config.context_len,
            page_size=page_size,
            eos_token_ids=model_config.eos_token_ids,
            eos_probability=values["eos_probability"],
            duration=duration if duration != StepDuration() else None,
        )
        model = self.model_runner.model
        self.model_runner.model = dataclasses.replace(model, shift=int(values["shift"]))
        self.fake_weights = FakeWeights(self.model_runner, server_args.model_path, share)
        self.weights = self.fake_weights  # type: ignore[assignment]

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step; raises OSError if weights are being written."""
        self.fake_weights.hold(fcntl.LOCK_SH)
        try:
            return super().forward_batch_generation(plan)
        finally:
            self.fake_weights.release()
