"""Write the pages of docs/ that are made from the code.

python tools/generate_docs.py           write them
python tools/generate_docs.py --check   only say which are stale; status 1 if any is
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from bough import other_engines
from bough.cli_commands.completion import TABLES
from bough.config.architectures import BACKBONES, MODEL_MODULES, TESTED_WITH_TRANSFORMERS, TEXT_MODELS
from bough.config.gguf_config import ARCHITECTURES
from bough.config.options import Option, OptionTable, groups_of
from bough.config.ranks import SCHEDULER
from bough.entrypoints.http.openai.names_of_others import OF_CHAT
from bough.ipc.messages import Heartbeat
from bough.observability.metrics import CAPACITIES, DEFAULT_PREFIX, Metrics
from bough.schema_keywords import ENFORCED_FORMATS, KEYWORDS, Fate
from endpoint_pages import limits_markdown, markdown

DOCS = Path(__file__).resolve().parent.parent / "docs"

NOTE = "<!-- Written by tools/generate_docs.py; change the code instead. -->\n"

NOTES = {
    "serve": "`bough serve [MODEL] [--config FILE] [FLAGS]`; MODEL is the same as `--model-path`. The flags are also "
    "the keys of a `--config` file and the keywords of `Engine`, there with underscores. "
    "`python -m bough.launch_server` takes the same.",
    "generate": "Besides these, every flag of `bough serve`.",
    "chat": "Without `--url`, every flag of `bough serve` too; with it `--api-key`, `--api-key-file` (of which the "
    "first key is sent) and `--log-level`.",
    "bench offline": "Besides these, the dataset flags of `bough bench serve` and every flag of `bough serve`.",
    "bench latency": "Besides these, every flag of `bough serve`.",
    "bench compare": "Its arguments are files that the others wrote with `--output-file`.",
}


def flags_page() -> str:
    """Every flag of every command; a table of options that several have is in the section of the first."""
    parts = [
        NOTE,
        "# Flags\n",
        "A switch is off unless it is given; its `--no-` form undoes what a configuration file says. Where the value "
        "is *or like 32k* or *or like 16MiB*, letters stand for powers of 1024: `32k` is 32768. Bough reads no "
        "environment variables of its own.\n",
        "A configuration file is YAML with one `flag: value` per line. What the command line says wins:\n",
        "```yaml\nmodel-path: /models/llama\nport: 8000\nmax-running-requests: 64\ndisable-radix-cache: false\n```\n",
    ]
    shown: set[type[OptionTable]] = set()
    for command, all_tables in TABLES.items():
        parts.append(f"## `bough {command}`\n")
        if command in NOTES:
            parts.append(NOTES[command] + "\n")
        tables = [table for table in all_tables if table not in shown]
        shown.update(tables)
        for table in tables:
            for title, options in groups_of(table).items():
                if len(groups_of(table)) > 1 or len(tables) > 1:
                    parts.append(f"### {title}\n")
                parts.append("| Flag | Value | Default | Meaning |\n|---|---|---|---|")
                parts.extend(map(flag_row, options))
                parts.append("")
    return "\n".join(parts)


def flag_row(option: Option) -> str:
    """One line of a table of flags."""
    flags = ", ".join(f"`{flag}`" for flag in option.flags)
    if option.kind == "bool":
        value = "switch"
    elif option.choices:
        value = ", ".join(f"`{choice}`" for choice in option.choices)
    else:
        value = {"int": "whole number", "float": "number", "str": "text", "json": "JSON object"}[option.kind]
        value += f", {option.measure}" if option.measure else ""
    exact = option.default is not None and not option.declared.default_text and option.kind != "bool"
    default = f"`{option.default_text}`" if exact else option.default_text
    cells = (flags, value, default, option.declared.help)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def endpoints_page() -> str:
    """Every route of the HTTP server and every field of its requests."""
    return f"{NOTE}\n{markdown().rstrip()}\n"


def limits_page() -> str:
    """Every bound of the HTTP server."""
    return f"{NOTE}\n{limits_markdown().rstrip()}\n"


def metrics_page() -> str:
    """Every metric of a server."""
    metrics = Metrics("", prefix="")
    # What is shown only once there is something to show.
    metrics.startup_time = 1.0
    metrics.capacities = {field: 1.0 for _, field, _, _ in CAPACITIES}
    metrics.heartbeats[SCHEDULER] = Heartbeat(SCHEDULER)
    metrics.http_requests["/generate", "POST"] = 1
    metrics.http_responses["/generate", "POST", 200] = 1
    parts = [
        NOTE,
        "# Metrics\n",
        f"What `GET /metrics` shows. Before each name stands `{DEFAULT_PREFIX}`, or what `--metrics-prefix` says; each "
        "has the label `model_name` and those named here. A histogram `NAME` is `NAME_bucket`, with the label `le`, "
        "`NAME_sum` and `NAME_count`. [Observability](observability.md#metrics) says which answers which question.\n",
        "| Metric | Kind | Labels | Meaning |\n|---|---|---|---|",
    ]
    for family in metrics.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        found = dict.fromkeys(label for sample in family.samples for label in sample.labels)
        labels = ", ".join(f"`{label}`" for label in found if label not in ("model_name", "le"))
        parts.append(f"| `{name}` | {family.type} | {labels} | {family.documentation} |")
    return "\n".join([*parts, "", LOADS_GAUGES, ""])


def schemas_page() -> str:
    """Return the page on the support for each keyword of JSON Schema."""
    names: dict[Fate, list[str]] = {}
    for name, keyword in KEYWORDS.items():
        names.setdefault(keyword.fate, []).append(f"`{name}`")
    rows = [f"| `{name}` | {known.limits} |" for name, known in KEYWORDS.items() if known.fate == "in part"]
    formats = ", ".join(f"`{name}`" for name in sorted(ENFORCED_FORMATS))
    sections = [
        ("Enforced", ", ".join(names["kept"]) + "."),
        ("Enforced in part", "\n".join(["| Keyword | Not enforced |\n|---|---|", *rows])),
        ("Not enforced", ", ".join(names["left out"]) + "."),
        ("Without effect", ", ".join(names["annotation"]) + ", and keywords not listed here."),
        ("Formats", f"Enforced are {formats}; others are annotations."),
    ]
    return "\n".join([NOTE, SCHEMAS, *(f"## {title}\n\n{text}\n" for title, text in sections)])


def coming_from_page() -> str:
    """What other engines call otherwise here, and what of theirs is not supported."""
    ours: dict[str, list[str]] = {}
    for theirs, flag in other_engines.FLAGS_HERE.items():
        ours.setdefault(flag, []).append(f"`{theirs}`")
    fields: dict[str, list[str]] = {}
    for theirs, translation in OF_CHAT.items():
        fields.setdefault(translation.field, []).append(f"`{theirs}`")
    routes: dict[str, list[str]] = {}
    for path, feature in other_engines.ROUTES.items():
        routes.setdefault(feature, []).append(f"`{path}`")
    as_it_is: dict[str, list[str]] = {}
    for name, values in other_engines.AS_IT_IS.items():
        as_it_is.setdefault(" or ".join(f"`{value}`" for value in values), []).append(f"`{name}`")
    switches = [f"`{name}`" for name in sorted(other_engines.ALWAYS_ON | other_engines.NEVER_THERE)]
    return "\n".join(
        [
            NOTE,
            COMING_FROM,
            "## Flags\n",
            "Written without dashes here. In their place comes nearest, though a value may mean something else:\n",
            "| theirs | here |\n|---|---|",
            *(f"| {', '.join(theirs)} | `--{flag}` |" for flag, theirs in ours.items()),
            "\nAccepted with the value that asks for what is so anyway:\n",
            *(f"- {value}: {', '.join(names)}" for value, names in as_it_is.items()),
            f"- switches: {', '.join(switches)}\n",
            "As keywords of an `Engine` and in configuration files, flags of others may also be null or false. Not "
            f"supported, whatever the flag: {'; '.join(other_engines.FLAG_FEATURES)}.\n",
            "## Fields of requests\n",
            "Completions and chat completions translate these; fields of ours go before them:\n",
            "| theirs | here |\n|---|---|",
            *(f"| {', '.join(theirs)} | `{field}` |" for field, theirs in fields.items()),
            "\n[Endpoints](endpoints.md) lists for each route the fields of others that it accepts without effect, and "
            "those that are refused (status 400, code `unsupported_parameter`) if they ask for something.\n",
            "## Routes that are not supported\n",
            "They are answered with status 404 and the code `not_supported`.\n",
            *(f"- {feature}: {', '.join(paths)}" for feature, paths in routes.items()),
            "",
        ]
    )


COMING_FROM = """\
# Coming from SGLang, vLLM or llama.cpp

