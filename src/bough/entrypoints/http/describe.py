"""The API described: as OpenAPI for ``/docs``, and as Markdown for the documentation.

``python -m bough.entrypoints.http.describe`` prints the Markdown.
"""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from bough import __version__
from bough.entrypoints.http.asgi import BODY_TIMEOUT
from bough.entrypoints.http.fields import MAX_ELEMENTS, MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.json_body import MAX_MEMBERS
from bough.entrypoints.http.native.protocol import SAMPLING_PARAMS
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES
from bough.entrypoints.http.openai.protocol import MAX_TOP_LOGPROBS as MAX_OPENAI_TOP_LOGPROBS
from bough.entrypoints.http.routes import ROUTES, RouteInfo
from bough.entrypoints.http.server import MAX_HEAD_BYTES, MAX_HEADERS
from bough.managers.io_struct import (
    MAX_CACHE_KEY_CHARS,
    MAX_RID_CHARS,
    MAX_TOKEN_IDS_LOGPROB,
    MAX_TOP_LOGPROBS,
    UNSUPPORTED_SAMPLING_PARAMS,
)
from bough.sampling.sampling_params import MAX_PARALLEL_SAMPLES, MAX_STOP_STRINGS, SamplingParams

LIMITS: dict[str, str] = {
    "request body": "`--max-body-size`; beyond it 413",
    "request line and headers": f"{MAX_HEAD_BYTES // 1024} KiB, {MAX_HEADERS} headers",
    "silence in the middle of a body": f"{BODY_TIMEOUT:g} s; then 408",
    "prompt and output together": "the context length (`max_model_len` of `/v1/models`)",
    "prompts times `n`": str(MAX_OUTPUTS_PER_REQUEST),
    "fields of a body": str(MAX_MEMBERS),
    "one field, but for lists of token ids": f"{MAX_ELEMENTS} commas and opening brackets outside strings",
    "different `stop_regex` patterns of a batch": str(MAX_STOP_STRINGS),
    "`n`": str(MAX_PARALLEL_SAMPLES),
    "messages of a conversation": str(MAX_MESSAGES),
    "alternatives per token": f"{MAX_OPENAI_TOP_LOGPROBS} on OpenAI routes, {MAX_TOP_LOGPROBS} on `/generate`",
    "`token_ids_logprob`": f"{MAX_TOKEN_IDS_LOGPROB} ids",
    "`rid`": f"{MAX_RID_CHARS} characters",
    "`extra_key`, `cache_salt`": f"{MAX_CACHE_KEY_CHARS} characters",
}
"""Bounds that are not those of a single field, or that one would look for in one place."""

_REF = "#/components/schemas/{name}"
_ERROR_SCHEMA = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "The field at fault."},
                "code": {"type": ["string", "null"], "description": "Machine-readable reason."},
            },
        }
    },
}


def openapi_schema() -> dict[str, Any]:
    """The OpenAPI 3.1 document of the server."""
    # A body may be that of several routes.
    specs = list({id(info.body): info.body for info in ROUTES if info.body is not None}.values())
    _, components = msgspec.json.schema_components([spec.model for spec in specs], ref_template=_REF)
    for spec in specs:
        _complete(components[spec.model.__name__], spec)
    components["Error"] = _ERROR_SCHEMA
    paths: dict[str, Any] = {}
    for info in ROUTES:
        for path in (info.path, *info.aliases):
            shown = path.replace(":path", "")
            paths[shown] = {method.lower(): _operation(info, shown) for method in info.methods}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bough", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components},
    }


def _complete(schema: dict[str, Any], spec: BodySpec[Any]) -> None:
    """Add what the annotations of a body do not say."""
    properties = schema["properties"]
    for name, override in spec.schemas.items():
        properties[name] = {**properties[name], **override}
    for alias, name in spec.aliases.items():
        properties[alias] = {"description": f"Other name of `{name}`."}
    for name, meaning in spec.no_effect.items():
        properties[name] = {"description": f"Accepted without effect. {meaning}"}
    schema["additionalProperties"] = False


