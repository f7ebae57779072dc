"""The exceptions that Bough raises on purpose.

Each carries what a front end needs to render it (HTTP status, machine-readable code, the field at fault), so that
the mapping to a wire format happens in one place per API dialect and nowhere else.
"""

from __future__ import annotations

NOT_IN_A_FORK = "the engine belongs to the process that made it, of which this one is a fork"
"""Message of the :class:`EngineDead` that calls in a fork of an engine's host raise."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: a command ends as it does at Ctrl-C, with another status."""


class BoughError(Exception):
    """Base of every deliberate error.

    Attributes:
        status_code: the HTTP status that a server answers with.
        code: short machine-readable reason (``"context_length_exceeded"``), or ``None``.
        param: name of the request field or option at fault (``"sampling_params.top_p"``), or ``None``.
    """

    status_code: int = 500

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


class BadRequest(BoughError, ValueError):
    """The request itself is wrong; sending it again will not help."""

    status_code = 400


class NotFound(BoughError):
    """The thing that the request names does not exist."""

    status_code = 404


class PayloadTooLarge(BoughError):
    """The request body exceeds a configured bound."""

    status_code = 413


class Overloaded(BoughError):
    """The server cannot take the request now; trying again later may help.

    Attributes:
        retry_after: seconds after which a retry is sensible.
    """

    status_code = 503

    def __init__(self, message: str, *, retry_after: float = 1.0, code: str | None = "overloaded") -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class TooManyRequests(Overloaded):
    """Whoever asks has as many requests under way as it may have."""

    status_code = 429

    def __init__(self, message: str, *, retry_after: float = 1.0, code: str | None = "rate_limit_exceeded") -> None:
        super().__init__(message, retry_after=retry_after, code=code)


class RequestFailed(BoughError):
    """The engine accepted the request and could not finish it."""

    def __init__(self, message: str, *, status_code: int = 500, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.status_code = status_code


class EngineDead(BoughError):
    """A part of the engine has died or was shut down, or it is another process's; it will answer nothing more."""

    status_code = 503


class StartupError(BoughError):
    """The engine cannot start. The message is one line that says what to do."""


class ConfigError(StartupError, ValueError):
    """An option or a combination of options is invalid."""


class CheckpointError(ConfigError):
    """A checkpoint file is damaged, hostile or not the kind its name says; the command line is not at fault."""


class ModelError(BoughError, ValueError):
    """Weights do not fit the model: an unknown name, a wrong shape or kind of dtype, or something missing."""

    status_code = 400
