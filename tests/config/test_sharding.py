"""Shares of matrices and heads: every row belongs to one rank, every query to the rank that has its keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.config.engine_args import bundled_model_path
from bough.config.model_config import ModelConfig
from bough.config.sharding import UNIT, ShardSpec, Span
from bough.errors import ConfigError

WORLDS = st.integers(1, 8)


def joined(spans: list[Span], total: int) -> bool:
    """Whether spans, but for copies, are neighbours from 0 to ``total``, in order."""
    ends = [0]
    for span in spans:
        if not span.is_copy:
            assert span.start == ends[-1]
            assert span.size > 0
            ends.append(span.stop)
        assert span.total == total
    return ends[-1] == total


@given(st.integers(1, 10_000), WORLDS)
def test_ranks_have_all_rows_in_order_and_in_whole_units(total: int, world: int) -> None:
    if -(-total // UNIT) < world:
        with pytest.raises(ConfigError):
            ShardSpec(0, world).rows(total)
        return
    spans = [ShardSpec(rank, world).rows(total) for rank in range(world)]
    assert joined(spans, total)
    assert all(span.start % UNIT == 0 for span in spans)
    assert max(span.size for span in spans) - min(span.size for span in spans) < 2 * UNIT


@given(st.integers(1, 8), st.integers(1, 8), WORLDS)
def test_each_query_is_on_the_rank_that_has_its_keys(num_kv_heads: int, group: int, world: int) -> None:
    num_heads = num_kv_heads * group
    try:
        shares = [ShardSpec(rank, world).heads(num_heads, num_kv_heads) for rank in range(world)]
    except ConfigError:
        assert world > num_kv_heads
        return
    assert joined([share.queries for share in shares], num_heads)
    assert joined([share.keys for share in shares], num_kv_heads)
    for queries, keys in shares:
        assert queries.size
        assert queries.size % keys.size == 0
        read = {head // group for head in range(queries.start, queries.stop)}
        assert read == set(range(keys.start, keys.stop))


def test_matrices_that_write_to_the_stream_are_split_as_the_style_says() -> None:
    inputs = ShardSpec(1, 2).rows(96)
    assert ShardSpec(1, 2, "reduce").to_stream(inputs, 64) == (inputs, Span.whole(64))
    assert ShardSpec(1, 2, "gather").to_stream(inputs, 64) == (Span.whole(96), Span(32, 32, 64))


def test_a_model_says_how_many_ranks_can_share_it() -> None:
    config = ModelConfig.from_path(str(bundled_model_path()))
    layers = config.shard_layers(ShardSpec(3, 4))
    assert {(layer.mixer.num_heads, layer.mixer.num_kv_heads) for layer in layers} == {(2, 1)}
    with pytest.raises(ConfigError, match=r"it can be 1, 2, 3, 4, 5, 6, 7, 8$") as caught:
        config.shard_layers(ShardSpec(0, 16))
    assert caught.value.param == "tp_size"


def test_experts_are_divided_whole_or_each_of_them() -> None:
    assert ShardSpec(1, 2).experts(5) == Span.whole(5)
    spans = [ShardSpec(rank, 3, splits_experts=False).experts(7) for rank in range(3)]
    assert [(span.start, span.size) for span in spans] == [(0, 2), (2, 2), (4, 3)]
    with pytest.raises(ConfigError) as caught:
        ShardSpec(0, 3, splits_experts=False).experts(2)
    assert caught.value.param == "ep_size"


def test_dense_models_have_no_experts_to_divide() -> None:
    config = ModelConfig.from_path(str(bundled_model_path()))
    with pytest.raises(ConfigError) as caught:
        config.shard_layers(ShardSpec(0, 2, splits_experts=False))
    assert caught.value.param == "ep_size"
