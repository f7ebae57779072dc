"""Jinja environment for templates from untrusted checkpoints, rendered with data from untrusted clients.

Jinja's sandbox keeps a template away from the interpreter's internals. It does not stop one from running for hours or
filling the memory, and even a harmless template may do so with a hostile client's data. So each
rendering also has a budget of CPU time and bytes (:mod:`bough.tokenization.template_budget`), and operations that
could exceed it in a single step (``'x' * 10**9``) are checked before they run.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from bough.tokenization.template_budget import (
    CONTAINERS,
    MAX_RENDERED_CHARS,
    MAX_WEIGHT,
    Budget,
    LimitExceeded,
    budget,
    spending,
)

MAX_SOURCE_CHARS = 1 << 20
"""Longest template; real ones have at most about 60,000 characters."""

_MAX_WIDTH = 10_000
"""Largest number that is accepted where a text is padded, indented or repeated to a width."""

_MAX_EXPONENT_BITS = 4096
_MAX_DIGITS = 4096
"""Longest text that is converted to a number."""

_MAX_INDENT = 16
_MAX_LAYOUT = 256
_MAX_MESSAGE = 4096

_ELEMENT_BYTES = 64
"""Memory of each piece that a text is split into, besides the text."""

_WIDE_FORMAT = re.compile(r"\d{5}|%[^%a-zA-Z]*\*")
_NUMBER = re.compile(r"\d+")

_TEXTS = (str, bytes)
_OWNERS = (str, bytes, int, float, list, tuple, dict)

_PASSES = frozenset(
    {"batch", "groupby", "list", "map", "max", "min", "reject", "rejectattr"}
    | {"select", "selectattr", "slice", "sort", "sum", "unique"}
)
"""Filters that iterate over all items of a value, some of them lazily."""

_PARTS = frozenset(["attr", "d", "default", "first", "get", "last", "max", "min", "random"])
"""Filters and methods that return an existing part of the value."""

_ITEMS = _PARTS | _PASSES - {"batch", "slice"}
"""Filters whose numeric arguments are not widths."""

_OF_LISTS = frozenset({"count", "dictsort", "format", "items", "join", "length", "reverse", "tojson"})
_KEEP_STRUCTURE = _PASSES | _PARTS | _OF_LISTS
"""Filters that do not turn a list into text."""

_SLOW = frozenset(["pprint", "striptags", "title", "urlencode", "urlize", "wordcount", "wordwrap", "xmlattr"])
"""Filters and methods that are written in Python, or take quadratic time."""
_MAX_SLOW_BYTES = 1 << 16

_COMPARING = frozenset(["lstrip", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "strip", "trim"])
"""Filters and methods that may compare every character with every character of their argument."""
_MAX_COMPARISONS = 1 << 30

_CUTTING = frozenset({"split", "rsplit", "splitlines"})
_WHITE_SPACE = "".join(char for char in map(chr, range(0x3001)) if char.isspace())

_CODECS = frozenset({"utf-8", "utf8", "ascii", "latin-1"})
"""Allowed codecs. Others take quadratic time (punycode), or inflate their input."""


class SandboxedTemplate:
    """A compiled chat template. Safe to render in several threads at once.

    Args:
        source: Jinja, with the dialect of chat templates: blocks trimmed, ``break`` and ``continue``,
            ``{% generation %}``, ``raise_exception``, ``strftime_now``, and ``tojson`` that escapes nothing.

    Raises:
        jinja2.TemplateSyntaxError: if it is not valid, or too long or too deep to be compiled.
    """

    def __init__(self, source: str) -> None:
        if len(source) > MAX_SOURCE_CHARS:
            raise jinja2.TemplateSyntaxError(f"it has more than {MAX_SOURCE_CHARS} characters", 1)
        try:
            # Jinja evaluates a template's constant parts while compiling it.
            with spending():
                code = _environment.compile(_Bounded().visit(_environment.parse(source)))
        except (RecursionError, MemoryError, SyntaxError):  # the last two: from Jinja's generated code
            raise jinja2.TemplateSyntaxError("it is nested too deeply", 1) from None
        except (LimitExceeded, ValueError, OverflowError) as error:
            raise jinja2.TemplateSyntaxError(f"it cannot be compiled: {error}", 1) from None
        self._template = jinja2.Template.from_code(_environment, code, dict(_environment.globals))

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text for these variables, which must be plain JSON values.

        Raises:
            Exception: whatever the template runs into, :class:`LimitExceeded` among others.
        """
        with spending() as spent:
            chunks = []
            num_chars = 0
            for chunk in self._template.generate(dict(variables)):
                spent.tick()
                num_chars += len(chunk)
                if num_chars > MAX_RENDERED_CHARS:
                    raise LimitExceeded(f"rendering makes a text of more than {MAX_RENDERED_CHARS} characters")
                if chunk:
                    chunks.append(chunk)
            return "".join(chunks)


