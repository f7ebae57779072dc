"""Schemas, patterns and grammars that are wrong, endless or odd: each is followed or refused, and harms nobody."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from bough.sampling.sampling_params import GrammarSpec
from tests.constrained.following import spec_of
from tests.constrained.hostile_families import FAMILIES
from tests.e2e.server import Server, running_server
from tests.soak.measuring import percentile, resident_bytes, server_without_model

AT_ONCE = 8
COMPILE_SECONDS = 3.0
HANG_SECONDS = 30.0
PLAIN = {"text": "x", "sampling_params": {"max_new_tokens": 4, "temperature": 0}}

LEAVES: tuple[Any, ...] = (
    *({"type": name} for name in ("string", "integer", "number", "boolean", "null", "array", "object", "wrong", "")),
    *({"$ref": ref} for ref in ("#", "#/$defs/a", "#/$defs/b", "#/$defs/missing", "#/$defs", "http://x/y", 7)),
    *(True, False, None, 7, "string", [], {}, {"type": []}, {"type": ["string", "string", "wrong"]}),
    *({"const": 1}, {"enum": []}, {"enum": [1, "a", None, {"b": [2]}]}, {"enum": "a"}),
    *({"pattern": "(?=x)y", "type": "string"}, {"pattern": "(a+)+$"}, {"pattern": "["}, {"pattern": "[a-z]{2000}"}),
    *({"type": "string", "minLength": 10**9}, {"type": "string", "minLength": 9, "maxLength": 2}, {"minLength": -1}),
    *({"type": "string", "format": name} for name in ("date", "ipv6", "regex", "no-such-format")),
    *({"type": "number", "multipleOf": 0}, {"minimum": "x"}, {"type": "integer", "minimum": 9, "maximum": 2}),
    *({"type": "number", "minimum": 1e308, "maximum": -1e308}, {"type": "integer", "multipleOf": 1e-300}),
    *({"type": "array", "uniqueItems": True}, {"type": "array", "minItems": 10**6}, {"required": ["a", 7]}),
)
PIECES = (
    *("a", "b*", "(a|b)*", "[a-z]{3}", "(a+)+$", "(a|aa)+", ".*", ".*?", "\\w+\\d", "^", "$", "\\b", "(?:x)", "(?i)K"),
    *("(?=x)", "(?<!y)", "\\1", "(?P<n>x)", "(?P=n)", "(?R)", "[", "(", ")", "*", "{2,1}", "{1000000}", "\\", "[z-a]"),
    *("\\p{Greek}", "\\x00", "\\ud800", "é", "😀", "(" * 300, "[^\\n]{1,500}", "((a{1,90}){1,90}){1,90}"),
)
SYMBOLS = (
    *('"a"', "[a-z]", "[^\\n]*", "root", "rule", "missing", "(", ")", "|", "*", "+", "?", '""', "/a+/", "{9}", "::="),
    *('"', "[", "#", "\\x00", "😀", '"é"', "%import common.WS", "<[1]>", "\n", "rule ::= ", "root ::= ", "start: "),
)


def schema(rng: random.Random, depth: int) -> Any:
    """A random schema, most of them wrong somewhere."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LEAVES)

    def some(most: int) -> list[Any]:
        return [schema(rng, depth - 1) for _ in range(rng.randint(0, most))]

    keyword = rng.choice(("properties", "items", "oneOf", "anyOf", "allOf", "not", "if", "prefixItems", "contains"))
    made: dict[str, Any] = {}
    if keyword == "properties":
        made = {"type": "object", "properties": dict(zip("abcdé", some(5), strict=False))}
        made["required"] = rng.sample("abcdex", rng.randint(0, 4))
        made["additionalProperties"] = rng.choice((True, False, schema(rng, depth - 1)))
    elif keyword in ("oneOf", "anyOf", "allOf", "prefixItems"):
        made = {keyword: some(6)}
    elif keyword == "items":
        made = {"type": "array", "items": rng.choice((some(4), schema(rng, depth - 1)))}  # a list is draft-07's tuple
    elif keyword == "if":
        made = {"if": schema(rng, depth - 1), "then": schema(rng, depth - 1), "else": schema(rng, depth - 1)}
    else:
        made = {keyword: schema(rng, depth - 1)}
    if rng.random() < 0.3:
        made["$defs"] = {"a": schema(rng, depth - 1), "b": {"$ref": f"#/$defs/{rng.choice('ab')}"}}
    return made


def grammar(rng: random.Random) -> dict[str, Any]:
    """A random grammar, as the sampling parameter that it is."""
    kind = rng.choice(("json_schema", "json_schema", "regex", "ebnf", "structural_tag"))
    if kind == "json_schema":
        made = schema(rng, rng.randint(1, 6))
        return {kind: rng.choice((made, json.dumps(made))) if isinstance(made, dict) else json.dumps(made)}
    if kind == "regex":
        return {kind: "".join(rng.choices(PIECES, k=rng.randint(1, 8)))}
    if kind == "ebnf":
        return {kind: rng.choice(("root ::= ", "")) + " ".join(rng.choices(SYMBOLS, k=rng.randint(1, 14)))}
    tag = {"begin": rng.choice(("<f>", "")), "schema": schema(rng, 3), "end": rng.choice(("</f>", ""))}
    return {kind: {"structures": [tag] * rng.randint(0, 3), "triggers": rng.choice((["<f>"], [""], []))}}


