"""Runs a model's forward pass as one native call per step."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch

from bough.config.engine_args import MAX_STEPS_IN_A_ROW
from bough.config.model_config import ModelConfig
from bough.constrained.masks import StepMasks
from bough.kernels.logprobs import LogprobReads
from bough.kernels.native_group import FollowEnd, NativeGroup
from bough.kernels.program import Program, scratch_bytes
from bough.kernels.sampling import NativeSampler
from bough.kernels.structures import AttentionShape, DecodeRun, ProgramLimits, Step, address_of
from bough.kernels.thread_pool import ThreadPool
from bough.layers.recorded_ops import RecordOps, routing_kind
from bough.mem_cache.kv_pool import KVPool
from bough.model_executor.graph_runner import ForwardOutput, Wanted
from bough.model_executor.logprob_results import logprob_results
from bough.models.base import CausalLM
from bough.sampling.device_state import StepDraws
from bough.step_plan import FUTURE_TOKEN, IntArray, RowLogprobResult, StepPlan, StepResult, token_runs

MAX_PIECE_TOKENS = 1024
"""Tokens that go through the model together; larger steps run in pieces. From a few hundred on, more tokens at a time
make matrix products no faster, only their buffers larger."""

# Plain numbers: a member of an enumeration takes a numpy comparison microseconds, once a step.
_CHOICE, _LOGITS = int(Wanted.CHOICE), int(Wanted.LOGITS)


def kernel_bytes(config: ModelConfig, num_threads: int, max_rows: int, max_step_tokens: int) -> int:
    """Memory that native kernels keep for their own use, beside activations and logits, in bytes."""
    limits = ProgramLimits(
        max_tokens=min(max_step_tokens, MAX_PIECE_TOKENS),
        max_rows=max_rows,
        max_context=config.context_len,
        vocab_size=config.vocab_size,
    )
    shapes = [
        AttentionShape(
            num_heads=shape.num_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
            window=shape.window or 0,
        )
        for shape in config.attention_shapes()
    ]
    routings = [routing_kind(routing) for routing in config.routings()]
    return scratch_bytes(limits, shapes, routings, num_threads) + NativeSampler.scratch_bytes(
        config.vocab_size, num_threads
    )


class CpuGraphRunner:
    """The recorded forward pass of one model over one KV pool.

    The program takes the numbers of rows and tokens as parameters, so every step can be run: decode rows, prompts and
    both together. It also chooses the tokens of rows for which the largest logit is all that matters.
    """

    def __init__(
        self,
        model: CausalLM,
        kv_pool: KVPool,
        threads: ThreadPool,
        *,
        config: ModelConfig,
        dtype: torch.dtype,
        req_to_token: torch.Tensor,
        last_token: torch.Tensor,
        max_step_tokens: int,
        group: NativeGroup | None = None,
    ) -> None:
        """Record the model, or of several ranks this one's part.

        Args:
            model: with packed weights, whose addresses stay as they are.
            req_to_token: int32 ``[max_running_requests, max_len]``; steps enter their new tokens. Of several ranks, in
                memory of the group.
            last_token: int64 ``[max_running_requests]``, resolves ``FUTURE_TOKEN``.
            max_step_tokens: most new tokens that steps usually have.
            group: of the ranks; the first one runs steps, the others :meth:`follow`.
        """
        max_rows = len(req_to_token)
        self._dtype = dtype
        self._group = group
        limits = _limits(config, kv_pool, req_to_token, max_step_tokens)
        self._program = Program(threads, limits, dtype, group)
        model.run_on(RecordOps(self._program, kv_pool.kernel_layer))
        # Of zeros, so that the memory is taken now. A model that pools has no logits.
        logit_rows = max_rows if config.is_generation else 0
        make = torch.zeros if group is None else group.arena.tensor
        self._logits = make(logit_rows, config.vocab_size, dtype=torch.float32)
        self._req_to_token = req_to_token
        self._kept_alive = (model, kv_pool, last_token)
        if group is not None:
            group.settle()
        self._hidden_size = config.hidden_size
        # Steps are copied to addresses that the kernels know already: to ask an array for its own takes a microsecond.
        self._inputs = np.zeros((5, max_rows), dtype=np.int32)
        self._wanted = np.zeros(max_rows, dtype=np.uint8)
        self._next_tokens = np.zeros(max_rows, dtype=np.int32)
        self._finite = np.zeros(max_rows, dtype=np.bool_)
        self._addresses = [address_of(row) for row in self._inputs]
        self._step = Step(
            req_to_token=req_to_token.data_ptr(),
            table_stride=req_to_token.stride(0),
            last_tokens=last_token.data_ptr(),
            logits=self._logits.data_ptr(),
            wanted=address_of(self._wanted),
            next_tokens=address_of(self._next_tokens),
            finite=address_of(self._finite),
        )
        self._step.req_slots, self._step.prefix_lens, self._step.extend_lens = self._addresses[:3]
        self._run_slots = np.zeros(MAX_STEPS_IN_A_ROW * max_rows, dtype=np.int32)
        self._run_tokens = np.zeros(MAX_STEPS_IN_A_ROW * max_rows, dtype=np.int32)
        self._checks_eos = np.zeros(max_rows, dtype=np.bool_)
        self._is_eos = np.zeros(config.vocab_size, dtype=np.bool_)
        self._is_eos[[token for token in config.eos_token_ids if 0 <= token < config.vocab_size]] = True
        self._decode_run = DecodeRun(is_end=address_of(self._is_eos), checks_end=address_of(self._checks_eos))
        self._first_of_run = Step.from_buffer_copy(self._step)
        self._first_of_run.input_ids = self._addresses[3]
        self._first_of_run.out_slots = address_of(self._run_slots)
        self._first_of_run.next_tokens = address_of(self._run_tokens)
        self._read_by_run: tuple[StepDraws, LogprobReads | None] | None = None
        self.interrupt_on(())

    def interrupt_on(self, descriptors: Sequence[int]) -> None:
        """From now on, begin no further step while one of these file descriptors can be read from."""
        self._descriptors = np.array(descriptors, dtype=np.int32)
        self._decode_run.descriptors = address_of(self._descriptors)
        self._decode_run.num_descriptors = len(descriptors)

    def forward(self, plan: StepPlan, wanted: npt.NDArray[np.uint8], *, hidden_states: bool) -> ForwardOutput:
        """Run one step.

        Mutates the KV pool at ``plan.out_slots`` and enters these into ``req_to_token``.

        Args:
            wanted: uint8 ``[R]``, a :class:`Wanted` for each row.
            hidden_states: whether to keep those of all tokens.

        Raises:
            ValueError: if the plan names rows, tokens or slots that do not exist, or the lengths of its arrays do not
                fit together; nothing has been changed.
        """
        step, rows, tokens = self._step, plan.num_rows, plan.num_tokens
        self._fill_rows(plan, wanted)
        inputs = self._inputs
        if tokens <= inputs.shape[1]:
            inputs[3, :tokens], inputs[4, :tokens] = plan.input_ids, plan.out_slots
            step.input_ids, step.out_slots = self._addresses[3:]
        else:
            long = [np.ascontiguousarray(array, dtype=np.int32) for array in (plan.input_ids, plan.out_slots)]
            step.input_ids, step.out_slots = map(address_of, long)
        self._next_tokens[:rows] = FUTURE_TOKEN
        kept = torch.empty(tokens, self._hidden_size, dtype=self._dtype) if hidden_states else None
        step.hidden_states = None if kept is None else kept.data_ptr()
        if plan.masks is not None and (wanted == _CHOICE).any():
            self._run_masked(step, plan, plan.masks)
        else:
            step.allowed = step.masks_ready = None
            if plan.masks is not None:
                plan.masks.begin()
            self._program.run(step)
        num_logits = int(np.count_nonzero(wanted == _LOGITS))
        logits = self._logits[:num_logits] if num_logits else None
        return ForwardOutput(self._next_tokens[:rows].copy(), self._finite[:rows].copy(), logits, kept)

    def compute_logits(self, states: torch.Tensor) -> torch.Tensor:
        """Run the head over hidden states ``[n, hidden_size]``, at most ``max_running_requests``.

        Returns:
            float32 ``[n, vocab_size]``, until the next step.
        """
        logits = self._logits[: len(states)]
        self._program.compute_head(states.to(self._dtype).contiguous(), logits)
        return logits

    def follow(self, seconds: float) -> FollowEnd:
        """Compute this rank's part of the first rank's steps, at most for so long.

        Raises:
            StartupError: if the first rank has another program.
        """
        assert self._group is not None, "there are several ranks"
        self._group.check()
        return self._program.follow(self._req_to_token, self._logits, seconds)

    def decode(
        self,
        plan: StepPlan,
        wanted: npt.NDArray[np.uint8],
        draws: StepDraws,
        scratch: int,
        reads: LogprobReads | None = None,
    ) -> IntArray:
        """Run a step of decode rows, and those that follow unless each is to be reported; choose their tokens.

        Mutates the KV pool at the plan's slots, enters these into ``req_to_token``, writes ``last_token`` and counts
        the tokens where ``draws`` says.

        Args:
            plan: the steps; without masks.
            wanted: uint8 ``[R]``, ``CHOICE`` or ``LOGITS`` for each row.
            draws: of the rows with ``LOGITS``, in all steps.
            scratch: address of the native sampler's memory.
            reads: gets logprobs of rows with ``LOGITS``, in all steps.

        Returns:
            tokens ``[steps that were run, R]``.

        Raises:
            ValueError: as :meth:`forward`.
        """
        rows, num_steps, run = plan.num_rows, plan.num_steps, self._decode_run
        if num_steps > MAX_STEPS_IN_A_ROW:
            raise ValueError(f"{num_steps} steps in a row; there is room for {MAX_STEPS_IN_A_ROW}")
        self._fill_rows(plan, wanted)
        self._first_of_run.num_rows = rows
        self._inputs[3, :rows] = plan.input_ids
        self._run_slots[:rows] = plan.out_slots
        self._checks_eos[:rows] = False
        run.max_at_once = num_steps
        if plan.further is not None:
            self._run_slots[rows : num_steps * rows] = plan.further.out_slots.ravel()
            self._checks_eos[:rows] = plan.further.checks_eos
            run.seconds = plan.further.seconds
            if plan.further.reports_each:
                run.max_at_once = 1
        run.num_steps, run.num_done, run.sampling_scratch = num_steps, 0, scratch
        run.draws, run.history_size, run.num_outputs = address_of(draws.rows), draws.history_size, draws.num_outputs
        run.logprobs = None if reads is None else ctypes.addressof(reads.call)
        self._read_by_run = (draws, reads)
        return self._run_on()

    def decode_further(self) -> IntArray:
        """Run the next of the steps of :meth:`decode`, to tokens ``[1, R]``; no other may have been run since.

        Raises:
            ValueError: if there is none.
        """
        return self._run_on()

    def _run_on(self) -> IntArray:
        run, rows = self._decode_run, self._first_of_run.num_rows
        before = run.num_done
        done = self._program.decode(self._first_of_run, run)
        tokens: IntArray = self._run_tokens[before * rows : done * rows].reshape(done - before, rows).copy()
        return tokens

    @property
    def goes_on(self) -> bool:
        """True if another of the steps that :meth:`decode` has begun may follow."""
        return not self._decode_run.has_ended

    @property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Rows ``[R]`` that were finite in the last step of :meth:`decode`; all where another may follow."""
        finite: npt.NDArray[np.bool_] = self._finite[: self._first_of_run.num_rows].copy()
        return finite

    def _fill_rows(self, plan: StepPlan, wanted: npt.NDArray[np.uint8]) -> None:
        """Describe the rows for the native step.

        Raises:
            ValueError: if the lengths of arrays do not fit together, or there are more rows than room.
        """
        rows = plan.num_rows
        _check_lengths(plan, np.ascontiguousarray(plan.extend_lens, dtype=np.int32), wanted)
        if rows > len(self._wanted):
            raise ValueError(f"the step has {rows} rows, but there is room for {len(self._wanted)}")
        inputs = self._inputs
        inputs[0, :rows], inputs[1, :rows], inputs[2, :rows] = plan.req_slots, plan.prefix_lens, plan.extend_lens
        self._wanted[:rows] = wanted
        self._finite[:rows] = True
        self._step.num_rows = rows

    def _run_masked(self, step: Step, plan: StepPlan, masks: StepMasks) -> None:
        """Run a step in which choices may not be among all tokens. The layers do not wait for that, only the head."""
        bits = masks.memory
        first, stride = address_of(bits), bits.strides[0]
        allowed = np.arange(first, first + len(bits) * stride, stride, dtype=np.uint64)
        if len(bits) < plan.num_rows:
            of_masked, allowed = allowed, np.zeros(plan.num_rows, dtype=np.uint64)
            allowed[masks.rows] = of_masked
        step.allowed = address_of(allowed)
        # As late as can be: the kernels release the GIL, which a thread that wakes before would wait for once more.
        masks.begin()
        ready = masks.ready
        step.masks_ready = None if ready is None else address_of(ready)
        self._program.run(step)
        _ = masks.bits  # raises what computing them has raised


