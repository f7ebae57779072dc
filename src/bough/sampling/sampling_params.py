"""Parameters of a request: how its tokens are chosen, and when it ends."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from hashlib import blake2b
from itertools import accumulate, count
from operator import sub
from threading import Lock
from typing import Any, Literal, NamedTuple

import msgspec

from bough import ceilings
from bough.errors import BadRequest
from bough.json_words import wrong_field

GREEDY_TEMPERATURE = 1e-6
"""Below this temperature a request is greedy: dividing logits by less would overflow float32."""

ALL_TOKENS = -1
"""``top_k`` value that keeps the whole vocabulary."""

MIN_REPETITION_PENALTY = 1e-6
"""Logits divided by less would overflow float32."""
MAX_REPETITION_PENALTY = 2.0

ALL_OF_CONTEXT = -1
"""Value of ``repetition_window`` that covers the whole prompt and output."""
MAX_REPETITION_WINDOW = 8191
"""Largest window that moves with the output: the counts of a token in the window and in the output share 31
bits."""

MAX_STOP_STRINGS = ceilings.STOP_STRINGS
MAX_STOP_STRING_CHARS = 1024
MAX_STOP_REGEX_BYTES = 256
MAX_PARALLEL_SAMPLES = ceilings.PARALLEL_SAMPLES
MAX_LOGIT_BIAS_ENTRIES = 4096
MAX_STOP_TOKEN_IDS = 256
MAX_ALLOWED_TOKEN_IDS = 16384
MAX_BAD_WORDS = 256
MAX_BAD_WORD_CHARS = 4096
"""Characters of all together."""
MAX_TOKENS_PER_BAD_WORD = 32
"""So much of an output is remembered while it is looked for."""
MAX_BAD_WORD_TOKENS = 4096
"""Tokens of all together, with and without a space before each: as many are compared in every step."""

MAX_GRAMMAR_BYTES = ceilings.GRAMMAR_BYTES
"""Longest schema, pattern, grammar or list of choices, in bytes of UTF-8."""

MAX_GRAMMAR_DEPTH = ceilings.GRAMMAR_DEPTH
"""Deepest nesting of brackets in a JSON schema or structural tag; an object within an object takes two levels."""

MAX_TAG_BYTES = 8 * MAX_GRAMMAR_BYTES
MAX_TAG_DEPTH = MAX_GRAMMAR_DEPTH + 32
"""The same of structural tags that are made around what a client has sent, which may be as large as it is allowed."""

MAX_CHOICES = 1024

GrammarKind = Literal["json_schema", "regex", "ebnf", "structural_tag", "choice"]
GRAMMAR_KINDS: tuple[GrammarKind, ...] = ("json_schema", "regex", "ebnf", "structural_tag", "choice")

_NO_GRAMMAR = (None,) * len(GRAMMAR_KINDS)

SCHEMA_OPTIONS = "x-guidance"
"""Key of a JSON schema under which ``{"lenient": true}`` may be: keywords that cannot be enforced are ignored, and
``oneOf`` is taken for ``anyOf``, instead of being refused."""

LENIENTLY: dict[str, Any] = {SCHEMA_OPTIONS: {"lenient": True}}
"""Entry of a schema for that."""


def leniently(schema: dict[str, Any] | bool) -> dict[str, Any] | bool:
    """A schema that is enforced as far as that is possible; one that has options of its own stays as it is."""
    return schema if isinstance(schema, bool) else {**LENIENTLY, **schema}


class Range(NamedTuple):
    """Bounds of a number, both included."""

    least: float
    most: float
    rule: str
    """Their words in errors"""

    @property
    def meta(self) -> msgspec.Meta:
        """The bounds as a type's annotation."""
        return msgspec.Meta(ge=self.least, le=self.most)


_MOST_INT32 = 2**31 - 1

