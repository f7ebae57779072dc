"""Whether a lexer that takes the longest match at once reads what a grammar means.

Rules that refer to themselves are made of terminals. A lexer that could go on with one of them does, and never thinks
again: where the next terminal may begin with what the last one could still take, it may be lost.
:func:`is_read_greedily` looks for such places. For all sets of terminals that may come at a time it runs their automata
side by side, and wherever one of them may end it asks whether a character that may come next would be taken for more of
it, or of another one.

What is looked at is more than what can be: the end of a rule leads back to all that refer to it, and many repetitions
count as any number. So ambiguity may be found where there is none; never the other way around.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bough.constrained.ebnf_nodes import Chars, Choice, Node, Ranges, Ref, Repeat, Sequence, Terminal, Text, joined

MAX_STATES = 8_000
"""Most states of the automata of a grammar that is looked at."""

MAX_WORK = 400_000
"""Most states and edges that are passed, which take a fifth of a second."""

MAX_COUNTED = 4
"""More repetitions than these count as any number."""


class _TooLarge(Exception):
    pass


@dataclass
class _Automaton:
    """States with edges; an edge without a label costs nothing (Thompson 1968)."""

    edges: list[list[tuple[Ranges | Ref | Terminal | None, int]]] = field(default_factory=list)
    work: int = 0

    def state(self) -> int:
        if len(self.edges) >= MAX_STATES:
            raise _TooLarge
        self.edges.append([])
        return len(self.edges) - 1

    def spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise _TooLarge

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        """All states that cost nothing from there."""
        seen = set(states)
        pending = list(seen)
        while pending:
            edges = self.edges[pending.pop()]
            self.spend(1 + len(edges))
            for label, state in edges:
                if label is None and state not in seen:
                    seen.add(state)
                    pending.append(state)
        return frozenset(seen)

    def add(self, node: Node, begin: int, rules: Mapping[str, Node]) -> int:
        """Ways through ``node`` from a state; returns where they end.

        Terminals, and references to what is none of ``rules``, are labels of edges.
        """
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
    """The automata of terminals, side by side."""

    def __init__(self, plain: Mapping[str, Node]) -> None:
        super().__init__()
        self._plain = plain
        self._starts: dict[Terminal, int] = {}
        self._ends: dict[int, Terminal] = {}
        self._firsts: dict[Terminal, Ranges] = {}

    def start_of(self, terminal: Terminal) -> int:
        """The state in which nothing of it has come yet."""
        if terminal not in self._starts:
            start = self._starts[terminal] = self.state()
            self._ends[self.add(terminal.node, start, self._plain)] = terminal
        return self._starts[terminal]

    def ended(self, states: frozenset[int]) -> list[Terminal]:
        """Terminals that may end here."""
        return [self._ends[state] for state in states if state in self._ends]

    def moves(self, states: frozenset[int]) -> list[tuple[Ranges, int]]:
        """Characters that may come, and where they lead."""
        return [(label, end) for state in states for label, end in self.edges[state] if isinstance(label, tuple)]

    def first(self, terminal: Terminal) -> Ranges:
        """Characters with which it may begin."""
        if terminal not in self._firsts:
            moves = self.moves(self.closure((self.start_of(terminal),)))
            self._firsts[terminal] = joined([each for ranges, _ in moves for each in ranges])
        return self._firsts[terminal]

    def may_be_empty(self, terminal: Terminal) -> bool:
        """Whether nothing is an instance of it."""
        return terminal in self.ended(self.closure((self.start_of(terminal),)))


def is_read_greedily(rules: Mapping[str, Node], start: str, plain: Mapping[str, Node]) -> bool:
    """Whether taking the longest match at once is right for a grammar; not if it is too large to tell.

    What is not may have the engine take a terminal for ever which nothing can end any more.

    Args:
        rules: made of terminals and of references to each other.
        start: the one that an output follows.
        plain: rules that terminals may refer to.
    """
    try:
        return _Reader(rules, plain).reads(start)
    except (_TooLarge, RecursionError):
        return False


class _Reader:
    def __init__(self, rules: Mapping[str, Node], plain: Mapping[str, Node]) -> None:
        self._terminals = _Terminals(plain)
        self._automaton = _Automaton()
        self._begins = {name: self._automaton.state() for name in rules}
        ends = {name: self._automaton.add(node, self._begins[name], {}) for name, node in rules.items()}
        # A reference leads to the beginning of the rule, and the end of the rule back behind the reference.
        for edges in self._automaton.edges:
            for label, end in list(edges):
                if isinstance(label, Ref):
                    edges.append((None, self._begins[label.name]))
                    self._automaton.edges[ends[label.name]].append((None, end))
                elif isinstance(label, Terminal) and self._terminals.may_be_empty(label):
                    edges.append((None, end))

    def reads(self, start: str) -> bool:
        """Whether all sets of terminals that may come at a time are told apart."""
        automaton = self._automaton
        pending = [automaton.closure((self._begins[start],))]
        seen = set(pending)
        while pending:
            after: dict[Terminal, set[int]] = {}
            for state in pending.pop():
                for label, end in automaton.edges[state]:
                    if isinstance(label, Terminal):
                        after.setdefault(label, set()).add(end)
            behind = {terminal: automaton.closure(states) for terminal, states in after.items()}
            found = self._told_apart(behind)
            if found is None:
                return False
            for states in found - seen:
                seen.add(states)
                pending.append(states)
        return True

    def _told_apart(self, behind: Mapping[Terminal, frozenset[int]]) -> set[frozenset[int]] | None:
        """The sets of states that may be behind terminals of which any may come; ``None`` if one may be lost."""
        terminals = self._terminals
        follow = {terminal: self._first_chars(states) for terminal, states in behind.items()}
        start = terminals.closure(terminals.start_of(terminal) for terminal in behind)
        pending, seen = [start], {start}
        found: set[frozenset[int]] = set()
        while pending:
            states = pending.pop()
            moves = terminals.moves(states)
            ended = [] if states is start else terminals.ended(states)
            if any(_overlap(ranges, follow[terminal]) for terminal in ended for ranges, _ in moves):
                return None
            if ended:
                found.add(self._automaton.closure(frozenset().union(*(behind[terminal] for terminal in ended))))
            bounds = {bound for ranges, _ in moves for low, high in ranges for bound in (low, high + 1)}
            terminals.spend(len(bounds) * len(moves))
            for char in bounds:  # between two of them all characters lead to the same states
                after = terminals.closure(end for ranges, end in moves if _holds(ranges, char))
                if after and after not in seen:
                    seen.add(after)
                    pending.append(after)
        return found

    def _first_chars(self, states: frozenset[int]) -> Ranges:
        labels = {label for state in states for label, _ in self._automaton.edges[state]}
        firsts = [self._terminals.first(label) for label in labels if isinstance(label, Terminal)]
        return joined([each for ranges in firsts for each in ranges])


def _holds(ranges: Ranges, char: int) -> bool:
    return any(low <= char <= high for low, high in ranges)


def _overlap(one: Ranges, other: Ranges) -> bool:
    return any(low <= end and begin <= high for low, high in one for begin, end in other)
