"""How errors look in each dialect."""

from __future__ import annotations

import json

from bough.entrypoints.http.errors import AnthropicErrors, OllamaErrors, OpenAIErrors
from bough.errors import BadRequest, RequestFailed


def test_anthropic_has_a_word_for_every_status() -> None:
    cases = [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (408, "request_timeout_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (501, "api_error"),
        (503, "overloaded_error"),
    ]
    for status, kind in cases:
        body = json.loads(AnthropicErrors().body(RequestFailed("no", status_code=status)))
        assert body == {"type": "error", "error": {"type": kind, "message": "no"}}


def test_the_others_have_one_form() -> None:
    error = BadRequest("no", param="x")
    assert json.loads(OpenAIErrors().body(error))["error"]["code"] == "invalid_value"
    assert json.loads(OllamaErrors().body(error)) == {"error": "no"}
