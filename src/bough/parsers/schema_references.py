"""References of a JSON schema to other parts of the same document, and parts of it that stand alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from bough.errors import BadRequest
from bough.json_pointer import is_pointer
from bough.sampling.sampling_params import SCHEMA_OPTIONS
from bough.schema_keywords import subschemas

MAX_REPEATED_CHARS = 1 << 20
"""Characters that the definitions of a schema may come to when each part that refers to them has its own."""

_DEFINITIONS = ("$defs", "definitions")
_ALL = "arguments"
_INTO_ALL = f"#/$defs/{_ALL}"
"""Where the whole document stands beside a part that refers to other places of it than definitions."""

_OF_DOCUMENTS = frozenset({"$id", "$schema", "id", SCHEMA_OPTIONS})
_DATA = frozenset({"const", "default", "enum", "examples"})
_MAPS_OF_SCHEMAS = frozenset({*_DEFINITIONS, "dependentSchemas", "patternProperties", "properties"})


def standing_alone(root: dict[str, Any], parts: Mapping[str, Any]) -> dict[str, Any]:
    """Parts of a schema, each of which stands alone: with what it refers to.

    That is the schema's definitions, as far as they suffice; else all of the schema, under a name in ``$defs``.

    Raises:
        BadRequest: if that makes far more of the schema than it is.
    """
    definitions = {key: root[key] for key in _DEFINITIONS if key in root}
    suffice = all(map(_into_definitions, _pointers(definitions)))
    result = dict(parts)
    shared: dict[bool, Any] = {}  # by whether it is all of the schema
    sizes: dict[bool, int] = {}
    num_chars = 0
    for name, part in parts.items():
        pointers = set(_pointers(part))
        if not pointers:
            continue
        is_all = not (suffice and all(map(_into_definitions, pointers)))
        if is_all not in shared:
            shared[is_all] = {"$defs": {_ALL: _below(root)}} if is_all else definitions
            sizes[is_all] = len(json.dumps(shared[is_all]))
        num_chars += sizes[is_all]
        if num_chars > MAX_REPEATED_CHARS:
            raise BadRequest(
                "tools: too many properties refer to other places of a schema that is too large", param="tools"
            )
        result[name] = {**(_moved(part) if is_all else part), **shared[is_all]}
    return result


def _into_definitions(pointer: str) -> bool:
    return unquote(pointer).startswith(tuple(f"#/{key}/" for key in _DEFINITIONS))


def _pointers(schema: Any) -> Iterator[str]:
    """Yield all local references in a schema, anchors too."""
    pending = [schema]
    while pending:
        each = pending.pop()
        reference = each.get("$ref") if isinstance(each, dict) else None
        if isinstance(reference, str) and reference.startswith("#"):
            yield reference
        pending += (below for _, below in subschemas(each))


def _below(root: dict[str, Any]) -> dict[str, Any]:
    """The whole schema as one of the definitions of a part."""
    moved: dict[str, Any] = _moved({key: value for key, value in root.items() if key not in _OF_DOCUMENTS})
    return moved


def _moved(schema: Any, *, is_map: bool = False) -> Any:
    """The schema with its local references into the whole schema that stands beside it."""
    if isinstance(schema, list):
        return [_moved(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for key, value in schema.items():
        if not is_map and key in _DATA:
            result[key] = value
        elif not is_map and key == "$ref" and isinstance(value, str) and is_pointer(value):
            result[key] = _INTO_ALL + value[1:]
        else:
            result[key] = _moved(value, is_map=not is_map and key in _MAPS_OF_SCHEMAS)
    return result
