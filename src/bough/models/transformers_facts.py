"""Facts about a model of transformers, found by a dry run of its code; what cannot be served is refused by name.

The model is made on the device ``meta``, which holds no numbers, and computes a few tokens with an attention function
and a mask function of our own, which note what they are called with.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AttentionInterface, AttentionMaskInterface

from bough.config.model_config import ModelConfig
from bough.config.model_facts import AttentionArguments, AttentionFacts, LayerFacts
from bough.errors import StartupError
from bough.models.base import torch_dtype
from bough.models.transformers_code import STEP, Halves, make_transformers_model, one_line
from bough.models.transformers_config import refusal

_DRY_RUN = "bough_dry_run"
_NUM_TOKENS = 3
_META = torch.device("meta")
_UNDERSTOOD = frozenset(
    {
        *("dropout", "scaling", "sliding_window", "softcap", "s_aux", "is_causal", "position_ids", "use_cache"),
        *("output_attentions", "output_router_logits", "cache_position", "return_dict"),
    }
)
"""Keywords of attention functions that are followed or have no effect here; others must be ``None``."""
_STATE_MODULES = (nn.Conv1d, nn.RNNBase)


def complete(config: ModelConfig) -> ModelConfig:
    """Return the configuration with what a dry run of the model's code finds about its attention.

    Raises:
        ConfigError: naming what of the model cannot be served.
        StartupError: if the installed transformers is of another generation than those that are known.
    """
    if config.stored_quantization is not None and config.stored_quantization.is_microscaled:
        raise refusal(config, "experts in MXFP4 are read for Bough's own families alone")
    with _META:
        model = make_transformers_model(config, _DRY_RUN, experts="eager")  # others depend on device and dtype
    _check_modules(config, model)
    with _in_model_code(config):
        halves = Halves.of(model)
    calls = tuple(_call(config, notes) for notes in _run_body(config, halves))
    layers = _layers(config, calls)
    _check_head(config, halves)
    return dataclasses.replace(config, layers=layers, attention_arguments=calls)


def _layers(config: ModelConfig, calls: Sequence[AttentionArguments]) -> tuple[LayerFacts, ...]:
    kv_heads = {call.num_kv_heads for call in calls}
    widths = {max(call.key_width, call.value_width) for call in calls}
    if len(kv_heads) > 1 or len(widths) > 1:
        raise refusal(config, "its layers differ in the number or the width of heads of keys")
    return tuple(
        dataclasses.replace(
            layer,
            mixer=AttentionFacts(
                num_heads=call.num_heads,
                num_kv_heads=call.num_kv_heads,
                head_dim=max(widths),
                rope=None,
                window=call.window,
            ),
        )
        for layer, call in zip(config.layers, calls, strict=True)
    )


@dataclass(slots=True)
class _Notes:
    """Arguments that a layer gave its attention function."""

    module: nn.Module
    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    keywords: dict[str, Any]
    sinks: str | None


@dataclass(slots=True)
class _Notebook:
    """Calls of a dry run, in order."""

    parameters: dict[int, str]
    """Names by identity"""
    calls: list[_Notes] = field(default_factory=list)


class _WithoutNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Answers what depends on numbers, which tensors on ``meta`` do not have: nothing is chosen, and tests are true."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, or return an answer in its place."""
        aten, packet = torch.ops.aten, getattr(func, "overloadpacket", None)
        if packet in (aten.nonzero, aten._local_scalar_dense) and args[0].device == _META:
            if packet is aten.nonzero:
                return torch.empty(0, args[0].dim(), dtype=torch.int64, device=_META)
            return args[0].dtype == torch.bool
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _in_model_code(config: ModelConfig) -> Iterator[None]:
    """Turn errors of a model's code, on tensors without numbers, into a refusal of the model."""
    try:
        with _WithoutNumbers(), torch.no_grad():  # type: ignore[no-untyped-call]
            yield
    except StartupError:
        raise
    except Exception as error:  # the code of any model
        raise refusal(config, f"a dry run fails ({one_line(error)})") from error


def _run_body(config: ModelConfig, halves: Halves) -> list[_Notes]:
    """Return the calls of attention, by layer, that the body makes for a few tokens."""
    book = _Notebook({id(parameter): name for name, parameter in halves.body.named_parameters()})
    tokens = torch.zeros(_NUM_TOKENS, dtype=torch.int64, device=_META)
    with _in_model_code(config):
        halves.states(tokens, tokens, book)
    return _by_layer(config, book.calls)


def _check_head(config: ModelConfig, halves: Halves) -> None:
    """Refuse a model with a head that does not work without the rest."""
    with _in_model_code(config):
        states = torch.empty(_NUM_TOKENS, config.hidden_size, dtype=torch_dtype(config), device=_META)
        shape = halves.logits(states).shape
    if shape != (_NUM_TOKENS, config.vocab_size):
        raise refusal(config, f"it computes logits {list(shape)} of {_NUM_TOKENS} tokens")


