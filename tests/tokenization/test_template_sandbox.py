"""Templates that are written to take all time or memory: nothing that they do on the way is large or takes long."""

from __future__ import annotations

import resource
import time

import jinja2
import pytest

from bough.tokenization import template_budget
from bough.tokenization.template_budget import LimitExceeded
from bough.tokenization.template_sandbox import SandboxedTemplate

MIB = 2**20
MESSAGES = [{"role": "user", "content": "hello"}]


def growing(start: str, step: str, then: str = "", times: int = 100_000) -> str:
    """A template whose variable becomes something made of itself again and again."""
    loop = f"{{% for i in range({times}) %}}{{% set n.s = {step} %}}{{% endfor %}}"
    return f"{{% set n = namespace(s={start}) %}}{loop}{then}"


TOO_LARGE = [
    # made of slices
    growing("[1, 2]", "n.s[:] + n.s[:]"),
    growing("'ab'", "n.s[:] ~ n.s[::-1]"),
    growing("[]", "n.s + [('x' * 9000000)[i:]]"),
    # a list that holds another one twice, wherever all of it is looked at
    *(
        growing(start, step, then, times)
        for start, step in (("[1]", "[n.s, n.s]"), ("(1,)", "(n.s, n.s)"), ("{}", "{'a': n.s, 'b': n.s}"))
        for then in ("{{ n.s | tojson }}", "{{ n.s }}", "{{ n.s == [n.s] }}", "{{ {n.s: 1} }}", "{{ [n.s] | unique }}")
        for times in (30, 60)
    ),
    growing("[1]", "[n.s] * 2"),
    growing("[1]", "[n.s, n.s] | list"),
    growing("{}", "dict(a=n.s, b=n.s)"),
    growing("{}", "dict(a=n.s, b=n.s).items()"),
    # deep, which native code walks on a stack
    *(growing("[1]", step, "{{ n.s }}") for step in ("[n.s]", "(n.s,)", "{1: n.s}", "n.s | map('upper')")),
    # text in text
    growing("'\"'", "n.s | tojson"),
    growing("'a'", "[n.s] | tojson | tojson"),
    growing("'a'", "n.s | replace(new=n.s, old='a')"),
    growing("'a'", "n.s ~ n.s | upper"),
    growing("'a'", "[n.s, n.s] | join"),
    growing("'a'", "''.join([n.s, n.s])"),
    growing("'a'", "'%s' % ([n.s, n.s],)"),
    growing("'a'", "'{}'.format([n.s, n.s])"),
    growing("'<'", "n.s | forceescape"),
    growing("'\\n'", "n.s | indent(first=true, width=9999)"),
    growing("'a'", "n.s.encode().hex()"),
    "{{ ['x' * 1000000] * 1000 | length }}",
    "{{ ''.join(['x' * 1000000] * 1000) }}",
    "{{ ('%9999s' * 100000) % (1,) }}",
    "{{ ('{:9999}' * 100000).format(1) }}",
    # pieces of a text take much more memory than the text
    "{{ ('x,' * 8000000).split(',') }}",
    "{{ ('x ' * 8000000).split() }}",
    "{{ ('x\\n' * 8000000).splitlines() }}",
    "{{ 'x' * 16000000 | list }}{{ ('\u20ac' * 16000000) | list }}",
    # one step that takes for ever
    "{{ ('a' * 16000000).rfind('b' ~ 'a' * 8000000) }}",
    "{{ ('a' * 8000000) | trim('b' * 4000000 ~ 'a') }}",
    "{{ ('\u20ac' * 100000).encode('punycode') }}",
    "{{ (5).to_bytes(1000000000, 'big') }}",
    "{{ (5).from_bytes(('x' * 16000000).encode(), 'big') }}",
    "{{ ('1' * 16000000) | int(base=2) }}",
    *(f"{{{{ ('<!-- x y ' * 400000) | {each} }}}}" for each in ("striptags", "title", "urlize", "wordwrap", "pprint")),
    "{{ ([[1] * 10000] * 100) | sum(start=[]) }}",
    # many steps
    growing("[]", "n.s + [n.s | length]"),
    growing("[]", "n.s + [namespace(a=i)]"),
    growing("0", "messages | map('upper')"),
    "{% for i in range(100000) recursive %}{% if loop.depth < 3 %}{{ loop(range(100000)) }}{% endif %}{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{% set x = range(99999) | list %}{% set x = x + x + x + x + x + x %}{% for i in x %}{{ -1 in x }}{% endfor %}",
    "{% set n = namespace() %}{% set n.s = [n, n] %}{{ n.s }}" + growing("n", "[n.s, n]"),
]


