"""Choosing a tool, calling it with what the user said, and saying what came of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from documents import Call, Case, Document, Tool, Turn
from words import NOTHING, TEST_NOUNS, Stage, Words, capitalised, made_up

from skills.arithmetic import is_held_out
from skills.arithmetic import result as sum_result
from skills.conversation import answer_of_sapling
from skills.tool_table import DETAILS, INTEGER, NOUNS, SKILLS, STRING, VERBS, Detail, Skill

NAME = "tools"
NO_TOOL = ("I have no tool for that.", "I am sorry, none of my tools can do that.")
# Part of the tools that are of a verb and a noun, and part of those beside one that have its verb or its noun.
PLAIN = dict.fromkeys(Stage, 0.35) | {Stage.TOOLS: 0.75}
NEAR = dict.fromkeys(Stage, 0.4) | {Stage.TOOLS: 0.1}
# Part of the tools of the table that have a name of their own in training, and part of the others, whose names the
# request would tell otherwise.
RENAMED = dict.fromkeys(Stage, 0.4) | {Stage.FIRST: 0.15, Stage.DRILLS: 0.5}
HIDDEN = dict.fromkeys(Stage, 0.4) | {Stage.FIRST: 0.0, Stage.DRILLS: 0.6}
# Part of the documents whose tools are not described, where their names tell what they do.
UNDESCRIBED = 0.08
# Part of the documents in which no tool fits some of the requests, and part of these requests.
LACKING, LACKED = dict.fromkeys(Stage, 0.5) | {Stage.TALK: 0.6}, 0.5
# Part of the documents in which one request after the other is told to a tool, or to none, and nothing else.
DRILLED = {
    Stage.FIRST: 0.2,
    Stage.DRILLS: 0.45,
    Stage.TOOLS: 0.7,
    Stage.MIXED: 0.2,
    Stage.TALK: 0.35,
    Stage.FOUND: 0.15,
    Stage.NOTED: 0.15,
    Stage.LAST: 0.12,
}
# Tools take many tokens to tell and are told once: most conversations ask for several things.
REQUESTS = (1, 1, 2, 3, 4)
NAMES = {name for skill in SKILLS for name in skill.names}
SYSTEMS = (
    "You are a helpful assistant.",
    "You are Sapling. Use the tools where they help.",
    "Use the tools.",
    "You are an assistant with tools.",
)


NAMING = ("Say which tool fits, or none.", "Name the tool for it, or say none.", "Do not call. Which tool is it?")


@dataclass(frozen=True)
class Task:
    """A tool, a request for it, the right call, what comes back and what to say then.

    ``again`` makes another request for the same tool, under the same names; ``of`` are its verb and its noun.
    """

    tool: Tool
    asked: str
    call: Call
    outcome: dict[str, Any]
    reply: str
    again: Callable[[Words], Task]
    of: tuple[str, str] = ("", "")


def combined(words: Words, near: Task | None = None) -> Task:
    """A tool of a verb and a noun, one of them that of a task ``near`` if there is one, with a way to ask for it."""
    rng = words.rng
    verb = rng.choice(list(VERBS))
    noun = words.pick(NOUNS, TEST_NOUNS, 0.6)
    if near is not None:
        near_verb, near_noun = near.of
        verb, noun = rng.choice(((near_verb, noun), (near_verb, noun), (verb, near_noun)))
    detail = rng.choice(DETAILS)
    name = f"{verb}_{noun.replace(' ', '_')}"
    if HIDDEN[words.stage] and not words.test and rng.random() < HIDDEN[words.stage]:
        name = _other_name(words, name)
    return _of_noun(words, name, verb, noun, detail)


def _of_noun(words: Words, name: str, verb: str, noun: str, detail: Detail) -> Task:
    rng = words.rng
    key, short, long, value = detail
    drawn = value(words)
    said = rng.choice(VERBS[verb])
    end = "?" if said.startswith(("What is", "Can you", "Could you")) else "."
    ending = rng.choice((short, short, long)).format(v=drawn)
    held_out = f"Please {verb} the {{noun}}{{ending}}."
    asked = words.wording([f"{said} the {{noun}}{{ending}}{end}"], [held_out], free=False)
    asked = asked.format(noun=noun, ending=short.format(v=drawn) if words.test else ending)
    schema = {key: dict(STRING)}
    if verb == "rate":
        schema["points"] = dict(INTEGER)
        points = words.number(1, 10)
        asked = f"{asked[:-1]} {rng.choice(('with', 'as'))} {points} points."
        call = Call(name, {key: drawn, "points": points})
    else:
        call = Call(name, {key: drawn})
    outcome: dict[str, Any] = {"ok": True}
    reply = f"Done: {verb} the {noun}."
    if verb == "get":
        found = rng.choice((words.number(1, 900), words.name(), words.city(), words.code()))
        outcome, reply = {noun.replace(" ", "_"): found}, f"The {noun} is {found}."
    tool = Tool(name, f"{verb.capitalize()} {_a(noun)}.", schema)
    again = partial(_of_noun, name=name, verb=verb, noun=noun, detail=detail)
    return Task(tool, asked, call, outcome, reply, again, (verb, noun))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def curated(words: Words, skill: Skill, again: Call | None = None) -> Task:
    """One use of a tool of the table, under one of its names or those of a call that is to be made ``again``."""
    rng = words.rng
    usual = rng.random() < 0.5
    name = skill.names[0] if usual else rng.choice(skill.names)
    keys = {key: key if usual else rng.choice(skill.renamed.get(key, (key,))) for key in skill.parameters}
    if again is not None:
        name, keys = again.name, dict(zip(keys, again.arguments, strict=True))
    elif not words.test and rng.random() < RENAMED[words.stage]:
        # What a tool is called and what its arguments are called is for the offer to say.
        name = _other_name(words, name)
        if len(keys) == 1 and rng.random() < 0.5:
            keys = {key: made_up(rng) for key in keys}
    values = {key: draw(words) for key, (_, draw) in skill.parameters.items()}
    while not words.test and {"a", "b"} <= set(values) and is_held_out("+", values["a"], values["b"]):
        values = {key: draw(words) for key, (_, draw) in skill.parameters.items()}
    asked = words.wording(skill.asks, skill.test_asks, free=False).format(**values)
    asked = capitalised(asked) if rng.random() < 0.9 else asked
    arguments = {keys[key]: value for key, value in values.items()}
    outcome = skill.outcome(words)
    if outcome.get("result", 0) is None:
        outcome = {"result": sum_result("+" if "{a} + {b}" in skill.replies[0] else "x", values["a"], values["b"])}
    reply = rng.choice(skill.replies).format(**values, **outcome)
    parameters = {keys[key]: dict(schema) for key, (schema, _) in skill.parameters.items()}
    extra = rng.random()
    for key, schema in parameters.items():
        if extra < 0.2:
            schema["description"] = f"{rng.choice(('The', 'The', 'A', 'Which'))} {key.replace('_', ' ')}."
        elif extra < 0.25:
            schema["title"] = key.replace("_", " ").title()
    tool = Tool(name, rng.choice(skill.descriptions), parameters)
    call = Call(name, arguments)
    return Task(tool, asked, call, outcome, reply, lambda words: curated(words, skill, call))


def _other_name(words: Words, name: str) -> str:
    """Another name for a tool, of which some say nothing of what it does."""
    rng = words.rng
    made = made_up(rng)
    parts = name.split("_")
    return rng.choice((made, f"{made}_{name}", f"{name}_{made}", f"{name}_tool", f"do_{name}", "_".join(parts[::-1])))


def task(words: Words) -> tuple[Task, Skill | None]:
    """A use of any tool."""
    if words.rng.random() < PLAIN[words.stage]:
        return combined(words), None
    skill = words.rng.choice(SKILLS)
    return curated(words, skill), skill


def offered(words: Words, wanted: Task, skill: Skill | None, count: int) -> list[Task]:
    """The wanted tool, which is of ``skill``, among others that do something else, in any order."""
    tools = {wanted.tool.name: wanted}
    done = [skill] if skill is not None else []
    while len(tools) < count:
        # What two tools have in common does not tell them apart.
        is_near = skill is None and not words.test and words.rng.random() < NEAR[words.stage]
        other, of = (combined(words, near=wanted), None) if is_near else task(words)
        if other.tool.name not in tools and not any(of is each for each in done):
            tools[other.tool.name] = other
            done += [of] if of is not None else []
    listing = list(tools.values())
    words.rng.shuffle(listing)
    return listing


def undescribed(tool: Tool) -> Tool:
    """The tool without its description, if its name tells what it does."""
    tells = tool.name in NAMES or tool.name.partition("_")[0] in VERBS
    return replace(tool, description="") if tells else tool


def _thought(wanted: Task) -> str:
    arguments = ", ".join(f"{key}: {value}" for key, value in wanted.call.arguments.items())
    return f"{wanted.call.name} fits. {arguments}."


def drill(words: Words) -> Document:
    """Tools, and for one request after the other the name of the one that fits, if any does."""
    rng = words.rng
    wanted, skill = task(words)
    count = rng.choice((1, 2, 3, 4))
    tasks = offered(words, wanted, skill, count + rng.choice((1, 2, 3)))
    told = [{"name": each.tool.name, "description": each.tool.description} for each in tasks[:count]]
    pieces = [("".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in told), False)]
    turns: list[Turn] = []
    for _ in range(rng.choice((4, 6, 8, 10))):
        place = rng.randrange(count) if rng.random() < 0.5 else rng.randrange(count, len(tasks))
        asked = tasks[place].again(words)
        answer = json.dumps(asked.call.name) if place < count else NOTHING
        pieces += [(f"{asked.asked} <-", False), (f" {answer}\n", True)]
        turns += [Turn("user", asked.asked), Turn("assistant", answer)]
    if words.is_late and rng.random() < 0.65:
        return Document([Turn("system", rng.choice(NAMING)), *turns], [each.tool for each in tasks[:count]])
    return Document(plain=pieces)


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """A conversation with tools at hand, most of which are used."""
    words = Words(rng, stage=stage)
    if rng.random() < DRILLED[stage]:
        return drill(words)
    missing, skill = task(words)
    lacks = rng.random() < LACKING[stage]
    tasks = offered(words, missing, skill, rng.choice((1, 2, 2, 3, 3, 4, 5)) + lacks)
    if lacks:
        tasks.remove(missing)
    tools = [task.tool for task in tasks]
    if rng.random() < UNDESCRIBED:
        tools = [undescribed(tool) for tool in tools]
    turns = [Turn("system", rng.choice(SYSTEMS))] if rng.random() < 0.3 else []
    requests = rng.choice(REQUESTS)
    thinks = rng.random() < (0.4 if stage >= Stage.FOUND else 0.3)
    for place in range(requests):
        # Thoughts of earlier questions are not shown to the model.
        thinking = thinks and place == requests - 1
        kind = rng.random()
        if kind < 0.1:
            asked, answer = answer_of_sapling(rng)
            turns += _answered(asked, answer, "No tool is needed." if thinking else None)
        elif lacks and kind < 0.1 + 0.9 * LACKED:
            asked = (missing.again(words) if place else missing).asked
            turns += _answered(asked, rng.choice(NO_TOOL), "No tool fits." if thinking else None)
        elif kind > 0.92:
            # The same tool twice in one turn.
            chosen = rng.choice(tasks)
            turns += _twice(words, chosen.again(words), chosen.again(words), thinking)
        else:
            turns += _use(words, rng.choice(tasks).again(words), thinking)
    return Document(turns, tools)


def _answered(asked: str, answer: str, thought: str | None) -> list[Turn]:
    return [Turn("user", asked), Turn("assistant", answer, thought=thought)]


def outcome_text(outcome: dict[str, Any], words: Words | None = None) -> str:
    """What a tool gives back, in the last stages as often without spaces."""
    tight = words is not None and words.is_wide and words.rng.random() < 0.5
    return json.dumps(outcome, ensure_ascii=False, separators=(",", ":") if tight else None)


def _use(words: Words, wanted: Task, thinking: bool) -> list[Turn]:
    rng = words.rng
    turns = [
        Turn("user", wanted.asked),
        Turn("assistant", calls=(wanted.call,), thought=_thought(wanted) if thinking else None),
    ]
    if rng.random() < 0.8:
        turns += [Turn("tool", outcome_text(wanted.outcome, words)), Turn("assistant", wanted.reply)]
    return turns


def _twice(words: Words, first: Task, second: Task, thinking: bool) -> list[Turn]:
    rng = words.rng
    asked = f"{first.asked} {rng.choice(('And then: ', 'Then ', 'And: ', 'Also: ', ''))}{second.asked}"
    return [
        Turn("user", asked),
        Turn(
            "assistant",
            calls=(first.call, second.call),
            thought=f"{_thought(first)} {_thought(second)}" if thinking else None,
        ),
        Turn("tool", outcome_text(first.outcome, words)),
        Turn("tool", outcome_text(second.outcome, words)),
        Turn("assistant", f"{first.reply} {second.reply}"),
    ]


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Requests, values and tools that training never used."""
    words = Words(rng, test=True)
    for place in range(count):
        wanted, skill = task(words)
        tools = [task.tool for task in offered(words, wanted, skill, rng.choice((2, 3, 4)))]
        asked = Turn("user", wanted.asked)
        if place % 10 < 5:
            yield Case("tool choice", [asked], tools, calls=(wanted.call,))
        elif place % 10 == 5:
            yield Case("tool choice, thinking", [asked], tools, thinking=True, calls=(wanted.call,))
        elif place % 10 == 6:
            yield Case("tool choice, no descriptions", [asked], [*map(undescribed, tools)], calls=(wanted.call,))
        elif place % 10 == 7:
            said = [str(value) for value in wanted.outcome.values() if value is not True]
            # Where nothing came back but that it was done, the answer names what was done.
            expected = (said[0],) if said else (wanted.reply, *map(str, wanted.call.arguments.values()))
            turns = [asked, Turn("assistant", calls=(wanted.call,)), Turn("tool", outcome_text(wanted.outcome))]
            yield Case("tool result", turns, tools, contains=expected)
        else:
            remaining = [tool for tool in tools if tool is not wanted.tool]
            yield Case("no fitting tool", [asked], remaining, contains=("no tool", "none of my tools"))
