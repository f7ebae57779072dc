r"""Translate grammars in EBNF, as GBNF and xgrammar write it, to the Lark dialect of llguidance.

::

    root   ::= "answer: " number ("," number)*    # a comment
    number ::= [0-9]+ ("." [0-9]{1,3})?

Strings and character classes know the escapes ``\n \r \t \f \v \a \b \e \0 \\ \" \' \[ \] \- \^ \/``, ``\xHH``,
``\uHHHH`` and ``\UHHHHHHHH``; ``.`` is any character. Names may begin with a digit or a hyphen. A rule may go
on over several lines until the next ``name ::=``.

A lexer takes the longest match at once and never backtracks, unlike EBNF. So every rule that does not refer to itself,
directly or through others, becomes part of one regular expression with only non-greedy operators:
a grammar without recursion is matched exactly. In a recursive one, such parts are terminals, taken as far as they go:
a whole run of them between two recursive rules if that is equivalent, else each one separately, and if that is not
equivalent either (see :mod:`bough.constrained.ebnf_lexing`), or the grammar is too large to tell, each character,
which is exact but slower.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from itertools import groupby

from bough.constrained.ebnf_lexing import is_read_greedily
from bough.constrained.ebnf_nodes import (
    ANY_CHAR,
    LAST_CHAR,
    Chars,
    Choice,
    Node,
    Ranges,
    Ref,
    Repeat,
    Sequence,
    Terminal,
    Text,
    complement,
    joined,
    refs_of,
)
from bough.constrained.lark_text import lark_string

MAX_RULES = 4096
MAX_NESTING = 64
"""Deepest nesting of parentheses."""

MAX_CHAIN = 256
"""Longest chain of rules that refer to the next one without coming back."""

MAX_REPEATS = 10_000
"""Largest bound of ``{m,n}``."""


_START = ""
"""Stands for what an output is, where that is not just ``root``."""


class EbnfError(ValueError):
    """What is wrong with a grammar, and where."""


_SPACE = re.compile(r"(?:\s|#[^\n]*)*")
_NAME = re.compile(r"[A-Za-z0-9_\-][A-Za-z0-9_\-.]*")
_TEXT = re.compile(r"""(?s)"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
_CLASS = re.compile(r"(?s)\[\^?((?:\\.|[^\]\\])*)\]")
_CHAR = re.compile(r"(?s)\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|[^\\]")
_REPEAT = re.compile(r"[ \t]*(?:([*+?])|\{\s*(\d{1,9})?\s*(,)?\s*(\d{1,9})?\s*\}|(\{))")
_SIMPLE_ESCAPES = dict(zip("nrtfvb0ae", "\n\r\t\f\v\b\0\a\x1b", strict=True))
_LITERAL_ESCAPES = frozenset("\\\"'[]-^/{}()|.*+?$ ")


