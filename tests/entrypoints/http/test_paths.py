"""Paths and bodies that differ from what the documentation has by nothing that matters."""

from __future__ import annotations

import codecs
import json
from typing import Any

import httpx
import pytest

from bough.entrypoints.http.access import Access
from bough.entrypoints.http.app import right_path, tidy_path
from bough.entrypoints.http.json_body import LARGE_BODY_BYTES
from bough.entrypoints.http.routes import ROUTES
from tests.entrypoints.http.server import MODEL_NAME, RunningServer

COMPLETION: dict[str, Any] = {"prompt": "Hi", "max_tokens": 2}
GENERATE: dict[str, Any] = {"text": "Hi", "sampling_params": {"max_new_tokens": 2}}


@pytest.mark.parametrize("info", [info for info in ROUTES if info.path != "/"], ids=lambda info: info.path)
def test_slashes_too_many_change_nothing(client: httpx.Client, info: Any) -> None:
    path = info.path.replace("{model:path}", MODEL_NAME).replace("{response_id}", "resp_x")
    url = str(client.base_url).rstrip("/")
    method = info.methods[-1] if info.methods[-1] != "DELETE" else "GET"
    # What is sent is refused alike, without an effect: there is no body, and the query parameter is unknown.
    usual = client.request(method, f"{url}{path}?nonsense=1")
    for spelt in (f"{path}/", f"{path}//", f"/{path}", path.replace("/", "//", 2)):
        if "{model" in info.path and not spelt.startswith(path):
            continue  # slashes are part of a model's name
        answer = client.request(method, f"{url}{spelt}?nonsense=1")
        if info.access is Access.CONTROL:  # a proxy that closes it may compare exact paths
            assert answer.status_code == 404, spelt
            continue
        assert (answer.status_code, set(answer.headers)) == (usual.status_code, set(usual.headers)), spelt


def test_the_right_path_is_named(client: httpx.Client) -> None:
    cases = [
        ("/chat/completions", "/v1/chat/completions"),
        ("/completions/", "/v1/completions"),
        ("/models", "/v1/models"),
        ("/v1/v1/chat/completions", "/v1/chat/completions"),
        ("/v1//v1/embeddings", "/v1/embeddings"),
        ("/api/v1/chat/completions", "/v1/chat/completions"),
        ("/openai/v1/responses", "/v1/responses"),
        ("/v1/chat/completions/v1/messages", "/v1/messages"),
        ("/v1/api/chat", "/api/chat"),
        ("/api/api/tags", "/api/tags"),
        ("/v1/generate", "/generate"),
        ("/v1/chat/completion", "/v1/chat/completions"),
        ("/serverinfo", "/server_info"),
    ]
    for wrong, right in cases:
        for method in ("GET", "POST"):
            answer = client.request(method, wrong)
            assert answer.status_code == 404
            error = answer.json()["error"]
            assert f"{right}?" in (error if isinstance(error, str) else error["message"])


def test_no_path_is_named_where_none_resembles(client: httpx.Client) -> None:
    for path in [
        "/nowhere",
        "/v2",
        "/v1",
        "/favicon.ico",
        "/" + "x" * 4000,
        "/x" * 2000 + "/v1/models",
        "/%ff",
        "/a%2f%2fb",
    ]:
        answer = client.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"]["code"] == "not_found"
        assert "did you mean" not in answer.text


def test_paths_are_tidied_and_compared_by_their_segments() -> None:
    assert [tidy_path(path) for path in ("/", "//", "", "/a//b/", "//a")] == ["/", "/", "/", "/a/b", "/a"]
    known = ["/", "/score", "/v1/score", "/v1/models"]
    assert right_path("/x/score", known) == "/score"
    assert right_path("/x/v1/score", known) == "/v1/score"
    assert right_path("/odels", known) is None


def test_a_byte_order_mark_is_passed_over(server: RunningServer, client: httpx.Client) -> None:
    for padding in [0, LARGE_BODY_BYTES]:
        for path, body in (("/v1/completions", COMPLETION), ("/generate", GENERATE), ("/invocations", COMPLETION)):
            content = json.dumps(body).encode() + b" " * padding
            for headers in ({}, {"content-type": "application/json"}):
                answer = client.post(path, content=codecs.BOM_UTF8 + content, headers=headers)
                assert answer.status_code == 200, answer.text
                refused = client.post(path, content=codecs.BOM_UTF8 * 2 + content, headers=headers)
                assert (refused.status_code, refused.json()["error"]["code"]) == (400, "invalid_json")
