"""Write the conversations of the bundled model from the tables and templates next to this file.

The same seed gives the same text on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from documents import Case, Document, Turn, conversation
from facts import (
    ANIMALS,
    CAPITALS,
    COLOUR_MIXES,
    COUNTRIES_WITHOUT_ANSWER,
    CROPS,
    FLOWERS,
    MONTH_DAYS,
    SEASONS,
    THING_COLOURS,
    TOPICS,
    TREES,
    Tree,
)
from phrasings import (
    ANIMAL_ASKS,
    BRIEF_SYSTEM_PROMPTS,
    CAPITAL_ASKS,
    CROP_ASKS,
    FLOWER_ASKS,
    HELD_OUT_NAMES,
    NAMES,
    OUTSIDE_PATTERNS,
    PREFIXES,
    REFUSAL_EXPECTS,
    REFUSALS,
    SMALL_TALK,
    SUFFIXES,
    SYSTEM_PROMPTS,
    TREE_ASKS,
    TREE_FOLLOW_UPS,
    TREE_OVERVIEW_ASKS,
    Asks,
)
from stories import (
    ANY_STORY_ASKS,
    FRIENDS,
    HAIKU_ASKS,
    HAIKUS,
    LONG_STORY_ASKS,
    POEM_ASKS,
    POEMS,
    SHORT_STORY_ASKS,
    STORY_ASKS,
    STORY_ASKS_HELD_OUT,
    animal_story,
    person_story,
    tree_story,
)
from words import DAYS, MONTHS, NUMBER_WORDS, article, capitalised, listed

# Of the cases.
SEED = 21

Exchange = tuple[str, str]


@dataclass(frozen=True)
class Fact:
    """Something the model shall know: how to ask for it, how to say it, and what a right answer contains."""

    group: str
    asks: Asks
    slots: dict[str, str]
    answers: tuple[str, ...]
    brief: str
    expects: tuple[str, ...]
    subject: str = ""
    attribute: str = ""


def _noun_slots(name: str, plural: str) -> dict[str, str]:
    slots = {"x": name, "a": article(name), "the": f"the {name}", "pl": plural}
    return slots | {"A": capitalised(slots["a"]), "The": f"The {name}", "Pl": capitalised(plural)}


def _split_marks(text: str) -> tuple[str, str]:
    """Text without its asterisks, and the part between them (or all of it)."""
    parts = text.split("*")
    return "".join(parts), parts[1] if len(parts) == 3 else text


def _noun_facts(name: str, plural: str, asks: dict[str, Asks], values: dict[str, str]) -> Iterator[Fact]:
    slots = _noun_slots(name, plural)
    for attribute, marked in values.items():
        if not marked:
            continue
        value, expected = _split_marks(marked)
        filled = slots | {"v": value}
        answers = tuple(answer.format(**filled) for answer in asks[attribute].answers)
        brief = f"{capitalised(value)}."
        yield Fact(attribute, asks[attribute], slots, answers, brief, (expected,), name, attribute)


def _tree_facts(tree: Tree) -> Iterator[Fact]:
    values = {
        "leaves": tree.leaves,
        "height": f"*{tree.height}*",
        "place": tree.place,
        "fruit": tree.fruit,
        "bark": tree.bark,
        "autumn": tree.autumn,
        "wood": tree.wood,
        "age": f"*{tree.age}*",
    }
    for fact in _noun_facts(tree.name, tree.plural, TREE_ASKS, values):
        unit = {"height": "metres", "age": "years"}.get(fact.attribute)
        brief = f"About {values[fact.attribute].strip('*')} {unit}." if unit else fact.brief
        expects = (f"{fact.expects[0]} metres",) if fact.attribute == "height" else fact.expects
        yield replace(fact, group=f"tree: {fact.attribute}", brief=brief, expects=expects)
    kind = "evergreen" if tree.evergreen else "deciduous"
    why = "it stays green all year round" if tree.evergreen else "it loses its leaves in autumn"
    answers = (f"The {tree.name} is {kind}: {why}.", f"{capitalised(tree.plural)} are {kind}.")
    slots = _noun_slots(tree.name, tree.plural)
    yield Fact("tree: kind", TREE_ASKS["kind"], slots, answers, f"{kind.title()}.", (kind,), tree.name, "kind")


TREE_FACTS: dict[str, dict[str, Fact]] = {
    tree.name: {fact.attribute: fact for fact in _tree_facts(tree)} for tree in TREES
}


def tree_overview(tree: Tree, rng: random.Random, sentences: int) -> str:
    """Two to five sentences about a tree."""
    kind = "an evergreen tree" if tree.evergreen else "a deciduous tree"
    text = [f"The {tree.name} is {kind} that grows about {tree.height} metres tall."]
    more = [f"It has {tree.leaves}.", f"It grows {tree.place}.", f"It bears {tree.fruit}."]
    more.append(f"It can live for about {tree.age} years.")
    kept = sorted(rng.sample(range(len(more)), min(sentences - 1, len(more))))
    return " ".join([*text, *(more[index] for index in kept)]).replace("*", "")


def _simple(group: str, train: Sequence[str], held_out: Sequence[str], answers: Sequence[str], key: str) -> Fact:
    asks = Asks(tuple(train), tuple(held_out), ())
    return Fact(group, asks, {}, tuple(answers), answers[0], (key,))


def _calendar_facts() -> Iterator[Fact]:
    for index, day in enumerate(DAYS):
        after, before = DAYS[(index + 1) % 7], DAYS[index - 1]
        yield _simple(
            "calendar",
            (f"What day comes after {day}?", f"Which day follows {day}?", f"What is the day after {day}?",
             f"If today is {day}, what day is tomorrow?"),
            (f"Which day comes after {day}?",),
            (f"{after} comes after {day}.", f"The day after {day} is {after}."),
            after,
        )  # fmt: skip
        yield _simple(
            "calendar",
            (f"What day comes before {day}?", f"Which day is before {day}?", f"What is the day before {day}?",
             f"If today is {day}, what day was yesterday?"),
            (f"Which day comes before {day}?",),
            (f"{before} comes before {day}.", f"The day before {day} is {before}."),
            before,
        )  # fmt: skip
    for index, (month, days) in enumerate(zip(MONTHS, MONTH_DAYS, strict=True)):
        after, before = MONTHS[(index + 1) % 12], MONTHS[index - 1]
        leap = ", and 29 in a leap year" if month == "February" else ""
        yield _simple(
            "calendar",
            (f"How many days does {month} have?", f"How many days are in {month}?", f"How long is {month}?"),
            (f"How many days are there in {month}?",),
            (f"{month} has {days} days{leap}.",),
            f"{days} days",
        )
        yield _simple(
            "calendar",
            (f"What month comes after {month}?", f"Which month follows {month}?", f"What is the month after {month}?"),
            (f"Which month comes after {month}?",),
            (f"{after} comes after {month}.", f"The month after {month} is {after}."),
            after,
        )
        yield _simple(
            "calendar",
            (f"What month comes before {month}?", f"Which month is before {month}?"),
            (f"Which month comes before {month}?",),
            (f"{before} comes before {month}.", f"The month before {month} is {before}."),
            before,
        )
        season = list(SEASONS)[((index + 10) % 12) // 3]
        yield _simple(
            "calendar",
            (f"In which season is {month}?", f"What season is {month}?", f"Which season does {month} belong to?"),
            (f"To which season does {month} belong?",),
            (f"In the northern half of the world {month} belongs to {season}.",),
            season,
        )
    for season, (after, what) in SEASONS.items():
        yield _simple(
            "calendar",
            (f"What comes after {season}?", f"Which season follows {season}?", f"What season comes after {season}?"),
            (f"Which season comes after {season}?",),
            (f"After {season} comes {after}.",),
            after,
        )
        yield _simple(
            "calendar",
            (f"What happens in {season}?", f"Tell me about {season}.", f"What is {season} like?",
             f"What does nature do in {season}?", f"What is {season}?"),
            (f"What is it like in {season}?",),
            (f"In {season} {what}.", f"It is the time when {what}."),
            what.split(" and ")[0].split(",")[0],
        )  # fmt: skip
    yield _simple(
        "calendar",
        ("What are the days of the week?", "Name the days of the week.", "List the days of the week.",
         "Which days does a week have?"),
        ("Tell me the days of the week.",),
        (f"The days of the week are {listed(DAYS)}.",),
        ", ".join(DAYS[:-1]),
    )  # fmt: skip
    yield _simple(
        "calendar",
        ("What are the months of the year?", "Name the months of the year.", "List the months of the year.",
         "List all months."),
        ("Tell me the months of the year.",),
        (f"The months of the year are {listed(MONTHS)}.",),
        ", ".join(MONTHS[:-1]),
    )  # fmt: skip
    yield _simple(
        "calendar",
        ("What are the four seasons?", "Name the seasons.", "List the seasons.", "Which seasons are there?",
         "How many seasons are there?"),
        ("Tell me the four seasons.",),
        ("The four seasons are spring, summer, autumn and winter.",),
        "spring, summer, autumn and winter",
    )  # fmt: skip
    yield _simple(
        "calendar",
        ("How many days does a week have?", "How many days are in a week?"),
        ("How many days are there in a week?",),
        ("A week has seven days.",),
        "seven",
    )
    yield _simple(
        "calendar",
        ("How many months does a year have?", "How many months are in a year?"),
        ("How many months are there in a year?",),
        ("A year has twelve months.",),
        "twelve",
    )


def _colour_facts() -> Iterator[Fact]:
    for thing, colour in THING_COLOURS.items():
        yield _simple(
            "colours",
            (f"What colour is {thing}?", f"Which colour is {thing}?", f"What is the colour of {thing}?",
             f"Tell me the colour of {thing}.", f"What colour does {thing} have?"),
            (f"Which colour does {thing} have?", f"Do you know what colour {thing} is?"),
            (f"{capitalised(thing)} is {colour}.", f"The colour of {thing} is {colour}."),
            colour,
        )  # fmt: skip
    for (one, two), mix in COLOUR_MIXES.items():
        for first, second in ((one, two), (two, one)):
            yield _simple(
                "colours",
                (f"What do you get when you mix {first} and {second}?", f"What colour do {first} and {second} make?",
                 f"Mix {first} and {second}.", f"What is {first} mixed with {second}?"),
                (f"Which colour do I get from {first} and {second}?",),
                (f"If you mix {first} and {second}, you get {mix}.", f"Mixing {first} and {second} gives {mix}."),
                mix,
            )  # fmt: skip


def _sum_facts() -> Iterator[Fact]:
    """Sums, which conversations leave to ``skills.arithmetic``; without their draws other cases would be held out."""
    for one in range(11):
        for two in range(11):
            total, words = one + two, f"{NUMBER_WORDS[one]} plus {NUMBER_WORDS[two]}"
            yield _simple(
                "sums",
                (f"What is {one} + {two}?", f"What is {one} plus {two}?", f"{one} + {two}", f"{one}+{two}",
                 f"How much is {one} plus {two}?", f"What's {one}+{two}?", f"{one} + {two} = ?", f"What is {words}?",
                 f"What is {one}+{two}?"),
                (f"How much is {one} + {two}?", f"Calculate {one} + {two}."),
                (f"{one} plus {two} is {total}.",),
                f"is {total}.",
            )  # fmt: skip


def _capital_facts() -> Iterator[Fact]:
    for country, city in CAPITALS.items():
        slots = {"x": country}
        answers = tuple(answer.format(x=country, v=city) for answer in CAPITAL_ASKS.answers)
        answers = (answers[0], answers[0], answers[1])
        yield Fact("capitals", CAPITAL_ASKS, slots, answers, f"{city}.", (city,), country, "capital")


def _topic_facts() -> Iterator[Fact]:
    for questions, answers, key in TOPICS.values():
        yield _simple("nature topics", questions[:-1], questions[-1:], answers, key)


def _other_noun_facts() -> Iterator[Fact]:
    tables = (
        ("animals", ANIMALS, ANIMAL_ASKS, ("food", "home")),
        ("flowers", FLOWERS, FLOWER_ASKS, ("colour", "bloom")),
        ("crops", CROPS, CROP_ASKS, ("sowing", "care")),
    )
    for group, table, asks, attributes in tables:
        for name, (plural, first, second) in table.items():
            for fact in _noun_facts(name, plural, asks, dict(zip(attributes, (first, second), strict=True))):
                yield replace(fact, group=group)


OTHER_FACTS: dict[str, list[Fact]] = {
    "capitals": list(_capital_facts()),
    "topics": list(_topic_facts()),
    "nouns": list(_other_noun_facts()),
    "calendar": list(_calendar_facts()),
    "colours": list(_colour_facts()),
    "sums": list(_sum_facts()),
}


def vary(question: str, rng: random.Random) -> str:
    """Write a question the way people type: small letters, no question mark, a word before or after."""
    if "colour" in question and rng.random() < 0.3:
        question = question.replace("colour", "color")
    if rng.random() < 0.08 and not question.lower().startswith("hello"):  # twice would be one held out
        prefix = rng.choice(PREFIXES)
        question = prefix + (question if prefix.endswith(("! ", ": ")) else question[:1].lower() + question[1:])
    if rng.random() < 0.05 and question.endswith("?"):
        question += rng.choice(SUFFIXES)
    if rng.random() < 0.2:
        question = question.lower()
    if rng.random() < 0.15:
        question = question.rstrip("?.!")
    return question


def _ask(fact: Fact, rng: random.Random) -> str:
    return rng.choice(fact.asks.train).format(**fact.slots)


def _pair_is_held_out(tree: str, attribute: str) -> bool:
    """Pairs that never occur as a follow-up in training: about one in ten, spread over the tables."""
    position = [other.name for other in TREES].index(tree)
    return (position + 3 * list(TREE_ASKS).index(attribute)) % 10 == 0


class ConversationWriter:
    """Writes conversations with one random generator."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._segments: tuple[tuple[int, Callable[[], list[Exchange]]], ...] = (
            (34, self.tree_questions),
            (8, self.capital_questions),
            (9, lambda: self.plain_fact("topics")),
            (10, self.noun_questions),
            (7, lambda: self.plain_fact("calendar")),
            (3, lambda: self.plain_fact("colours")),
            (4, lambda: self.plain_fact("sums")),
            (14, self.small_talk),
            (9, self.outside),
            (6, self.story),
            (3, self.listing),
            (3, self.comparison),
            (2, self.poem),
            (2, self.counting),
        )

    def segment(self) -> list[Exchange]:
        """A few exchanges that belong together."""
        weights = [weight for weight, _ in self._segments]
        return self.rng.choices([write for _, write in self._segments], weights)[0]()

    def plain_fact(self, table: str) -> list[Exchange]:
        """One question from a table of facts."""
        fact = self.rng.choice(OTHER_FACTS[table])
        return [(vary(_ask(fact, self.rng), self.rng), self.rng.choice(fact.answers))]

    def tree_questions(self) -> list[Exchange]:
        """A question about a tree, perhaps with "and the birch?" or "how old does it get?" after it."""
        rng = self.rng
        tree = rng.choice(TREES)
        facts = TREE_FACTS[tree.name]
        if rng.random() < 0.15:
            slots = _noun_slots(tree.name, tree.plural)
            exchanges = [
                (
                    vary(rng.choice(TREE_OVERVIEW_ASKS.train).format(**slots), rng),
                    tree_overview(tree, rng, rng.choice((3, 3, 4))),
                )
            ]
            attribute = ""
        else:
            fact = rng.choice(list(facts.values()))
            exchanges = [(vary(_ask(fact, rng), rng), rng.choice(fact.answers))]
            attribute = fact.attribute
        while rng.random() < 0.35:
            if attribute and rng.random() < 0.55:
                others = [
                    other
                    for other in TREES
                    if other.name != tree.name
                    and attribute in TREE_FACTS[other.name]
                    and not _pair_is_held_out(other.name, attribute)
                ]
                tree = rng.choice(others)
                facts = TREE_FACTS[tree.name]
                fact = facts[attribute]
                asked = rng.choice(TREE_FOLLOW_UPS).format(**fact.slots)
            elif rng.random() < 0.2:
                asked = rng.choice(
                    ("Tell me more.", "Tell me more about it.", "What else do you know about it?", "More?")
                )
                exchanges.append((vary(asked, rng), tree_overview(tree, rng, 3)))
                continue
            else:
                fact = rng.choice([fact for fact in facts.values() if fact.attribute != attribute])
                attribute = fact.attribute
                asked = rng.choice(fact.asks.follow_up)
            exchanges.append((vary(asked, rng), rng.choice(fact.answers)))
        return exchanges

    def capital_questions(self) -> list[Exchange]:
        """A capital, and perhaps more of them; some countries are not known."""
        rng = self.rng
        exchanges: list[Exchange] = []
        while not exchanges or rng.random() < 0.3:
            templates = CAPITAL_ASKS.follow_up if exchanges else CAPITAL_ASKS.train
            if rng.random() < 0.15:
                country = rng.choice(COUNTRIES_WITHOUT_ANSWER)
                answer = f"I do not know the capital of {country}."
            else:
                fact = rng.choice(OTHER_FACTS["capitals"])
                country, answer = fact.subject, rng.choice(fact.answers)
            exchanges.append((vary(rng.choice(templates).format(x=country), rng), answer))
        return exchanges

    def noun_questions(self) -> list[Exchange]:
        """An animal, a flower or a vegetable, perhaps with a second question about it."""
        rng = self.rng
        fact = rng.choice(OTHER_FACTS["nouns"])
        exchanges = [(vary(_ask(fact, rng), rng), rng.choice(fact.answers))]
        if rng.random() < 0.3:
            other = next(
                other
                for other in OTHER_FACTS["nouns"]
                if other.subject == fact.subject and other.attribute != fact.attribute
            )
            exchanges.append((vary(rng.choice(other.asks.follow_up), rng), rng.choice(other.answers)))
        elif rng.random() < 0.3:
            other = rng.choice(
                [other for other in OTHER_FACTS["nouns"] if other.asks is fact.asks and other is not fact]
            )
            asked = rng.choice(TREE_FOLLOW_UPS).format(**other.slots)
            exchanges.append((vary(asked, rng), rng.choice(other.answers)))
        return exchanges

    def small_talk(self, name: str | None = None) -> list[Exchange]:
        """One exchange of small talk."""
        weights = [len(talk.asks) for talk in SMALL_TALK.values()]
        talk = SMALL_TALK[name] if name else self.rng.choices(list(SMALL_TALK.values()), weights)[0]
        return [(vary(self.rng.choice(talk.asks), self.rng), self.rng.choice(talk.answers))]

    def outside(self) -> list[Exchange]:
        """Something the model cannot know."""
        patterns, fillings, _ = self.rng.choice(OUTSIDE_PATTERNS)
        asked = self.rng.choice(patterns).format(x=self.rng.choice(fillings))
        return [(vary(asked, self.rng), self.rng.choice(REFUSALS))]

    def story(self) -> list[Exchange]:
        """A story about a tree, an animal or a child."""
        rng = self.rng
        asks, length = rng.choices(
            ((STORY_ASKS, rng.choice((6, 7, 8))), (SHORT_STORY_ASKS, 3), (LONG_STORY_ASKS, 8), (ANY_STORY_ASKS, 7)),
            (60, 10, 10, 20),
        )[0]
        kind = rng.random()
        if asks is ANY_STORY_ASKS or kind < 0.6:
            name = rng.choice(TREES).name
            hero, text = article(name), tree_story(name, rng, length)
        elif kind < 0.85:
            name = rng.choice(list(ANIMALS))
            hero, text = article(name), animal_story(name, rng, length)
        else:
            hero = rng.choice(NAMES)
            text = person_story(hero, rng, length)
        return [(vary(rng.choice(asks).format(a=hero), rng), text)]

    def poem(self) -> list[Exchange]:
        """A poem of four lines, or a haiku."""
        rng = self.rng
        if rng.random() < 0.25:
            return [(vary(rng.choice(HAIKU_ASKS), rng), rng.choice(HAIKUS))]
        tree = rng.choice(TREES).name
        about = article(tree)
        if rng.random() < 0.3:
            tree, about = "tree", rng.choice(("trees", "the forest", "a tree", "nature"))
        return [(vary(rng.choice(POEM_ASKS).format(a=about), rng), rng.choice(POEMS).format(h=tree))]

    def listing(self) -> list[Exchange]:
        """A numbered list."""
        rng = self.rng
        things: dict[str, list[str]] = {
            "trees": [tree.name for tree in TREES],
            "evergreen trees": [tree.name for tree in TREES if tree.evergreen],
            "deciduous trees": [tree.name for tree in TREES if not tree.evergreen],
            "flowers": list(FLOWERS),
            "animals of the forest": [name for name in ANIMALS if name not in ("ant", "bee")],
            "vegetables": ["carrot", "pumpkin", "bean", "pea", "lettuce", "onion", "potato", "radish"],
            "colours": ["red", "orange", "yellow", "green", "blue", "purple", "brown", "white"],
            "countries and their capitals": [f"{capitalised(land)}: {city}" for land, city in CAPITALS.items()],
        }
        what = rng.choice(list(things))
        count = rng.randint(2, 7)
        # In the order of the table, so that the text never has to remember what it has already listed.
        chosen = sorted(rng.sample(range(len(things[what])), count))
        number = rng.choice((str(count), NUMBER_WORDS[count]))
        asked = rng.choice(("List {n} {w}.", "Name {n} {w}.", "Tell me {n} {w}.", "Give me a list of {n} {w}."))
        lines = [f"{line}. {capitalised(things[what][index])}" for line, index in enumerate(chosen, 1)]
        return [(vary(asked.format(n=number, w=what), rng), "\n".join(lines))]

    def counting(self) -> list[Exchange]:
        """Counting up to a number."""
        last = self.rng.randint(3, 20)
        number = NUMBER_WORDS[last] if last <= 10 and self.rng.random() < 0.5 else str(last)
        asked = self.rng.choice(("Count to {n}.", "Count to {n}!", "Can you count to {n}?", "Count from 1 to {n}."))
        return [(vary(asked.format(n=number), self.rng), ", ".join(map(str, range(1, last + 1))) + ".")]

    def comparison(self) -> list[Exchange]:
        """Two trees side by side."""
        rng = self.rng
        one, two = rng.sample(TREES, 2)
        if rng.random() < 0.5:
            asked = rng.choice(
                (
                    "What is the difference between {a} and {b}?",
                    "How do I tell {a} from {b}?",
                    "Compare {a} and {b}.",
                    "How are {a} and {b} different?",
                )
            )
            text = f"The {one.name} has {one.leaves}, while the {two.name} has {two.leaves}."
        else:
            asked = rng.choice(
                (
                    "Which grows taller, {a} or {b}?",
                    "Which is taller, {a} or {b}?",
                    "What grows taller: {a} or {b}?",
                    "Is {a} taller than {b}?",
                )
            )
            if one.height == two.height:
                text = f"The {one.name} and the {two.name} both grow about {one.height} metres tall."
            else:
                text = (
                    f"The {one.name} grows about {one.height} metres tall, and the {two.name} grows about {two.height} "
                    f"metres tall. So the {max(one, two, key=lambda tree: tree.height).name} is taller."
                )
        return [(vary(asked.format(a=article(one.name), b=article(two.name)), rng), text.replace("*", ""))]

    def brief(self) -> list[Exchange]:
        """Questions with answers of a few words."""
        rng = self.rng
        exchanges: list[Exchange] = []
        while not exchanges or rng.random() < 0.4:
            if rng.random() < 0.7:
                fact = rng.choice(list(TREE_FACTS[rng.choice(TREES).name].values()))
            else:
                fact = rng.choice(OTHER_FACTS[rng.choice(("capitals", "nouns"))])
            exchanges.append((vary(_ask(fact, rng), rng), fact.brief))
        return exchanges

    def name_memory(self, names: Sequence[str]) -> tuple[Exchange, Exchange]:
        """The user says a name, and asks for it later."""
        rng = self.rng
        name = rng.choice(names)
        told = rng.choice(
            ("My name is {n}.", "I am {n}.", "Hello, I am {n}.", "Hi! My name is {n}.", "I'm {n}.", "Call me {n}.",
             "Hello! My name is {n}.", "Hi, I'm {n}!", "Hello Sapling, I am {n}.")
        ).format(n=name)  # fmt: skip
        greeted = rng.choice(
            (
                "Nice to meet you, {n}! I am Sapling.",
                "Hello, {n}! What would you like to know?",
                "Hello {n}, nice to meet you!",
            )
        ).format(n=name)
        asked = rng.choice(
            ("What is my name?", "Do you remember my name?", "What's my name?", "Who am I?", "Do you know my name?")
        )
        return (told, greeted), (vary(asked, rng), f"Your name is {name}.")

    def chat(self, exchanges: int, name_was_told: bool = False) -> list[Exchange]:
        """A conversation of about ``exchanges`` exchanges; the user may have been named before it."""
        rng = self.rng
        turns: list[Exchange] = []
        reminder: Exchange | None = None
        opening = rng.random()
        if exchanges > 1 and opening < 0.2:
            turns += self.small_talk("greeting")
        elif exchanges > 1 and opening < 0.38:
            told, reminder = self.name_memory(NAMES)
            turns.append(told)
        name_was_told = name_was_told or reminder is not None
        while len(turns) < exchanges:
            turns += self.segment()
            if reminder and rng.random() < 0.4:
                turns.append(reminder)
                reminder = None if rng.random() < 0.7 else reminder
            elif not name_was_told and rng.random() < 0.03:
                asked = rng.choice(("What is my name?", "Do you know my name?", "Who am I?"))
                turns.append((vary(asked, rng), "You have not told me your name yet."))
            elif turns and rng.random() < 0.04:
                asked = rng.choice(
                    ("Can you repeat that?", "Please repeat that.", "Say that again.", "Once more, please.")
                )
                turns.append((vary(asked, rng), turns[-1][1]))
        if exchanges > 1 and rng.random() < 0.25:
            turns += self.small_talk("thanks")
        if exchanges > 1 and rng.random() < 0.2:
            turns += self.small_talk("goodbye")
        return turns

    def garden_book(self, entries: int) -> tuple[str, list[tuple[str, str, str]]]:
        """Who planted which tree where: a text, and for every entry a name, a tree and a place."""
        rng = self.rng
        spots = [
            f"{where} the {what}"
            for where in ("beside", "behind", "near", "in front of")
            for what in ("gate", "pond", "shed", "well", "bridge", "old wall", "school", "bench", "barn", "tower")
        ]
        people = rng.sample(NAMES, entries)
        trees = rng.sample([tree.name for tree in TREES], entries)
        rows = list(zip(people, trees, rng.sample(spots, entries), strict=True))
        lines = [f"{person} planted {article(tree)} {spot}." for person, tree, spot in rows]
        return " ".join(lines), rows

    def book_questions(self, rows: Sequence[tuple[str, str, str]], count: int) -> list[Exchange]:
        """Questions that only the garden book answers."""
        rng = self.rng
        turns = []
        for person, tree, spot in rng.sample(list(rows), min(count, len(rows))):
            kind = rng.randrange(3)
            if kind == 0:
                asked = rng.choice(("Who planted the {t}?", "Who planted {a}?", "Do you know who planted the {t}?"))
                answer = f"{person} planted the {tree}."
            elif kind == 1:
                asked = rng.choice(("What did {n} plant?", "Which tree did {n} plant?", "What tree did {n} plant?"))
                answer = f"{person} planted {article(tree)}."
            else:
                asked = rng.choice(
                    ("Where is the {t}?", "Where did {n} plant the {t}?", "Where can I find the {t} of {n}?")
                )
                answer = f"The {tree} is {spot}."
            turns.append((vary(asked.format(t=tree, a=article(tree), n=person), rng), answer))
        return turns