class _GenerationTag(Extension):
    """``{% generation %}`` … ``{% endgeneration %}``, which marks text for training and means nothing here."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _Bounded(NodeTransformer):
    """Make loops, slices, the ``~`` operator and container literals use functions that check the budget."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _passed("_each", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _passed("_concat", nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        return _passed("_slice", node.node, *(each or nodes.Const(None, lineno=node.lineno) for each in bounds))

    def visit_List(self, node: nodes.List) -> nodes.Node:
        return self._literal(node, node.items)

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        return self._literal(node, node.items if node.ctx == "load" else [])

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        return self._literal(node, [part for pair in node.items for part in (pair.key, pair.value)])

    def _literal(self, node: nodes.Expr, parts: list[nodes.Expr]) -> nodes.Node:
        is_constant = all(isinstance(part, nodes.Const) for part in parts)
        self.generic_visit(node)
        return node if is_constant else _passed("_made", node)


def _passed(name: str, node: Any, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def _bounded_concat(parts: Iterable[str]) -> str:
    """What Jinja joins the output of macros and of ``{% set %}`` blocks with."""
    texts, spent = list(parts), budget()
    spent.check(_text_bytes(sum(map(len, texts)), *texts))
    joined: str = spent.took("".join(texts), *texts)
    return joined


class _ChatEnvironment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    concat = staticmethod(_bounded_concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols], finalize=_as_text_fits
        )
        filters = {**self.filters, "tojson": _tojson}
        self.filters = {name: _watched(name, function) for name, function in filters.items()}
        self.filters.update(_each=_each, _concat=_concat, _slice=_slice, _made=_made)
        self.globals.update(
            raise_exception=_raise_exception, strftime_now=_strftime_now, namespace=_namespace, dict=_make_dict
        )
        del self.globals["lipsum"]

    def call(self, context: Context, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        spent = budget()
        spent.tick()
        if isinstance(callee, LoopContext) and args:  # a recursive loop
            args = (spent.ticking(args[0]), *args[1:])
        owner = getattr(callee, "__self__", None)
        if isinstance(owner, type):  # as in (5).from_bytes
            raise LimitExceeded(f"a template may not call {callee.__name__}")
        if not isinstance(owner, _OWNERS) and callee is not _make_dict:
            return super().call(context, callee, *args, **kwargs)
        name = callee.__name__
        if isinstance(owner, _TEXTS) and name == "join" and args:
            args = (_joinable(owner, args[0], spent), *args[1:])
        elif not isinstance(owner, CONTAINERS) and callee is not _make_dict:
            _check_arguments(name, owner, [*args, *kwargs.values()], spent)
        result = super().call(context, callee, *args, **kwargs)
        return result if name in _PARTS else spent.took(result, owner)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        spent = budget()
        if operator == "+":
            if isinstance(left, _TEXTS) and isinstance(right, _TEXTS):
                spent.check(_text_bytes(len(left) + len(right), left, right))
            elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
                return self._joined(context, operator, left, right, [(left, 1), (right, 1)])
        elif operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, _TEXTS) and isinstance(other, int):
                    spent.check(_text_bytes(len(one) * max(0, other), one))
                elif isinstance(one, (list, tuple)) and isinstance(other, int):
                    return self._joined(context, operator, left, right, [(one, max(0, other))])
        elif operator == "%" and isinstance(left, _TEXTS):
            _check_format(left, right if isinstance(right, tuple) else (right,), "%", spent)
        _check_integers(operator, left, right)
        return spent.took(super().call_binop(context, operator, left, right))

    def _joined(
        self, context: Context, operator: str, left: Any, right: Any, parts: list[tuple[Sequence[Any], int]]
    ) -> Any:
        """Return a list or tuple joined from others, each repeated a number of times.

        It is not weighed again: a list that grows by one element in each of many steps would take quadratic time.
        """
        spent = budget()
        weighed = [(spent.weigh(part), times) for part, times in parts]
        weight = sum(weight * times for (weight, _), times in weighed)
        spent.make_container(sum(len(part) * times for part, times in parts))
        if weight > MAX_WEIGHT:
            raise LimitExceeded("a list of so much")
        result = super().call_binop(context, operator, left, right)
        spent.keep(result, weight, max(depth for (_, depth), _ in weighed))
        return result

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        template = value.__self__

        @functools.wraps(wrapped)
        def checked(*args: Any, **kwargs: Any) -> str:
            given = [*args, *kwargs.values()]
            if value.__name__ == "format_map" and args and isinstance(args[0], Mapping):
                given = list(args[0].values())
            _check_format(template, given, "{", budget())
            made: str = budget().took(wrapped(*args, **kwargs))
            return made

        return checked


