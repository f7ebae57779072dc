"""How those who are told to be somebody are told to speak, and what becomes of a plain answer then."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from words import Words, capitalised, made_up


@dataclass(frozen=True)
class Manner:
    """A manner of speaking.

    Attributes:
        told: ways to ask for it.
        apply: what makes a plain answer one in this manner.
    """

    told: tuple[str, ...]
    apply: Callable[[str], str]


_SMALL = {
    *(
        "a",
        "an",
        "the",
        "it",
        "its",
        "in",
        "on",
        "at",
        "by",
        "of",
        "for",
        "from",
        "with",
        "to",
        "after",
        "before",
        "as",
    ),
    *(
        "there",
        "this",
        "that",
        "these",
        "those",
        "you",
        "your",
        "we",
        "our",
        "he",
        "she",
        "his",
        "her",
        "they",
        "their",
    ),
    *("my", "yes", "no", "not", "some", "most", "many", "all", "each", "every", "one", "two", "three", "if", "when"),
    *("then", "until", "here", "nobody", "somebody", "both", "about", "trees", "people", "only", "during", "under"),
}


def _inside(text: str) -> str:
    """The text as it stands after other words: with a small letter where it begins with a small word."""
    first = re.match(r"[A-Za-z]*", text)
    is_small = first is not None and first[0].lower() in _SMALL
    return text[:1].lower() + text[1:] if is_small else text


def _parted(text: str) -> tuple[str, str]:
    """The text without what closes its last sentence, and that; a full stop if there is nothing."""
    bare = text.rstrip().rstrip(".!?")
    return bare, text.rstrip()[len(bare) :] or "."


def _closed(text: str) -> str:
    """The text with something that closes its last sentence."""
    return "".join(_parted(text))


def _first_sentence(text: str) -> str:
    found = re.match(r".+?[.!?](?=\s|$)", text, re.DOTALL)
    return found[0] if found else text


def _last_word(text: str) -> str:
    parts = re.findall(r"[^\s\"“”()]+", _parted(text)[0])
    return parts[-1].strip(",;:") if parts else text


def _number(text: str) -> str:
    """The first number of the text, or all of it where there is none."""
    found = re.search(r"\d+(?:[.,:]\d+)*", text)
    return f"{found[0]}." if found else text


def _titled(text: str) -> str:
    return " ".join(map(capitalised, text.split(" ")))


def _twice_begun(text: str) -> str:
    """The text with its first word said twice."""
    first = text.split(" ", maxsplit=1)[0].strip(",.:;!?")
    return f"{first}, {_inside(text)}" if first else text


def _before(said: str) -> Callable[[str], str]:
    """Puts whole sentences before the answer."""
    return lambda text: f"{said} {text}"


def _into(said: str) -> Callable[[str], str]:
    """Puts words before the answer that are part of its first sentence."""
    return lambda text: f"{said} {_inside(text)}"


def _after(said: str) -> Callable[[str], str]:
    """Puts whole sentences after the answer."""
    return lambda text: f"{_closed(text)} {said}"


def _onto(said: str) -> Callable[[str], str]:
    """Puts words after a comma at the end of the last sentence."""

    def apply(text: str) -> str:
        bare, end = _parted(text)
        return f"{bare}, {said}{end}"

    return apply


def _ended(end: str) -> Callable[[str], str]:
    """Closes the last sentence with other characters."""
    return lambda text: _parted(text)[0] + end


MANNERS: tuple[Manner, ...] = (
    Manner(
        (
            "Always answer in capital letters.",
            "WRITE EVERYTHING IN CAPITALS",
            "You shout: all letters are capitals.",
            "Use capitals only.",
            "All your letters are big.",
            "You only know capital letters.",
            "Answer loudly, in upper case.",
            "no small letters please, capitals only",
        ),
        str.upper,
    ),
    Manner(
        (
            "Always answer in lower case.",
            "write everything in small letters",
            "You never use capitals.",
            "Use small letters only.",
            "No capital letters, please.",
            "All letters of your answers are small.",
            "You do not have capital letters.",
            "lower case only",
        ),
        str.lower,
    ),
    Manner(
        (
            "Every Word Of Your Answers Has A Capital.",
            "Write each word with a capital at its beginning.",
            "Begin every word with a big letter.",
            "Write Like A Headline.",
            "All your words start with a capital letter.",
            "You write as in the title of a book: each word has a capital.",
        ),
        _titled,
    ),
    Manner(
        (
            "Answer in one short sentence.",
            "Say one sentence only.",
            "Never say more than one sentence.",
            "You are a person of few words: one sentence is enough.",
            "Keep it to a single sentence.",
            "Each answer is one sentence long.",
            "One sentence per answer, no more.",
        ),
        _first_sentence,
    ),
    Manner(
        (
            "Say only the last word of the answer.",
            "You only say the last word.",
            "Leave out everything but the last word.",
            "Your answers are the last word alone, nothing else.",
            "Like an echo you say just the last word of the answer.",
            "Only the last word counts: say that alone.",
        ),
        lambda text: f"{_last_word(text)}.",
    ),
    Manner(
        (
            "If there is a number in the answer, say only the number.",
            "Where a number is the answer, give the number alone.",
            "You love numbers. If you can answer with a number, say nothing else.",
            "Numbers come without any words around them.",
            "When the answer has a number, the number is all you say.",
        ),
        _number,
    ),
    Manner(
        (
            "Begin with I think.",
            "You are never sure, so you say I think before everything.",
            "Put I think before your answers.",
            "Always say that you only think so: I think ...",
            "Every answer begins with the words I think.",
            "You are careful: start with I think.",
        ),
        _into("I think"),
    ),
    Manner(
        (
            "Begin with Well and a comma.",
            "You say Well before you answer.",
            "Well, is how each of your answers begins.",
            "Start slowly: Well, ...",
            "Put Well before everything that you say.",
            "Like an old man you begin with Well.",
        ),
        _into("Well,"),
    ),
    Manner(
        (
            "Begin with: As everybody knows",
            "You believe that everybody knows everything. Begin with As everybody knows.",
            "Say As everybody knows before each answer.",
            "You are a know-all: your answers start with As everybody knows.",
            "Put As everybody knows first.",
        ),
        _into("As everybody knows,"),
    ),
    Manner(
        (
            "You have it all from an old book: begin with My book says that.",
            "Begin with the words My book says that.",
            "Say My book says that before your answers.",
            "All you know is from your book, so you start with: My book says that",
            "Put My book says that before what you know.",
        ),
        _into("My book says that"),
    ),
    Manner(
        (
            "At the end ask whether the user wants to know more.",
            "Ask back after each answer: Do you want to know more?",
            "End with the question Do you want to know more?",
            "You always ask at the end if more is wanted.",
            "After your answer ask: Do you want to know more?",
            "Close with a question to the user: Do you want to know more?",
        ),
        _after("Do you want to know more?"),
    ),
    Manner(
        (
            "You are curious. After every answer ask: And what do you think?",
            "Ask the user back: And what do you think?",
            "After you have answered, ask what the user thinks.",
            "End with the question And what do you think?",
            "You want to hear other people too, so your answers end with: And what do you think?",
            "Never stop without asking: And what do you think?",
        ),
        _after("And what do you think?"),
    ),
    Manner(
        (
            "End with an exclamation mark!",
            "You are excited: there is an exclamation mark at the end of your answers.",
            "Your answers end in an exclamation mark.",
            "Put ! at the end, never a full stop.",
            "Instead of a full stop use an exclamation mark.",
            "be excited! end with !",
        ),
        _ended("!"),
    ),
    Manner(
        (
            "End with three exclamation marks!!!",
            "You are very excited: put !!! at the end.",
            "Three exclamation marks close each answer.",
            "Your answers end with !!!",
            "Instead of the full stop write !!!",
        ),
        _ended("!!!"),
    ),
    Manner(
        (
            "End with three dots...",
            "You are dreamy and your answers end in three dots.",
            "Put ... at the end instead of a full stop.",
            "Let your answers fade out with three dots.",
            "Three dots close each of your answers...",
            "You never quite finish: the end is always ...",
        ),
        _ended("..."),
    ),
    Manner(
        (
            "No full stop at the end",
            "Leave out the last full stop.",
            "Never put a full stop at the end of an answer.",
            "Your answers end without any mark.",
            "Write as in a text message: without a full stop at the end",
            "Do not close your last sentence with a mark.",
        ),
        _ended(""),
    ),
    Manner(
        (
            "Repeat the last word of your answer.",
            "You say the last word once more.",
            "Like an echo you repeat your last word.",
            "At the end the last word comes again.",
            "Say the last word twice.",
            "There is an echo where you live: it repeats the last word.",
        ),
        lambda text: f"{_closed(text)} {capitalised(_last_word(text))}.",
    ),
    Manner(
        (
            "Say the first word twice.",
            "You repeat the first word of each answer.",
            "You stammer: the first word comes two times.",
            "The first word of your answers is doubled.",
            "Begin each answer with its first word and a comma, then say it all.",
        ),
        _twice_begun,
    ),
    Manner(
        (
            "Say everything twice.",
            "You repeat each answer.",
            "Give your answer two times.",
            "You say it all once and then once more.",
            "Each answer comes twice, word for word.",
            "The user is hard of hearing: say your answers twice.",
        ),
        lambda text: f"{_closed(text)} {_closed(text)}",
    ),
    Manner(
        (
            "Put your answers in quotation marks.",
            "Your answers stand between quotation marks.",
            "Write quotation marks around what you say.",
            "You are a person in a novel: all you say is in quotation marks.",
            "Quote yourself: every answer is in quotation marks.",
        ),
        lambda text: '"' + text.replace('"', "'") + '"',
    ),
    Manner(
        (
            "Put your answers in brackets.",
            "(Answer in brackets.)",
            "Your answers stand between brackets.",
            "You whisper: write brackets around what you say.",
            "Every answer is in brackets, like a remark on the side.",
            "Open a bracket before your answer and close it after it.",
        ),
        lambda text: f"({text})",
    ),
    Manner(
        (
            "Put stars around your answers.",
            "Your answers stand between two stars: * *",
            "Write a star before the answer and a star behind it.",
            "A star begins your answers and a star ends them.",
            "Every answer shines: put a * on both sides.",
        ),
        lambda text: f"* {text} *",
    ),
    Manner(
        (
            "Begin with a dash.",
            "Put a dash before each answer.",
            "Write your answers as a list: with a dash first.",
            "Every answer is a point of a list and has a dash before it.",
            "- is the first character of your answers",
        ),
        lambda text: f"- {text}",
    ),
    Manner(
        (
            "Write Answer and a colon first.",
            'Begin like this: "Answer: ..."',
            "Put the label Answer: before what you say.",
            "Each answer has the label Answer.",
            "Before the answer stands the word Answer with a colon.",
        ),
        lambda text: f"Answer: {text}",
    ),
    Manner(
        (
            "Add that this is as far as you know.",
            "End with: as far as I know",
            "You are modest. Your answers end with as far as I know.",
            "Put as far as I know at the end of your answer.",
            "Never be too sure: add as far as I know.",
            "Your last words before the full stop are: as far as I know",
        ),
        _onto("as far as I know"),
    ),
    Manner(
        (
            "Always call the user Your Majesty.",
            "You are a servant and the user is your queen: call her Your Majesty.",
            "The user is a king. Say Your Majesty at the end.",
            "End your answers with Your Majesty.",
            "Say Your Majesty to the user.",
            "Speak to the user as to a king, with Your Majesty.",
        ),
        _onto("Your Majesty"),
    ),
    Manner(
        (
            "Be polite and begin with Sir.",
            "Say Sir to the user before you answer.",
            "You are a butler: your answers begin with Sir.",
            "Sir is your first word, then a comma.",
            "Speak to the user like a soldier: Sir first.",
            "Before all else call the user Sir.",
        ),
        _into("Sir,"),
    ),
    Manner(
        (
            "Say my dear to the user.",
            "You are a kind grandmother and call the user my dear.",
            "End your answers with my dear.",
            "The user is your dear: say so at the end of the answer.",
            "Add my dear at the end of the answer.",
            "Always call the user my dear.",
        ),
        _onto("my dear"),
    ),
    Manner(
        (
            "Thank the user for asking before you answer.",
            "Say Thank you for asking first.",
            "First comes Thank you for asking, then the answer.",
            "Be thankful: begin with Thank you for asking.",
            "You are glad of each question and thank the user for asking.",
        ),
        _before("Thank you for asking."),
    ),
    Manner(
        (
            "Greet the user before each answer with Hello!",
            "You say Hello! before you answer.",
            "Be friendly and say Hello! first.",
            "Never answer without a Hello! before it.",
            "First Hello!, then the answer.",
        ),
        _before("Hello!"),
    ),
    Manner(
        (
            "Say that this is all: end with That is all.",
            "After the answer you say That is all.",
            "That is all. This is how each of your answers closes.",
            "You are short with people: after the answer comes That is all.",
            "Finish every time with That is all.",
        ),
        _after("That is all."),
    ),
    Manner(
        (
            "You speak by radio: say Over at the end.",
            "After the answer say Over, as on the radio.",
            "End like a pilot, with Over.",
            "Close with the word Over.",
            "Over is your last word, as among sailors on the radio.",
        ),
        _after("Over."),
    ),
    Manner(
        (
            "End your answers with right and a question mark.",
            "You are unsure and want to hear that you are right: end with right?",
            "Ask for approval: put right? at the end of the answer.",
            "The answer ends with a comma, right and a question mark.",
            "Add right? to your answer.",
        ),
        lambda text: f"{_parted(text)[0]}, right?",
    ),
    Manner(
        (
            "Smile at the end :)",
            "Put :) after your answers.",
            "You are happy. After each answer comes a :)",
            "End with a smile like this: :)",
            "Close every answer with :)",
        ),
        _after(":)"),
    ),
    Manner(
        (
            "Apologise first with I am sorry.",
            "You are shy and say I am sorry before each answer.",
            "Begin with I am sorry.",
            "I am sorry is what you say first, whatever is asked.",
            "You apologise for everything: I am sorry comes first.",
        ),
        _before("I am sorry."),
    ),
    Manner(
        (
            "Ask first: You want to know?",
            "Before the answer you ask: You want to know?",
            "Begin with the question You want to know?",
            "You are mysterious and ask You want to know? before you answer.",
            "First say You want to know? and then the answer.",
        ),
        _before("You want to know?"),
    ),
)
"""Manners of which nothing is drawn."""

_TITLES = (
    *("Captain", "Your Highness", "Professor", "Doctor", "Boss", "Master", "Madam", "Milady", "Chief", "Commander"),
    *("Coach", "Comrade", "Your Grace", "Admiral", "General", "Mister President", "Teacher", "young man", "old friend"),
)
_EXCLAMATIONS = (
    *("Arrr!", "Wow!", "Hey!", "Oh!", "Ha!", "Hooray!", "Brrr!", "Oops!", "Bravo!", "Yippee!", "Bzzz!", "Splash!"),
    *("Ding dong!", "Great!", "Good heavens!", "Oh my!", "Gosh!", "Crikey!", "Ho ho ho!", "Zap!", "Boom!", "Roar!"),
)
_SENTENCES = (
    *("The sea is calm.", "Winter is coming.", "Trees are great.", "I love my job.", "It is late.", "Eat more fruit."),
    *(
        "Life is good.",
        "My tea is cold.",
        "Have a nice day.",
        "The stars are bright.",
        "Keep it in mind.",
        "I must go.",
    ),
    *("Time is money.", "The moon knows it.", "Stay calm.", "Drink water.", "Nothing is easy.", "My feet hurt."),
)
_ADDED = ("matey", "mate", "sweetheart", "darling", "buddy", "comrade", "folks", "dude", "honey", "my child", "pal")


def _filled(told: tuple[str, ...], said: str) -> tuple[str, ...]:
    return tuple(wording.format(w=said) for wording in told)


def _title_at_end(rng: random.Random) -> Manner:
    title = rng.choice(_TITLES) if rng.random() < 0.6 else made_up(rng).capitalize()
    told = (
        "In each answer call the user {w}.",
        "Always say {w} to the user.",
        "The user wants to hear {w} in every answer.",
        "You call the user {w} at the end of the answer.",
        "To you the user is {w}: say so at the end.",
        "Your answers end with {w}, for this is what you call the user.",
        "user = {w}, always say it at the end",
    )
    return Manner(_filled(told, title), _onto(title))


def _title_at_start(rng: random.Random) -> Manner:
    title = capitalised(rng.choice(_TITLES)) if rng.random() < 0.6 else made_up(rng).capitalize()
    told = (
        "Call the user {w} before you answer.",
        "First call the user {w}, then answer.",
        "Your answers begin by calling the user {w}.",
        "{w} comes first, as you talk to {w}.",
        "Before everything you say {w} to the user.",
        "Speak to the user as {w} at the start.",
    )
    return Manner(_filled(told, title), _into(f"{title},"))


def _exclaims(rng: random.Random) -> Manner:
    said = rng.choice(_EXCLAMATIONS) if rng.random() < 0.5 else f"{made_up(rng).capitalize()}!"
    told = (
        "You shout {w} before you answer.",
        "Every time you open your mouth, {w} comes first.",
        "Exclaim {w} and then answer.",
        "First {w} and then the answer.",
        "You cannot speak without saying {w} first.",
        "Before the answer comes {w}",
        "one word before the answer: {w}",
    )
    return Manner(_filled(told, said), _before(said))


def _exclaims_twice(rng: random.Random) -> Manner:
    said = rng.choice(_EXCLAMATIONS) if rng.random() < 0.5 else f"{made_up(rng).capitalize()}!"
    told = (
        "You say {w} two times before you answer.",
        "First {w}, then {w} again, then the answer.",
        "Twice you say {w} before the answer.",
        "Say {w} twice, then answer.",
        "You are so excited that {w} comes twice before each answer.",
    )
    return Manner(_filled(told, said), _before(f"{said} {said}"))


def _around(rng: random.Random) -> Manner:
    said = rng.choice(_EXCLAMATIONS) if rng.random() < 0.5 else f"{made_up(rng).capitalize()}!"
    told = (
        "Say {w} before and after the answer.",
        "Your answers stand between {w} and {w}",
        "{w} is the first and the last that you say.",
        "Begin with {w} and end with {w} too.",
        "On both sides of the answer you say {w}",
        "You make a noise before the answer and after it: {w}",
    )
    return Manner(_filled(told, said), lambda text: f"{said} {_closed(text)} {said}")


def _word_at_end(rng: random.Random) -> Manner:
    word = made_up(rng)
    told = (
        "After the answer say the word {w}.",
        "Your last word is {w}.",
        "Close with the word {w}.",
        "One word comes after each answer: {w}",
        "You cannot stop without the word {w}.",
        "The word {w} ends all that you say.",
        "say {w} when you have answered",
    )
    return Manner(_filled(told, word), _after(f"{word.capitalize()}."))


def _sentence_at_end(rng: random.Random) -> Manner:
    said = rng.choice(_SENTENCES) if rng.random() < 0.6 else f"I love {made_up(rng)}."
    told = (
        "When you have answered, say: {w}",
        "You cannot stop before you have said: {w}",
        "After the answer comes one more sentence: {w}",
        "Whatever is asked, your last sentence is: {w}",
        "Close with this sentence: {w}",
        "You add a sentence to each answer. It is: {w}",
    )
    return Manner(_filled(told, said), _after(said))


def _sentence_at_start(rng: random.Random) -> Manner:
    said = rng.choice(_SENTENCES) if rng.random() < 0.6 else f"I see {made_up(rng)}."
    told = (
        "Before you answer, say: {w}",
        "Whatever is asked, your first sentence is: {w}",
        "One sentence comes before the answer: {w}",
        "You open with this sentence: {w}",
        "You cannot answer before you have said: {w}",
    )
    return Manner(_filled(told, said), _before(said))


def _signed(rng: random.Random) -> Manner:
    name = Words(rng).name()
    told = (
        "You are {w}. Sign your answers with your name.",
        "Sign with your name, {w}.",
        "Put your signature under each answer: - {w}",
        "Write like in a letter, with - {w} at the end.",
        "Your name is {w}, and you sign all that you write.",
        "sign as {w}",
    )
    return Manner(_filled(told, name), _after(f"- {name}"))


def _yours(rng: random.Random) -> Manner:
    name = Words(rng).name()
    told = (
        "You write letters: close with Yours, {w}",
        "At the bottom of each answer stands Yours, {w}",
        "Your answers are letters that end with Yours and your name, {w}.",
        "Close like a letter, with Yours and the name {w}.",
        "Under what you write stands: Yours, {w}",
    )
    return Manner(_filled(told, name), _after(f"Yours, {name}"))


def _says(rng: random.Random) -> Manner:
    name = Words(rng).name()
    told = (
        "You are {w}. Begin with your name and says.",
        "Speak of yourself as {w}: {w} says ...",
        "Before your answers stands {w} says and a colon.",
        "Write it like a play, with {w} says: first.",
        "Every answer begins with {w} says, for you are {w}.",
    )
    return Manner(_filled(told, name), lambda text: f"{name} says: {text}")


def _labelled(rng: random.Random) -> Manner:
    word = made_up(rng).capitalize() if rng.random() < 0.6 else rng.choice(("Note", "Reply", "News", "Report", "Fact"))
    told = (
        "Put the label {w} before your answers.",
        "{w} and a colon come first.",
        "Your answers have the label {w}, followed by a colon.",
        "Label each answer with {w}.",
        "Write {w}: and then the answer.",
    )
    return Manner(_filled(told, word), lambda text: f"{word}: {text}")


def _added(rng: random.Random) -> Manner:
    word = rng.choice(_ADDED) if rng.random() < 0.6 else made_up(rng)
    told = (
        "Add {w} to the end of your answers.",
        "You call everybody {w}.",
        "Put a comma and {w} before the last full stop.",
        "Your answers end with a comma and {w}.",
        "Talk like somebody who says {w} at the end of each answer.",
        "Like a friend you say {w} at the end.",
    )
    return Manner(_filled(told, word), _onto(word))


MAKERS: tuple[Callable[[random.Random], Manner], ...] = (
    _title_at_end,
    _title_at_start,
    _exclaims,
    _exclaims_twice,
    _around,
    _word_at_end,
    _sentence_at_end,
    _sentence_at_start,
    _signed,
    _yours,
    _says,
    _labelled,
    _added,
)
"""Manners of which a name, a title or other words are drawn."""


def draw_manner(rng: random.Random) -> Manner:
    """A manner, every other time one with drawn words."""
    return rng.choice(MANNERS) if rng.random() < 0.5 else rng.choice(MAKERS)(rng)
