"""Runs step plans on one device."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from bough.config.engine_args import MAX_STEPS_IN_A_ROW, EngineArgs
from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare
from bough.distributed.rank_group import ALONE_IN_GROUP, RankGroup
from bough.layers.logprobs import GatheredLogprobs
from bough.layers.sampler import SampleOutput
from bough.model_executor.cpu_graph_runner import CpuGraphRunner, RunningSteps
from bough.model_executor.execution_choice import choose_execution
from bough.model_executor.graph_runner import Wanted
from bough.model_executor.launched_step import LaunchedStep, SampledRows, StepOutcome
from bough.model_executor.loaded_model import LoadedModel
from bough.model_executor.logprob_results import LOGIT_CHUNK_ELEMENTS, gather_targets
from bough.model_executor.pooling import CausalPooling
from bough.model_executor.readback import lane_of
from bough.model_executor.runner_memory import DeviceTables, MemoryPlanner, timed
from bough.models.pooled import PooledCausalLM
from bough.models.registry import complete_config
from bough.sampling.device_state import Needs
from bough.sampling.mask_rows import RowMasks
from bough.sampling.transfer import to_device
from bough.step_plan import ForwardMode, RowLogprobs, StepPlan, StepResult
from bough.weight_sync.live_weights import LiveWeights

logger = logging.getLogger(__name__)

IndexArray = npt.NDArray[np.int64]

_WANTED_OF_SAMPLING = np.array([Wanted.CHOICE, Wanted.LOGITS], dtype=np.uint8)
"""By whether a row needs logits."""

_OF_TABLES = (
    *("kv_pool", "req_to_token", "_host_table", "attn_backend", "step_runner"),
    *("sampling_state", "sampler", "decoder"),
)
"""Attributes that hold memory which is taken again after a sleep."""


class ModelRunner:
    """A loaded model with its KV pool, request table and sampler.

    All that a step changes lives here or in what this owns: the pool, ``req_to_token`` and the sampling state. Steps
    must be run one at a time, in the order of their plans.

    Attributes:
        weight_memory: of the model's weights, which may be given back.
        timings: seconds that each phase of construction took.
        decoder: the step runner, where it also runs decode steps in a row and chooses their tokens.
        max_running_requests: rows of ``req_to_token``.
        max_req_len: most tokens of one request, prompt and output together.
    """

    def __init__(
        self,
        config: ModelConfig,
        device: torch.device,
        args: EngineArgs | None = None,
        *,
        native: bool = True,
        share: MachineShare = WHOLE_MACHINE,
        ranks: RankGroup = ALONE_IN_GROUP,
    ) -> None:
        """Load the model and take the memory that it will ever need, from a ``share`` of the machine; without native
        kernels unless ``native``. Of several ``ranks`` each does so with its part, at the same time.

        Raises:
            ConfigError: if an option cannot have its way on this device.
            StartupError: if the checkpoint does not fit the model, or memory does not suffice.
        """
        args = args or EngineArgs()
        config = config.for_device("cuda" if device.type == "cuda" else "cpu")
        self.config = config = complete_config(config)
        self.device = device
        self.ranks = ranks
        self.choice = choice = choose_execution(config, device, args, native=native, shard=ranks.spec)
        self.threads = choice.threads
        self.timings: dict[str, float] = {}
        with timed(self.timings, "load_weights"):
            loaded = LoadedModel.load(config, device, args, choice, share, ranks)
        self.model, self.weight_memory = loaded.model, loaded.memory
        self._planner = planner = MemoryPlanner(config, device, args, choice, loaded, self.timings, share, ranks)
        self.num_parameters, self.weight_bytes = planner.num_parameters, planner.weight_bytes
        self._use(planner.fitted())
        self.max_running_requests, self.max_req_len = self.req_to_token.shape
        self.lane = lane_of(device)
        self.pooling: CausalPooling | None = None
        if isinstance(self.model, PooledCausalLM):
            self.pooling = CausalPooling(config, self.model, self.max_running_requests, device)
        logger.info(
            "%.1f million parameters take %.3g GB as %s; the KV cache has room for %d tokens in %.3g GB of %s",
            self.num_parameters / 1e6,
            self.weight_bytes / 1e9,
            loaded.held_as,
            self.kv_pool.max_total_tokens,
            self.kv_pool.num_bytes / 1e9,
            str(choice.kv_dtype).removeprefix("torch."),
        )
        if choice.binding is not None:
            choice.binding.confine_caller()

    def _use(self, tables: DeviceTables) -> None:
        self.kv_pool, self.req_to_token, self._host_table = tables.kv_pool, tables.req_to_token, tables.host_table
        self.attn_backend, self.step_runner = tables.attn_backend, tables.step_runner
        self.sampling_state, self.sampler = tables.sampling_state, tables.sampler
        self.recorded_bytes = tables.recorded_bytes
        self.decoder: CpuGraphRunner | None = None
        if isinstance(self.step_runner, CpuGraphRunner) and self.config.is_generation:
            self.decoder = self.step_runner
        self._running: RunningSteps | None = None

    def drop_tables(self) -> Callable[[], None]:
        """Let go of the KV pool and all that is recorded over it; nothing may run until the result is called.

        Returns:
            A function that makes all of it again, in the same size.
        """
        tokens = self.kv_pool.max_total_tokens
        self._running = None
        for name in _OF_TABLES:
            delattr(self, name)
        gc.collect()
        return lambda: self._use(self._planner.init_memory_pool(tokens))

    def forward_batch_generation(self, plan: StepPlan) -> StepResult:
        """Run one step and wait for its result: see :meth:`launch`."""
        return self.launch(plan).result()

    @torch.inference_mode()
    def launch(self, plan: StepPlan) -> LaunchedStep:
        """Give the device a step; where :attr:`runs_ahead`, without waiting for it, nor for those before.

        Plans must come in order, and their results be asked for in that order. Mutates the KV pool at
        ``plan.out_slots``, ``req_to_token`` and the sampling state.
        """
        if self.threads is not None and plan.num_rows:
            self.threads.expect_run()
            if self.ranks.native is not None:
                self.ranks.native.expect()
        self.lane.begin()
        self._running = None
        self._admit(plan)
        outcome = self.forward_decode(plan)
        if outcome is None:
            outcome = self.forward(plan)
        return LaunchedStep(plan, outcome, self.lane, self._scrub)

    @property
    def live_weights(self) -> LiveWeights:
        """Weights of the model, which those of another checkpoint may replace."""
        return self.weight_memory.live

    @property
    def page_size(self) -> int:
        """KV slots per page."""
        return self.kv_pool.page_size

    @property
    def max_steps(self) -> int:
        """Most decode steps that a plan may have."""
        return 1 if self.decoder is None else MAX_STEPS_IN_A_ROW

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""
        if self.decoder is not None:
            self.decoder.interrupt_on(descriptors)

    @property
    def runs_ahead(self) -> bool:
        """True if steps are launched without waiting for the device."""
        # What a failed row leaves may be read by the step after the next, so it is scrubbed before that is launched.
        is_safe = self.attn_backend.can_run_ahead and not self.attn_backend.reads_neighbours
        return self.device.type == "cuda" and self.pooling is None and is_safe

    def forward_decode(self, plan: StepPlan) -> StepOutcome | None:
        """Run a plan's decode steps and choose their tokens natively, or the first if each is to be reported.

        ``None`` if rows want anything else.
        """
        decoder = self.decoder
        if decoder is None or plan.mode is not ForwardMode.DECODE or not plan.num_rows:
            return None
        if plan.masks is not None or not plan.sample.all():
            return None
        rows = self.sampling_state.rows(plan.req_slots)
        if rows.union & Needs.BANNED_SEQUENCES:
            return None
        drawn = rows.needs != 0
        if plan.logprobs:
            drawn[[request.row for request in plan.logprobs]] = True
        draws = self.sampling_state.describe_steps(rows.of(drawn), plan.num_steps)
        assert self.sampler.native is not None, "there are native kernels"
        wanted = _WANTED_OF_SAMPLING[drawn.view(np.uint8)]
        reads = None
        if plan.logprobs:
            reader = self.sampler.logprob_reader(rows.slots[drawn], _among(drawn.nonzero()[0], plan.logprobs))
            reads = reader.native_reads(plan.num_steps)
        tokens = decoder.decode(plan, wanted, draws, self.sampler.native.scratch, reads)
        running = RunningSteps(plan, decoder, reads, self._scrub)
        if decoder.goes_on:
            self._running = running
        logprobs = tuple(each for step in range(len(tokens)) for each in running.logprobs(step))
        return StepOutcome(tokens, decoder.finite, logprobs=logprobs, goes_on=decoder.goes_on)

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on. Raises :class:`RuntimeError` if there is none."""
        if self._running is None:
            raise RuntimeError("no step is to follow")
        result = self._running.forward_further()
        if not result.goes_on:
            self._running = None
        return result

    def forward(self, plan: StepPlan) -> StepOutcome:
        """Compute a step's hidden states and logits, choose its tokens, and take from them what its rows want."""
        outcome = StepOutcome.nothing(plan.num_rows)
        if plan.num_rows == 0:
            return outcome
        assert plan.further is None, "only plans of decode rows have further steps"
        sampling_rows = plan.sample.nonzero()[0]
        by_logits = self.rows_that_need_logits(plan, sampling_rows)
        wanted = np.zeros(plan.num_rows, dtype=np.uint8)
        wanted[sampling_rows] = _WANTED_OF_SAMPLING[by_logits.view(np.uint8)]
        hidden_wanted = bool(plan.pooling) or any(len(request.targets) for request in plan.logprobs)
        result = self.step_runner.forward(plan, wanted, hidden_states=hidden_wanted)
        outcome = StepOutcome(result.next_token_ids[np.newaxis], result.finite, checked=result.checked)
        logit_rows, choice_rows = sampling_rows[by_logits], sampling_rows[~by_logits]
        if result.logits is not None:
            outcome.sampled = SampledRows(logit_rows, self.sample(plan, result.logits, logit_rows))
        if len(choice_rows):
            self.sampling_state.record_choices(plan.req_slots[choice_rows], result.next_token_ids[choice_rows])
        if self.pooling is not None and plan.pooling:
            assert result.hidden_states is not None, "they were wanted"
            outcome.embeddings, not_finite = self.pooling.pool(plan, result.hidden_states)
            outcome.finite[not_finite] = False
        if plan.logprobs:
            states = result.hidden_states if result.hidden_states is not None else torch.empty(0)
            outcome.targets = self._gather_targets(plan, states)
        return outcome

    def rows_that_need_logits(self, plan: StepPlan, rows: IndexArray) -> npt.NDArray[np.bool_]:
        """Mask of the sampling ``rows`` (``[S]``) that the token with the largest allowed logit alone does not serve.

        Only native kernels serve any so.
        """
        if self.threads is None:
            return np.ones(len(rows), dtype=np.bool_)
        needs: npt.NDArray[np.bool_] = self.sampling_state.rows(plan.req_slots[rows]).needs != 0
        if plan.logprobs:
            needs |= np.isin(rows, [request.row for request in plan.logprobs])
        return needs

    def sample(self, plan: StepPlan, logits: torch.Tensor, rows: IndexArray) -> SampleOutput:
        """Choose the next tokens of the sampling ``rows`` ``[S]``; ``logits``, float32 ``[S, V]``, are overwritten."""
        requests: tuple[RowLogprobs, ...] = ()
        if plan.logprobs:
            requests = _among(rows, plan.logprobs)
        masks = None
        if plan.masks is not None:
            at, bits = plan.masks.rows.astype(np.int64), plan.masks.bits
            if len(rows) < plan.num_rows:
                place = np.full(plan.num_rows, -1)
                place[rows] = np.arange(len(rows))
                at = place[at]
                at, bits = at[at >= 0], bits[at >= 0]
            masks = RowMasks(at, bits)
        return self.sampler.sample(logits, plan.req_slots[rows], requests, masks)

    def _gather_targets(self, plan: StepPlan, hidden_states: torch.Tensor) -> tuple[GatheredLogprobs | None, ...]:
        """Logprobs of prompt tokens, for each of the plan's requests, from hidden states ``[T, hidden_size]``."""
        chunk_rows = max(LOGIT_CHUNK_ELEMENTS // self.config.vocab_size, 1)
        compute_logits: Callable[[torch.Tensor], torch.Tensor] = self.model.compute_logits
        if self.ranks.native is not None and self.decoder is not None:
            # The other ranks do not run this, and the head alone would have this rank's columns.
            chunk_rows, compute_logits = min(chunk_rows, self.max_running_requests), self.decoder.compute_logits
        last_tokens = np.cumsum(plan.extend_lens, dtype=np.int64) - 1
        gathered = []
        for request in plan.logprobs:
            begin = int(last_tokens[request.row] - plan.extend_lens[request.row]) + 1 + request.first
            states = hidden_states[begin : begin + len(request.targets)]
            gathered.append(gather_targets(states, request, compute_logits, chunk_rows, self.threads))
        return tuple(gathered)

    def _admit(self, plan: StepPlan) -> None:
        for new in plan.new_requests:
            self.sampling_state.admit(new)
        if plan.forced:
            self.sampling_state.append(plan.forced)
        for write in plan.table_writes:
            entries = slice(write.start, write.start + len(write.slots))
            if self._host_table is not None:
                self._host_table[write.req_slot, entries] = write.slots
            else:
                self.req_to_token[write.req_slot, entries] = to_device(write.slots, self.device)
        if plan.num_rows and int((plan.prefix_lens + plan.extend_lens).max()) > self.max_req_len:
            # Written flat, the entry would land in the next request's row.
            raise ValueError(f"step {plan.step_id} goes beyond {self.max_req_len} tokens of a request")

    def _scrub(self, plan: StepPlan, rows: list[int], num_steps: int) -> None:
        """Leave nothing that is not finite in the pages of failed rows, which other requests get next."""
        if self.attn_backend.reads_neighbours:
            self.kv_pool.scrub(self.slots_of(plan, rows, num_steps))

    def slots_of(self, plan: StepPlan, rows: list[int], num_steps: int) -> torch.Tensor:
        """Return the KV slots, int64, of all tokens of some rows, after so many steps of a plan."""
        lengths = [int(plan.prefix_lens[row] + plan.extend_lens[row]) + num_steps - 1 for row in rows]
        tables = [self.req_to_token[int(plan.req_slots[row])] for row in rows]
        return torch.cat([table[:length] for table, length in zip(tables, lengths, strict=True)]).long()


def _among(rows: IndexArray, requests: tuple[RowLogprobs, ...]) -> tuple[RowLogprobs, ...]:
    """The requests about ``rows`` ``[S]``, naming these by their index, without targets."""
    index_of = {row: index for index, row in enumerate(rows.tolist())}
    return tuple(
        RowLogprobs(index_of[each.row], 0, each.targets[:0], each.top_n, each.token_ids)
        for each in requests
        if each.row in index_of
    )
