"""What people write down: of places, things and plans, each with what may be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from words import DAYS, MONTHS, Words, capitalised, made_up


@dataclass(frozen=True)
class Noted:
    """A kind of note.

    Attributes:
        draws: the values, by letter.
        told: ways to write them down.
        asks: questions, each with its answer and the letter of the value that counts.
    """

    draws: Mapping[str, Callable[[Words], str]]
    told: tuple[str, ...]
    asks: tuple[tuple[str, str, str], ...]


def _of(*values: str, invented: float = 0.3) -> Callable[[Words], str]:
    return lambda words: made_up(words.rng) if words.rng.random() < invented else words.rng.choice(values)


def _number(low: int, high: int) -> Callable[[Words], str]:
    return lambda words: str(words.number(low, high))


def _hour(words: Words) -> str:
    return words.time() if words.rng.random() < 0.6 else str(words.number(6, 22))


def _date(words: Words) -> str:
    return words.rng.choice((words.rng.choice(DAYS), f"{words.number(1, 28)} {words.rng.choice(MONTHS)}"))


def _thing(words: Words) -> str:
    return words.rng.choice((words.items(), made_up(words.rng), f"{words.colour()} {made_up(words.rng)}"))


_PLACE = _of(
    "library",
    "bakery",
    "museum",
    "pool",
    "shop",
    "office",
    "market",
    "school",
    "cinema",
    "bank",
    "café",
    "gym",
)
_MEAL = _of("breakfast", "lunch", "dinner", "tea", "supper", invented=0.1)
_SPOT = _of(
    "in the drawer",
    "under the mat",
    "behind the clock",
    "in the cellar",
    "on the shelf",
    "in the car",
    "at the gate",
    "under the stairs",
    "in the blue box",
    "next to the door",
    "in the garage",
    "on the roof",
    "in the shed",
    invented=0.0,
)
_OBJECT = _of(
    "map",
    "ladder",
    "umbrella",
    "camera",
    "rope",
    "lamp",
    "kettle",
    "tent",
    "drill",
    "letter",
    "spare key",
    "bike",
)
_FOOD = _of(
    "soup",
    "pasta",
    "fish",
    "rice",
    "pancakes",
    "salad",
    "potatoes",
    "curry",
    "stew",
    "pie",
)
_MEETING = _of(
    "meeting",
    "party",
    "concert",
    "exam",
    "course",
    "match",
    "rehearsal",
    "wedding",
    "picnic",
)
_ROOM = _of(
    "the hall",
    "the garden",
    "the kitchen",
    "the library",
    "the gym",
    "the barn",
    invented=0.2,
)
_ROLE = _of(
    "client",
    "plumber",
    "doctor",
    "bank",
    "school",
    "printer",
    "landlord",
    "guide",
    invented=0.2,
)
_BUILDING = _of("tower", "bridge", "church", "station", "theatre", "castle", "hotel", "harbour")
_PET = _of("cat", "dog", "horse", "parrot", "rabbit", "goat", invented=0.1)
_SUBJECT = _of("maths", "history", "music", "biology", "art", "French", "sport")

NOTED: tuple[Noted, ...] = (
    Noted(
        {"p": _PLACE, "t": _hour},
        ("The {p} opens at {t}.", "The {p} is open from {t} on.", "We can enter the {p} at {t}.", "{p}: opens {t}"),
        (
            ("When does the {p} open?", "The {p} opens at {t}.", "t"),
            ("At what time can I go to the {p}?", "The {p} opens at {t}.", "t"),
            ("What opens at {t}?", "The {p} opens at {t}.", "p"),
        ),
    ),
    Noted(
        {"p": _PLACE, "t": _hour},
        ("The {p} closes at {t}.", "The {p} is closed from {t} on.", "The {p} shuts at {t}."),
        (
            ("When does the {p} close?", "The {p} closes at {t}.", "t"),
            ("How long is the {p} open?", "The {p} closes at {t}.", "t"),
        ),
    ),
    Noted(
        {"m": _MEAL, "t": _hour},
        ("{M} is at {t}.", "We have {m} at {t}.", "{M} is served from {t} on.", "There is {m} at {t}.", "{m} {t}"),
        (
            ("When is {m}?", "{M} is at {t}.", "t"),
            ("What time is {m}?", "{M} is at {t}.", "t"),
            ("When do we have {m}?", "{M} is at {t}.", "t"),
        ),
    ),
    Noted(
        {"n": Words.name, "c": Words.city},
        (
            "{n} moved to {c}.",
            "{n} has moved to {c} last year.",
            "{n} now lives in {c}.",
            "Last spring {n} went to {c}.",
        ),
        (
            ("Where did {n} move?", "{n} moved to {c}.", "c"),
            ("Where does {n} live now?", "{n} lives in {c}.", "c"),
            ("Who moved to {c}?", "{n} moved to {c}.", "n"),
        ),
    ),
    Noted(
        {"o": _OBJECT, "w": _SPOT},
        ("The {o} is {w}.", "You find the {o} {w}.", "I put the {o} {w}.", "The {o} lies {w}.", "We keep the {o} {w}."),
        (
            ("Where is the {o}?", "The {o} is {w}.", "w"),
            ("Where do I find the {o}?", "The {o} is {w}.", "w"),
            ("Where did you put the {o}?", "The {o} is {w}.", "w"),
            ("What is {w}?", "The {o} is {w}.", "o"),
        ),
    ),
    Noted(
        {"n": Words.name, "d": lambda w: w.digits(w.number(4, 7))},
        (
            "{n}'s number is {d}.",
            "The number of {n} is {d}.",
            "Call {n} at {d}.",
            "{n}: {d}",
            "{n} has the phone number {d}.",
        ),
        (
            ("What is {n}'s number?", "The number of {n} is {d}.", "d"),
            ("How can I call {n}?", "The number of {n} is {d}.", "d"),
            ("Whose number is {d}?", "{d} is the number of {n}.", "n"),
        ),
    ),
    Noted(
        {
            "o": _of("wifi", "safe", "computer", "alarm", "garage", "door"),
            "v": lambda w: w.rng.choice((w.digits(4), w.code(), made_up(w.rng).capitalize())),
        },
        ("The {o} password is {v}.", "The password of the {o} is {v}.", "The code of the {o} is {v}.", "{o} code: {v}"),
        (
            ("What is the {o} password?", "The {o} password is {v}.", "v"),
            ("What is the code of the {o}?", "The code of the {o} is {v}.", "v"),
            ("How do I get into the {o}?", "The code of the {o} is {v}.", "v"),
        ),
    ),
    Noted(
        {"m": _MEETING, "d": _date},
        (
            "The {m} is on {d}.",
            "The {m} takes place on {d}.",
            "On {d} there is the {m}.",
            "{m}: {d}",
            "The {m} was moved to {d}.",
        ),
        (
            ("When is the {m}?", "The {m} is on {d}.", "d"),
            ("On which day is the {m}?", "The {m} is on {d}.", "d"),
            ("What is on {d}?", "The {m} is on {d}.", "m"),
        ),
    ),
    Noted(
        {"m": _MEETING, "w": _ROOM},
        ("The {m} is in {w}.", "The {m} takes place in {w}.", "We meet in {w} for the {m}."),
        (("Where is the {m}?", "The {m} is in {w}.", "w"), ("What is in {w}?", "The {m} is in {w}.", "m")),
    ),
    Noted(
        {"c": Words.city, "q": _number(1, 30)},
        ("The train to {c} leaves from platform {q}.", "Platform {q}: train to {c}.", "For {c} go to platform {q}."),
        (
            ("Which platform is the train to {c}?", "The train to {c} leaves from platform {q}.", "q"),
            ("From which platform does the train to {c} leave?", "The train to {c} leaves from platform {q}.", "q"),
            ("Where does the train from platform {q} go?", "The train from platform {q} goes to {c}.", "c"),
        ),
    ),
    Noted(
        {"d": lambda w: w.rng.choice(DAYS), "f": _FOOD},
        ("On {d} there is {f} for lunch.", "{d}: {f}", "We eat {f} on {d}.", "The dish on {d} is {f}."),
        (
            ("What is for lunch on {d}?", "On {d} there is {f}.", "f"),
            ("What do we eat on {d}?", "On {d} there is {f}.", "f"),
            ("When is there {f}?", "There is {f} on {d}.", "d"),
        ),
    ),
    Noted(
        {"n": Words.name, "a": _PET, "x": Words.name},
        ("{n}'s {a} is called {x}.", "The {a} of {n} is called {x}.", "{n} has a {a} with the name {x}."),
        (
            ("What is {n}'s {a} called?", "{n}'s {a} is called {x}.", "x"),
            ("What is the name of {n}'s {a}?", "{n}'s {a} is called {x}.", "x"),
            ("Whose {a} is {x}?", "{x} is the {a} of {n}.", "n"),
        ),
    ),
    Noted(
        {"o": _thing, "q": _number(1, 900)},
        ("The {o} costs {q} euros.", "We paid {q} euros for the {o}.", "The price of the {o} is {q} euros."),
        (
            ("How much is the {o}?", "The {o} costs {q} euros.", "q"),
            ("What does the {o} cost?", "The {o} costs {q} euros.", "q"),
            ("What costs {q} euros?", "The {o} costs {q} euros.", "o"),
        ),
    ),
    Noted(
        {
            "q": _number(2, 90),
            "i": Words.items,
            "w": _of("shed", "cellar", "garage", "attic", "kitchen", "shop", "barn"),
        },
        (
            "There are {q} {i} in the {w}.",
            "We have {q} {i} in the {w}.",
            "The {w} holds {q} {i}.",
            "{q} {i} are in the {w}.",
        ),
        (
            ("How many {i} are in the {w}?", "There are {q} {i} in the {w}.", "q"),
            ("How many {i} do we have?", "There are {q} {i} in the {w}.", "q"),
            ("Where are the {i}?", "The {i} are in the {w}.", "w"),
        ),
    ),
    Noted(
        {"n": Words.name, "r": _ROLE},
        ("{n} calls the {r}.", "{n} will call the {r}.", "The {r} is called by {n}.", "{n} talks to the {r}."),
        (
            ("Who calls the {r}?", "{n} calls the {r}.", "n"),
            ("Who will talk to the {r}?", "{n} calls the {r}.", "n"),
            ("Whom does {n} call?", "{n} calls the {r}.", "r"),
        ),
    ),
    Noted(
        {"n": Words.name, "i": _thing},
        ("{n} brings the {i}.", "The {i} will be brought by {n}.", "{n} takes care of the {i}.", "{n} buys the {i}."),
        (
            ("Who brings the {i}?", "{n} brings the {i}.", "n"),
            ("What does {n} bring?", "{n} brings the {i}.", "i"),
            ("Who takes care of the {i}?", "{n} takes care of the {i}.", "n"),
        ),
    ),
    Noted(
        {"b": _BUILDING, "n": Words.full_name},
        (
            "The {b} was built by {n}.",
            "{n} built the {b}.",
            "The architect of the {b} is {n}.",
            "{n} designed the {b}.",
        ),
        (
            ("Who built the {b}?", "The {b} was built by {n}.", "n"),
            ("Who is the architect of the {b}?", "The architect of the {b} is {n}.", "n"),
            ("What did {n} build?", "{n} built the {b}.", "b"),
        ),
    ),
    Noted(
        {"b": _BUILDING, "q": _number(1200, 2020)},
        ("The {b} was built in {q}.", "The {b} is from {q}.", "In {q} the {b} was opened."),
        (
            ("When was the {b} built?", "The {b} was built in {q}.", "q"),
            ("How old is the {b}?", "The {b} was built in {q}.", "q"),
        ),
    ),
    Noted(
        {"o": _of("robot", "box", "parcel", "boat", "bell", "engine", "bag"), "q": _number(2, 900)},
        ("The {o} weighs {q} kilos.", "The weight of the {o} is {q} kilos.", "{q} kilos is what the {o} weighs."),
        (
            ("How much does the {o} weigh?", "The {o} weighs {q} kilos.", "q"),
            ("What is the weight of the {o}?", "The {o} weighs {q} kilos.", "q"),
            ("How heavy is the {o}?", "The {o} weighs {q} kilos.", "q"),
        ),
    ),
    Noted(
        {"o": _OBJECT, "c": Words.colour},
        ("The {o} is {c}.", "We have a {c} {o}.", "Somebody painted the {o} {c}."),
        (("What colour is the {o}?", "The {o} is {c}.", "c"), ("What is {c}?", "The {o} is {c}.", "o")),
    ),
    Noted(
        {"n": Words.name, "q": _number(1, 400)},
        ("{n} is in room {q}.", "Room {q} is for {n}.", "{n} sleeps in room {q}.", "{n} has room {q}."),
        (
            ("Which room does {n} have?", "{n} is in room {q}.", "q"),
            ("In which room is {n}?", "{n} is in room {q}.", "q"),
            ("Who is in room {q}?", "{n} is in room {q}.", "n"),
        ),
    ),
    Noted(
        {"n": Words.name, "s": _SUBJECT},
        ("{n} teaches {s}.", "The {s} teacher is {n}.", "{S} is taught by {n}."),
        (
            ("Who teaches {s}?", "{n} teaches {s}.", "n"),
            ("What does {n} teach?", "{n} teaches {s}.", "s"),
            ("Who is the {s} teacher?", "The {s} teacher is {n}.", "n"),
        ),
    ),
    Noted(
        {"o": _OBJECT, "n": Words.name},
        ("The {o} belongs to {n}.", "The {o} is {n}'s.", "{n} owns the {o}.", "{n} lent us the {o}."),
        (
            ("Whose is the {o}?", "The {o} belongs to {n}.", "n"),
            ("Who owns the {o}?", "The {o} belongs to {n}.", "n"),
            ("What belongs to {n}?", "The {o} belongs to {n}.", "o"),
        ),
    ),
    Noted(
        {"r": _of("doctor", "dentist", "barber", "vet", "lawyer"), "d": _date, "t": _hour},
        ("I see the {r} on {d} at {t}.", "{d}, {t}: {r}", "The {r} expects us on {d} at {t}."),
        (
            ("When do I see the {r}?", "You see the {r} on {d} at {t}.", "d"),
            ("At what time is the {r}?", "The {r} is at {t}.", "t"),
            ("Whom do I see on {d}?", "You see the {r} on {d}.", "r"),
        ),
    ),
    Noted(
        {"b": _of("tower", "hill", "oak", "wall", "mast", "statue"), "q": _number(2, 300)},
        ("The {b} is {q} metres high.", "The height of the {b} is {q} metres.", "The {b} has {q} metres."),
        (
            ("How high is the {b}?", "The {b} is {q} metres high.", "q"),
            ("How tall is the {b}?", "The {b} is {q} metres high.", "q"),
        ),
    ),
    Noted(
        {
            "k": _of("maple", "beech", "plum", "bush", "fern", "rose"),
            "c": Words.colour,
            "w": _of("gate", "pond", "wall", "house", "bench"),
        },
        (
            "The {k} at the {w} has {c} leaves.",
            "By the {w} stands a {k} with {c} leaves.",
            "The leaves of the {k} at the {w} are {c}.",
        ),
        (
            ("What stands at the {w}?", "At the {w} stands the {k}.", "k"),
            ("Which plant has {c} leaves?", "The {k} has {c} leaves.", "k"),
            ("Where is the {k}?", "The {k} is at the {w}.", "w"),
        ),
    ),
    Noted(
        {"n": Words.name, "d": _date},
        ("{n}'s birthday is on {d}.", "{n} was born on {d}.", "{n} comes back on {d}.", "{n} arrives on {d}."),
        (("When does {n} come back?", "{n} comes back on {d}.", "d"), ("When is {n}'s day?", "It is on {d}.", "d")),
    ),
    Noted(
        {"o": _of("report", "form", "rent", "homework", "bill", "parcel", "test"), "d": _date},
        ("The {o} is due on {d}.", "Hand in the {o} by {d}.", "The {o} must be done by {d}.", "{o} until {d}"),
        (
            ("When is the {o} due?", "The {o} is due on {d}.", "d"),
            ("Until when do I have time for the {o}?", "The {o} is due on {d}.", "d"),
            ("What is due on {d}?", "The {o} is due on {d}.", "o"),
        ),
    ),
)


@dataclass(frozen=True)
class Line:
    """A note as it is written, and its values."""

    kind: Noted
    values: Mapping[str, str]
    text: str

    def ask(self, words: Words) -> tuple[str, str, str]:
        """A question, its answer, and the value that counts."""
        asked, answer, letter = words.rng.choice(self.kind.asks)
        shown = _shown(self.values)
        return asked.format(**shown), answer.format(**shown), self.values[letter]


def _shown(values: Mapping[str, str]) -> dict[str, str]:
    capitals = {key.upper(): capitalised(value) for key, value in values.items()}
    return {**values, **capitals}


def lines(words: Words, count: int, more: tuple[Noted, ...] = ()) -> list[Line]:
    """Up to ``count`` notes of which no two have a value in common, some of the kinds ``more``."""
    rng, found, taken = words.rng, list[Line](), set[str]()
    every = NOTED + more
    kinds = rng.sample(every, min(len(every), rng.choice((2, 4, 8, len(every)))))
    for _ in range(4 * count):
        kind = rng.choice(kinds)
        values = {letter: draw(words) for letter, draw in kind.draws.items()}
        if len(set(values.values())) < len(values) or taken & set(values.values()):
            continue
        taken |= set(values.values())
        found.append(Line(kind, values, rng.choice(kind.told).format(**_shown(values))))
        if len(found) == count:
            break
    return found
