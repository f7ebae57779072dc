"""True if a lexer that takes the longest match at once reads what a grammar means.

Rules that refer to themselves are made of terminals. A lexer that could go on with one of them does, and never thinks
again: where the next terminal may begin with what the last one could still take, it may be lost, and the last one may
go on for ever. :func:`is_read_greedily` looks for such places. For all sets of terminals that may come at a time it
runs their automata side by side, and wherever one of them may end it asks whether a character that may come next would
be taken for more of it, or of another one. The lexer takes bytes: it is enough that two characters begin with the same
one.

What is looked at is more than what can be: the end of a rule leads back to all that refer to it, and many repetitions
count as any number. So ambiguity may be found where there is none; never the other way around.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bough.constrained.ebnf_nodes import Chars, Choice, Node, Ranges, Ref, Repeat, Sequence, Terminal, Text, joined

MAX_STATES = 8_000
"""Most states of an automaton."""

MAX_WORK = 300_000
"""Most states, edges and characters' ranges that are passed: a few tenths of a second."""

MAX_COUNTED = 4
"""More repetitions than these count as any number."""


class _TooLarge(Exception):
    pass


class _Budget:
    def __init__(self) -> None:
        self._left = MAX_WORK

    def spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise _TooLarge


@dataclass
class _Automaton:
    """States with edges; an edge without a label costs nothing (Thompson 1968)."""

    budget: _Budget
    edges: list[list[tuple[Ranges | Ref | Terminal | int | None, int]]] = field(default_factory=list)

    def state(self) -> int:
        if len(self.edges) >= MAX_STATES:
            raise _TooLarge
        self.edges.append([])
        return len(self.edges) - 1

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        """All states that cost nothing from there."""
        seen = set(states)
        pending = list(seen)
        while pending:
            edges = self.edges[pending.pop()]
            self.budget.spend(1 + len(edges))
            for label, state in edges:
                if label is None and state not in seen:
                    seen.add(state)
                    pending.append(state)
        return frozenset(seen)

    def add(self, node: Node, begin: int, rules: Mapping[str, Node]) -> int:
        """Ways through ``node`` from a state; returns where they end.

        Terminals, and references to what is none of ``rules``, are labels of edges.
        """
        self.budget.spend(1)
        if isinstance(node, Ref) and node.name in rules:
            return self.add(rules[node.name], begin, rules)
        if isinstance(node, (Ref, Terminal)):
            end = self.state()
            self.edges[begin].append((node, end))
            return end
        if isinstance(node, Text):
            for char in node.text:
                end = self.state()
                self.edges[begin].append((((ord(char), ord(char)),), end))
                begin = end
            return begin
        if isinstance(node, Sequence):
            for part in node.parts:
                begin = self.add(part, begin, rules)
            return begin
        if isinstance(node, Choice):
            end = self.state()
            for option in node.options:
                first = self.state()
                self.edges[begin].append((None, first))
                self.edges[self.add(option, first, rules)].append((None, end))
            return end
        if isinstance(node, Repeat):
            return self._add_repeat(node, begin, rules)
        assert isinstance(node, Chars)
        end = self.state()
        self.edges[begin].append((node.ranges, end))
        return end

    def _add_repeat(self, node: Repeat, begin: int, rules: Mapping[str, Node]) -> int:
        least, most = node.least, node.most
        if max(least, most or 0) > MAX_COUNTED:
            least, most = min(least, 1), None
        for _ in range(least):
            begin = self.add(node.node, begin, rules)
        end = self.state()
        if most is None:
            again = self.state()
            self.edges[begin].append((None, again))
            self.edges[self.add(node.node, again, rules)].append((None, again))
            self.edges[again].append((None, end))
            return end
        for _ in range(most - least):
            self.edges[begin].append((None, end))
            begin = self.add(node.node, begin, rules)
        self.edges[begin].append((None, end))
        return end


class _Terminals(_Automaton):
    """The automata of terminals, side by side; each terminal has a number."""

    def __init__(self, plain: Mapping[str, Node], budget: _Budget) -> None:
        super().__init__(budget)
        self._plain = plain
        self._numbers: dict[Terminal, int] = {}
        self._starts: list[int] = []
        self._ends: dict[int, int] = {}
        self._firsts: dict[int, Ranges] = {}

    def number_of(self, terminal: Terminal) -> int:
        """Its number, which equal ones share."""
        number = self._numbers.setdefault(terminal, len(self._starts))
        if number == len(self._starts):
            self._starts.append(self.state())
            self._ends[self.add(terminal.node, self._starts[number], self._plain)] = number
        return number

    def started(self, numbers: Iterable[int]) -> frozenset[int]:
        """The states in which nothing of these has come yet."""
        return self.closure(self._starts[number] for number in numbers)

    def ended(self, states: frozenset[int]) -> list[int]:
        """Terminals that may end here."""
        return [self._ends[state] for state in states if state in self._ends]

    def moves(self, states: frozenset[int]) -> list[tuple[Ranges, int]]:
        """Characters that may come, and where they lead."""
        found = [(label, end) for state in states for label, end in self.edges[state] if isinstance(label, tuple)]
        self.budget.spend(sum(len(ranges) for ranges, _ in found))
        return found

    def first(self, number: int) -> Ranges:
        """Characters with which it may begin."""
        if number not in self._firsts:
            self._firsts[number] = _all_of(ranges for ranges, _ in self.moves(self.started((number,))))
        return self._firsts[number]

    def may_be_empty(self, number: int) -> bool:
        """True if nothing is an instance of it."""
        return number in self.ended(self.started((number,)))


