"""Forward passes of prompts recorded as CUDA graphs, one for each of a ladder of numbers of tokens.

A model of some hundred kernels takes the host longer to launch than a GPU to run, unless there are many tokens: short
prompts, and the pieces of prompts beside decode rows, would wait for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from bough.config.model_config import ModelConfig
from bough.kernels.triton.elementwise import enter_tokens
from bough.layers.attention.tiles import extend_tiles
from bough.layers.attention.triton import TritonBackend, TritonMetadata
from bough.layers.forward_batch import ForwardBatch, token_positions
from bough.model_executor.cuda_graph_runner import Recorder, record_ladder
from bough.model_executor.staging import StagedArrays
from bough.models.base import CausalLM, torch_dtype
from bough.step_plan import FUTURE_TOKEN, IntArray, StepPlan

_MORE_TILES = 32
"""Tiles of queries beyond those that the tokens would fill: a row's last tile need not be full."""


class PromptGraphRunner:
    """Runs the forward pass of rows that have prompt tokens only, padded to the next size of the ladder.

    Padding are tokens of no row, whose states are arbitrary and which leave nothing in the KV pool, and tiles of no
    queries.
    """

    def __init__(
        self,
        model: CausalLM,
        backend: TritonBackend,
        recorder: Recorder,
        config: ModelConfig,
        *,
        sizes: Sequence[int],
        req_to_token: torch.Tensor,
    ) -> None:
        """Record the model for every size, the largest first, so that the others find room in its memory.

        Args:
            model: whose weights stay where they are.
            sizes: numbers of tokens, ascending.
            req_to_token: int32 ``[max_running_requests, max_len]``; passes enter their tokens.
        """
        device, largest = req_to_token.device, sizes[-1]
        self._model, self._backend, self._req_to_token = model, backend, req_to_token
        self._sizes = tuple(sizes)
        self._arrays = StagedArrays([largest] * 4 + [4 * self._num_tiles(largest)], device)
        self._hidden_states = torch.empty(largest, config.hidden_size, dtype=torch_dtype(config), device=device)
        nothing = np.empty(0, dtype=np.int32)
        self._fill(nothing, nothing, nothing, nothing, nothing)
        self._recorded = record_ladder(recorder, self._sizes, self._pass, "prompts", "tokens")

    def _num_tiles(self, size: int) -> int:
        return -(-size // self._backend.tile_queries) + min(size, _MORE_TILES)

    def _pass(self, size: int) -> Callable[[], None]:
        table = self._req_to_token
        input_ids, req_slots, positions, out_slots = (each[:size] for each in self._arrays.on_device[:4])
        tiles = self._arrays.on_device[4].view(-1, 4)[: self._num_tiles(size)]
        # Of how many rows there are, and how long, only the tiles tell: models look at tokens.
        batch = ForwardBatch(
            num_tokens=size,
            num_decode_rows=0,
            input_ids=input_ids,
            positions=positions,
            out_cache_loc=out_slots,
            attn_backend=self._backend,
            attn_metadata=TritonMetadata(table, (), tiles),
        )
        hidden_out = self._hidden_states[:size]

        def run() -> None:
            enter_tokens(req_slots, positions, out_slots, table)
            hidden_out.copy_(self._model(batch))

        return run

    def _fill(
        self, input_ids: IntArray, req_slots: IntArray, positions: IntArray, out_slots: IntArray, tiles: IntArray
    ) -> None:
        arrays = self._arrays.host_arrays()
        entered = (input_ids, req_slots, positions, out_slots, tiles.reshape(-1))
        for target, values, padding in zip(arrays, entered, (0, 0, 0, -1, 0), strict=True):
            target[: len(values)] = values
            target[len(values) :] = padding
        self._arrays.copy(len(arrays[-1]))

    def can_run(self, plan: StepPlan) -> bool:
        """True if all rows have tokens that are known, not too many, and not in too many rows."""
        if plan.num_decode_rows or plan.token_types is not None or not 0 < plan.num_tokens <= self._sizes[-1]:
            return False
        num_tiles = int((-(-plan.extend_lens // self._backend.tile_queries)).sum())
        fits = num_tiles <= self._num_tiles(self._size_for(plan.num_tokens))
        return fits and not bool((plan.input_ids == FUTURE_TOKEN).any())

    def _size_for(self, num_tokens: int) -> int:
        return self._sizes[int(np.searchsorted(self._sizes, num_tokens))]

    def replay(self, plan: StepPlan) -> torch.Tensor:
        """Run a plan that :meth:`can_run` accepts, to hidden states ``[T, hidden_size]``, valid until the next call.

        Mutates the KV pool at ``plan.out_slots`` and enters these into the request table.
        """
        tiles = extend_tiles(plan.req_slots, plan.prefix_lens, plan.extend_lens, self._backend.tile_queries)
        req_slots = np.repeat(plan.req_slots, plan.extend_lens)
        self._fill(plan.input_ids, req_slots, token_positions(plan), plan.out_slots, tiles)
        self._recorded[self._size_for(plan.num_tokens)].replay()
        return self._hidden_states[: plan.num_tokens]
