"""Looking things up in notes that stand in the context, and saying so where they do not stand there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from documents import Case, Document, Turn, conversation
from words import MONTHS, NOTHING, Stage, Words, is_held_out

from skills.noted import lines
from skills.noted_more import MORE_NOTES

NAME = "lookup"


@dataclass(frozen=True)
class Fact:
    """Something that notes may say of a person or a place.

    Attributes:
        draw: the value.
        told: ways to write it down; ``{n}`` has it, ``{v}`` is it.
        asks: for the value.
        test_asks: those held out.
        answer: to them.
        back: asks whose value it is, with the answer; empty where many may share it.
    """

    draw: Callable[[Words], str]
    told: tuple[str, ...]
    asks: tuple[str, ...]
    test_asks: tuple[str, ...]
    answer: str
    back: tuple[tuple[str, ...], str] | None = None


FACTS: tuple[Fact, ...] = (
    Fact(
        Words.colour,
        (
            "{n} likes {v} best.",
            "The favourite colour of {n} is {v}.",
            "{n} loves the colour {v}.",
            "{n} prefers {v} to all other colours.",
            "The colour that {n} likes best is {v}.",
            "{n} always chooses the colour {v}.",
            "Of all colours {n} likes {v} most.",
        ),
        (
            "What is the favourite colour of {n}?",
            "Which colour does {n} like?",
            "What colour does {n} like best?",
            "What is {n}'s favourite colour?",
            "Can you tell me the favourite colour of {n}?",
            "I would like to know the favourite colour of {n}.",
            "Tell me which colour {n} likes.",
            "Do you know what colour {n} likes?",
            "Which colour does {n} prefer?",
            "What colour is the one that {n} likes best?",
            "Of all colours, which one does {n} like most?",
            "favourite colour of {n}?",
            "Please name the favourite colour of {n}.",
        ),
        ("Which colour is the favourite of {n}?",),
        "The favourite colour of {n} is {v}.",
    ),
    Fact(
        lambda w: w.digits(4),
        (
            "The code of {n} is {v}.",
            "{n} has the code {v}.",
            "{n} uses the code {v}.",
            "{n} was given the code {v}.",
            "The code that {n} uses is {v}.",
            "{v} is the code for {n}.",
            "For {n} the code is {v}.",
        ),
        (
            "What is the code of {n}?",
            "Which code does {n} have?",
            "Tell me the code of {n}.",
            "What is {n}'s code?",
            "Which code belongs to {n}?",
            "Could you tell me the code of {n}?",
            "I need the code of {n}.",
            "What code does {n} use?",
            "Which code was {n} given?",
            "I would like to know which code {n} has.",
            "Do you remember {n}'s code?",
            "code of {n}?",
            "Give me the code of {n}, please.",
        ),
        ("Do you know the code of {n}?",),
        "The code of {n} is {v}.",
        (("Whose code is {v}?", "Who has the code {v}?"), "{v} is the code of {n}."),
    ),
    Fact(
        lambda w: str(w.number(1, 400)),
        (
            "{n} is in room {v}.",
            "The room of {n} is {v}.",
            "{n} has room {v}.",
            "{n} sits in room {v}.",
            "You will find {n} in room {v}.",
            "{n} was given room {v}.",
            "Room {v} is the room of {n}.",
        ),
        (
            "Which room is {n} in?",
            "What is the room of {n}?",
            "In which room is {n}?",
            "What is the number of {n}'s room?",
            "Which room does {n} have?",
            "Which room belongs to {n}?",
            "Could you tell me the room of {n}?",
            "Do you know which room {n} is in?",
            "I am looking for {n}. Which room is it?",
            "I would like to know the room of {n}.",
            "In what room can I find {n}?",
            "Which room do I go to if I want to see {n}?",
            "room of {n}?",
        ),
        ("Where can I find {n}? Which room?",),
        "{n} is in room {v}.",
        (("Who is in room {v}?", "Whose room is {v}?"), "{n} is in room {v}."),
    ),
    Fact(
        Words.city,
        (
            "{n} lives in {v}.",
            "{n} has a house in {v}.",
            "The home of {n} is {v}.",
            "{n} has a home in {v}.",
            "{n} lives in the city of {v}.",
            "The city where {n} lives is {v}.",
            "{v} is the home of {n}.",
        ),
        (
            "Where does {n} live?",
            "In which city does {n} live?",
            "Where is the home of {n}?",
            "In what town does {n} live?",
            "Which city is the home of {n}?",
            "Can you tell me where {n} lives?",
            "Do you know where {n} lives?",
            "I would like to know in which city {n} lives.",
            "Tell me where {n} has a home.",
            "What city is {n}'s home in?",
            "In which city is the house of {n}?",
            "Which town is home to {n}?",
            "where does {n} live these days?",
        ),
        ("Which city does {n} live in?",),
        "{n} lives in {v}.",
        (("Who lives in {v}?", "Who has a home in {v}?"), "{n} lives in {v}."),
    ),
    Fact(
        Words.pet,
        (
            "{n} has a {v}.",
            "The pet of {n} is a {v}.",
            "{n} keeps a {v}.",
            "{n} lives with a {v}.",
            "{n} is the owner of a {v}.",
            "The animal of {n} is a {v}.",
            "{n} owns a {v}.",
        ),
        (
            "Which pet does {n} have?",
            "What pet does {n} have?",
            "What animal does {n} keep?",
            "What is the pet of {n}?",
            "What kind of pet does {n} have?",
            "What kind of animal is the pet of {n}?",
            "Can you tell me which pet {n} keeps?",
            "Do you know what animal {n} has?",
            "I would like to know which pet {n} has.",
            "Which animal lives with {n}?",
            "Tell me what pet {n} has.",
            "What animal does {n} own?",
            "{n}'s pet?",
        ),
        ("Which animal does {n} have?",),
        "{n} has a {v}.",
        (("Who has a {v}?", "Who keeps a {v}?"), "{n} has a {v}."),
    ),
    Fact(
        Words.job,
        (
            "{n} is the {v}.",
            "{n} works as the {v}.",
            "The {v} is {n}.",
            "The job of {n} is that of the {v}.",
            "{n} has the job of the {v}.",
            "The {v} here is {n}.",
            "Our {v} is called {n}.",
        ),
        (
            "What is the job of {n}?",
            "What does {n} work as?",
            "What work does {n} do?",
            "What is {n}'s job?",
            "What does {n} do for a living?",
            "Can you tell me what {n} works as?",
            "Do you know the job of {n}?",
            "I would like to know what work {n} does.",
            "Tell me the job of {n}.",
            "As what does {n} work?",
            "What kind of work does {n} do?",
            "What job is done by {n}?",
            "job of {n}?",
        ),
        ("Which job does {n} have?",),
        "{n} is the {v}.",
        (("Who is the {v}?", "Who works as the {v}?", "What is the name of the {v}?"), "{n} is the {v}."),
    ),
    Fact(
        lambda w: str(w.number(5, 90)),
        (
            "{n} is {v} years old.",
            "The age of {n} is {v}.",
            "{n} turned {v} this year.",
            "{n} is {v}.",
            "{n} has lived for {v} years.",
            "{n} has reached the age of {v}.",
            "At the moment {n} is {v} years old.",
        ),
        (
            "How old is {n}?",
            "What is the age of {n}?",
            "What age is {n}?",
            "What is {n}'s age?",
            "Do you know how old {n} is?",
            "Could you say how old {n} is?",
            "Please tell me the age of {n}.",
            "I would like to know the age of {n}.",
            "How many years old is {n}?",
            "How many years has {n} lived?",
            "What age does {n} have?",
            "how old is {n} now?",
            "age of {n}?",
        ),
        ("Tell me how old {n} is.",),
        "{n} is {v} years old.",
    ),
    Fact(
        Words.items,
        (
            "{n} brings the {v}.",
            "{n} will bring the {v}.",
            "{n} takes care of the {v}.",
            "{n} is going to bring the {v}.",
            "The {v} are brought by {n}.",
            "{n} promised to bring the {v}.",
            "{n} comes with the {v}.",
        ),
        (
            "What does {n} bring?",
            "What will {n} bring?",
            "What is {n} bringing?",
            "What is {n} going to bring?",
            "Can you tell me what {n} brings?",
            "Do you know what {n} will bring?",
            "I would like to know what {n} is bringing.",
            "Tell me what {n} brings along.",
            "What does {n} take care of?",
            "Which things will {n} bring along?",
            "What is brought by {n}?",
            "What did {n} promise to bring?",
            "what is it that {n} brings?",
        ),
        ("Which thing does {n} bring?",),
        "{n} brings the {v}.",
        (("Who brings the {v}?", "Who will bring the {v}?", "Who takes care of the {v}?"), "{n} brings the {v}."),
    ),
    Fact(
        Words.hobby,
        (
            "{n} likes {v}.",
            "The hobby of {n} is {v}.",
            "{n} is fond of {v}.",
            "{n} spends every free day with {v}.",
            "What {n} likes is {v}.",
            "{n} enjoys {v}.",
            "In the evening {n} has time for {v}, a hobby of many years.",
        ),
        (
            "What does {n} like?",
            "What is the hobby of {n}?",
            "Which hobby does {n} have?",
            "What is {n}'s hobby?",
            "What is {n} fond of?",
            "What does {n} enjoy?",
            "What does {n} like doing?",
            "Can you tell me the hobby of {n}?",
            "Do you know which hobby {n} has?",
            "I would like to know what {n} does for fun.",
            "Tell me what hobby {n} has.",
            "What kind of hobby does {n} have?",
            "hobby of {n}?",
        ),
        ("What does {n} like to do?",),
        "{n} likes {v}.",
        (("Who likes {v}?", "Whose hobby is {v}?"), "{n} likes {v}."),
    ),
    Fact(
        lambda w: w.rng.choice(MONTHS),
        (
            "{n} was born in {v}.",
            "The birthday of {n} is in {v}.",
            "{n} has birthday in {v}.",
            "{n} has a birthday in {v}.",
            "The month in which {n} was born is {v}.",
            "In {v} {n} has a birthday.",
            "Every {v} {n} has a birthday party.",
        ),
        (
            "When is the birthday of {n}?",
            "In which month was {n} born?",
            "When was {n} born?",
            "When is {n}'s birthday?",
            "In what month is the birthday of {n}?",
            "What is the month of {n}'s birthday?",
            "Which month was {n} born in?",
            "Can you tell me when {n} was born?",
            "Do you know when the birthday of {n} is?",
            "I would like to know when {n} has a birthday.",
            "Tell me the month in which {n} was born.",
            "When does {n} have a birthday?",
            "birthday of {n}?",
        ),
        ("Which month is the birthday of {n} in?",),
        "The birthday of {n} is in {v}.",
    ),
    Fact(
        lambda w: w.name(),
        (
            "The friend of {n} is {v}.",
            "{n} is a friend of {v}.",
            "{n} and {v} are friends.",
            "{n} has a friend called {v}.",
            "The name of {n}'s friend is {v}.",
            "{n} calls {v} a friend.",
            "{n} is friends with {v}.",
        ),
        (
            "Who is the friend of {n}?",
            "What is the name of the friend of {n}?",
            "Which friend does {n} have?",
            "Who is {n}'s friend?",
            "Who is friends with {n}?",
            "What is {n}'s friend called?",
            "Can you tell me who the friend of {n} is?",
            "Do you know the friend of {n}?",
            "I would like to know the name of {n}'s friend.",
            "Tell me who is friends with {n}.",
            "With whom is {n} friends?",
            "What is the friend of {n} called?",
            "friend of {n}?",
        ),
        ("Who is a friend of {n}?",),
        "The friend of {n} is {v}.",
    ),
    Fact(
        Words.place,
        (
            "{n} waits at the {v}.",
            "{n} is at the {v}.",
            "You can meet {n} at the {v}.",
            "{n} is waiting at the {v}.",
            "You will see {n} at the {v}.",
            "{n} went to the {v} and is still there.",
            "The place where {n} waits is the {v}.",
        ),
        (
            "Where is {n}?",
            "Where does {n} wait?",
            "Where can I meet {n}?",
            "Where is {n} waiting?",
            "Where is {n} now?",
            "Can you tell me where {n} is?",
            "Do you know where {n} waits?",
            "I would like to meet {n}. Where do I go?",
            "Tell me where I can meet {n}.",
            "At what place does {n} wait?",
            "Where should I go to meet {n}?",
            "In which place can I see {n}?",
            "where is {n} at the moment?",
        ),
        ("At which place is {n}?",),
        "{n} is at the {v}.",
        (("Who is at the {v}?", "Who waits at the {v}?"), "{n} is at the {v}."),
    ),
)

FRAMES = (
    "Here are some notes. {t}",
    "Notes: {t}",
    "Read this: {t}",
    "This is what I know. {t}",
    "{t}",
    "Text: {t}",
    "Remember this. {t}",
    "Please read these notes. {t}",
    "I wrote this down: {t}",
    "Some things to remember: {t}",
    "Information: {t}",
    "Facts: {t}",
    "Look at these notes: {t}",
    "Use these notes to answer. {t}",
    "I will ask about this text. {t}",
    "This is written in my book: {t}",
    "Here is a text. {t}",
    "From my notebook: {t}",
    "Let me tell you a few things. {t}",
    "Keep this in mind: {t}",
)
TEST_FRAMES = ("Here is what you should know. {t}", "These are my notes: {t}")
ABSENT = "The notes do not say that."
# Part of the documents in which the answer is a word, or that there is none.
DRILLED = {
    Stage.DRILLS: 0.5,
    Stage.TOOLS: 0.3,
    Stage.MIXED: 0.15,
    Stage.TALK: 0.3,
    Stage.FOUND: 0.15,
    Stage.NOTED: 0.1,
    Stage.LAST: 0.08,
}
# Part of the other questions about people of whom the notes say nothing.
STRANGERS = dict.fromkeys(Stage, 0.25) | {Stage.TALK: 0.35}
SHORTLY = ("Answer with a word, or with none.", "Say the word that counts, or none.", "A word, or none.")
SYSTEMS = ("You are a helpful assistant.", "Answer from the notes.", "You are Sapling.", "Use only the notes.")
ACKNOWLEDGED = ("All right, I will remember that.", "Thank you, I have read it.", "I see.")
USER_FACTS = (
    ("My name is {v}.", "What is my name?", "Your name is {v}.", Words.name),
    ("I am called {v}.", "Do you remember my name?", "Your name is {v}.", Words.name),
    ("My cat is called {v}.", "What is the name of my cat?", "Your cat is called {v}.", Words.name),
    ("My dog is called {v}.", "How is my dog called?", "Your dog is called {v}.", Words.name),
    ("I live in {v}.", "Where do I live?", "You live in {v}.", Words.city),
    ("I come from {v}.", "Where do I come from?", "You come from {v}.", Words.city),
    ("I am {v} years old.", "How old am I?", "You are {v} years old.", lambda w: str(w.number(5, 90))),
    ("My favourite colour is {v}.", "What is my favourite colour?", "Your favourite colour is {v}.", Words.colour),
    (
        "The password is {v}.",
        "What is the password?",
        "The password is {v}.",
        lambda w: w.rng.choice((w.items(), w.digits(4), w.city())),
    ),
    ("I work as a {v}.", "What is my job?", "You work as a {v}.", Words.job),
    ("My sister is called {v}.", "What is my sister called?", "Your sister is called {v}.", Words.name),
    ("I like {v}.", "What do I like?", "You like {v}.", Words.hobby),
)
USER_REPLIES = ("I will remember that.", "Good to know!", "Thank you for telling me.")


def notes(words: Words, count: int, others: int = 1) -> tuple[str, list[tuple[str, Fact, str]], list[str]]:
    """Some sentences about people, what they say as person, fact and value, and people of whom they say nothing."""
    rng = words.rng
    kinds = rng.sample(FACTS, min(len(FACTS), rng.choice((1, 1, 2, 3))))
    people = words.names(count + others)
    rows: list[tuple[str, Fact, str]] = []
    taken: set[str] = set(people)
    for person in people[:count]:
        fact = rng.choice(kinds)
        value = fact.draw(words)
        for _ in range(20):
            if value not in taken:
                break
            value = fact.draw(words)
        else:
            # Who else has this could not be asked.
            continue
        taken.add(value)
        rows.append((person, fact, value))
    told = [rng.choice(fact.told).format(n=person, v=value) for person, fact, value in rows]
    return rng.choice((" ", " ", "\n", "\n- ")).join(told), rows, people[count:]


def question(words: Words, rows: list[tuple[str, Fact, str]], strangers: list[str]) -> tuple[str, str, str]:
    """A question about notes, its answer, and the word that counts."""
    rng = words.rng
    person, fact, value = rng.choice(rows)
    ask = words.wording(fact.asks, fact.test_asks, free=False)
    if rng.random() < 0.07 and not words.test:
        other = rng.choice([other for other in FACTS if other is not fact])
        return rng.choice(other.asks).format(n=person), ABSENT, ABSENT
    if rng.random() < (0.15 if words.test else STRANGERS[words.stage]):
        return ask.format(n=rng.choice(strangers), v=value), ABSENT, ABSENT
    if fact.back and rng.random() < 0.5:
        return rng.choice(fact.back[0]).format(v=value), fact.back[1].format(n=person, v=value), person
    return ask.format(n=person), fact.answer.format(n=person, v=value), value


def remembered(words: Words) -> tuple[list[tuple[str, str]], tuple[str, str], str]:
    """Exchanges in which the user tells of himself, then a question about it, with the word that counts."""
    rng = words.rng
    told: list[tuple[str, str]] = []
    chosen = rng.sample(USER_FACTS, rng.randint(1, 3))
    values = [draw(words) for *_, draw in chosen]
    while words.test and not any(is_held_out(value) for value in values):
        chosen = rng.sample(USER_FACTS, len(chosen))
        values = [draw(words) for *_, draw in chosen]
    for (tell, _, _, _), value in zip(chosen, values, strict=True):
        reply = f"Nice to meet you, {value}!" if "Your name" in _answer_of(tell) else rng.choice(USER_REPLIES)
        told.append((tell.format(v=value), reply))
    place = rng.randrange(len(chosen))
    return told, (chosen[place][1], chosen[place][2].format(v=values[place])), values[place]


def _answer_of(tell: str) -> str:
    return next(answer for said, _, answer, _ in USER_FACTS if said == tell)


def drill(words: Words) -> Document:
    """Notes, and for one question after the other the word that counts, if they say it."""
    rng = words.rng
    text, rows, strangers = notes(words, rng.choice((1, 2, 3, 4, 5, 6, 8)), 4)
    asked: list[tuple[str, str]] = []
    for _ in range(rng.choice((4, 6, 8, 10))):
        person, fact, value = rng.choice(rows)
        answer = value
        if rng.random() < 0.5:
            person, answer = rng.choice(strangers), NOTHING
        asked.append((rng.choice(fact.asks).format(n=person), answer))
    if words.is_late and rng.random() < 0.65:
        framed = f"{rng.choice(FRAMES).format(t=text)}\n{rng.choice(SHORTLY)}"
        if rng.random() < 0.6:
            return conversation(asked, framed)
        return conversation([(f"{framed}\n{asked[0][0]}", asked[0][1]), *asked[1:]])
    pieces = [(f"{text}\n", False)]
    for ask, answer in asked:
        pieces += [(f"{ask} <-", False), (f" {answer}\n", True)]
    return Document(plain=pieces)


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """Notes and questions about them, or a user who tells of himself."""
    words = Words(rng, stage=stage)
    if stage is not Stage.FIRST and rng.random() < DRILLED[stage]:
        return drill(words)
    if rng.random() < 0.2:
        told, last, _ = remembered(words)
        return conversation([*told, last])
    if words.is_wide and rng.random() < 0.7:
        text, asked = written_down(words)
    else:
        text, rows, strangers = notes(words, rng.choice((1, 2, 3, 3, 4, 5, 6, 8, 12)))
        asked = [question(words, rows, strangers) for _ in range(rng.choice((1, 2, 3, 4, 6)))]
    pairs = [(ask, answer) for ask, answer, _ in asked]
    framed = words.wording(FRAMES, TEST_FRAMES).format(t=text)
    thought = None
    if rng.random() < 0.12:
        thought = "The notes do not say it." if asked[-1][1] == ABSENT else f"The notes say it: {asked[-1][2]}."
    place = rng.random()
    if place < 0.4:
        return conversation(pairs, f"{rng.choice(SYSTEMS)} {framed}" if rng.random() < 0.6 else framed, thought=thought)
    if place < 0.8:
        glue = rng.choice((" ", "\n", "\n\n"))
        pairs[0] = (f"{framed}{glue}{pairs[0][0]}", pairs[0][1])
        return conversation(pairs, thought=thought)
    return conversation([(framed, rng.choice(ACKNOWLEDGED)), *pairs], thought=thought)


def written_down(words: Words) -> tuple[str, list[tuple[str, str, str]]]:
    """Notes of places, things and plans, and questions about them, some of which they do not answer."""
    rng = words.rng
    told = lines(words, rng.choice((1, 1, 2, 3, 4, 5, 6)) + 2, MORE_NOTES if words.is_last else ())
    missing, told = told[:2], told[2:]
    if not told:
        missing, told = told, missing
    between = rng.choice((" ", " ", " ", "\n", "\n- "))
    text = between.join(line.text for line in told)
    if words.is_last and between == "\n- ":
        text = f"- {text}"
    asked = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        if missing and rng.random() < 0.25:
            asked.append((rng.choice(missing).ask(words)[0], ABSENT, ABSENT))
        else:
            asked.append(rng.choice(told).ask(words))
    return text, asked


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Names, values, frames and questions that training never used."""
    words = Words(rng, test=True)
    for place in range(count):
        if place % 5 == 4:
            told, (asked, _), value = remembered(words)
            turns = [turn for said, reply in told for turn in (Turn("user", said), Turn("assistant", reply))]
            yield Case("remembering the user", [*turns, Turn("user", asked)], contains=(value,))
            continue
        text, rows, strangers = notes(words, rng.choice((3, 5, 8)))
        asked, _, value = question(words, rows, strangers)
        framed = rng.choice(TEST_FRAMES).format(t=text)
        others = tuple(other for _, _, other in rows if other not in asked and other not in value)
        turns = [Turn("user", f"{framed}\n{asked}")] if place % 2 else [Turn("system", framed), Turn("user", asked)]
        skill = "not in the notes" if value == ABSENT else "looking up"
        yield Case(
            skill,
            turns,
            contains=("do not say",) if value == ABSENT else (value,),
            lacks=others if value != ABSENT else (),
        )
