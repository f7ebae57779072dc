"""The pages of docs/ on endpoints and on limits, made from the declarations of routes and bodies."""

from __future__ import annotations

import re
from typing import Any, get_type_hints

import msgspec

from bough import ceilings
from bough.config.options import Option, options_by_key
from bough.config.server_args import ServerArgs
from bough.constrained.grammar_bounds import (
    MASK_SECONDS_PER_TOKEN,
    MAX_BUILD_SECONDS,
    MAX_COMPILED_BYTES,
    MAX_GROWN_BYTES,
    MAX_HELD_BYTES,
    MAX_HOLD_SECONDS,
    MAX_MASK_SECONDS,
    MAX_MEAN_MASK_SECONDS,
)
from bough.constrained.structural_tag import MAX_PARTS
from bough.entrypoints.chat.tools import MAX_TOOLS
from bough.entrypoints.http.bodies import BODY_TIMEOUT, MIN_PROGRESS
from bough.entrypoints.http.connection import (
    HEAD_TIMEOUT,
    MAX_DISCARDED_BYTES,
    MAX_PIPELINED,
    SLICE_BYTES,
    WRITE_TIMEOUT,
)
from bough.entrypoints.http.fields import MAX_ELEMENTS, MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.json_body import LARGE_BODY_BYTES, MAX_DEPTH, MAX_MEMBERS, MAX_SMALL_DEPTH
from bough.entrypoints.http.native.protocol import SAMPLING_PARAMS
from bough.entrypoints.http.openai.decisions import MAX_LEVELS, MAX_OPTIONS
from bough.entrypoints.http.openai.messages import MAX_TOOL_CALLS
from bough.entrypoints.http.openai.protocol import MAX_MESSAGES
from bough.entrypoints.http.openai.protocol import MAX_TOP_LOGPROBS as MAX_OPENAI_TOP_LOGPROBS
from bough.entrypoints.http.responses.handlers import MAX_ITEMS_LISTED
from bough.entrypoints.http.responses.protocol import MAX_METADATA_ENTRIES, MAX_USER_CHARS
from bough.entrypoints.http.route import Route
from bough.entrypoints.http.routes import ROUTES
from bough.entrypoints.http.server import HANDSHAKE_TIMEOUT, KEEP_ALIVE
from bough.entrypoints.http.shared_fields import MAX_MODEL_NAME_CHARS
from bough.managers.io_struct import (
    MAX_CACHE_KEY_CHARS,
    MAX_RID_CHARS,
    MAX_TOKEN_IDS_LOGPROB,
    MAX_TOP_LOGPROBS,
    UNSUPPORTED_SAMPLING_PARAMS,
)
from bough.managers.prompt_encoder import CHARS_PER_TOKEN, MAX_CHARS
from bough.managers.sessions import MAX_TURNS
from bough.other_engines import Unsupported
from bough.parsers.stream import MAX_HELD_CHARS
from bough.parsers.structural import MAX_CALLS
from bough.sampling.sampling_params import (
    MAX_ALLOWED_TOKEN_IDS,
    MAX_BAD_WORD_CHARS,
    MAX_BAD_WORD_TOKENS,
    MAX_BAD_WORDS,
    MAX_GRAMMAR_BYTES,
    MAX_GRAMMAR_DEPTH,
    MAX_LOGIT_BIAS_ENTRIES,
    MAX_PARALLEL_SAMPLES,
    MAX_STOP_REGEX_BYTES,
    MAX_STOP_STRING_CHARS,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
    MAX_TOKENS_PER_BAD_WORD,
    SamplingParams,
)
from bough.tokenization.chat_template import MAX_CALL_ELEMENTS

