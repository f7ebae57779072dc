"""Resolve the references in a JSON schema, by identifiers, anchors and pointers."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

from bough.json_pointer import follow
from bough.schema_keywords import subschemas

_DRAFT = re.compile(r"https?://json-schema\.org/draft[/-](0[3-7]|20\d\d)[-/]")
NEWEST_DRAFT = 2020


class Place(NamedTuple):
    """Position of a schema in its document: JSON pointer with ``#``, URI that references are relative to, and draft.

    Drafts are 3 to 7, 2019 and 2020.
    """

    pointer: str
    base: str
    draft: int


class Target(NamedTuple):
    """Target of a reference."""

    schema: Any
    place: Place


class References:
    """References of a document: a schema that is an object, and must not change."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._named: dict[str, Target] = {}
        self._places: dict[int, Place] = {}
        self._cyclic: frozenset[int] | None = None
        self.root = Target(root, Place("#", "", NEWEST_DRAFT))
        pending = [self.root]
        while pending:
            schema, place = pending.pop()
            if not isinstance(schema, dict):
                continue
            place = self._enter(schema, place)
            pending += (Target(each, place._replace(pointer=place.pointer + step)) for step, each in subschemas(schema))
        self.root = Target(root, self.place_of(root, self.root.place))
        self._named.setdefault(self.root.place.base, self.root)

    def place_of(self, schema: Any, otherwise: Place) -> Place:
        """Return the position of a schema in the document; ``otherwise`` if no keyword leads to it."""
        return self._places.get(id(schema), otherwise)

    def resolve(self, reference: Any, place: Place) -> Target | None:
        """Follow a reference, through targets that are only references; ``None`` if it is broken or endless."""
        seen = set()
        while (target := self._find(reference, place)) is not None:
            schema = target.schema
            if not isinstance(schema, dict) or schema.keys() != {"$ref"}:
                return target
            if id(schema) in seen:
                return None
            seen.add(id(schema))
            reference, place = schema["$ref"], target.place
        return None

    def is_cyclic(self, target: Target) -> bool:
        """True if following the target's references can lead into a circle."""
        if self._cyclic is None:
            self._cyclic = self._find_cyclic()
        return id(target.schema) in self._cyclic

    def _enter(self, schema: dict[str, Any], place: Place) -> Place:
        """Record a schema's position and names."""
        declared = schema.get("$schema")
        known = _DRAFT.match(declared) if isinstance(declared, str) else None
        pointer, base, draft = place
        draft = draft if known is None else int(known[1])
        name = schema.get("id" if draft <= 4 else "$id")
        anchors = [schema.get(key) for key in ("$anchor", "$dynamicAnchor")]
        if isinstance(name, str) and not (draft <= 7 and "$ref" in schema):
            if name.startswith("#"):
                anchors.append(name[1:])
            else:
                base = urldefrag(urljoin(base, name)).url
                self._named.setdefault(base, Target(schema, Place(pointer, base, draft)))
        place = self._places[id(schema)] = Place(pointer, base, draft)
        for anchor in anchors:
            if isinstance(anchor, str):
                self._named.setdefault(f"{base}#{anchor}", Target(schema, place))
        return place

    def _find(self, reference: Any, place: Place) -> Target | None:
        if not isinstance(reference, str):
            return None
        absolute = place.base + reference if reference.startswith("#") else urljoin(place.base, reference)
        uri, fragment = urldefrag(absolute)
        document = self._named.get(uri)
        if document is None or not fragment:
            return document
        if not fragment.startswith("/"):
            return self._named.get(f"{uri}#{unquote(fragment)}")
        found = follow(document.schema, f"#{fragment}")
        if not isinstance(found, (dict, bool)):
            return None
        pointer = document.place.pointer + unquote(fragment)
        return Target(found, self.place_of(found, document.place._replace(pointer=pointer)))

    def _find_cyclic(self) -> frozenset[int]:
        leads_to: dict[int, set[int]] = {}
        pending = [self.root]
        while pending:
            start = pending.pop()
            if id(start.schema) in leads_to:
                continue
            below = leads_to[id(start.schema)] = set()
            inner = [start]
            while inner:
                schema, place = inner.pop()
                place = self.place_of(schema, place)
                if isinstance(schema, dict) and "$ref" in schema:
                    target = self.resolve(schema["$ref"], place)
                    if target is not None:
                        below.add(id(target.schema))
                        pending.append(target)
                inner += (Target(each, place) for _, each in subschemas(schema))
        # A node that leads only to ends, directly or through such nodes, is in no circle.
        users: dict[int, list[int]] = {key: [] for key in leads_to}
        for key, targets in leads_to.items():
            for target_id in targets:
                users[target_id].append(key)
        ends = [key for key, targets in leads_to.items() if not targets]
        while ends:
            end = ends.pop()
            del leads_to[end]
            for user in users[end]:
                leads_to[user].discard(end)
                if not leads_to[user]:
                    ends.append(user)
        return frozenset(leads_to)
