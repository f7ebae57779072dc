"""Small talk, facts, stories and refusals: the conversations that the tables next to this package tell of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from documents import Case, Document, Turn
from generate_corpus import ConversationWriter, Exchange, held_out_cases, write_document
from phrasings import SMALL_TALK
from words import Stage, Words

from skills import arithmetic

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
            asked, answer, _ = arithmetic.exchange(Words(self.rng, stage=Stage.MIXED))
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


def document(rng: random.Random, _: Stage = Stage.LAST) -> Document:
    """A conversation or a plain text, the same in every stage, now and then with a thought before the last answer."""
    closed = rng.random() < 0.06
    if rng.random() < INTRODUCED:
        exchanges = introduction(rng)
        turns = [
            turn
            for asked, answer in exchanges
            for turn in (Turn("user", asked, closed=closed), Turn("assistant", answer, closed=closed))
        ]
    else:
        written = write_document(Writer(rng))
        if written.plain:
            return written
        turns = [replace(turn, closed=closed) for turn in written.turns]
    if not closed and len(turns) < 8 and rng.random() < 0.1:
        turns[-1] = Turn("assistant", turns[-1].content, thought=thought(turns[-1].content))
    return Document(turns)


def thought(answer: str) -> str:
    """What goes before an answer that needs no reasoning."""
    if "do not know" in answer or "beyond what I know" in answer:
        return "This is nothing that I know."
    if len(answer) > 150:
        return "I can tell something about that."
    return "I know this."


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Questions whose wording, topic, name or combination occurs nowhere in training."""
    known = [case for case in held_out_cases() if case.skill != "sums"]
    for case in rng.sample(known, min(count, len(known))):
        yield replace(case, skill=GROUPS.get(case.skill, "facts"))
