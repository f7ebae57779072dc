"""``bough generate``: complete a prompt in this process and exit."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from bough.config import rules
from bough.config.command_line import CommandParser, add_config_option, add_options, given_options
from bough.config.options import OptionTable, option
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError

PROMPT = "Prompt"
SAMPLING = "Sampling"


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerateArgs(OptionTable):
    """What to complete, and how. The sampling options that are not set are left to the model's own defaults."""

    prompt: str | None = option(None, help="Text to complete.", group=PROMPT, default_text="read from stdin")
    stream: bool = option(False, help="Print text as it is generated.", group=PROMPT)
    output_json: bool = option(
        False, help="Print the whole answer as JSON, token ids and counts included.", group=PROMPT
    )
    max_new_tokens: int | None = option(
        None, help="Most tokens to generate.", group=SAMPLING, unit="tokens", default_text="128", minimum=0
    )
    temperature: float | None = option(
        None, help="0 always takes the likeliest token.", group=SAMPLING, default_text="the model's", minimum=0.0
    )
    top_p: float | None = option(None, help="Nucleus sampling.", group=SAMPLING, default_text="the model's")
    top_k: int | None = option(
        None, help="Sample from this many likeliest tokens.", group=SAMPLING, default_text="the model's"
    )
    min_p: float | None = option(
        None,
        help="Drop tokens less likely than this share of the likeliest.",
        group=SAMPLING,
        default_text="the model's",
    )
    stop: str | None = option(None, help="End the output where this text appears.", group=SAMPLING)
    sampling_seed: int | None = option(
        None, help="Makes the samples reproducible.", group=SAMPLING, default_text="drawn"
    )
    sampling_params: dict[str, Any] | None = option(
        None,
        help="Any sampling parameters, as JSON; the flags above win.",
        group=SAMPLING,
        rule=rules.sampling_params,
    )

    def sampling(self) -> dict[str, Any]:
        """The sampling parameters that were set."""
        flags = {
            name: getattr(self, name)
            for name in ("max_new_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "sampling_seed")
        }
        return {**(self.sampling_params or {}), **{name: value for name, value in flags.items() if value is not None}}

    def check_together(self) -> None:
        """Refuse sampling flags that are out of range, and streams that cannot be printed."""
        if (complaint := rules.sampling_params(self.sampling())) is not None:
            raise ConfigError(f"the sampling flags {complaint}")
        if self.stream and self.output_json:
            raise ConfigError("--stream and --output-json exclude each other")
        if self.stream and self.sampling().get("n", 1) > 1:
            raise ConfigError("--stream prints one answer; leave out n or --stream")


def main(argv: list[str]) -> int:
    """Run ``bough generate``."""
    parser = CommandParser(
        prog="bough generate",
        usage="bough generate --prompt TEXT [flags]",
        description="Complete a prompt with an engine in this process, print the text and exit.",
    )
    add_config_option(parser)
    add_options(parser, GenerateArgs)
    add_options(parser, ServerArgs)
    namespace = parser.parse_args(argv)
    args = GenerateArgs(**given_options(namespace, GenerateArgs))
    engine_options = given_options(namespace, ServerArgs, config=namespace.config)
    prompt = args.prompt if args.prompt is not None else sys.stdin.read()
    if not prompt:
        raise ConfigError("there is nothing to complete: give --prompt TEXT")
    from bough import Engine

    # Deltas are what a terminal needs; the engine's default is all the text so far.
    engine_options["incremental_streaming_output"] = True
    with Engine(**engine_options) as engine:
        if args.stream:
            for event in engine.generate(prompt, args.sampling(), stream=True):
                print(event["text"], end="", flush=True)
            print()
            return 0
        output = engine.generate(prompt, args.sampling())
    outputs = output if isinstance(output, list) else [output]
    for each in outputs:
        print(json.dumps(each) if args.output_json else each["text"])
    return 0
