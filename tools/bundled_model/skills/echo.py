"""Copying from the context: the skill beneath looking up, extracting and calling."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from documents import Case, Document, Turn, conversation
from words import (
    CITIES,
    COLOURS,
    HOBBIES,
    ITEMS,
    JOBS,
    NOTHING,
    PETS,
    PLACES,
    TEST_ITEMS,
    TEST_PLACES,
    Stage,
    Words,
    made_up,
)

NAME = "echo"
COMMON = (*ITEMS, *COLOURS, *HOBBIES, *JOBS, *PETS, *PLACES, *(city.lower() for city in CITIES))

REPEAT_ASKS = (
    "Repeat: {t}",
    "Repeat after me: {t}",
    "Say: {t}",
    "Please repeat this: {t}",
    "Write this again: {t}",
    "Copy this text: {t}",
    "Echo: {t}",
    "Say this: {t}",
    "Say after me: {t}",
    "Please say this: {t}",
    "Please say this once more: {t}",
    "Please repeat: {t}",
    "Repeat the following text: {t}",
    "Repeat this: {t}",
    "Repeat these words: {t}",
    "Copy: {t}",
    "Copy this: {t}",
    "Please copy this text: {t}",
    "Write: {t}",
    "Please write: {t}",
    "Write down: {t}",
    "Write the same as I do: {t}",
    "Can you say this? {t}",
    "Could you repeat this for me? {t}",
    "I say: {t} Now you say it.",
    "Give me this text again: {t}",
    "Tell me this again: {t}",
    "Type this: {t}",
    "Print exactly this: {t}",
    "Say exactly this: {t}",
    "Answer with this text: {t}",
    "Your answer shall be: {t}",
)
TEST_REPEAT_ASKS = ("Please say: {t}", "Repeat this text: {t}", "Please copy: {t}")
PLACE_ASKS = (("first", 0), ("last", -1), ("second", 1), ("third", 2))
JSON_ASKS = (
    "Write as JSON: {t}",
    "As JSON: {t}",
    "Give me these words as JSON: {t}",
    "Make JSON of this: {t}",
    "{t}\nAs JSON, please.",
    "JSON of the words {t}",
    "Turn these words into JSON: {t}",
)
AFTER_ASKS = (
    "Which word comes after {w} in this list: {t}?",
    "In the list {t}, what comes after {w}?",
    "List: {t}\nWhat follows {w}?",
    "Which word follows {w}? {t}",
    "What stands behind {w} here: {t}?",
    "{t}\nWhich one comes after {w}?",
    "Here is a list: {t}. What is next after {w}?",
)
ORDINAL_ASKS = (
    "What is the {o} word of this list: {t}?",
    "Which word is {o} here: {t}?",
    "List: {t}\nName the {o} word.",
    "Tell me the {o} word: {t}",
    "{t}\nWhich word is the {o} one?",
    "Here are words: {t}. Give me the {o} one.",
    "Of these, which one is {o}: {t}?",
)


def word(words: Words) -> str:
    """Any word: a common one, a name, a number or one that was made up."""
    rng = words.rng
    kind = rng.random()
    if words.test:
        return rng.choice((words.pick(ITEMS, TEST_ITEMS), words.pick(PLACES, TEST_PLACES), words.name(), words.city()))
    if kind < 0.35:
        return rng.choice(COMMON)
    if kind < 0.7:
        return made_up(rng)
    if kind < 0.85:
        return words.name()
    return words.digits(rng.randint(1, 4)) if kind < 0.95 else words.code()


def pattern(rng: random.Random) -> Document:
    """Made-up lines that come again, of which only the repetition can be known."""
    words = Words(rng)
    once = [word(words) for _ in range(rng.randint(3, 14))]
    glue = rng.choice((" ", " ", ", ", "\n", "; "))
    again = glue + glue.join(once)
    pieces = [(glue.join(once), False)]
    for _ in range(rng.choice((1, 1, 2))):
        pieces += [(again, True)]
    return Document(plain=pieces)


def pairs(rng: random.Random) -> Document:
    """Keys with values, and then the same keys in another order, whose values can be known; others have none."""
    words = Words(rng)
    size, others = rng.randint(3, 9), rng.choice((0, 0, 1, 2, 4))
    keys = words.several(lambda: word(words), size + others)
    table = {key: word(words) for key in keys[:size]}
    strangers = words.several(lambda: word(words), others)
    mark, end = rng.choice(((": ", "\n"), (" = ", "\n"), (" is ", ". "), (": ", ", "), (" - ", "\n")))
    pieces = [("".join(f"{key}{mark}{value}{end}" for key, value in table.items()), False)]
    of = {value: key for key, value in table.items()}
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.55 and len(of) == size and of.keys().isdisjoint(strangers):
            # What stood before a value, which is harder to find than what stood behind a key.
            values = [*of, *strangers]
            rng.shuffle(values)
            for value in values:
                pieces += [(f"{value} <-", False), (f" {of.get(value, NOTHING)}{end}", True)]
            continue
        rng.shuffle(keys)
        for key in keys:
            value = table.get(key, NOTHING)
            pieces += [(key + mark.rstrip(), False), (f"{' ' if mark.endswith(' ') else ''}{value}{end}", True)]
    return Document(plain=pieces)


def members(rng: random.Random, stage: Stage) -> Document:
    """A list, and of one word after the other whether it is there: that one is not is harder to see."""
    words = Words(rng)
    if stage is not Stage.FIRST and rng.random() < 0.5:
        asked = rng.sample(COMMON, rng.randint(4, 16))
    else:
        asked = words.several(lambda: word(words), rng.randint(6, 16))
    inside = rng.sample(asked, rng.randint(2, len(asked) - 2))
    glue, yes, no = (
        rng.choice((", ", " ", "\n", "; ")),
        *rng.choice((("yes", "no"), ("here", "missing"), ("in", "out"))),
    )
    pieces = [(f"{glue.join(inside)}\n", False)]
    for each in asked:
        pieces += [(f"{each} <-", False), (f" {yes if each in inside else no}\n", True)]
    return Document(plain=pieces)


def exchange(words: Words) -> tuple[str, str]:
    """A question about words, and its answer."""
    rng = words.rng
    listing = words.several(lambda: word(words), rng.randint(3, 7))
    text = ", ".join(listing)
    kind = rng.random()
    if kind < 0.6:
        said = rng.choice(
            (
                " ".join(listing),
                text,
                listing[0],
                f"{listing[0]} and {listing[1]}",
                f"I like {listing[0]} and {listing[1]}.",
            )
        )
        return words.wording(REPEAT_ASKS, TEST_REPEAT_ASKS).format(t=said), said
    if kind < 0.8:
        ordinal, place = rng.choice(PLACE_ASKS)
        return words.wording(ORDINAL_ASKS).format(o=ordinal, t=text), listing[place]
    place = rng.randrange(len(listing) - 1)
    return words.wording(AFTER_ASKS).format(w=listing[place], t=text), listing[place + 1]


def quoted(words: Words) -> tuple[str, str]:
    """Words of a text as JSON, where they are other tokens: those of a text begin with the space before them."""
    rng = words.rng
    listing = words.several(lambda: made_up(rng) if rng.random() < 0.7 else word(words), rng.randint(2, 9))
    text = rng.choice((" ", ", ", " and ", " or ", "; ")).join(listing)
    wanted: list[str] | dict[str, str] = listing
    if rng.random() < 0.4:
        keys = words.several(lambda: made_up(rng), len(listing))
        wanted = dict(zip(keys, listing, strict=True))
        text = rng.choice((", ", "\n", "; ")).join(f"{key}: {value}" for key, value in wanted.items())
    return words.wording(JSON_ASKS).format(t=text), json.dumps(wanted)


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """A repetition, a table, a list or a few questions."""
    if stage is Stage.DRILLS and rng.random() < 0.5:
        return members(rng, stage)
    kind = rng.random()
    words = Words(rng)
    if kind < 0.08:
        return pattern(rng)
    if kind < 0.32:
        return pairs(rng)
    if kind < 0.44:
        return members(rng, stage)
    if kind < 0.76:
        return conversation([quoted(words) for _ in range(rng.choice((1, 2, 3)))])
    return conversation([exchange(words) for _ in range(rng.choice((1, 1, 2, 3)))])


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Words and wordings that training never used."""
    words = Words(rng, test=True)
    for _ in range(count):
        asked, answer = exchange(words)
        yield Case("repeating", [Turn("user", asked)], exactly=answer)
