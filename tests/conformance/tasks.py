"""What all clients are asked to do: a question, a tool, a schema, and how to tell whether the answer is right."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

import pydantic

QUESTION = "Tell me about the oak."
MESSAGES: list[Any] = [{"role": "user", "content": QUESTION}]
TOO_LONG = "word " * 4000
"""More tokens than the context has."""
TOO_LARGE = "word " * 120_000
"""More bytes than the server takes."""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
"""An image, for a model that reads text only."""

NAMED: Any = {"type": "function", "function": {"name": "count_trees"}}
RESULT = "There are 12 oaks."

TEXTS = ["The oak is a large tree.", "A big tree: the oak.", "How do I bake bread?"]
"""The first two are alike."""


def schema() -> dict[str, Any]:
    """Of what :class:`Tree` is. A new one each time: some clients change what they are given."""
    return {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "height": {"type": "integer", "maximum": 99}},
        "required": ["name", "height"],
        "additionalProperties": False,
    }


def tool() -> dict[str, Any]:
    """A tool with that schema."""
    function = {"name": "describe_tree", "description": "Describes a tree", "parameters": schema()}
    return {"type": "function", "function": function}


def other_tool() -> dict[str, Any]:
    """The one that :data:`NAMED` names."""
    kinds = {"type": "object", "properties": {"kind": {"enum": ["oak", "elm"]}}, "required": ["kind"]}
    function = {
        "name": "count_trees",
        "description": "Counts trees",
        "parameters": {**kinds, "additionalProperties": False},
    }
    return {"type": "function", "function": function}


class Tree(pydantic.BaseModel):
    """A tree."""

    model_config = pydantic.ConfigDict(extra="forbid")

    name: str = pydantic.Field(max_length=12)
    height: int = pydantic.Field(le=99)


class Kind(pydantic.BaseModel):
    """A kind of tree."""

    model_config = pydantic.ConfigDict(extra="forbid")

    kind: Literal["oak", "elm"]


def check_tree(arguments: Any) -> None:
    """The schema was followed."""
    values = json.loads(arguments) if isinstance(arguments, str) else arguments
    assert set(values) == {"name", "height"}
    assert isinstance(values["name"], str)
    assert isinstance(values["height"], int)


def check_answer(text: str | None) -> None:
    """The bundled model knows what it was asked about."""
    assert text
    assert "oak" in text.lower()


def check_vectors(vectors: Sequence[Sequence[float]]) -> None:
    """Unit vectors, of which the first two are the closest."""
    assert [len(vector) for vector in vectors] == [384] * len(TEXTS)
    for vector in vectors:
        assert abs(math.sqrt(sum(x * x for x in vector)) - 1) < 1e-3
    first, second, third = vectors
    assert dot(first, second) > dot(first, third) + 0.2


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine, for unit vectors."""
    return sum(x * y for x, y in zip(left, right, strict=True))
