"""HTTPS."""

from __future__ import annotations

import ssl
from pathlib import Path
from urllib.parse import urlsplit

from bough.config.server_args import ServerArgs
from bough.config.user_paths import path_kind, user_path
from bough.errors import ConfigError


def tls_context(args: ServerArgs) -> ssl.SSLContext | None:
    """What the server proves its identity with, and asks of its clients; ``None`` for plain HTTP. TLS 1.2 at least.

    Raises:
        ConfigError: if a file is missing or does not hold what it should.
    """
    if args.ssl_certfile is None:
        for name in ("ssl_keyfile", "ssl_keyfile_password", "ssl_ca_certs"):
            if getattr(args, name) is not None:
                raise ConfigError(f"--{name.replace('_', '-')} needs --ssl-certfile", param=name)
        return None
    certificate = _file(args.ssl_certfile, "ssl_certfile")
    key = None if args.ssl_keyfile is None else _file(args.ssl_keyfile, "ssl_keyfile")
    trusted = None if args.ssl_ca_certs is None else _file(args.ssl_ca_certs, "ssl_ca_certs")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION  # it costs the server far more than its clients
    try:
        # With an empty password an encrypted key is refused; with none somebody would be asked at the terminal.
        context.load_cert_chain(certificate, key, args.ssl_keyfile_password or "")
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"--ssl-certfile {args.ssl_certfile} cannot be used with its private key: {_reason(error)}",
            param="ssl_certfile",
        ) from None
    if trusted is not None:
        try:
            context.load_verify_locations(trusted)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(
                f"--ssl-ca-certs {args.ssl_ca_certs} cannot be used: {_reason(error)}", param="ssl_ca_certs"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_tls_context(url: str, verify: bool | str = True) -> ssl.SSLContext | None:
    """How a client finds out whether a server is who it says; ``None`` for plain HTTP.

    Args:
        verify: whether it must prove its identity; a path names the certificates to trust instead of the system's.

    Raises:
        ConfigError: if there are no such certificates, or nothing to use them for.
    """
    file = verify if isinstance(verify, str) else None
    if urlsplit(url).scheme != "https":
        if file is not None:
            raise ConfigError(f"{url} has no certificate that {file} could be for: it begins with no https://")
        return None
    try:
        context = ssl.create_default_context(cafile=None if file is None else user_path(file))
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(f"the certificates in {file} cannot be used: {_reason(error)}") from None
    if verify is False:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _file(text: str, name: str) -> Path:
    path = user_path(text)
    if path_kind(path, name) != "file":
        raise ConfigError(f"--{name.replace('_', '-')} {text} is no file", param=name)
    return path


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    if not reason or "PEM lib" in reason:
        return "it is not in PEM"
    return str(reason).replace("_", " ").lower()