def test_what_grows_is_refused_before_it_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template_budget, "MAX_RENDER_SECONDS", 0.05)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for source in TOO_LARGE:
        template = SandboxedTemplate(source)
        begin = time.thread_time()
        with pytest.raises((LimitExceeded, TypeError, RecursionError)):
            raise AssertionError(f"{source}: {template.render({'messages': MESSAGES})!r:.100}")
        assert time.thread_time() - begin < 2.0, source
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert peak * 1024 < 700 * MIB, source


@pytest.mark.parametrize(
    "source",
    [
        *(f"{{{{ {begin * 30_000}1{end * 30_000} }}}}" for begin, end in ("()", "[]", ("f(", ")"), ("not ", ""))),
        *(f"{{{{ a{end * 20_000} }}}}" for end in (".b", "|upper", " + 1", "[0]", "~ 1")[:4]),
        "{% if a %}" * 2000 + "{% endif %}" * 2000,
        "{% for a in b %}" * 40 + "{% endfor %}" * 40,
        "x" * (template_budget.MAX_RENDERED_CHARS // 8),
        "{{ 'a' | center(9999)" + f" | replace('', '{'a' * 50}')" * 4 + " }}",
    ],
    ids=lambda source: source[:24],
)
def test_a_template_that_cannot_be_compiled_is_not_valid(source: str) -> None:
    with pytest.raises((jinja2.TemplateSyntaxError, LimitExceeded)):
        SandboxedTemplate(source).render({})


def test_what_templates_do_with_values_is_what_jinja_does() -> None:
    cases = [
        ("{{ messages[0].content[1:4] ~ messages[1:] | length }}", "ell0"),
        ("{% for a, b in [(1, 2), (i, 3)] %}{{ a }}{{ b }},{% endfor %}", "12,73,"),
        ("{{ {'a': [i, {'b': (i, none)}]} | tojson }}", '{"a": [7, {"b": [7, null]}]}'),
        ("{{ {'a': i} | tojson(indent=2) }}", '{\n  "a": 7\n}'),
        ("{{ [3, i, 5] | sort | map('string') | join('-') }}", "3-5-7"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "1"),
        ("{{ 'a b  c'.split() | join('|') }}{{ 'a,b'.split(',')[-1] }}{{ ' x '.strip() }}", "a|b|cbx"),
        ("{{ i // 2 }} {{ i % 4 }} {{ i ** 2 }} {{ i - 1 }} {{ i / 2 }} {{ '%03d' % i }}", "3 3 49 6 3.5 007"),
        ("{{ ('a' * 3 ~ 'b') | upper | replace('A', 'c') | indent(2, true) }}", "  cccB"),
        ("{{ {'b': 1, 'a': i} | dictsort }}{{ dict(a=1).get('a', 99999) }}", "[('a', 7), ('b', 1)]1"),
        ("{{ [1, 2, 3] | batch(2) | list }}{{ [[1, i]] | sum(attribute=1) }}", "[[1, 2], [3]]7"),
        (
            "{% set n = namespace(l=[]) %}{% for m in messages * 3 %}{% set n.l = n.l + [i] %}{% endfor %}{{ n.l }}",
            "[7",
        ),
    ]
    for source, expected in cases:
        plain = jinja2.Environment().from_string(source).render(messages=MESSAGES, i=7)
        assert SandboxedTemplate(source).render({"messages": MESSAGES, "i": 7}) == plain
        assert expected in plain


def test_a_list_that_grows_by_one_in_each_of_many_steps_takes_no_quadratic_time() -> None:
    begin = time.thread_time()
    text = SandboxedTemplate(growing("[]", "n.s + [i]", "{{ n.s | length }}", 5000)).render({})
    assert text == "5000"
    assert time.thread_time() - begin < 1.0
