"""Runs step plans on one device."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import torch

from bough.config.engine_args import MAX_STEPS_IN_A_ROW, Quantization
from bough.config.model_config import ModelConfig
from bough.kernels.host_memory import OutlineArena
from bough.kernels.logprobs import LogprobReads
from bough.layers.forward_batch import ForwardBatch, token_positions
from bough.layers.logprobs import GatheredLogprobs
from bough.layers.quantized_rows import QuantizedRows
from bough.layers.sampler import SampleOutput
from bough.layers.stored_formats import StoredFormats
from bough.mem_cache.kv_pool import FLOAT8_DTYPES
from bough.model_executor.cpu_graph_runner import CpuGraphRunner
from bough.model_executor.execution_choice import choose_execution
from bough.model_executor.graph_runner import GraphRunner, Wanted
from bough.model_executor.launched_step import CheckedRows, LaunchedStep, SampledRows, StepOutcome
from bough.model_executor.logprob_results import LOGIT_CHUNK_ELEMENTS, gather_targets, sampled_results
from bough.model_executor.pooling import CausalPooling
from bough.model_executor.readback import lane_of
from bough.model_executor.runner_memory import MemoryPlanner, timed
from bough.model_executor.runner_options import RunnerOptions
from bough.model_executor.weight_memory import check_weights_fit, largest_weight_bytes, weight_bytes
from bough.model_loader.loader import load_model, open_source
from bough.model_loader.sources import NAMES_SHOWN, WeightSource
from bough.models.base import CausalLM
from bough.models.pooled import PooledCausalLM
from bough.sampling.device_state import Needs
from bough.sampling.mask_rows import RowMasks
from bough.sampling.transfer import all_to_device, to_device
from bough.step_plan import ForwardMode, RowLogprobResult, RowLogprobs, StepPlan, StepResult
from bough.weight_sync.live_weights import LiveWeights, state_of

logger = logging.getLogger(__name__)

IndexArray = npt.NDArray[np.int64]

_WANTED_OF_SAMPLING = np.array([Wanted.CHOICE, Wanted.LOGITS], dtype=np.uint8)
"""By whether a row needs logits."""


class DecodedRows(NamedTuple):
    """What a recorded step computed of ``n`` decode rows."""

    hidden_states: torch.Tensor
    """[n, hidden_size]"""
    logits: torch.Tensor
    """float32 [n, vocab_size]"""
    others: StepPlan
    """The forward pass of the step's other rows, which is still to be computed"""


@dataclass(slots=True)
class RunningSteps:
    """A plan whose steps are reported each, of which the first is done."""

    plan: StepPlan
    step_runner: CpuGraphRunner
    reads: LogprobReads | None
    num_further: int = 0


