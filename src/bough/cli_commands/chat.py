"""``bough chat``: talk with a model in the terminal."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import sys
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bough.cli_commands.terminal_markdown import DIM, PLAIN, MarkdownStream, harmless
from bough.config import rules
from bough.config.command_line import (
    CommandParser,
    add_config_option,
    add_options,
    flag_as_typed,
    given_options,
)
from bough.config.options import OptionTable, did_you_mean, option, options_of
from bough.config.server_args import ServerArgs
from bough.config.user_paths import user_path
from bough.entrypoints.http.access import own_key, read_keys
from bough.entrypoints.runtime import RuntimeEndpoint
from bough.errors import BadRequest, BoughError, ConfigError, RequestFailed, TooManyRequests

FAILED_STATUS = 1

chat_option = partial(option, group="Chat")

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

_ARGUMENTS = {"/system": "a text: /system TEXT", "/save": "the name of a file: /save FILE"}
"""What commands do not do without."""

_MOST_REMEMBERED_QUESTIONS = 1000
_QUOTES = '"""'

_PASTE_SECONDS = 0.02
"""Lines that come this soon after another one were pasted with it, where readline does not tell."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatArgs(OptionTable):
    """Whom to talk with, and how."""

    url: str | None = chat_option(
        None,
        help="A running server to talk with.",
        metavar="URL",
        aliases=("base-url",),
        default_text="a server of its own, for as long as the chat lasts",
        rule=rules.server_url,
    )
    ca_cert: str | None = chat_option(
        None,
        help="With --url: certificates to trust, in PEM.",
        metavar="FILE",
        default_text="the system's",
    )
    system: str | None = chat_option(None, help="System message.")
    max_tokens: int | None = chat_option(
        None,
        help="Most tokens in an answer.",
        unit="tokens",
        default_text="the server's",
        minimum=1,
        aliases=("max-new-tokens",),
        short="n",
    )
    temperature: float | None = chat_option(
        None, help="0 always takes the likeliest token.", default_text="the model's", minimum=0.0
    )
    thinking: Literal["on", "off"] | None = chat_option(
        None, help="Whether the model thinks before it answers.", default_text="the model's"
    )
    plain: bool = chat_option(
        False, help="Show answers as they are written, without rendering markdown or escape sequences."
    )
    history_file: str | None = chat_option(
        None,
        help="Where a terminal's questions are remembered for the next chat; `none`: nowhere.",
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


class ChatServer(RuntimeEndpoint):
    """A server with the OpenAI interface.

    Methods raise as those of :class:`RuntimeEndpoint`, and :class:`RequestFailed` if the answer has not OpenAI's form.
    """

    def first_model(self) -> str:
        """Name of the first model that the server lists."""
        with self._as_openai():
            return str(self.get("/v1/models")["data"][0]["id"])

    def pieces(self, body: dict[str, Any]) -> Generator[Piece, None, None]:
        """What is thought and said in answer to ``body``; closing the generator stops the server's work."""
        with contextlib.closing(self.events("/v1/chat/completions", body)) as events, self._as_openai():
            for event in events:
                for choice in event["choices"]:
                    for name in ("reasoning_content", "content"):
                        if text := choice["delta"].get(name):
                            if not isinstance(text, str):
                                raise TypeError(f"{name} is no text")
                            yield Piece(text, is_thought=name == "reasoning_content")

    @contextlib.contextmanager
    def _as_openai(self) -> Iterator[None]:
        try:
            yield
        except (AttributeError, LookupError, TypeError) as error:
            reason = f"{self.base_url} does not answer as OpenAI's interface does"
            raise RequestFailed(f"{reason}: {type(error).__name__}: {error}") from None


