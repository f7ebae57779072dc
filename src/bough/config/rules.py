"""What values of options have to be like, where type and range do not say it.

Each rule returns what is wrong with a value (``"must be a power of two"``), or ``None``.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from bough.errors import BadRequest

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://([a-z0-9._~-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
"""In lower case, without a path, as browsers write it."""
_ROOT_PATH = re.compile(r"(/[\w.~-]+)+", re.ASCII)
_WITHOUT_SCHEME = re.compile(r"(\[[0-9a-fA-F:.]+\]|[\w.~-]+)(:[0-9]+)?(/.*)?")


def fraction(value: float) -> str | None:
    """A part of something."""
    return None if 0.0 < value < 1.0 else "must be between 0 and 1, both excluded"


def positive(value: float) -> str | None:
    """More than nothing."""
    return None if value > 0.0 else "must be greater than 0"


def longer_than_heartbeats(value: float) -> str | None:
    """Longer than parts of the server are silent anyway, which is up to 1.25 s."""
    return None if value >= 1.5 else "must be at least 1.5"


def power_of_two(value: int) -> str | None:
    """A number that is at least 1 already."""
    return None if value & (value - 1) == 0 else "must be a power of two"


def dotted_name(value: str) -> str | None:
    """Name of a class and its module."""
    parts = value.split(".")
    return None if len(parts) > 1 and all(map(str.isidentifier, parts)) else "must be like package.module.Class"


def chunk_size(value: int) -> str | None:
    """Tokens, or -1."""
    return None if value == -1 or value >= 1 else "must be at least 1 token, or -1 for whole prompts"


def sampling_params(value: dict[str, Any]) -> str | None:
    """Sampling parameters; what depends on the vocabulary is not checked."""
    from bough.sampling.sampling_params import SamplingParams  # only where the option is used: keeps --help fast

    try:
        SamplingParams.from_dict(value, named=str).validate(None, named=str)
    except BadRequest as error:
        return f"must hold valid sampling parameters ({error.message})"
    return None


def preferred_sampling_params(value: dict[str, Any]) -> str | None:
    """Sampling parameters of requests that do not set them."""
    if value.get("n", 1) != 1:
        return "must not set n: how many outputs there are is for each request to say"
    return sampling_params(value)


def sendable_key(value: str) -> str | None:
    """A key that clients are to send in a header."""
    is_sendable = value.isascii() and value.isprintable() and " " not in value
    return None if is_sendable else "must be printable ASCII without blanks, so that it can be sent in a header"


def root_path(value: str) -> str | None:
    """Return a URL path without its trailing slash."""
    return None if _ROOT_PATH.fullmatch(value) else "must be a path like /llm, without a slash at its end"


def origins(value: str) -> str | None:
    """Origins of web pages, as browsers send them (RFC 6454), with commas between them; or ``*``."""
    wrong = [each for each in split_origins(value) if not _ORIGIN.fullmatch(each)]
    if value != "*" and (wrong or not split_origins(value)):
        return "must be origins like https://chat.example.org:8443, with commas between them, or *"
    return None


def split_origins(value: str) -> list[str]:
    """The origins of such a list."""
    return [each.strip() for each in value.split(",") if each.strip()]


def http_url(value: str) -> str | None:
    """Where to send something over HTTP."""
    return None if re.match(r"https?://[^/]", value) else "must begin with http:// or https:// and a host"


def with_scheme(url: str) -> str:
    """Where a server is reached, of which ``http://`` may have been left out."""
    return f"http://{url}" if _WITHOUT_SCHEME.fullmatch(url) else url


def server_url(value: str) -> str | None:
    """Where a server is reached over HTTP, for :func:`with_scheme`."""
    try:
        parts = urlsplit(with_scheme(value))
        host, _ = parts.hostname or "", parts.port  # each raises ValueError for what cannot be one
        is_address = parts.scheme in ("http", "https") and bool(host.encode("idna")) and " " not in host
    except ValueError:
        is_address = False
    return None if is_address else "must look like http://host:port"


def metrics_prefix(value: str) -> str | None:
    """What Prometheus allows a name to begin with."""
    if re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", value):
        return None
    return "must be made of letters, digits, colons and underscores, and not begin with a digit"


def regular_expression(value: str) -> str | None:
    """A pattern in Python's notation."""
    try:
        re.compile(value)
    except re.error as error:
        return f"must be a regular expression ({error})"
    return None


def tool_call_parser(value: str) -> str | None:
    """A format of tool calls."""
    from bough.parsers.dialect import AUTO, NONE, tool_format_names  # only where the option is used: keeps --help fast

    return _one_of(value, (AUTO, NONE, *tool_format_names()))


def reasoning_parser(value: str) -> str | None:
    """A format of thoughts."""
    from bough.parsers.dialect import AUTO, NONE, reasoning_format_names

    return _one_of(value, (AUTO, NONE, *reasoning_format_names()))


def _one_of(value: str, known: tuple[str, ...]) -> str | None:
    from bough.config.options import did_you_mean

    if value in known:
        return None
    meant = did_you_mean(value, known).removeprefix("; ")
    return f"must be one of {', '.join(known)}" + (f" ({meant})" if meant else "")
