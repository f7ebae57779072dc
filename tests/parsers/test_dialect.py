from __future__ import annotations

import json
from typing import Any

import pytest

from bough.errors import BadRequest, ConfigError
from bough.parsers.base import Content, Reasoning, ToolSpec, parse_tools
from bough.parsers.dialect import AUTO, FALLBACK_TOOL_FORMAT, NONE, Dialect, make_dialect, make_tool_dialect
from bough.parsers.reasoning import REASONING_FORMATS, Thoughts
from bough.parsers.structural import MAX_CALLS, const
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.sampling.sampling_params import LENIENTLY
from tests.constrained.following import allows, bundled_backend, spec_of
from tests.parsers.parsing import TOOLS, calls, content, dialect, parser, reasoning, run
from tests.parsers.samples import TWO_CALLS

# What shows the family in its template, and nothing else of it.
TEMPLATES = {
    "gpt-oss": ("{{- '<|start|>assistant<|channel|>analysis<|message|>' }}", "gpt-oss", "gpt-oss"),
    "kimi-k2": ("<|tool_calls_section_begin|><|tool_call_begin|>{{ c.id }}", "kimi_k2", None),
    "kimi-k2-thinking": ("<think></think><|tool_calls_section_begin|>", "kimi_k2", "kimi_k2"),
    "kimi-vl": ("◁think▷{{ m }}◁/think▷", None, "kimi"),
    "deepseek-v3": ("<｜Assistant｜><｜tool▁calls▁begin｜>{{ '```json' }}", "deepseekv3", None),
    "deepseek-v3.1": (
        "<｜tool▁calls▁begin｜>{{ '<｜Assistant｜></think>' }}",
        "deepseekv31",
        "deepseek-v3",
    ),
    "deepseek-r1": ("<｜tool▁calls▁begin｜>```json {{ '<｜Assistant｜><think>\\n' }}", "deepseekv3", "deepseek-v3"),
    "glm-4.6": ("<tool_call>{name}\n<arg_key>{k}</arg_key>\n<arg_value><think></think>", "glm45", "glm45"),
    "glm-4.7": ("<tool_call>{name}<arg_key>{k}</arg_key><arg_value><think></think>", "glm47", "glm45"),
    "qwen3-coder": ("<|im_start|><tool_call>\n<function=f>\n<parameter=p>", "qwen3_coder", None),
    "mistral": ("[TOOL_CALLS] [{{ c }}]", "mistral", None),
    "phi-4-mini": ("{{ '<|tool|>' + m['tools'] + '<|/tool|>' }}", "phi4_mini", None),
    "magistral": ("[THINK]{{ m }}[/THINK][TOOL_CALLS]{{ name }}[ARGS]", "mistral", "mistral"),
    "llama-3": ("<|start_header_id|>{{ '<|python_tag|>' }}", "llama3", None),
    "llama-3.2": ("<|start_header_id|>{{ '{\"name\": ' ~ n ~ ', \"parameters\": ' ~ a ~ '}' }}", "llama3", None),
    "hermes-3": ('<|start_header_id|><tool_call>{"name": "parameters": }</tool_call>', "hermes", None),
    "llama-4": ("<|header_start|><|python_start|>[f(x=1)]<|python_end|>", "llama4", None),
    "qwen3": ("<|im_start|><tool_call>{{ '<think>\n\n</think>' }}{{ enable_thinking }}", "qwen25", "qwen3"),
    "hermes": ("<tool_call>{{ c | tojson }}</tool_call>", "hermes", None),
    "plain": ("{{ m.content }}", None, None),
}


def test_a_template_shows_its_dialect() -> None:
    for family in TEMPLATES:
        template, tools, thoughts = TEMPLATES[family]
        for asked in (None, AUTO):
            found = make_dialect(template, tool_call_parser=asked, reasoning_parser=asked)
            assert (found.tool_format.name if found.tool_format else None) == tools
            assert (found.reasoning_format.name if found.reasoning_format else None) == thoughts