class Conversation:
    """The messages so far, and the server that answers them."""

    def __init__(
        self, server: ChatServer, model: str, *, system: str | None = None, fields: dict[str, Any] | None = None
    ) -> None:
        self._server = server
        self._fields = {**(fields or {}), "model": model}
        self.messages: list[dict[str, str]] = []
        self._unanswered: str | None = None
        self.reset(system)

    def reset(self, system: str | None = None) -> None:
        """Forget all messages; a ``system`` message, if given, replaces the one from before."""
        kept = [message for message in self.messages if message["role"] == "system"]
        self.messages = kept if system is None else [{"role": "system", "content": system}]
        self._unanswered = None

    @property
    def thinks(self) -> bool | None:
        """Whether the model thinks before it answers; ``None`` if nobody has said so."""
        return self._fields.get("thinking")

    def think(self, wanted: bool) -> None:
        """Whether the model thinks before its next answers."""
        self._fields["thinking"] = wanted

    def last_question(self) -> str | None:
        """The last question, be it that no answer came, or ``None`` if there is none."""
        if self._unanswered is not None:
            return self._unanswered
        if len(self.messages) < 2 or self.messages[-2]["role"] != "user":
            return None
        return self.messages[-2]["content"]

    def undo(self) -> None:
        """Forget the last question, of which there is one, and its answer if it has one."""
        if self._unanswered is None:
            del self.messages[-2:]
        self._unanswered = None

    def ask(self, text: str, *, anew: bool = False) -> Generator[Piece, None, None]:
        """Say something and yield the answer, piece by piece.

        When the generator ends, or is closed in the middle, what was said so far becomes part of the conversation;
        thoughts do not. A question that brings no answer at all is no part of it. Raises as :class:`ChatServer` does.

        Args:
            anew: whether it is the last one again; its answer, if it has one, is not sent and is replaced.
        """
        replaces = anew and self._unanswered is None
        earlier = self.messages[:-2] if replaces else self.messages
        question = {"role": "user", "content": text}
        answer: list[str] = []
        body = {**self._fields, "messages": [*earlier, question]}
        try:
            with contextlib.closing(self._server.pieces(body)) as pieces:
                for piece in pieces:
                    if not piece.is_thought:
                        answer.append(piece.text)
                    yield piece
        finally:
            if answer:
                self.messages = [*earlier, question, {"role": "assistant", "content": "".join(answer)}]
                self._unanswered = None
            elif not replaces:
                self._unanswered = text


