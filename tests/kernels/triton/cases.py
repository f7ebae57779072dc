"""Random cases for the Triton kernels, each compared with plain torch in float64.

A case is drawn from a numpy generator, and its result is an error in units of the bound that the kernel promises:
up to 1 is right. Used by the tests, in Triton's interpreter or on a GPU, and by ``make gpu-check``.

Bounds: float16 and bfloat16 round their results once, and attention its weights before they meet the values; float32
is off by the rounding of its sums. Products of 8-bit floating point are off by that of tensor cores' sums as well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from bough.kernels.structures import REPEATED
from bough.kernels.triton import attention, elementwise, gemm, grouped_gemm, quantized_gemm, sampling, sorted_rows
from bough.kernels.triton.available import SPLIT_KEYS
from bough.layers.attention.tiles import decode_pieces, extend_tiles

_ROUNDINGS = {torch.float16: 1.0, torch.bfloat16: 1.0, torch.float32: 8.0}
"""Bounds, in units of the type's precision times the largest number that is summed."""

Rng = np.random.Generator


def normal(
    rng: Rng, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, scale: float = 1.0
) -> torch.Tensor:
    return torch.from_numpy(rng.standard_normal(shape) * scale).to(device, dtype)


def error(result: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype, size: float) -> float:
    """The largest difference, in units of the bound; infinite if anything is not finite."""
    difference = (result.double() - expected).abs().max().item() if result.numel() else 0.0
    bound = _ROUNDINGS[dtype] * torch.finfo(dtype).eps * size
    return difference / bound if np.isfinite(difference) else float("inf")


KV_SCALES = (0.5, 2.0)
"""What keys and values in 8-bit floating point are multiplied by here: division by them is exact everywhere."""


