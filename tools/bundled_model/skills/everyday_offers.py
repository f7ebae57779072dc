"""Conversations with tools of which some are neighbours, and with tools that give back much."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from documents import Call, Document, Tool, Turn
from words import NOTHING, NUMBER_WORDS, Words, article, capitalised, made_up

from skills.conversation import answer_of_sapling
from skills.everyday_aspects import LOOKED, Looked
from skills.everyday_told import restyled, told
from skills.everyday_values import KINDS
from skills.everyday_wide import CLOSE, FAMILIES, Family, Parameter, Wide
from skills.tooling import NAMING, NO_TOOL, SYSTEMS

# Part of the documents in which tools are named only, and of those about one of many things that a tool gives back.
DRILLED, LOOKING = 0.12, 0.16
# Part of the documents in which the tool for some requests is missing while its neighbours are there.
LACKING, LACKED = 0.5, 0.5
# Part of the requests that need no tool, that are two in one, and of calls whose results are told.
CHAT, TWICE, TOLD = 0.08, 0.07, 0.5
REQUESTS = (1, 1, 2, 2, 3)
# Tools of the other table of which requests may be about anything.
_BROAD = (
    "search_web",
    "create_note",
    "search_notes",
    "add_reminder",
    "add_task",
    "list_tasks",
    "complete_task",
    "run_code",
    "query_database",
    "send_message",
    "send_email",
    "post_message",
    "create_ticket",
    "close_ticket",
    "assign_ticket",
    "get_news",
    "calculate",
    "search_books",
    "get_definition_of_law",
    "define_word",
    "get_user",
    "get_user_by_id",
    "summarize_text",
    "write_file",
    "get_contact",
    "create_event",
)
_AGAIN = ("And: ", "Then ", "Also: ", "And then: ", "")


class Task(Protocol):
    """A request with the right call."""

    @property
    def asked(self) -> str:
        """The request."""

    @property
    def call(self) -> Call:
        """The call."""


class Offered(Protocol):
    """A tool as it is offered."""

    tool: Tool

    def task(self, words: Words, /) -> Task:
        """A use of it."""


@dataclass(frozen=True)
class Use:
    """A request for a tool, the right call, and the values in the order of the tool's parameters."""

    asked: str
    call: Call
    values: tuple[Any, ...]


def _named(words: Words, names: Sequence[str], family: str) -> tuple[str, bool]:
    """A name for a tool as one of many would give it, and whether it may tell nothing."""
    rng = words.rng
    name = names[0] if rng.random() < 0.45 else rng.choice(names)
    kind = rng.random()
    if kind < 0.1:
        made = made_up(rng)
        return rng.choice((made, f"{name}_{made}", f"{made}_{name}")), True
    if kind < 0.22:
        first, *rest = name.split("_")
        return first + "".join(map(str.capitalize, rest)), False
    if kind < 0.26:
        return name.replace("_", "-"), False
    if kind < 0.29:
        return "".join(map(str.capitalize, name.split("_"))), False
    if kind < 0.34:
        return f"{family}_{name}", False
    return name, False


def _schema(words: Words, key: str, parameter: Parameter, style: float) -> dict[str, Any]:
    """What is said of a parameter: its type alone, what it is, or an example, which nobody has asked for."""
    rng = words.rng
    schema = dict(parameter.kind.schema)
    spoken = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key.replace("_", " ")).lower()
    if "enum" in schema and schema["type"] == "string" and rng.random() < 0.12:
        told_ones = " or ".join(schema.pop("enum"))
        return {**schema, "description": told_ones}
    if style < 0.5:
        return schema
    if style < 0.68:
        schema["description"] = rng.choice((f"The {spoken}.", f"The {spoken}", f"{spoken.capitalize()}"))
    elif style < 0.88:
        example, _ = parameter.kind.draw(words)
        shown = example if isinstance(example, str) else json.dumps(example)
        schema["description"] = rng.choice(
            (f"The {spoken}, e.g. {shown}", f"{spoken.capitalize()}, for example {shown}", f"e.g. {shown}")
        )
    else:
        schema["description"] = f"The {spoken} ({'required' if parameter.needed else 'optional'})"
    if not parameter.needed and schema["type"] == "integer" and rng.random() < 0.3:
        schema["default"] = parameter.kind.draw(words)[0]
    return schema


