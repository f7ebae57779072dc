"""The API as an OpenAPI 3.1 document, made from the table of routes and the declarations of bodies and answers."""

from __future__ import annotations

from typing import Any

import msgspec

from bough import __version__
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.errors import ErrorAnswer
from bough.entrypoints.http.fields import INEFFECTIVE_TYPES, BodySpec
from bough.entrypoints.http.native.protocol import SAMPLING_PARAMS
from bough.entrypoints.http.route import JSON, LINES, TEXT, Route
from bough.entrypoints.http.routes import ROUTES
from bough.managers.io_struct import UNSUPPORTED_SAMPLING_PARAMS
from bough.other_engines import Unsupported
from bough.sampling.sampling_params import SamplingParams

_REF = "#/components/schemas/{name}"
_SAMPLING = "SamplingParams"

STATUSES = {
    400: "The request is wrong; `error.param` names the field.",
    401: "The key is missing or wrong.",
    403: "Closed on a public address without an administrator's key.",
    404: "There is nothing of that name.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The Content-Type is not that of JSON.",
    429: "As many requests with this key as there may be are under way.",
    431: "Request line and headers are too large, or too many.",
    499: "The client has left.",
    500: "The server, or the engine, failed at this request.",
    503: "The server cannot take the request now: it is starting, full, shutting down or broken.",
    504: "The time that the request may take was over before there was anything to answer.",
}
"""Meaning of each error status, on every route."""

_ABOUT = (
    "Text, embeddings and scores over the interfaces of OpenAI, Anthropic and Ollama and a native one. `null` for any "
    "optional field of a request is the same as its absence. Unknown fields are ignored and named in the header "
    "`x-bough-ignored-fields`, unless they look like typos; routes that act on the server refuse them."
)


_LINKS: dict[str, dict[str, dict[str, Any]]] = {
    "post_v1_responses": {
        operation: {"operationId": operation, "parameters": {"response_id": "$response.body#/id"}}
        for operation in (
            *("get_v1_responses_response_id", "delete_v1_responses_response_id"),
            *("post_v1_responses_response_id_cancel", "get_v1_responses_response_id_input_items"),
        )
    },
    "post_open_session": {
        "post_close_session": {"operationId": "post_close_session", "requestBody": {"session_id": "$response.body"}}
    },
    "get_v1_models": {
        "get_v1_models_model": {
            "operationId": "get_v1_models_model",
            "parameters": {"model": "$response.body#/data/0/id"},
        }
    },
}
"""By operation: the operations whose parameters are in its answer."""

_ANYTHING = [
    {"type": ["array", "boolean", "object", "string"]},
    {"type": "number", "minimum": -(2**63), "maximum": 2**63 - 1},
]
_KEY = "key"
"""Name of the one security scheme."""