class RunningSteps:
    """A plan whose steps are reported one by one, of which the first is done; see :class:`LaunchedStep`."""

    def __init__(
        self,
        plan: StepPlan,
        runner: CpuGraphRunner,
        reads: LogprobReads | None,
        on_failed: Callable[[StepPlan, list[int], int], None],
    ) -> None:
        self._plan, self._runner, self._reads, self._on_failed = plan, runner, reads, on_failed
        self._num_further = 0

    def logprobs(self, step: int) -> tuple[RowLogprobResult, ...]:
        """Return what rows asked about the tokens of a step that was run, the plan's first being 0."""
        if self._reads is None:
            return ()
        requests = self._plan.logprobs
        nothing: list[None] = [None] * len(requests)
        return logprob_results(requests, nothing, self._reads.of_step(step), [True] * len(requests))

    def forward_further(self) -> StepResult:
        """Run the next step."""
        begin = time.perf_counter()
        tokens = self._runner.decode_further()
        self._num_further += 1
        logprobs, goes_on = self.logprobs(self._num_further), self._runner.goes_on
        seconds = time.perf_counter() - begin
        failed = [] if goes_on else (~self._runner.finite).nonzero()[0].tolist()
        if failed:
            self._on_failed(self._plan, failed, 1 + self._num_further)
        runs = token_runs(tokens, failed)
        return StepResult(
            self._plan.step_id, *runs, logprobs, failed_rows=tuple(failed), seconds=seconds, goes_on=goes_on
        )


