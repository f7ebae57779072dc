"""The options of a server and of an ``Engine``: one table, and the defaults that depend on other options."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bough import ceilings
from bough.config import rules
from bough.config.engine_args import BUNDLED_MODEL_NAME, EngineArgs, bundled_model_path
from bough.config.options import option
from bough.config.user_paths import shown_path, user_path

SamplingDefaults = Literal["model", "openai"]
GrammarBackendName = Literal["llguidance", "none"]
LogLevel = Literal["debug", "info", "warning", "error", "critical"]
LogFormat = Literal["text", "json"]

DEFAULT_JSON_WHITESPACE = " ?"

server_option = partial(option, group="Server")
security_option = partial(option, group="Security")
api_option = partial(option, group="API")
operation_option = partial(option, group="Logging and supervision")


def _key(text: str, *, basic: bool = False) -> Any:
    """An option that holds a key."""
    return security_option(None, help=text, metavar="KEY", secret=True, rule=rules.sendable_key, basic=basic)


def _file(text: str, default_text: str = "", *, basic: bool = False, secret: bool = True) -> Any:
    """Declare an option that names a file of keys (secret) or certificates (not secret)."""
    return security_option(None, help=text, metavar="FILE", default_text=default_text, basic=basic, secret=secret)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerArgs(EngineArgs):
    """Everything that can be set when a server or an Engine starts.

    The same names are the flags of ``bough serve`` (with dashes), the keys of ``--config`` files and the keywords of
    ``Engine``. An instance is valid field by field; :func:`resolve` fills the defaults that depend on other fields.
    """

    host: str = server_option(
        "127.0.0.1",
        help="Address to listen on. 0.0.0.0 lets other machines in: set keys then, see Security.",
        metavar="ADDRESS",
        basic=True,
    )
    port: int = server_option(
        30000,
        help="TCP port to listen on.",
        minimum=1,
        maximum=65535,
        short="p",
        basic=True,
    )
    uds: str | None = server_option(
        None,
        help="Unix socket to listen on, instead of --host and --port. It is made with mode 0600, so that only this "
        "user may connect, and removed at the end. It counts as a loopback address.",
        metavar="PATH",
    )
    root_path: str | None = server_option(
        None,
        help="Path under which a proxy shows the server, like /llm. It may leave it in what it passes on or take "
        "it off.",
        metavar="PREFIX",
        rule=rules.root_path,
    )
    disable_playground: bool = server_option(
        False, help="No page for browsers at `/`, and no stream of what the engine does."
    )
    max_body_size: int = server_option(
        32 * 2**20,
        help="Largest request body; a larger one is answered with 413.",
        unit="bytes",
        minimum=1024,
        scaled=True,
    )
    max_pending_body_size: int = server_option(
        256 * 2**20,
        help="Most bytes of request bodies that are being received, parsed, encoded or kept for answers, over all "
        "connections; beyond it uploads are answered with 503, slow ones first. A single one is always taken.",
        unit="bytes",
        minimum=1024,
        scaled=True,
    )
    max_pending_answer_size: int = server_option(
        512 * 2**20,
        help="Most bytes that answers take, over all connections, while their logprobs are collected or their clients "
        "read them; beyond it slow readers are cut off, and what grows is answered with 503. A single one is always "
        "taken.",
        unit="bytes",
        minimum=1024,
        scaled=True,
    )
    max_header_size: int = server_option(
        64 * 2**10,
        help="Most bytes of a request line and its headers together; beyond it 431.",
        unit="bytes",
        minimum=1024,
        scaled=True,
    )
    max_headers: int = server_option(200, help="Most headers of a request; beyond it 431.", unit="headers", minimum=8)
    max_url_length: int = server_option(
        8 * 2**10,
        help="Longest path and query of a request; beyond it 400.",
        unit="bytes",
        minimum=256,
        scaled=True,
    )
    skip_server_warmup: bool = server_option(
        False, help="Be ready without first answering a request of the server's own."
    )
    shutdown_timeout: float = server_option(
        30.0,
        help="After SIGTERM, how long running requests may take to finish before they are ended.",
        unit="seconds",
        minimum=0.0,
    )

    api_key: str | None = _key(
        "Key that requests must bring, as `Authorization: Bearer KEY` or `x-api-key: KEY`; probes and metrics "
        "need none. Other users of the machine may see a command line: --api-key-file keeps keys off it.",
        basic=True,
    )
    api_key_file: str | None = _file("File with such keys, one a line; each of them will do.", basic=True)
    admin_api_key: str | None = _key(
        "Key of the control routes (/flush_cache, /abort_request, /start_profile, /stop_profile, pauses and sleep, "
        "and all that change or show weights), "
        "which then take no other; it opens all other routes, too. Without one "
        "they are closed, but on a loopback address, where they take the other keys, or none where there is none."
    )
    admin_api_key_file: str | None = _file("File with keys of the control routes, one a line.")
    max_requests_per_key: int | None = security_option(
        None,
        help="Most requests with the same key that are worked on or wait at a time, whatever their `n`; a further one "
        "is answered with 429. It takes --api-key or --api-key-file, and does not count calls of control routes.",
        unit="requests",
        default_text="no limit",
        minimum=1,
    )
    enable_collective_rpc: bool = security_option(
        False,
        help="Have POST /collective_rpc call methods of the workers, those of --worker-extension-cls included; a "
        "control route.",
    )
    cors_allow_origins: str | None = security_option(
        None,
        help="Origins (like https://chat.example.org, with commas between them) whose web pages may call the server "
        "from a browser; `*`: any. Keys are asked for all the same.",
        metavar="ORIGINS",
        rule=rules.origins,
        basic=True,
    )
    ssl_certfile: str | None = _file("Certificate chain in PEM; the server then speaks HTTPS only.", secret=False)
    ssl_keyfile: str | None = _file("Its private key.", default_text="in the file of the certificate")
    ssl_keyfile_password: str | None = security_option(
        None,
        help="What the private key is encrypted with. Other users of the machine may see a command line: a file for "
        "--config keeps it off it.",
        metavar="TEXT",
        secret=True,
    )
    ssl_ca_certs: str | None = _file(
        "Certificates of authorities, in PEM; clients must bring a certificate that one of them has signed.",
        secret=False,
    )

    served_model_name: str | None = api_option(
        None,
        help="Name of the model in `/v1/models`, and in answers to requests that name none. Requests may name any "
        "model, since there is only this one.",
        metavar="NAME",
        default_text="the model's id, or the last name in its path",
        basic=True,
    )
    chat_template: str | None = api_option(
        None,
        help="Name of a built-in chat template, or a file with a Jinja template.",
        metavar="NAME|FILE",
        default_text="the tokenizer's",
        basic=True,
    )
    tool_call_parser: str | None = api_option(
        None,
        help="How the model writes tool calls; `none` looks for none, `auto` is the default.",
        metavar="NAME",
        default_text="found out from the chat template",
        rule=rules.tool_call_parser,
        basic=True,
    )
    weight_version: str = api_option(
        "default",
        help="What the weights are called in answers, until an update of the weights calls its own otherwise.",
        metavar="NAME",
    )
    reasoning_parser: str | None = api_option(
        None,
        help="How the model marks its reasoning; `none` looks for none, `auto` is the default.",
        metavar="NAME",
        default_text="found out from the chat template",
        rule=rules.reasoning_parser,
        basic=True,
    )
    sampling_defaults: SamplingDefaults = api_option(
        "model",
        help="Where sampling parameters that a request leaves out come from: the checkpoint (its "
        "generation_config.json or GGUF metadata; what it does not name is llama.cpp's for GGUF files and on Ollama's "
        "routes, and OpenAI's otherwise), or OpenAI's constants.",
    )
    preferred_sampling_params: dict[str, Any] | None = api_option(
        None,
        help="Sampling parameters of requests that do not set them.",
        rule=rules.preferred_sampling_params,
    )
    max_stored_responses: int = api_option(
        1024,
        help="Most responses of /v1/responses that are kept, to be retrieved or gone on with; 0 keeps none. The ones "
        "not used for longest make room.",
        unit="responses",
        minimum=0,
    )
    max_stored_response_bytes: int = api_option(
        64 * 2**20,
        help="Most memory for kept responses, as JSON.",
        unit="bytes",
        minimum=0,
        scaled=True,
    )
    stream_interval: int = api_option(1, help="Tokens per streamed event.", unit="tokens", minimum=1)
    incremental_streaming_output: bool = api_option(
        False, help="Events of a streamed /generate carry only what is new, not all text so far."
    )
    grammar_backend: GrammarBackendName = api_option(
        "llguidance",
        help="What keeps outputs to JSON schemas, patterns and grammars; `none` refuses such requests.",
    )
    grammar_compile_timeout: float = api_option(
        10.0,
        help="How long compiling a JSON schema, pattern or grammar may take; beyond it the request is refused.",
        unit="seconds",
        minimum=0.1,
    )
    constrained_json_whitespace_pattern: str = api_option(
        DEFAULT_JSON_WHITESPACE,
        help="Regular expression of what may stand between the tokens of JSON that follows a schema. With more than a "
        "blank, small models lose themselves in it.",
        metavar="PATTERN",
        default_text="a blank or nothing",
        rule=rules.regular_expression,
    )
    constrained_json_disable_any_whitespace: bool = api_option(
        False,
        help="JSON that follows a schema has one blank after commas and colons and no other: more of it is certain "
        "without asking the model, which is faster.",
    )
    disable_jump_forward: bool = api_option(
        False,
        help="Sample every token, also where a grammar leaves no choice. The outputs are the same.",
    )
    strict_fields: bool = api_option(
        False,
        help="Refuse requests with unknown fields. Else they are ignored, named in the log and in the header "
        "`x-bough-ignored-fields`, unless they look like typos.",
    )

    max_outputs_per_request: int = api_option(
        ceilings.OUTPUTS_PER_REQUEST,
        help="Most outputs of one HTTP request: prompts times `n`, questions, documents or items.",
        unit="outputs",
        minimum=1,
        maximum=ceilings.OUTPUTS_PER_REQUEST,
    )
    max_parallel_samples: int = api_option(
        ceilings.PARALLEL_SAMPLES,
        help="Largest `n` of a request.",
        unit="outputs",
        minimum=1,
        maximum=ceilings.PARALLEL_SAMPLES,
    )
    max_logprobs: int = api_option(
        ceilings.TOP_LOGPROBS,
        help="Most alternatives per position whose log-probabilities a request may ask for. OpenAI's routes allow 20 "
        "at most.",
        unit="tokens",
        minimum=0,
        maximum=ceilings.TOP_LOGPROBS,
    )
    max_stop_strings: int = api_option(
        ceilings.STOP_STRINGS,
        help="Most stop strings of a request, and as many patterns.",
        unit="strings",
        minimum=0,
        maximum=ceilings.STOP_STRINGS,
    )
    max_grammar_size: int = api_option(
        ceilings.GRAMMAR_BYTES,
        help="Longest JSON schema, pattern, grammar or list of choices that an output may have to follow.",
        unit="bytes",
        minimum=0,
        maximum=ceilings.GRAMMAR_BYTES,
        scaled=True,
    )
    max_grammar_depth: int = api_option(
        ceilings.GRAMMAR_DEPTH,
        help="Deepest nesting of brackets in such a JSON schema or structural tag.",
        unit="brackets",
        minimum=1,
        maximum=ceilings.GRAMMAR_DEPTH,
    )
    max_sessions: int = api_option(
        1000,
        help="Most sessions (`/open_session`) at a time; a further one is answered with 503.",
        unit="sessions",
        minimum=0,
    )
    max_session_tokens: int = api_option(
        16 * 2**20,
        help="Most tokens that all sessions may remember together, at 4 bytes each.",
        unit="tokens",
        minimum=0,
        scaled=True,
    )
    session_timeout: float = api_option(
        3600.0,
        help="A session that gets no request for this long is closed.",
        unit="seconds",
        rule=rules.positive,
    )

    log_level: LogLevel = operation_option(
        "info",
        help="Least severe messages that are logged.",
        basic=True,
    )
    log_format: LogFormat = operation_option(
        "text", help="How a log line looks: text, or a JSON object with named fields."
    )
    log_requests: bool = operation_option(
        False,
        help="Log the end of every request; --log-requests-level says how much, prompts only from 2 on.",
        basic=True,
    )
    log_requests_level: int = operation_option(
        0,
        help="How much --log-requests tells: 0 the outcome; 1 the arrival and sampling parameters, too, with only the "
        "length of texts among them; 2 these texts, and how prompts and outputs begin; 3 all of prompts and outputs.",
        minimum=0,
        maximum=3,
    )
    metrics_prefix: str = operation_option(
        "bough:",
        help="What the names of all metrics begin with; `sglang:` suits dashboards that were made for it.",
        metavar="PREFIX",
        rule=rules.metrics_prefix,
    )
    otlp_traces_endpoint: str | None = operation_option(
        None,
        help="URL of an OpenTelemetry collector that gets a trace of every request, OTLP over HTTP, such as "
        "http://localhost:4318/v1/traces. Needs the extra `otel`.",
        metavar="URL",
        default_text="no traces",
        rule=rules.http_url,
    )
    otlp_service_name: str = operation_option("bough", help="What traces call this server.", metavar="NAME")
    trace_sample_rate: float = operation_option(
        1.0,
        help="Share of requests that are traced, of those whose client does not say whether they shall be.",
        minimum=0.0,
        maximum=1.0,
    )
    profile_dir: str | None = operation_option(
        None,
        help="Directory for the files of /start_profile.",
        metavar="DIRECTORY",
        default_text="one of its own below the system's directory for temporary files",
    )
    crash_dump_folder: str | None = operation_option(
        None,
        help="Directory that gets a file about the requests of the last minutes when a part of the server dies.",
        metavar="DIRECTORY",
        default_text="no such file",
    )
    crash_dump_prompts: bool = operation_option(False, help="Write prompts into that file, and not only their length.")
    decode_log_interval: int | None = operation_option(
        None,
        help="How often the scheduler logs its load: while it decodes, and while it goes on with prompts. Every step "
        "that begins one is logged, too.",
        unit="steps",
        default_text="at most one line in 10 seconds; with --log-level debug 40",
        minimum=1,
    )
    startup_timeout: float = operation_option(
        1800.0,
        help="How long loading the model may take; beyond it the server ends.",
        unit="seconds",
        rule=rules.positive,
    )
    watchdog_timeout: float = operation_option(
        300.0,
        help="A part of the server that makes no progress for this long writes the stacks of its threads to the log, "
        "and ends the server. Steps that are expected to take long get that time in addition.",
        unit="seconds",
        rule=rules.longer_than_heartbeats,
    )
    soft_watchdog_timeout: float | None = operation_option(
        None,
        help="A part that makes no progress for this long writes the stacks of its threads to the log, and goes on.",
        unit="seconds",
        default_text="off",
        rule=rules.longer_than_heartbeats,
    )

    def to_public_dict(self) -> dict[str, Any]:
        """The same, for everybody's eyes: of secrets, also in the collector's URL, only whether there are any."""
        values = EngineArgs.to_public_dict(self)  # a class with slots is not the one that super() would look for
        if self.otlp_traces_endpoint is not None:
            values["otlp_traces_endpoint"] = _without_credentials(self.otlp_traces_endpoint)
        return values


def _without_credentials(url: str) -> str:
    """A URL of which user, password and query are not shown, but for whether there are any."""
    match = re.match(r"(\w+://)(?:([^/?#]*)@)?([^?#]*)(.*)", url, re.DOTALL)
    if match is None:
        return "(set)"
    scheme, user, address, rest = match.groups()
    return f"{scheme}{'' if user is None else '(set)@'}{address}{'?(set)' if rest else ''}"


DETERMINISTIC_SEED = 42
"""The random seed of deterministic inference, if none is set; SGLang's."""


