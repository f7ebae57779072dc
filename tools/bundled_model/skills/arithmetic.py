"""Sums, differences and products of small numbers, written down before they are answered."""

from __future__ import annotations

import random
from collections.abc import Iterator

from documents import Case, Document, Turn, conversation
from words import Words

NAME = "arithmetic"
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

ASKS = {
    "+": (
        "What is {a} + {b}?",
        "What is {a} plus {b}?",
        "{a} + {b}",
        "{a}+{b}",
        "{a} + {b} = ?",
        "{a}+{b}=",
        "How much is {a} plus {b}?",
        "What's {a} + {b}?",
        "What is {a}+{b}?",
        "What is the sum of {a} and {b}?",
        "Add {a} and {b}.",
        "Add {b} to {a}.",
        "Please add {a} and {b}.",
        "Can you add {a} and {b}?",
        "Tell me {a} plus {b}.",
        "{a} plus {b}",
        "What do you get when you add {a} and {b}?",
        "what is {a} + {b}",
    ),
    "-": (
        "What is {a} - {b}?",
        "What is {a} minus {b}?",
        "{a} - {b}",
        "{a}-{b}",
        "{a} - {b} = ?",
        "{a}-{b}=",
        "How much is {a} minus {b}?",
        "What's {a} - {b}?",
        "What is {a}-{b}?",
        "Subtract {b} from {a}.",
        "Take {b} away from {a}.",
        "What is the difference of {a} and {b}?",
        "Can you subtract {b} from {a}?",
        "Tell me {a} minus {b}.",
        "{a} minus {b}",
        "What is left if you take {b} from {a}?",
        "what is {a} - {b}",
    ),
    "x": (
        "What is {a} x {b}?",
        "What is {a} times {b}?",
        "{a} x {b}",
        "{a}x{b}",
        "{a} x {b} = ?",
        "{a} * {b}",
        "{a}*{b}=",
        "How much is {a} times {b}?",
        "What's {a} x {b}?",
        "Multiply {a} by {b}.",
        "Multiply {a} and {b}.",
        "What is the product of {a} and {b}?",
        "What is {a} * {b}?",
        "Tell me {a} times {b}.",
        "{a} times {b}",
    ),
}
TEST_ASKS = {
    "+": (
        "Work out {a} + {b}.",
        "How much is {a} + {b}?",
        "Could you tell me what {a} plus {b} is?",
        "Please compute {a}+{b}.",
    ),
    "-": (
        "Work out {a} - {b}.",
        "How much is {a} - {b}?",
        "Could you tell me what {a} minus {b} is?",
        "Please compute {a}-{b}.",
    ),
    "x": ("Work out {a} x {b}.", "How much is {a} x {b}?", "Could you tell me what {a} times {b} is?"),
}
PROBLEMS = {
    "+": (
        "{n} has {a} {i} and gets {b} more. How many {i} does {n} have now?",
        "{n} has {a} {i}. {m} gives {n} {b} more. How many {i} does {n} have?",
        "{n} has {a} {i} and {m} has {b}. How many {i} do they have together?",
        "There are {a} {i} in one box and {b} in another. How many {i} are there?",
        "{n} finds {a} {i} on {d} and {b} on the next day. How many are that?",
        "A shop has {a} {i}. It buys {b} more. How many {i} does it have?",
        "{n} bought {a} {i} and {b} other ones. How many did {n} buy?",
    ),
    "-": (
        "{n} has {a} {i} and gives {b} of them to {m}. How many {i} does {n} have left?",
        "{n} has {a} {i} and loses {b}. How many are left?",
        "There are {a} {i} in a basket. {n} takes {b} out. How many {i} are left?",
        "{n} had {a} {i} and sold {b}. How many {i} does {n} still have?",
        "A shop has {a} {i}. It sells {b} of them. How many {i} are left?",
        "Of {a} {i}, {b} are broken. How many are whole?",
    ),
    "x": (
        "{n} has {a} boxes with {b} {i} in each. How many {i} are that?",
        "There are {a} rows of {b} {i}. How many {i} are there?",
        "{n} buys {b} {i} on each of {a} days. How many {i} does {n} buy?",
        "{a} children have {b} {i} each. How many {i} do they have together?",
    ),
}
TEST_PROBLEMS = {
    "+": (
        "{n} has {a} {i} at home and {b} in the garden. How many {i} does {n} have?",
        "{m} had {a} {i}. Then {n} gave {m} another {b}. How many {i} does {m} have now?",
    ),
    "-": (
        "{n} had {a} {i}, but {b} of them were lost. How many {i} are left?",
        "There were {a} {i} on the table, and {m} took {b}. How many {i} are still there?",
    ),
    "x": ("{n} fills {a} bags with {b} {i} each. How many {i} are in the bags?",),
}
ONLY_NUMBER = (
    "Answer with the number only.",
    "Only the number, please.",
    "Just give me the number.",
    "Reply with a number only.",
)
TEST_ONLY_NUMBER = ("Nothing but the number, please.", "Give no words, only the number.")
SYSTEMS = (
    "You are a calculator.",
    "You are good at arithmetic.",
    "You help children with sums.",
    "You are a helpful assistant.",
)


def result(sign: str, a: int, b: int) -> int:
    """What comes out."""
    return a + b if sign == "+" else a - b if sign == "-" else a * b


def is_held_out(sign: str, a: int, b: int) -> bool:
    """One in ten of the sums and differences with a number of two digits never occurs in training, in either order."""
    low, high = sorted((a, b))
    return sign != "x" and high > 9 and (low * 7 + high * 3 + (sign == "-")) % 10 == 4


