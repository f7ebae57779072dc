"""/docs, /openapi.json and docs/endpoints.md say what the field tables say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import msgspec
import schemathesis

from bough.entrypoints.http.native.protocol import SAMPLING_PARAMS
from bough.entrypoints.http.openapi import openapi_schema
from bough.entrypoints.http.routes import ROUTES
from bough.managers.io_struct import UNSUPPORTED_SAMPLING_PARAMS
from bough.sampling.sampling_params import SamplingParams
from endpoint_pages import limits_markdown, markdown


def test_every_route_and_field_is_in_the_openapi_document(client: httpx.Client) -> None:
    schema = client.get("/openapi.json").json()
    assert schema == msgspec.json.decode(msgspec.json.encode(openapi_schema()))
    for info in ROUTES:
        for path in info.paths:
            operations = schema["paths"][path.replace(":path", "")]
            methods = {method for each in ROUTES if path in each.paths for method in each.methods}
            assert {method.upper() for method in operations} == methods
            assert all(operations[method.lower()]["summary"] == info.summary != "" for method in info.methods)
        if info.body is not None:
            properties = schema["components"]["schemas"][info.body.model.__name__]["properties"]
            assert set(info.body.names) == set(properties)
            assert all(described.get("description") for described in properties.values())


def test_ranges_are_in_the_openapi_document() -> None:
    properties = openapi_schema()["components"]["schemas"]["ChatCompletionRequest"]["properties"]
    assert properties["n"]["maximum"] == 128
    assert properties["presence_penalty"]["anyOf"][0]["minimum"] == -2


def test_methods_of_a_path_are_described_each_by_itself() -> None:
    path = openapi_schema()["paths"]["/v1/responses/{response_id}"]
    told = {method: path[method]["responses"]["200"]["content"] for method in ("get", "delete")}
    assert set(told["get"]) == {"application/json", "text/event-stream"}
    assert set(told["delete"]) == {"application/json"}
    assert told["delete"]["application/json"]["example"]["deleted"] is True
    named = {method: [each["name"] for each in path[method]["parameters"]] for method in told}
    assert named == {"get": ["stream", "starting_after", "response_id"], "delete": ["response_id"]}


def test_a_wrong_method_is_told_all_that_the_path_has(client: httpx.Client) -> None:
    for path, allowed in (("/v1/responses/resp_x", "DELETE, GET, HEAD"), ("/generate", "POST, PUT")):
        answer = client.patch(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


def test_content_types_that_few_get_are_described(client: httpx.Client) -> None:
    paths = openapi_schema()["paths"]
    for path, kind in (("/", "text/html"), ("/v1/loads?format=prometheus", "text/plain")):
        answer = client.get(path, headers={"accept": kind})
        assert answer.headers["content-type"].startswith(kind)
        told = paths[path.split("?")[0]]["get"]["responses"]["200"]["content"]
        assert set(told) == {"application/json", kind}


def test_a_body_is_required_where_its_absence_is_refused(client: httpx.Client) -> None:
    document = openapi_schema()
    for info in ROUTES:
        if info.bodies:
            operation = document["paths"][info.path][info.methods[0].lower()]
            answer = client.request(info.methods[0], info.path, headers={"content-type": "application/json"})
            is_missed = "body is empty" in answer.text or "this model" in answer.text  # which some look at first
            assert operation["requestBody"]["required"] is is_missed, (info.path, answer.text)


def test_every_field_is_in_the_markdown() -> None:
    text = markdown()
    for info in ROUTES:
        if info.body is not None:
            for name in info.body.names:
                assert f"`{name}`" in text
    for name in UNSUPPORTED_SAMPLING_PARAMS:
        assert f"`{name}`" in text


def test_every_query_parameter_is_in_the_markdown() -> None:
    text = markdown()
    for info in ROUTES:
        for parameter in info.query:
            assert re.search(rf"^\| `{re.escape(info.path)}`.* \| `{parameter.name}` \| ", text, flags=re.MULTILINE)


def test_values_that_ask_for_nothing_are_told_of_fields_that_are_refused() -> None:
    text = markdown()
    for info in ROUTES:
        if info.body is not None:
            for name, refused in info.body.refused.items():
                values = [f"`{msgspec.json.encode(value).decode()}`" for value in refused.neutral]
                line = re.escape(f"- `{name}`") + "".join(f".*{re.escape(each)}" for each in values)
                assert re.search(f"^{line}", text, flags=re.MULTILINE), name


def test_defaults_of_limits_have_units() -> None:
    text = limits_markdown()
    assert "`--max-url-length` (8 KiB)" in text
    assert "`--session-timeout` (3600 seconds)" in text
    assert "`--max-requests-per-key` (no limit)" in text


def test_every_sampling_parameter_is_described() -> None:
    names = [field.name for field in msgspec.structs.fields(SamplingParams)]
    assert list(SAMPLING_PARAMS) == names


def test_interactive_documentation_is_served(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "openapi.json" in page.text
    assert '<input id="key" type="password"' in page.text
    assert 'options.headers.authorization = "Bearer " + key' in page.text


def test_interactive_documentation_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert not re.findall(r"(?:src|href)=.(?:https?:)?//", page.text)


def test_every_route_describes_its_answers_and_errors() -> None:
    for path, operations in openapi_schema()["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            assert {"200", "400", "431", "500", "503"} <= responses.keys(), path
            for response in responses.values():
                assert response["description"]
                assert response["content"]
            if "requestBody" in operation:
                assert {"408", "413"} <= responses.keys()


def test_document_and_its_schemas_are_valid() -> None:
    document = openapi_schema()
    schemathesis.openapi.from_dict(document).validate()
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_every_request_and_answer_has_an_example_that_fits() -> None:
    document = openapi_schema()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            media = [operation["requestBody"]["content"]] if "requestBody" in operation else []
            media.append(operation["responses"]["200"]["content"])
            for each in (content["application/json"] for content in media if "application/json" in content):
                if each["schema"] in ({}, {"type": "string"}):
                    continue  # what an answer to /invocations looks like depends on its request
                assert each["example"] is not None, path
                whole = {**each["schema"], "components": document["components"]}
                errors = list(jsonschema.Draft202012Validator(whole).iter_errors(each["example"]))
                assert not errors, (path, errors)


def test_every_reference_and_operation_id_is_good() -> None:
    schema = openapi_schema()
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(schema)))
    assert references <= schema["components"]["schemas"].keys()
    ids = [operation["operationId"] for each in schema["paths"].values() for operation in each.values()]
    assert len(set(ids)) == len(ids)


def test_every_field_of_a_body_has_a_type_and_a_default() -> None:
    schemas = openapi_schema()["components"]["schemas"]
    for spec in (info.body for info in ROUTES if info.body is not None):
        schema = schemas[spec.model.__name__]
        for name in spec.names:
            described = schema["properties"][name]
            assert described.keys() & {"type", "anyOf", "enum", "$ref", "allOf"}, (spec.model, name)
            assert "default" in described or name in schema["required"], (spec.model, name)


def members(schema: dict[str, Any], place: str = "") -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Every schema within ``schema``, its place, and whether that is the member of an object."""
    inner = [(f"{place}.{name}", each, True) for name, each in schema.get("properties", {}).items()]
    inner += [(place, each, False) for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, ())]
    inner += [(f"{place}[]", each, False) for each in schema.get("prefixItems", ())]
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            inner.append((f"{place}[]", schema[key], False))
    for where, each, is_member in inner:
        yield where, each, is_member
        yield from members(each, where)