def _operation(info: RouteInfo, path: str) -> dict[str, Any]:
    error = {"description": "Error", "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}}
    operation: dict[str, Any] = {"summary": info.summary, "responses": {"200": {"description": "OK"}, "default": error}}
    if info.body is not None:
        reference = {"$ref": _REF.format(name=info.body.model.__name__)}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
    if "{" in path:
        name = path[path.index("{") + 1 : path.index("}")]
        operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}}]
    return operation


def markdown() -> str:
    """Every route and every field, as Markdown."""
    lines = ["# HTTP endpoints", ""]
    lines += ["| path | methods | what |", "|---|---|---|"]
    for info in ROUTES:
        paths = ", ".join(f"`{path.replace(':path', '')}`" for path in (info.path, *info.aliases))
        lines.append(f"| {paths} | {', '.join(info.methods)} | {info.summary} |")
    lines += ["", "`/docs` and `/openapi.json` describe the same on a running server.", ""]
    lines += ['The body of an error is `{"error": {"message", "type", "param", "code"}}` on every route, as at OpenAI;']
    lines += ["SGLang answers with a flat object on its OpenAI routes.", ""]
    described: set[int] = set()
    for info in ROUTES:
        if info.body is not None and id(info.body) not in described:
            described.add(id(info.body))
            lines += _body_section(info, info.body)
    lines += ["## Limits", "", "A request beyond one of these is refused, naming the field.", ""]
    lines += ["| what | at most |", "|---|---|"]
    lines += [f"| {what} | {limit} |" for what, limit in LIMITS.items()]
    lines += ["", "## `sampling_params` of /generate", "", "| field | value | default | what |", "|---|---|---|---|"]
    defaults = {field.name: field.default for field in msgspec.structs.fields(SamplingParams)}
    for name, (value, meaning) in SAMPLING_PARAMS.items():
        lines.append(f"| `{name}` | {value} | `{_json(defaults[name])}` | {meaning} |")
    lines += ["", "Not supported yet; refused, unless null or empty:", ""]
    lines += [f"- `{name}`: {meaning}" for name, meaning in UNSUPPORTED_SAMPLING_PARAMS.items()]
    return "\n".join([*lines, ""])


def _body_section(info: RouteInfo, spec: BodySpec[Any]) -> list[str]:
    (schema,), components = msgspec.json.schema_components([spec.model], ref_template=_REF)
    properties = components[schema["$ref"].rsplit("/", 1)[1]]["properties"]
    lines = [f"## {', '.join(info.methods)} {info.path}", "", "| field | type | default | what |", "|---|---|---|---|"]
    required = {field.name for field in msgspec.structs.fields(spec.model) if field.required}
    for name in get_type_hints(spec.model):
        described = {**properties[name], **spec.schemas.get(name, {})}
        default = "required" if name in required else f"`{_json(described.get('default'))}`"
        lines.append(f"| `{name}` | {_type(described, components)} | {default} | {described.get('description', '')} |")
    lines.append("")
    if spec.aliases:
        lines += [", ".join(f"`{alias}` is another name of `{name}`" for alias, name in spec.aliases.items()) + ".", ""]
    if spec.no_effect:
        lines += ["Accepted without effect:", ""]
        lines += [f"- `{name}`: {meaning}" for name, meaning in spec.no_effect.items()]
        lines.append("")
    if spec.refused:
        lines += ["Not supported yet; refused, unless null or a value that asks for nothing:", ""]
        lines += [f"- `{name}`: {refused.meaning}" for name, refused in spec.refused.items()]
        lines.append("")
    return lines


def _type(schema: dict[str, Any], components: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        fields = components.get(name, {}).get("properties", {})
        return "object: " + ", ".join(f"`{field}`" for field in fields)
    if "anyOf" in schema:
        kinds = [_type(each, components) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(kinds)
    if "enum" in schema:
        return ", ".join(f"`{_json(value)}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(schema.get('items', {}), components)}{_bounds(schema)}"
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: dict[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "exclusiveMaximum": "less than",
        "minLength": "characters: at least",
        "maxLength": "characters: at most",
        "minItems": "entries: at least",
        "maxItems": "entries: at most",
    }
    found = [f"{word} {_json(schema[key])}" for key, word in words.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


if __name__ == "__main__":
    print(markdown())
