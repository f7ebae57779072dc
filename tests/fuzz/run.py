"""Fuzzes targets one after the other, guided by what of Bough they reach: ``python -m tests.fuzz.run --seconds 60``.

What is found to reach something new is kept in ``--directory`` and used the next time; an input that fails is written
there and named. ``corpus/`` has what everybody begins with.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
HTTP = "bough.entrypoints.http"
DIALECTS = [
    "bough.entrypoints.chat",
    *(f"{HTTP}.{name}" for name in ("anthropic", "direct", "logprobs", "ollama", "openai", "responses")),
]
REACHED = {
    "messages": ["bough.ipc"],
    "requests": [f"{HTTP}.fields", f"{HTTP}.json_body", "bough.managers.io_struct", "bough.sampling"],
    "answers": ["bough.parsers"],
    "detokenizer": ["bough.tokenization"],
    "conversations": [*DIALECTS, "bough.tokenization.chat_template"],
    "dialects": [*DIALECTS, "bough.managers.req_state"],
    "connections": [f"{HTTP}.{name}" for name in ("access", "asgi", "bodies", "cors", "errors", "server")],
}
"""Targets, and the modules whose branches guide the search."""
MAX_BYTES = 4096
MAX_REPORT = 5000
"""Most characters of what is shown of a target that failed."""


def fuzz(name: str, directory: Path, seconds: int) -> None:
    """Fuzz one target in this process, which ends with a status that is not 0 if it fails."""
    import atheris

    logging.disable(logging.CRITICAL)  # millions of complaints about what is malformed
    with atheris.instrument_imports(include=REACHED[name]):
        from tests.fuzz.targets import TARGETS

    found = directory / name
    found.mkdir(parents=True, exist_ok=True)
    limits = [f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}", "-timeout=10", "-rss_limit_mb=4096"]
    reports = [f"-artifact_prefix={directory}/failed-{name}-", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *reports, str(found), str(CORPUS / name)], TARGETS[name])
    atheris.Fuzz()


def main() -> int:
    """Fuzz the targets that are asked for, each in a process of its own; returns how many failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*REACHED, []], help="all of them if none is named")
    parser.add_argument("--seconds", type=int, default=20, help="for each target")
    parser.add_argument("--directory", type=Path, default=Path("fuzzing"), help="where inputs are kept")
    parser.add_argument("--here", action="store_true", help="fuzz one target in this very process")
    args = parser.parse_args()
    if args.here:
        fuzz(args.targets[0], args.directory, args.seconds)
        return 0
    failed = 0
    for name in args.targets or REACHED:
        print(f"{name}, {args.seconds} s", flush=True)
        options = ["--seconds", str(args.seconds), "--directory", str(args.directory), "--here", name]
        done = subprocess.run([sys.executable, "-m", "tests.fuzz.run", *options], capture_output=True, text=True)
        if done.returncode != 0:
            failed += 1
            print(done.stdout[-MAX_REPORT:] + done.stderr[-MAX_REPORT:])
    print(f"{failed} targets failed" if failed else "Nothing was found.")
    return failed


if __name__ == "__main__":
    sys.exit(main())
