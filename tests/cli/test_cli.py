from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bough import __version__, cli
from bough.cli import main
from bough.cli_commands import COMMANDS
from bough.cli_commands.bench import COMMANDS as BENCH_COMMANDS
from bough.errors import RequestFailed


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bough", *argv], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("argv", [["version"], ["--version"]])
def test_the_version_is_printed(argv, capsys):
    assert main(argv) == 0
    assert capsys.readouterr().out == f"bough {__version__}\n"


@pytest.mark.parametrize("name", ["version", "--version"])
def test_the_version_takes_no_arguments(name, capsys):
    assert main([name, "--x"]) == 2
    assert f"bough {name} takes no arguments, and got '--x'" in capsys.readouterr().err


def test_the_overview_names_every_benchmark():
    assert set(BENCH_COMMANDS) <= set(re.findall(r"\w+", COMMANDS["bench"]))


def test_the_overview_lists_every_command(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in COMMANDS)


def test_no_command_is_a_mistake(capsys):
    assert main([]) == 2
    assert "usage: bough COMMAND" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "version"])
def test_every_command_has_help(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"usage: bough {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["sevre"], "unknown command 'sevre'; did you mean 'serve'? (see bough --help)"),
        (["bench", "ofline"], "unknown command 'ofline'; did you mean 'offline'? (see bough bench --help)"),
        (
            ["bench", "foo"],
            "unknown command 'foo'; there are serve, offline, latency, compare (see bough bench --help)",
        ),
        (["completion", "tcsh"], "unknown shell 'tcsh'; there are bash, zsh, fish (see bough completion --help)"),
        (["generate", "--prompt"], "--prompt needs a value: --prompt TEXT (see bough generate --help)"),
        (["generate", "The oak"], "unexpected argument 'The oak'; the text to complete is given with --prompt (see"),
        (["chat", "/m"], "unexpected argument '/m'; a model is named with --model, a server with --url (see"),
        (["serve", "--prot", "1"], "unknown flag '--prot'; did you mean '--port'? (see bough serve --help)"),
        (["generate", "--temprature", "1"], "unknown flag '--temprature'; did you mean '--temperature'?"),
        (["bench", "serve", "--num-promts", "1"], "unknown flag '--num-promts'; did you mean '--num-prompts'?"),
    ],
)
def test_a_mistake_is_one_line_with_a_suggestion(argv, message, capsys):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"bough: error: {message}")
    assert captured.err.count("\n") == 1


def fail(error: BaseException):
    def command(argv: list[str]) -> int:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (RequestFailed("two\nlines"), 1, "bough: error: two lines\n"),
        (
            KeyError("x"),
            1,
            "bough: error: internal error: KeyError: 'x' (--log-level debug shows where)\n",
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_a_status_and_one_line(error, status, message, capsys):
    assert cli.run_reporting_errors(fail(error), []) == status
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    ("argv", "is_hinted"),
    [
        (["serve"], True),
        (["--port", "1"], True),
        (["bench", "offline"], True),
        (["bench", "serve"], False),
        (["check-env"], False),
    ],
)
def test_only_a_flag_that_there_is_is_hinted_at(argv, is_hinted, capsys):
    assert cli.run_reporting_errors(fail(KeyError("x")), argv) == 1
    assert ("--log-level" in capsys.readouterr().err) == is_hinted


@pytest.mark.parametrize("argv", ["version", "completion bash"])
def test_a_full_disk_is_one_line(argv):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m bough {argv} > /dev/full"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "bough: error: cannot write: No space left on device\n")


@pytest.mark.parametrize("argv", [["--log-level", "debug"], ["--log-level=debug"]])
def test_debug_mode_shows_where(argv, capsys):
    assert cli.run_reporting_errors(fail(KeyError("x")), argv) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_both_entry_points_take_the_flags_of_a_server():
    for module in ("bough", "bough.launch_server"):
        argv = [sys.executable, "-m", module, *(["serve"] if module == "bough" else []), "--page-size", "3"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == "bough: error: --page-size must be a power of two, got 3\n"


@pytest.mark.parametrize("argv", ["--help", "serve --help", "version"])
def test_a_reader_may_leave_before_the_end(argv):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m bough {argv} | true"], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [("version >&-", 0, ""), ("sevre 2>&-", 2, ""), ("generate <&-", 2, "bough: error: there is nothing to .*\n")],
)
def test_standard_streams_may_be_closed(line, status, said):
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m bough {line}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (status, "")
    assert re.fullmatch(said, done.stderr)


@pytest.mark.parametrize("argv", [["version"], ["serve", "--help"], ["bench", "serve", "--help"], ["chat", "--help"]])
def test_help_imports_nothing_heavy(argv):
    code = (
        f"import sys\nfrom bough.cli import main\nassert main({argv!r}) == 0\n"
        "heavy = {'torch', 'starlette', 'uvicorn', 'transformers', 'aiohttp', 'openai', 'zmq'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_help_loads_nothing_that_takes_long():
    heavy = ("aiohttp", "msgspec", "numpy", "starlette", "tokenizers", "torch", "transformers", "uvicorn", "zmq")
    code = (
        "import sys, contextlib, io\n"
        "from bough.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main(['serve', '--help'])\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ctrl_c_while_children_import_ends_without_tracebacks():
    """A terminal sends it to all of them, before they can say that it is not for them."""
    command = [sys.executable, "-m", "bough", "generate", "--prompt", "x"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell has what it starts in the background ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None and not children.read_text():
        pass
    time.sleep(0.25)  # so that there is an interpreter that has begun to import
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "Interrupted: before the end of the answer\n"
