"""Scaled dot-product attention that also says how much weight it saw, so that partial results can be merged."""

from __future__ import annotations

import torch

_FUSED_ON = ("cpu",)
"""Devices that have a kernel which returns the sums."""


def is_fused(device: torch.device) -> bool:
    """True if :func:`attend` keeps no scores there, which are as many as queries times keys for each head."""
    return device.type in _FUSED_ON


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | None = None,
    causal: bool = False,
    logit_cap: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of ``q`` over ``k`` and ``v``; query heads share key heads in equal groups. Sums are in float32.

    Args:
        q: ``[batch, num_heads, num_queries, head_dim]``
        k: ``[batch, num_kv_heads, num_keys, head_dim]``, any strides with a dense last dimension.
        v: like ``k``
        scale: factor on the scores.
        mask: added to the scores, broadcastable to ``[batch, num_heads, num_queries, num_keys]``; every query must
            see at least one key.
        causal: query ``i`` sees keys up to ``i``.
        logit_cap: bound of the scaled scores, by a hyperbolic tangent, before the mask; ``None``: no bound.

    Returns:
        Output ``[batch, num_heads, num_queries, head_dim]`` in q's dtype, laid out so that ``transpose(1, 2)`` is
        contiguous, and the logarithm of the sum of exponentiated scores, float32
        ``[batch, num_heads, num_queries]``.
    """
    if is_fused(q.device) and logit_cap is None:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(  # type: ignore[no-any-return]
            q, k, v, is_causal=causal, attn_mask=mask, scale=scale
        )
    return attend_explicitly(q, k, v, scale=scale, mask=mask, causal=causal, logit_cap=logit_cap)


def attend_explicitly(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | None = None,
    causal: bool = False,
    logit_cap: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """:func:`attend` written out, for devices without a fused kernel that returns the sums."""
    batch, num_heads, num_queries, head_dim = q.shape
    num_kv_heads, num_keys = k.shape[1], k.shape[2]
    grouped = q.float().reshape(batch, num_kv_heads, -1, head_dim)  # the queries of a group of heads side by side
    scores = torch.matmul(grouped, k.float().transpose(-1, -2)).view(batch, num_heads, num_queries, num_keys) * scale
    if logit_cap is not None:
        scores = torch.tanh(scores / logit_cap) * logit_cap
    if mask is not None:
        scores = scores + mask
    if causal:
        future = torch.ones(num_queries, num_keys, dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    log_sums = scores.logsumexp(dim=-1)
    weights = (scores - log_sums[..., None]).exp().view(batch, num_kv_heads, -1, num_keys)
    output = torch.matmul(weights, v.float()).view(q.shape).to(q.dtype)
    return output.transpose(1, 2).contiguous().transpose(1, 2), log_sums