class Chat:
    """A conversation at standard input and output; only a terminal gets prompts, styles, thoughts and several lines.

    Only answers go to a standard output that is no terminal; the rest then goes to standard error.

    Args:
        plain: whether markdown stays as it is written, without escape sequences. So it does on a dumb terminal.
        takes_pastes_whole: whether ``input()`` returns a text of several lines that is pasted at once.

    Attributes:
        status: to exit with; not 0 if a question failed that nobody at a terminal could ask again.
    """

    def __init__(self, conversation: Conversation, *, plain: bool = False, takes_pastes_whole: bool = False) -> None:
        self.status = 0
        self._conversation = conversation
        self._asks_terminal = sys.stdin.isatty()
        self._answers_terminal = sys.stdout.isatty()
        self._is_styled = self._answers_terminal and not plain and os.environ.get("TERM") != "dumb"
        self._in_colour = not os.environ.get("NO_COLOR")  # https://no-color.org: if it is there and not empty
        self._takes_pastes_whole = takes_pastes_whole

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
                    _notice()
                return
            except KeyboardInterrupt:
                if not self._asks_terminal:
                    raise
                _notice("\n(/exit or Ctrl-D leaves)")
                continue
            except UnicodeError as error:
                if not self._asks_terminal:
                    raise ConfigError(f"standard input cannot be read: {error}") from None
                _notice(f"(this cannot be read: {error})")
                continue
            if text.startswith("/") and self._asks_terminal and not is_quoted:
                if not self._obey(text):
                    return
            elif text:
                self._answer(text)

    def _read(self) -> Entry:
        """A question or a command. Raises EOFError at the end of the input."""
        if not self._asks_terminal:
            return Entry(self._line("").strip())
        line = self._line("> ")
        try:
            return self._read_on(line)
        except EOFError:
            _notice("\n(dropped)")
            return Entry("")

    def _read_on(self, line: str) -> Entry:
        """What ``line`` begins, with the lines that belong to it. Raises EOFError if there is no end of it."""
        if line.lstrip().startswith(_QUOTES):
            lines = [line.lstrip().removeprefix(_QUOTES)]
            while not lines[-1].rstrip().endswith(_QUOTES):
                lines.append(self._line("… "))
            lines[-1] = lines[-1].rstrip().removesuffix(_QUOTES)
            return Entry("\n".join(lines).strip("\n"), is_quoted=True)
        is_pasted = "\n" in line.strip()
        while True:
            if line.endswith("\\"):
                line = line[:-1] + "\n" + self._line("… ")
            elif line and not line.startswith("/") and not self._takes_pastes_whole and _is_input_waiting():
                line += "\n" + self._line("… ")
                is_pasted = True
            else:
                return Entry(line.strip(), is_quoted=is_pasted)

    def _line(self, prompt: str) -> str:
        if not self._answers_terminal and prompt:
            print(prompt, end="", file=sys.stderr, flush=True)
            prompt = ""
        line = input(prompt)
        line.encode()  # in the locale C.UTF-8, bytes that are no text are read as lone surrogates
        return line

    def _obey(self, line: str) -> bool:
        """Carry out a command; ``False`` means to leave."""
        command, _, argument = line.partition(" ")
        argument = argument.strip()
        if command == "/exit":
            return False
        if command == "/reset":
            self._conversation.reset()
            _notice("(forgotten)")
        elif command == "/system" and argument:
            self._conversation.reset(argument)
            _notice("(a new conversation)")
        elif command == "/think" and argument in ("on", "off"):
            self._conversation.think(argument == "on")
            _notice(f"(thinking is {argument})")
        elif command == "/think":
            so_far = {None: "as the model has it", True: "on", False: "off"}[self._conversation.thinks]
            _notice(f"(thinking is {so_far}; say /think on or /think off)")
        elif command == "/save" and argument:
            _notice(_save(self._conversation.messages, user_path(argument)))
        elif command in _ARGUMENTS:
            _notice(f"({command} needs {_ARGUMENTS[command]})")
        elif command in ("/undo", "/retry"):
            question = self._conversation.last_question()
            if question is None:
                _notice("(nothing has been asked yet)")
            elif command == "/retry":
                self._answer(question, anew=True)
            else:
                self._conversation.undo()
                _notice("(forgotten)")
        elif command in COMMANDS:
            _notice(HELP)
        else:
            _notice(f"no such command{did_you_mean(command, COMMANDS)}")
        return True

    def _answer(self, question: str, *, anew: bool = False) -> None:
        pieces = self._conversation.ask(question, anew=anew)
        markdown = MarkdownStream(in_colour=self._in_colour)
        dim, plain = (DIM, PLAIN) if self._is_styled else ("", "")
        begun = thinking = False
        failure: BoughError | None = None
        ending = "\n"
        try:
            for piece in pieces:
                begun = True
                if piece.is_thought:
                    if self._answers_terminal:
                        print(("" if thinking else dim) + harmless(piece.text), end="", flush=True)
                        thinking = True
                    continue
                if thinking:
                    print(f"{plain}\n", end="")
                    thinking = False
                print(markdown.feed(piece.text) if self._is_styled else self._as_is(piece.text), end="", flush=True)
        except KeyboardInterrupt:
            pieces.close()
            if not self._asks_terminal:
                raise
            ending = " (stopped)\n"
        except BoughError as error:
            failure = error
            ending = "\n" if begun else ""
        finally:  # however an answer ends, nothing of it is lost and the terminal gets its own style back
            print((plain if thinking else "") + markdown.end(), end=ending, flush=True)
        if failure is not None:
            if not self._asks_terminal:
                if not isinstance(failure, (BadRequest, TooManyRequests)):
                    raise failure
                self.status = FAILED_STATUS
            print(harmless(str(failure)), file=sys.stderr)

    def _as_is(self, text: str) -> str:
        return harmless(text) if self._answers_terminal else text


def _save(messages: list[dict[str, str]], path: Path) -> str:
    """Write a conversation to a new file; what to say about it."""
    # A lone surrogate, which UTF-8 cannot hold, becomes its escape, which JSON has, too.
    content = (json.dumps({"messages": messages}, indent=2, ensure_ascii=False) + "\n").encode(
        errors="backslashreplace"
    )
    shown = harmless(str(path))
    try:
        with path.open("xb") as file:
            try:
                file.write(content)
                file.flush()
            except OSError:
                path.unlink(missing_ok=True)  # half of it would be in the way of the next try
                raise
    except (OSError, ValueError) as error:  # the latter of a null byte
        return f"cannot write {shown}: {getattr(error, 'strerror', None) or error}"
    return f"({len(messages)} messages in {shown})"


def _notice(text: str = "") -> None:
    """Tell the user something that is no answer."""
    print(text, file=sys.stdout if sys.stdout.isatty() else sys.stderr)


def _is_input_waiting() -> bool:
    return bool(select.select([sys.stdin], [], [], _PASTE_SECONDS)[0])