class Paged:
    """Sequences in a KV pool, their tokens at random slots among poison."""

    def __init__(
        self,
        rng: Rng,
        lens: list[int],
        *,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        stored_as: torch.dtype | None = None,
    ) -> None:
        total = sum(lens)
        slots = rng.permutation(np.arange(1, total + 8))[:total].astype(np.int32)
        self.req_slots = rng.permutation(len(lens) + 2)[: len(lens)].astype(np.int32)
        table = np.full((len(lens) + 2, max(lens) + 3), -(10**6), dtype=np.int32)
        pool = np.full((2, total + 8, kv_heads, head_dim), np.nan)
        self.slots, begin = [], 0
        for req_slot, length in zip(self.req_slots, lens, strict=True):
            own = slots[begin : begin + length]
            table[req_slot, :length] = own
            pool[:, own] = rng.standard_normal((2, length, kv_heads, head_dim))
            self.slots.append(torch.from_numpy(own.astype(np.int64)).to(device))
            begin += length
        pool[:, 0] = 0.0
        self.table = torch.from_numpy(table).to(device)
        self.keys, self.values = torch.from_numpy(pool).to(device, torch.float32).to(stored_as or dtype)
        self.lens = np.array(lens, dtype=np.int32)
        self.scales = None if stored_as is None else torch.tensor(KV_SCALES, device=device)

    def of(self, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values at some slots, as they are meant."""
        keys, values = self.keys.double()[at], self.values.double()[at]
        return (keys, values) if self.scales is None else (keys * KV_SCALES[0], values * KV_SCALES[1])


def _sinks(num_heads: int, device: torch.device) -> torch.Tensor:
    """Scores far below those of keys, like them, and far above."""
    return torch.linspace(-6.0, 9.0, num_heads, device=device)


def naive_attention(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    scale: float,
    window: int | None,
    cap: float,
    sinks: torch.Tensor | None,
) -> torch.Tensor:
    """``q`` ``[n, heads, dim]`` are the last tokens of ``keys`` ``[length, kv_heads, dim]``; ``[n, heads * dim]``."""
    group = q.shape[1] // keys.shape[1]
    keys, values = (x.double().repeat_interleave(group, dim=1) for x in (keys, values))
    scores = torch.einsum("nhd,lhd->hnl", q.double(), keys) * scale
    if cap:
        scores = cap * torch.tanh(scores / cap)
    behind = (
        torch.arange(len(q), device=q.device)[:, None] + len(keys) - len(q) - torch.arange(len(keys), device=q.device)
    )
    hidden = behind < 0 if window is None else (behind < 0) | (behind >= window)
    scores = scores.masked_fill(hidden, float("-inf"))
    if sinks is not None:
        scores = torch.cat((scores, sinks.double()[:, None, None].expand(-1, len(q), 1)), -1)
    weights = scores.softmax(-1)[..., : len(keys)]
    return torch.einsum("hnl,lhd->nhd", weights, values).flatten(1)


def decode(
    rng: Rng,
    dtype: torch.dtype,
    device: torch.device,
    *,
    lens: list[int],
    kv_heads: int = 2,
    group: int = 2,
    head_dim: int = 64,
    window: int | None = None,
    cap: float = 0.0,
    sinks: bool = False,
    num_programs: int = 3,
    stored_as: torch.dtype | None = None,
) -> float:
    """Decode attention over sequences of ``lens`` tokens; a length of 0 is a row of padding."""
    real = [length for length in lens if length]
    paged = Paged(rng, real, kv_heads=kv_heads, head_dim=head_dim, dtype=dtype, device=device, stored_as=stored_as)
    seq_lens = np.array(lens, dtype=np.int32)
    req_slots = np.zeros(len(lens), dtype=np.int64)
    req_slots[seq_lens > 0] = paged.req_slots
    plan = decode_pieces(seq_lens, window, SPLIT_KEYS)
    heads = group * kv_heads
    q = normal(rng, (len(lens), heads, head_dim), dtype, device)
    on_device = [torch.from_numpy(x).to(device) for x in (plan.pieces, plan.num_pieces, plan.first_piece, req_slots)]
    pieces, num_pieces, first_piece, slots = on_device
    of_heads = _sinks(heads, device) if sinks else None
    out = attention.decode_attention(
        q,
        paged.keys,
        paged.values,
        paged.table,
        req_slots=slots,
        seq_lens=torch.from_numpy(seq_lens).to(device),
        pieces=pieces,
        num_pieces=num_pieces,
        first_piece=first_piece,
        scratch=attention.DecodeScratch.empty(len(plan.pieces), heads, head_dim, device),
        num_programs=num_programs,
        scale=head_dim**-0.5,
        window=window,
        cap=cap,
        kv_scales=paged.scales,
        sinks=of_heads,
    )
    expected, own = torch.zeros(out.shape, dtype=torch.float64, device=device), iter(paged.slots)
    for row in np.flatnonzero(seq_lens):
        at = next(own)
        keys, values = paged.of(at)
        queries = q[row : row + 1]
        one = naive_attention(queries, keys, values, scale=head_dim**-0.5, window=window, cap=cap, sinks=of_heads)
        expected[row] = one[0]
    return error(out, expected, dtype, 4.0)


def extend(
    rng: Rng,
    dtype: torch.dtype,
    device: torch.device,
    *,
    prefix_lens: list[int],
    extend_lens: list[int],
    kv_heads: int = 2,
    group: int = 2,
    head_dim: int = 64,
    window: int | None = None,
    cap: float = 0.0,
    sinks: bool = False,
    stored_as: torch.dtype | None = None,
    tile_queries: int | None = None,
) -> float:
    """Attention of prompts, or pieces of them, over what is cached and themselves."""
    lens = [p + e for p, e in zip(prefix_lens, extend_lens, strict=True)]
    paged = Paged(rng, lens, kv_heads=kv_heads, head_dim=head_dim, dtype=dtype, device=device, stored_as=stored_as)
    size = tile_queries or attention.extend_blocks(head_dim, dtype).queries
    prefix, new = np.array(prefix_lens, dtype=np.int32), np.array(extend_lens, dtype=np.int32)
    tiles = torch.from_numpy(extend_tiles(paged.req_slots, prefix, new, size)).to(device)
    q = normal(rng, (sum(extend_lens), group * kv_heads, head_dim), dtype, device)
    of_heads = _sinks(group * kv_heads, device) if sinks else None
    out = attention.extend_attention(
        q,
        paged.keys,
        paged.values,
        paged.table,
        tiles,
        tile_queries=tile_queries,
        scale=head_dim**-0.5,
        window=window,
        cap=cap,
        kv_scales=paged.scales,
        sinks=of_heads,
    )
    expected = [
        naive_attention(part, *paged.of(at), scale=head_dim**-0.5, window=window, cap=cap, sinks=of_heads)
        for part, at in zip(q.split(extend_lens), paged.slots, strict=True)
    ]
    return error(out, torch.cat(expected), dtype, 4.0)


def rms_norm(rng: Rng, dtype: torch.dtype, device: torch.device, *, rows: int, width: int, delta: bool) -> float:
    """The norm, and the stream that it leaves behind."""
    x, weight = normal(rng, (rows, width), dtype, device), normal(rng, (width,), dtype, device)
    added = normal(rng, (rows, width), dtype, device) if delta else None
    stream = x + added if added is not None else x.clone()
    out = elementwise.rms_norm(x, weight, 1e-6, added)
    expected = functional.rms_norm(stream.double(), (width,), weight.double(), 1e-6)
    return max(error(out, expected, dtype, expected.abs().max().item() + 1), error(x, stream.double(), dtype, 1e-9))


def rotate_and_store(
    rng: Rng,
    dtype: torch.dtype,
    device: torch.device,
    *,
    tokens: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    norm: bool,
) -> float:
    """Queries, and what is in the pool afterwards; the last token is padding."""
    x = normal(rng, (tokens, heads + 2 * kv_heads, head_dim), dtype, device)
    angles = rng.uniform(-3, 3, (tokens, head_dim // 2))
    cos = torch.from_numpy(np.concatenate((np.cos(angles),) * 2, 1)).to(device, dtype)[:, None]
    sin = torch.from_numpy(np.concatenate((-np.sin(angles), np.sin(angles)), 1)).to(device, dtype)[:, None]
    slots = rng.permutation(np.arange(1, tokens + 5))[:tokens].astype(np.int64)
    slots[-1] = -1
    pool = torch.zeros(2, tokens + 5, kv_heads, head_dim, dtype=dtype, device=device)
    weights = [normal(rng, (head_dim,), dtype, device) for _ in range(2)] if norm else [None, None]
    q = elementwise.rotate_and_store(
        x,
        (cos, sin),
        torch.from_numpy(slots).to(device),
        pool[0],
        pool[1],
        q_norm=weights[0],
        k_norm=weights[1],
        eps=1e-6,
    )

    def turned(part: torch.Tensor, weight: torch.Tensor | None) -> torch.Tensor:
        part = part.double()
        if weight is not None:
            part = functional.rms_norm(part, (head_dim,), weight.double(), 1e-6)
        return part.roll(head_dim // 2, -1) * sin.double() + part * cos.double()

    expected = torch.zeros_like(pool, dtype=torch.float64)
    at = torch.from_numpy(slots[:-1]).to(device)
    expected[0, at] = turned(x[:, heads : heads + kv_heads], weights[1])[:-1]
    expected[1, at] = x[:-1, heads + kv_heads :].double()
    wanted_q = turned(x[:, :heads], weights[0])
    largest = wanted_q.abs().max().item() + expected.abs().max().item() + 1
    return max(error(q, wanted_q, dtype, largest), error(pool, expected, dtype, largest))


def store(rng: Rng, dtype: torch.dtype, device: torch.device, *, tokens: int, kv_heads: int, head_dim: int) -> float:
    """Keys and values that are stored as they are."""
    x = normal(rng, (tokens, 3 * kv_heads, head_dim), dtype, device)
    k, v = x[:, kv_heads : 2 * kv_heads], x[:, 2 * kv_heads :]
    slots = torch.from_numpy(rng.permutation(tokens + 2)[:tokens]).to(device)
    pool = torch.zeros(2, tokens + 2, kv_heads, head_dim, dtype=dtype, device=device)
    elementwise.store_tokens(k, v, slots, pool[0], pool[1])
    return error(torch.stack((pool[0, slots], pool[1, slots])), torch.stack((k, v)).double(), dtype, 1e-9)


def store_float8(
    rng: Rng, dtype: torch.dtype, device: torch.device, *, tokens: int, head_dim: int, stored_as: torch.dtype
) -> float:
    """Keys and values that are stored in 8 bits, with and without rotation: codes that are not the nearest ones."""
    x = normal(rng, (tokens, 3, head_dim), dtype, device, 100.0)
    x[0, 1, 0] = 30000.0  # more than there is room for in e4m3
    slots = torch.from_numpy(rng.permutation(tokens + 2)[:tokens]).to(device)
    scales = torch.tensor(KV_SCALES, device=device)
    pools = torch.zeros(4, tokens + 2, 1, head_dim, dtype=torch.float32, device=device).to(stored_as)
    elementwise.store_tokens(x[:, 1:2], x[:, 2:], slots, pools[0], pools[1], kv_scales=scales)
    # Turned by nothing.
    cos = torch.ones(tokens, 1, head_dim, dtype=dtype, device=device)
    sin = torch.zeros_like(cos)
    elementwise.rotate_and_store(x, (cos, sin), slots, pools[2], pools[3], kv_scales=scales)
    most = torch.finfo(stored_as).max
    wrong = 0.0
    for index, part in enumerate((x[:, 1:2], x[:, 2:], x[:, 1:2], x[:, 2:])):
        expected = (part.float() / KV_SCALES[index % 2]).clamp(-most, most).to(stored_as).view(torch.uint8)
        wrong += float((pools[index].view(torch.uint8)[slots] != expected).sum())
    return wrong


_GATES: dict[elementwise.Gate, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": functional.silu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "clamped_swish": lambda x: x.clamp(max=7) * torch.sigmoid(1.702 * x.clamp(max=7)),
}


def gate_and_mul(
    rng: Rng, dtype: torch.dtype, device: torch.device, *, rows: int, width: int, gate: elementwise.Gate
) -> float:
    x = normal(rng, (rows, 2 * width), dtype, device, 3.0)
    values = x[:, width:].double()
    values = values.clamp(-7, 7) + 1 if gate == "clamped_swish" else values
    expected = _GATES[gate](x[:, :width].double()) * values
    return error(elementwise.gate_and_mul(x, gate), expected, dtype, expected.abs().max().item() + 1)


def gather_rows(rng: Rng, dtype: torch.dtype, device: torch.device, *, rows: int, width: int, vocab_size: int) -> float:
    table = normal(rng, (vocab_size, width), dtype, device)
    ids = torch.from_numpy(rng.integers(0, vocab_size, rows)).to(device)
    return error(elementwise.gather_rows(table, ids), table[ids].double(), dtype, 1e-9)


def linear(
    rng: Rng, dtype: torch.dtype, device: torch.device, *, rows: int, inputs: int, outputs: int, bias: bool
) -> float:
    """The product, and that its first row does not change when it is alone."""
    x, weight = normal(rng, (rows, inputs), dtype, device), normal(rng, (outputs, inputs), dtype, device, inputs**-0.5)
    b = normal(rng, (outputs,), dtype, device) if bias else None
    out = gemm.linear(x, weight, b)
    if not torch.equal(gemm.linear(x[:1], weight, b), out[:1]):
        return float("inf")
    expected = functional.linear(x.double(), weight.double(), None if b is None else b.double())
    # A GPU may sum all products of float32 one after the other, each with a rounding of its own.
    chain = max(inputs**0.5 / 16, 1.0) if dtype == torch.float32 else 1.0
    return error(out, expected, dtype, chain * (expected.abs().max().item() + 1))


def grouped(
    rng: Rng,
    dtype: torch.dtype,
    device: torch.device,
    *,
    tokens: int,
    experts: int,
    per_token: int,
    inputs: int,
    outputs: int,
    bias: bool,
    one_tile: bool = False,
) -> float:
    """A product of each token with the matrices of its experts, and the weighted sum of what comes of it."""
    x = normal(rng, (tokens, inputs), dtype, device)
    weight = normal(rng, (experts, outputs, inputs), dtype, device, inputs**-0.5)
    b = normal(rng, (experts, outputs), dtype, device) if bias else None
    numbers = np.stack([np.sort(rng.permutation(experts)[:per_token]) for _ in range(tokens)])
    chosen = torch.from_numpy(numbers.astype(np.int64)).to(device)
    rows = sorted_rows.SortedRows.of(chosen, 0, experts, dtype, one_tile=one_tile)
    places = torch.empty(tokens * per_token, outputs, dtype=dtype, device=device)
    grouped_gemm.grouped_linear(x, weight, b, rows, from_tokens=True, out=places)
    products = torch.einsum("ti,tpoi->tpo", x.double(), weight.double()[chosen])
    if b is not None:
        products = products + b.double()[chosen]
    size = products.abs().max().item() + 1
    chain = max(inputs**0.5 / 16, 1.0) if dtype == torch.float32 else 1.0
    off = error(places, products.flatten(0, 1)[rows.order], dtype, chain * size)
    weights = torch.from_numpy(rng.uniform(0.0, 1.0, (tokens, per_token))).float().to(device)
    copies = normal(rng, (tokens * per_token, outputs), dtype, device)
    sums = grouped_gemm.sum_copies(copies, weights, torch.float32)
    expected = (copies.view(tokens, per_token, outputs).double() * weights.double()[..., None]).sum(1)
    return max(off, error(sums, expected, torch.float32, per_token * (expected.abs().max().item() + 1)))


def _spread(scales: torch.Tensor, span: int, inputs: int) -> torch.Tensor:
    """``[groups, outputs]`` to float64 ``[outputs, inputs]``."""
    return scales.double().T[:, torch.arange(inputs, device=scales.device) // span]


def integer_linear(
    rng: Rng,
    dtype: torch.dtype,
    device: torch.device,
    *,
    rows: int,
    inputs: int,
    outputs: int,
    bits: int,
    span: int,
    offsets: bool = False,
    bias: bool = False,
) -> float:
    """The product with whole numbers, and that its first row does not change beside a few others."""
    x = normal(rng, (rows, inputs), dtype, device)
    groups = -(-inputs // span)
    whole = torch.from_numpy(rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (outputs, inputs)))
    scales = torch.from_numpy(rng.uniform(0.5, 1.5, (groups, outputs)) / (2**bits * inputs**0.5)).float().to(device)
    shifts = normal(rng, (groups, outputs), torch.float32, device, inputs**-0.5) if offsets else None
    b = normal(rng, (outputs,), dtype, device) if bias else None
    codes = whole.to(device, torch.int8)
    if bits == 4:
        padded = functional.pad(codes + 8, (0, groups * span - inputs)).to(torch.uint8).view(outputs, groups, 2, -1)
        codes = (padded[:, :, 0] | padded[:, :, 1] << 4).flatten(1)
    options = {"span": span, "offsets": shifts, "bias": b}
    out = quantized_gemm.integer_linear(x, codes, scales, **options)
    beside = min(rows, quantized_gemm.FEW_ROWS)
    if not torch.equal(
        quantized_gemm.integer_linear(x[:1], codes, scales, **options)[0],
        quantized_gemm.integer_linear(x[:beside], codes, scales, **options)[0],
    ):
        return float("inf")
    weight = whole.to(device).double() * _spread(scales, span, inputs)
    if shifts is not None:
        weight += _spread(shifts, span, inputs)
    expected = functional.linear(x.double(), weight, None if b is None else b.double())
    return error(out, expected, dtype, expected.abs().max().item() + 1)


def float8_linear(
    rng: Rng,
    dtype: torch.dtype,
    device: torch.device,
    *,
    rows: int,
    inputs: int,
    outputs: int,
    span: int | None,
    bias: bool = False,
) -> float:
    """The product of what inputs become in 8 bits, and how far that is from them: half a step of 3 bits at most."""
    x = normal(rng, (rows, inputs), dtype, device, 2.0)
    x[0] = 0.0
    width = span or inputs
    scales = torch.from_numpy(rng.uniform(0.5, 1.5, (-(-inputs // width), outputs)) * inputs**-0.5).float().to(device)
    codes = normal(rng, (outputs, inputs), torch.float32, device).to(torch.float8_e4m3fn)
    b = normal(rng, (outputs,), dtype, device) if bias else None
    out = quantized_gemm.float8_linear(x, codes, scales, span=span, bias=b)
    quantized, x_scales = quantized_gemm.quantize_rows(x, span)
    inner = quantized.double() * _spread(x_scales.T, width, inputs)
    # Below 2⁻⁶ of a scale steps are all alike.
    allowed = torch.maximum(x.double().abs(), 2.0**-6 * _spread(x_scales.T, width, inputs)) * (2.0**-4 * 1.001)
    if bool(((inner - x.double()).abs() > allowed).any()):
        return float("inf")
    weight = codes.double() * _spread(scales, width, inputs)
    expected = functional.linear(inner, weight, None if b is None else b.double())
    size = expected.abs().max().item() + 1
    if device.type == "cuda":
        # Hopper's tensor cores sum 8-bit products with about 14 bits: DeepSeek-V3 Technical Report, section 3.3.2.
        partial_sums = (inner.abs() @ weight.abs().T).max().item()
        size += 2.0**-13 * partial_sums / (_ROUNDINGS[dtype] * torch.finfo(dtype).eps)
    return error(out, expected, dtype, size)


def _expected_token(logits: np.ndarray, draw: np.ndarray, nudge: tuple[float, float]) -> int:
    """What :mod:`bough.layers.sampler` defines, by sorting; the uniform number and top-p are nudged."""
    random, uniform, inverse_temperature, top_p, top_k, log_min_p = draw
    order = np.argsort(-logits, kind="stable")
    if not random:
        return int(order[0])
    scaled = (torch.from_numpy(logits) - float(logits[order[0]])) * float(inverse_temperature)
    weights = (scaled.exp() * 2.0**40).to(torch.int64).numpy()[order]
    before = np.cumsum(weights) - weights
    limit = min((top_p + nudge[1]) * float(weights.sum()), 2.0**62)
    kept = (np.arange(len(order)) < top_k) & (before < limit) & (scaled.numpy()[order] >= np.float32(log_min_p))
    kept[0] = True
    by_id = np.zeros_like(weights)
    by_id[order] = weights * kept
    cumulative = by_id.cumsum()
    uniform = min(max(uniform + nudge[0], 0.0), 1.0 - 2.0**-40)
    return int(np.searchsorted(cumulative, int(uniform * float(cumulative[-1])), side="right"))


_SHIFTS = (0.0, -(2.0**-20), 2.0**-20, -(2.0**-18), 2.0**-18)
_NUDGES = [(u, p) for u in _SHIFTS for p in _SHIFTS]


def draws(rng: Rng, rows: int, vocab_size: int) -> np.ndarray:
    """float64 [rows, 6]: parameters of all kinds of rows."""
    columns = [
        rng.random(rows) < 0.9,
        np.floor(rng.random(rows) * 2.0**40) * 2.0**-40,
        1.0 / rng.choice([0.05, 0.7, 1.0, 1.3, 20.0], rows).astype(np.float32),
        rng.choice([np.inf, 1e-9, 0.3, 0.9, 0.999], rows),
        rng.choice([np.inf, 1, 2, 40, vocab_size - 1], rows),
        rng.choice([-np.inf, np.log(0.05), 0.0], rows).astype(np.float32),
    ]
    return np.stack(columns, axis=1).astype(np.float64)


def choose(rng: Rng, device: torch.device, *, rows: int, vocab_size: int, spread: float, levels: int = 0) -> float:
    """Tokens of random rows; logits of few ``levels`` tie. The share of tokens that no rounding explains."""
    logits = rng.standard_normal((rows, vocab_size)) * spread
    if levels:
        logits = np.round(logits * levels / max(spread, 1.0)) / levels
    logits[rng.random((rows, vocab_size)) < 0.1] = -np.inf
    logits[:, rng.integers(vocab_size)] = 1.0
    logits = logits.astype(np.float32)
    params = draws(rng, rows, vocab_size)
    tokens, finite = sampling.choose_tokens(torch.from_numpy(logits).to(device), torch.from_numpy(params).to(device))
    wrong = 0
    for row, token in enumerate(tokens.tolist()):
        wrong += all(_expected_token(logits[row], params[row], nudge) != token for nudge in _NUDGES)
    greedy, _ = sampling.choose_tokens(torch.from_numpy(logits).to(device), None)
    wrong += int((greedy.cpu().numpy() != logits.argmax(-1)).sum())
    return float(wrong) if bool(finite.all()) else float("inf")


def log_totals(rng: Rng, device: torch.device, *, vocab_size: int) -> float:
    """Logarithms of total weights; a row has one finite logit, the last none, whose total is no number."""
    logits = torch.from_numpy(rng.standard_normal((5, vocab_size)) * 4).float()
    logits[2, ::2] = float("-inf")
    logits[3:] = float("-inf")
    logits[3, rng.integers(vocab_size)] = 7.0
    if vocab_size == 1:
        logits[2] = 0.0
    largest = logits.amax(-1, keepdim=True)
    out = sampling.log_total_weights(logits.to(device), largest.to(device)).cpu()
    expected = (logits.double() - largest).exp().sum(-1, keepdim=True).log()
    if not bool(out[-1].isnan()):
        return float("inf")
    return error(out[:-1], expected[:-1], torch.float32, float(expected[:-1].max()) + 1)


def edits(rng: Rng, device: torch.device, *, rows: int, vocab_size: int) -> float:
    """Penalties and masks, on some rows."""
    logits = torch.from_numpy(rng.standard_normal((rows, vocab_size)).astype(np.float32))
    counts = torch.from_numpy(np.maximum(rng.integers(-20, 4, (rows + 1, vocab_size)), 0).astype(np.int32))
    at, table_rows = rng.permutation(rows)[: (rows + 1) // 2], rng.permutation(rows + 1)[: (rows + 1) // 2]
    counts += REPEATED * torch.from_numpy(np.maximum(rng.integers(-5, 4, counts.shape), 0).astype(np.int32))
    scope = rng.integers(0, 2, len(at))
    counts[torch.from_numpy(table_rows[scope == 0])] %= REPEATED
    strengths = np.stack([*rng.uniform(-2, 2, (2, len(at))), rng.uniform(0.5, 2, len(at)), scope])
    bits = rng.integers(-(2**31), 2**31, (len(at), -(-vocab_size // 32))).astype(np.int32)
    expected = logits.double()
    frequency, presence, repetition, scoped = torch.from_numpy(strengths).float().double()[:, :, None]
    produced, times = (f(counts[torch.from_numpy(table_rows)], REPEATED) for f in (torch.remainder, torch.floor_divide))
    cost = torch.where(produced > 0, frequency * produced + presence, 0.0)
    reduced = torch.where(scoped > 0, expected[at], expected[at] - cost)
    changed = torch.where(reduced > 0, reduced / repetition, reduced * repetition)
    reduced = torch.where(torch.where(scoped > 0, times, produced) > 0, changed, reduced)
    reduced = torch.where(scoped > 0, reduced - cost, reduced)
    allowed = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :vocab_size] > 0
    out = logits.to(device)
    rows_at = torch.from_numpy(at).to(device)
    on_device = (torch.from_numpy(x).to(device) for x in (table_rows, strengths.astype(np.float32)))
    sampling.penalise(out, rows_at, *on_device, counts.to(device))
    expected[at] = reduced
    worst = error(out.cpu(), expected, torch.float32, 8.0)
    sampling.mask_tokens(out, rows_at, torch.from_numpy(bits).to(device))
    hidden = torch.zeros(rows, vocab_size, dtype=torch.bool)
    hidden[at] = torch.from_numpy(~allowed)
    out = out.cpu()
    if not bool((out[hidden] == float("-inf")).all()):
        return float("inf")
    return max(worst, error(out[~hidden], expected[~hidden], torch.float32, 8.0))
