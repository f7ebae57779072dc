"""A Jinja environment for templates that come with a checkpoint, rendered with data that comes from anybody.

Jinja's sandbox keeps a template away from the interpreter's insides. It does not keep one from running for hours or
from filling the memory, and a template that does not mean to may do so with the data of a hostile client. So here a
rendering also has a budget of CPU time and of text that it may make, and what could overdraw either in a single step
(``'x' * 10**9``) is looked at before it is done.

That holds for any data. A template that is itself written to do harm may still find a way to waste time (printing a
list that holds itself many times over, for instance): one trusts a checkpoint's template as far as its weights.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

MAX_RENDERED_CHARS = 1 << 24
"""Longest text that a template may render, or make on the way: far more than any context holds."""

MAX_PRODUCED_CHARS = 1 << 28
"""Characters of all texts together that a rendering may make on the way."""

MAX_RENDER_SECONDS = 5.0
"""CPU time of one rendering. Ordinary templates take milliseconds, a hundred thousand messages a second or so."""

_MAX_WIDTH = 10_000
"""Largest number that is accepted where a text is padded, indented or repeated to a width."""

_MAX_EXPONENT_BITS = 4096
_TICKS_PER_LOOK = 256
"""Steps between two looks at the clock."""

_WIDE_FORMAT = re.compile(r"\d{5}|%[^%a-zA-Z]*\*")


class LimitExceeded(jinja2.TemplateError):
    """A rendering takes too long or makes too much text."""


class _Budget:
    """What one rendering may still use."""

    __slots__ = ("_chars", "_deadline", "_ticks")

    def __init__(self) -> None:
        self._ticks = 0
        self._chars = 0
        self._deadline = time.thread_time() + MAX_RENDER_SECONDS

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks % _TICKS_PER_LOOK == 0 and time.thread_time() > self._deadline:
            raise LimitExceeded(f"rendering takes more than {MAX_RENDER_SECONDS:g} seconds")

    def make(self, num_chars: int) -> None:
        """Account for a text that is about to be made."""
        self._chars += num_chars
        if num_chars > MAX_RENDERED_CHARS or self._chars > MAX_PRODUCED_CHARS:
            raise LimitExceeded(f"rendering makes a text of more than {MAX_RENDERED_CHARS} characters")


_current: ContextVar[_Budget] = ContextVar("render_budget")


def _budget() -> _Budget:
    # A template's constant parts are evaluated while it is compiled, outside of any rendering.
    return _current.get(None) or _Budget()


class SandboxedTemplate:
    """A compiled chat template. Safe to render in several threads at once.

    Args:
        source: Jinja, with the dialect of chat templates: blocks trimmed, ``break`` and ``continue``,
            ``{% generation %}``, ``raise_exception``, ``strftime_now``, and ``tojson`` that escapes nothing.

    Raises:
        jinja2.TemplateSyntaxError: if it is not valid.
    """

    def __init__(self, source: str) -> None:
        tree = _BoundedLoops().visit(_environment.parse(source))
        code = _environment.compile(tree)
        self._template = jinja2.Template.from_code(_environment, code, dict(_environment.globals))

    def render(self, variables: Mapping[str, Any]) -> str:
        """The text for these variables, which must be plain JSON values.

        Raises:
            Exception: whatever the template runs into, :class:`LimitExceeded` among others.
        """
        budget = _Budget()
        token = _current.set(budget)
        try:
            chunks = []
            num_chars = 0
            for chunk in self._template.generate(dict(variables)):
                budget.tick()
                num_chars += len(chunk)
                if num_chars > MAX_RENDERED_CHARS:
                    raise LimitExceeded(f"rendering makes a text of more than {MAX_RENDERED_CHARS} characters")
                chunks.append(chunk)
            return "".join(chunks)
        finally:
            _current.reset(token)


class _GenerationTag(Extension):
    """``{% generation %}`` … ``{% endgeneration %}``, which marks text for training and means nothing here."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class _BoundedLoops(NodeTransformer):
    """Makes loops and the ``~`` operator pass through functions that watch the budget."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, "_each", [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "_concat", [], [], None, None, lineno=node.lineno)


def _bounded_concat(parts: Iterable[str]) -> str:
    """What Jinja joins the output of macros and of ``{% set %}`` blocks with."""
    texts = list(parts)
    _budget().make(sum(map(len, texts)))
    return "".join(texts)


class _ChatEnvironment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(_bounded_concat)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols], finalize=_as_text_fits
        )
        self.filters = {name: _watched(name, function) for name, function in self.filters.items()}
        self.filters.update(_each=_each, _concat=_concat, tojson=_watched("tojson", _tojson))
        self.globals.update(
            raise_exception=_raise_exception, strftime_now=_strftime_now, namespace=_namespace, dict=_make_dict
        )
        del self.globals["lipsum"]

    def call(self, context: Context, callee: Any, /, *args: Any, **kwargs: Any) -> Any:
        budget = _budget()
        budget.tick()
        owner = getattr(callee, "__self__", None)
        if isinstance(owner, (str, bytes)):
            name = callee.__name__
            if name == "translate":
                raise LimitExceeded("a template may not call translate")
            _check_arguments(name, owner, args, kwargs, budget)
        return super().call(context, callee, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        budget = _budget()
        if operator == "+":
            if isinstance(left, (str, bytes, list, tuple)) and isinstance(right, (str, bytes, list, tuple)):
                budget.make(_size(left) + _size(right))
        elif operator == "*":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, (str, bytes, list, tuple)) and isinstance(other, int):
                    budget.make(_size(one) * max(0, other))
            _check_integers(left, right, bits=_bits(left) + _bits(right))
        elif operator == "**":
            _check_integers(left, right, bits=_bits(left) * max(1, abs(right)) if isinstance(right, int) else 0)
        elif isinstance(left, (str, bytes)):
            _check_format(left, right if isinstance(right, tuple) else (right,), "%", budget)
        return super().call_binop(context, operator, left, right)

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
            _check_format(template, given, "{", _budget())
            return wrapped(*args, **kwargs)

        return checked


def _watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The same filter, with its arguments checked and its result accounted for."""
    num_leading = 2 if hasattr(function, "jinja_pass_arg") else 1

    @functools.wraps(function)
    def filter_(*args: Any, **kwargs: Any) -> Any:
        budget = _budget()
        budget.tick()
        leading, rest = list(args[:num_leading]), args[num_leading:]
        if name == "string":
            _as_text_fits(leading[-1])
        if name == "join" and not isinstance(leading[-1], (str, Sequence)):
            leading[-1] = list(leading[-1])  # to know how many there are
        if name == "format":
            _check_format(str(leading[-1]), [*rest, *kwargs.values()], "%", budget)
        else:
            _check_arguments(name, leading[-1], rest, kwargs, budget)
        result = function(*leading, *rest, **kwargs)
        if isinstance(result, str):
            budget.make(len(result))
        return result

    return filter_


