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


def text_name(name: str) -> str | None:
    """Return the name of a wrapped text model's weight without its wrapper; ``None`` for weights of other senses."""
    if name.removeprefix(BODY_PREFIX).startswith(_OTHER_SENSES):
        return None
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

    Bodies alone are stored without their prefix, text models also below a wrapper's, projections also in a stack.
    """
    prefixed = [name, name.removeprefix(BODY_PREFIX)]
    prefixed += [prefix + name.removeprefix(own) for prefix, own in _INSERTED.items() if name.startswith(own)]
    parts = name.split(".")
    for number, part in enumerate(parts):
        if part in _STACK_OF:
            stack = ".".join([*parts[:number], _STACK_OF[part], *parts[number + 1 :]])
            yield from (*prefixed, *stored_names(stack))
            return
    yield from prefixed
