"""``bough generate``: complete a prompt, or answer a file of requests, and exit."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from bough.cli_commands.batch_file import (
    Outcome,
    answer_requests,
    check_requests,
    keep_answers,
    only_writer,
    open_output,
    read_requests,
)
from bough.cli_commands.terminal_markdown import harmless
from bough.config import rules
from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.server_args import ServerArgs
from bough.config.user_paths import path_kind, user_path
from bough.errors import ConfigError, StartupError, Terminated
from bough.observability.progress import Progress
from bough.open_files import allow_many_connections

FAILED_STATUS = 1

STANDARD_INPUT = "-"

prompt_option = partial(option, group="Prompt")
batch_option = partial(option, group="Batch")
sampling_option = partial(option, group="Sampling")


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateArgs(OptionTable):
    """What to complete, and how. The sampling options that are not set are left to the model's own defaults."""

    prompt: tuple[str, ...] = prompt_option(
        (),
        help="Text to complete. Given several times, all are, side by side; their answers are printed in this order.",
        default_text="read from stdin",
        short="p",
    )
    stream: bool = prompt_option(False, help="Print text as it is generated.")
    output_json: bool = prompt_option(False, help="Print the whole answer as JSON, token ids and counts included.")
    input_file: str | None = batch_option(
        None,
        help="Answer the requests in this file, a JSON object a line: lines of OpenAI's batch files, or bodies with "
        "`messages`, `prompt`, `text`, `input_ids` or `input`; `-` for standard input. The sampling flags are for what "
        "they do not set.",
        metavar="FILE",
    )
    output_file: str | None = batch_option(
        None,
        help="Where the answers go, a JSON object a line, as they come. If it holds answers of an earlier run, only "
        "the others are asked for.",
        metavar="FILE",
    )
    max_concurrency: int = batch_option(64, help="Most requests at a time.", unit="requests", minimum=1)
    max_new_tokens: int | None = sampling_option(
        None,
        help="Most tokens to generate.",
        unit="tokens",
        default_text="128; for a file, what each endpoint says",
        minimum=0,
        aliases=("max-tokens",),
        short="n",
    )
    temperature: float | None = sampling_option(
        None, help="0 always takes the likeliest token.", default_text="the model's", minimum=0.0
    )
    top_p: float | None = sampling_option(None, help="Nucleus sampling.", default_text="the model's")
    top_k: int | None = sampling_option(
        None, help="Sample from this many likeliest tokens.", default_text="the model's"
    )
    min_p: float | None = sampling_option(
        None,
        help="Drop tokens less likely than this share of the likeliest.",
        default_text="the model's",
    )
    stop: tuple[str, ...] = sampling_option(
        (),
        help="End the output where this text appears. Given several times: where one of them does.",
        default_text="none",
    )
    sampling_seed: int | None = sampling_option(None, help="Makes the samples reproducible.", default_text="drawn")
    sampling_params: dict[str, Any] | None = sampling_option(
        None,
        help="Any sampling parameters, as JSON; the flags above win.",
        rule=rules.sampling_params,
    )

    def sampling(self) -> dict[str, Any]:
        """The sampling parameters that were set."""
        flags = {
            name: getattr(self, name)
            for name in ("max_new_tokens", "temperature", "top_p", "top_k", "min_p", "sampling_seed")
        }
        flags["stop"] = list(self.stop) or None
        return {**(self.sampling_params or {}), **{name: value for name, value in flags.items() if value is not None}}

    def check_together(self) -> None:
        """Refuse sampling flags that are out of range, and streams that cannot be printed."""
        if (complaint := rules.sampling_params(self.sampling())) is not None:
            raise ConfigError(f"the sampling flags {complaint}")
        if self.stream and self.output_json:
            raise ConfigError("--stream and --output-json exclude each other")
        if self.stream and (self.sampling().get("n") or 1) > 1:
            raise ConfigError("--stream prints one answer; leave out n or --stream")
        if self.stream and len(self.prompt) > 1:
            raise ConfigError("--stream prints one answer; give one --prompt, or leave out --stream")
        if (self.input_file is None) != (self.output_file is None):
            raise ConfigError("--input-file and --output-file go together", param="output_file")
        if self.input_file is not None and (self.prompt or self.stream or self.output_json):
            raise ConfigError("--input-file excludes --prompt, --stream and --output-json", param="input_file")


def main(argv: list[str]) -> int:
    """Run ``bough generate``; the status is not 0 if any request of a file failed."""
    parser = CommandParser(
        prog="bough generate",
        usage="bough generate --prompt TEXT [flags]\n"
        "       bough generate --input-file FILE --output-file FILE [flags]",
        stray="the text to complete is given with --prompt",
        description="Complete a prompt with an engine in this process, print the text and exit; or answer a file of "
        "requests.",
    )
    add_config_option(parser)
    add_options(parser, GenerateArgs)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    args = GenerateArgs(**given_options(namespace, GenerateArgs))
    engine_options = given_options(namespace, ServerArgs, config=namespace.config)
    if args.input_file is not None and args.output_file is not None:
        with _source(args.input_file) as source:
            return _answer_file(source, user_path(args.output_file), args, engine_options)
    return _complete(args, engine_options)


