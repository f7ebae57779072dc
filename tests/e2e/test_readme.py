"""What the README shows is what comes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx

from bough import Runtime

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def block(language: str, part: str) -> str:
    """The only block of a language with some text in it."""
    (found,) = [
        text for text in re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL) if part in text
    ]
    return str(found)


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_engine_prints_what_stands_beside_it() -> None:
    program = block("python", "with Engine()")
    (shown,) = re.findall(r'# "(.+) …"', program)
    assert printed(program).startswith(shown)


def test_a_server_answers_as_shown() -> None:
    (body,) = re.findall(r"-d '(.+)'", block("console", "curl"))
    (shown,) = re.findall(r'"role": "assistant", "content": "(.+?)"', block("console", "curl"))
    program = block("python", "OpenAI(")
    with Runtime() as runtime:
        answer = httpx.post(f"{runtime.url}/v1/chat/completions", json=json.loads(body), timeout=60).json()
        assert answer["choices"][0]["message"]["content"] == shown
        assert printed(program.replace("http://127.0.0.1:30000", runtime.url)).strip()
