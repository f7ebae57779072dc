"""What a benchmark asks: prompts and the number of tokens wanted for each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from bough.config.options import OptionTable, option
from bough.config.user_paths import user_path
from bough.errors import ConfigError, StartupError

dataset_option = partial(option, group="Dataset")

DatasetName = Literal["random-ids", "generated-shared-prefix", "custom"]

_WORDS = ("the", "river", "carries", "small", "boats", "past", "old", "mills", "while", "rain", "falls", "on", "fields")


def _ratio(value: float) -> str | None:
    return None if 0.0 <= value <= 1.0 else "must be between 0 and 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class DatasetArgs(OptionTable):
    """Which requests a benchmark sends."""

    dataset_name: DatasetName = dataset_option(
        "random-ids",
        help="random-ids: unrelated random token ids. generated-shared-prefix: groups of prompts that start alike. "
        "custom: a file of JSON lines, each with `prompt`, `input_ids` or `messages`, and perhaps `output_len`.",
    )
    dataset_path: str | None = dataset_option(None, help="The file of a custom dataset.", metavar="FILE")
    num_prompts: int = dataset_option(
        1000, help="Requests to send; generated-shared-prefix counts by its groups instead.", minimum=1
    )
    seed: int = dataset_option(42, help="Seed of prompts, lengths and arrival times.", minimum=0)
    vocab_size: int | None = dataset_option(
        None,
        help="Random ids are drawn below this.",
        unit="token ids",
        default_text="from the model",
        minimum=1,
    )
    random_input_len: int = dataset_option(
        1024, help="Prompt length of random-ids.", unit="tokens", minimum=1, scaled=True
    )
    random_output_len: int = dataset_option(
        1024,
        help="Output length of random-ids, and of lines of a custom dataset that have no output_len.",
        unit="tokens",
        minimum=1,
        scaled=True,
        aliases=("max-tokens",),
    )
    random_range_ratio: float = dataset_option(
        0.0,
        help="Lengths of random-ids are drawn uniformly between this share of the length and the length; 1 makes "
        "them all equal.",
        rule=_ratio,
    )
    gsp_num_groups: int = dataset_option(64, help="Groups of generated-shared-prefix.", minimum=1)
    gsp_prompts_per_group: int = dataset_option(16, help="Prompts per group.", minimum=1)
    gsp_system_prompt_len: int = dataset_option(
        2048, help="Length of the prefix that a group shares.", unit="tokens", minimum=1, scaled=True
    )
    gsp_question_len: int = dataset_option(
        128, help="Length of each prompt's own part.", unit="tokens", minimum=1, scaled=True
    )
    gsp_output_len: int = dataset_option(256, help="Output length.", unit="tokens", minimum=1, scaled=True)

    def check_together(self) -> None:
        """Refuse a custom dataset without a file, and a file without a custom dataset."""
        if (self.dataset_name == "custom") != (self.dataset_path is not None):
            raise ConfigError("--dataset-name custom and --dataset-path FILE go together", param="dataset_path")


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """One request; exactly one of the three forms of a prompt is set."""

    output_len: int
    """Tokens to generate."""
    input_ids: list[int] | None = None
    text: str | None = None
    messages: list[dict[str, Any]] | None = None

    def as_text(self) -> str:
        """The prompt for an interface that takes no ids; ids become as many common words, about a token each."""
        if self.text is not None:
            return self.text
        if self.messages is not None:
            return "\n".join(str(message.get("content", "")) for message in self.messages)
        return " ".join(_WORDS[token % len(_WORDS)] for token in self.input_ids or ())


def make_requests(
    args: DatasetArgs, *, vocab_size: int, custom: list[BenchRequest] | None = None
) -> list[BenchRequest]:
    """The requests of a dataset, the same for the same arguments.

    Args:
        vocab_size: random ids are drawn from ``[0, vocab_size)``, unless ``args`` says otherwise.
        custom: those of a custom dataset where they have been read: its file may be a pipe.

    Raises:
        ConfigError: if the file of a custom dataset cannot be read or a line of it is wrong.
    """
    rng = np.random.default_rng(args.seed)
    vocab_size = args.vocab_size or vocab_size
    if args.dataset_name == "random-ids":
        return _random_ids(args, vocab_size, rng)
    if args.dataset_name == "generated-shared-prefix":
        return _generated_shared_prefix(args, vocab_size, rng)
    return _custom(args) if custom is None else custom


def custom_requests(args: DatasetArgs) -> list[BenchRequest] | None:
    """The requests of a custom dataset; ``None`` of another.

    Raises:
        ConfigError: if its file cannot be read or a line of it is wrong.
    """
    return _custom(args) if args.dataset_name == "custom" else None


def how_many(args: DatasetArgs, custom: list[BenchRequest] | None) -> str:
    """How many requests a dataset has, of which ``custom`` are those of a custom one, and which flags say so."""
    if args.dataset_name == "generated-shared-prefix":
        groups, prompts = args.gsp_num_groups, args.gsp_prompts_per_group
        total = _counted(groups * prompts)
        return f"{total}: {groups} groups (--gsp-num-groups) of {prompts} (--gsp-prompts-per-group)"
    if custom is not None and len(custom) < args.num_prompts:
        return f"{_counted(len(custom))}, all that {args.dataset_path} holds; --num-prompts allows {args.num_prompts}"
    return f"{_counted(args.num_prompts)} (--num-prompts says how many)"


def _counted(requests: int) -> str:
    return f"{requests} request{'s' if requests != 1 else ''}"


def prompt_lengths(args: DatasetArgs) -> str:
    """The flags that say how long the prompts of a dataset are, with their values."""
    if args.dataset_name == "generated-shared-prefix":
        return f"--gsp-system-prompt-len {args.gsp_system_prompt_len}, --gsp-question-len {args.gsp_question_len}"
    if args.dataset_name == "custom":
        return f"--dataset-path {args.dataset_path}"
    return f"--random-input-len {args.random_input_len}"


def vocab_size_from(server_info: dict[str, Any]) -> int:
    """Vocabulary size that a server or Engine tells, or the one in the ``config.json`` of its local model.

    Raises:
        StartupError: if neither is there.
    """
    if isinstance(server_info.get("vocab_size"), int):
        return int(server_info["vocab_size"])
    config = Path(str(server_info.get("model_path"))) / "config.json"
    if config.is_file():
        size = json.loads(config.read_text(encoding="utf-8")).get("vocab_size")
        if isinstance(size, int):
            return size
    raise StartupError("the size of the vocabulary is not known; give it with --vocab-size")


def _random_ids(args: DatasetArgs, vocab_size: int, rng: np.random.Generator) -> list[BenchRequest]:
    def lengths(longest: int) -> list[int]:
        shortest = max(1, int(longest * args.random_range_ratio))
        drawn: list[int] = rng.integers(shortest, longest, size=args.num_prompts, endpoint=True).tolist()
        return drawn

    inputs, outputs = lengths(args.random_input_len), lengths(args.random_output_len)
    return [
        BenchRequest(output_len, input_ids=_draw(rng, vocab_size, input_len))
        for input_len, output_len in zip(inputs, outputs, strict=True)
    ]


def _generated_shared_prefix(args: DatasetArgs, vocab_size: int, rng: np.random.Generator) -> list[BenchRequest]:
    requests = []
    for _ in range(args.gsp_num_groups):
        shared = _draw(rng, vocab_size, args.gsp_system_prompt_len)
        for _ in range(args.gsp_prompts_per_group):
            question = _draw(rng, vocab_size, args.gsp_question_len)
            requests.append(BenchRequest(args.gsp_output_len, input_ids=shared + question))
    return [requests[i] for i in rng.permutation(len(requests))]


def _draw(rng: np.random.Generator, vocab_size: int, length: int) -> list[int]:
    drawn: list[int] = rng.integers(0, vocab_size, size=length).tolist()
    return drawn


def _custom(args: DatasetArgs) -> list[BenchRequest]:
    path = user_path(args.dataset_path or "")
    try:
        # Not splitlines(): JSON has U+2028 and others as they are, at which that would split.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read --dataset-path {path}: {error}", param="dataset_path") from None
    requests = [
        _from_line(line, f"{path}, line {number}", args.random_output_len)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not requests:
        raise ConfigError(f"--dataset-path {path} holds no requests", param="dataset_path")
    return requests[: args.num_prompts]


class _Line(msgspec.Struct):
    """A line of a custom dataset."""

    prompt: str | None = None
    input_ids: list[int] | None = None
    messages: list[dict[str, Any]] | None = None
    output_len: Annotated[int, msgspec.Meta(ge=1)] | None = None


def _from_line(line: str, where: str, default_output_len: int) -> BenchRequest:
    try:
        given = msgspec.json.decode(line, type=_Line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigError(f"{where}: {reason}", param="dataset_path") from None
    if [given.prompt, given.input_ids, given.messages].count(None) != 2:
        raise ConfigError(f"{where}: must have exactly one of prompt, input_ids, messages", param="dataset_path")
    return BenchRequest(given.output_len or default_output_len, given.input_ids, given.prompt, given.messages)
