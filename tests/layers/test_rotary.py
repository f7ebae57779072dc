from __future__ import annotations

import torch

from bough.config.model_config import RopeParameters
from bough.layers.rotary import RotaryEmbedding, apply_rotary, inverse_frequencies

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


def test_dynamic_scaling_follows_the_served_context_beyond_it() -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    config = LlamaConfig(hidden_size=8, num_attention_heads=1, max_position_embeddings=100, rope_parameters=rope)
    expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, torch.device("cpu"), seq_len=150)
    ours, scaling = inverse_frequencies(8, DYNAMIC, 150)
    torch.testing.assert_close(ours, expected)
    assert scaling == 1.0
