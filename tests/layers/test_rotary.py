from __future__ import annotations

import math
from itertools import product

import torch

from bough.config.rope import RopeParameters
from bough.layers.rotary import RotaryEmbedding, apply_rotary, inverse_frequencies
from tests.tables import table

DYNAMIC = RopeParameters("dynamic", rope_theta=1e4, max_position_embeddings=100, factor=2.0)


def test_rotation_depends_on_relative_position_only() -> None:
    rope = RopeParameters("default", rope_theta=1e4, max_position_embeddings=100)
    rotary = RotaryEmbedding(8, rope, 100, torch.float64)
    q, k = torch.randn(2, 1, 1, 8, dtype=torch.float64)

    def score(q_position: int, k_position: int) -> float:
        rotated = [apply_rotary(x, rotary(torch.tensor([p]))) for x, p in ((q, q_position), (k, k_position))]
        return float((rotated[0] * rotated[1]).sum())

    assert abs(score(3, 1) - score(52, 50)) < 1e-5
    assert abs(score(3, 1) - score(3, 2)) > 1e-3


def test_dynamic_scaling_does_nothing_within_the_original_context() -> None:
    plain = RopeParameters("default", rope_theta=1e4, max_position_embeddings=100)
    torch.testing.assert_close(inverse_frequencies(8, DYNAMIC, 100), inverse_frequencies(8, plain, 100))


@table("head_dim", [2, 64])
@table("context_len", [1, 2**31 - 1])
def test_the_ends_of_what_configurations_may_say_give_finite_rotations(head_dim: int, context_len: int) -> None:
    """The bounds of :mod:`bough.config.model_config`."""
    ropes = [RopeParameters("default", rope_theta=theta, max_position_embeddings=1) for theta in (1.0, 1e308)]
    ends = (1e-6, 1e6)
    for theta, fast, slow, truncate in product((1.001, 1e308), ends, ends, (True, False)):
        yarn = RopeParameters("yarn", theta, 1, 2.0**31, context_len, beta_fast=fast, beta_slow=slow, truncate=truncate)
        ropes.append(yarn)
        ropes.append(RopeParameters("yarn", theta, 1, 2.0, context_len, mscale=1e6, mscale_all_dim=5e-324))
    for theta, low in product((1.0, 1e308), (0.0, 1e6 * (1 - 1e-15))):
        ropes.append(RopeParameters("llama3", theta, 1, 2.0**31, 1, low_freq_factor=low, high_freq_factor=1e6))
        if head_dim > 2:
            ropes.append(RopeParameters("dynamic", theta, 1, 2.0**31))
    factors = tuple([1e-6, 1e308] * head_dim)[: head_dim // 2]
    ropes.append(RopeParameters("frequency_factors", 1.0, 1, frequency_factors=factors))
    for rope in ropes:
        frequencies, scaling = inverse_frequencies(head_dim, rope, context_len)
        assert bool(frequencies.isfinite().all()), rope
        assert math.isfinite(scaling), rope


def test_dynamic_scaling_follows_the_served_context_beyond_it() -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    config = LlamaConfig(hidden_size=8, num_attention_heads=1, max_position_embeddings=100, rope_parameters=rope)
    expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, torch.device("cpu"), seq_len=150)
    ours, scaling = inverse_frequencies(8, DYNAMIC, 150)
    torch.testing.assert_close(ours, expected)
    assert scaling == 1.0