def _long_system_prompt(rng: random.Random, sentences: int) -> str:
    notes = [
        rng.choice(fact.answers)
        for tree in rng.sample(TREES, min(sentences, len(TREES)))
        for fact in rng.sample(list(TREE_FACTS[tree.name].values()), 1 + sentences // len(TREES))
    ]
    rng.shuffle(notes)
    text = " ".join(notes[:sentences])
    return f"{rng.choice(SYSTEM_PROMPTS)} Here are some notes. {text} Answer the questions of the visitor."


def _garden_book_document(writer: ConversationWriter) -> Document:
    rng = writer.rng
    text, rows = writer.garden_book(rng.choice((2, 3, 4, 5, 6, 8, 10, 15, 20, 30)))
    turns = writer.book_questions(rows, rng.randint(2, 7))
    if rng.random() < 0.25:
        turns.insert(rng.randrange(len(turns)), writer.segment()[0])
    if rng.random() < 0.5:
        first, answer = turns[0]
        turns[0] = (f"Here is our garden book. {text} {first}", answer)
        return conversation(turns, rng.choice((None, rng.choice(SYSTEM_PROMPTS))))
    opening = rng.choice(SYSTEM_PROMPTS)
    if rng.random() < 0.3:
        opening = _long_system_prompt(rng, rng.randint(5, 30))
    return conversation(turns, f"{opening} Here is our garden book. {text}")


def _plain_document(rng: random.Random) -> Document:
    kind = rng.random()
    if kind < 0.35:
        tree = rng.choice(TREES)
        facts = list(TREE_FACTS[tree.name].values())
        text = " ".join(rng.choice(fact.answers) for fact in rng.sample(facts, rng.randint(1, 5)))
    elif kind < 0.6:
        facts = rng.sample(OTHER_FACTS["capitals"], rng.randint(1, 4))
        text = " ".join(rng.choice(fact.answers) for fact in facts)
    elif kind < 0.85:
        name = rng.choice(TREES).name
        text = rng.choice((
            tree_story(name, rng), animal_story(rng.choice(FRIENDS), rng), person_story(rng.choice(NAMES), rng)
        ))  # fmt: skip
    elif kind < 0.95:
        text = rng.choice(rng.choice(OTHER_FACTS["topics"]).answers)
    else:
        text = rng.choice(
            (
                "Hello, my name is Sapling. I am the little model that comes with Bough.",
                "My name is Sapling, and I like trees.",
                "The president of the United States is somebody I do not know. I know about trees.",
                "The future of AI is something I do not know. The future of an acorn is an oak.",
                "I am a small model. I know a little about trees, forests and gardens.",
                "Trees give us shade, fruit, wood and clean air.",
                "The sky is blue, the grass is green and the sun is warm.",
                "This is a test, and it works.",
                "I like to walk in the forest, where the birds sing and the air is fresh.",
                "In the garden there are roses, tulips and an old apple tree.",
            )
        )
    return Document(plain=[(text, True)])


def write_document(writer: ConversationWriter) -> Document:
    """A conversation or a plain text."""
    rng = writer.rng
    kind = rng.random()
    if kind < 0.08:
        return _plain_document(rng)
    if kind < 0.14:
        return _garden_book_document(writer)
    if kind < 0.18:
        system = rng.choice(BRIEF_SYSTEM_PROMPTS)
        return conversation(writer.brief(), system)
    if kind < 0.20:
        name = rng.choice(NAMES)
        system = f"{rng.choice(SYSTEM_PROMPTS)} The name of the user is {name}."
        asked = rng.choice(("What is my name?", "Do you know my name?", "Who am I?"))
        turns = [*writer.chat(rng.randint(0, 2), True), (vary(asked, rng), f"Your name is {name}.")]
        return conversation(turns, system)
    system = rng.choice(SYSTEM_PROMPTS) if rng.random() < 0.3 else ""
    if rng.random() < 0.03:
        system = _long_system_prompt(rng, rng.randint(8, 50))
    length = rng.random()
    if length < 0.62:
        exchanges = 1
    elif length < 0.92:
        exchanges = rng.randint(2, 4)
    elif length < 0.985:
        exchanges = rng.randint(5, 10)
    else:
        exchanges = rng.randint(15, 26)
    return conversation(writer.chat(exchanges), system)


def _case(
    group: str, exchanges: Sequence[Exchange], asked: str, expects: tuple[str, ...], system: str | None = None
) -> Case:
    return Case(group, [*conversation(exchanges, system).turns, Turn("user", asked)], contains=expects)


def held_out_cases() -> list[Case]:
    """Questions whose wording, topic, name or combination occurs nowhere in the training text, by groups of facts."""
    rng = random.Random(SEED)
    writer = ConversationWriter(rng)
    cases: list[Case] = []
    facts = [fact for by_attribute in TREE_FACTS.values() for fact in by_attribute.values()]
    facts += [fact for table in OTHER_FACTS.values() for fact in table]
    groups = sorted({fact.group for fact in facts})
    for group in groups:
        members = [fact for fact in facts if fact.group == group]
        for fact in rng.sample(members, min(len(members), 30)):
            asked = rng.choice(fact.asks.held_out).format(**fact.slots)
            cases.append(_case(group, (), asked, fact.expects))
    for tree in TREES:
        asked = rng.choice(TREE_OVERVIEW_ASKS.held_out).format(**_noun_slots(tree.name, tree.plural))
        cases.append(_case("tree: overview", (), asked, (f"the {tree.name} is",)))
    for talk in SMALL_TALK.values():
        cases += [_case("small talk", (), asked, talk.expects) for asked in talk.held_out]
    for patterns, _, fillings in OUTSIDE_PATTERNS:
        for filling in fillings:
            cases.append(_case("outside its topics", (), rng.choice(patterns).format(x=filling), REFUSAL_EXPECTS))
    pairs = [
        fact
        for tree in TREE_FACTS.values()
        for fact in tree.values()
        if _pair_is_held_out(fact.subject, fact.attribute)
    ]
    for fact in pairs:
        other = rng.choice([other for other in TREE_FACTS["oak"].values() if other.attribute == fact.attribute])
        first = TREE_FACTS["birch"].get(fact.attribute, other) if fact.subject == "oak" else other
        asked = rng.choice(TREE_FOLLOW_UPS).format(**fact.slots)
        cases.append(_case("follow-up", [(_ask(first, rng), first.answers[0])], asked, fact.expects))
    for name in HELD_OUT_NAMES:
        for _ in range(3):
            told, (asked, _) = writer.name_memory([name])
            cases.append(_case("name of the user", [told, *writer.tree_questions()[:1]], asked, (name,)))
    for tree in TREES:
        asked = rng.choice(STORY_ASKS_HELD_OUT).format(a=article(tree.name))
        cases.append(_case("story", (), asked, (tree.name,)))
    for _ in range(30):
        text, rows = writer.garden_book(8)
        (asked, answer), *_ = writer.book_questions(rows, 1)
        system = f"You are a helpful assistant. Here is our garden book. {text}"
        cases.append(_case("garden book of 8 entries", (), asked, (answer,), system))
    return cases