def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same filter, with its arguments checked and its result accounted for."""
    num_leading = 2 if hasattr(function, "jinja_pass_arg") else 1

    @functools.wraps(function)
    def filter_(*args: Any, **kwargs: Any) -> Any:
        spent = budget()
        spent.tick()
        leading, rest = list(args[:num_leading]), args[num_leading:]
        value, given = leading[-1], [*rest, *kwargs.values()]
        if name == "join":
            separator = next((each for each in given if isinstance(each, str)), "")
            leading[-1] = _joinable(separator, value, spent)
        elif name == "format":
            _check_format(str(_as_text_fits(value)), given, "%", spent)
        else:
            _check_arguments(name, value, given, spent)
        if name in _PASSES:
            if isinstance(value, (*_TEXTS, *CONTAINERS)):
                spent.check(len(value) * (_ELEMENT_BYTES if isinstance(value, _TEXTS) else 8))
            leading[-1] = spent.ticking(value)
        elif name not in _KEEP_STRUCTURE:
            _as_text_fits(value)
        result = function(*leading, *rest, **kwargs)
        return result if name in _PARTS else spent.took(result, value, *given)

    return filter_


def _joinable(separator: str | bytes, items: Any, spent: Budget) -> Any:
    """Return items to be joined into a text, if that is not too long."""
    if isinstance(items, _TEXTS):
        spent.check(_text_bytes(len(items) * (len(separator) + 1), items, separator))
        return items
    listed = list(spent.ticking(items))
    spent.check(_text_bytes(len(listed) * len(separator), separator) + spent.weigh(listed)[0])
    return listed


def _check_arguments(name: str, value: Any, given: Sequence[Any], spent: Budget) -> None:
    """Refuse a call of a filter or method that would make something huge from its arguments, or take too long."""
    numbers = [abs(each) for each in given if isinstance(each, int)]
    if name not in _ITEMS and any(number > _MAX_WIDTH for number in numbers):
        raise LimitExceeded(f"{name} with a number beyond {_MAX_WIDTH}")
    texts: list[Any] = [each for each in given if isinstance(each, _TEXTS)]
    if name == "sum" and any(isinstance(each, (list, tuple)) for each in given):
        raise LimitExceeded("a sum of lists")
    if name in _SLOW and spent.weigh(value)[0] > _MAX_SLOW_BYTES:
        raise LimitExceeded(f"{name} of so long a text")
    if name == "translate":
        raise LimitExceeded(f"a template may not call {name}")
    if not isinstance(value, _TEXTS):
        return
    if name in ("int", "float") and len(value) > _MAX_DIGITS:
        raise LimitExceeded(f"{name} of so long a text")
    if name in ("encode", "decode") and texts and str(texts[0]).lower() not in _CODECS:
        raise LimitExceeded(f"{name} to or from {texts[0]!r:.40}")
    if name in _COMPARING and texts and len(value) * len(texts[0]) > _MAX_COMPARISONS:
        raise LimitExceeded(f"{name} of so long a text for so long a text")
    spent.check(_text_bytes(len(value) + _growth(name, value, texts, max(numbers, default=None), given), value, *texts))


_USUAL_TAB, _USUAL_INDENT = 8, 4


def _growth(name: str, value: Any, texts: Sequence[Any], number: int | None, given: Sequence[Any]) -> int:
    """Return an upper bound of the characters that a filter or method adds to a text, or of the memory to split it."""
    if name == "replace" and len(given) >= 2:
        # Named arguments may be in any order.
        one, other = (each if isinstance(each, _TEXTS) else str(_as_text_fits(each)) for each in given[:2])
        return max(_count(value, old) * (len(new) - len(old)) for old, new in ((one, other), (other, one)))
    if name == "indent":
        width = max(_USUAL_INDENT, number or 0, *map(len, texts))
        return (_count(value, "\n") + 1) * width
    if name == "wordwrap":
        return (len(value) + 1) * max(1, *map(len, texts))
    if name == "expandtabs":
        return _count(value, "\t") * (_USUAL_TAB if number is None else number)
    if name in _CUTTING:
        cuts = [texts[0]] if texts and name != "splitlines" else _WHITE_SPACE
        return _ELEMENT_BYTES * (1 + sum(_count(value, cut) for cut in cuts))
    return 0


def _count(value: Any, part: Any) -> int:
    """Return how often a part occurs in a text; either may be bytes."""
    if isinstance(value, bytes) and isinstance(part, str):
        part = part.encode()
    return value.count(part) if isinstance(part, type(value)) or isinstance(value, str) else 0


def _check_format(template: str | bytes, values: Iterable[Any], mark: str, spent: Budget) -> None:
    text = template if isinstance(template, str) else template.decode("latin-1")
    if _WIDE_FORMAT.search(text):
        raise LimitExceeded("a format with so large a width")
    takes_widths = mark == "{" and "{" in text.replace("{", "", 1)
    width = max(map(int, _NUMBER.findall(text)), default=0)
    longest = 0
    texts: list[str | bytes] = [text]
    for value in values:
        if isinstance(value, _TEXTS):
            texts.append(value)
            longest = max(longest, len(value))
            continue
        if isinstance(value, int) and takes_widths:  # it may be the width of another value
            if abs(value) > _MAX_WIDTH:
                raise LimitExceeded("a format with so large a number")
            width = max(width, abs(value))
        longest = max(longest, _TEXT_FACTOR * spent.weigh(value)[0])
    spent.check(_text_bytes(len(text) + text.count(mark) * (longest + width), *texts))


def _check_integers(operator: str, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * max(1, abs(right)) if operator == "**" else left.bit_length() + right.bit_length()
        if bits > _MAX_EXPONENT_BITS:
            raise LimitExceeded("a number of so many digits")


def _text_bytes(num_chars: int, *made_of: str | bytes) -> int:
    """Return an upper bound of the bytes in a text of this many characters from these texts."""
    return num_chars if all(each.isascii() for each in made_of) else 4 * num_chars


@jinja2.pass_context
def _each(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    # A loop over what does not exist runs zero times; over what is no collection, it fails here as it would anyway.
    return budget().ticking(iter(items))


@jinja2.pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    return _bounded_concat([str(_as_text_fits(part)) for part in parts])


@jinja2.pass_context
def _slice(context: Context, value: Any, *bounds: Any) -> Any:
    part = value[slice(*bounds)]
    if isinstance(part, (list, tuple)):
        budget().make_container(len(part))  # lighter than the whole, so it need not be weighed
        return part
    return budget().took(part, value)


@jinja2.pass_context
def _made(context: Context, value: Any) -> Any:
    return budget().took(value)


_TEXT_FACTOR = 3
"""Most characters shown per byte of a value's weight, because of escapes."""