class Schemas:
    """The JSON schemas of all bodies and answers."""

    def __init__(self) -> None:
        # A body may be that of several routes, and so may an answer.
        specs = list({id(body): body for route in ROUTES for body in route.bodies}.values())
        answers = [kind for route in ROUTES for kind in (*_answers(route), route.events) if kind is not None]
        errors = [kind for route in ROUTES for kind in (route.api.error, route.api.stream_error)]
        inside = [kind for spec in specs for kind in spec.schemas.values() if not isinstance(kind, dict)]
        models = list({str(kind): kind for kind in (*(s.model for s in specs), *answers, *errors, *inside)}.values())
        schemas, self.components = msgspec.json.schema_components(models, ref_template=_REF)
        self._schemas = dict(zip(map(str, models), schemas, strict=True))
        for spec in specs:
            self._complete(self.components[spec.model.__name__], spec)
        for schema in self.components.values():
            schema.pop("additionalProperties", None)  # unknown members are ignored, as unknown fields are
        self.components[_SAMPLING] = _sampling_params_schema()
        for schema in self.components.values():
            for described in schema.get("properties", {}).values():
                if about := self._description(described):
                    described["description"] = about

    def of(self, *kinds: Any) -> dict[str, Any]:
        """Return the schema of one of several types."""
        schemas = [self._schemas[kind] for kind in dict.fromkeys(map(str, kinds))]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def example(self, schema: dict[str, Any]) -> Any:
        """Return the first example that a schema has, or one made of those of its parts."""
        if "examples" in schema:
            return schema["examples"][0]
        if "$ref" in schema:
            return self.example(self._component(schema))
        if "enum" in schema:
            return schema["enum"][0]
        if "anyOf" in schema:
            is_nullable = {"type": "null"} in schema["anyOf"]
            return None if is_nullable else self.example(max(schema["anyOf"], key=lambda each: "$ref" in each))
        if schema["type"] == "object":
            required, properties = schema.get("required", ()), schema.get("properties", {})
            shown = {name: each for name, each in properties.items() if name in required or "examples" in each}
            return {name: self.example(each) for name, each in shown.items()}
        if schema["type"] == "array":
            return [self.example(schema["items"])]
        return {"string": "string", "integer": 0, "number": 0.0, "boolean": False, "null": None}[schema["type"]]

    def _component(self, schema: dict[str, Any]) -> dict[str, Any]:
        component: dict[str, Any] = self.components[schema["$ref"].rsplit("/", 1)[-1]]
        return component

    def _description(self, schema: dict[str, Any]) -> str | None:
        """Return a schema's own description, or that of a type in it: its docstring, which python -OO drops."""
        if "$ref" in schema and "description" not in schema:
            schema = self._component(schema)
        inside = (self._description(each) for each in schema.get("anyOf", ()))
        return schema.get("description") or next(filter(None, inside), None)

    def _complete(self, schema: dict[str, Any], spec: BodySpec[Any]) -> None:
        """Add what the annotations of a body do not say."""
        properties = schema["properties"]
        for name, override in spec.schemas.items():
            if isinstance(override, dict):
                properties[name] = {**properties[name], **override}
            else:
                kept = {key: properties[name][key] for key in ("description", "default") if key in properties[name]}
                properties[name] = {**self.of(override), **kept}
        for name in spec.token_ids & properties.keys():
            _bound_integers(properties[name])
        if "sampling_params" in properties:
            reference = {"$ref": _REF.format(name=_SAMPLING)}
            given = {key: properties["sampling_params"][key] for key in ("description", "default")}
            kinds = [reference, {"type": "array", "items": reference}, {"type": "null"}]
            properties["sampling_params"] = {"anyOf": kinds, **given}
        for alias, name in spec.aliases.items():
            properties[alias] = {**properties[name], "description": f"Other name of `{name}`."}
        for name, translation in spec.translated.items():
            meaning = f"Another server's name of `{translation.field}`, which goes before it."
            properties[name] = {"anyOf": _ANYTHING, "description": meaning, "default": None}
        for name, meaning in spec.no_effect.items():
            kind = msgspec.json.schema(INEFFECTIVE_TYPES[name])
            properties[name] = {**kind, "description": f"Accepted without effect. {meaning}".strip(), "default": None}
        for name, refused in spec.refused.items():
            properties[name] = _refused(refused)
        for name in properties.keys() - set(schema.get("required", ())):
            properties[name] = _nullable(properties[name])


def openapi_schema() -> dict[str, Any]:
    """Return the document."""
    schemas = Schemas()
    paths: dict[str, Any] = {}
    for route in ROUTES:
        for path in route.paths:
            shown = path.replace(":path", "")
            for method in route.methods:
                operation = _operation(route, shown, schemas) | {"operationId": _operation_id(method, shown)}
                paths.setdefault(shown, {})[method.lower()] = operation
    operations = {each["operationId"]: each for path in paths.values() for each in path.values()}
    for name, links in _LINKS.items():
        operations[name]["responses"]["200"]["links"] = links
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bough", "version": __version__, "description": _ABOUT},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas.components, "securitySchemes": {_KEY: {"type": "http", "scheme": "bearer"}}},
    }


def _operation_id(method: str, path: str) -> str:
    words = "_".join(word for word in path.replace("{", "").replace("}", "").split("/") if word)
    return f"{method.lower()}_{words or 'root'}"


def _bound_integers(schema: dict[str, Any]) -> None:
    """Say that token ids are not negative: what decodes many of them sees to that, not their annotation."""
    if schema.get("type") == "integer":
        schema.setdefault("minimum", 0)
    for part in (*schema.get("anyOf", ()), schema.get("items")):
        if isinstance(part, dict):
            _bound_integers(part)


def _refused(field: Unsupported) -> dict[str, Any]:
    instead = f" ({field.instead})" if field.instead else ""
    description = f"Not supported yet{instead}: only null or a value that asks for nothing is accepted."
    return {"enum": [None, *field.neutral], "description": description, "default": None}