Clients need no change: the routes of OpenAI, Anthropic and Ollama are [here](clients.md), SGLang's `/generate`,
`/encode` and control routes too, and `Engine` has the arguments of SGLang's. A command line mostly needs its flags
renamed; whatever has no name here gets an error that says what comes nearest. A checkpoint that is quantised says so
itself: leave out `quantization`. Programs that drive vLLM's classes (`AsyncLLMEngine`, `LLM`, `collective_rpc` with a
`worker_extension_cls`) find them in [bough-vllm](../packages/bough-vllm/README.md), a package of its own that takes the
import name `vllm`.
"""

SCHEMAS = """\
# JSON schemas

Output follows the enforced part of a schema. Without `strict` the rest of the schema is ignored: the output may contain
more than the schema allows, and every valid schema is accepted. With `strict`, and in `/generate` and `Engine`, a
schema with anything that cannot be enforced gets a 400 that names the keyword and its position; there, `"x-guidance":
{"lenient": true}` at the top of the schema has the effect of leaving out `strict`. Without `strict`, a keyword that is
null is ignored, and so is an empty list instead of an object (serialisers, PHP and Lua write these), and types may have
the names of other languages (`int`, `STRING`, `any`).

All drafts from 4 to 2020-12 are accepted. `$schema` decides where they differ: up to draft 7, keywords beside a `$ref`
are ignored; up to 2019-09, `items` may be a list. References may point anywhere within the schema, by pointer, `$id` or
anchor. If a schema without `strict` is too large, or no value can satisfy it, only its types and members are enforced,
or only its type.

