"""Grammars with recursion, which a lexer may read otherwise than they are meant."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable

import pytest

from bough.constrained.base import GrammarError
from bough.constrained.ebnf import to_lark
from bough.constrained.llguidance_backend import LLGuidanceBackend
from tests.constrained.following import allows, spec_of
from tests.thoroughness import examples

ARITHMETIC = r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
"""
JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""
LIST = 'root ::= "x" list "end"\nlist ::= item ("," list)?\nitem ::= [a-z]+\n'
NESTED = 'root ::= "(" root ")" | [a-z]+ "x"'


def test_what_may_come_next_is_not_taken_for_more(backend: LLGuidanceBackend) -> None:
    cases = [
        (ARITHMETIC, ["1+1=2\n", "1=2\n\n", "(a+b)*2=c\n1=1\n", "1 = 2\n"], ["1+1=2", "1+=2\n"]),
        (JSON, ['{"a": [1, -2.5e3, true, {"b":null}]}', "{}"], ['{"a":}', "{1"]),
        (LIST, ["xaend", "xa,b,cend", "xabendend"], ["xa", "xend"]),
        (NESTED, ["abx", "((xx))"], ["ab", "(abx"]),
        ('root ::= ws root "x" | "a"\nws ::= [ ]*', ["a", "  axx"], [" a x", " b"]),
        # Characters that begin with the same byte.
        ('root ::= item | "（" root "）"\nitem ::= [^（）]+', ["（abc）", "（日本、。）", "日"], ["（abc", "）"]),
        ('root ::= "é"+ tail\ntail ::= "è" | "è" tail', ["éè", "ééèè"], ["é", "èé"]),
    ]
    for grammar, right, wrong in cases:
        compiled = backend.compile(spec_of("ebnf", grammar))
        for text in (*right, *wrong):
            assert allows(compiled, text) == (text in right), text


def test_characters_are_terminals_only_where_that_is_needed() -> None:
    for grammar, has_terminals in [(NESTED, True), (JSON, True), (LIST, False)]:
        written = to_lark(grammar)
        assert ("G_0: " in written) == has_terminals
        longest = max(len(text) for text in re.findall(r'"((?:[^"\\]|\\.)*)"', written))
        assert longest == 1 or has_terminals


class RandomGrammar:
    """Rules over a few letters, and the texts of each up to some length."""

    def __init__(self, rng: random.Random, longest: int, letters: str) -> None:
        self._rng = rng
        self._letters = letters
        self._longest = longest
        self.names = ("root", "one", "two")
        made = {name: self._node(3) for name in self.names}
        # Every rule comes to an end somehow, and is reached.
        self.source = "".join(
            f'{name} ::= {text} | "b" {rng.choice(self.names)}? "a"\n' for name, (text, _) in made.items()
        )
        self._texts_of = {name: texts for name, (_, texts) in made.items()}
        self._optional = {line.split(" ")[0]: line.split(" ")[-2].rstrip("?") for line in self.source.splitlines()}

    def texts(self) -> set[str]:
        known: dict[str, set[str]] = {name: set() for name in self.names}
        while True:
            found = {}
            for name in self.names:
                last = {"ba"} | {f"b{inside}a" for inside in known[self._optional[name]]}
                found[name] = self._short(self._texts_of[name](known) | last)
            if found == known:
                return known["root"]
            known = found

    def _short(self, texts: set[str]) -> set[str]:
        return {text for text in texts if len(text) <= self._longest}

    def _joined(self, one: set[str], other: set[str]) -> set[str]:
        return self._short({first + second for first in one for second in other})

    def _node(self, depth: int) -> tuple[str, Callable[[dict[str, set[str]]], set[str]]]:
        rng = self._rng
        kind = rng.choice(
            ("text", "class", "ref", "ref", "sequence", "sequence", "choice", "repeat") if depth else ("text", "class")
        )
        if kind == "text":
            text = "".join(rng.choices(self._letters, k=rng.randint(1, 2)))
            return f'"{text}"', lambda known: {text}
        if kind == "class":
            chars = set(rng.choices(self._letters, k=2))
            return f"[{''.join(sorted(chars))}]", lambda known: chars
        if kind == "ref":
            name = rng.choice(self.names)
            return name, lambda known: known[name]
        first, texts = self._node(depth - 1)
        if kind == "repeat":
            mark = rng.choice("?*+")
            return f"({first}){mark}", lambda known: self._repeated(texts(known), mark)
        second, others = self._node(depth - 1)
        if kind == "choice":
            return f"({first} | {second})", lambda known: texts(known) | others(known)
        return f"{first} {second}", lambda known: self._joined(texts(known), others(known))

    def _repeated(self, texts: set[str], mark: str) -> set[str]:
        if mark == "?":
            return texts | {""}
        found = {""} if mark == "*" else set(texts)
        while (more := found | self._joined(found, texts)) != found:
            found = more
        return found


def test_random_grammars_are_matched_exactly(backend: LLGuidanceBackend) -> None:
    for letters in ["ab,", "éè,"]:
        for seed in range(examples(12)):
            longest = 4
            grammar = RandomGrammar(random.Random(seed), longest, letters)
            expected = grammar.texts()
            compiled = backend.compile(spec_of("ebnf", grammar.source))
            for length in range(1, longest + 1):
                for chars in itertools.product(letters, repeat=length):
                    text = "".join(chars)
                    assert allows(compiled, text) == (text in expected), (
                        text,
                        grammar.source,
                    )


