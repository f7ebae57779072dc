"""The bundled model as it is trained: Qwen3 over documents of any length, one after the other without padding.

Everything but attention sees one long row of tokens; attention sees the documents in batches of similar length. The
parameters have the names that transformers gives them.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

WIDTHS = (32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024)
HEAD_BLOCK = 512
# Queries of a long document that are computed at once, so that none sees much of what comes after it.
QUERY_BLOCK = 128
# Batches of attention, as rows and width.
Groups = Sequence[tuple[int, int]]
EMBEDDING = "model.embed_tokens.weight"
# A compiled part that is called from Python holds the interpreter, for which the thread of the other part would wait.
COMPILED: dict[str, Any] = {"cpp_wrapper": True}
# Where a processor has no instructions for bfloat16, its products are a hundred times slower than those of float32.
PRODUCTS = torch.bfloat16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else torch.float32


@dataclass(frozen=True)
class Shape:
    """The shape of a model, in the words of its ``config.json``.

    Training takes the vocabulary's size from the tokenizer; what is here is that of the published model.
    """

    vocab_size: int = 5023
    hidden_size: int = 256
    intermediate_size: int = 768
    num_hidden_layers: int = 6
    num_attention_heads: int = 8
    num_key_value_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6

    def to_config(self) -> dict[str, Any]:
        """The arguments of transformers' configuration that describe the shape."""
        return {**asdict(self), "tie_word_embeddings": True}


# A quarter of the parameters of the published model, for speculative decoding.
DRAFT = Shape(hidden_size=192, intermediate_size=448, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1)


def compute_deterministically() -> None:
    """Let torch compute the same bits every time."""
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory only serves to find bugs.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def new_parameters(shape: Shape, seed: int) -> dict[str, Tensor]:
    """Random parameters. What adds to the residual stream begins at zero, so that depth costs no stability."""
    generator = torch.Generator().manual_seed(seed)
    queries, keys = shape.num_attention_heads * shape.head_dim, shape.num_key_value_heads * shape.head_dim
    hidden, inner = shape.hidden_size, shape.intermediate_size

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=generator) / math.sqrt(columns)

    parameters = {EMBEDDING: torch.randn(shape.vocab_size, hidden, generator=generator) * 0.02}
    for layer in range(shape.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        parameters |= {
            prefix + "input_layernorm.weight": torch.ones(hidden),
            prefix + "self_attn.q_proj.weight": matrix(queries, hidden),
            prefix + "self_attn.k_proj.weight": matrix(keys, hidden),
            prefix + "self_attn.v_proj.weight": matrix(keys, hidden),
            prefix + "self_attn.q_norm.weight": torch.ones(shape.head_dim),
            prefix + "self_attn.k_norm.weight": torch.ones(shape.head_dim),
            prefix + "self_attn.o_proj.weight": torch.zeros(hidden, queries),
            prefix + "post_attention_layernorm.weight": torch.ones(hidden),
            prefix + "mlp.gate_proj.weight": matrix(inner, hidden),
            prefix + "mlp.up_proj.weight": matrix(inner, hidden),
            prefix + "mlp.down_proj.weight": torch.zeros(hidden, inner),
        }
    return parameters | {"model.norm.weight": torch.ones(hidden)}


@dataclass(frozen=True)
class Batch:
    """Documents one after the other.

    Attributes:
        ids: ``[tokens]``
        positions: of each token in its document, ``[tokens]``
        places: for each place of the padded batches of attention, the token that is there, ``[padded]``
        returns: for each token its place in the padded batches, ``[tokens]``
        groups: the padded batches.
        scored: tokens after which the next is to be predicted, filled up to whole blocks, ``[scored]``
        wanted: what comes next, -100 where a block was filled up, ``[scored]``
        skills: the skill of each scored place, ``[scored]``
    """

    ids: Tensor
    positions: Tensor
    places: Tensor
    returns: Tensor
    groups: Groups
    scored: Tensor
    wanted: Tensor
    skills: Tensor


def pack(documents: Sequence[tuple[list[int], list[bool], int]], tokens: int) -> Batch:
    """Documents of ``tokens`` tokens in all; each has its ids, which of them are learned, and its skill."""
    ordered = sorted(documents, key=lambda document: len(document[0]))
    ids: list[int] = []
    positions: list[int] = []
    places: list[int] = []
    returns: list[int] = []
    scored: list[tuple[int, int, int]] = []
    rows: dict[int, int] = {}
    for document, learned, skill in ordered:
        length, begin = len(document), len(ids)
        width = WIDTHS[bisect.bisect_left(WIDTHS, length)]
        rows[width] = rows.get(width, 0) + 1
        ids += document
        positions += range(length)
        returns += range(len(places), len(places) + length)
        places += range(begin, begin + length)
        places += [begin] * (width - length)
        scored += [(begin + place - 1, document[place], skill) for place in range(1, length) if learned[place]]
    if len(ids) != tokens:
        raise ValueError(f"{len(ids)} tokens where {tokens} belong")
    scored += [(0, -100, 0)] * (max(len(scored), 1) + -max(len(scored), 1) % HEAD_BLOCK - len(scored))
    at, wanted, skills = (torch.tensor(column) for column in zip(*scored, strict=True))
    return Batch(
        torch.tensor(ids),
        torch.tensor(positions),
        torch.tensor(places),
        torch.tensor(returns),
        [(count, width) for width, count in rows.items()],
        at,
        wanted,
        skills,
    )


def pack_drawn(draw: Callable[[], tuple[list[int], list[bool], int]], tokens: int) -> Batch:
    """Documents as they are drawn, of which the last is cut off where ``tokens`` tokens are full."""
    left = tokens
    documents: list[tuple[list[int], list[bool], int]] = []
    while left:
        ids, learned, skill = draw()
        length = min(len(ids), left, WIDTHS[-1])
        documents.append((ids[:length], learned[:length], skill))
        left -= length
    return pack(documents, tokens)


class _Pad(torch.autograd.Function):
    """Rows in another order, some more than once; ``back`` leads to the one of each that has a gradient."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        return gradient.index_select(0, ctx.back), None, None


class _Unpad(torch.autograd.Function):
    """Rows in another order, none more than once: nothing need be added up."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor) -> Tensor:
        ctx.there, ctx.rows = there, rows.shape[0]
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = gradients
        spread = gradient.new_zeros(ctx.rows, gradient.shape[1])
        return spread.index_copy_(0, ctx.there, gradient), None


def _views(flat: Tensor, groups: Groups, keys: int, counts: Sequence[int]) -> list[Tensor]:
    """Of each group one ``[rows * keys, width * count, head_dim]`` for each of the counts."""
    sizes = [rows * width * keys * count for rows, width in groups for count in counts]
    shapes = [(rows * keys, width * count, -1) for rows, width in groups for count in counts]
    return [part.view(shape) for part, shape in zip(flat.split_with_sizes(sizes), shapes, strict=True)]


def _head_order(groups: Groups, keys: int, counts: Sequence[int]) -> Tensor:
    """For each row of what :func:`_views` cuts up its head, counted along the places and the heads of each."""
    heads = keys * sum(counts)
    every, first = [], 0
    for rows, width in groups:
        places = (first + torch.arange(rows * width)).view(rows, 1, width, 1) * heads
        first += rows * width
        column = 0
        for count in counts:
            every.append((places + column + torch.arange(keys * count).view(keys, 1, count)).flatten())
            column += keys * count
    return torch.cat(every)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).index_copy_(0, order, torch.arange(len(order)))