def test_a_name_overrides_the_template() -> None:
    template = TEMPLATES["qwen3"][0]
    found = make_dialect(template, tool_call_parser="kimi_k2", reasoning_parser="glm45")
    assert found.tool_format is TOOL_FORMATS["kimi_k2"]
    assert found.reasoning_format is REASONING_FORMATS["glm45"]
    assert make_dialect(template, tool_call_parser=NONE, reasoning_parser=NONE) == Dialect(None, None)
    with pytest.raises(ConfigError, match=r"nobody.*hermes"):
        make_dialect(template, tool_call_parser="nobody")
    with pytest.raises(ConfigError, match=r"nobody.*qwen3"):
        make_dialect(template, reasoning_parser="nobody")


def test_whoever_thinks_on_a_channel_calls_on_one() -> None:
    found = make_dialect(None, reasoning_parser="gpt-oss")
    assert found.tool_format is not None
    assert found.tool_format.name == "gpt-oss"


def test_the_prompt_shows_what_becomes_of_the_thoughts() -> None:
    cases = [
        ("qwen3", "<|im_start|>assistant\n", Thoughts.POSSIBLE),
        ("qwen3", "<|im_start|>assistant\n<think>\n", Thoughts.BEGUN),
        ("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", Thoughts.NONE),
        ("deepseek-r1", "<｜Assistant｜>", Thoughts.BEGUN),
        ("deepseek-r1", "<｜Assistant｜></think>", Thoughts.NONE),
        ("qwen3-thinking", "<|im_start|>assistant\n", Thoughts.BEGUN),
        ("mistral", "[INST]Hi[/INST]", Thoughts.POSSIBLE),
        ("gpt-oss", "<|start|>assistant", Thoughts.POSSIBLE),
    ]
    for name, prompt, thoughts in cases:
        assert REASONING_FORMATS[name].thoughts(prompt) is thoughts


def test_an_answer_that_goes_on_is_in_thoughts_if_its_message_is() -> None:
    cases = [
        ("It", "What does <think> do?<｜Assistant｜>It", Thoughts.NONE),
        ("It", "<｜Assistant｜><think>\nIt", Thoughts.BEGUN),
        ("It ", "<｜Assistant｜><think>\n\n</think>\n\nIt", Thoughts.NONE),
        ("<think>\nHm", "<｜Assistant｜><think>\nHm", Thoughts.BEGUN),
        ("<think>\nHm.</think> So", "Hm.</think> So", Thoughts.NONE),
        ("", "<｜Assistant｜><think>\nHm", Thoughts.BEGUN),
        ("a text longer than what is looked at", "longer than what is looked at", Thoughts.NONE),
    ]
    for text, prompt, thoughts in cases:
        assert REASONING_FORMATS["deepseek-r1"].goes_on(text, prompt) is thoughts


def test_a_tool_may_leave_open_what_its_schema_says() -> None:
    parameters = {"type": "object", "properties": None, "required": None}
    (tool,) = parse_tools([{"type": "function", "function": {"name": "now", "parameters": parameters}}])
    assert tool.parameters == {"type": "object"}
    called = dialect("hermes").constraint([tool], name=None, parallel=False)
    grammar = bundled_backend().compile(spec_of("structural_tag", called))
    assert allows(grammar, '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>')


def test_thoughts_that_the_prompt_has_opened() -> None:
    for text in ("Hm.\n</think>\n\nYes.", "<think>\nHm.</think>Yes."):
        events = run(parser(dialect(NONE, "qwen3"), thinking=True), text)
        assert events == [Reasoning("Hm."), Content("Yes.")]


def test_without_a_mark_an_answer_has_no_thoughts() -> None:
    for text in ("Yes.", " <b>Yes", "\n\n<thin", "Hm.</think>Yes."):
        assert content(run(parser(dialect(NONE, "qwen3")), text)) == text


def test_thoughts_without_an_end_are_thoughts() -> None:
    assert run(parser(dialect(NONE, "qwen3")), "<think>\nand so on </thin") == [Reasoning("and so on </thin")]