class ModelRunner:
    """A loaded model with its KV pool, request table and sampler.

    All that a step changes lives here or in what this owns: the pool, ``req_to_token`` and the sampling state. Steps
    must be run one at a time, in the order of their plans.

    Attributes:
        timings: seconds that each phase of construction took.
        page_size: tokens per KV page.
        max_running_requests: rows of ``req_to_token``.
        max_req_len: most tokens of one request, prompt and output together.
        quantized: whether native kernels multiply quantised weights.
        activation_dtype: of hidden states between layers.
        recorded_bytes: what is recorded takes of a CUDA device.
        lane: brings results to the host.
        weights: of the model, which those of another checkpoint may replace.
        step_runner: what runs decode steps in a row and chooses their tokens, if anything does.
    """

    def __init__(self, config: ModelConfig, device: torch.device, options: RunnerOptions) -> None:
        """Load the model and take the memory that it will ever need.

        Raises:
            StartupError: if the checkpoint does not fit the model, or memory does not suffice.
        """
        self.config = config.for_device("cuda" if device.type == "cuda" else "cpu")
        self.device = device
        self.options = options
        choice = choose_execution(self.config, device, options)
        self.threads, self.weight_choice = choice.threads, choice.weights
        self.dtype, self.kv_dtype = choice.dtype, choice.kv_dtype
        self.timings: dict[str, float] = {}
        with timed(self.timings, "load_weights"):
            source = open_source(self.config, options.load_format)
            files = state_of(source)
            kv_scales: dict[int, tuple[float, float]] | None = None
            if source is not None and self.kv_dtype in FLOAT8_DTYPES:
                kv_scales = source.kv_scales()
            stored = source is not None and source.quantized
            self.quantized = self.threads is not None and (stored or options.quantization != "none")
            # The inputs of products with quantised weights are made from float32.
            self.activation_dtype = torch.float32 if self.quantized else self.dtype
            self.model = self.load_model(source)
        self.weights = LiveWeights(
            self.model,
            self.config,
            options.load_format,
            files=files,
            seed=options.seed,
            kv_scales=kv_scales,
            holds_codes=self._holds_codes,
        )
        planner = MemoryPlanner(
            self.model,
            self.config,
            device,
            options,
            kv_dtype=self.kv_dtype,
            activation_dtype=self.activation_dtype,
            threads=self.threads,
            attention=choice.attention,
            kv_scales=kv_scales,
            timings=self.timings,
        )
        self.num_parameters, self.weight_bytes = planner.num_parameters, planner.weight_bytes
        tables = planner.fitted()
        self.kv_pool, self.req_to_token, self._host_table = tables.kv_pool, tables.req_to_token, tables.host_table
        self.attn_backend = tables.attn_backend
        self.graph_runner, self.prompt_runner = tables.graph_runner, tables.prompt_runner
        self.step_runner: CpuGraphRunner | None = None
        if isinstance(self.graph_runner, CpuGraphRunner) and self.config.is_generation:
            self.step_runner = self.graph_runner
        self._running: RunningSteps | None = None
        self.sampling_state, self.sampler = tables.sampling_state, tables.sampler
        self.recorded_bytes = tables.recorded_bytes
        self.page_size = self.kv_pool.page_size
        self.max_running_requests, self.max_req_len = self.req_to_token.shape
        self.lane = lane_of(device)
        self.pooling: CausalPooling | None = None
        if isinstance(self.model, PooledCausalLM):
            self.pooling = CausalPooling(self.config, self.model, self.max_running_requests, device)
        self._tell_sizes()
        self._binding = choice.binding
        if self._binding is not None:
            self._binding.confine_caller()

    # --- start-up ---

    def load_model(self, source: WeightSource | None) -> CausalLM:
        """The model of the configuration, with weights from ``source``, or random ones.

        Raises:
            StartupError: before anything is loaded if there is no room for it; or if files do not fit the model.
        """
        needed = self._weight_bytes(source, self.options.quantization)
        is_sized = self.options.max_total_tokens is not None
        check_weights_fit(self.device, needed, self._smaller_weights(source), only_warn=is_sized)
        method = self.weight_choice.method(source, self.options.quantization)
        if source is not None and self.options.quantization == "none":
            problem = self.weight_choice.why_not_stored(source)
            if problem is not None:
                logger.warning("weights of few bits are held in the model's type, which takes more memory: %s", problem)
        model = load_model(self.config, source=source, device=self.device, seed=self.options.seed, method=method)
        assert isinstance(model, CausalLM), "encoders have a runner of their own"
        self._holds_codes = isinstance(method, StoredFormats)
        if isinstance(method, StoredFormats) and method.recoded:
            shown = ", ".join(method.recoded[:NAMES_SHOWN]) + (", …" if len(method.recoded) > NAMES_SHOWN else "")
            logger.info("%d matrices become int8, of themselves not quantised: %s", len(method.recoded), shown)
        return model

    def _tell_sizes(self) -> None:
        pool, quantization = self.kv_pool, self.options.quantization
        kept = "the checkpoint's codes" if self._holds_codes else self.config.dtype
        logger.info(
            "%.1f million parameters take %.3g GB as %s; the KV cache has room for %d tokens in %.3g GB of %s",
            self.num_parameters / 1e6,
            self.weight_bytes / 1e9,
            kept if quantization == "none" else quantization,
            pool.max_total_tokens,
            pool.num_bytes / 1e9,
            str(self.kv_dtype).removeprefix("torch."),
        )

    def _smaller_weights(self, source: WeightSource | None) -> dict[str, Callable[[], int]]:
        """Options with which the weights take less memory, and how much that is."""
        smaller: dict[str, Callable[[], int]] = {}
        if source is not None and source.quantized:
            return smaller
        if self.config.dtype == "float32" and not self.quantized:
            smaller["--dtype bfloat16"] = partial(weight_bytes, replace(self.config, dtype="bfloat16"))
        for each in get_args(Quantization):
            if each not in ("none", self.options.quantization) and self.weight_choice.why_not(each) is None:
                smaller[f"--quantization {each}"] = partial(self._weight_bytes, source, each)
        return smaller

    def _weight_bytes(self, source: WeightSource | None, quantization: Quantization) -> int:
        """What the weights take, and making them while they are loaded."""
        needed = weight_bytes(self.config, self.weight_choice.method(source, quantization, OutlineArena()))
        if source is None and self.device.type == "cuda":
            needed += largest_weight_bytes(self.config)  # random ones are made there, one after the other
        return needed + self.weight_choice.quantizing_bytes(source, quantization)

    # --- steps ---

    def forward_step(self, plan: StepPlan) -> StepResult:
        """Run one step and wait for its result: see :meth:`launch_step`."""
        return self.launch_step(plan).result()

    @torch.inference_mode()
    def launch_step(self, plan: StepPlan) -> LaunchedStep:
        """Give the device a step; where :attr:`runs_ahead`, without waiting for it, nor for those before.

        Mutates the KV pool at ``plan.out_slots``, ``req_to_token`` and the sampling state.
        """
        if self.threads is not None and plan.num_rows:
            self.threads.expect_run()
        self.lane.begin()
        self._running = None
        self._admit(plan)
        if plan.num_rows == 0:
            return self._launched(plan, StepOutcome.nothing(0))
        if int((plan.prefix_lens + plan.extend_lens).max()) > self.max_req_len:
            # Written flat, the entry would land in the next request's row.
            raise ValueError(f"step {plan.step_id} goes beyond {self.max_req_len} tokens of a request")
        if self.step_runner is not None and plan.mode is ForwardMode.DECODE:
            outcome = self.decode(self.step_runner, plan)
            if outcome is not None:
                return self._launched(plan, outcome)
        assert plan.further is None, "nothing here takes further steps"
        if self.graph_runner is not None and self.graph_runner.can_run(plan):
            return self._launched(plan, self._replay_step(self.graph_runner, plan))
        return self._launched(plan, self._run_step(plan))

    @property
    def max_steps(self) -> int:
        """Most decode steps that a plan may have."""
        return 1 if self.step_runner is None else MAX_STEPS_IN_A_ROW

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step of a plan while one of these file descriptors can be read from."""
        if self.step_runner is not None:
            self.step_runner.interrupt_on(descriptors)

    @property
    def runs_ahead(self) -> bool:
        """Whether steps are launched without waiting for the device."""
        # What a failed row leaves may be read by the step after the next, so it is scrubbed before that is launched.
        is_safe = self.attn_backend.can_run_ahead and not self.attn_backend.reads_neighbours
        return self.device.type == "cuda" and self.pooling is None and is_safe

    def _launched(self, plan: StepPlan, outcome: StepOutcome) -> LaunchedStep:
        return LaunchedStep(plan, outcome, self.lane, self._scrub)

    def _run_step(self, plan: StepPlan) -> StepOutcome:
        decoded = self._replay_decode_rows(plan)
        others = plan if decoded is None else decoded.others
        if self.prompt_runner is not None and self.prompt_runner.can_run(others):
            hidden_states = self.prompt_runner.replay(others)
        else:
            hidden_states = self.forward(self._make_batch(others))
        if decoded is not None:
            hidden_states = torch.cat((decoded.hidden_states, hidden_states))
        last_tokens = np.cumsum(plan.extend_lens, dtype=np.int64) - 1
        sampling_rows = np.flatnonzero(plan.sample)
        outcome = StepOutcome.nothing(plan.num_rows)
        if len(sampling_rows):
            if decoded is None:
                logits = self.model.compute_logits(self._select(hidden_states, last_tokens[sampling_rows]))
            else:
                logits = decoded.logits
                prompt_ends = last_tokens[sampling_rows[plan.num_decode_rows :]]
                if len(prompt_ends):
                    states = self._select(hidden_states, prompt_ends)
                    logits = torch.cat((logits, self.model.compute_logits(states)))
            outcome.sampled = SampledRows(sampling_rows, self.sample(plan, logits, sampling_rows))
        if len(sampling_rows) < plan.num_rows:
            # A chunk that goes wrong must not leave its KV to whoever gets the pages next.
            other_rows = np.flatnonzero(~plan.sample)
            finite = self._select(hidden_states, last_tokens[other_rows]).isfinite().all(-1)
            outcome.checked = CheckedRows(other_rows, finite)
        self._pool(plan, hidden_states, outcome)
        outcome.targets = self._gather_targets(plan, hidden_states, last_tokens)
        return outcome

    def _replay_decode_rows(self, plan: StepPlan) -> DecodedRows | None:
        """Run the decode rows of a step that has prompts as well, if they are recorded."""
        if self.graph_runner is None or plan.mode is not ForwardMode.MIXED or plan.token_types is not None:
            return None
        decode_rows, others = plan.split()
        if not self.graph_runner.can_run(decode_rows):
            return None
        wanted = np.full(plan.num_decode_rows, Wanted.LOGITS, dtype=np.uint8)
        result = self.graph_runner.replay(decode_rows, wanted, hidden_states=True)
        assert result.hidden_states is not None, "they were wanted"
        assert result.logits is not None, "they were wanted"
        return DecodedRows(result.hidden_states, result.logits, others)

    def decode(self, step_runner: CpuGraphRunner, plan: StepPlan) -> StepOutcome | None:
        """Run a plan's decode steps and choose their tokens natively, or the first if each is to be reported.

        Returns:
            ``None`` if rows want anything else.
        """
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
        tokens = step_runner.decode(plan, wanted, draws, self.sampler.native.scratch, reads)
        if step_runner.goes_on:
            self._running = RunningSteps(plan, step_runner, reads)
        *earlier, last = (_logprobs_of(plan, reads, step) for step in range(len(tokens)))
        return StepOutcome(
            tokens[-1],
            step_runner.finite,
            logprobs=last,
            earlier_token_ids=tuple(tokens[:-1]),
            earlier_logprobs=tuple(earlier) if plan.logprobs else (),
            goes_on=step_runner.goes_on,
        )

    def forward_further(self) -> StepResult:
        """Run the next step of the plan whose last result goes on.

        Raises:
            RuntimeError: if there is none.
        """
        running = self._running
        if running is None:
            raise RuntimeError("no step is to follow")
        begin = time.perf_counter()
        tokens = running.step_runner.decode_further()
        running.num_further += 1
        logprobs = _logprobs_of(running.plan, running.reads, running.num_further)
        seconds = time.perf_counter() - begin
        step_id = running.plan.step_id
        if running.step_runner.goes_on:
            return StepResult(step_id, tokens, logprobs, seconds=seconds, goes_on=True)
        failed = (~running.step_runner.finite).nonzero()[0].tolist()
        if failed:
            self._scrub(running.plan, failed, 1 + running.num_further)
        self._running = None
        return StepResult(step_id, tokens, logprobs, failed_rows=tuple(failed), seconds=seconds)

    def _replay_step(self, graph_runner: GraphRunner, plan: StepPlan) -> StepOutcome:
        sampling_rows = plan.sample.nonzero()[0]
        by_logits = self.rows_that_need_logits(plan, sampling_rows)
        wanted = np.zeros(plan.num_rows, dtype=np.uint8)
        wanted[sampling_rows] = _WANTED_OF_SAMPLING[by_logits.view(np.uint8)]
        hidden_wanted = bool(plan.pooling) or any(len(request.targets) for request in plan.logprobs)
        result = graph_runner.replay(plan, wanted, hidden_states=hidden_wanted)
        outcome = StepOutcome(result.next_token_ids, result.finite)
        logit_rows, choice_rows = sampling_rows[by_logits], sampling_rows[~by_logits]
        if result.logits is not None:
            outcome.sampled = SampledRows(logit_rows, self.sample(plan, result.logits, logit_rows))
        if len(choice_rows):
            self.sampling_state.record_choices(plan.req_slots[choice_rows], result.next_token_ids[choice_rows])
        if result.hidden_states is not None:
            self._pool(plan, result.hidden_states, outcome)
        if plan.logprobs:
            states = result.hidden_states if result.hidden_states is not None else torch.empty(0)
            last_tokens = np.cumsum(plan.extend_lens, dtype=np.int64) - 1
            outcome.targets = self._gather_targets(plan, states, last_tokens)
        return outcome

    def _pool(self, plan: StepPlan, hidden_states: torch.Tensor, outcome: StepOutcome) -> None:
        if self.pooling is not None:
            outcome.embeddings, not_finite = self.pooling.pool(plan, hidden_states)
            outcome.finite[not_finite] = False

    def rows_that_need_logits(self, plan: StepPlan, rows: IndexArray) -> npt.NDArray[np.bool_]:
        """Which of the sampling ``rows`` (``[S]``) are not served by the token with the largest allowed logit alone.

        Only native kernels serve any so.
        """
        if self.threads is None:
            return np.ones(len(rows), dtype=np.bool_)
        needs: npt.NDArray[np.bool_] = self.sampling_state.rows(plan.req_slots[rows]).needs != 0
        if plan.logprobs:
            needs |= np.isin(rows, [request.row for request in plan.logprobs])
        return needs

    def forward(self, batch: ForwardBatch) -> torch.Tensor:
        """Hidden states of all tokens of a batch, ``[num_tokens, hidden_size]``."""
        if batch.forward_mode is ForwardMode.DECODE:
            return self.forward_decode(batch)
        return self.forward_extend(batch)

    def forward_decode(self, batch: ForwardBatch) -> torch.Tensor:
        """:meth:`forward` of a batch whose rows all add one sampled token."""
        output: torch.Tensor = self.model(batch)
        return output

    def forward_extend(self, batch: ForwardBatch) -> torch.Tensor:
        """:meth:`forward` of a batch that has prompts."""
        output: torch.Tensor = self.model(batch)
        return output

    def sample(self, plan: StepPlan, logits: torch.Tensor, rows: IndexArray) -> SampleOutput:
        """Choose the next token of each of ``rows``.

        Args:
            plan: the step.
            logits: float32 ``[S, vocab_size]``; overwritten.
            rows: int64 ``[S]``, the sampling rows of the plan.
        """
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

    def _gather_targets(
        self, plan: StepPlan, hidden_states: torch.Tensor, last_tokens: IndexArray
    ) -> tuple[GatheredLogprobs | None, ...]:
        """Logprobs of prompt tokens, for each of the plan's requests.

        Args:
            plan: the step.
            hidden_states: ``[T, hidden_size]``
            last_tokens: ``[R]``, index of each row's last token.
        """
        chunk_rows = max(LOGIT_CHUNK_ELEMENTS // self.config.vocab_size, 1)
        gathered = []
        for request in plan.logprobs:
            begin = int(last_tokens[request.row] - plan.extend_lens[request.row]) + 1 + request.first
            states = hidden_states[begin : begin + len(request.targets)]
            gathered.append(gather_targets(states, request, self.model.compute_logits, chunk_rows, self.threads))
        return tuple(gathered)

    def update_weights(self, weights: Iterable[tuple[str, torch.Tensor | QuantizedRows]]) -> set[str]:
        """Replace weights between two steps; see :meth:`CausalLM.load_weights`."""
        return self.model.load_weights(weights)

    # --- parts of a step ---

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

    def _make_batch(self, plan: StepPlan) -> ForwardBatch:
        positions = token_positions(plan)
        slots = plan.req_slots if plan.num_tokens == plan.num_rows else np.repeat(plan.req_slots, plan.extend_lens)
        entries = (slots.astype(np.int64) * self.max_req_len + positions, plan.out_slots)
        self.req_to_token.view(-1).index_copy_(0, *all_to_device(entries, self.device))
        metadata = self.attn_backend.init_forward_metadata(
            plan.num_decode_rows, plan.req_slots, plan.prefix_lens, plan.extend_lens, self.req_to_token
        )
        return ForwardBatch.from_plan(
            plan,
            positions=positions,
            last_token=self.sampling_state.last_token,
            attn_backend=self.attn_backend,
            attn_metadata=metadata,
        )

    def _select(self, hidden_states: torch.Tensor, tokens: IndexArray) -> torch.Tensor:
        """The hidden states of some tokens, ascending."""
        if len(tokens) == len(hidden_states):
            return hidden_states
        return hidden_states.index_select(0, to_device(tokens, self.device))

    def _scrub(self, plan: StepPlan, rows: list[int], num_steps: int) -> None:
        """Leave nothing that is not finite in the pages of failed rows, which somebody else gets next."""
        for row in rows if self.attn_backend.reads_neighbours else ():
            length = int(plan.prefix_lens[row] + plan.extend_lens[row]) + num_steps - 1
            slots = self.req_to_token[int(plan.req_slots[row]), :length].long()
            self.kv_pool.scrub(slots)


def _logprobs_of(plan: StepPlan, reads: LogprobReads | None, step: int) -> tuple[RowLogprobResult, ...]:
    """What a plan's rows want to know of the tokens of one of its steps, which was run."""
    return () if reads is None else sampled_results(plan.logprobs, reads.of_step(step))


def _among(rows: IndexArray, requests: tuple[RowLogprobs, ...]) -> tuple[RowLogprobs, ...]:
    """The requests about ``rows`` ``[S]``, naming these by their index, without targets."""
    index_of = {row: index for index, row in enumerate(rows.tolist())}
    return tuple(
        RowLogprobs(index_of[each.row], 0, each.targets[:0], each.top_n, each.token_ids)
        for each in requests
        if each.row in index_of
    )