ENDLESS = """
root  ::= one | "ba,,aa" | "b" two? "a"
one   ::= "ba" | two "a"+ | "b" two? "a"
two   ::= [,b] | one | "b" root? "a"
"""


def test_no_terminal_is_taken_for_ever(backend: LLGuidanceBackend) -> None:
    """Behind this text there can be nothing but one more of the same letter, if a lexer takes all that there is."""
    assert allows(backend.compile(spec_of("ebnf", ENDLESS)), "bb,aa")
    content = {"type": "grammar", "grammar": ENDLESS}
    tagged = json.dumps(
        {"type": "structural_tag", "format": {"type": "tag", "begin": "<", "content": content, "end": ">"}}
    )
    assert allows(backend.compile(spec_of("structural_tag", tagged)), "<bb,aa>")
    assert not allows(backend.compile(spec_of("structural_tag", tagged)), "<bb,aa")


def test_what_comes_behind_the_end_is_not_taken_for_more_of_the_grammar(backend: LLGuidanceBackend) -> None:
    content = {"type": "grammar", "grammar": 'root ::= "(" root ")" | [^()]+'}
    tags = [{"begin": "<t>", "content": content, "end": "</t>"}]
    form = {"type": "triggered_tags", "triggers": ["<t>"], "tags": tags}
    compiled = backend.compile(spec_of("structural_tag", json.dumps({"type": "structural_tag", "format": form})))
    for text in ("<t>abc</t>", "<t>abc</t>xyz", "<t>(abc)</t>(xyz", "xyz<t>((abc))</t>"):
        assert allows(compiled, text), text
    assert not allows(compiled, "<t>(abc</t>")


@pytest.mark.parametrize(
    ("grammar", "has_terminals"),
    [
        (
            "\n".join(
                ('root ::= "(" root ")" | a99', 'a0 ::= ""', *(f"a{i} ::= a{i - 1} a{i - 1}" for i in range(1, 100)))
            ),
            False,
        ),
        (f'root ::= "(" root ")" | [{"".join(map(chr, range(0x4E00, 0x6800, 2)))}]+', True),
        (
            "\n".join(
                (
                    "root ::= " + " | ".join(f"r{i}" for i in range(200)),
                    *(f'r{i} ::= "key{i} " (root | ";")' for i in range(200)),
                )
            ),
            False,
        ),
    ],
    ids=["empty", "wide", "many"],
)
def test_the_work_is_bounded(grammar: str, has_terminals: bool) -> None:
    """The first of these is 2**99 times nothing."""
    assert ("G_0: " in to_lark(grammar)) == has_terminals


def test_every_rule_comes_to_an_end(backend: LLGuidanceBackend) -> None:
    for grammar in ['root ::= "a" root', 'root ::= "x" | "b" one\none ::= "a" one']:
        with pytest.raises(GrammarError, match="never comes to an end"):
            backend.compile(spec_of("ebnf", grammar))


def test_of_a_grammar_too_large_to_tell_each_character_is_a_terminal(backend: LLGuidanceBackend) -> None:
    rules = (f'r{i} ::= "a{i}" [a-z]+ "," (r{(i + 1) % 300} | r{i * 7 % 300} | "end")' for i in range(300))
    grammar = "\n".join(("root ::= r0", *rules))
    assert "G_0: " not in to_lark(grammar)
    assert allows(backend.compile(spec_of("ebnf", grammar)), "a0x,a1yz,a7q,end")


GBNF = [
    ("root ::= 1st\n1st ::= 'x'", ["x"], ["1st"]),
    ("root ::= -expression\n-expression ::= 'x'", ["x"], ["-expression"]),
    ("root ::= a-1* 2-b\na-1::='-'\n2-b ::= [0-9]", ["-1", "1"], ["2-b"]),
    ('root ::= "\\e[0m"', ["\x1b[0m"], ["e[0m"]),
    (r'root ::= "\x41\u00e9\U0001F600" [\x30-\x32] [^\n\]\\]', ["Aé😀1a", "Aé😀2-"], ["Aé😀3a", "Aé😀1]"]),
    ("root ::= 'a'{2} 'b'{1,} 'c'{0,2} 'd'{ 1 , 2 }", ["aabd", "aabbccdd"], ["abd", "aabcccd", "aabddd"]),
    ("# first\nroot ::= ( # why\n  'a' # one\n\n | # two\n 'b'\n)+ |\n 'c' # end", ["ab", "c"], ["", "ac"]),
    ("root ::= . .\r\n", ["\n😀"], ["a"]),
    ("root ::= [a-] [-+*/] [^a-y]", ["--z", "a+A"], ["b+z", "a+b"]),
    ("root ::= ('a' | ) 'b'?", ["", "a", "ab", "b"], ["ba"]),
]


def test_gbnf_is_read_as_llama_cpp_reads_it(backend: LLGuidanceBackend) -> None:
    for grammar, right, wrong in GBNF:
        compiled = backend.compile(spec_of("ebnf", grammar.replace("'", '"')))
        assert [text for text in right if not allows(compiled, text)] == [], grammar
        assert [text for text in wrong if allows(compiled, text)] == [], grammar
