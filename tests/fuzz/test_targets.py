"""The targets hold for what they begin with, and for random bytes; ``make fuzz-code`` looks further."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tests.fuzz.run import CORPUS, REACHED
from tests.fuzz.targets import TARGETS, messages
from tests.tables import table

MUTATIONS = dict.fromkeys(TARGETS, 100) | {"dialects": 30}
"""How many damaged inputs each target is shown; eight answers make one input of the last."""

INPUTS = [path for name in TARGETS for path in sorted((CORPUS / name).iterdir())]


def test_every_target_is_run_and_begins_with_something() -> None:
    assert TARGETS.keys() == REACHED.keys() == {path.parent.name for path in INPUTS}
    assert sum(path.stat().st_size for path in INPUTS) < 2**18, "the corpus is small"


@table("path", INPUTS)
def test_what_the_fuzzer_begins_with(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@table("name", TARGETS)
def test_damaged_inputs(name: str) -> None:
    draw = random.Random(name)
    originals = [path.read_bytes() for path in INPUTS if path.parent.name == name]
    TARGETS[name](b"")
    for _ in range(MUTATIONS[name]):
        data = bytearray(draw.choice(originals))
        for _ in range(draw.randint(1, 8)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        TARGETS[name](bytes(data[: draw.randint(1, len(data))]))


def test_a_target_notices_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    different = itertools.count()
    monkeypatch.setattr("tests.fuzz.targets.encode", lambda message: str(next(different)).encode())
    with pytest.raises(AssertionError):
        messages((CORPUS / "messages" / "abort").read_bytes())