def _each(rows: Tensor, count: int) -> Tensor:
    """The numbers of the ``count`` parts of each row."""
    return (rows[:, None] * count + torch.arange(count)).flatten()


class _Attend(torch.autograd.Function):
    """Causal attention of short documents, which is much faster here than the fused kernel's backward pass.

    A row of ``flat``, of ``PRODUCTS``, is a head of a token, ``[padded * key heads * (each + 2), head_dim]``; ``each``
    is how many queries a key serves. Of each group of documents come the queries, ``[rows, key heads, width, each]``,
    then keys and values, ``[rows, key heads, width]``; what comes out is in the order of the queries. ``mask``,
    ``[QUERY_BLOCK * each, QUERY_BLOCK]``, is for a block of queries and the keys of the same places. A block sees the
    keys up to its end: the longer a document, the more is left out of what causality forbids. Gradients of keys and
    values are rounded once for each block.
    """

    @staticmethod
    def forward(ctx: Any, flat: Tensor, mask: Tensor, groups: Groups, keys: int, each: int) -> Tensor:
        attended = flat.new_empty(sum(rows * width for rows, width in groups) * keys * each, flat.shape[1])
        inputs, outputs = iter(_views(flat, groups, keys, (each, 1, 1))), _views(attended, groups, keys, (each,))
        every = []
        for (_, width), q, k, v, out in zip(groups, inputs, inputs, inputs, outputs, strict=True):
            for begin in range(0, width, QUERY_BLOCK):
                end = min(begin + QUERY_BLOCK, width)
                scores = torch.bmm(q[:, begin * each : end * each], k[:, :end].transpose(1, 2))
                scores[:, :, begin:].add_(mask[: (end - begin) * each, : end - begin])
                every.append(torch.softmax(scores, -1))
                torch.bmm(every[-1], v[:, :end], out=out[:, begin * each : end * each])
        ctx.groups, ctx.keys, ctx.each = groups, keys, each
        ctx.save_for_backward(flat, *every)
        return attended

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = gradients
        flat, *every = ctx.saved_tensors
        groups, keys, each = ctx.groups, ctx.keys, ctx.each
        of_flat = torch.empty_like(flat)
        parts = (iter(_views(values, groups, keys, (each, 1, 1))) for values in (flat, of_flat))
        (inputs, found), given = parts, _views(gradient, groups, keys, (each,))
        chances = iter(every)
        for (_, width), q, k, v, of_q, of_k, of_v, of_out in zip(
            groups, inputs, inputs, inputs, found, found, found, given, strict=True
        ):
            begins = range(0, width, QUERY_BLOCK)
            blocks = list(zip(begins, [next(chances) for _ in begins], strict=True))
            # The last one sees all keys: what the others find is added to that.
            for begin, chance in reversed(blocks):
                end = min(begin + QUERY_BLOCK, width)
                block = slice(begin * each, end * each)
                of_scores = torch.ops.aten._softmax_backward_data(
                    torch.bmm(of_out[:, block], v[:, :end].transpose(1, 2)), chance, -1, chance.dtype
                )
                torch.bmm(of_scores, k[:, :end], out=of_q[:, block])
                if end == width:
                    torch.bmm(of_scores.transpose(1, 2), q[:, block], out=of_k)
                    torch.bmm(chance.transpose(1, 2), of_out[:, block], out=of_v)
                else:
                    of_k[:, :end].baddbmm_(of_scores.transpose(1, 2), q[:, block])
                    of_v[:, :end].baddbmm_(chance.transpose(1, 2), of_out[:, block])
        return of_flat, None, None, None, None