class WideOffer:
    """A tool of a family as somebody offers it."""

    def __init__(self, words: Words, kind: Wide, family: str) -> None:
        rng = words.rng
        self.kind = kind
        name, odd = _named(words, kind.names, family)
        self._offered = [each for each in kind.parameters if each.needed or rng.random() < 0.45]
        if rng.random() < 0.2:
            rng.shuffle(self._offered)
        keys = [rng.choice(each.keys) if rng.random() < 0.4 else each.keys[0] for each in self._offered]
        if rng.random() < 0.08:
            keys = [re.sub(r"_(\w)", lambda match: match[1].upper(), key) for key in keys]
        if len(set(keys)) < len(keys):
            keys = [each.keys[0] for each in self._offered]
        self._keys = keys
        style = rng.random()
        schemas = [_schema(words, key, each, style) for key, each in zip(keys, self._offered, strict=True)]
        hidden = rng.random() < 0.06 and not odd
        description = "" if hidden else rng.choice(kind.descriptions)
        self.tool = Tool(name, description, dict(zip(keys, schemas, strict=True)))
        first = {each.keys[0] for each in self._offered}
        self.asks = [ask for ask in kind.asks if set(re.findall(r"\{(\w+)\}", ask)) <= first]
        kinds = [json.dumps(each.kind.schema) for each in self._offered]
        self._is_plain = len(set(kinds)) < len(kinds) or "{~" in "".join(self.asks)

    def task(self, words: Words, telling: bool = False) -> Use:
        """A use of the tool; one that is ``telling`` says what it is for, and not only the values."""
        asks = [ask for ask in self.asks if _says(ask)] if telling else self.asks
        rng = words.rng
        # Where values are told apart by small words, these stay.
        pattern = rng.choice(asks) if self._is_plain or rng.random() < 0.65 else words.wording(asks, free=False)
        return self.use(words, pattern)

    def use(self, words: Words, pattern: str) -> Use:
        """The use of the tool that a pattern asks for."""
        rng = words.rng
        values: dict[str, Any] = {}
        said: dict[str, str] = {}
        for each in self._offered:
            key = each.keys[0]
            while f"{{{key}}}" in pattern and key not in values:
                value, shown = each.kind.draw(words)
                if shown not in said.values():
                    values[key], said[key] = value, _in_words(rng, value, shown, pattern, key)
        asked = re.sub(r"\{~(\w+)\}", lambda match: _other(words, match[1], [*said.values()]), pattern)
        asked = re.sub(r"\b([Aa]) \{(\w+)\}", lambda match: f"{match[1]}{article(said[match[2]])[1:]}", asked)
        asked = re.sub(r"\{(\w+)\}", lambda match: said[match[1]], asked)
        if not pattern.startswith("{") and rng.random() < 0.4:
            asked = capitalised(asked)
        asked = re.sub(r"\.\.(?=\s|$)", ".", asked)
        if asked.endswith(".") and rng.random() < 0.08:
            asked = asked[:-1]
        given = zip(self._keys, (each.keys[0] for each in self._offered), strict=True)
        call = Call(self.tool.name, {key: values[first] for key, first in given if first in values})
        return Use(asked, call, tuple(values[each.keys[0]] for each in self.kind.parameters if each.keys[0] in values))


def _says(pattern: str) -> bool:
    return len(re.findall(r"[A-Za-z']{2,}", re.sub(r"\{~?\w+\}", "", pattern))) >= 3