LIMITS: dict[str, str] = {
    "request body": "`--max-body-size`; beyond it 413",
    "bodies over 64 KiB that are being received, parsed, encoded or kept for answers, together": (
        "`--max-pending-body-size`; beyond it 503, slow ones first"
    ),
    "request line and headers": "`--max-header-size`, `--max-headers`; beyond them 431",
    "path and query": "`--max-url-length`; beyond it 400",
    "time for a handshake, with HTTPS": f"{HANDSHAKE_TIMEOUT:g} s; then the connection is closed",
    "time for request line and headers": f"{HEAD_TIMEOUT:g} s; then the connection is closed",
    "time for a body": f"{BODY_TIMEOUT:g} s for each {MIN_PROGRESS // 1024} KiB; then 408",
    "what a client sends after a refusal": f"{MAX_DISCARDED_BYTES // 2**20} MiB; then the connection is cut",
    "requests of a connection behind the one that is answered": f"{MAX_PIPELINED}, and those in the next "
    f"{SLICE_BYTES} bytes; more are read when there is room",
    "time that a connection may be idle between requests": f"{KEEP_ALIVE} s; a proxy should close its own sooner",
    "time that a client reads nothing (HTTPS: less than 64 KiB)": f"{WRITE_TIMEOUT:g} s; then the connection is cut",
    "prompt and output together": "the context length (`max_model_len` of `/v1/models`)",
    "characters of a text that is a prompt, or measured by `/tokenize` or `/v1/messages/count_tokens`": (
        f"{MAX_CHARS}, or {CHARS_PER_TOKEN} for each token of the context if that is more; measured beyond it 413"
    ),
    "prompts times `n`": f"`--max-outputs-per-request`, at most {MAX_OUTPUTS_PER_REQUEST}",
    "prompts that `/v1/decisions`, `/v1/rerank`, `/v1/score` or `suffix` make of one text and each of many": (
        "`--max-body-size` together; beyond it 413"
    ),
    "waiting requests": "`--max-queued-requests`; beyond it 503",
    "what waits, in memory": "`--max-queued-bytes`; beyond it 503",
    "parameters of a batch, and contexts of its sessions, in memory, where each prompt has a copy": (
        "`--max-queued-bytes`; beyond it 413"
    ),
    "requests with one key at a time": "`--max-requests-per-key`; beyond it 429",
    "fields of a body": str(MAX_MEMBERS),
    "nesting of JSON": f"{MAX_DEPTH} levels, in a body under {LARGE_BODY_BYTES // 1024} KiB {MAX_SMALL_DEPTH}",
    "one field, but for lists of token ids": f"{MAX_ELEMENTS} commas and opening brackets outside strings",
    "`stop`": f"`--max-stop-strings`, at most {MAX_STOP_STRINGS}, of {MAX_STOP_STRING_CHARS} characters",
    "`stop_regex`": f"`--max-stop-strings`, at most {MAX_STOP_STRINGS}, of {MAX_STOP_REGEX_BYTES} bytes",
    "different `stop_regex` patterns of a batch": str(MAX_STOP_STRINGS),
    "`stop_token_ids`": f"{MAX_STOP_TOKEN_IDS} ids",
    "`logit_bias`": f"{MAX_LOGIT_BIAS_ENTRIES} entries",
    "`allowed_token_ids`": f"{MAX_ALLOWED_TOKEN_IDS} ids",
    "`bad_words`": f"{MAX_BAD_WORDS} strings, {MAX_BAD_WORD_CHARS} characters together; "
    f"{MAX_TOKENS_PER_BAD_WORD} tokens each, {MAX_BAD_WORD_TOKENS} together, with and without a space before them",
    "a JSON schema, pattern, grammar or list of choices": "`--max-grammar-size`, at most "
    f"{MAX_GRAMMAR_BYTES // 1024} KiB",
    "nesting of a JSON schema": f"`--max-grammar-depth`, at most {MAX_GRAMMAR_DEPTH}; an object in "
    "`properties` costs two",
    "memory of a compiled grammar": f"{MAX_COMPILED_BYTES >> 20} MiB as it is tried out, {MAX_GROWN_BYTES >> 20} MiB "
    f"as it is used; {MAX_HELD_BYTES >> 20} MiB of all together, beyond it 503",
    "processor time of a grammar": f"{MAX_BUILD_SECONDS:g} s to compile, {MAX_HOLD_SECONDS * 1000:g} ms to accept a "
    f"token, {MAX_MASK_SECONDS * 1000:g} ms for the tokens that may follow, {MAX_MEAN_MASK_SECONDS * 1000:g} ms on "
    f"average, the latter two with {MASK_SECONDS_PER_TOKEN * 1e9:g} ns for each token of the vocabulary; "
    "`--grammar-compile-timeout` in all",
    "parts of a structural tag, or of one made of `tools`": str(MAX_PARTS),
    "a tool call of which function or arguments come out only at its end": f"{MAX_HELD_CHARS // 1024} Ki characters; "
    "what is longer is content",
    "`n`": f"`--max-parallel-samples`, at most {MAX_PARALLEL_SAMPLES}",
    "messages of a conversation": str(MAX_MESSAGES),
    "tools of a request": str(MAX_TOOLS),
    "tool calls of a message": str(MAX_TOOL_CALLS),
    "tool calls of an answer that has to be some (`tool_choice` `required`)": str(MAX_CALLS),
    "options and levels of a question of `/v1/decisions`": f"{MAX_OPTIONS} and {MAX_LEVELS}",
    "`metadata` and `user` of a response": f"{MAX_METADATA_ENTRIES} entries, {MAX_USER_CHARS} characters",
    "responses that are kept": "`--max-stored-responses`, and `--max-stored-response-bytes` together; older ones go",
    "items of a response listed at once": str(MAX_ITEMS_LISTED),
    "values in the arguments of an earlier tool call": str(MAX_CALL_ELEMENTS),
    "alternatives per token": f"`--max-logprobs`, at most {MAX_OPENAI_TOP_LOGPROBS} on OpenAI routes and "
    f"{MAX_TOP_LOGPROBS} on `/generate`",
    "`token_ids_logprob`": f"{MAX_TOKEN_IDS_LOGPROB} ids",
    "logprobs of all outputs, at all positions, with alternatives and `token_ids_logprob`": (
        f"{ceilings.LOGPROB_ENTRIES}; beyond it 413, or outputs without a bound of their own end earlier"
    ),
    "`rid`": f"{MAX_RID_CHARS} characters",
    "`model`": f"{MAX_MODEL_NAME_CHARS} characters",
    "`extra_key`, `cache_salt`": f"{MAX_CACHE_KEY_CHARS} characters",
    "sessions": "`--max-sessions`; beyond it 503",
    "tokens that sessions remember": "`--max-session-tokens` together (beyond it 503), `capacity_of_str_len` in one",
    "turns of a session": str(MAX_TURNS),
    "time without a request in a session": "`--session-timeout`",
}
"""Everything that is bounded, and by what. What is beyond a bound is answered with 400, unless it says otherwise."""