def _sampling_params_schema() -> dict[str, Any]:
    """``sampling_params`` of ``/generate``."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(SamplingParams)}
    properties = {}
    for name, schema in SAMPLING_PARAMS.items():
        default = None if defaults[name] == () else defaults[name]
        properties[name] = _nullable({**schema, "default": default})
    for name, refused in UNSUPPORTED_SAMPLING_PARAMS.items():
        properties[name] = _refused(refused)
    return {
        "title": _SAMPLING,
        "description": "How tokens are chosen, and when the output ends.",
        "type": "object",
        "properties": properties,
        "required": [],
        "additionalProperties": False,
    }


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema``, or null."""
    if "anyOf" in schema:
        has_null = any(each.get("type") == "null" for each in schema["anyOf"])
        return schema if has_null else {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "enum" in schema:
        return schema if None in schema["enum"] else {**schema, "enum": [*schema["enum"], None]}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    about: dict[str, Any] = {key: schema[key] for key in ("description", "default") if key in schema}
    kind = {key: value for key, value in schema.items() if key not in about}
    return {"anyOf": [kind, {"type": "null"}], **about} if kind else schema


def _answers(route: Route) -> tuple[Any, ...]:
    return route.answer if isinstance(route.answer, tuple) else (route.answer,)


def _operation(route: Route, path: str, schemas: Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "tags": ["probes" if route.is_probe else route.api.name],
        "responses": _responses(route, path, schemas),
    }
    if route.access is not Access.OPEN:
        operation["security"] = [{_KEY: []}, {}]
    if route.bodies:
        media = {"schema": schemas.of(*(spec.model for spec in route.bodies)), "example": route.bodies[0].example}
        operation["requestBody"] = {
            "required": not any(spec.may_be_empty for spec in route.bodies),
            "content": {JSON: media},
        }
    parameters: list[dict[str, Any]] = [
        {"name": each.name, "in": "query", "required": False, "schema": each.schema, "description": each.description}
        for each in route.query
    ]
    if "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        parameters.append(
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "description": "Its id."}
        )
    if parameters:
        operation["parameters"] = parameters
    return operation


def _event_schema(route: Route, event: dict[str, Any]) -> dict[str, Any]:
    """A server-sent event. Those with names end with an event that says how all went, the others with ``[DONE]``."""
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": event}
    if not route.has_named_events:
        return {
            "description": "A server-sent event; the last one says `[DONE]`, also after an error.",
            "type": "object",
            "properties": {"data": {"anyOf": [{"const": "[DONE]"}, data]}},
            "required": ["data"],
        }
    name = {"type": "string", "description": "The same as `type` in the data."}
    return {
        "description": "A server-sent event. There is no `[DONE]`: the type of the last event tells that it is one.",
        "type": "object",
        "properties": {"event": name, "data": data},
        "required": ["event", "data"],
    }


def _responses(route: Route, path: str, schemas: Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if route.answer is not None:
        content[JSON] = {"schema": schemas.of(*_answers(route))}
        if route.answer not in (Any, str):
            content[JSON]["example"] = schemas.example(schemas.of(_answers(route)[0]))
    for kind in (*route.also, *((TEXT,) if route.answer is None else ())):
        content[kind] = {"schema": {"type": "string"}}
    if route.events is not None:
        errors = () if route.has_error_events else (route.api.stream_error,)
        event = schemas.of(route.events, *errors)
        is_lines = route.api.stream_type == LINES
        schema = {"description": "An object a line.", **event} if is_lines else _event_schema(route, event)
        content[route.api.stream_type] = {"schema": schema}
    statuses = {400, 431, 500, 503}
    if route.bodies:
        statuses |= {408, 413, 504}
    if route.is_limited:
        statuses.add(429)
    if route.needs_json:
        statuses.add(415)
    if route.access is not Access.OPEN:
        statuses.add(401)
    if route.access is Access.CONTROL:
        statuses.add(403)
    if "{" in path:
        statuses.add(404)
    statuses.update(route.statuses)
    responses: dict[str, Any] = {"200": {"description": "All went well.", "content": content}}
    for status in sorted(statuses):
        # What is refused before its route is known, is refused in OpenAI's words.
        shape: dict[str, Any] = {JSON: {"schema": schemas.of(route.api.error, ErrorAnswer)}}
        if status in route.text_statuses:
            shape[TEXT] = {"schema": {"type": "string"}}
        responses[str(status)] = {"description": STATUSES[status], "content": shape}
    return responses
