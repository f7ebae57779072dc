"""``bough chat``: talk with a model in the terminal."""

from __future__ import annotations

import contextlib
import http.client
import json
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, did_you_mean, option
from bough.config.server_args import ServerArgs
from bough.entrypoints.http.access import own_key, read_keys
from bough.entrypoints.http.tls import client_tls_context
from bough.errors import BadRequest, ConfigError, RequestFailed

CHAT = "Chat"

HELP = """\
/system TEXT  set the system message and start over
/reset        forget the conversation
/exit         leave (Ctrl-D too)
Ctrl-C stops an answer."""

_CONNECT_SECONDS = 10.0


def _url_rule(value: str) -> str | None:
    parts = urlsplit(value)
    return None if parts.scheme in ("http", "https") and parts.hostname else "must look like http://host:port"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatArgs(OptionTable):
    """Whom to talk with, and how."""

    url: str | None = option(
        None,
        help="A running server to talk with.",
        group=CHAT,
        metavar="URL",
        default_text="a server of its own, for as long as the chat lasts",
        rule=_url_rule,
    )
    ca_cert: str | None = option(
        None,
        help="With --url: certificates to trust, in PEM.",
        group=CHAT,
        metavar="FILE",
        default_text="the system's",
    )
    system: str | None = option(None, help="System message.", group=CHAT)
    max_tokens: int | None = option(
        None, help="Most tokens in an answer.", group=CHAT, unit="tokens", default_text="the server's", minimum=1
    )
    temperature: float | None = option(
        None, help="0 always takes the likeliest token.", group=CHAT, default_text="the model's", minimum=0.0
    )

    def request_fields(self) -> dict[str, Any]:
        """What every request says besides the messages."""
        fields = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        return {name: value for name, value in fields.items() if value is not None}


class ChatServer:
    """A server with the OpenAI interface, reached over one connection per request.

    Every method raises :class:`BadRequest` if the server refuses, and :class:`RequestFailed` if it cannot be reached,
    fails or hangs up.

    Args:
        url: of the server.
        api_key: sent with every request.
        verify: as :func:`~bough.entrypoints.http.tls.client_tls_context` has it.
    """

    def __init__(self, url: str, api_key: str | None = None, verify: bool | str = True) -> None:
        self._url = urlsplit(url)
        self._tls = client_tls_context(url, verify)
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def first_model(self) -> str:
        """Name of the first model that the server lists."""
        with self._request("GET", "/v1/models") as response:
            return str(json.loads(response.read())["data"][0]["id"])

    def stream(self, body: dict[str, Any]) -> Generator[str, None, None]:
        """The text of an answer to ``body``, piece by piece; closing the generator stops the server's work."""
        with self._request("POST", "/v1/chat/completions", {**body, "stream": True}) as response:
            for event in _events(response):
                if "error" in event:
                    raise RequestFailed(str(event["error"].get("message", event["error"])))
                for choice in event["choices"]:
                    if content := choice["delta"].get("content"):
                        yield content

    @contextlib.contextmanager
    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        host, port = self._url.hostname or "", self._url.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=_CONNECT_SECONDS)
            if self._tls is None
            else http.client.HTTPSConnection(host, port, timeout=_CONNECT_SECONDS, context=self._tls)
        )
        try:
            connection.connect()
            connection.sock.settimeout(None)  # an answer may take its time; reaching the server may not
            payload = None if body is None else json.dumps(body).encode()
            connection.request(method, self._url.path.rstrip("/") + path, payload, self._headers)
            response = connection.getresponse()
            if response.status != http.client.OK:
                message = _error_message(response.read())
                failure = BadRequest if 400 <= response.status < 500 else RequestFailed
                raise failure(f"the server says: {message} (status {response.status})")
            yield response
        except (OSError, http.client.HTTPException) as error:
            raise RequestFailed(f"no answer from {self._url.geturl()}: {error or type(error).__name__}") from None
        finally:
            connection.close()