def _check_arguments(name: str, value: Any, args: Sequence[Any], kwargs: Mapping[str, Any], budget: _Budget) -> None:
    """Refuse arguments that would make one call produce a huge text."""
    given = [*args, *kwargs.values()]
    if any(isinstance(argument, int) and abs(argument) > _MAX_WIDTH for argument in given):
        raise LimitExceeded(f"{name} with a number beyond {_MAX_WIDTH}")
    texts: list[Any] = [argument for argument in given if isinstance(argument, (str, bytes))]
    if name == "replace" and len(texts) == 2 and isinstance(value, type(texts[0])):
        budget.make(len(value) + value.count(texts[0]) * max(0, len(texts[1]) - len(texts[0])))
    elif name == "join" and isinstance(value, (str, bytes)) and given and isinstance(given[0], Sequence):
        budget.make(len(value) * len(given[0]))  # a method of the separator
    elif name == "join" and texts and isinstance(value, Sequence):
        budget.make(len(value) * len(texts[0]))
    elif name == "indent" and texts and isinstance(value, str):
        budget.make(len(value) + (value.count("\n") + 1) * len(texts[0]))
    elif name == "wordwrap" and texts and isinstance(value, str):
        width = max(next((each for each in given if isinstance(each, int)), _USUAL_WIDTH), 1)
        budget.make(len(value) + (len(value) // width + value.count("\n") + 1) * len(texts[0]))
    elif name == "expandtabs" and isinstance(value, (str, bytes)):
        size = next((each for each in given if isinstance(each, int)), _USUAL_TAB)
        tabs = value.count("\t") if isinstance(value, str) else value.count(b"\t")
        budget.make(len(value) + tabs * max(size, 0))


_USUAL_WIDTH, _USUAL_TAB = 79, 8


def _check_format(template: str | bytes, values: Iterable[Any], mark: str, budget: _Budget) -> None:
    text = template if isinstance(template, str) else template.decode("latin-1")
    if _WIDE_FORMAT.search(text):
        raise LimitExceeded("a format with so large a width")
    longest = 0
    for value in values:
        if isinstance(value, int) and abs(value) > _MAX_WIDTH and mark == "{" and "{" in text.replace("{", "", 1):
            raise LimitExceeded("a format with so large a number")  # it may be the width of another value
        if isinstance(value, (str, bytes)):
            longest = max(longest, len(value))
    budget.make(len(text) + text.count(mark) * longest)


def _check_integers(left: Any, right: Any, *, bits: int) -> None:
    if isinstance(left, int) and isinstance(right, int) and bits > _MAX_EXPONENT_BITS:
        raise LimitExceeded("a number of so many digits")


def _size(value: str | bytes | list[Any] | tuple[Any, ...]) -> int:
    """Memory of a value's own, in characters: an element of a list takes as much as eight of them."""
    return len(value) if isinstance(value, (str, bytes)) else 8 * len(value)


def _bits(value: Any) -> int:
    return value.bit_length() if isinstance(value, int) else 0


@jinja2.pass_context
def _each(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    # A loop over what does not exist runs zero times; over what is no collection, it fails here as it would anyway.
    iterator = iter(items)
    return _ticking(iterator)


def _ticking(iterator: Iterator[Any]) -> Iterator[Any]:
    budget = _budget()
    for item in iterator:
        budget.tick()
        yield item


@jinja2.pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    return _bounded_concat(str(_as_text_fits(part)) for part in parts)


def _as_text_fits(value: Any) -> Any:
    """A value that is about to become text; the text of a collection is made in one go, whatever is in it."""
    if isinstance(value, (list, tuple, dict)):
        budget = _budget()
        inside: list[Any] = [value]
        while inside:
            budget.tick()
            item = inside.pop()
            if isinstance(item, (str, bytes)):
                budget.make(len(item))
            elif isinstance(item, dict):
                inside += [*item.keys(), *item.values()]
            elif isinstance(item, (list, tuple)):
                inside += item
    return value


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    if isinstance(indent, int) and indent > 16:
        raise LimitExceeded("tojson with an indent beyond 16")
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> None:
    raise jinja2.TemplateError(str(message))


def _strftime_now(layout: str) -> str:
    return datetime.now().strftime(layout)


class _ChatNamespace(Namespace):
    """A namespace without names that could reach into the interpreter."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"a template may not set {name}")
        super().__setitem__(name, value)


def _namespace(*args: Any, **kwargs: Any) -> _ChatNamespace:
    values = dict(*args, **kwargs)
    if any(str(name).startswith("_") for name in values):
        raise jinja2.exceptions.SecurityError("a template may not set names that begin with an underscore")
    return _ChatNamespace(values)


def _make_dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


_environment = _ChatEnvironment()
