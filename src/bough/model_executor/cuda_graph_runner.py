"""Decode steps recorded as CUDA graphs, one for each of a ladder of batch sizes."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Protocol, TypeVar

import numpy as np
import torch

from bough.config.model_config import ModelConfig
from bough.kernels.triton.available import SPLIT_KEYS
from bough.kernels.triton.elementwise import enter_decode_rows
from bough.layers.attention.tiles import decode_pieces
from bough.layers.attention.triton import DecodeRows, DecodeTables, TritonBackend, TritonMetadata
from bough.layers.forward_batch import ForwardBatch
from bough.model_executor.staging import StagedArrays
from bough.models.base import CausalLM, torch_dtype
from bough.step_plan import FUTURE_TOKEN, IntArray, StepPlan

logger = logging.getLogger(__name__)

_Array = TypeVar("_Array")

_NUM_ROW_ARRAYS = 4

_SECONDS_BETWEEN_NEWS = 5.0

_WARM_UP_RUNS = 2
"""Before a record: the first compiles kernels and lets libraries choose theirs."""


class Recorded(Protocol):
    """A recorded step."""

    def replay(self) -> None:
        """Run it again on what its inputs hold now."""


class Recorder(Protocol):
    """Records the work that a function gives the device."""

    def record(self, step: Callable[[], None]) -> Recorded:
        """Run ``step``, which waits for nothing, and remember its work.

        What it allocates is shared by all records: one runs at a time. ``step`` itself is not kept: whoever calls this
        holds all that it reads and writes.
        """


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collect garbage now and none meanwhile: an older CUDA graph that is freed while one is captured breaks that."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@cache
def _recording_stream(device: torch.device) -> torch.cuda.Stream:
    """One for whatever is recorded: libraries keep memory for each stream that they were ever called on."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