def _readline() -> Any:
    """Return the module that edits lines of a terminal, where there are both."""
    try:
        import readline
    except ImportError:
        return None
    return readline if sys.stdin.isatty() else None


def _takes_pastes_whole() -> bool:
    """Have readline, where it is the GNU one and the terminal marks what is pasted, take that as one text."""
    readline = _readline()
    is_capable = readline is not None and not _is_libedit(readline) and os.environ.get("TERM", "dumb") != "dumb"
    if is_capable and sys.stdout.isatty():
        readline.parse_and_bind("set enable-bracketed-paste on")  # which Python turns off
        return True
    return False


@contextlib.contextmanager
def _remembered_questions(history_file: str | None) -> Iterator[None]:
    """Line editing for ``input()``, with the questions of earlier chats, where there is a terminal and readline."""
    readline = _readline()
    if readline is None or history_file == "none":
        yield
        return
    if history_file is None:
        history_file = f"{os.environ.get('XDG_STATE_HOME') or '~/.local/state'}/bough/chat-history"
    path = user_path(history_file)
    known: int | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        if path.stat().st_size:  # libedit cannot read what is empty
            readline.read_history_file(path)
        readline.set_history_length(_MOST_REMEMBERED_QUESTIONS)
        known = readline.get_current_history_length()
    except OSError as error:
        print(f"bough: questions are not remembered: {path}: {error.strerror}", file=sys.stderr)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # gone since it was read: nothing to do about it where a chat ends
            if known is not None and hasattr(readline, "append_history_file") and not _is_libedit(readline):
                # Not all of it anew: another chat may have added its own meanwhile.
                readline.append_history_file(readline.get_current_history_length() - known, path)
            elif known is not None:
                readline.write_history_file(path)


def _is_libedit(readline: Any) -> bool:
    """Return whether libedit stands in for GNU readline; it does not append to a file of questions."""
    return getattr(readline, "backend", "") == "editline" or "libedit" in (readline.__doc__ or "")


def main(argv: list[str]) -> int:
    """Run ``bough chat``."""
    parser = CommandParser(
        prog="bough chat",
        usage="bough chat [--url URL] [flags]",
        description="Talk with a model. Without --url a server is started, which the flags of bough serve are for.",
        stray="a model is named with --model, a server with --url",
        epilog="In the chat: " + HELP.replace(".\n", "\n").replace("\n", "; "),
    )
    add_config_option(parser)
    add_options(parser, ChatArgs)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    args = ChatArgs(**given_options(namespace, ChatArgs))
    server_options = given_options(namespace, ServerArgs, config=namespace.config)
    if args.url is not None:
        _refuse_server_options(server_options, argv, namespace.config)
        keys = read_keys(server_options.get("api_key"), server_options.get("api_key_file"), "api_key_file")
        url = rules.with_scheme(args.url).rstrip("/").removesuffix("/v1")  # which other clients want in it
        return _run(args, ChatServer(url, keys[0] if keys else None, args.ca_cert or True))
    if args.ca_cert is not None:
        raise ConfigError("--ca-cert is for a server that runs already (--url)", param="ca_cert")
    from bough import Runtime

    print("Starting a server …", file=sys.stderr)
    runtime = Runtime(launch_timeout=math.inf, **server_options)
    try:
        # Its socket was bound by this process: whose server it is needs no certificate.
        return _run(args, ChatServer(runtime.url, own_key(runtime.server_args), verify=False))
    finally:
        runtime.shutdown()


def _refuse_server_options(given: dict[str, Any], argv: list[str], config: str | None) -> None:
    """Raise :class:`ConfigError` for what a server that runs already has been told when it started."""
    unused = set(given) - {"log_level", "api_key", "api_key_file"}
    flags = [flag_as_typed(each, argv, config=config) for each in options_of(ServerArgs) if each.name in unused]
    if flags:
        model = "; it has the model that it was started with" if "model_path" in unused else ""
        raise ConfigError(f"{', '.join(flags)} cannot be set for a server that runs already (--url){model}")


def _run(args: ChatArgs, server: ChatServer) -> int:
    model = server.first_model()
    if sys.stdin.isatty():
        _notice(f"Talking with {harmless(model)}. /help lists the commands.")
    conversation = Conversation(server, model, system=args.system, fields=args.request_fields())
    with _remembered_questions(args.history_file):
        chat = Chat(conversation, plain=args.plain, takes_pastes_whole=not args.plain and _takes_pastes_whole())
        chat.talk()
    return chat.status