def is_read_greedily(rules: Mapping[str, Node], start: str, plain: Mapping[str, Node]) -> bool:
    """True if taking the longest match at once is right for a grammar; false if it is too large to tell.

    ``rules``, of which ``start`` is the first, are made of terminals, whose own references are to ``plain``.
    """
    try:
        return _Reader(rules, plain).reads(start)
    except (_TooLarge, RecursionError):
        return False


class _Reader:
    def __init__(self, rules: Mapping[str, Node], plain: Mapping[str, Node]) -> None:
        self._budget = _Budget()
        self._terminals = _Terminals(plain, self._budget)
        self._automaton = automaton = _Automaton(self._budget)
        self._begins = {name: automaton.state() for name in rules}
        ends = {name: automaton.add(node, self._begins[name], {}) for name, node in rules.items()}
        # A reference leads to the beginning of the rule, and the end of the rule back behind the reference.
        for edges in automaton.edges:
            for place, (label, end) in enumerate(list(edges)):
                if isinstance(label, Ref):
                    edges.append((None, self._begins[label.name]))
                    automaton.edges[ends[label.name]].append((None, end))
                elif isinstance(label, Terminal):
                    number = self._terminals.number_of(label)
                    edges[place] = (number, end)
                    if self._terminals.may_be_empty(number):
                        edges.append((None, end))

    def reads(self, start: str) -> bool:
        """True if all sets of terminals that may come at a time are told apart."""
        automaton = self._automaton
        pending = [automaton.closure((self._begins[start],))]
        seen = set(pending)
        while pending:
            after: dict[int, set[int]] = {}
            for state in pending.pop():
                for label, end in automaton.edges[state]:
                    if isinstance(label, int):
                        after.setdefault(label, set()).add(end)
            behind = {terminal: automaton.closure(states) for terminal, states in after.items()}
            found = self._told_apart(behind)
            if found is None:
                return False
            for states in found - seen:
                seen.add(states)
                pending.append(states)
        return True

    def _told_apart(self, behind: Mapping[int, frozenset[int]]) -> set[frozenset[int]] | None:
        """The sets of states that may be behind terminals of which any may come; ``None`` if one may be lost."""
        terminals = self._terminals
        follow = {terminal: self._first_bytes(states) for terminal, states in behind.items()}
        start = terminals.started(behind)
        pending, seen = [start], {start}
        found: set[frozenset[int]] = set()
        while pending:
            states = pending.pop()
            moves = terminals.moves(states)
            ended = [] if states is start else terminals.ended(states)
            if ended:
                goes_on = _first_bytes(_all_of(ranges for ranges, _ in moves))
                if any(_overlap(goes_on, follow[terminal]) for terminal in ended):
                    return None
                found.add(self._automaton.closure(frozenset().union(*(behind[terminal] for terminal in ended))))
            for ends in self._ways(moves):
                after = terminals.closure(ends)
                if after not in seen:
                    seen.add(after)
                    pending.append(after)
        return found

    def _ways(self, moves: list[tuple[Ranges, int]]) -> set[frozenset[int]]:
        """Where characters lead, for each group of them that lead to the same states."""
        changes: dict[int, list[tuple[int, int]]] = {}
        for ranges, end in moves:
            for low, high in ranges:
                changes.setdefault(low, []).append((end, 1))
                changes.setdefault(high + 1, []).append((end, -1))
        active: Counter[int] = Counter()
        found: set[frozenset[int]] = set()
        for char in sorted(changes):
            for end, change in changes[char]:
                active[end] += change
            ends = frozenset(end for end, count in active.items() if count)
            self._budget.spend(1 + len(ends))
            if ends:
                found.add(ends)
        return found

    def _first_bytes(self, states: frozenset[int]) -> Ranges:
        labels = {label for state in states for label, _ in self._automaton.edges[state] if isinstance(label, int)}
        firsts = _all_of(self._terminals.first(label) for label in labels)
        self._budget.spend(len(firsts))
        return _first_bytes(firsts)


def _all_of(classes: Iterable[Ranges]) -> Ranges:
    return joined([each for ranges in classes for each in ranges])


def _first_bytes(ranges: Ranges) -> Ranges:
    """The bytes with which characters begin in UTF-8, which grow with them."""
    return joined([(_first_byte(low), _first_byte(high)) for low, high in ranges])


def _first_byte(char: int) -> int:
    if char < 0x80:
        return char
    if char < 0x800:
        return 0xC0 | char >> 6
    return 0xE0 | char >> 12 if char < 0x10000 else 0xF0 | char >> 18


def _overlap(one: Ranges, other: Ranges) -> bool:
    """True if two have something in common; there are at most 256 bytes."""
    return any(low <= end and begin <= high for low, high in one for begin, end in other)