class CudaRecorder(Recorder):
    """Records CUDA graphs that share one memory pool."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = _recording_stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, step: Callable[[], None]) -> Recorded:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            for _ in range(_WARM_UP_RUNS):
                step()
        self._stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            step()
        return graph


def record_ladder(
    recorder: Recorder, sizes: Sequence[int], step_of: Callable[[int], Callable[[], None]], what: str, of: str
) -> dict[int, Recorded]:
    """Record a step of each size, the largest first, so that the others find room in its memory.

    ``step_of`` makes what runs a step of a size; for the log, ``what`` is recorded, and sizes count ``of``.
    """
    begin = told = time.perf_counter()
    recorded: dict[int, Recorded] = {}
    with without_garbage_collection():
        for size in reversed(sizes):
            recorded[size] = recorder.record(step_of(size))
            if (now := time.perf_counter()) - told > _SECONDS_BETWEEN_NEWS:
                told = now
                logger.info("recorded %d of %d sizes of %s", len(recorded), len(sizes), what)
    seconds = time.perf_counter() - begin
    logger.info("%s of up to %d %s are recorded: %d sizes in %.1f s", what, sizes[-1], of, len(sizes), seconds)
    return recorded


class DecodeBuffers:
    """Inputs of a decode step, on the device.

    Rows that a step does not have are padding: no KV slot (-1), no keys, token 0.
    """

    def __init__(self, max_rows: int, max_pieces: int, windows: Sequence[int | None], device: torch.device) -> None:
        self.max_rows = max_rows
        self._windows = tuple(windows)
        # Of the last array only what is used is copied: it is by far the largest, unless layers differ in windows.
        sizes = [max_rows] * _NUM_ROW_ARRAYS + [1, max_rows + 1, 2 * max_pieces] * len(windows)
        self._arrays = StagedArrays(sizes, device)
        rows, tables = self._apart(self._arrays.on_device)
        self.req_slots, self.positions, self.out_slots, self.seq_lens = rows
        self.tables = {
            window: DecodeTables(pieces.view(-1, 2), num_pieces, first_piece)
            for window, (num_pieces, first_piece, pieces) in tables.items()
        }

    def _apart(self, arrays: Sequence[_Array]) -> tuple[Sequence[_Array], dict[int | None, Sequence[_Array]]]:
        """The arrays of rows, and those of each window: number of pieces, first pieces, pieces."""
        rows, rest = arrays[:_NUM_ROW_ARRAYS], arrays[_NUM_ROW_ARRAYS:]
        return rows, {window: rest[3 * index : 3 * index + 3] for index, window in enumerate(self._windows)}

    def fill(self, req_slots: IntArray, prefix_lens: IntArray, out_slots: IntArray) -> None:
        """Enter a step's rows, each ``[R]``.

        Raises:
            ValueError: if there is no room for their pieces; nothing is entered.
        """
        num_rows = len(req_slots)
        seq_lens = np.zeros(self.max_rows, dtype=np.int32)
        seq_lens[:num_rows] = prefix_lens + 1
        rows, tables = self._apart(self._arrays.host_arrays())
        used = len(seq_lens)
        for target, values, padding in zip(rows, (req_slots, prefix_lens, out_slots), (0, 0, -1), strict=False):
            target[:num_rows] = values
            target[num_rows:] = padding
        rows[3][:] = seq_lens
        for window, (num_pieces, first_piece, pieces) in tables.items():
            plan = decode_pieces(seq_lens, window, SPLIT_KEYS)
            num_pieces[:] = plan.num_pieces
            first_piece[:] = plan.first_piece
            used = plan.pieces.size
            pieces[:used] = plan.pieces.reshape(-1)
        self._arrays.copy(used)


class CudaGraphRunner:
    """Runs steps that have decode rows only, padded to the next size of the ladder."""

    def __init__(
        self,
        model: CausalLM,
        backend: TritonBackend,
        recorder: Recorder,
        config: ModelConfig,
        *,
        sizes: Sequence[int],
        req_to_token: torch.Tensor,
        last_token: torch.Tensor,
    ) -> None:
        """Record the model for every size, the largest first, so that the others find room in its memory.

        Args:
            model: whose weights stay where they are.
            sizes: of batches, ascending.
            req_to_token: int32 ``[max_running_requests, max_len]``; steps enter their new tokens.
            last_token: int64 ``[max_running_requests]``, the tokens of decode rows.
        """
        device = req_to_token.device
        self._model, self._backend = model, backend
        self._sizes = tuple(sizes)
        self._req_to_token, self._last_token = req_to_token, last_token
        # The kernel of prompts, where it serves decode rows as well, knows no pieces.
        windows = () if backend.one_kernel else backend.windows
        self._buffers = DecodeBuffers(self._sizes[-1], backend.max_pieces, windows, device)
        self._hidden_states = torch.empty(self._sizes[-1], config.hidden_size, dtype=torch_dtype(config), device=device)
        self._logits = torch.empty(self._sizes[-1], config.vocab_size, device=device)
        self._input_ids = torch.zeros(self._sizes[-1], dtype=torch.int64, device=device)
        self._tiles: torch.Tensor | None = None
        if backend.one_kernel:
            # A query each.
            self._tiles = torch.ones(self._sizes[-1], 4, dtype=torch.int32, device=device)
            self._tiles[:, 1] = torch.arange(self._sizes[-1])
        nothing = np.empty(0, dtype=np.int32)
        self._buffers.fill(nothing, nothing, nothing)
        self._recorded = record_ladder(recorder, self._sizes, self._step, "decode steps", "rows")

    def _step(self, size: int) -> Callable[[], None]:
        buffers, table = self._buffers, self._req_to_token
        req_slots, positions = buffers.req_slots[:size], buffers.positions[:size]
        input_ids, out_slots = self._input_ids[:size], buffers.out_slots[:size]
        seq_lens = buffers.seq_lens[:size]
        tables = {
            window: DecodeTables(each.pieces, each.num_pieces, each.first_piece[: size + 1])
            for window, each in buffers.tables.items()
        }
        tiles = self._tiles[:size] if self._tiles is not None else None
        batch = ForwardBatch(
            num_tokens=size,
            num_decode_rows=size,
            input_ids=input_ids,
            positions=positions,
            out_cache_loc=out_slots,
            attn_backend=self._backend,
            attn_metadata=TritonMetadata(table, (DecodeRows(slice(size), req_slots, seq_lens, tables),), tiles),
        )
        hidden_out, logits_out = self._hidden_states[:size], self._logits[:size]

        def run() -> None:
            enter_decode_rows(req_slots, positions, out_slots, self._last_token, table, input_ids)
            if tiles is not None:
                # The query of padding is behind no key, which makes zeros of it.
                tiles[:, 0] = req_slots
                torch.sub(seq_lens, 1, out=tiles[:, 3])
            hidden_states = self._model(batch)
            hidden_out.copy_(hidden_states)
            self._model.compute_logits(hidden_states, logits_out)

        return run

    def can_run(self, plan: StepPlan) -> bool:
        """True if all rows add a token that was sampled, and there are not too many of them, or of their keys."""
        num_rows = plan.num_rows
        if not 0 < num_rows == plan.num_decode_rows <= self._sizes[-1] or plan.token_types is not None:
            return False
        if not bool((plan.input_ids == FUTURE_TOKEN).all()):
            return False
        return self._backend.one_kernel or int((plan.prefix_lens // SPLIT_KEYS + 1).sum()) <= self._backend.max_pieces

    def size_for(self, num_rows: int) -> int:
        """The size of the ladder that so many rows are padded to."""
        return self._sizes[int(np.searchsorted(self._sizes, num_rows))]

    def replay(self, plan: StepPlan) -> tuple[torch.Tensor, torch.Tensor]:
        """Run a step that :meth:`can_run` accepts.

        Mutates the KV pool at ``plan.out_slots`` and enters these into the request table. Returns hidden states
        ``[R, hidden_size]`` and logits, float32 ``[R, vocab_size]``, valid until the next call.
        """
        self._buffers.fill(plan.req_slots, plan.prefix_lens, plan.out_slots)
        num_rows = plan.num_rows
        self._recorded[self.size_for(num_rows)].replay()
        return self._hidden_states[:num_rows], self._logits[:num_rows]
