"""Words that the generators put into their templates; those held out are drawn for the evaluation only."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from nouns import NOUNS as COMMON_NOUNS
from phrasings import HELD_OUT_NAMES, NAMES

TOKENIZER = Path(__file__).parents[2] / "src/bough/assets/sapling/tokenizer.json"
"""That of the bundled model."""

ONSETS = (
    "b",
    "br",
    "c",
    "ch",
    "d",
    "dr",
    "f",
    "fl",
    "g",
    "gr",
    "h",
    "j",
    "k",
    "kl",
    "l",
    "m",
    "n",
    "p",
    "pl",
    "qu",
    "r",
    "s",
    "sh",
    "st",
    "t",
    "th",
    "tr",
    "v",
    "w",
    "y",
    "z",
    "",
)
VOWELS = ("a", "e", "i", "o", "u", "a", "e", "i", "o", "ai", "ea", "ee", "ia", "io", "oo", "ou")
CODAS = ("", "", "", "", "n", "r", "l", "s", "t", "m", "k", "nd", "rt", "x", "ck", "ng", "p", "st")

TEST_NAMES = (
    *HELD_OUT_NAMES,
    "Agnes",
    "Boris",
    "Celine",
    "Dmitri",
    "Esther",
    "Florian",
    "Gloria",
    "Harold",
    "Ingrid",
    "Jasper",
    "Kirsten",
    "Lorenzo",
    "Matilda",
    "Nigel",
    "Ottilie",
    "Penelope",
    "Raymond",
    "Stella",
    "Tobias",
    "Valerie",
)
SURNAMES = (
    "Adler",
    "Baker",
    "Carter",
    "Diaz",
    "Evans",
    "Fischer",
    "Garcia",
    "Hansen",
    "Ito",
    "Jones",
    "Keller",
    "Larsen",
    "Meyer",
    "Novak",
    "Olsen",
    "Petrov",
    "Reed",
    "Silva",
    "Turner",
    "Weber",
    "Young",
    "Ziegler",
    "Brown",
    "Clark",
    "Hill",
    "Kumar",
    "Moreau",
    "Rossi",
    "Singh",
    "Smith",
    "Taylor",
    "Walker",
    "Wright",
    "Lopez",
    "Nguyen",
    "Park",
    "Sato",
    "Stone",
)
TEST_SURNAMES = (
    "Abbott",
    "Bergman",
    "Castillo",
    "Dawson",
    "Eriksen",
    "Fontaine",
    "Grant",
    "Hoffman",
    "Jensen",
    "Lambert",
)
CITIES = (
    "Berlin",
    "Paris",
    "Rome",
    "Madrid",
    "Lisbon",
    "Oslo",
    "Vienna",
    "Prague",
    "Warsaw",
    "Athens",
    "Dublin",
    "London",
    "Cairo",
    "Tokyo",
    "Delhi",
    "Lima",
    "Boston",
    "Chicago",
    "Denver",
    "Dallas",
    "Seattle",
    "Toronto",
    "Sydney",
    "Perth",
    "Munich",
    "Hamburg",
    "Cologne",
    "Zurich",
    "Geneva",
    "Lyon",
    "Nice",
    "Milan",
    "Venice",
    "Naples",
    "Porto",
    "Seville",
    "Leeds",
    "York",
    "Bath",
    "Oxford",
    "Cambridge",
    "Bristol",
    "Glasgow",
    "Malmo",
    "Bergen",
    "Turku",
    "Riga",
    "Kyoto",
    "Osaka",
    "Seoul",
    "Hanoi",
    "Manila",
    "Nairobi",
    "Accra",
    "Quito",
    "Bogota",
    "Havana",
    "Miami",
    "Austin",
    "Portland",
)
TEST_CITIES = (
    "Antwerp",
    "Bremen",
    "Calgary",
    "Dresden",
    "Florence",
    "Granada",
    "Gdansk",
    "Krakow",
    "Leipzig",
    "Marseille",
    "Montreal",
    "Nagoya",
    "Phoenix",
    "Rotterdam",
    "Salzburg",
    "Tampa",
    "Utrecht",
    "Valencia",
)
ITEMS = (
    "apples",
    "pears",
    "plums",
    "cherries",
    "lemons",
    "oranges",
    "bananas",
    "tomatoes",
    "carrots",
    "onions",
    "potatoes",
    "eggs",
    "books",
    "pens",
    "pencils",
    "cups",
    "plates",
    "spoons",
    "chairs",
    "tables",
    "lamps",
    "candles",
    "boxes",
    "bags",
    "shirts",
    "socks",
    "hats",
    "shoes",
    "gloves",
    "scarves",
    "balls",
    "kites",
    "dolls",
    "stamps",
    "coins",
    "stones",
    "shells",
    "buttons",
    "nails",
    "bricks",
    "bottles",
    "jars",
    "baskets",
    "seeds",
    "bulbs",
    "roses",
    "tulips",
    "trees",
    "tickets",
    "cards",
    "keys",
    "maps",
    "pillows",
    "blankets",
    "towels",
    "brushes",
    "ropes",
    "hammers",
    "ladders",
    "cakes",
)
TEST_ITEMS = (
    "mirrors",
    "waffles",
    "magnets",
    "notebooks",
    "umbrellas",
    "peaches",
    "drums",
    "lanterns",
    "clocks",
    "crayons",
    "melons",
    "feathers",
)
JOBS = (
    "teacher",
    "doctor",
    "baker",
    "gardener",
    "carpenter",
    "nurse",
    "painter",
    "pilot",
    "farmer",
    "cook",
    "driver",
    "writer",
    "singer",
    "judge",
    "tailor",
    "plumber",
    "librarian",
    "engineer",
    "sailor",
    "dentist",
    "waiter",
    "guide",
)
TEST_JOBS = ("florist", "butcher", "lawyer", "barber", "clerk", "dancer")
COLOURS = ("red", "blue", "green", "yellow", "orange", "purple", "brown", "black", "white", "grey", "pink", "silver")
PETS = ("cat", "dog", "rabbit", "parrot", "hamster", "goldfish", "turtle", "pony", "canary", "mouse", "goat", "duck")
TEST_PETS = ("lizard", "ferret", "donkey", "pigeon")
HOBBIES = (
    "chess",
    "tennis",
    "football",
    "painting",
    "reading",
    "dancing",
    "swimming",
    "hiking",
    "singing",
    "cooking",
    "fishing",
    "sailing",
    "running",
    "cycling",
    "drawing",
    "knitting",
)
TEST_HOBBIES = ("archery", "skating", "pottery", "juggling")
PLACES = (
    "library",
    "museum",
    "park",
    "station",
    "school",
    "market",
    "theatre",
    "garden",
    "harbour",
    "bakery",
    "hotel",
    "castle",
    "stadium",
    "church",
    "airport",
    "zoo",
    "office",
    "cinema",
    "gym",
    "cafe",
    "town hall",
    "bookshop",
)
TEST_PLACES = ("gallery", "hospital", "lighthouse", "pharmacy", "factory")
EVENTS = (
    "meeting",
    "concert",
    "party",
    "wedding",
    "lecture",
    "workshop",
    "picnic",
    "dinner",
    "match",
    "play",
    "festival",
    "course",
    "interview",
    "parade",
    "walk",
    "lunch",
    "fair",
    "reading",
    "race",
    "show",
)
TEST_EVENTS = ("auction", "rehearsal", "ceremony", "seminar", "exhibition")
SKIES = ("sunny", "rainy", "cloudy", "windy", "foggy", "snowy", "stormy", "clear")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
TEST_NOUNS = ("voucher", "album", "subscription", "license", "loan", "membership")
TITLE_WORDS = (
    "River",
    "Garden",
    "Winter",
    "Island",
    "Letter",
    "House",
    "Night",
    "Star",
    "Road",
    "Storm",
    "Forest",
    "Sea",
    "Stone",
    "Bird",
    "Mountain",
    "Clock",
    "Bridge",
    "King",
    "Window",
    "Song",
)
TITLE_ADJECTIVES = (
    "Silent",
    "Golden",
    "Lost",
    "Last",
    "Red",
    "Hidden",
    "Long",
    "Blue",
    "Broken",
    "Green",
    "Distant",
    "Old",
)

# What a reworded pattern keeps: without these it asks for something else.
_MEANT = {
    *("plus", "minus", "times", "sum", "difference", "product", "add", "subtract", "multiply", "take", "away", "from"),
    *("by", "to", "first", "second", "third", "last", "after", "comes", "follows", "begin", "start", "end", "finish"),
    *("name", "called", "json", "keys", "key", "list", "only", "left", "repeat", "again"),
    *("x", "total", "together", "more", "less", "than", "without", "make", "remains", "multiplied", "divided"),
    *("say", "copy", "echo", "write", "type", "print", "answer", "same", "exactly", "text", "words", "word", "next"),
    *("behind", "extract", "data", "form", "fill", "object", "call", "yourself", "role", "act", "play", "be"),
}
# What can be another word without a change of meaning, in whatever asks for something by its other words.
_SMALL = {
    *("what", "is", "the", "a", "an", "me", "please", "can", "you", "how", "do", "does", "this", "it"),
    *("i", "my", "we", "are", "there", "to", "for", "at", "that", "and", "let", "could", "would", "like"),
}
# What tells one value of a sentence from another.
_TELLING = {
    *("in", "from", "at", "of", "by", "to", "on", "is", "a", "an", "the", "and", "years", "old", "age", "pages"),
    *("degrees", "kilos", "room", "office", "called", "name", "belongs", "has", "owns", "lives", "book", "author"),
    *("euros",),
}
# With which something is told to be done, and other ways to ask for the same.
_IMPERATIVES = {
    *("add", "begin", "book", "buy", "calculate", "call", "cancel", "change", "check", "compute", "connect", "convert"),
    *("count", "delete", "edit", "evaluate", "extract", "fetch", "fill", "find", "get", "give", "grade", "heat"),
    *("help", "inspect", "launch", "let", "look", "make", "message", "multiply", "open", "order", "parse", "pass"),
    *("phone", "pick", "plan", "play", "print", "put", "rate", "read", "remember", "remind", "remove", "return"),
    *("ring", "roll", "save", "say", "schedule", "search", "send", "set", "share", "show", "solve", "start", "stop"),
    *("subtract", "switch", "take", "tell", "text", "throw", "translate", "turn", "update", "water", "work", "write"),
}
_POLITELY = (
    *("Can you {}?", "Could you {}?", "Would you {}?", "Will you {}?", "Can you please {}?", "Could you please {}?"),
    *("Would you please {}?", "Can somebody {}?", "Could I ask you to {}?", "May I ask you to {}?", "Please {}."),
    *("I want you to {}.", "I need you to {}.", "I would like you to {}.", "I'd like you to {}.", "You should {}."),
    *("It would be nice if you could {}.", "Be so kind and {}.", "Kindly {}.", "I ask you to {}.", "Go and {}."),
    *("Do me a favour and {}.", "Would you mind? I want you to {}.", "{} if you can.", "{}!", "You could {}."),
    *("You can {} now.", "It is time to {}.", "Now you must {}.", "Are you able to {}?", "Is it possible to {}?"),
)
_TAILS = ("", "", "", " for me", " now", ", please", " today", " for us", " at once")
# None that turns a wording of training into one that is held out.
_OPENERS = ("Now", "So,", "Well,", "Hello!", "Next:", "Listen:", "Once more:", "One question:")

_TEST_THINGS = (*TEST_ITEMS, *TEST_JOBS, *TEST_PETS, *TEST_HOBBIES, *TEST_PLACES, *TEST_EVENTS)
_HELD_OUT = {word.lower() for word in (*TEST_NAMES, *TEST_SURNAMES, *TEST_CITIES, *TEST_NOUNS, *_TEST_THINGS)}


def is_held_out(word: str) -> bool:
    """Whether this word is drawn for the evaluation only."""
    return word.lower() in _HELD_OUT


def _bare(pattern: str) -> str:
    """A pattern as letters and placeholders alone."""
    return re.sub(r"[^a-z{}+*-]", "", pattern.lower())


def _letters() -> dict[str, str]:
    """Which letters follow two others in the words of training, as often as they do; a blank is the edge of a word."""
    pools = (NAMES, SURNAMES, CITIES, ITEMS, JOBS, PETS, HOBBIES, PLACES, EVENTS, TITLE_WORDS, TITLE_ADJECTIVES)
    following: dict[str, str] = {}
    for word in sorted({part for pool in pools for entry in pool for part in entry.lower().split()}):
        spelled = f"  {word} "
        for place in range(2, len(spelled)):
            pair = spelled[place - 2 : place]
            following[pair] = following.get(pair, "") + spelled[place]
    return following


_FOLLOWING = _letters()


def _tokens() -> list[str]:
    """The tokens of the bundled model that are small letters: words and parts of words."""
    vocabulary = json.loads(TOKENIZER.read_text(encoding="utf-8"))["model"]["vocab"]
    bare = {token.removeprefix("\u0120") for token in vocabulary}
    return sorted(token for token in bare if token.isascii() and token.isalpha() and token.islower() and len(token) > 1)


_TOKENS = _tokens()
_SHORT = ("a", "an", "in", "on", "to", "the", "is", "of", "at", "and", "be", "for", "has", "me", "my", "as", "or", "he")


def _spelled(rng: random.Random) -> str:
    """A word of which every three letters occur in a word of training."""
    word = "  "
    while not word.endswith(" ") or word == "  ":
        word += rng.choice(_FOLLOWING[word[-2:]])
    return word.strip()


def made_up(rng: random.Random) -> str:
    """A word that says nothing where it stands: of syllables or tokens, spelled like others, or a common noun.

    What is copied has to be copied by its tokens, whatever these are; the more there are, the sooner that is learned.
    """
    while True:
        kind = rng.random()
        if kind < 0.3:
            word = "".join(rng.choices(_TOKENS, k=rng.choice((1, 2, 2, 2, 3))))
            # The beginning of a longer word may be a word that sentences have everywhere.
            word = rng.choice(_SHORT) + word if rng.random() < 0.1 else word
        elif kind < 0.55:
            word = rng.choice(COMMON_NOUNS) + rng.choice(("", "", "s"))
        elif kind < 0.7:
            count = rng.choice((2, 2, 2, 3))
            word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(count)) + rng.choice(CODAS)
        else:
            word = _spelled(rng)
        if 2 < len(word) < 12 and word.isalpha() and word not in _HELD_OUT:
            return word


# What drills say of what is not there.
NOTHING = "none"


class Stage(IntEnum):
    """What a run is to learn, one after the other."""

    FIRST = 0
    """What words and questions mean, where names mostly tell what they name."""
    DRILLS = 1
    """To look: whether something is there at all, and what it is called here."""
    TOOLS = 2
    """The same, of requests and what tools are for, where the words of both are the same."""
    MIXED = 3
    """All of it."""
    TALK = 4
    """All of it in more wordings, with tools of every day, and with drills that are conversations."""
    FOUND = 5
    """The same, where what is asked for is absent about as often as it is for those who ask."""
    NOTED = 6
    """The same with notes, records, results and tales as people have them."""
    LAST = 7
    """The same with many more kinds of these, in which what is asked for has neighbours of its kind.

    The published weights have not read it: it is for whoever trains them further.
    """


class Words:
    """Draws words: those of training, with made-up ones among them, or those that are held out."""

    def __init__(self, rng: random.Random, test: bool = False, stage: Stage = Stage.LAST) -> None:
        self.rng = rng
        self.test = test
        self.stage = stage

    def pick(self, train: tuple[str, ...], test: tuple[str, ...] = (), invented: float = 0.0) -> str:
        """One word of a pool; in training it is made up with the probability ``invented``."""
        if self.test and test:
            return self.rng.choice(test)
        if not self.test and self.rng.random() < invented:
            return made_up(self.rng)
        return self.rng.choice(train)

    @property
    def is_late(self) -> bool:
        """Whether training has come to wordings as people have them, behind those that skills are learned from."""
        return self.stage >= Stage.TALK

    @property
    def is_last(self) -> bool:
        """Whether training has come to texts in which what is asked for has neighbours of its kind."""
        return self.stage is Stage.LAST and not self.test

    @property
    def is_wide(self) -> bool:
        """Whether training has come to what is in people's notes, records and tales."""
        return self.stage >= Stage.NOTED and not self.test

    def known(self, first: tuple[str, ...], later: tuple[str, ...]) -> tuple[str, ...]:
        """Patterns of training so far."""
        return first + later if self.is_late else first

    def wording(self, train: Sequence[str], test: Sequence[str] = (), free: bool = True) -> str:
        """A pattern; in training now and then with other words in it, or before it.

        Who has read only a few wordings takes every other one for something else. Where not ``free``, only small words
        are others, since the rest says what is asked for.
        """
        rng = self.rng
        if self.test and test:
            return rng.choice(test)
        pattern = rng.choice(train)
        if not self.test and rng.random() < 0.25:
            polite = self._politely(pattern)
            pattern = pattern if _bare(polite) in map(_bare, test) else polite
        said = self._reworded(pattern, free) if rng.random() < 0.4 else pattern
        return pattern if _bare(said) in map(_bare, test) else said

    def _politely(self, pattern: str) -> str:
        """A pattern that tells somebody to do something, as a request; any other as it is."""
        rng = self.rng
        first = pattern.split(" ", maxsplit=1)[0]
        if first.lower() not in _IMPERATIVES or re.search(r"[.?!]\s", pattern):
            return pattern
        told = pattern[:1].lower() + pattern[1:]
        request = rng.choice(_POLITELY)
        if not pattern.endswith("."):
            # What is to be copied comes last, without a full stop of its own.
            said = request.format(told).rstrip("?.!") if request.endswith(("{}?", "{}.", "{}!")) else pattern
        else:
            said = request.format(told.removesuffix(".").removesuffix(", please") + rng.choice(_TAILS))
        return capitalised(said)

    def _reworded(self, pattern: str, free: bool) -> str:
        rng = self.rng
        parts = re.split(r"(\s+)", pattern)
        for place, part in enumerate(parts):
            bare = part.strip(".,:;?!")
            changeable = bare.isalpha() and (bare.lower() not in _MEANT if free else bare.lower() in _SMALL)
            if changeable and rng.random() < 0.35:
                parts[place] = part.replace(bare, made_up(rng) if rng.random() < 0.7 else "")
        said = re.sub(" +", " ", "".join(parts)).strip(" ") or pattern
        if rng.random() < 0.3:
            # A word with a capital right before a name would be part of the name.
            glue = rng.choice(("", ",", ":")) if not said.startswith("{") else rng.choice((",", ":"))
            opener = rng.choice(_OPENERS) if rng.random() < 0.6 else made_up(rng).capitalize() + glue
            return f"{opener} {said[:1].lower() if said[:2].istitle() else said[:1]}{said[1:]}"
        capital = said.startswith(pattern[:3]) or not re.match(r"\S+ \{", said)
        return capitalised(said) if capital and rng.random() < 0.8 else said

    def garbled(self, pattern: str) -> str:
        """A sentence with words that nobody has heard before in it; what tells its values apart stays."""
        parts = re.split(r"(\s+)", pattern)
        for place, part in enumerate(parts):
            bare = part.strip(".,:;?!")
            if bare.isalpha() and bare.islower() and bare not in _TELLING and self.rng.random() < 0.5:
                parts[place] = part.replace(bare, made_up(self.rng))
        return "".join(parts)

    def name(self) -> str:
        """A first name."""
        return self.pick(NAMES, TEST_NAMES, 0.65).capitalize()

    def names(self, count: int) -> list[str]:
        """First names that differ."""
        return self.several(self.name, count)

    def several(self, draw: Callable[[], str], count: int) -> list[str]:
        """Words that differ, from one of the other methods."""
        found: dict[str, None] = {}
        while len(found) < count:
            found.setdefault(draw())
        return list(found)

    def full_name(self) -> str:
        """A first name and a surname; in training now and then more of the first."""
        first = [self.name() for _ in range(1 if self.test or self.rng.random() > 0.12 else 2)]
        return " ".join((*first, self.pick(SURNAMES, TEST_SURNAMES, 0.65).capitalize()))

    def city(self) -> str:
        """A town."""
        return self.pick(CITIES, TEST_CITIES, 0.6).capitalize()

    def items(self) -> str:
        """Things that can be counted."""
        return self.pick(ITEMS, TEST_ITEMS, 0.45)

    def job(self) -> str:
        """What somebody works as."""
        return self.pick(JOBS, TEST_JOBS, 0.45)

    def pet(self) -> str:
        """An animal in the house."""
        return self.pick(PETS, TEST_PETS, 0.4)

    def hobby(self) -> str:
        """What somebody likes to do."""
        return self.pick(HOBBIES, TEST_HOBBIES, 0.45)

    def place(self) -> str:
        """A place in town."""
        return self.pick(PLACES, TEST_PLACES, 0.45)

    def event(self) -> str:
        """Something that people go to."""
        return self.pick(EVENTS, TEST_EVENTS, 0.45)

    def colour(self) -> str:
        """A colour."""
        return self.rng.choice(COLOURS)

    def title(self) -> str:
        """The title of a book."""
        rng = self.rng
        noun = rng.choice(TITLE_WORDS)
        return rng.choice(
            (
                f"The {rng.choice(TITLE_ADJECTIVES)} {noun}",
                f"The {noun} of {self.name()}",
                f"{noun} and {rng.choice(TITLE_WORDS)}",
            )
        )

    def number(self, low: int, high: int) -> int:
        """A number between two bounds, both included."""
        return self.rng.randint(low, high)

    def time(self) -> str:
        """A time of day, such as 9:30."""
        return f"{self.rng.randint(7, 21)}:{self.rng.choice(('00', '15', '30', '45'))}"

    def digits(self, count: int) -> str:
        """A number code."""
        return "".join(self.rng.choice("0123456789") for _ in range(count))

    def code(self) -> str:
        """A code of letters and digits."""
        letters = "".join(self.rng.choice("ABCDEFGHJKLMNPRSTUVWXYZ") for _ in range(2))
        return f"{letters}-{self.digits(self.rng.choice((2, 3)))}"


def article(noun: str) -> str:
    """The noun with "a" or "an" before it."""
    takes_an = noun[0] in "aeiou" and not noun.startswith("eu")
    return f"{'an' if takes_an else 'a'} {noun}"


def capitalised(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
