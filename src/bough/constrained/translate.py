"""Writes grammars in the notation of llguidance: Lark, with JSON schemas inside."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from llguidance import LLMatcher, regex_to_lark

from bough.config.server_args import DEFAULT_JSON_WHITESPACE
from bough.constrained.base import GrammarError
from bough.constrained.ebnf import EbnfError, to_lark
from bough.constrained.ecma_patterns import engine_problem
from bough.constrained.json_schema import Effort, SchemaError, is_lenient, prepare
from bough.constrained.lark_text import lark_string
from bough.constrained.structural_tag import StructuralTagWriter, TagError
from bough.sampling.sampling_params import GrammarSpec

if TYPE_CHECKING:
    from llguidance._lib import JsonCompileOptions


_CONTROL = re.compile(r"\\u00[01]|\\u007f")
"""A control character that JSON can only write by its number, in the text of a schema."""


@dataclass(frozen=True)
class Translator:
    """Translates specifications; ``whitespace_pattern`` may stand between tokens of JSON, and is empty for nothing."""

    whitespace_pattern: str = DEFAULT_JSON_WHITESPACE
    special_tokens: Mapping[str, int] = field(default_factory=dict)

    def translate(self, spec: GrammarSpec) -> str:
        """A grammar for llguidance. Raises :class:`GrammarError` if the specification is wrong or not supported."""
        try:
            return self._translate(spec)
        except (EbnfError, SchemaError, TagError) as error:
            raise GrammarError(str(error), kind=spec.kind) from None
        except RecursionError:
            raise GrammarError("it is nested too deeply", kind=spec.kind) from None
        except ValueError as error:
            # Of the parsers of JSON, here and in the engine: mostly numbers that are no double.
            raise GrammarError(f"it cannot be read: {error}", kind=spec.kind) from None

    def _translate(self, spec: GrammarSpec) -> str:
        if spec.kind == "json_schema":
            schema, options = self.json_schema(json.loads(spec.text))
            return LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
        if spec.kind == "regex":
            return LLMatcher.grammar_from_lark(f"start: {self.regex(spec.text)}\n")
        if spec.kind == "ebnf":
            return LLMatcher.grammar_from_lark(to_lark(spec.text))
        if spec.kind == "choice":
            # As a terminal, whose alternatives may begin alike.
            texts = map(lark_string, json.loads(spec.text))
            return LLMatcher.grammar_from_lark(f"start: CHOICE\nCHOICE: {' | '.join(texts)}\n")
        writer = StructuralTagWriter(self.json_rule, self.regex, self.special_tokens)
        return LLMatcher.grammar_from_lark(writer.write(json.loads(spec.text)))

    def json_schema(self, schema: Any) -> tuple[Any, JsonCompileOptions]:
        """A schema as llguidance takes it, and options for it. Raises :class:`SchemaError` if it is wrong or not
        supported.
        """
        lenient = is_lenient(schema)
        prepared = prepare(schema)
        for effort in islice(Effort, 1, None):
            if not lenient or not engine_problem(prepared, lenient=True):
                break
            prepared = prepare(schema, effort)
        schema = prepared
        if schema is False:
            raise SchemaError("no value follows the schema false")
        if schema is True:
            schema = {}
        options: JsonCompileOptions = {"lenient": lenient, "coerce_one_of": lenient}
        if self.whitespace_pattern:
            options["whitespace_flexible"] = True
            options["whitespace_pattern"] = self.whitespace_pattern
        else:
            options["whitespace_flexible"] = False
            options["item_separator"], options["key_separator"] = ", ", ": "
        if _CONTROL.search(json.dumps(schema)) is None:
            # Else a name that is listed could come once more, with an escape in it.
            options["json_allowed_escapes"] = 'nrbtf\\"'
        return schema, options

    def json_rule(self, schema: Any) -> str:
        """Lark for a value that follows ``schema``."""
        schema, options = self.json_schema(schema)
        return f"%json {json.dumps({**schema, 'x-guidance': options})}"

    def regex(self, pattern: str) -> str:
        r"""Lark for a text that matches ``pattern`` as a whole; ``\d`` and ``\w`` are ASCII, as in JSON Schema."""
        backslashes = len(pattern) - len(pattern.rstrip("\\"))
        if backslashes % 2:
            raise ValueError("the pattern ends in a backslash that escapes nothing")
        return f"/{regex_to_lark(pattern, 'dw')}/"
