"""Who may call which route: keys, and what is open without any."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
from collections import Counter
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from bough.config import rules
from bough.config.server_args import ServerArgs
from bough.config.user_paths import user_path
from bough.entrypoints.http.cors import CrossOrigin, host_name, is_loopback
from bough.errors import ConfigError, RequestFailed, TooManyRequests

if TYPE_CHECKING:  # it takes uvicorn, which programs that only read keys do without
    from bough.entrypoints.http.chunk_writer import Headers

logger = logging.getLogger(__name__)

_SCHEME = b"bearer "

_TOO_OPEN = stat.S_IRWXO | stat.S_IWGRP
"""Permissions that a file of keys should not have. Its group may read it: Kubernetes mounts secrets like that."""


class Access(Enum):
    """What a route asks of its callers."""

    OPEN = "open"
    """Nothing: probes and metrics, which infrastructure calls."""
    CLIENT = "client"
    """A key, if there are any."""
    CONTROL = "control"
    """It acts on other clients' requests or on the server: an administrator's key. Where there is none it is closed,
    but on a loopback address, where it asks for what :attr:`CLIENT` does."""


class Gate:
    """Compares the keys of requests, in a time that tells nothing about them.

    Of keys only digests are kept.
    """

    def __init__(self, args: ServerArgs) -> None:
        """Read the keys.

        Raises:
            ConfigError: if a file of keys cannot be read, or holds none, or one that no client can send; or if requests
                of a key are limited, and there is none.
        """
        client = [_digest(key.encode()) for key in read_keys(args.api_key, args.api_key_file, "api_key_file")]
        admin = read_keys(args.admin_api_key, args.admin_api_key_file, "admin_api_key_file")
        self._admin = [_digest(key.encode()) for key in admin]
        self._client = [*client, *self._admin] if client else []
        self._is_private = is_loopback(args.host)
        self._cross_origin = CrossOrigin(args)
        self._most_of_a_key = args.max_requests_per_key
        self._under_way: Counter[bytes] = Counter()
        if self._most_of_a_key is not None and not client:
            raise ConfigError(
                "--max-requests-per-key limits nothing without --api-key or --api-key-file",
                param="max_requests_per_key",
            )
        if self._is_private:
            return
        if not self._client:
            logger.warning("Whoever reaches %s may use the model: there is no --api-key.", args.host)
        if not self._admin:
            logger.info("Control routes are closed on %s: there is no --admin-api-key.", args.host)

    def check(self, access: Access, headers: Headers) -> bytes | None:
        """Let a request in, or raise.

        Args:
            headers: of the request, names in lower case.

        Returns:
            what to call its key by in :meth:`begin`; ``None`` if none is asked for.

        Raises:
            RequestFailed: 401 without a right key; 403 if no key would do, or none is asked for and the request is some
                web page's that the browser's user need not even know of, or follows a link that the model may have
                written.
        """
        if access is Access.OPEN:
            return None
        wanted = self._client
        if access is Access.CONTROL:
            wanted = self._admin or self._client
            if not self._admin and not self._is_private:
                raise RequestFailed(
                    "control routes are closed on an address that other machines reach; --admin-api-key or "
                    "--admin-api-key-file opens them to an administrator",
                    status_code=403,
                    code="control_closed",
                )
        if not wanted:
            is_control = access is Access.CONTROL
            if is_control and _is_navigation(headers):
                raise RequestFailed(
                    "a control route is no page: a program may call it, a link or an address bar may not lead here",
                    status_code=403,
                    code="navigation",
                )
            # A foreign name that leads here makes a browser think that its page is ours (DNS rebinding). Of other
            # routes a proxy's name may be asked for, if not by a page: see CrossOrigin.
            is_renamed = is_control and not is_loopback(host_name(dict(headers).get(b"host")))
            if is_renamed or self._cross_origin.is_foreign(headers, is_control=is_control):
                raise RequestFailed(
                    "pages of other sites may not call this server; --cors-allow-origins says which may",
                    status_code=403,
                    code="cross_site",
                )
            return None
        given = _key_of(headers)
        if given is None:
            raise RequestFailed(
                "a key is needed: send it as `Authorization: Bearer KEY`", status_code=401, code="missing_api_key"
            )
        digest = _digest(given)
        # All of them are compared, whichever fits.
        if not sum(hmac.compare_digest(digest, known) for known in wanted):
            message = "this key is not one of the server's"
            if access is Access.CONTROL and self._admin:
                message = "this route needs an administrator's key"
            raise RequestFailed(message, status_code=401, code="invalid_api_key")
        return digest

    def begin(self, key: bytes | None) -> Callable[[], None] | None:
        """Count a request among those of its key.

        Returns:
            what to call, once, when the request is over; ``None`` if nobody counts.

        Raises:
            TooManyRequests: if the key has as many as it may have.
        """
        if self._most_of_a_key is None or key is None:
            return None
        if self._under_way[key] >= self._most_of_a_key:
            raise TooManyRequests(
                f"{self._most_of_a_key} requests with this key are under way (--max-requests-per-key); try again when "
                "one of them is over"
            )
        self._under_way[key] += 1
        return partial(self._end, key)

    def _end(self, key: bytes) -> None:
        self._under_way[key] -= 1


def read_keys(key: str | None, file: str | None, param: str) -> list[str]:
    """A key of its own and those of a file.

    Args:
        file: with one key a line; blank lines do not count.

    Raises:
        ConfigError: if the file cannot be read, or holds no key, or one that cannot be sent.
    """
    keys = [] if key is None else [key]
    if file is None:
        return keys
    flag = "--" + param.replace("_", "-")
    try:
        path = user_path(file)
        text = path.read_text(encoding="utf-8")
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & _TOO_OPEN:
            logger.warning(
                "%s %s is open to other users: chmod 600, or 640 for a group, keeps its keys secret", flag, file
            )
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"{flag} {file} cannot be read: {reason}", param=param) from None
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line]
    if not found:
        raise ConfigError(f"{flag} {file} holds no key", param=param)
    for number, line in enumerate(lines, 1):
        if line and (complaint := rules.sendable_key(line)) is not None:
            raise ConfigError(f"{flag} {file}: the key in line {number} {complaint}", param=param)
    return keys + found


def own_key(args: ServerArgs) -> str | None:
    """A key that opens every route of a server with these options that is not closed, if it asks for any.

    Raises:
        ConfigError: if its file cannot be read.
    """
    admin = read_keys(args.admin_api_key, args.admin_api_key_file, "admin_api_key_file")
    keys = admin or read_keys(args.api_key, args.api_key_file, "api_key_file")
    return keys[0] if keys else None


def _is_navigation(headers: Headers) -> bool:
    """Whether a browser says that it opens a page: by a link, a form or a frame (Fetch Metadata, 2.2)."""
    return (b"sec-fetch-mode", b"navigate") in headers


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _key_of(headers: Headers) -> bytes | None:
    """The key that a request brings, as OpenAI's clients send it or as Anthropic's do."""
    found: bytes | None = None
    for name, value in headers:
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME:
            return value[len(_SCHEME) :].strip()
        if name == b"x-api-key":
            found = value.strip()
    return found
