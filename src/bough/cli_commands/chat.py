"""``bough chat``: talk with a model in the terminal."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from bough.cli_commands.terminal_markdown import DIM, PLAIN, MarkdownStream, harmless
from bough.config import rules
from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, did_you_mean, option
from bough.config.server_args import ServerArgs
from bough.config.user_paths import user_path
from bough.entrypoints.http.access import own_key, read_keys
from bough.entrypoints.http.tls import client_tls_context
from bough.errors import BadRequest, ConfigError, RequestFailed

FAILED_STATUS = 1

CHAT = "Chat"

HELP = """\
/system TEXT  set the system message and start over
/think on     have the model think before it answers; off: have it answer straight away
/retry        have the last question answered anew
/undo         forget the last question and its answer
/reset        forget the conversation
/save FILE    write the conversation to a new file, as JSON
/help         show this
/exit         leave (Ctrl-D too)
\"\"\" begins a text of several lines, which another one ends; a line that ends with \\ goes on in the next.
Ctrl-C stops an answer."""

COMMANDS = ("/system", "/think", "/retry", "/undo", "/reset", "/save", "/help", "/exit")

_CONNECT_SECONDS = 10.0
_MOST_REMEMBERED_QUESTIONS = 1000
_QUOTES = '"""'


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatArgs(OptionTable):
    """Whom to talk with, and how."""

    url: str | None = option(
        None,
        help="A running server to talk with.",
        group=CHAT,
        metavar="URL",
        default_text="a server of its own, for as long as the chat lasts",
        rule=rules.server_url,
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
    thinking: Literal["on", "off"] | None = option(
        None, help="Whether the model thinks before it answers.", group=CHAT, default_text="the model's"
    )
    plain: bool = option(False, help="Show answers as they are written, without rendering markdown.", group=CHAT)
    history_file: str | None = option(
        None,
        help="Where a terminal's questions are remembered for the next chat; `none`: nowhere.",
        group=CHAT,
        metavar="FILE",
        default_text="bough/chat-history in $XDG_STATE_HOME, else in ~/.local/state",
    )

    def request_fields(self) -> dict[str, Any]:
        """What every request says besides the messages."""
        thinking = None if self.thinking is None else self.thinking == "on"
        fields = {"max_tokens": self.max_tokens, "temperature": self.temperature, "thinking": thinking}
        return {name: value for name, value in fields.items() if value is not None}


class Entry(NamedTuple):
    """What the user typed. What stands in quotes is never a command."""

    text: str
    is_quoted: bool = False


class Piece(NamedTuple):
    """A piece of an answer."""

    text: str
    is_thought: bool = False


class ChatServer:
    """A server with the OpenAI interface, reached over one connection per request.

    Every method raises :class:`BadRequest` if the server refuses, and :class:`RequestFailed` if it cannot be reached,
    fails, hangs up or answers in a form that is not OpenAI's.

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

    def stream(self, body: dict[str, Any]) -> Generator[Piece, None, None]:
        """What is thought and said in answer to ``body``; closing the generator stops the server's work."""
        with self._request("POST", "/v1/chat/completions", {**body, "stream": True}) as response:
            for event in _events(response):
                if error := event.get("error"):
                    raise RequestFailed(str(error.get("message", error) if isinstance(error, dict) else error))
                for choice in event["choices"]:
                    for name in ("reasoning_content", "content"):
                        if text := choice["delta"].get(name):
                            if not isinstance(text, str):
                                raise TypeError(f"{name} is no text")
                            yield Piece(text, is_thought=name == "reasoning_content")

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
            try:
                yield response
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                reason = f"{type(error).__name__}: {error}"
                raise RequestFailed(
                    f"{self._url.geturl()} does not answer as OpenAI's interface does: {reason}"
                ) from None
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

    def think(self, wanted: bool) -> None:
        """Whether the model thinks before its next answers."""
        self._fields["thinking"] = wanted

    def last_question(self) -> str | None:
        """The last question that was answered, or ``None`` if there is none."""
        if len(self.messages) < 2 or self.messages[-2]["role"] != "user":
            return None
        return self.messages[-2]["content"]

    def undo(self) -> None:
        """Forget the last question, of which there is one, and its answer."""
        del self.messages[-2:]

    def ask(self, text: str, *, anew: bool = False) -> Generator[Piece, None, None]:
        """Say something and yield the answer, piece by piece.

        When the generator ends, or is closed in the middle, what was said so far becomes part of the conversation;
        thoughts do not. A question that brings no answer at all leaves no trace. Raises as :class:`ChatServer` does.

        Args:
            text: of the question.
            anew: whether question and answer replace the last ones, which are not sent.
        """
        earlier = self.messages[:-2] if anew else self.messages
        question = {"role": "user", "content": text}
        answer: list[str] = []
        body = {**self._fields, "messages": [*earlier, question]}
        try:
            with contextlib.closing(self._server.stream(body)) as pieces:
                for piece in pieces:
                    if not piece.is_thought:
                        answer.append(piece.text)
                    yield piece
        finally:
            if answer:
                self.messages = [*earlier, question, {"role": "assistant", "content": "".join(answer)}]


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


class Chat:
    """A conversation at standard input and output; only a terminal gets prompts, colours, thoughts and several lines.

    Args:
        conversation: to go on with.
        plain: whether markdown stays as it is written.

    Attributes:
        status: to exit with; not 0 if a question failed that nobody at a terminal could ask again.
    """

    def __init__(self, conversation: Conversation, *, plain: bool = False) -> None:
        self.status = 0
        self._conversation = conversation
        self._asks_terminal = sys.stdin.isatty()
        self._answers_terminal = sys.stdout.isatty()
        self._plain = plain

    def talk(self) -> None:
        """Read questions and print answers until the user leaves.

        Raises:
            KeyboardInterrupt: if there is a Ctrl-C and nobody sits at a terminal, who could go on.
            ConfigError: if what stands at standard input is no text.
            RequestFailed: if the server fails and nobody sits at a terminal.
        """
        while True:
            try:
                text, is_quoted = self._read()
            except EOFError:
                if self._asks_terminal:
                    print()
                return
            except KeyboardInterrupt:
                if not self._asks_terminal:
                    raise
                print("\n(/exit or Ctrl-D leaves)")
                continue
            except UnicodeDecodeError as error:
                if not self._asks_terminal:
                    raise ConfigError(f"standard input cannot be read: {error}") from None
                print(f"(this cannot be read: {error})")
                continue
            if text.startswith("/") and not is_quoted:
                if not self._obey(text):
                    return
            elif text:
                self._answer(text)

    def _read(self) -> Entry:
        """A question or a command. Raises EOFError at the end of the input."""
        if not self._asks_terminal:
            return Entry(input("").strip())
        line = input("> ")
        if line.lstrip().startswith(_QUOTES):
            lines = [line.lstrip().removeprefix(_QUOTES)]
            while not lines[-1].rstrip().endswith(_QUOTES):
                lines.append(input("… "))
            lines[-1] = lines[-1].rstrip().removesuffix(_QUOTES)
            return Entry("\n".join(lines).strip("\n"), is_quoted=True)
        while line.endswith("\\"):
            line = line[:-1] + "\n" + input("… ")
        return Entry(line.strip())

    def _obey(self, line: str) -> bool:
        """Carry out a command; ``False`` means to leave."""
        command, _, argument = line.partition(" ")
        argument = argument.strip()
        if command == "/exit":
            return False
        if command == "/reset":
            self._conversation.reset()
            print("(forgotten)")
        elif command == "/system" and argument:
            self._conversation.reset(argument)
            print("(a new conversation)")
        elif command == "/think" and argument in ("on", "off"):
            self._conversation.think(argument == "on")
            print(f"(thinking is {argument})")
        elif command == "/save" and argument:
            print(_save(self._conversation.messages, user_path(argument)))
        elif command in ("/undo", "/retry"):
            question = self._conversation.last_question()
            if question is None:
                print("(nothing has been asked yet)")
            elif command == "/retry":
                self._answer(question, anew=True)
            else:
                self._conversation.undo()
                print("(forgotten)")
        elif command in COMMANDS:
            print(HELP)
        else:
            print(f"no such command{did_you_mean(command, COMMANDS)}")
        return True

    def _answer(self, question: str, *, anew: bool = False) -> None:
        pieces = self._conversation.ask(question, anew=anew)
        markdown = MarkdownStream()
        renders = self._answers_terminal and not self._plain
        begun = thinking = False
        failure: BadRequest | RequestFailed | None = None
        ending = "\n"
        try:
            for piece in pieces:
                begun = True
                if piece.is_thought:
                    if self._answers_terminal:
                        print(("" if thinking else DIM) + harmless(piece.text), end="", flush=True)
                        thinking = True
                    continue
                if thinking:
                    print(f"{PLAIN}\n", end="")
                    thinking = False
                print(markdown.feed(piece.text) if renders else self._as_is(piece.text), end="", flush=True)
        except KeyboardInterrupt:
            pieces.close()
            if not self._asks_terminal:
                raise
            ending = " (stopped)\n"
        except (BadRequest, RequestFailed) as error:
            failure = error
            ending = "\n" if begun else ""
        finally:  # however an answer ends, nothing of it is lost and the terminal gets its own style back
            print((PLAIN if thinking else "") + markdown.end(), end=ending, flush=True)
        if failure is not None:
            if not self._asks_terminal:
                if isinstance(failure, RequestFailed):
                    raise failure
                self.status = FAILED_STATUS
            print(harmless(str(failure)), file=sys.stderr)

    def _as_is(self, text: str) -> str:
        return harmless(text) if self._answers_terminal else text


def _save(messages: list[dict[str, str]], path: Path) -> str:
    """Write a conversation to a new file; what to say about it."""
    try:
        with path.open("x", encoding="utf-8") as file:
            json.dump({"messages": messages}, file, indent=2, ensure_ascii=False)
            file.write("\n")
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return f"({len(messages)} messages in {path})"


@contextlib.contextmanager
def _remembered_questions(history_file: str | None) -> Iterator[None]:
    """Line editing for ``input()``, with the questions of earlier chats, where there is a terminal and readline."""
    if not sys.stdin.isatty():
        yield
        return
    try:
        import readline
    except ImportError:
        yield
        return
    if history_file == "none":
        yield
        return
    if history_file is None:
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        path = user_path(state) / "bough" / "chat-history"
    else:
        path = user_path(history_file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        readline.read_history_file(path)
        readline.set_history_length(_MOST_REMEMBERED_QUESTIONS)
    except OSError as error:
        print(f"bough: questions are not remembered: {path}: {error.strerror}", file=sys.stderr)
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # gone since it was read: nothing to do about it where a chat ends
            readline.write_history_file(path)


def main(argv: list[str]) -> int:
    """Run ``bough chat``."""
    parser = CommandParser(
        prog="bough chat",
        usage="bough chat [--url URL] [flags]",
        description="Talk with a model. Without --url a server is started, which the flags of bough serve are for.",
        epilog="In the chat: " + HELP.replace(".\n", "\n").replace("\n", "; "),
    )
    add_config_option(parser)
    add_options(parser, ChatArgs)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    args = ChatArgs(**given_options(namespace, ChatArgs))
    server_options = given_options(namespace, ServerArgs, config=namespace.config)
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
    if sys.stdin.isatty():
        print(f"Talking with {harmless(model)}. /help lists the commands.")
    conversation = Conversation(server, model, system=args.system, fields=args.request_fields())
    with _remembered_questions(args.history_file):
        chat = Chat(conversation, plain=args.plain)
        chat.talk()
    return chat.status