Properties are written in the order of the schema, integers without a decimal point, numbers with bounds without an
exponent. Patterns follow ECMA-262 and match anywhere in a string unless they contain `^` and `$`.
"""

LOADS_GAUGES = """\
`GET /v1/loads?format=prometheus` shows the numbers of [`/v1/loads`](endpoints.md#query-parameters) as gauges behind
`bough_`, whatever the prefix, with the label `dp_rank`; those of a section have its name before theirs:
`bough_num_running_reqs`, `bough_memory_token_capacity`, `bough_queues_waiting`."""

SPEED_ENGINES = {"bough": "Bough", "llama.cpp": "llama.cpp", "openvino": "OpenVINO GenAI"}
SPEED_STYLE = """\
  <style>
    svg { font: 13px system-ui, sans-serif; } .page { fill: #ffffff; } text { fill: #1d2620; }
    .bough { fill: #3f8f4f; } .llamacpp { fill: #9a7b4f; } .openvino { fill: #6b86a8; }
    .small { font-size: 11px; fill: #4d5a50; } .ratio { font-weight: 600; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #14181a; } text { fill: #e3e9e4; } .small { fill: #a3b1a7; }
      .bough { fill: #63b574; } .llamacpp { fill: #b8996b; } .openvino { fill: #8aa6ca; }
    }
  </style>"""


def speed_graph() -> str:
    """Bars of the measured cells in pictures/speed.json; each group is scaled to Bough's rate in it."""
    measured = json.loads((DOCS / "pictures" / "speed.json").read_text(encoding="utf-8"))
    height = 54 + 52 * len(measured["cells"])
    machine = measured["machine"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {height}" role="img" aria-labelledby="t d">',
        f"  {NOTE.strip()}",
        '  <title id="t">Tokens per second beside llama.cpp and OpenVINO GenAI</title>',
        f'  <desc id="d">Medians on {machine["cores"]} cores of an {machine["cpu"]}, {machine["date"]}.</desc>',
        SPEED_STYLE,
        f'  <rect class="page" width="780" height="{height}"/>',
    ]
    for at, (engine, name) in enumerate(SPEED_ENGINES.items()):
        x = 180 + 130 * at
        parts.append(f'  <rect class="{engine.replace(".", "")}" x="{x}" y="12" width="12" height="12"/>')
        parts.append(f'  <text x="{x + 18}" y="23">{name}</text>')
    parts.append('  <text class="small" x="610" y="23">times the better peer</text>')
    for at, cell in enumerate(measured["cells"].values()):
        rates = cell["rates"]
        y = 44 + 52 * at
        parts.append(f'  <text x="12" y="{y + 26}">{cell["label"]}</text>')
        medians = {engine: statistics.median(rates[engine]) for engine in SPEED_ENGINES}
        for row, engine in enumerate(SPEED_ENGINES):
            top, width = y + 14 * row, 360 * medians[engine] / medians["bough"]
            parts.append(
                f'  <rect class="{engine.replace(".", "")}" x="180" y="{top}" width="{width:.0f}" height="12"/>'
            )
            label = f"{medians[engine]:,.0f} tokens/s" if engine == "bough" else f"{medians[engine]:,.0f}"
            parts.append(f'  <text class="small" x="{186 + width:.0f}" y="{top + 10}">{label}</text>')
        peers = (engine for engine in SPEED_ENGINES if engine != "bough")
        ratio = min(
            statistics.median(ours / theirs for ours, theirs in zip(rates["bough"], rates[peer], strict=True))
            for peer in peers
        )
        parts.append(f'  <text class="ratio" x="700" y="{y + 26}">{ratio:.2f}</text>')
    return "\n".join([*parts, "</svg>", ""])


def families_table() -> str:
    """Markdown table of the families of language models, by what the registry and the modules say of them."""
    containers = {architecture: name for name, architecture in ARCHITECTURES.items()}
    rows = ["| Architecture | Models | Without its head | Inside a wrapper | In GGUF files |", "|---|---|---|---|---|"]
    for architecture, module in MODEL_MODULES.items():
        models = (importlib.import_module(module).__doc__ or "").partition("\n")[0].rstrip(".")
        bodies = [body for body, backbone in BACKBONES.items() if backbone == architecture]
        kinds = [kind for kind, text in TEXT_MODELS.items() if text == architecture]
        stem = architecture.removesuffix("ForCausalLM")
        wrapped = ", ".join(f"`{kind}`" for kind in kinds)
        heads = ", ".join(f"`…{body.removeprefix(stem)}`" for body in bodies)
        stored = f"`{containers[architecture]}`" if architecture in containers else ""
        rows.append(f"| `{architecture}` | {models} | {heads} | {wrapped} | {stored} |")
    return "\n".join(rows) + "\n"


def tested_list() -> str:
    """Sentence with the models that tests compare where transformers computes them."""
    names = ", ".join(f"`{name}`" for name in TESTED_WITH_TRANSFORMERS)
    return f"Compared with transformers' own logits by the tests, on small random checkpoints: {names}.\n"


def models_page() -> str:
    """The page of models, with the parts that follow from the code."""
    page = (DOCS / "models.md").read_text(encoding="utf-8")
    for name, written in (("families", families_table()), ("architectures tested with transformers", tested_list())):
        begins, ends = f"<!-- {name}, written by tools/generate_docs.py -->\n", f"<!-- end of {name} -->\n"
        before, begin, rest = page.partition(begins)
        _, end, after = rest.partition(ends)
        if not (begin and end):
            raise ValueError(f"docs/models.md has lost its marks of {name}")
        page = f"{before}{begin}{written}{end}{after}"
    return page


PAGES: dict[str, Callable[[], str]] = {
    "flags.md": flags_page,
    "endpoints.md": endpoints_page,
    "limits.md": limits_page,
    "metrics.md": metrics_page,
    "schemas.md": schemas_page,
    "coming-from.md": coming_from_page,
    "models.md": models_page,
    "pictures/speed.svg": speed_graph,
}


def stale_pages() -> list[str]:
    """Names of pages that are not what the code says."""
    return [name for name, render in PAGES.items() if _current(DOCS / name) != render()]


def _current(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(argv: list[str]) -> int:
    """Write the pages, or check them."""
    stale = stale_pages()
    if argv == ["--check"]:
        for name in stale:
            print(f"docs/{name} is stale: make docs")
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
