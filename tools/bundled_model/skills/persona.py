"""Being who the system prompt says, in the manner it asks for."""

from __future__ import annotations

import random
from collections.abc import Iterator

from documents import Case, Document, Turn, conversation
from words import Stage, Words, article, capitalised

from skills.conversation import answer_of_sapling
from skills.manners import draw_manner

NAME = "persona"

ROLES = (
    "a pirate",
    "a robot",
    "a wise owl",
    "a knight",
    "a wizard",
    "a gardener",
    "a teacher",
    "a sailor",
    "a cook",
    "a poet",
    "a friendly ghost",
    "a farmer",
    "a detective",
    "a librarian",
    "a dragon",
    "a clown",
    "a gnome",
    "an old tree",
    "a talking fox",
    "a queen",
    "a baker",
    "a talking dog",
    "a talking parrot",
    "a king",
    "a mermaid",
    "a giant",
    "a witch",
    "a monk",
    "a doctor",
    "a spy",
    "a clever mouse",
    "a bard",
    "a ranger",
    "a captain",
    "an elf",
    "an explorer",
    "an inventor",
    "an artist",
    "an angel",
    "an old sailor",
    "an actor",
)
TEST_ROLES = ("a shepherd", "a talking cat", "a beekeeper", "an astronaut", "a fairy")
CATCHES = (
    "Arr!",
    "Beep.",
    "Hoot!",
    "Ahoy!",
    "Oh dear!",
    "Indeed.",
    "My friend.",
    "Cheers!",
    "So it is.",
    "Hurray!",
    "Bless you.",
    "By my beard!",
    "Peace.",
    "Tick tock.",
    "Yes, sir!",
    "What a day!",
    "Trust me.",
    "Grow well!",
    "Meow!",
    "Stay green!",
    "Aha!",
    "Well, well.",
    "Good night!",
    "Good day!",
    "Be brave.",
    "Be kind!",
    "Oh, oh!",
    "Now, now!",
    "Here we go!",
    "They say so.",
    "Take care.",
    "So long!",
    "Look, look!",
    "Who knows?",
    "Let us see.",
    "No worries!",
    "Quack!",
    "Moo!",
)
TEST_CATCHES = ("Woof!", "Be well.", "Good luck!", "So they say.", "Hear, hear!")
OPENINGS = (
    "You are {n}, {r}.",
    "Your name is {n}. You are {r}.",
    "You are {r} called {n}.",
    "You are {n}. You are {r}.",
    "Play {n}, {r}.",
    "Act as {n}, {r}.",
    "From now on you are {n}, {r}.",
    "You are {r}. Your name is {n}.",
    "You are {r}, and you are called {n}.",
    "You are {r} with the name {n}.",
    "You are {r} whose name is {n}.",
    "Be {r} called {n}.",
    "Be {r}, and call yourself {n}.",
    "Pretend to be {n}, {r}.",
    "You play {r}. Your name is {n}.",
    "Speak as {n}, {r}.",
    "Answer as {n}, {r}.",
    "Your role: {n}, {r}.",
    "In this chat you are {n}, {r}.",
    "Imagine that you are {n}, {r}.",
    "{n} is your name, and you are {r}.",
    "You will be {n}, {r}.",
    "I want you to be {n}, {r}.",
    "Please be {n}. You are {r}.",
    "Take the role of {n}, {r}.",
    "You are called {n} and you are {r}.",
    "Behave like {n}, {r}.",
)
TEST_OPENINGS = ("You are {r}, and your name is {n}.", "Be {n}, {r}.")
TEST_END_RULES = ('Always finish your answers with "{c}"', 'At the end of each answer say "{c}"')
TEST_START_RULES = ('Always start your answers with "{c}"', 'At the start of each answer say "{c}"')


def _rules(verbs: tuple[str, ...], edges: tuple[str, ...], others: tuple[str, ...], test: tuple[str, ...]) -> list[str]:
    """Ways to say where a saying belongs: all that verbs, edges and what they are of make, but for those held out."""
    leads = (
        "",
        "",
        "Always ",
        "Please ",
        "Please always ",
        "You always ",
        "You must ",
        "You shall ",
        "Never forget to ",
    )
    answers = ("every answer", "each answer", "your answers", "all answers", "all your answers", "each of your answers")
    rules = [f'{lead}{verb} {whole} with "{{c}}"' for lead in leads for verb in verbs for whole in answers]
    rules += [f'{lead}{verb} with "{{c}}"' for lead in leads for verb in verbs]
    for edge in edges:
        for said in ("say", "write", "put"):
            rules += [f'At the {edge} of {whole} {lead}{said} "{{c}}"' for lead in ("", "always ") for whole in answers]
            rules += [f'{lead}{said} "{{c}}" at the {edge} of {whole}.' for lead in leads for whole in answers]
    rules += others * 8
    return [rule for rule in map(capitalised, rules) if rule not in test]