def _as_text_fits(value: Any) -> Any:
    """A value that is about to become text; the text of a collection is made in one go, whatever is in it."""
    if isinstance(value, CONTAINERS):
        spent = budget()
        spent.check(_TEXT_FACTOR * spent.weigh(value)[0])
    return value


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    pad = indent if isinstance(indent, int) else len(indent or "")
    longest = max(map(len, separators or ()), default=2)
    if max(pad, longest) > _MAX_INDENT:
        raise LimitExceeded(f"tojson with an indent or separators beyond {_MAX_INDENT}")
    spent = budget()
    weight, depth = spent.weigh(value)
    spent.check(weight + weight // _ELEMENT_BYTES * (max(pad, 0) * depth + longest))
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> None:
    raise jinja2.TemplateError(str(_as_text_fits(message))[:_MAX_MESSAGE])


def _strftime_now(layout: str) -> str:
    if len(layout) > _MAX_LAYOUT:
        raise LimitExceeded("strftime_now with so long a layout")
    return datetime.now().strftime(layout)


class _ChatNamespace(Namespace):
    """A namespace without names that could reach into the interpreter."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a template may not set {name}")
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # a namespace may contain itself


def _namespace(*args: Any, **kwargs: Any) -> _ChatNamespace:
    values = dict(*args, **kwargs)
    if any(str(name).startswith("_") for name in values):
        raise jinja2.exceptions.SecurityError("a template may not set names that begin with an underscore")
    return _ChatNamespace(values)


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


_environment = _ChatEnvironment()