def test_thoughts_that_are_not_separated_stay_as_they_stand() -> None:
    text = "<think>\nHm <tool_call>.\n</think>\n\nYes.\n"
    made = dialect("hermes", "qwen3")
    assert run(parser(made, separate_reasoning=False), text) == [Content(text)]
    assert made.parser(TOOLS, parse_tools=False, separate_reasoning=False, thinking=False) is None


def test_a_marker_that_thoughts_only_speak_of_is_part_of_them() -> None:
    for text in ("<think>A <tool_call> here.</think>Yes.", "<think>A <tool_call> here.\n</think>Yes.</think>"):
        events = run(parser(dialect("hermes", "qwen3")), text)
        assert reasoning(events) == "A <tool_call> here."
        assert calls(events) == []
        assert content(events).startswith("Yes.")


def test_special_tokens_are_needed_where_the_marks_are_some() -> None:
    assert dialect("kimi_k2").needs_special_tokens
    assert dialect(NONE, "mistral").needs_special_tokens
    ordinary = dialect("hermes", "qwen3")
    assert not ordinary.needs_special_tokens
    assert not ordinary.with_special_tokens(["<|im_end|>", "<tool_response>"]).needs_special_tokens
    for mark in ("<tool_call>", "<think>", "</think>"):
        assert ordinary.with_special_tokens(["<|im_end|>", mark]).needs_special_tokens
    assert not Dialect().with_special_tokens(["<think>"]).needs_special_tokens


# --- constraints ------------------------------------------------------------------------------------------------------


def constraint(made: Dialect, **options: Any) -> Any:
    tag = json.loads(made.constraint(TOOLS, **{"name": None, "parallel": True, **options}))
    assert tag["type"] == "structural_tag"
    return tag["format"]


def test_required_calls_are_one_or_more_tags() -> None:
    for name in TOOL_FORMATS:

        def separated(form: Any) -> Any:
            return next(each for each in form["elements"] if "tags" in each) if "elements" in form else form

        several = separated(constraint(dialect(name)))
        assert several["at_least_one"] is True
        assert several["at_most"] == (1 if name == "gpt-oss" else MAX_CALLS)
        assert len(several["tags"]) == len(TOOLS)
        assert separated(constraint(dialect(name), parallel=False))["at_most"] == 1
        named = separated(constraint(dialect(name), name="now"))
        assert named["at_most"] == 1
        [tag] = named["tags"]
        assert "now" in tag["begin"]


def test_constrained_arguments_are_an_object_and_enforced_leniently_unless_strict() -> None:
    for strict in [True, False]:
        tool = ToolSpec("f", None, {"properties": {"a": {"type": "string"}}}, strict)
        [tag] = json.loads(dialect("hermes").constraint([tool], name=None, parallel=False))["format"]["tags"]
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        assert tag["content"]["json_schema"] == (schema if strict else {**LENIENTLY, **schema})


def test_required_calls_come_behind_thoughts_or_end_them() -> None:
    for tools in ["hermes", "kimi_k2", "qwen3_coder", "deepseekv31", "seed_oss"]:
        made = dialect(tools, "qwen3")
        call = TWO_CALLS[tools][0]
        for thoughts, before in ((Thoughts.BEGUN, ""), (Thoughts.POSSIBLE, "<think>")):
            tag = made.constraint(TOOLS, name=None, parallel=True, thoughts=thoughts)
            grammar = bundled_backend().compile(spec_of("structural_tag", tag))
            first = call if tools not in ("qwen3_coder", "seed_oss") else call.replace("True", "true")
            assert allows(grammar, f"{before}Hm.\n</think>\n\n{first}")
            assert allows(grammar, f"{before}Hm. {first}")
            assert not allows(grammar, f"{before}Hm.")
            assert not allows(grammar, f"{before}Hm.</think>\n\nSo.")
            assert allows(grammar, first)
            structured = made.structured(const("7"), with_calls=TOOLS, parallel=True, thoughts=thoughts)
            grammar = bundled_backend().compile(spec_of("structural_tag", structured))
            for answer in ("</think>7", f"</think>{first}", first):
                assert allows(grammar, f"{before}Hm. {answer}")
            assert not allows(grammar, f"{before}Hm. 7")


