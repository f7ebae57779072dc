"""``bough completion``: what a shell needs to complete command lines of ``bough``, made from the option tables."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator

from bough.bench.compare import BenchCompareArgs
from bough.bench.datasets import DatasetArgs
from bough.bench.latency import BenchLatencyArgs
from bough.bench.offline import BenchOfflineArgs
from bough.bench.serve import BenchServeArgs
from bough.cli_commands import COMMANDS
from bough.cli_commands.bench import COMMANDS as BENCH_COMMANDS
from bough.cli_commands.chat import ChatArgs
from bough.cli_commands.generate import GenerateArgs
from bough.config.command_line import choose_command
from bough.config.options import Option, OptionTable, options_of
from bough.config.server_args import ServerArgs

TABLES: dict[str, tuple[type[OptionTable], ...]] = {
    "serve": (ServerArgs,),
    "generate": (GenerateArgs, ServerArgs),
    "chat": (ChatArgs, ServerArgs),
    "pack": (ServerArgs,),
    "bench serve": (BenchServeArgs, DatasetArgs),
    "bench offline": (BenchOfflineArgs, DatasetArgs, ServerArgs),
    "bench latency": (BenchLatencyArgs, ServerArgs),
    "bench compare": (BenchCompareArgs,),
}
"""The options of each command that has any. Those with an engine's options can be given a file of them too."""

_BASH = """\
# Completion of bough's command lines, for bash and, through bashcompinit, for zsh.
_bough() {{
    local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
    local command="${{COMP_WORDS[1]-}}" first=2 words= kept=
    # bash makes three words of --flag=value; after the mark it completes what is right of it.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]] && (( COMP_CWORD > 2 )); then
        previous="${{COMP_WORDS[COMP_CWORD-2]}}"
    elif [[ $current == --*=* ]]; then  # zsh leaves it one word
        kept="${{current%%=*}}="
        previous="${{current%%=*}}" current="${{current#*=}}"
    fi
    if [[ $command == bench ]]; then
        command="bench ${{COMP_WORDS[2]-}}"
        first=3
    fi
    if (( COMP_CWORD == 1 )); then
        words={commands}
    elif [[ ${{COMP_WORDS[1]}} == bench ]] && (( COMP_CWORD == 2 )); then
        words={bench}
    elif [[ $command == completion ]] && (( COMP_CWORD == 2 )); then
        words={shells}
    elif (( COMP_CWORD >= first )); then
        case "$previous" in
{choices}
        *)
            [[ $current == -* ]] && case "$command" in
{flags}
            esac
            ;;
        esac
    fi
    # Where nothing is known, the shell completes names of files.
    COMPREPLY=($(compgen -P "$kept" -W "$words" -- "$current"))
}}
complete -o default -F _bough bough
"""


def flags_of(command: str) -> Iterator[tuple[str, Option | None]]:
    """Yield every flag of a command, including all spellings and ``--no-`` forms, with its option if it has one."""
    tables = TABLES.get(command, ())
    yield "--help", None
    if ServerArgs in tables:
        yield "--config", None
        yield "--help-all", None
    taken: set[str] = set()
    for table in tables:
        for each in options_of(table):
            for flag in each.flags:
                if flag not in taken:
                    yield flag, each
            taken.update(each.flags)
            if each.kind == "bool":
                yield f"--no-{each.key}", each


def bash_script() -> str:
    """The script for bash."""
    choices = {
        flag: " ".join(each.choices)
        for command in TABLES
        for flag, each in flags_of(command)
        if each is not None and each.choices
    }
    return _BASH.format(
        commands=shlex.quote(" ".join(COMMANDS)),
        bench=shlex.quote(" ".join(BENCH_COMMANDS)),
        shells=shlex.quote(" ".join(SCRIPTS)),
        choices="\n".join(f"        {flag}) words={shlex.quote(words)} ;;" for flag, words in sorted(choices.items())),
        flags="\n".join(
            f"            {shlex.quote(command)}) words={shlex.quote(_flags(command))} ;;" for command in TABLES
        ),
    )


def zsh_script() -> str:
    """The script for zsh, which understands bash's."""
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{bash_script()}"


def fish_script() -> str:
    """The script for fish, which shows what flags mean."""
    lines = ["# Completion of bough's command lines."]
    lines += [
        f"complete -c bough -n __fish_use_subcommand -f -a {name} -d {_fish(meaning)}"
        for name, meaning in COMMANDS.items()
    ]
    groups: dict[str, list[str]] = {"bench": list(BENCH_COMMANDS), "completion": list(SCRIPTS)}
    for command, words in groups.items():
        lines.append(
            f"complete -c bough -n '__fish_seen_subcommand_from {command}; and not __fish_seen_subcommand_from "
            f"{' '.join(words)}' -f -a {_fish(' '.join(words))}"
        )
    for command in TABLES:
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in command.split())
        if command in COMMANDS:
            seen += "; and not __fish_seen_subcommand_from bench"
        for flag, each in flags_of(command):
            line = f"complete -c bough -n {_fish(seen)} {'-l' if flag.startswith('--') else '-s'} {flag.lstrip('-')}"
            if each is not None:
                line += (
                    ""
                    if each.kind == "bool"
                    else f" -r -f -a {_fish(' '.join(each.choices))}"
                    if each.choices
                    else " -r"
                )
                line += f" -d {_fish(each.declared.help.partition('. ')[0])}"
            lines.append(line)
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}


def main(argv: list[str]) -> int:
    """Run ``bough completion``."""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: bough completion bash|zsh|fish\n")
        print(
            'Print a script that makes the shell complete command lines: eval "$(bough completion bash)" in ~/.bashrc,'
        )
        print('eval "$(bough completion zsh)" in ~/.zshrc, bough completion fish | source in config.fish.')
        return 0 if argv else 2
    choose_command(argv[0], list(SCRIPTS), "bough completion", "shell")
    sys.stdout.write(SCRIPTS[argv[0]]())
    return 0


def _flags(command: str) -> str:
    return " ".join(flag for flag, _ in flags_of(command))


def _fish(text: str) -> str:
    """A word of fish, in single quotes, in which only the quote and the backslash have to be escaped."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
