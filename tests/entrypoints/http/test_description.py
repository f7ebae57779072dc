"""/docs, /openapi.json and docs/endpoints.md say what the field tables say."""

from __future__ import annotations

import httpx
import msgspec

from bough.entrypoints.http.describe import markdown, openapi_schema
from bough.entrypoints.http.native.protocol import SAMPLING_PARAMS
from bough.entrypoints.http.routes import ROUTES
from bough.managers.io_struct import UNSUPPORTED_SAMPLING_PARAMS
from bough.sampling.sampling_params import SamplingParams


def test_every_route_and_field_is_in_the_openapi_document(client: httpx.Client) -> None:
    schema = client.get("/openapi.json").json()
    assert schema == msgspec.json.decode(msgspec.json.encode(openapi_schema()))
    for info in ROUTES:
        for path in (info.path, *info.aliases):
            operations = schema["paths"][path.replace(":path", "")]
            assert {method.upper() for method in operations} == set(info.methods)
        if info.body is not None:
            properties = schema["components"]["schemas"][info.body.model.__name__]["properties"]
            assert set(info.body.names) - set(info.body.refused) == set(properties)
            assert all(described.get("description") for described in properties.values())


def test_ranges_are_in_the_openapi_document() -> None:
    properties = openapi_schema()["components"]["schemas"]["ChatCompletionRequest"]["properties"]
    assert properties["n"]["maximum"] == 128
    assert properties["presence_penalty"]["minimum"] == -2


def test_every_field_is_in_the_markdown() -> None:
    text = markdown()
    for info in ROUTES:
        if info.body is not None:
            for name in info.body.names:
                assert f"`{name}`" in text
    for name in UNSUPPORTED_SAMPLING_PARAMS:
        assert f"`{name}`" in text


def test_every_sampling_parameter_is_described() -> None:
    assert list(SAMPLING_PARAMS) == [field.name for field in msgspec.structs.fields(SamplingParams)]


def test_interactive_documentation_is_served(client: httpx.Client) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert "/openapi.json" in page.text
