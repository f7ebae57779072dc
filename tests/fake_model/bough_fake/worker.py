"""The fake model as a worker: of arguments, or of a checkpoint."""

from __future__ import annotations

import math
import select
from collections.abc import Sequence

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError
from bough.model_executor.worker_info import Worker, WorkerInfo
from bough.step_plan import StepPlan, StepResult
from bough_fake.model import FakeModel
from bough_fake.runner import FakeModelRunner, StepDuration

FAKE_ARCHITECTURE = "BoughFakeForCausalLM"

_CONFIG_KEY = "bough_fake"
_CONFIG_DEFAULTS = {
    "eos_probability": 0.0,
    "seconds_per_step": 0.0,
    "seconds_per_token": 0.0,
    "seconds_per_token_context": 0.0,
}
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


class CheckpointWorker(FakeWorker):
    """The worker for a checkpoint whose architecture is :data:`FAKE_ARCHITECTURE`.

    Such a checkpoint needs no weights. Its config.json may say how it behaves under ``bough_fake``: an object with
    numbers under ``eos_probability``, ``seconds_per_step``, ``seconds_per_token`` and ``seconds_per_token_context``.
    Pool and table sizes are those of the options, or else 2**20 tokens and 256 requests.

    Raises:
        ConfigError: that object is wrong.
    """

    def __init__(self, server_args: ServerArgs, model_config: ModelConfig) -> None:
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