@pytest.mark.parametrize("count", [pytest.param(40, id="short"), pytest.param(1000, marks=pytest.mark.soak, id="long")])
def test_every_grammar_is_followed_or_refused(tmp_path: Path, count: int) -> None:
    rng = random.Random(5)
    grammars = [grammar(rng) for _ in range(count)]
    statuses: Counter[int] = Counter()
    seconds: list[float] = []
    wrong: list[str] = []
    with server_without_model(tmp_path, "--grammar-compile-timeout", f"{COMPILE_SECONDS}") as server:
        processes = {process.pid for process in server.processes()}
        expected = server.generate(**PLAIN)["text"]

        def ask(params: dict[str, Any]) -> None:
            begin = time.monotonic()
            body = {**PLAIN, "sampling_params": {**PLAIN["sampling_params"], **params}}  # type: ignore[dict-item]
            answer = httpx.post(f"{server.url}/generate", json=body, timeout=HANG_SECONDS)
            seconds.append(time.monotonic() - begin)
            statuses[answer.status_code] += 1
            if answer.status_code not in (200, 400):
                wrong.append(f"{answer.status_code} {answer.text[:200]} {params}")

        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(ask, grammars))
        print(f"{dict(statuses)}, {max(seconds):.1f} s at most")
        assert not wrong, wrong[:5]
        assert min(statuses[200], statuses[400]) > count // 20, "some can be followed, and some cannot"
        server.assert_idle_and_whole()
        assert processes <= {process.pid for process in server.processes()}
        assert server.generate(**PLAIN)["text"] == expected
        assert "Traceback" not in server.log.read_text()


CLIENTS = 4
GROWTH_BYTES = 200e6
MAX_GAP_RATIO = 2.0
SCHEDULER = 1
STREAM = {"text": "Once", "stream": True, "sampling_params": {"max_new_tokens": 400, "ignore_eos": True}}
TOOL = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 24}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}


class Neighbour:
    """A client that streams one answer after the other, and notes the gaps, in seconds."""

    def __init__(self, url: str) -> None:
        self.gaps: list[float] = []
        self._url = url
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _work(self) -> None:
        with httpx.Client(timeout=HANG_SECONDS) as client:
            while not self._over.is_set():
                with client.stream("POST", f"{self._url}/generate", json=STREAM) as answer:
                    events = (time.monotonic() for line in answer.iter_lines() if line.startswith("data: {"))
                    times = list(itertools.takewhile(lambda _: not self._over.is_set(), events))
                self.gaps += [after - before for before, after in itertools.pairwise(times)]


def send(server: Server, specs: Iterable[GrammarSpec]) -> Counter[int]:
    """Ask for all of them, as several clients."""
    statuses: Counter[int] = Counter()

    def ask(spec: GrammarSpec) -> None:
        params = {"max_new_tokens": 16, "temperature": 0.8, spec.kind: spec.text}
        answer = httpx.post(
            f"{server.url}/generate", json={"text": "x", "sampling_params": params}, timeout=HANG_SECONDS
        )
        statuses[answer.status_code] += 1

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(ask, specs))
    return statuses


def large_grammars(count: int) -> list[GrammarSpec]:
    """Grammars of all families, no two alike."""
    rng, families = random.Random(7), list(FAMILIES.values())
    numbers = rng.sample(range(100, 400), count // len(families) + 1)
    return [families[i % len(families)](numbers[i // len(families)]) for i in range(count)]


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(len(FAMILIES), marks=pytest.mark.slow, id="short"),
        pytest.param(200, marks=pytest.mark.soak, id="long"),
    ],
)
def test_large_grammars_leave_no_memory_and_hold_nobody_up(tmp_path: Path, count: int) -> None:
    gaps: dict[str, float] = {}
    with running_server(tmp_path, "--watchdog-timeout", "5") as server:

        def measure(what: str, work: Callable[[], Counter[int]]) -> Counter[int]:
            with Neighbour(server.url) as neighbour:
                statuses = work()
            gaps[what] = percentile(neighbour.gaps, 0.99)
            return statuses

        usual = [spec_of("json_schema", {**TOOL, "title": str(i % 4)}) for i in range(count)]
        measure("warm", lambda: send(server, [*usual[:4], spec_of("regex", "x{4000000}")]))
        processes, before = [each.pid for each in server.processes()[:3]], resident_bytes(server)[SCHEDULER]
        assert set(measure("usual", lambda: send(server, usual))) == {200}
        statuses = measure("large", lambda: send(server, large_grammars(count)))
        grown = resident_bytes(server)[SCHEDULER] - before
        repeated = measure("repeated", lambda: send(server, large_grammars(count)[:1] * count))
        print(f"{dict(statuses)}, {grown / 1e6:.0f} MB, gaps { ({k: round(1000 * v, 1) for k, v in gaps.items()}) } ms")
        assert set(statuses) <= {200, 400}
        assert statuses[200] > count // 2, "most are fine"
        assert len(repeated) == 1
        assert grown < GROWTH_BYTES
        assert processes == [each.pid for each in server.processes()[:3]]
        server.assert_idle_and_whole()
    if count > len(FAMILIES):
        assert max(gaps["large"], gaps["repeated"]) <= MAX_GAP_RATIO * gaps["usual"]