END_RULES = _rules(
    ("end", "finish", "close", "conclude"),
    ("end", "very end", "close"),
    (
        'Your answers end with "{c}"',
        'Always say "{c}" at the end.',
        'Finish with "{c}" every time.',
        'Each answer ends with "{c}"',
        'Each answer finishes with "{c}"',
        'At the end always write "{c}"',
        'The last words of each answer are "{c}"',
        'Your last words are always "{c}"',
        'Put "{c}" at the end of what you say.',
        'Say "{c}" last.',
        'After each answer say "{c}"',
        '"{c}" comes at the end of every answer.',
    ),
    TEST_END_RULES,
)
START_RULES = _rules(
    ("begin", "start", "open", "introduce"),
    ("start", "very start", "beginning"),
    (
        'Your answers begin with "{c}"',
        'Always say "{c}" first.',
        'Start with "{c}" every time.',
        'Each answer starts with "{c}"',
        'Each answer begins with "{c}"',
        'At the beginning always write "{c}"',
        'The first words of each answer are "{c}"',
        'Your first words are always "{c}"',
        'Put "{c}" before what you say.',
        'Say "{c}" first.',
        'Before each answer say "{c}"',
        '"{c}" comes at the start of every answer.',
    ),
    TEST_START_RULES,
)
WHO_ASKS = (
    "Who are you?",
    "What is your name?",
    "What's your name?",
    "What are you?",
    "Tell me about yourself.",
    "Introduce yourself.",
    "Hello, who are you?",
    "What should I call you?",
    "Do you have a name?",
    "Hi! Who are you?",
    "May I ask your name?",
    "Could you tell me who you are?",
    "Can you tell me your name?",
    "And what is your name?",
    "And you are?",
    "Please tell me who you are.",
    "I would like to know who you are.",
    "Say, who are you?",
    "How may I call you?",
    "With whom am I talking?",
    "who are you",
    "what is your name",
    "Who is there?",
    "Do I know you?",
)
TEST_WHO_ASKS = ("May I ask who you are?", "Could you tell me your name?", "And who are you?")
USER_RULES = ("The user is called {u}.", "You talk to {u}.", "The name of the user is {u}.", "Call the user {u}.")
WHO_AM_I = ("What is my name?", "Who am I?", "Do you know my name?", "What's my name?")


# What a role may be besides, of the last stages.
MANNERS = (
    "grumpy", "friendly", "cheerful", "shy", "proud", "sleepy", "polite", "brave", "lonely", "busy", "calm", "clever",
    "funny", "gentle", "lazy", "loud", "merry", "old", "patient", "quiet", "rude", "serious", "tiny", "wild", "young",
    "famous", "forgetful", "helpful", "curious", "strict", "retired", "travelling", "very old", "good-natured",
)  # fmt: skip
OF = ("from {c}", "who sells {i}", "who loves {i}", "of {c}", "who collects {i}", "at a school in {c}", "in a shop")
# What may be said of a persona, what is asked then, and the answer.
LIVES = (
    ("You live in {v}.", ("Where do you live?", "Where is your home?", "And where do you live?"), "I live in {v}."),
    ("You work in {v}.", ("Where do you work?", "What is your place of work?"), "I work in {v}."),
    ("You come from {v}.", ("Where do you come from?", "Where are you from?"), "I come from {v}."),
    ("You love {v}.", ("What do you love?", "What do you like most?", "What do you like?"), "I love {v}."),
    ("You hate {v}.", ("What do you hate?", "What do you dislike?"), "I hate {v}."),
    ("You serve {v}.", ("Whom do you serve?", "Who is your master?"), "I serve {v}."),
    ("You sell {v}.", ("What do you sell?", "What can I buy from you?"), "I sell {v}."),
    ("You are {v} years old.", ("How old are you?", "What is your age?"), "I am {v} years old."),
    ("Your friend is {v}.", ("Who is your friend?", "Do you have a friend?"), "My friend is {v}."),
)


def life(words: Words) -> tuple[str, str, str]:
    """Something that is said of a persona, a question about it, and the answer."""
    rng = words.rng
    told, asks, answer = rng.choice(LIVES)
    if "years" in told:
        value = str(words.number(5, 900))
    elif "friend" in told or "serve" in told:
        value = rng.choice((words.name(), f"King {words.name()}", f"Queen {words.name()}"))
    elif "love" in told or "hate" in told or "sell" in told:
        value = rng.choice((words.items, words.hobby, words.items))()
    else:
        value = rng.choice(
            (words.city(), f"a {words.colour()} house", "an old tower", "a cave by the sea", "a big oak")
        )
    return told.format(v=value), rng.choice(asks), answer.format(v=value)


