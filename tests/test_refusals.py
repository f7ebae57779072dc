from __future__ import annotations

import pytest

from bough.refusals import refusal_message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": {"message": "no key", "code": 401}}', "no key"),
        (b'{"error": "the model is missing"}', "the model is missing"),
        (b'{"object": "error", "message": "too long"}', "too long"),
        (b"<html>no", "<html>no"),
        (b"[1]", "[1]"),
        (b"\xff", "\ufffd"),
        (b"", "nothing"),
        (b'{"error": "' + b"x" * 5000 + b'"}', "x" * 1000),
        (b"x" * 5000, "x" * 200),
    ],
)
def test_the_message_is_found_or_the_beginning_shown(body: bytes, message: str) -> None:
    assert refusal_message(body) == message