def _complete(args: GenerateArgs, engine_options: dict[str, Any]) -> int:
    prompts = list(args.prompt) or [_prompt_from_stdin()]
    prompt = prompts if len(prompts) > 1 else prompts[0]
    from bough import Engine

    # Deltas are what a terminal needs; the engine's default is all the text so far.
    engine_options["incremental_streaming_output"] = True
    with _told_if_interrupted(lambda: "before the end of the answer"), Engine(**engine_options) as engine:
        if args.stream:
            _print_stream(engine.generate(prompt, args.sampling(), stream=True))
            return 0
        output = engine.generate(prompt, args.sampling())
    outputs = output if isinstance(output, list) else [output]
    for each in outputs:
        print(json.dumps(each) if args.output_json else _shown(each["text"]))
    return 0


def _prompt_from_stdin() -> str:
    prompt = ""
    # A terminal would wait for an end of the input that nobody knows to give.
    if not sys.stdin.isatty():
        try:
            prompt = sys.stdin.read().removesuffix("\n")  # of the last line; a model would begin another one
            prompt.encode()  # in the locale C.UTF-8, bytes that are no text are read as lone surrogates
        except UnicodeError as error:
            raise ConfigError(f"standard input cannot be read: {error}") from None
    if not prompt:
        raise ConfigError("there is nothing to complete: give --prompt TEXT, or the text at standard input")
    return prompt


def _print_stream(events: Iterable[dict[str, Any]]) -> None:
    begun = False
    try:
        for event in events:
            print(_shown(event["text"]), end="", flush=True)
            begun = True
    finally:  # however a text ends, what follows it begins a line of its own
        if begun:
            print(flush=True)


def _shown(text: str) -> str:
    return harmless(text) if sys.stdout.isatty() else text


@contextlib.contextmanager
def _source(name: str) -> Iterator[Path]:
    """Path of the requests, which are read twice: those of standard input are in a file until the end."""
    if name != STANDARD_INPUT:
        yield user_path(name)
        return
    if sys.stdin.isatty():
        raise ConfigError("standard input is a terminal: requests come from a pipe or a file", param="input_file")
    with tempfile.TemporaryDirectory(prefix="bough-") as directory:
        path = Path(directory) / "standard-input"
        with _terminated_as_interrupted():
            try:
                with path.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
            except OSError as error:
                raise StartupError(f"standard input cannot be kept in {path}: {error}") from None
            try:
                yield path
            except ConfigError as error:
                raise ConfigError(error.message.replace(str(path), "standard input"), param=error.param) from None


def _answer_file(source: Path, target: Path, args: GenerateArgs, engine_options: dict[str, Any]) -> int:
    allow_many_connections()
    ids = check_requests(source, args.sampling())
    kind = path_kind(target, "output_file")
    if kind in ("directory", "disk"):
        raise ConfigError(f"{target} is no file", param="output_file")
    if kind is not None and target.samefile(source):
        raise ConfigError("--input-file and --output-file are the same file", param="output_file")
    with only_writer(target):
        return _answer_rest(source, target, ids, args, engine_options)


def _answer_rest(source: Path, target: Path, ids: set[str], args: GenerateArgs, engine_options: dict[str, Any]) -> int:
    done = keep_answers(target) & ids
    left = len(ids) - len(done)
    outcome = Outcome()
    if left:
        from bough import Runtime

        if done:
            print(f"{len(done)} of {len(ids)} requests are answered already", file=sys.stderr)
        progress = Progress("Answering", len(ids), done=len(done), unit="requests", elsewhere="lines")
        # What went into a pipe is not found there again.
        remedy = "" if path_kind(target, "output_file") == "other" else "; the same command goes on from there"

        def how_far() -> str:
            right = progress.done - progress.failed
            return f"{right} of {len(ids)} requests are answered in {target}{remedy}"

        with (
            _told_if_interrupted(how_far),
            open_output(target) as output,
            Runtime(launch_timeout=math.inf, **engine_options) as runtime,
        ):
            requests = (request for request in read_requests(source) if request.custom_id not in done)
            with progress:
                outcome = answer_requests(
                    runtime.endpoint,
                    requests,
                    output,
                    args.sampling(),
                    max_concurrency=args.max_concurrency,
                    progress=progress,
                    remedy=remedy,
                )
        if outcome.answered != left:
            raise ConfigError(f"{source} has changed meanwhile: run the same command again", param="input_file")
    earlier = f", {len(done)} of them before" if done else ""
    right = len(ids) - outcome.failed
    print(f"{right} of {len(ids)} requests answered{earlier}; {outcome.failed} failed", file=sys.stderr)
    for reason in outcome.reasons:
        print(f"  {reason}", file=sys.stderr)
    if outcome.failed > len(outcome.reasons):
        print(f"  and {outcome.failed - len(outcome.reasons)} more: see the answers", file=sys.stderr)
    return FAILED_STATUS if outcome.failed else 0


@contextlib.contextmanager
def _told_if_interrupted(how_far: Callable[[], str]) -> Iterator[None]:
    """Say on stderr how far a run was that Ctrl-C or SIGTERM ends; the interrupt is raised on."""
    try:
        with _terminated_as_interrupted():
            yield
    except KeyboardInterrupt as interrupt:
        how = "Terminated" if isinstance(interrupt, Terminated) else "Interrupted"
        print(f"{how}: {how_far()}", file=sys.stderr)
        raise


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Raise :class:`Terminated` at SIGTERM, so that what Ctrl-C ends in good order ends so, too."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    # One that was not made in Python is not known.
    before = signal.getsignal(signal.SIGTERM) or signal.SIG_DFL

    def end(number: int, frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, before)  # a second one waits for nothing
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