class _Score(torch.autograd.Function):
    """What each wanted token costs, with all that is as wide as the vocabulary of ``PRODUCTS``."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, embeddings: Tensor, wanted: Tensor) -> Tensor:
        chances = torch.softmax(x @ embeddings.t(), -1)
        counted = wanted >= 0
        ctx.save_for_backward(x, embeddings, wanted.clamp(0)[:, None], counted, chances)
        given = chances.gather(1, wanted.clamp(0)[:, None]).squeeze(1).float()
        return torch.where(counted, -torch.log(given.clamp_min(1e-30)), 0.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gradient,) = gradients
        x, embeddings, wanted, counted, chances = ctx.saved_tensors
        scale = torch.where(counted, gradient, 0.0)[:, None]
        of_logits = chances.scatter_add_(1, wanted, torch.full_like(wanted, -1, dtype=chances.dtype))
        # The scale is small where losses are averaged: it comes after the products, in float32.
        scaled = x.float() * scale
        return ((of_logits @ embeddings).float() * scale).to(x.dtype), of_logits.t() @ scaled.to(x.dtype), None


# What autograd has no types for.
_pad: Callable[[Tensor, Tensor, Tensor], Tensor] = _Pad.apply
_unpad: Callable[[Tensor, Tensor], Tensor] = _Unpad.apply
attend: Callable[[Tensor, Tensor, Groups, int, int], Tensor] = _Attend.apply
_score: Callable[[Tensor, Tensor, Tensor], Tensor] = _Score.apply


def _norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * weight).to(PRODUCTS)


def _before(
    x: Tensor, norm: Tensor, qkv: Tensor, q_norm: Tensor, k_norm: Tensor, cos: Tensor, sin: Tensor, shape: Shape
) -> Tensor:
    """Queries, keys and values of a layer side by side, ``[tokens, (heads + 2 * key heads) * head_dim]``.

    Queries are divided by the root of ``head_dim``, as attention wants them.
    """
    columns = _norm(x, norm, shape.rms_norm_eps) @ qkv.t()
    heads = shape.num_attention_heads + shape.num_key_value_heads
    turned = columns[:, : heads * shape.head_dim].view(-1, heads, shape.head_dim).float()
    of_queries = q_norm * shape.head_dim**-0.5
    scale = torch.cat([of_queries.expand(shape.num_attention_heads, -1), k_norm.expand(shape.num_key_value_heads, -1)])
    turned = turned * torch.rsqrt(turned.square().mean(-1, keepdim=True) + shape.rms_norm_eps) * scale
    first, second = turned.chunk(2, -1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
    return torch.cat([turned.flatten(1).to(PRODUCTS), columns[:, heads * shape.head_dim :]], -1)


def _after(x: Tensor, attended: Tensor, out: Tensor, norm: Tensor, gate_up: Tensor, down: Tensor, eps: float) -> Tensor:
    """The residual stream after a layer, ``[tokens, hidden]`` in float32."""
    x = x + (attended @ out.t()).float()
    gate, up = (_norm(x, norm, eps) @ gate_up.t()).chunk(2, -1)
    return x + ((F.silu(gate.float()) * up.float()).to(PRODUCTS) @ down.t()).float()


@dataclass(frozen=True)
class Orders:
    """Where the heads of a batch are: in columns, a token in each row, and where attention wants them.

    Attributes:
        heads: for each row of attention's input the head that is there, counted along the columns.
        columns: for each of these heads its row of attention's input.
        attended: for each query head of a token its row of attention's output.
    """

    heads: Tensor
    columns: Tensor
    attended: Tensor

    @classmethod
    def of(cls, batch: Batch, shape: Shape) -> Orders:
        """Those of the documents of a batch."""
        keys, queries = shape.num_key_value_heads, shape.num_attention_heads
        each, heads = queries // keys, queries + 2 * keys
        inputs = _head_order(batch.groups, keys, (each, 1, 1))
        outputs = _head_order(batch.groups, keys, (each,))
        return cls(
            batch.places[inputs // heads] * heads + inputs % heads,
            _inverse(inputs)[_each(batch.returns, heads)],
            _inverse(outputs)[_each(batch.returns, queries)],
        )


class Network:
    """The forward pass; its heavy parts are compiled if asked for."""

    def __init__(self, shape: Shape, compiled: bool = False) -> None:
        self.shape = shape
        self._before: Callable[..., Tensor] = (
            torch.compile(_before, dynamic=False, options=COMPILED) if compiled else _before
        )
        # The last layer has as many scored places as there happen to be.
        self._after: Callable[..., Tensor] = (
            torch.compile(_after, dynamic=True, options=COMPILED) if compiled else _after
        )
        each = shape.num_attention_heads // shape.num_key_value_heads
        mask = torch.full((QUERY_BLOCK, QUERY_BLOCK), -math.inf, dtype=PRODUCTS).triu(1)
        self._mask = mask.repeat_interleave(each, 0)
        turns = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim)
        angles = torch.arange(WIDTHS[-1], dtype=torch.float32)[:, None] * turns
        self._cos, self._sin = angles.cos()[:, None], angles.sin()[:, None]

    def losses(self, parameters: dict[str, Tensor], batch: Batch) -> Tensor:
        """What each scored place costs, ``[scored]``, in nats; products are of ``PRODUCTS``."""
        shape = self.shape
        orders = Orders.of(batch, shape)
        cos, sin = self._cos[batch.positions], self._sin[batch.positions]
        x = F.embedding(batch.ids, parameters[EMBEDDING])
        for layer in range(shape.num_hidden_layers):
            own = {
                name.rsplit(".", 2)[-2]: value
                for name, value in parameters.items()
                if name.startswith(f"model.layers.{layer}.")
            }
            qkv = torch.cat([own["q_proj"], own["k_proj"], own["v_proj"]]).to(PRODUCTS)
            columns = self._before(x, own["input_layernorm"], qkv, own["q_norm"], own["k_norm"], cos, sin, shape)
            attended = self._attend(columns, batch, orders)
            gate_up = torch.cat([own["gate_proj"], own["up_proj"]]).to(PRODUCTS)
            if layer == shape.num_hidden_layers - 1:
                x, attended = x.index_select(0, batch.scored), attended.index_select(0, batch.scored)
            x = self._after(
                x,
                attended,
                own["o_proj"].to(PRODUCTS),
                own["post_attention_layernorm"],
                gate_up,
                own["down_proj"].to(PRODUCTS),
                shape.rms_norm_eps,
            )
        x = _norm(x, parameters["model.norm.weight"], shape.rms_norm_eps)
        return _score(x, parameters[EMBEDDING].to(PRODUCTS), batch.wanted)

    def _attend(self, columns: Tensor, batch: Batch, orders: Orders) -> Tensor:
        """Each token attends to those before it in its document, ``[tokens, heads * head_dim]``."""
        shape = self.shape
        keys = shape.num_key_value_heads
        flat = _pad(columns.view(-1, shape.head_dim), orders.heads, orders.columns)
        attended = attend(flat, self._mask, batch.groups, keys, shape.num_attention_heads // keys)
        return _unpad(attended, orders.attended).view(len(columns), -1)