RANGES = {
    "max_new_tokens": Range(0, math.inf, "at least 0"),
    "min_new_tokens": Range(0, math.inf, "at least 0"),
    "temperature": Range(0, 10000, "a number between 0 and 10000"),
    "top_p": Range(0, 1, "in [0, 1]"),
    "top_k": Range(ALL_TOKENS, _MOST_INT32, "at least 1, or -1 for all tokens"),
    "min_p": Range(0, 1, "in [0, 1]"),
    "frequency_penalty": Range(-2, 2, "in [-2, 2]"),
    "presence_penalty": Range(-2, 2, "in [-2, 2]"),
    "repetition_penalty": Range(
        MIN_REPETITION_PENALTY, MAX_REPETITION_PENALTY, f"in [{MIN_REPETITION_PENALTY:g}, {MAX_REPETITION_PENALTY:g}]"
    ),
    "repetition_window": Range(
        ALL_OF_CONTEXT, MAX_REPETITION_WINDOW, f"from 0 to {MAX_REPETITION_WINDOW}, or -1 for all of prompt and output"
    ),
    "n": Range(1, MAX_PARALLEL_SAMPLES, f"between 1 and {MAX_PARALLEL_SAMPLES}"),
    "thinking_token_budget": Range(0, _MOST_INT32, f"between 0 and {_MOST_INT32}"),
    "sampling_seed": Range(-(2**63), 2**63 - 1, "a signed 64-bit integer"),
    "stream_interval": Range(1, math.inf, "at least 1"),
}
"""Bounds of each number in :class:`SamplingParams`, in the order in which they are checked."""

ClientName = Callable[[str], str]
"""From a field of :class:`SamplingParams` to what the client called it."""


def in_sampling_params(field: str) -> str:
    """Name of a field for clients that send an object ``sampling_params``."""
    return f"sampling_params.{field}"


class GrammarSpec(NamedTuple):
    """A rule that the whole output has to match: equal ones have the same grammar."""

    kind: GrammarKind
    """Also the name of the field that says so."""
    text: str
    """JSON except for ``regex`` and ``ebnf``; an array of strings for ``choice``."""


