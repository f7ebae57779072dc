"""Names of weights: those that checkpoints use, and those of the models here. No torch here."""

from __future__ import annotations

from collections.abc import Collection, Iterator

BODY_PREFIX = "model."
"""Prefix of all weight names of a language model except those of its head."""

STACKED: dict[str, tuple[str, ...]] = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
}
"""Projections that some checkpoints store as one, to the parts of their rows from top to bottom."""

_STACK_OF = {part: stack for stack, parts in STACKED.items() for part in parts}

_WRAPPERS = ("model.language_model.", "language_model.model.", "language_model.")
"""Prefixes of a text model's weights in a checkpoint that wraps it, the longer ones first."""
_INSERTED = {"model.language_model.": BODY_PREFIX, "language_model.model.": BODY_PREFIX, "language_model.": ""}
_OTHER_SENSES = ("vision_tower.", "multi_modal_projector.", "audio_tower.", "vision_model.", "visual.")
"""Prefixes of weights that read images and sounds, which text does without."""


EXPERTS = ".mlp.experts."
"""Part of the names of experts' weights, before the number or the name of a stack."""
_EXPERT_STACKS = {"gate_up_proj": ("gate_proj", "up_proj"), "down_proj": ("down_proj",)}
"""Tensors with the weights of all experts of a layer, to the parts of the rows of each from top to bottom."""
_STACK_ENDINGS = {"weight": "", "bias": "_bias"}
_OTHER_NAMES = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
_OTHER_MIXTURE, _MIXTURE = ".block_sparse_moe.", ".mlp."
"""Mixtral's names of what others call otherwise."""
_RENAMED = {f".{other}.": f".{own}." for own, other in _OTHER_NAMES.items()}


def expert_stacks(names: Collection[str]) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Yield names of tensors with the weights of all experts of a layer, each with the parts of every expert."""
    for name in names:
        layer, found, part = name.partition(f"{EXPERTS}0.")
        down, _, kind = part.partition(".")
        if not found or down != "down_proj":
            continue
        for stack, parts in _EXPERT_STACKS.items():
            of_experts: list[tuple[str, ...]] = []
            while (own := tuple(f"{layer}{EXPERTS}{len(of_experts)}.{each}.{kind}" for each in parts))[0] in names:
                of_experts.append(own)
            yield f"{layer}{EXPERTS}{stack}{_STACK_ENDINGS[kind]}", of_experts


def expert_stack_of(name: str) -> str | None:
    """Return the name of the tensor with the matrices of all experts, given that of one; ``None`` for other names."""
    layer, _, part = name.partition(EXPERTS)
    projection = part.removesuffix(".weight").partition(".")[2]
    stack = next((each for each, parts in _EXPERT_STACKS.items() if projection in parts), None)
    return None if stack is None else f"{layer}{EXPERTS}{stack}"


def _own_mixture_name(name: str) -> str:
    if _OTHER_MIXTURE not in name:
        return name
    name = name.replace(_OTHER_MIXTURE, _MIXTURE)
    return next((name.replace(other, own) for other, own in _RENAMED.items() if other in name), name)


def _other_mixture_name(name: str) -> str | None:
    layer, found, part = name.partition(_MIXTURE)
    if not found or part.partition(".")[0] not in ("experts", "gate"):
        return None
    words = (_OTHER_NAMES.get(word, word) for word in part.split("."))
    return f"{layer}{_OTHER_MIXTURE}{'.'.join(words)}"


def text_name(name: str) -> str | None:
    """Return the name of a wrapped text model's weight without its wrapper; ``None`` for weights of other senses."""
    if name.removeprefix(BODY_PREFIX).startswith(_OTHER_SENSES):
        return None
    name = _own_mixture_name(name)
    prefix = next((prefix for prefix in _WRAPPERS if name.startswith(prefix)), None)
    return name if prefix is None else _INSERTED[prefix] + name.removeprefix(prefix)


def stacks(names: Collection[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield names of stacks that a checkpoint may have in place of some of a model's weights, each with its parts."""
    for name in names:
        for stack, (first, *others) in STACKED.items():
            if f".{first}." in name:
                parts = (name, *(name.replace(f".{first}.", f".{other}.") for other in others))
                if all(part in names for part in parts):
                    yield name.replace(f".{first}.", f".{stack}."), parts


def stored_names(name: str) -> Iterator[str]:
    """Yield the names under which a checkpoint may have the numbers of a model's weight, or module, the likely first.

    Bodies alone are stored without their prefix, text models also below a wrapper's, projections also in a stack;
    experts one by one.
    """
    prefixed = [name, name.removeprefix(BODY_PREFIX)]
    other = _other_mixture_name(name)
    if other is not None:
        yield from (*prefixed, other)
        return
    prefixed += [prefix + name.removeprefix(own) for prefix, own in _INSERTED.items() if name.startswith(own)]
    parts = name.split(".")
    for number, part in enumerate(parts):
        if part in _STACK_OF:
            stack = ".".join([*parts[:number], _STACK_OF[part], *parts[number + 1 :]])
            yield from (*prefixed, *stored_names(stack))
            return
    yield from prefixed
