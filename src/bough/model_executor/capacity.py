"""How much fits: the size of the KV pool and the number of requests, as pure functions of what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.kernels.triton.available import SPLIT_KEYS
from bough.model_executor.machine import gib

MAX_RUNNING_REQUESTS = 256
"""Default upper bound of concurrent requests."""

MIN_RUNNING_REQUESTS = 8
"""Default lower bound, however slow the machine."""

_CPU_STEP_SECONDS = 0.15
"""A decode step of all running requests should not take longer than this on a CPU."""

_CPU_FLOPS_PER_THREAD = {"float32": 50e9, "bfloat16": 200e9, "float16": 200e9}
"""What a core sustains in matrix products of a few dozen rows; the order of magnitude is what matters."""

_ONE_THREAD_PARAMETERS = 16_000_000
"""Up to this size, embeddings aside, a model runs on one thread by default."""

_TOKENS_PER_REQUEST = 128
"""By default there are no more requests than the pool can give this many tokens each."""

DEFAULT_MAX_GRAPH_ROWS = 256
"""Most rows of a recorded decode step on CUDA unless the user says."""

DEFAULT_MAX_GRAPH_TOKENS = 1024
"""Most tokens of a recorded forward pass of prompts unless the user says: more keep a GPU busy for longer than it takes
to launch their kernels."""

_FRACTION = {"cpu": 0.4, "cuda": 0.9}
"""Default share of what is left that the KV pool takes. On a CPU the rest is for whatever else the machine is for."""

_SCRATCH_BYTES = 128 << 20

_BYTES_PER_RECORD = 8 << 20
"""What a driver may take for a recorded step of a few hundred kernels; what it did take is seen afterwards."""

_MIN_POOL_TOKENS = 1024
_MIN_CPU_POOL_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """Bytes on the device, after the weights are there."""

    available: int
    weights: int
    """Taken by the weights already."""
    forward: int
    """To be kept for computing, however many requests run: the largest step, recorded steps and scratch memory."""
    per_request: int
    """Memory of one running request beside its tokens: its row of the request table."""
    per_token: int
    """KV of one token."""


def default_threads(config: ModelConfig, cores: int) -> int:
    """Threads that compute on a CPU unless the user says: all cores, but one for a very small model.

    There the threads meet every few microseconds. A second one gains a sixth of a step of 0.5 ms while both have a core
    to themselves, and makes it several times longer when the server's other processes want one of the cores.
    """
    return 1 if config.block_parameters() < _ONE_THREAD_PARAMETERS else cores


def default_max_running_requests(device: str, threads: int, dtype: str, flops_per_token: int) -> int:
    """Number of requests that run at a time unless the user says.

    On a CPU as many as one decode step computes within 150 ms, between 8 and 256; elsewhere 256.
    """
    if device != "cpu":
        return MAX_RUNNING_REQUESTS
    flops = _CPU_STEP_SECONDS * threads * _CPU_FLOPS_PER_THREAD[dtype]
    fitting = int(flops / flops_per_token)
    return min(max(fitting, MIN_RUNNING_REQUESTS), MAX_RUNNING_REQUESTS)


def fit_pool(
    config: ModelConfig,
    device: str,
    budget: MemoryBudget,
    *,
    page_size: int,
    max_running_requests: int,
    mem_fraction_static: float | None,
    max_total_tokens: int | None,
) -> int:
    """Tokens of the KV pool, a multiple of the page size.

    With nothing set: a share of what is left (40 % on a CPU, 90 % elsewhere), no more than all running requests can
    fill, and on a CPU no more than twice the weights or 256 MiB, whichever is more.

    Raises:
        StartupError: if too little is left, with the numbers.
    """
    computing = budget.forward + max_running_requests * budget.per_request
    left = budget.available - computing
    fraction = mem_fraction_static if mem_fraction_static is not None else _FRACTION[device]
    allowed = int(left * fraction)
    if max_total_tokens is not None:
        tokens = max_total_tokens
        # A size in tokens is a wish for exactly that: only what is physically there limits it.
        allowed = max(allowed, int(left * max(fraction, _FRACTION["cuda"])))
        if tokens * budget.per_token > allowed:
            raise StartupError(
                f"--max-total-tokens {max_total_tokens} needs {gib(tokens * budget.per_token)}, but only "
                f"{gib(max(allowed, 0))} can be used: {gib(budget.available)} are available next to weights of "
                f"{gib(budget.weights)}, and computing takes {gib(computing)}; lower it or free memory"
            )
    else:
        if mem_fraction_static is None:
            allowed = min(allowed, max_running_requests * round_up(config.context_len, page_size) * budget.per_token)
            if device == "cpu":
                allowed = min(allowed, max(2 * budget.weights, _MIN_CPU_POOL_BYTES))
        tokens = max(allowed, 0) // budget.per_token
    tokens = tokens // page_size * page_size
    wanted = (
        page_size if max_total_tokens is not None else round_up(min(config.context_len, _MIN_POOL_TOKENS), page_size)
    )
    if max_total_tokens is not None and max_total_tokens < page_size:
        raise StartupError(
            f"--max-total-tokens {max_total_tokens} is less than one page of the KV cache, {page_size} tokens; "
            f"raise it or lower --page-size",
            param="max_total_tokens",
        )
    if tokens < wanted:
        raise StartupError(
            f"not enough memory for the KV cache: {gib(budget.available)} are available next to weights of "
            f"{gib(budget.weights)}, computing takes {gib(computing)}, and a share of {fraction:g} of the rest "
            f"holds {max(tokens, 0)} tokens of {budget.per_token} bytes where at least {wanted} are needed; free "
            f"memory, raise --mem-fraction-static, or lower --max-prefill-tokens, --max-running-requests or "
            f"--context-length"
        )
    return tokens


def fewer_tokens(tokens: int, missing: int, per_token: int, page_size: int) -> int:
    """Tokens of a pool that leaves ``missing`` bytes more than one of ``tokens``.

    Raises:
        StartupError: if that would be less than a page.
    """
    fewer = (tokens - -(-missing // per_token)) // page_size * page_size
    if fewer < page_size:
        raise StartupError(
            f"not enough memory for the KV cache: {gib(missing)} more are needed beside {tokens} tokens of "
            f"{per_token} bytes; free memory, or lower --cuda-graph-max-bs, --cuda-graph-max-bs-prefill or "
            f"--max-running-requests"
        )
    return fewer


def fit_requests(wanted: int | None, default: int, pool_tokens: int, page_size: int) -> int:
    """Requests that may run at a time: at most one per page, and by default none that would get few tokens."""
    if wanted is None:
        return max(min(default, pool_tokens // _TOKENS_PER_REQUEST), 1)
    return min(wanted, pool_tokens // page_size)


def decode_pieces_room(config: ModelConfig, pool_tokens: int, max_running_requests: int) -> int:
    """Pieces of the keys of decode rows for which there is scratch memory on CUDA.

    Enough for whatever can run if no two rows share a prefix. Rows that do share one have more than the pool has tokens
    for: of these, as many as there are at most, or as 128 MiB hold. Models that generate nothing have no decode rows.
    """
    if not config.is_generation:
        return 0
    unshared = pool_tokens // SPLIT_KEYS + max_running_requests
    most = max_running_requests * -(-min(config.context_len, pool_tokens) // SPLIT_KEYS)
    return min(max(unshared, _SCRATCH_BYTES // _bytes_per_piece(config)), most)


def decode_scratch_bytes(config: ModelConfig, pool_tokens: int, max_running_requests: int) -> int:
    """Memory of partial results of decode attention on CUDA, in bytes."""
    return decode_pieces_room(config, pool_tokens, max_running_requests) * _bytes_per_piece(config)


def _bytes_per_piece(config: ModelConfig) -> int:
    return 4 * max(shape.num_heads * (shape.head_dim + 1) for shape in config.attention_shapes())


def decode_graph_bytes(config: ModelConfig, max_rows: int, num_sizes: int) -> int:
    """Bound on what recorded decode steps keep on CUDA: results, the memory in common, and the records."""
    results = max_rows * 4 * (config.vocab_size + config.hidden_size)
    return results + forward_bytes(config, 4, max_rows, max_rows) + num_sizes * _BYTES_PER_RECORD


def prompt_graph_bytes(config: ModelConfig, sizes: Sequence[int]) -> int:
    """The same of recorded forward passes of prompts, of so many tokens each."""
    if not sizes:
        return 0
    results = sizes[-1] * 4 * config.hidden_size
    return results + forward_bytes(config, 4, sizes[-1], 0) + len(sizes) * _BYTES_PER_RECORD


def forward_bytes(config: ModelConfig, itemsize: int, tokens: int, logit_rows: int) -> int:
    """Upper bound of what a step's activations take, in bytes: the widest moment of a block, and the logits."""
    return tokens * config.widest_activation() * itemsize + 3 * logit_rows * config.vocab_size * 4


def round_up(value: int, multiple: int) -> int:
    """Return the least multiple that is not below ``value``."""
    return -(-value // multiple) * multiple