_ERRORS = (
    'The body of an error is `{"error": {"message", "type", "param", "code"}}`, as at OpenAI (SGLang answers with a',
    "flat object on its OpenAI routes); on `/v1/messages` and `/v1/messages/count_tokens` it is",
    '`{"type": "error", "error": {"type", "message"}}`, as at Anthropic; under `/api` it is `{"error": message}`, as',
    "at Ollama. What is refused before its route is known, such as a path that is none or headers that are too large,",
    "is refused in OpenAI's words.",
    "",
    "A field that is not supported yet is refused where it asks for something. Null, and a value that means the same",
    "as leaving it out (`false`, `0`, an empty list; the lists below name them), asks for nothing and is accepted, so",
    "that clients that send all fields with their defaults work.",
    "",
    "After a stream has begun, an error is its last event but for `[DONE]`: the same object, with the status as `code`",
    "on `/generate`. `/v1/messages` has an event `error` and `/v1/responses` the event `response.failed`; neither says",
    "`[DONE]`. Under `/api` the last line is the error.",
)

_REF = "{name}"
_REFUSED = "Not supported yet; refused, unless null or a value that asks for nothing:"


def markdown() -> str:
    """Every route and every field, as Markdown."""
    lines = ["# HTTP endpoints", ""]
    lines += ["| path | methods | what |", "|---|---|---|"]
    for route in ROUTES:
        paths = ", ".join(f"`{path.replace(':path', '')}`" for path in route.paths)
        lines.append(f"| {paths} | {', '.join(route.methods)} | {route.summary} |")
    lines += [
        "",
        "`/docs` and `/openapi.json` of a running server describe answers, status codes and examples as well.",
        "[Limits](limits.md) has the bounds.",
        "",
    ]
    lines += [*_ERRORS, ""]
    described: set[int] = set()
    for route in ROUTES:
        if route.body is not None and id(route.body) not in described:
            described.add(id(route.body))
            lines += _body_section(route, route.body)
    lines += _query_section()
    lines += ["## `sampling_params` of /generate", "", "| field | value | default | what |", "|---|---|---|---|"]
    defaults = {field.name: field.default for field in msgspec.structs.fields(SamplingParams)}
    for name, schema in SAMPLING_PARAMS.items():
        lines.append(f"| `{name}` | {_type(schema, {})} | `{_json(defaults[name])}` | {schema['description']} |")
    lines += ["", _REFUSED, ""]
    lines += [_refused(name, each) for name, each in UNSUPPORTED_SAMPLING_PARAMS.items()]
    lines += [
        "",
        "[Coming from SGLang, vLLM or llama.cpp](coming-from.md#routes-that-are-not-supported) lists routes of other "
        "engines that are not supported.",
    ]
    return "\n".join([*lines, ""])


def limits_markdown() -> str:
    """Every bound, as Markdown."""
    options = options_by_key(ServerArgs)
    lines = ["# Limits", ""]
    lines += ["A request beyond one of these bounds is answered with status 400, or the one that is said here, naming"]
    lines += ["the bound or the field. Flags are those of `bough serve`; the numbers here are their defaults.", ""]
    lines += ["| what | at most |", "|---|---|"]
    for what, limit in LIMITS.items():
        shown = limit
        for flag in dict.fromkeys(re.findall(r"--[a-z-]+", limit)):
            shown = shown.replace(f"`{flag}`", f"`{flag}` ({_with_unit(options[flag[2:]])})")
        lines.append(f"| {what} | {shown} |")
    return "\n".join([*lines, ""])