def draw_seed() -> int:
    """A fresh random seed, 30 bits."""
    return int.from_bytes(os.urandom(4), "little") >> 2


def _name_of(model_path: str) -> str:
    """Return the default name of a model: its id on the hub, or the last component of its path."""
    if model_path == str(bundled_model_path()):
        return BUNDLED_MODEL_NAME
    if model_path.endswith(".gguf"):
        return Path(model_path).stem
    path = user_path(model_path)
    if not path.is_dir() and not model_path.startswith(("/", ".", "~")):
        return model_path
    *_, repository, kind, last = ("", "", *Path(os.path.abspath(path)).parts)
    if kind == "snapshots" and repository.startswith("models--"):  # in the hub's cache
        return repository.removeprefix("models--").replace("--", "/", 1)
    return last


def resolve(args: ServerArgs, *, seed_source: Callable[[], int] = draw_seed) -> ServerArgs:
    """Fill the defaults that depend on other options.

    What depends on the model or the hardware is decided by the part that knows them. Resolving twice changes
    nothing.

    Args:
        seed_source: called once if no seed was set, and none is fixed; the only thing here that is not a function of
            ``args``.

    Returns:
        New arguments in which ``tokenizer_path``, ``served_model_name`` and ``random_seed`` are set.
    """
    seed = args.random_seed
    if seed is None:
        seed = DETERMINISTIC_SEED if args.enable_deterministic_inference else seed_source()
    return dataclasses.replace(
        args,
        tokenizer_path=args.tokenizer_path if args.tokenizer_path is not None else args.model_path,
        served_model_name=args.served_model_name or shown_path(_name_of(args.model_path)),
        random_seed=seed,
        distributed_executor_backend="ray" if args.use_ray else args.distributed_executor_backend,
        enable_priority_scheduling=args.enable_priority_scheduling or args.schedule_policy == "priority",
    )