def catch_phrase(words: Words) -> str:
    """A few words that shall begin or end every answer."""
    rng = words.rng
    if words.test:
        return rng.choice(TEST_CATCHES)
    if rng.random() < 0.5:
        return rng.choice(CATCHES)
    said = " ".join(
        rng.choice((words.items, words.colour, words.pet, words.name, words.hobby))() for _ in range(rng.randint(1, 3))
    )
    return capitalised(said) + rng.choice("!.")


def persona(words: Words) -> tuple[str, str, str, str, str, str]:
    """A system prompt, the name and role in it, what answers begin and end with, and the name of the user."""
    rng = words.rng
    name = words.name()
    if rng.random() < 0.2:
        name = f"{rng.choice(('Captain', 'Doctor', 'Sir', 'Lady', 'Professor', 'Old'))} {name}"
    role = article(words.job()) if not words.test and rng.random() < 0.4 else words.pick(ROLES, TEST_ROLES)
    if words.is_wide and rng.random() < 0.5:
        role = f"{article(rng.choice(MANNERS))} {role.split(' ', 1)[1]}"
        role += f" {rng.choice(OF).format(c=words.city(), i=words.items())}" if rng.random() < 0.3 else ""
    parts = [words.wording(OPENINGS, TEST_OPENINGS).format(n=name, r=role)]
    start = end = user = ""
    kind = rng.random()
    if kind < 0.4:
        end = catch_phrase(words)
        parts.append(words.wording(END_RULES, TEST_END_RULES, free=False).format(c=end))
    elif kind < 0.75:
        start = catch_phrase(words)
        parts.append(words.wording(START_RULES, TEST_START_RULES, free=False).format(c=start))
    if rng.random() < 0.2:
        user = words.name()
        parts.insert(1, rng.choice(USER_RULES).format(u=user))
    if rng.random() < 0.2 and not words.test:
        parts.append(rng.choice(("Be kind.", "You love trees.", "Be brief.", "You like to help.")))
    return " ".join(parts), name, role, start, end, user


def exchange(words: Words, name: str, role: str, user: str) -> tuple[str, str]:
    """A question to the persona, and the answer without what it begins or ends with."""
    rng = words.rng
    kind = rng.random()
    if kind < 0.4:
        return words.wording(WHO_ASKS, TEST_WHO_ASKS, free=False), f"I am {name}, {role}."
    if user and kind < 0.6:
        return rng.choice(WHO_AM_I), f"Your name is {user}."
    return answer_of_sapling(rng, facts_only=True)


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """A conversation with somebody."""
    words = Words(rng, stage=stage)
    system, name, role, start, end, user = persona(words)
    lives = [life(words)] if words.is_wide and rng.random() < 0.5 else []
    manner = None
    if words.is_last and rng.random() < 0.45:
        # In place of what answers begin or end with.
        manner, start, end = draw_manner(rng), "", ""
        system = f"{words.wording(OPENINGS, TEST_OPENINGS).format(n=name, r=role)} {rng.choice(manner.told)}"
    system = " ".join([system, *(told for told, _, _ in lives)])
    turns: list[tuple[str, str]] = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        asked, answer = exchange(words, name, role, user)
        if user and manner and asked in WHO_AM_I:
            asked, answer = "Who are you?", f"I am {name}, {role}."
        if lives and rng.random() < 0.4:
            _, asked, answer = lives[0]
        elif words.is_wide and rng.random() < 0.12:
            asked, answer = (rng.choice(("What is your job?", "What do you do?", "What's your job?")), f"I am {role}.")
        answer = " ".join(part for part in (start, answer, end) if part)
        turns.append((asked, manner.apply(answer) if manner else answer))
    thought = None
    if rng.random() < 0.12:
        thought = f'I begin with "{start}"' if start else f'I end with "{end}"' if end else f"I am {name}, {role}."
    return conversation(turns, system, thought=thought)


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Names, roles, sayings and rules that training never used."""
    words = Words(rng, test=True)
    for _ in range(count):
        expected = ""
        while not expected:
            system, name, role, start, end, user = persona(words)
            asked, answer = exchange(words, name, role, user)
            # A fact may be told in several ways: what counts then is the manner, if one was asked for.
            expected = name if answer.startswith("I am ") else user if answer.startswith("Your name") else start or end
        turns = [Turn("system", system), Turn("user", asked)]
        yield Case("persona", turns, contains=(expected,), ending=end, opening=start)