def draw(rng: random.Random, test: bool = False) -> tuple[str, int, int]:
    """A sign and two numbers."""
    sign = rng.choices(("+", "-", "x"), (45, 40, 15))[0]
    while True:
        if sign == "x":
            return sign, rng.randint(0, 10), rng.randint(0, 10)
        highest = 99 if test else rng.choice((9, 20, 99, 99, 99))
        a, b = rng.randint(0, highest), rng.randint(0, highest)
        if sign == "-" and a < b and rng.random() < 0.85:
            a, b = b, a
        if is_held_out(sign, a, b) == test:
            return sign, a, b


def line(sign: str, a: int, b: int) -> str:
    """The sum with its result."""
    return f"{a} {sign} {b} = {result(sign, a, b)}"


def thought(sign: str, a: int, b: int) -> str:
    """The sum on paper, from the last digit to the first."""
    start = f"{a} {sign} {b}: "
    if sign == "x" or (a < 10 and b < 10):
        return start + line(sign, a, b) + "."
    if sign == "-" and a < b:
        return f"{start}{a} is less than {b}. {line('-', b, a)}, so it is {a - b}."
    (tens_a, ones_a), (tens_b, ones_b) = divmod(a, 10), divmod(b, 10)
    if sign == "+":
        carry = ones_a + ones_b > 9
        ones = f"{ones_a} + {ones_b} = {ones_a + ones_b}" + (", carry 1" if carry else "")
        tens = f"{tens_a} + {tens_b}{' + 1' if carry else ''} = {tens_a + tens_b + carry}"
    else:
        borrow = ones_a < ones_b
        ones = f"{ones_a + 10 * borrow} - {ones_b} = {ones_a + 10 * borrow - ones_b}" + (", borrow 1" if borrow else "")
        tens = f"{tens_a} - {tens_b}{' - 1' if borrow else ''} = {tens_a - tens_b - borrow}"
    return f"{start}{ones}. {tens}. So {result(sign, a, b)}."


def _problem(words: Words, sign: str, a: int, b: int) -> tuple[str, str]:
    rng = words.rng
    one, two = words.names(2)
    items = words.items()
    pattern = words.wording(PROBLEMS[sign], TEST_PROBLEMS[sign], free=False)
    asked = pattern.format(n=one, m=two, i=items, a=a, b=b, d=rng.choice(("Monday", "Friday", "Sunday")))
    return asked, f"{line(sign, a, b)}. The answer is {result(sign, a, b)}."


def exchange(words: Words) -> tuple[str, str, str]:
    """A question, its answer, and the thought that leads there."""
    rng = words.rng
    sign, a, b = draw(rng, words.test)
    kind = rng.random()
    if kind < 0.22:
        while sign == "-" and a < b:
            sign, a, b = draw(rng, words.test)
        asked, answer = _problem(words, sign, a, b)
    elif kind < 0.27 and a < 13 and b < 13:
        name = {"+": "plus", "-": "minus", "x": "times"}[sign]
        pattern = "Could you tell me what {} is?" if words.test else "What is {}?"
        asked = pattern.format(f"{NUMBER_WORDS[a]} {name} {NUMBER_WORDS[b]}")
        answer = line(sign, a, b) + "."
    else:
        asked = words.wording(ASKS[sign], TEST_ASKS[sign]).format(a=a, b=b)
        answer = line(sign, a, b) + "."
        if kind > 0.9:
            asked, answer = (
                f"{asked} {words.wording(ONLY_NUMBER, TEST_ONLY_NUMBER, free=False)}",
                str(result(sign, a, b)),
            )
    return asked, answer, thought(sign, a, b)


def document(rng: random.Random) -> Document:
    """Some sums, as a drill or in a conversation."""
    words = Words(rng)
    kind = rng.random()
    if kind < 0.3:
        plain: list[tuple[str, bool]] = []
        for _ in range(rng.randint(4, 16)):
            sign, a, b = draw(rng)
            plain += [(f"{a} {sign} {b} =", False), (f" {result(sign, a, b)}\n", True)]
        return Document(plain=plain)
    if kind < 0.5:
        one, two = rng.sample(range(100), 2)
        word, pick = rng.choice((("larger", max), ("bigger", max), ("greater", max), ("smaller", min), ("less", min)))
        asked = rng.choice(
            (
                f"Which is {word}, {one} or {two}?",
                f"What is {word}: {one} or {two}?",
                f"Which number is {word}, {one} or {two}?",
            )
        )
        first = (
            asked,
            f"{pick(one, two)} is {word} than {one + two - pick(one, two)}.",
            f"{min(one, two)} is less than {max(one, two)}.",
        )
    else:
        first = exchange(words)
    exchanges = [first, *(exchange(words) for _ in range(rng.choice((0, 0, 1, 2, 3, 5))))]
    rng.shuffle(exchanges)
    system = rng.choice(SYSTEMS) if rng.random() < 0.2 else None
    pairs = [(asked, answer) for asked, answer, _ in exchanges]
    return conversation(pairs, system, thought=exchanges[-1][2] if rng.random() < 0.3 else None)


def cases(rng: random.Random, count: int) -> Iterator[Case]:
    """Sums and differences that training never used, and products, all in words that it never used."""
    words = Words(rng, test=True)
    for place in range(count):
        asked, answer, reasoning = exchange(words)
        thinking = place % 4 == 3
        number = int(answer.rstrip(".").rsplit(" ", 1)[-1])
        # All products are in training: they are counted apart.
        skill = "products" if " x " in reasoning else "sums and differences"
        skill = f"arithmetic: {skill}, thinking" if thinking else f"arithmetic: {skill}"
        yield Case(skill, [Turn("user", asked)], thinking=thinking, number=number)