def _check_modules(config: ModelConfig, model: Any) -> None:
    """Refuse what shows before anything is computed."""
    if getattr(model, "_is_stateful", False):
        raise refusal(config, "it keeps state beside keys and values")
    for name, module in model.named_modules():
        if isinstance(module, _STATE_MODULES):
            raise refusal(config, f"it keeps state beside keys and values ({name}: {type(module).__name__})")
        rope_type = getattr(module, "rope_type", None)
        for each in rope_type.values() if isinstance(rope_type, dict) else (rope_type,):
            if isinstance(each, str) and ("dynamic" in each or each == "longrope"):
                raise refusal(config, f"its rotary table depends on the length of a call (rope_type {each})")
    if getattr(model.config, "num_kv_shared_layers", 0):
        raise refusal(config, "layers share keys and values (num_kv_shared_layers)")


def _by_layer(config: ModelConfig, calls: list[_Notes]) -> list[_Notes]:
    by_layer: dict[int, _Notes] = {}
    for notes in calls:
        layer = getattr(notes.module, "layer_idx", None)
        if not isinstance(layer, int):
            raise refusal(config, f"{type(notes.module).__name__} does not know its layer")
        if layer in by_layer:
            raise refusal(config, f"layer {layer} computes attention more than once")
        by_layer[layer] = notes
    missing = sorted(set(range(config.num_layers)) - by_layer.keys())
    if missing or len(by_layer) > config.num_layers:
        raise refusal(
            config, f"{len(by_layer)} of {config.num_layers} layers compute attention through transformers' interface"
        )
    owners: dict[int, int] = {}
    for layer, notes in by_layer.items():
        owner = owners.setdefault(notes.key.untyped_storage()._cdata, layer)
        if owner != layer:
            raise refusal(config, f"layers {owner} and {layer} share keys and values")
    return [by_layer[layer] for layer in range(config.num_layers)]


def _call(config: ModelConfig, notes: _Notes) -> AttentionArguments:
    """Facts of one layer's call, if our attention can do it."""
    window = _window(config, notes)
    keywords = notes.keywords
    if keywords.get("is_causal") is False:
        raise refusal(config, "its attention is not causal")
    unknown = sorted(key for key, value in keywords.items() if value is not None and key not in _UNDERSTOOD)
    if unknown:
        raise refusal(config, f"its attention function gets {', '.join(unknown)}")
    if keywords.get("s_aux") is not None and notes.sinks is None:
        raise refusal(config, "its attention sinks are no parameters")
    num_heads, key_width = notes.query.shape[1], notes.query.shape[3]
    scaling, cap = keywords.get("scaling"), keywords.get("softcap")
    if cap is not None and not cap > 0:
        raise refusal(config, f"its soft-cap {cap} on scores is not positive")
    return AttentionArguments(
        num_heads=num_heads,
        num_kv_heads=notes.key.shape[1],
        key_width=key_width,
        value_width=notes.value.shape[3],
        scaling=key_width**-0.5 if scaling is None else float(scaling),
        window=window,
        logit_cap=None if cap is None else float(cap),
        sinks=notes.sinks,
    )


def _window(config: ModelConfig, notes: _Notes) -> int | None:
    """The sliding window of a layer's mask, which is what transformers' own attention goes by."""
    if notes.mask is None:
        if not getattr(notes.module, "is_causal", True):
            raise refusal(config, "its attention is not causal")
        return None
    pattern: _Pattern | None = getattr(notes.mask, "pattern", None)
    if pattern is None or not pattern.is_known:
        raise refusal(config, "its attention is neither causal nor a sliding window")
    return pattern.window


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Keys that a mask lets a query see."""

    is_known: bool
    """Causal, with a window or without."""
    window: int | None


def _pattern(sees: Callable[[int, int], bool], size: int | None) -> _Pattern:
    """Try a mask at its corners.

    Args:
        sees: by the positions of a query and a key.
        size: of the window or chunk, if there is one.
    """
    try:
        is_causal = sees(0, 0) and not sees(0, 1) and not sees(6, 7)
        if size is None:
            return _Pattern(is_causal and sees(1 << 20, 0), None)
        return _Pattern(is_causal and sees(size, 1) and not sees(size, 0) and sees(2 * size, size + 1), size)
    except (RuntimeError, NotImplementedError):  # it depends on numbers of this step
        return _Pattern(False, None)


def _note_mask(*, q_length: int, mask_function: Callable[..., Any], local_size: int | None = None, **_: Any) -> Any:
    """A mask without numbers that carries its pattern."""

    def sees(query: int, key: int) -> bool:
        return bool(mask_function(0, 0, torch.tensor(query), torch.tensor(key)))

    mask = torch.empty(1, 1, q_length, q_length, device=_META)
    mask.pattern = _pattern(sees, local_size)  # type: ignore[attr-defined]
    return mask


def _note_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    **keywords: Any,
) -> tuple[torch.Tensor, None]:
    """Note a call; the output has the shape that attention's would have, ``[1, num_tokens, num_heads, width]``."""
    book = keywords.pop(STEP, None)
    if not isinstance(book, _Notebook):
        raise TypeError(f"{type(module).__name__} passes no keywords to its attention")
    sinks = book.parameters.get(id(keywords.get("s_aux")))
    book.calls.append(_Notes(module, query, key, value, attention_mask, keywords, sinks))
    return query.new_empty(1, query.shape[2], query.shape[1], value.shape[3]), None


AttentionInterface.register(_DRY_RUN, _note_attention)
AttentionMaskInterface.register(_DRY_RUN, _note_mask)