def test_mistral_models_are_constrained_to_the_form_that_they_know() -> None:
    for family, begin in (("mistral", '{"name": "now", "arguments": '), ("magistral", "[TOOL_CALLS]now[ARGS]")):
        made = make_dialect(TEMPLATES[family][0], reasoning_parser=NONE)
        assert f'"{json.dumps(begin)[1:-1]}"' in made.constraint(TOOLS, name="now", parallel=False)


def test_a_model_without_a_format_can_be_made_to_call() -> None:
    made = Dialect()
    assert constraint(made)["elements"][0]["value"] == "["
    read = made.parser(TOOLS, parse_tools=True, separate_reasoning=True, thinking=False, forced=True)
    assert read is not None
    text = '[{"name": "get_weather", "parameters": {"city": "Wien"}}, {"name": "now", "parameters": {}}]'
    assert calls(run(read, text)) == [("get_weather", {"city": "Wien"}), ("now", {})]


# --- descriptions of tools ----------------------------------------------------------------------------------------


def test_a_tool_is_read_as_openai_describes_it() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": True}, "required": ["a"]}
    function = {"name": "a.b-c:d/e_9", "description": "x", "parameters": schema, "strict": True}
    assert ToolSpec.from_openai({"type": "function", "function": function}) == ToolSpec(
        "a.b-c:d/e_9", "x", schema, True
    )
    bare = ToolSpec.from_openai({"type": "function", "function": {"name": "a"}})
    assert bare == ToolSpec("a", None, {"type": "object", "properties": {}}, False)


def test_what_is_wrong_with_a_tool_is_named() -> None:
    cases = [
        (7, "tools[0]"),
        ({"type": "web_search"}, "tools[0].type"),
        ({"type": "function"}, "tools[0].function"),
        ({"function": {}}, "tools[0].function.name"),
        ({"function": {"name": ""}}, "tools[0].function.name"),
        ({"function": {"name": "a b"}}, "tools[0].function.name"),
        ({"function": {"name": "a<b"}}, "tools[0].function.name"),
        ({"function": {"name": "a" * 257}}, "tools[0].function.name"),
        ({"function": {"name": "a", "description": 1}}, "tools[0].function.description"),
        ({"function": {"name": "a", "strict": "yes"}}, "tools[0].function.strict"),
        ({"function": {"name": "a", "parameters": [1]}}, "tools[0].function.parameters"),
        ({"function": {"name": "a", "parameters": {"type": "string"}}}, "tools[0].function.parameters.type"),
        ({"function": {"name": "a", "parameters": {"properties": [1]}}}, "tools[0].function.parameters.properties"),
        (
            {"function": {"name": "a", "parameters": {"properties": {"x": 1}}}},
            "tools[0].function.parameters.properties.x",
        ),
        ({"function": {"name": "a", "parameters": {"required": [1]}}}, "tools[0].function.parameters.required"),
    ]
    for tool, param in cases:
        with pytest.raises(BadRequest) as error:
            parse_tools([tool])
        assert error.value.param == param
        assert param in error.value.message


def test_arguments_are_an_object_however_their_schema_says_so() -> None:
    cases = [
        ([], {"type": "object", "properties": {}}),
        ({"type": None, "properties": None, "required": None, "$defs": None, "items": None}, {}),
        ({"type": "", "properties": []}, {"type": "object"}),
        ({"type": ["object", "null"], "properties": {"x": None}}, {"type": "object", "properties": {"x": {}}}),
        ({"type": "OBJECT", "properties": {"x": {"type": "STRING"}}}, {"properties": {"x": {"type": "STRING"}}}),
        ({"type": "dict", "title": None}, {"type": "object", "title": None}),
    ]
    for parameters, read in cases:
        (tool,) = parse_tools([{"type": "function", "function": {"name": "a", "parameters": parameters}}])
        assert tool.arguments_schema.items() >= {"type": "object", **read}.items()
        assert all(tool.parameters.get(key, 0) is not None for key in ("type", "properties", "required", "$defs"))


