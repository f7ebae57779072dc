"""What a constraint lets through is what the parser of the same dialect reads as calls."""

from __future__ import annotations

import jsonschema
import numpy as np
import pytest

from bough.parsers.base import ToolSpec
from bough.parsers.tool_formats import TOOL_FORMATS
from tests.constrained.following import allows, bundled_backend, random_walk, spec_of
from tests.parsers.parsing import TOOLS, calls, content, dialect, parser, reasoning, run
from tests.parsers.samples import TWO_CALLS

# Cities to choose from: a random way through free text finds no end.
SCHEMA = {
    **TOOLS[0].parameters,
    "properties": {**TOOLS[0].parameters["properties"], "city": {"type": "string", "enum": ["Wien", 'São "Paulo"']}},
}
CHOOSING = (ToolSpec("get_weather", None, SCHEMA, False), TOOLS[1])
SCHEMAS = {tool.name: tool.parameters for tool in CHOOSING}
# Models also write these forms, which they are not constrained to: with words of Python, or without all markers.
OTHER_FORMS = ("llama4", "mistral", "pythonic", "qwen3_coder", "gpt-oss")


@pytest.mark.parametrize("name", [*TOOL_FORMATS, "none"])
@pytest.mark.parametrize(("only", "parallel"), [(None, True), (None, False), ("get_weather", True), ("now", False)])
def test_constrained_answers_are_calls_with_arguments_that_fit(name: str, only: str | None, parallel: bool) -> None:
    made = dialect(name)
    grammar = bundled_backend().compile(
        spec_of("structural_tag", made.constraint(CHOOSING, name=only, parallel=parallel))
    )
    rng = np.random.default_rng(5)
    walked = [random_walk(grammar, rng, eager=eager) for eager in (True, True, True, False, False)]
    assert any(walked)
    for text in filter(None, walked):
        reader = made.parser(CHOOSING, parse_tools=True, separate_reasoning=True, thinking=False, forced=True)
        assert reader is not None
        events = run(reader, [text])
        assert content(events) == ""
        found = calls(events)
        assert found
        assert len(found) == 1 or (parallel and only is None)
        for called, arguments in found:
            assert only in (None, called)
            jsonschema.validate(arguments, SCHEMAS[called])


@pytest.mark.parametrize("name", sorted(TOOL_FORMATS.keys() - set(OTHER_FORMS)))
def test_a_constraint_lets_through_what_models_write(name: str) -> None:
    made = dialect(name, "qwen3")
    text = TWO_CALLS[name][-1 if name == "glm47" else 0]
    free = bundled_backend().compile(spec_of("structural_tag", made.constraint(TOOLS, name=None, parallel=True)))
    assert allows(free, text)
    assert allows(free, f"<think>\nHm.\n</think>\n\n{text}")
    assert not allows(free, "Hm.")
    inside = made.constraint(TOOLS, name=None, parallel=True, thinking=True)
    grammar = bundled_backend().compile(spec_of("structural_tag", inside))
    assert allows(grammar, f"Hm.\n</think>\n\n{text}")
    events = run(parser(made, thinking=True), [f"Hm.\n</think>\n\n{text}"])
    assert reasoning(events) == "Hm."
    assert len(calls(events)) == 2