class SamplingParams(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sampling parameters of one request, with the names and defaults of SGLang's ``sampling_params``.

    Construction does not check ranges; :meth:`validate` does, because some of them depend on the model.
    """

    max_new_tokens: int | None = 128
    """Most tokens to generate; ``None`` means until the context ends."""
    min_new_tokens: int = 0
    """End-of-sequence and stop tokens are masked until this many tokens exist."""
    stop: tuple[str, ...] = ()
    """Strings that end the output when they appear in it, also across token borders."""
    stop_token_ids: tuple[int, ...] = ()
    stop_regex: tuple[str, ...] = ()
    """Regular expressions (RE2 syntax, linear time) that end the output when they match."""
    json_schema: str | None = None
    """JSON text of the schema that the output follows. At most one of this and the next four may be set."""
    regex: str | None = None
    """Pattern that the whole output matches."""
    ebnf: str | None = None
    """Grammar, with a rule ``root``, that the whole output matches."""
    structural_tag: str | None = None
    """JSON text: parts of the output, between tags, follow schemas."""
    choice: tuple[str, ...] | None = None
    """The output is one of these strings."""
    temperature: float = 1.0
    top_p: float = 1.0
    """0 keeps only the most likely token."""
    top_k: int = ALL_TOKENS
    min_p: float = 0.0
    """Tokens less likely than ``min_p`` times the likeliest one are dropped."""
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    """Divisor of positive logits of repeated tokens, and factor of negative ones."""
    repetition_window: int | None = None
    """Number of last tokens of prompt and output that the repetition penalty covers, before the other penalties: -1
    for all, 0 for none. ``None``, as in SGLang: output tokens only, after the other penalties."""
    n: int = 1
    """Independent samples of the same prompt; sample ``i`` uses ``sampling_seed + i``."""
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    no_stop_trim: bool = False
    """Keep the matched stop string or stop token in the output text."""
    logit_bias: dict[int, float] | None = None
    """Token id to a number added to its logit."""
    allowed_token_ids: tuple[int, ...] | None = None
    """The only tokens that may be generated, ends of the output included; ``None`` for all."""
    bad_words: tuple[str, ...] = ()
    """Texts that are not generated, as the tokens that each is usually written with, with and without a space before
    it."""
    thinking_token_budget: int | None = None
    """Most tokens between the marks of the model's thoughts, which are ended then; ``None`` for any number."""
    sampling_seed: int | None = None
    """Makes the samples reproducible, whatever else is in the batch."""
    stream_interval: int | None = None
    """Tokens per streamed event; ``None`` takes the server's setting."""

    @property
    def is_greedy(self) -> bool:
        """True if the likeliest token is always taken."""
        return self.temperature < GREEDY_TEMPERATURE or self.top_k == 1 or self.top_p == 0.0

    @property
    def has_text_stops(self) -> bool:
        """True if the end of the output depends on its text."""
        return bool(self.stop or self.stop_regex)

    @property
    def has_grammar(self) -> bool:
        """True if the output has to match something."""
        return self._grammars() != _NO_GRAMMAR

    @property
    def grammar(self) -> GrammarSpec | None:
        """The rule that the output has to match, if any."""
        given = self._grammars()
        if given == _NO_GRAMMAR:
            return None
        kind, value = next(each for each in zip(GRAMMAR_KINDS, given, strict=True) if each[1] is not None)
        return GrammarSpec(kind, value if isinstance(value, str) else msgspec.json.encode(value).decode())

    def _grammars(self) -> tuple[str | tuple[str, ...] | None, ...]:
        """Values given for each of :data:`GRAMMAR_KINDS`."""
        return self.json_schema, self.regex, self.ebnf, self.structural_tag, self.choice

    @property
    def size(self) -> int:
        """Characters of texts and entries of lists: how much work it is to look at them all."""
        size = len(self.stop_token_ids) + len(self.logit_bias or ()) + len(self.allowed_token_ids or ())
        if self.has_text_stops or self.bad_words:
            size += sum(map(len, (*self.stop, *self.stop_regex, *self.bad_words)))
        if self.has_grammar:
            size += sum(
                sum(map(len, each)) if isinstance(each, tuple) else len(each or "") for each in self._grammars()
            )
        return size

    @property
    def has_penalties(self) -> bool:
        """True if logits depend on the tokens so far."""
        return self.frequency_penalty != 0.0 or self.presence_penalty != 0.0 or self.penalises_repetition

    @property
    def penalises_repetition(self) -> bool:
        """True if ``repetition_penalty`` has an effect."""
        return self.repetition_penalty != 1.0 and self.repetition_window != 0

    @property
    def penalises_prompt(self) -> bool:
        """True if tokens of the prompt may be penalised."""
        return self.penalises_repetition and self.repetition_window is not None

    @property
    def has_moving_window(self) -> bool:
        """True if penalised tokens can leave the window."""
        return self.penalises_prompt and self.repetition_window != ALL_OF_CONTEXT

    def validate(
        self, vocab_size: int | None, *, named: ClientName = in_sampling_params, tag_is_ours: bool = False
    ) -> None:
        """Check every range, without those that need the model's ``vocab_size`` if it is ``None``.

        A structural tag may have been made around what a client has sent if ``tag_is_ours``. Raises
        :class:`BadRequest`, naming the first field that is out of range.
        """

        def refuse(field: str, rule: str) -> BadRequest:
            value = getattr(self, field)
            shown = json.dumps(value, ensure_ascii=False) if isinstance(value, (tuple, dict)) else repr(value)
            shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
            return BadRequest(f"{named(field)} must be {rule}, got {shown}", param=named(field))

        for field, bounds in RANGES.items():
            value = getattr(self, field)
            # Comparisons with NaN are false, so that it is within no bounds.
            if value is not None and not bounds.least <= value <= bounds.most:
                raise refuse(field, bounds.rule)
        if self.top_k == 0:
            raise refuse("top_k", RANGES["top_k"].rule)
        if self.max_new_tokens is not None and self.min_new_tokens > self.max_new_tokens:
            raise refuse("min_new_tokens", f"at most {named('max_new_tokens')} ({self.max_new_tokens})")
        has_lists = self.stop or self.stop_token_ids or self.stop_regex or self.logit_bias or self.bad_words
        if has_lists or self.allowed_token_ids is not None:
            self._validate_lists(vocab_size, refuse)
        if self.has_grammar:
            self._validate_grammar(named, tag_is_ours=tag_is_ours)

    def _validate_lists(self, vocab_size: int | None, refuse: Callable[[str, str], BadRequest]) -> None:
        """Check what most requests leave empty."""
        if self.stop:
            if len(self.stop) > MAX_STOP_STRINGS:
                raise refuse("stop", f"at most {MAX_STOP_STRINGS} strings")
            if not all(0 < len(s) <= MAX_STOP_STRING_CHARS for s in self.stop):
                raise refuse("stop", f"non-empty strings of at most {MAX_STOP_STRING_CHARS} characters")
        if self.stop_regex:
            if len(self.stop_regex) > MAX_STOP_STRINGS:
                raise refuse("stop_regex", f"at most {MAX_STOP_STRINGS} patterns")
            if not all(0 < len(s.encode("utf-8", "surrogatepass")) <= MAX_STOP_REGEX_BYTES for s in self.stop_regex):
                raise refuse("stop_regex", f"non-empty patterns of at most {MAX_STOP_REGEX_BYTES} bytes")
        if len(self.stop_token_ids) > MAX_STOP_TOKEN_IDS:
            raise refuse("stop_token_ids", f"at most {MAX_STOP_TOKEN_IDS} ids")
        if self.logit_bias:
            if len(self.logit_bias) > MAX_LOGIT_BIAS_ENTRIES:
                raise refuse("logit_bias", f"at most {MAX_LOGIT_BIAS_ENTRIES} entries")
            if not all(-100.0 <= bias <= 100.0 for bias in self.logit_bias.values()):
                raise refuse("logit_bias", "numbers in [-100, 100]")
        if self.bad_words:
            if len(self.bad_words) > MAX_BAD_WORDS or sum(map(len, self.bad_words)) > MAX_BAD_WORD_CHARS:
                rule = f"at most {MAX_BAD_WORDS} strings of at most {MAX_BAD_WORD_CHARS} characters together"
                raise refuse("bad_words", rule)
            if not all(word.strip() for word in self.bad_words):
                raise refuse("bad_words", "strings that are not blank")
        if self.allowed_token_ids is not None and not 1 <= len(self.allowed_token_ids) <= MAX_ALLOWED_TOKEN_IDS:
            raise refuse("allowed_token_ids", f"1 to {MAX_ALLOWED_TOKEN_IDS} ids")
        if vocab_size is not None:
            for field in ("stop_token_ids", "logit_bias", "allowed_token_ids"):
                wrong = next((token for token in getattr(self, field) or () if not 0 <= token < vocab_size), None)
                if wrong is not None:
                    raise refuse(field, f"token ids in [0, {vocab_size}), which {wrong} is not")

    def _validate_grammar(self, named: ClientName, *, tag_is_ours: bool) -> None:
        """Check what can be said of a grammar without compiling it."""

        def refuse(kind: str, problem: str) -> BadRequest:
            return BadRequest(f"{named(kind)} {problem}", param=named(kind), code="invalid_grammar")

        if self._grammars().count(None) < len(GRAMMAR_KINDS) - 1:
            first, second, *_ = (kind for kind in GRAMMAR_KINDS if getattr(self, kind) is not None)
            kinds = ", ".join(GRAMMAR_KINDS)
            raise refuse(second, f"cannot be combined with {first}: set at most one of {kinds}")
        if self.choice is not None and not (
            1 <= len(self.choice) <= MAX_CHOICES and all(self.choice) and len(set(self.choice)) == len(self.choice)
        ):
            raise refuse("choice", f"must be 1 to {MAX_CHOICES} different strings that are not empty")
        try:
            spec = self.grammar
        except UnicodeEncodeError:
            raise refuse("choice", _HALF_PAIR) from None
        assert spec is not None
        problem = _grammar_problem(spec, tag_is_ours and spec.kind == "structural_tag")
        if problem is not None:
            raise refuse(spec.kind, problem)

    @classmethod
    def from_dict(cls, data: dict[str, Any], *, named: ClientName = in_sampling_params) -> SamplingParams:
        """Convert a JSON object, checking types but not ranges.

        ``null`` for any field means its default; ``stop``, ``stop_token_ids`` and ``stop_regex`` accept one value or a
        list; ``max_new_tokens: null`` means "until the context ends". ``json_schema`` and ``structural_tag`` accept an
        object as well as its JSON text; an empty text or list in a grammar field means none. Raises
        :class:`BadRequest`, naming the field that is unknown or has the wrong type.
        """
        values: dict[str, Any] = {}
        for name, value in data.items():
            if name not in _FIELD_TYPES:
                meant = _OPENAI_NAMES.get(name) or next(iter(get_close_matches(name[:64], _FIELD_TYPES, 1, 0.7)), None)
                hint = "" if meant is None else f"; did you mean {meant}?"
                message = f"{named(name)} is not a known sampling parameter{hint}"
                raise BadRequest(message, param=named(name), code="unknown_parameter")
            if value is None and name != "max_new_tokens":
                continue
            if name in GRAMMAR_KINDS and value in ("", [], ()):
                continue
            if name == "json_schema" and isinstance(value, (dict, bool)):
                value = _json_text(value, named(name))  # noqa: PLW2901
            if name == "structural_tag" and isinstance(value, dict):
                value = _json_text(value, named(name))  # noqa: PLW2901
            is_single = name in _SCALAR_OR_LIST and not isinstance(value, (list, tuple))
            if is_single:
                value = (value,)  # noqa: PLW2901
            try:
                # Not strict: keys that are numbers, and whole numbers that are written like 2.0.
                strict = name != "logit_bias" and not isinstance(value, float)
                values[name] = msgspec.convert(value, _FIELD_TYPES[name], strict=strict)
            except msgspec.ValidationError:
                raise wrong_field(named(name), value, _FIELD_TYPES[name], is_wrapped=is_single) from None
        return cls(**values)


_FIELD_TYPES: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(SamplingParams)}
_OPENAI_NAMES = {
    "max_tokens": "max_new_tokens",
    "max_completion_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "seed": "sampling_seed",
}
_SCALAR_OR_LIST = frozenset({"stop", "stop_token_ids", "stop_regex"})