def test_calls_of_carelessly_described_tools_can_be_required() -> None:
    for name in sorted(set(TOOL_FORMATS) - {"none"}):
        careless = {
            "type": "OBJECT",
            "properties": {
                **{kind: {"type": kind} for kind in ("STRING", "int", "list", "any", "")},
                **{key: {key: None} for key in ("enum", "items", "properties", "anyOf", "required", "type", "$ref")},
                "x": None,
            },
            "required": ["STRING"],
            "additionalProperties": None,
            "$defs": [],
        }
        tools = parse_tools([{"type": "function", "function": {"name": "a", "parameters": careless}}])
        constraint = dialect(name, "none").constraint(tools, name="a", parallel=False)
        bundled_backend().compile(spec_of("structural_tag", constraint))


def test_strings_stand_without_quotes_whatever_their_type_is_called() -> None:
    for kind in ["string", "STRING", "str"]:
        parameters = {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
        tools = parse_tools([{"type": "function", "function": {"name": "f", "parameters": parameters}}])
        for name, call in (
            ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=x>\nRome\n</parameter>\n</function>\n</tool_call>"),
            ("glm45", "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>"),
        ):
            constraint = dialect(name, "none").constraint(tools, name="f", parallel=False)
            assert allows(bundled_backend().compile(spec_of("structural_tag", constraint)), call)


def test_two_tools_cannot_have_one_name() -> None:
    tool = {"type": "function", "function": {"name": "a"}}
    with pytest.raises(BadRequest) as error:
        parse_tools([tool, tool])
    assert error.value.param == "tools[1].function.name"


# --- names ------------------------------------------------------------------------------------------------------------


SGLANG_TOOL_PARSERS = (
    "deepseekv3 deepseekv31 glm glm45 glm47 gpt-oss hermes kimi_k2 llama3 mistral pythonic qwen qwen25 qwen3_coder"
)
SGLANG_REASONING_PARSERS = "deepseek-r1 deepseek-v3 glm45 gpt-oss kimi kimi_k2 mistral qwen3 qwen3-thinking"


def test_tool_formats_have_the_names_that_sglang_gives_them() -> None:
    for name in SGLANG_TOOL_PARSERS.split():
        found = make_dialect(None, tool_call_parser=name).tool_format
        assert found is not None
        assert found.name == name


def test_reasoning_formats_have_the_names_that_sglang_gives_them() -> None:
    for name in SGLANG_REASONING_PARSERS.split():
        found = make_dialect(None, reasoning_parser=name).reasoning_format
        assert found is not None
        assert found.name == name


def test_formats_that_are_not_known_are_refused_with_those_that_are() -> None:
    for name in ["minimax-m2", "step3", "gemma4", "deepseekv32", "Hermes", "hermes "]:
        with pytest.raises(ConfigError) as error:
            make_dialect(None, tool_call_parser=name)
        assert name in error.value.message
        assert ", ".join(TOOL_FORMATS) in error.value.message


def test_tools_have_a_format_even_if_the_template_has_no_place_for_them_unless_none_is_asked_for() -> None:
    def name_of(template: str | None, asked: str | None) -> str | None:
        found = make_tool_dialect(template, tool_call_parser=asked).tool_format
        return None if found is None else found.name

    assert name_of(None, None) == name_of("{{ messages }}", AUTO) == FALLBACK_TOOL_FORMAT
    assert name_of("[TOOL_CALLS]", None) == "mistral"
    assert name_of("[TOOL_CALLS]", "kimi_k2") == "kimi_k2"
    assert name_of(None, NONE) is None
