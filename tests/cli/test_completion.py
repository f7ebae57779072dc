"""Shells complete what the commands really take."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from bough.cli import main
from bough.cli_commands import COMMANDS
from bough.cli_commands.bench import COMMANDS as BENCH_COMMANDS
from bough.cli_commands.completion import SCRIPTS, TABLES, flags_of


def complete(line: str) -> set[str]:
    """What bash offers at the end of a command line."""
    words = [word for part in line.split(" ") for word in re.findall("=|[^=]+", part) or [""]]
    position = f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}"
    program = f'{SCRIPTS["bash"]()}\n{position}; _bough; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-u", "-c", program], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


EVERYWHERE: list[tuple[str, set[str]]] = [
    ("bough ", set(COMMANDS)),
    ("bough ser", {"serve"}),
    ("bough bench ", set(BENCH_COMMANDS)),
    ("bough completion f", {"fish"}),
    ("bough serve --dtype ", {"auto", "float32", "bfloat16", "float16"}),
    ("bough serve --dtype=fl", {"float32", "float16"}),
    ("bough serve --max-running", {"--max-running-requests"}),
    ("bough serve --disable-radix-c", {"--disable-radix-cache"}),
    ("bough serve --no-disable-radix-c", {"--no-disable-radix-cache"}),
    ("bough generate --input", {"--input-file"}),
    ("bough bench serve --request", {"--request-rate", "--request-timeout"}),
    ("bough bench offline --request", {"--request-timeout"}),
    ("bough serve --port 1 ", set()),
    ("bough serve ./", set()),
]
"""What is offered at the end of a line, in an empty directory."""


@pytest.mark.parametrize(
    ("line", "offered"), [*EVERYWHERE, ("bough serve --dtype=", {"auto", "float32", "bfloat16", "float16"})]
)
def test_bash_offers(line: str, offered: set[str]) -> None:
    assert complete(line) == offered


@pytest.mark.parametrize("command", sorted({*COMMANDS, *(f"bench {name}" for name in BENCH_COMMANDS)} - {"bench"}))
def test_all_flags_that_help_shows_are_offered_and_no_others(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    if command in ("version", "completion"):
        assert command not in TABLES
        return
    has_rare = "--help-all" in {flag for flag, _ in flags_of(command)}
    assert main([*command.split(), "--help-all" if has_rare else "--help"]) == 0
    shown = re.findall(r"(?:^  |(?<=, ))(--?[a-z0-9-]+)", capsys.readouterr().out, re.MULTILINE)
    shown_flags = set(shown) - {"-h"}
    offered = {flag for flag, _ in flags_of(command)}
    assert shown_flags <= offered
    assert {flag for flag in offered - shown_flags if not flag.startswith("--no-")} == set()


@pytest.mark.parametrize("shell", sorted(SCRIPTS))
def test_scripts_are_printed_and_parse(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "--max-running-requests" in script or "-l max-running-requests" in script
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([program, "-n"], input=script, text=True, check=True, timeout=20)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
@pytest.mark.parametrize(("line", "offered"), EVERYWHERE)
def test_fish_offers(tmp_path: Path, line: str, offered: set[str]) -> None:
    script, empty = tmp_path / "bough.fish", tmp_path / "empty"
    script.write_text(SCRIPTS["fish"]())
    empty.mkdir()
    program = f"source {script}; complete -C {shlex.quote(line)}"
    done = subprocess.run(["fish", "-c", program], capture_output=True, text=True, timeout=20, check=True, cwd=empty)
    found = {each.split("\t")[0] for each in done.stdout.splitlines()}
    assert {each.rpartition("=")[2] for each in found} == offered


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("bough ser", "bough serve "),
        ("bough bench lat", "bough bench latency "),
        ("bough serve --dtype fl", "bough serve --dtype float"),
        ("bough serve --dtype=fl", "bough serve --dtype=float"),
        ("bough serve --dtype=b", "bough serve --dtype=bfloat16 "),
        ("bough serve --max-running", "bough serve --max-running-requests "),
        ("bough serve ./a-fi", "bough serve ./a-file "),
    ],
)
def test_zsh_completes(tmp_path: Path, line: str, becomes: str) -> None:
    script = tmp_path / "bough.zsh"
    script.write_text(SCRIPTS["zsh"]())
    (tmp_path / "a-file").touch()
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            os.chdir(tmp_path)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "> "})
        finally:
            os._exit(127)  # this is a second pytest
    try:
        os.write(terminal, f"source {script}; echo so''urced\n".encode())
        read_until(terminal, "sourced\r\n")
        os.write(terminal, f"{line}\t".encode())
        read_until(terminal, becomes)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def read_until(terminal: int, wanted: str) -> None:
    """Wait for a text to stand in a terminal."""
    seen = ""
    while wanted not in seen:
        assert select.select([terminal], [], [], 20)[0], f"{wanted!r} did not come: {seen!r}"
        seen += os.read(terminal, 65536).decode(errors="replace")


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bsh"]) == 2
    assert "bash" in capsys.readouterr().err