_HALF_PAIR = "holds half a surrogate pair, which no text can match"
# A string without an end goes to the end of the text: else each quote in it would be tried as the beginning of one.
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = bytes.maketrans(b"[{]}", bytes([2, 2, 0, 0]))
"""From brackets to one more than the step that each is, up or down."""


def _grammar_problem(spec: GrammarSpec, is_ours: bool) -> str | None:
    """Find what is wrong with a grammar without compiling it; ``None`` if nothing is."""
    try:
        size = len(spec.text.encode())
    except UnicodeEncodeError:
        return _HALF_PAIR
    if size == 0:
        return "must not be empty"
    most = MAX_TAG_BYTES if is_ours else MAX_GRAMMAR_BYTES
    if size > most:
        return f"has {size} bytes, and at most {most} are allowed"
    if spec.kind not in ("json_schema", "structural_tag"):
        return None
    max_depth = MAX_TAG_DEPTH if is_ours else MAX_GRAMMAR_DEPTH
    return json_problem(spec.text, may_be_boolean=spec.kind == "json_schema", max_depth=max_depth)


def json_problem(text: str, *, may_be_boolean: bool, max_depth: int = MAX_GRAMMAR_DEPTH) -> str | None:
    """Find what keeps a text from being a JSON object (or boolean) of bounded depth; ``None`` if nothing does."""
    # By a digest: the texts themselves would stay in memory.
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
    key = (digest, may_be_boolean, max_depth)
    with _judging:
        if key in _judged:
            return _judged[key]
    problem = _json_problem(text, may_be_boolean=may_be_boolean, max_depth=max_depth)
    with _judging:
        _judged[key] = problem
        if len(_judged) > _MAX_JUDGED:
            del _judged[next(iter(_judged))]
    return problem


_MAX_JUDGED = 256
_judged: dict[tuple[bytes, bool, int], str | None] = {}
"""Results for the latest texts."""
_judging = Lock()


def _json_problem(text: str, *, may_be_boolean: bool, max_depth: int) -> str | None:
    outside = _STRING.sub("", text).encode("utf-8", "surrogatepass")
    steps = outside.translate(_STEPS, _NO_BRACKETS)
    deepest = max(map(sub, accumulate(steps), count(1)), default=0)
    if deepest > max_depth:
        return f"is nested {deepest} levels deep, and at most {max_depth} are allowed"
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        return f"is not valid JSON: {error}"
    if isinstance(value, dict) or (may_be_boolean and isinstance(value, bool)):
        return None
    return f"must be the JSON text of an object{' or a boolean' if may_be_boolean else ''}"


def _json_text(value: Any, param: str) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, msgspec.EncodeError) as error:
        raise BadRequest(f"{param} cannot be written as JSON: {error}", param=param) from None