class Conversation:
    """The messages so far, and the server that answers them."""

    def __init__(
        self, server: ChatServer, model: str, *, system: str | None = None, fields: dict[str, Any] | None = None
    ) -> None:
        self._server = server
        self._fields = {**(fields or {}), "model": model}
        self.messages: list[dict[str, str]] = []
        self.reset(system)

    def reset(self, system: str | None = None) -> None:
        """Forget all messages; a ``system`` message, if given, replaces the one from before."""
        kept = [message for message in self.messages if message["role"] == "system"]
        self.messages = kept if system is None else [{"role": "system", "content": system}]

    def ask(self, text: str) -> Generator[str, None, None]:
        """Say something and yield the answer, piece by piece.

        When the generator ends, or is closed in the middle, what was said so far becomes part of the conversation.
        A question that brings no answer at all leaves no trace. Raises as :class:`ChatServer` does.
        """
        question = {"role": "user", "content": text}
        answer: list[str] = []
        body = {**self._fields, "messages": [*self.messages, question]}
        try:
            with contextlib.closing(self._server.stream(body)) as pieces:
                for piece in pieces:
                    answer.append(piece)
                    yield piece
        finally:
            if answer:
                self.messages += [question, {"role": "assistant", "content": "".join(answer)}]


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in response:
        if line.startswith(b"data:"):
            data = line[len(b"data:") :].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)
    raise RequestFailed("the server ended the answer in the middle")


def _error_message(body: bytes) -> str:
    try:
        fields = json.loads(body)
        fields = fields.get("error", fields)
        return str(fields["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return body[:200].decode("utf-8", "replace") or "nothing"


def talk(conversation: Conversation) -> None:
    """Read questions from stdin and print answers until the user leaves; only a terminal gets prompts."""
    in_terminal = sys.stdin.isatty()
    while True:
        try:
            line = input("> " if in_terminal else "").strip()
        except (EOFError, KeyboardInterrupt):
            if in_terminal:
                print()
            return
        if line.startswith("/"):
            if not _obey(line, conversation):
                return
        elif line:
            _answer(line, conversation)


def _obey(line: str, conversation: Conversation) -> bool:
    """Carry out a command; ``False`` means to leave."""
    command, _, argument = line.partition(" ")
    if command == "/exit":
        return False
    if command == "/reset":
        conversation.reset()
        print("(forgotten)")
    elif command == "/system" and argument.strip():
        conversation.reset(argument.strip())
        print("(a new conversation)")
    elif command == "/help":
        print(HELP)
    else:
        known = ("/system", "/reset", "/exit", "/help")
        print(f"no such command{did_you_mean(command, known)}" if command not in known else HELP)
    return True


def _answer(line: str, conversation: Conversation) -> None:
    pieces = conversation.ask(line)
    try:
        for piece in pieces:
            print(piece, end="", flush=True)
        print()
    except KeyboardInterrupt:
        pieces.close()
        print(" (stopped)")
    except BadRequest as error:
        print(error, file=sys.stderr)


def main(argv: list[str]) -> int:
    """Run ``bough chat``."""
    parser = CommandParser(
        prog="bough chat",
        usage="bough chat [--url URL] [flags]",
        description="Talk with a model. Without --url a server is started, which the flags of bough serve are for.",
        epilog=HELP.replace("\n", "; "),
    )
    add_config_option(parser)
    add_options(parser, ChatArgs)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    args = ChatArgs(**given_options(namespace, ChatArgs))
    server_options = given_options(namespace, ServerArgs, config=namespace.config)
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (importing it gives input() line editing and history)
    if args.url is not None:
        if unused := sorted(set(server_options) - {"log_level", "api_key", "api_key_file"}):
            raise ConfigError(f"{', '.join(unused)} cannot be set for a server that runs already (--url)")
        keys = read_keys(server_options.get("api_key"), server_options.get("api_key_file"), "api_key_file")
        return _run(args, ChatServer(args.url, keys[0] if keys else None, args.ca_cert or True))
    if args.ca_cert is not None:
        raise ConfigError("--ca-cert is for a server that runs already (--url)", param="ca_cert")
    from bough import Runtime

    print("Starting a server …", file=sys.stderr)
    runtime = Runtime(**server_options)
    try:
        # Its socket was bound by this process: whose server it is needs no certificate.
        return _run(args, ChatServer(runtime.url, own_key(runtime.server_args), verify=False))
    finally:
        runtime.shutdown()


def _run(args: ChatArgs, server: ChatServer) -> int:
    model = server.first_model()
    print(f"Talking with {model}. /help lists the commands.")
    talk(Conversation(server, model, system=args.system, fields=args.request_fields()))
    return 0
