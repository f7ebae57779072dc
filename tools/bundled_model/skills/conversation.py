"""Small talk, facts, stories and refusals: the conversations that the tables next to this package tell of."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from documents import Case, Document, Turn, conversation
from generate_corpus import ConversationWriter, Exchange, held_out_cases, write_document
from phrasings import SMALL_TALK
from words import Stage, Words

from skills import arithmetic, asked
from skills.asked_talk import CHATS

NAME = "conversation"

# What is asked in vain elsewhere and can be answered here.
ANSWERED = ("99 minus 41", "7 x 8")
# Part of the conversations that begin as most people begin, what that is, and how many of its wordings are plain ones.
INTRODUCED = 0.12
FIRST_TALKS = ("greeting", "who are you", "who are you", "abilities")
PLAINEST = 4
GROUPS = {
    "follow-up": "follow-up questions",
    "garden book of 8 entries": "garden book",
    "name of the user": "remembering the user",
    "outside its topics": "refusing",
    "small talk": "small talk",
    "story": "stories",
}


class Writer(ConversationWriter):
    """Writes conversations in which sums are answered as everywhere else."""

    def plain_fact(self, table: str) -> list[Exchange]:
        """One question from a table of facts, or a sum."""
        if table == "sums":
            asked, answer, _ = arithmetic.exchange(Words(self.rng, stage=Stage.FIRST))
            return [(asked, answer)]
        return super().plain_fact(table)

    def outside(self) -> list[Exchange]:
        """Something the model cannot know."""
        while True:
            exchanges = super().outside()
            if not any(sum_ in exchanges[0][0] for sum_ in ANSWERED):
                return exchanges


def answer_of_sapling(rng: random.Random, facts_only: bool = False) -> tuple[str, str]:
    """A question and its answer in one turn, without a sum, a story or, if wanted, anything but facts."""
    writer = Writer(rng)
    writers: list[Callable[[], list[Exchange]]] = [
        writer.tree_questions,
        writer.capital_questions,
        writer.noun_questions,
        lambda: writer.plain_fact("calendar"),
    ]
    if not facts_only:
        writers += [writer.small_talk, writer.small_talk]
    return rng.choice(writers)()[0]


def introduction(rng: random.Random) -> list[Exchange]:
    """What people say first, mostly in its plainest wording, and perhaps something after it."""
    writer, name = Writer(rng), rng.choice(FIRST_TALKS)
    asked, answer = writer.small_talk(name)[0]
    if rng.random() < 0.7:
        asked = rng.choice(SMALL_TALK[name].asks[:PLAINEST])
    return [(asked, answer), *writer.chat(rng.choice((0, 0, 0, 1)))]


def document(rng: random.Random, stage: Stage = Stage.LAST) -> Document:
    """A conversation or a plain text, now and then with a thought before the last answer.

    It is the same in every stage but the last, which has more to ask for, and in more words.
    """
    closed = rng.random() < 0.06
    if stage is Stage.LAST and rng.random() < 0.5:
        exchanges, system = asked.talk(rng)
        turns = [replace(turn, closed=closed) for turn in conversation(exchanges, system).turns]
    elif rng.random() < INTRODUCED:
        turns = [replace(turn, closed=closed) for turn in conversation(introduction(rng)).turns]
    else:
        written = write_document(Writer(rng))
        if written.plain:
            return written
        turns = [replace(turn, closed=closed) for turn in written.turns]
    if not closed and len(turns) < 8 and rng.random() < 0.1:
        answer = turns[-1].content
        turns[-1] = Turn("assistant", answer, thought=thought(turns[-2].content, answer))
    return Document(turns)


_TALKED = {
    *(answer for talk in SMALL_TALK.values() for answer in talk.answers),
    *(answer for talk in CHATS for answer in talk.answers),
}


def thought(question: str, answer: str) -> str:
    """What goes before an answer that needs no reasoning."""
    if "not told me" in answer:
        return "Nobody has told me this."
    if "do not know" in answer or "beyond what I know" in answer:
        return "This is nothing that I know."
    if answer in _TALKED:
        return "This is small talk."
    if re.search(r"meet you|like to know\?$|telling me|keep that in mind|^Greetings to|sounds like", answer):
        return "The user tells me something."
    if re.search(r"\bmy\b|\bI\b", question, re.IGNORECASE) and re.match(r"You |Your ", answer):
        return "The user has told me this."
    if "story" in question.lower() and len(answer) > 100:
        return "I am asked for a story, so I tell one."
    if re.search("poem|haiku", question.lower()) and "\n" in answer:
        return "I am asked for a poem, so I write one."
    if answer.startswith("1. "):
        return "I am asked for a list, so I write one."
    if answer.startswith("1, 2"):
        return "I count from 1 on."
    if re.search(r" planted an? |[Tt]he .* is (beside|behind|near|in front of) the", answer):
        return "The garden book says this."
    if len(answer) > 150:
        return "I can tell something about that."
    return "I know this."


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Questions whose wording, topic, name or combination occurs nowhere in training."""
    known = [case for case in held_out_cases() if case.skill != "sums"]
    for case in rng.sample(known, min(count, len(known))):
        yield replace(case, skill=GROUPS.get(case.skill, "facts"))