def _in_words(rng: random.Random, value: Any, shown: str, pattern: str, key: str) -> str:
    """A small number now and then as a word, where a word of what is counted follows."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 < value < len(NUMBER_WORDS):
        return shown
    counted = re.search(rf"\w \{{{key}\}} [a-z]{{3}}", pattern)
    return NUMBER_WORDS[value] if counted and "percent" not in pattern and rng.random() < 0.3 else shown


def _other(words: Words, kind: str, taken: list[str]) -> str:
    """A value that is not meant."""
    while True:
        value = _NOISE[kind](words) if kind in _NOISE else str(KINDS[kind][1](words))
        if value not in taken:
            return value


_NOISE: dict[str, Callable[[Words], str]] = {
    "ip": lambda words: ".".join(str(words.number(1, 254)) for _ in range(4)),
    "seat": lambda words: f"{words.number(1, 38)}{words.rng.choice('ABCDEF')}",
    "chess_field": lambda words: f"{words.rng.choice('abcdefgh')}{words.number(1, 8)}",
}


def _thought(call: Call) -> str:
    said = (f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in call.arguments.items())
    arguments = ", ".join(said)
    return f"{call.name} fits. {arguments}." if arguments else f"{call.name} fits."


def _fits(offer: Offered, others: Sequence[Offered]) -> bool:
    return all(offer.tool.name.lower() != each.tool.name.lower() for each in others)


def _strangers(
    words: Words, family: Family, other: Callable[[Words], tuple[Offered, str]], count: int, beside: list[Offered]
) -> list[Offered]:
    """Tools of other domains, for which no request of the family can be meant."""
    rng = words.rng
    found: list[Offered] = []
    near, firsts = [family], list(_BROAD)
    while len(found) < count:
        if rng.random() < 0.5:
            offer, first = other(words)
            if first in firsts or any(first in each.clashing for each in near):
                continue
            firsts.append(first)
        else:
            distant = rng.choice(FAMILIES)
            if any(each is distant or frozenset((distant.name, each.name)) in CLOSE for each in near):
                continue
            if not distant.clashing.isdisjoint(firsts[len(_BROAD) :]):
                continue
            offer = WideOffer(words, rng.choice(distant.tools), distant.name)
            near.append(distant)
        if _fits(offer, [*beside, *found]):
            found.append(offer)
    return found


def document(words: Words, other: Callable[[Words], tuple[Offered, str]]) -> Document:
    """A conversation with tools of one domain at hand, and some others; ``other`` draws one with its first name."""
    rng = words.rng
    if rng.random() < LOOKING:
        return _looking(words)
    family = rng.choice(FAMILIES)
    count = rng.choice((1, 2, 2, 3, 3, 4))
    lacks = rng.random() < LACKING
    near: list[WideOffer] = []
    for kind in rng.sample(family.tools, min(count + lacks, len(family.tools))):
        offer = WideOffer(words, kind, family.name)
        if _fits(offer, near):
            near.append(offer)
    missing = near.pop() if lacks and len(near) > 1 else None
    beside: list[Offered] = [*near, *([missing] if missing else [])]
    strangers = _strangers(words, family, other, rng.choice((0, 0, 1, 1, 2)), beside)
    offered: list[Offered] = [*near, *strangers]
    rng.shuffle(offered)
    if rng.random() < DRILLED:
        return _drill(words, offered, missing)
    turns = [Turn("system", rng.choice(SYSTEMS))] if rng.random() < 0.3 else []
    requests = rng.choice(REQUESTS)
    thinks = rng.random() < 0.3
    for place in range(requests):
        thinking = thinks and place == requests - 1
        kind_drawn = rng.random()
        if kind_drawn < CHAT:
            asked, answer = answer_of_sapling(rng)
            turns += [
                Turn("user", asked),
                Turn("assistant", answer, thought="No tool is needed." if thinking else None),
            ]
        elif missing is not None and rng.random() < LACKED:
            asked = missing.task(words, telling=True).asked
            thought = "No tool fits." if thinking else None
            turns += [Turn("user", asked), Turn("assistant", rng.choice(NO_TOOL), thought=thought)]
        elif kind_drawn > 1 - TWICE:
            turns += _twice(words, rng.choice(near), rng.choice(near), thinking)
        else:
            chosen = rng.choice(near) if rng.random() < 0.75 else rng.choice(offered)
            turns += _used(words, chosen, thinking)
    return Document(turns, [each.tool for each in offered])


def _used(words: Words, chosen: Offered, thinking: bool) -> list[Turn]:
    rng = words.rng
    task = chosen.task(words)
    turns = [
        Turn("user", task.asked),
        Turn("assistant", calls=(task.call,), thought=_thought(task.call) if thinking else None),
    ]
    if isinstance(chosen, WideOffer) and isinstance(task, Use) and rng.random() < TOLD:
        text, answer = told(words, chosen.kind.names[0], task.values)
        turns += [Turn("tool", text), Turn("assistant", answer)]
    return turns


def _twice(words: Words, one: WideOffer, other: WideOffer, thinking: bool) -> list[Turn]:
    """Two requests at once, with a call for each."""
    rng = words.rng
    first, second = one.task(words, telling=True), other.task(words, telling=True)
    joined = rng.choice(_AGAIN)
    end = "" if first.asked[-1] in ".?!" else "."
    then = second.asked[:1].lower() + second.asked[1:] if joined == "Then " else second.asked
    if not second.asked[:2].istitle() or second.asked.startswith(("I ", "I'")):
        joined, then = "", second.asked
    thought = f"{_thought(first.call)} {_thought(second.call)}" if thinking else None
    return [
        Turn("user", f"{first.asked}{end} {joined}{then}"),
        Turn("assistant", calls=(first.call, second.call), thought=thought),
    ]


def _drill(words: Words, offered: Sequence[Offered], missing: WideOffer | None) -> Document:
    """One request after the other, each answered with the name of the tool for it, or that there is none."""
    rng = words.rng
    turns = [Turn("system", rng.choice(NAMING))]
    for _ in range(rng.choice((2, 3, 4, 5))):
        if missing is not None and rng.random() < 0.4:
            turns += [Turn("user", missing.task(words, telling=True).asked), Turn("assistant", NOTHING)]
            continue
        chosen = rng.choice(offered)
        turns += [Turn("user", chosen.task(words).asked), Turn("assistant", json.dumps(chosen.tool.name))]
    return Document(turns, [each.tool for each in offered])


def _looking(words: Words) -> Document:
    """Questions of which each is about one of the things that the same tool gives back."""
    rng = words.rng
    looked, *others = rng.sample(LOOKED, rng.choice((1, 2, 2, 3)))
    offer = WideOffer(words, looked.tool, "data")
    tools = [offer.tool]
    for each in others:
        beside = WideOffer(words, each.tool, "data")
        if beside.tool.name not in [tool.name for tool in tools]:
            tools.append(beside.tool)
    rng.shuffle(tools)
    turns = [Turn("system", rng.choice(SYSTEMS))] if rng.random() < 0.3 else []
    for _ in range(rng.choice((1, 1, 2))):
        turns += _asked_of(words, offer, looked)
    return Document(turns, tools)


def _asked_of(words: Words, offer: WideOffer, looked: Looked) -> list[Turn]:
    rng = words.rng
    first, *more = rng.sample(looked.aspects, 3)
    use = offer.use(words, rng.choice(first.asks))
    values: dict[str, Any] = {}
    for key, kind in rng.sample(looked.fields, len(looked.fields)):
        value, _ = kind.draw(words)
        while str(value) in map(str, (*values.values(), *use.values)):
            value, _ = kind.draw(words)
        values[key] = value
    if rng.random() < 0.3:
        for key in rng.sample(sorted(values.keys() - {first.key, *(each.key for each in more)}), 1):
            del values[key]
    absent = rng.random() < 0.1
    if absent:
        del values[first.key]
    result: Any = values
    kind_of_result = rng.random()
    given = {next(iter(use.call.arguments)): use.values[0]}
    if kind_of_result < 0.25:
        result = {**given, **values}
    elif kind_of_result < 0.4:
        result = {"data": values, "error": None}
    elif kind_of_result < 0.5:
        result = {**given, "details": values}
    elif kind_of_result < 0.6:
        result = [values]
    text = restyled(rng, json.dumps(result, ensure_ascii=False))
    if kind_of_result > 0.9:
        text = "\n".join(f"{key}: {value}" for key, value in values.items())
    answer = "The result does not say that." if absent else first.answer.format(values[first.key])
    turns = [
        Turn("user", use.asked),
        Turn("assistant", calls=(use.call,)),
        Turn("tool", text),
        Turn("assistant", answer),
    ]
    for aspect in more:
        if rng.random() < 0.3 and aspect.key in values:
            turns += [
                Turn("user", rng.choice(aspect.later)),
                Turn("assistant", aspect.answer.format(values[aspect.key])),
            ]
    return turns