def test_everything_that_has_a_name_has_a_meaning() -> None:
    schemas = openapi_schema()["components"]["schemas"]
    for title, schema in schemas.items():
        said = [(title, schema["description"])]
        # What kind an object is, and who says something, is told by the values that there are.
        named = ((place, each) for place, each, is_named in members(schema) if is_named and "enum" not in each)
        said += [(title + place, each.get("description", "")) for place, each in named]
        for place, text in said:
            assert len(text.split()) > 1, (place, text)
            assert text.endswith((".", ".)")), (place, text)


def test_numbers_have_a_range() -> None:
    schema = openapi_schema()
    bounds = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const"}
    bodies = {info.body.model.__name__ for info in ROUTES if info.body is not None} | {"SamplingParams"}
    types = [kind for info in ROUTES for body in info.bodies for kind in body.schemas.values()]
    inside = set(re.findall(r"[A-Z]\w+", str(types)))
    for title, component in schema["components"]["schemas"].items():
        whole = [(place, each) for place, each, _ in members(component)]
        free = {
            place
            for place, each in whole
            if re.search("without effect|has no effect|any number", each.get("description", ""), re.IGNORECASE)
        }
        for place, each in whole:
            kinds = each.get("type", ())
            kinds = {kinds} if isinstance(kinds, str) else set(kinds)
            # Scores, vectors and log-probabilities of answers may be any number.
            wanted = {"integer", "number"} if title in bodies | inside else {"integer"}
            if kinds & wanted and place not in free:
                assert each.keys() & bounds, title + place


def test_what_fields_hold_is_described_down_to_their_members() -> None:
    schemas = openapi_schema()["components"]["schemas"]
    for body in (body for info in ROUTES for body in info.bodies):
        for name in body.schemas:
            kinds = json.dumps(schemas[body.model.__name__]["properties"][name])
            assert re.search(r"\$ref|maxLength|maxItems|enum|items", kinds), (body.model, name)


def test_streams_with_named_events_do_not_say_done() -> None:
    for path, named in [("/v1/chat/completions", False), ("/v1/messages", True), ("/v1/responses", True)]:
        content = openapi_schema()["paths"][path]["post"]["responses"]["200"]["content"]
        event = content["text/event-stream"]["schema"]["properties"]
        assert ("event" in event) == named
        assert ("[DONE]" in json.dumps(event)) == (not named)


def test_defaults_keep_to_their_own_schemas() -> None:
    schema = openapi_schema()
    for name, component in schema["components"]["schemas"].items():
        for field, described in component.get("properties", {}).items():
            if "default" in described:
                whole = {**described, "components": schema["components"]}
                errors = list(jsonschema.Draft202012Validator(whole).iter_errors(described["default"]))
                assert not errors, (name, field, errors)