def to_lark(grammar: str, *, start: str = "start", prefix: str = "g", end: str = "") -> str:
    """Translate a grammar whose first rule is called ``root``.

    Args:
        grammar: EBNF; at most 256 KiB. It takes up to some tenths of a second if it has recursion.
        start: what the Lark rule for ``root`` is called.
        prefix: begins the names of all others.
        end: a text that comes after ``root``. If ``root`` could go on with it, it ends all the same, unless it has
            recursion: then either may be.

    Raises:
        EbnfError: with line and column.
    """
    rules = _Parser(grammar).parse()
    if "root" not in rules:
        raise EbnfError("there is no rule called root")
    return _Writer(rules, prefix).write(start, Text(end) if end else None)


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def parse(self) -> dict[str, Node]:
        rules: dict[str, Node] = {}
        self._match(_SPACE)
        while self._at < len(self._source):
            begin = self._at
            name = self._match(_NAME)
            if name is None or not self._defines():
                raise self._error("expected the beginning of a rule, as in: name ::= ...", begin)
            if name[0] in rules:
                raise self._error(f"the rule {name[0]} is defined twice", begin)
            if len(rules) == MAX_RULES:
                raise self._error(f"there are more than {MAX_RULES} rules", begin)
            self._take("::=")
            rules[name[0]] = self._choice(0)
            self._match(_SPACE)
        return rules

    def _defines(self) -> bool:
        """Tell whether the name before this place is that of a rule which begins here."""
        space = _SPACE.match(self._source, self._at)
        return space is not None and self._source.startswith("::=", space.end())

    def _choice(self, depth: int) -> Node:
        options = [self._sequence(depth)]
        while self._take("|"):
            options.append(self._sequence(depth))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while (part := self._part(depth)) is not None:
            parts.append(self._repeated(part))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self, depth: int) -> Node | None:
        self._match(_SPACE)
        begin = self._at
        if (text := self._match(_TEXT)) is not None:
            return Text("".join(self._char(atom) for atom in _CHAR.finditer(self._source, begin + 1, text.end() - 1)))
        if (found := self._match(_CLASS)) is not None:
            return Chars(self._ranges(found))
        if self._take("."):
            return Chars(ANY_CHAR)
        if self._take("("):
            if depth == MAX_NESTING:
                raise self._error(f"parentheses are nested more than {MAX_NESTING} deep", begin)
            node = self._choice(depth + 1)
            if not self._take(")"):
                raise self._error("expected )")
            return node
        if (name := self._match(_NAME)) is not None and not self._defines():
            return Ref(name[0])
        self._at = begin
        if self._source[begin : begin + 1] in ("'", '"', "["):
            raise self._error("the string or character class is not closed")
        return None

    def _repeated(self, node: Node) -> Node:
        found = self._match(_REPEAT)
        if found is None:
            return node
        mark, low, comma, high, bad = found.groups()
        if mark is not None:
            node = Repeat(node, 1 if mark == "+" else 0, 1 if mark == "?" else None)
        elif bad or not (low or high):
            raise self._error("expected {n}, {m,} or {m,n}", found.start())
        else:
            least = int(low or 0)
            most = int(high) if high else None if comma else least
            if max(least, most or 0) > MAX_REPEATS or (most is not None and most < least):
                raise self._error(f"the bounds must be in order and at most {MAX_REPEATS}", found.start())
            node = Repeat(node, least, most)
        if self._source[self._at : self._at + 1] in ("*", "+", "?", "{"):
            raise self._error("put parentheses around what is to be repeated twice")
        return node

    def _ranges(self, found: re.Match[str]) -> Ranges:
        """Return the characters of a class."""
        atoms = list(_CHAR.finditer(self._source, *found.span(1)))
        items: list[tuple[int, int]] = []
        while atoms:
            low = high = self._char(atoms.pop(0))
            if len(atoms) > 1 and atoms[0][0] == "-":
                high = self._char(atoms[1])
                if high < low:
                    raise self._error("a range in a character class is the wrong way round", atoms[0].start())
                del atoms[:2]
            items.append((ord(low), ord(high)))
        negated = found[0].startswith("[^")
        ranges = complement(joined(items)) if negated else joined(items)
        if not items or not ranges:
            raise self._error("a character class is empty", found.start())
        return ranges

    def _char(self, atom: re.Match[str]) -> str:
        """Return the character that an atom of a string or class stands for."""
        text = atom[0]
        if text[0] != "\\":
            return text
        kind, digits = text[1], text[2:]
        if digits:
            code = int(digits, 16)
            if code <= LAST_CHAR and not 0xD800 <= code < 0xE000:
                return chr(code)
        elif kind in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[kind]
        elif kind in _LITERAL_ESCAPES:
            return kind
        raise self._error("unknown escape sequence", atom.start())

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read past what a pattern matches here, if it does."""
        match = pattern.match(self._source, self._at)
        if match is not None:
            self._at = match.end()
        return match

    def _take(self, text: str) -> bool:
        """Read past white space, and a text if that comes next."""
        self._match(_SPACE)
        found = self._source.startswith(text, self._at)
        self._at += len(text) if found else 0
        return found

    def _error(self, problem: str, at: int | None = None) -> EbnfError:
        at = self._at if at is None else at
        before = self._source[:at]
        return EbnfError(f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}: {problem}")


class _Writer:
    """Writes the rules that ``root`` needs, those without recursion as terminals."""

    def __init__(self, rules: dict[str, Node], prefix: str) -> None:
        self._rules = rules
        self._prefix = prefix
        self._order = self._reachable()
        self._names = {name: f"{prefix}{i}" for i, name in enumerate(self._order)}
        self._plain = self._plain_rules()
        """Rules that are terminals."""
        self._check_productive()
        self._lines: list[str] = []
        self._groups: dict[Node, str] = {}

    def write(self, start: str, end: Text | None) -> str:
        if "root" in self._plain:
            lazy = "" if end is None else "[lazy]"
            behind = "" if end is None else f" {self._terminal(end)}"
            self._lines.append(f"{start}{lazy}: {self._name('root')}{behind}")
            rules: dict[str, Node] = {}
        else:
            rules, self._plain = self._with_terminals(end)
            self._lines.append(f"{start}: {self._rule(rules[_START])}")
        for name in self._order:
            body = self._rule(rules[name]) if name in rules else self._terminal(self._rules[name])
            self._lines.append(f"{self._name(name)}: {body}")
        return "\n".join(self._lines) + "\n"

    def _with_terminals(self, end: Text | None) -> tuple[dict[str, Node], set[str]]:
        """Rules that are none, and under ``_START`` what an output is; and the names of those that are terminals."""
        start = Ref("root") if end is None else self._followed(self._rules["root"], end)
        recursive = {name: self._rules[name] for name in self._order if name not in self._plain}
        plain = {name: self._rules[name] for name in self._order if name in self._plain}
        # What comes behind the end is not known, and none of it is to be taken for more.
        anything = () if end is None else (Terminal(Repeat(Chars(ANY_CHAR), 0, None)),)
        for way in (self._grouped, self._parted):
            rules = {_START: way(start), **{name: way(rule) for name, rule in recursive.items()}}
            if is_read_greedily({**rules, _START: Sequence((rules[_START], *anything))}, _START, plain):
                return rules, self._plain
        return {_START: start, **recursive, **plain}, set()

    def _name(self, rule: str) -> str:
        name = self._names[rule]
        return name.upper() if rule in self._plain else name

    def _reachable(self) -> list[str]:
        order, pending = ["root"], ["root"]
        seen = {"root"}
        while pending:
            for ref in refs_of(self._rules[pending.pop()]):
                if ref.name not in self._rules:
                    raise EbnfError(f"there is no rule called {ref.name}")
                if ref.name not in seen:
                    seen.add(ref.name)
                    order.append(ref.name)
                    pending.append(ref.name)
        return order

    def _plain_rules(self) -> set[str]:
        """Return the rules without recursion. Raises :class:`EbnfError` at a chain of references that is too long."""
        below = {name: {ref.name for ref in refs_of(self._rules[name])} for name in self._order}
        depth: dict[str, int] = {}
        for name in self._least(lambda name, known: below[name] <= known.keys()):
            depth[name] = 1 + max((depth[other] for other in below[name]), default=0)
            if depth[name] > MAX_CHAIN:
                raise EbnfError(f"rules refer to each other in a chain of more than {MAX_CHAIN}")
        return set(depth)

    def _check_productive(self) -> None:
        """Make sure that all rules can come to an end: what cannot would keep the engine busy for ever."""
        productive = self._least(lambda name, known: _ends(self._rules[name], known))
        for name in self._order:
            if name not in productive:
                raise EbnfError(f"{name} never comes to an end: every alternative refers to itself")

    def _least(self, holds: Callable[[str, dict[str, None]], bool]) -> dict[str, None]:
        """Return the rules for which something holds, in the order in which that follows from those before them."""
        users: dict[str, set[str]] = {name: set() for name in self._order}
        for name in self._order:
            for ref in refs_of(self._rules[name]):
                users[ref.name].add(name)
        known: dict[str, None] = {}
        pending = list(self._order)
        while pending:
            name = pending.pop()
            if name not in known and holds(name, known):
                known[name] = None
                pending.extend(users[name])
        return known

    def _is_plain(self, node: Node) -> bool:
        return all(ref.name in self._plain for ref in refs_of(node))

    def _followed(self, node: Node, end: Text) -> Node:
        """A text after a node, in one terminal with its last part where that is plain."""
        if isinstance(node, Choice):
            return Choice(tuple(self._followed(option, end) for option in node.options))
        if isinstance(node, Sequence) and node.parts and not self._is_plain(node):
            return Sequence((*node.parts[:-1], self._followed(node.parts[-1], end)))
        return Sequence((node, end))

    def _grouped(self, node: Node) -> Node:
        """The same with all that is plain in as few terminals as can be."""
        if self._is_plain(node):
            return Terminal(node)
        if isinstance(node, Choice):
            plain = tuple(option for option in node.options if self._is_plain(option))
            options = [self._grouped(option) for option in node.options if not self._is_plain(option)]
            return Choice((*options, Terminal(Choice(plain))) if plain else tuple(options))
        if isinstance(node, Repeat):
            return Repeat(self._grouped(node.node), node.least, node.most)
        if not isinstance(node, Sequence):
            return node
        parts: list[Node] = []
        for is_plain, run in groupby(node.parts, self._is_plain):
            together = tuple(run)
            parts += [Terminal(Sequence(together))] if is_plain else map(self._grouped, together)
        return Sequence(tuple(parts))

    def _parted(self, node: Node) -> Node:
        """The same with all that is plain in small terminals, which are more often the same in several places."""
        if isinstance(node, Choice):
            return Choice(tuple(map(self._parted, node.options)))
        if isinstance(node, Sequence):
            return Sequence(tuple(map(self._parted, node.parts)))
        if self._is_plain(node):
            return Terminal(node)
        return Repeat(self._parted(node.node), node.least, node.most) if isinstance(node, Repeat) else node

    def _terminal(self, node: Node) -> str:
        """Return Lark for a node inside of a terminal."""
        return lark_string(node.text) if isinstance(node, Text) else self._written(node, self._terminal)

    def _rule(self, node: Node) -> str:
        """Return Lark for a node of a rule, in which what is in no terminal stands character by character."""
        if isinstance(node, Terminal):
            return self._group(node.node)
        if isinstance(node, Text):
            return " ".join(map(lark_string, node.text)) or '""'
        return self._written(node, self._rule)

    def _written(self, node: Node, write: Callable[[Node], str]) -> str:
        if isinstance(node, Chars):
            return f"/{node.regex}/"
        if isinstance(node, Ref):
            return self._name(node.name)
        if isinstance(node, Sequence):
            return " ".join(map(write, node.parts)) or '""'
        if isinstance(node, Choice):
            return f"({' | '.join(map(write, node.options))})"
        assert isinstance(node, Repeat), "there are no terminals in terminals"
        return f"({write(node.node)}){_bounds(node)}" if node.most != 0 else '""'

    def _group(self, node: Node) -> str:
        if node in self._groups:
            return self._groups[node]
        name = f"{self._prefix.upper()}_{len(self._groups)}"
        self._groups[node] = name
        self._lines.append(f"{name}: {self._terminal(node)}")
        return name


def _ends(node: Node, productive: Container[str]) -> bool:
    if isinstance(node, Ref):
        return node.name in productive
    if isinstance(node, Sequence):
        return all(_ends(part, productive) for part in node.parts)
    if isinstance(node, Choice):
        return any(_ends(option, productive) for option in node.options)
    if isinstance(node, Repeat):
        return node.least == 0 or _ends(node.node, productive)
    return True


def _bounds(node: Repeat) -> str:
    if node.most is None:
        return "*" if node.least == 0 else "+" if node.least == 1 else f"{{{node.least},}}"
    return "?" if (node.least, node.most) == (0, 1) else f"{{{node.least},{node.most}}}"