def _with_unit(option: Option) -> str:
    """The default of an option, with the unit of a bare number."""
    is_bare = option.default_text.replace(".", "").isdigit()
    return f"{option.default_text} {option.declared.unit}".rstrip() if is_bare else option.default_text


def _body_section(route: Route, spec: BodySpec[Any]) -> list[str]:
    shapes = {name: kind for name, kind in spec.schemas.items() if not isinstance(kind, dict)}
    overrides = {name: schema for name, schema in spec.schemas.items() if isinstance(schema, dict)}
    (schema, *inside), components = msgspec.json.schema_components([spec.model, *shapes.values()], ref_template=_REF)
    properties = components[schema["$ref"].rsplit("/", 1)[-1]]["properties"]
    for name, shape in zip(shapes, inside, strict=True):
        kept = {key: properties[name][key] for key in ("description", "default") if key in properties[name]}
        properties[name] = {**shape, **kept}
    lines = [
        f"## {', '.join(route.methods)} {route.path}",
        "",
        "| field | type | default | what |",
        "|---|---|---|---|",
    ]
    required = {field.name for field in msgspec.structs.fields(spec.model) if field.required}
    for name in get_type_hints(spec.model):
        described = {**properties[name], **overrides.get(name, {})}
        default = "required" if name in required else f"`{_json(described.get('default'))}`"
        lines.append(f"| `{name}` | {_type(described, components)} | {default} | {described.get('description', '')} |")
    lines.append("")
    if spec.aliases:
        lines += [", ".join(f"`{alias}` is another name of `{name}`" for alias, name in spec.aliases.items()) + ".", ""]
    if spec.translated:
        names: dict[str, list[str]] = {}
        for name, translation in spec.translated.items():
            names.setdefault(translation.field, []).append(f"`{name}`")
        lines += ["Names of other servers, which are translated; the fields themselves go before them:", ""]
        lines += [f"- `{field}`: {', '.join(others)}" for field, others in names.items()]
        lines.append("")
    if spec.no_effect:
        lines += ["Accepted without effect:", ""]
        lines += [f"- `{name}`: {meaning}" for name, meaning in spec.no_effect.items()]
        lines.append("")
    if spec.refused:
        lines += [_REFUSED, ""]
        lines += [_refused(name, each) for name, each in spec.refused.items()]
        lines.append("")
    return lines


def _refused(name: str, field: Unsupported) -> str:
    """An item of a list of fields that are refused."""
    values = ", ".join(f"`{_json(value)}`" for value in field.neutral)
    facts = [values and f"{values} {'asks' if len(field.neutral) == 1 else 'ask'} for nothing", field.instead]
    return ": ".join(filter(None, (f"- `{name}`", "; ".join(filter(None, facts)))))


def _query_section() -> list[str]:
    lines = ["## Query parameters", "", "| route | name | value | default | what |", "|---|---|---|---|---|"]
    for route in ROUTES:
        paths = ", ".join(f"`{path}`" for path in route.paths)
        for parameter in route.query:
            # No JSON, in which strings would have quotes.
            kind = ", ".join(f"`{word}`" for word in parameter.schema.get("enum", ())) or _type(parameter.schema, {})
            default = parameter.schema.get("default")
            default = "" if default is None else f"`{default if isinstance(default, str) else _json(default)}`"
            lines.append(f"| {paths} | `{parameter.name}` | {kind} | {default} | {parameter.description} |")
    return [*lines, ""]


def _type(schema: dict[str, Any], components: dict[str, Any]) -> str:
    """A JSON schema in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        fields = components.get(name, {}).get("properties", {})
        return "object: " + ", ".join(f"`{field}`" for field in fields)
    if "anyOf" in schema:
        kinds = [_type(each, components) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(kinds)
    if "enum" in schema:
        return ", ".join(f"`{_json(value)}`" for value in schema["enum"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"array of {_type(schema.get('items', {}), components)}{_bounds(schema)}"
    return f"{kind}{_bounds(schema)}"


def _bounds(schema: dict[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "maximum": "at most",
        "exclusiveMinimum": "more than",
        "exclusiveMaximum": "less than",
        "minLength": "characters: at least",
        "maxLength": "characters: at most",
        "minItems": "entries: at least",
        "maxItems": "entries: at most",
    }
    found = [f"{word} {_json(schema[key])}" for key, word in words.items() if key in schema]
    return f" ({', '.join(found)})" if found else ""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
