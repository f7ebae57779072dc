"""What users tell of themselves and their people, and ask for later: much of it is of the same kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from words import DAYS, MONTHS, Words

from skills.noted import tidy

Draw = Callable[[Words], str]


@dataclass(frozen=True)
class Own:
    """Something that a user may tell.

    Attributes:
        draw: the value ``{v}``.
        tells: ways to say it, as a part of a longer sentence.
        asks: for it.
        answer: to them.
    """

    draw: Draw
    tells: tuple[str, ...]
    asks: tuple[str, ...]
    answer: str


def _own(draw: Draw, tells: str, asks: str, answer: str) -> Own:
    return Own(draw, tuple(tells.split("|")), tuple(asks.split("|")), answer)


def _number(low: int, high: int) -> Draw:
    return lambda words: str(words.number(low, high))


def _date(words: Words) -> str:
    return f"{words.number(1, 28)} {words.rng.choice(MONTHS)}"


def _day(words: Words) -> str:
    return words.rng.choice(DAYS)


OWN: tuple[Own, ...] = (
    _own(
        Words.name,
        "my brother is called {v}|I have a brother, {v}|{v} is my brother",
        "Who is my brother?|What is my brother's name?|how is my brother called|Which name does my brother have?",
        "Your brother is called {v}.",
    ),
    _own(
        Words.name,
        "my mother's name is {v}|my mum is {v}|{v} is my mother",
        "What is my mum called?|What is the name of my mother?|Who is my mother?|What is my mum's first name?",
        "Your mother is called {v}.",
    ),
    _own(
        Words.name,
        "my boss is {v}|I work for {v}|{v} is the one who tells me what to do at work",
        "Who is my boss?|For whom do I work?|Who tells me what to do at work?|what was my boss's name again",
        "Your boss is {v}.",
    ),
    _own(
        Words.name,
        "my best friend is {v}|{v} has been my best friend since school|nobody is a better friend to me than {v}",
        "Who is my best friend?|Whom do I like most of my friends?|What is my best friend called?",
        "Your best friend is {v}.",
    ),
    _own(
        Words.name,
        "my daughter is {v}|I have a daughter called {v}|{v}, my daughter, is at school",
        "What is my daughter called?|What is the name of my girl?|Do you remember my daughter's name?",
        "Your daughter is called {v}.",
    ),
    _own(
        Words.name,
        "my son is {v}|I have a son called {v}|{v} is my little boy",
        "What is my son called?|What is the name of my boy?|Do you remember my son's name?",
        "Your son is called {v}.",
    ),
    _own(
        Words.city,
        "I was born in {v}|my place of birth is {v}|I came into the world in {v}",
        "Where was I born?|What is my place of birth?|In which town did my life begin?",
        "You were born in {v}.",
    ),
    _own(
        Words.city,
        "I work in {v}|my office is in {v}|every morning I drive to {v} to work",
        "Where do I work?|In which town is my office?|Where do I go in the morning to work?",
        "You work in {v}.",
    ),
    _own(
        Words.city,
        "my parents are in {v}|my parents moved to {v}|Mum and Dad have a flat in {v}",
        "Where are my parents?|In which town do I find Mum and Dad?|Where do I go to see my parents?",
        "Your parents are in {v}.",
    ),
    _own(
        Words.city,
        "on holiday I go to {v}|I fly to {v} in summer|this year we spend the summer in {v}",
        "Where do I go on holiday?|Where will I spend the summer?|What is the goal of my trip in summer?",
        "You go to {v} on holiday.",
    ),
    _own(
        _date,
        "my birthday is on {v}|I was born on {v}|on {v} I turn a year older",
        "When is my birthday?|On which day was I born?|When should people give me a cake?|when do i turn a year older",
        "Your birthday is on {v}.",
    ),
    _own(
        _date,
        "my wedding day is {v}|I married on {v}|we married on {v}",
        "When did I marry?|Which day is my wedding day?|On what date did I say yes in church?",
        "You married on {v}.",
    ),
    _own(
        _date,
        "my exam is on {v}|I have an exam on {v}|on {v} they test me",
        "When is my exam?|By when must I have learned everything?|On which date am I tested?",
        "Your exam is on {v}.",
    ),
    _own(
        _day,
        "I have football on {v}|on {v} I play football|my team trains on {v}",
        "When do I play football?|On which day do I train with my team?|What day is football?",
        "You play football on {v}.",
    ),
    _own(
        _day,
        "I see the dentist on {v}|on {v} I go to the dentist|my dentist expects me on {v}",
        "When do I see the dentist?|On which day does somebody look at my teeth?|What day is the dentist?",
        "You see the dentist on {v}.",
    ),
    _own(
        _number(41, 47),
        "my shoe size is {v}|I wear shoes in {v}|I need shoes of size {v}",
        "What is my shoe size?|Which size of shoes fits me?|In what size do I buy boots?",
        "Your shoe size is {v}.",
    ),
    _own(
        _number(150, 199),
        "I am {v} cm tall|my height is {v} cm|I measure {v} cm from head to foot",
        "How tall am I?|What is my height?|How many cm do I measure?",
        "You are {v} cm tall.",
    ),
    _own(
        _number(2, 9),
        "I have {v} cousins|there are {v} cousins in my family|my uncles have {v} children altogether",
        "How many cousins do I have?|How big is the number of my cousins?|How many children do my uncles have?",
        "You have {v} cousins.",
    ),
    _own(
        lambda w: w.digits(6),
        "my phone number is {v}|you can call me at {v}|my number is {v}",
        "What is my phone number?|How can people call me?|Which number do others dial to reach me?",
        "Your phone number is {v}.",
    ),
    _own(
        lambda w: w.digits(4),
        "my locker code is {v}|the lock of my bike opens with {v}|I open my bike lock with {v}",
        "What opens my lock?|Which code did I tell you for the lock?|I forgot the code of my lock. What is it?",
        "The code of your lock is {v}.",
    ),
    _own(
        Words.colour,
        "my car is {v}|I drive a {v} car|I have bought a {v} car",
        "What colour is my car?|In which colour should I look for my car?|Which colour do I drive?",
        "Your car is {v}.",
    ),
    _own(
        Words.colour,
        "my front door is {v}|I painted my front door {v}|the door of my house is {v}",
        "What colour is my front door?|Which colour did I give to the door?|By which colour does one know my door?",
        "Your front door is {v}.",
    ),
    _own(
        lambda w: w.rng.choice(("Spanish", "Greek", "Dutch", "Polish", "Korean", "Arabic", "Danish", "Czech", "Thai")),
        "I am learning {v}|I take lessons in {v}|twice a week I have a course in {v}",
        "Which language am I learning?|What do I take lessons in?|What language is my course about?",
        "You are learning {v}.",
    ),
    _own(
        lambda w: w.rng.choice(("nuts", "milk", "cats", "dust", "pollen", "eggs", "wool", "fish", "bees")),
        "I am allergic to {v}|I get ill from {v}|it is best for me to stay away from {v}",
        "What am I allergic to?|What makes me ill?|What should I stay away from?",
        "You are allergic to {v}.",
    ),
    _own(
        lambda w: w.rng.choice(("violin", "piano", "flute", "trumpet", "cello", "guitar", "harp", "organ", "banjo")),
        "I play the {v}|every evening I practise the {v}|my instrument is the {v}",
        "Which instrument do I play?|What do I practise?|On what do I make music?",
        "You play the {v}.",
    ),
    _own(
        lambda w: w.rng.choice(("pizza", "sushi", "pasta", "pancakes", "curry", "soup", "tacos", "dumplings", "rice")),
        "I could eat {v} every day|my favourite food is {v}|there is nothing better to eat than {v}",
        "What is my favourite food?|What should you cook for me?|What do I like to eat most?",
        "Your favourite food is {v}.",
    ),
)
_REPLIES = ("I will remember that.", "Good to know!", "Thank you for telling me.", "All right.", "I see.")
_STARTS = ("", "", "", "Just so you know: ", "By the way, ", "Hi, ", "Something about me: ", "You should know that ")


def told_of_oneself(words: Words, untold: tuple[str, ...]) -> list[tuple[str, str]]:
    """What a user tells, in one message or in several, and questions about it, some about what was not told."""
    rng = words.rng
    chosen = rng.sample(OWN, rng.choice((3, 3, 4, 5, 6)))
    chosen, missing = chosen[:-2], chosen[-2:]
    values: list[str] = []
    told: list[str] = []
    for own in chosen:
        value = next((one for one in (own.draw(words) for _ in range(20)) if one not in values), own.draw(words))
        values.append(value)
        told.append(tidy(rng.choice(own.tells).format(v=value)))
    exchanges: list[tuple[str, str]] = []
    while told:
        count = rng.choice((1, 1, 2, len(told)))
        some, told = told[:count], told[count:]
        start = rng.choice(_STARTS)
        joined = rng.choice((", ", " and ", ". ")).join(some) if count < 3 else f"{', '.join(some[:-1])} and {some[-1]}"
        said = ". ".join(one[:1].upper() + one[1:] for one in f"{start}{joined}".split(". "))
        exchanges.append((said if rng.random() < 0.15 else f"{said}.", rng.choice(_REPLIES)))
    asked: list[tuple[str, str]] = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(len(chosen))
        own, answer = chosen[place], tidy(chosen[place].answer.format(v=values[place]))
        if rng.random() < 0.25:
            own, answer = rng.choice(missing), rng.choice(untold)
        question = rng.choice(own.asks)
        asked.append((question.lower().rstrip("?") if rng.random() < 0.1 else question, answer))
    asked = list(dict(asked).items())
    if len(exchanges) == 1 and rng.random() < 0.4:
        return [(f"{exchanges[0][0].rstrip('.')}. {asked[0][0]}", asked[0][1]), *asked[1:]]
    return [*exchanges, *asked]