def _limits(config: ModelConfig, kv_pool: KVPool, req_to_token: torch.Tensor, max_step_tokens: int) -> ProgramLimits:
    max_rows, max_len = req_to_token.shape
    return ProgramLimits(
        max_tokens=max(min(max_step_tokens, MAX_PIECE_TOKENS), 1),
        max_rows=max_rows,
        max_context=max_len,
        vocab_size=config.vocab_size,
        num_slots=kv_pool.num_slots,
    )


def _check_lengths(plan: StepPlan, extend_lens: IntArray, wanted: npt.NDArray[np.uint8]) -> None:
    """Kernels trust the numbers of rows and in ``extend_lens`` (the plan's, contiguous) to be those of all arrays; what
    the arrays name they check themselves."""
    rows, tokens, slots = plan.num_rows, plan.num_tokens, len(plan.out_slots)
    if not len(plan.prefix_lens) == len(extend_lens) == len(wanted) == rows:
        raise ValueError(
            f"the step has {rows} rows, but {len(plan.prefix_lens)} prefixes, {len(extend_lens)} numbers of new tokens "
            f"and {len(wanted)} of what is wanted"
        )
    # Unsigned, so that a negative number cannot make up for one that is too large.
    total = int(np.add.reduce(extend_lens.view(np.uint32)))
    if not total == tokens == slots:
        raise ValueError(f"the step's rows have {total} new tokens, but it has {tokens} ids and {slots} slots for them")
