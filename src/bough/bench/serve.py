"""``bough bench serve``: measure a running server from outside."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

from bough import __version__
from bough.bench.backends import BACKENDS, Sampling
from bough.bench.client import BenchClient, Load, Refused, connect, run_load
from bough.bench.datasets import (
    BenchRequest,
    DatasetArgs,
    custom_requests,
    how_many,
    make_requests,
    prompt_lengths,
    vocab_size_from,
)
from bough.bench.metrics import details, summarise, table
from bough.bench.options import output_file, result_path, write_json
from bough.config import rules
from bough.config.command_line import CommandParser, add_options, given_options
from bough.config.options import OptionTable, option
from bough.entrypoints.http.access import read_keys
from bough.errors import RequestFailed, StartupError
from bough.observability.progress import Progress

target_option = partial(option, group="Server")
load_option = partial(option, group="Load")

_WARM_UP_TOKENS = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchServeArgs(OptionTable):
    """Which server is measured, and how hard it is pressed."""

    backend: Literal["native", "oai", "oai-chat"] = target_option(
        "native", help="Interface to use: /generate, /v1/completions or /v1/chat/completions."
    )
    base_url: str | None = target_option(
        None,
        help="Address of the server.",
        metavar="URL",
        aliases=("url",),
        default_text="http://HOST:PORT",
        rule=rules.server_url,
    )
    host: str = target_option("127.0.0.1", help="Host, where there is no --base-url.", metavar="ADDRESS")
    port: int = target_option(30000, help="Port, where there is no --base-url.", minimum=1, maximum=65535)
    model: str | None = target_option(
        None,
        help="Name of the model to ask for.",
        metavar="NAME",
        default_text="the first that the server lists",
    )
    api_key: str | None = target_option(
        None, help="Key of the server.", metavar="KEY", secret=True, rule=rules.sendable_key
    )
    api_key_file: str | None = target_option(
        None, help="File whose first line is the key of the server.", metavar="FILE"
    )
    ca_cert: str | None = target_option(
        None,
        help="Certificates to trust, in PEM, where --base-url begins with https://.",
        metavar="FILE",
        default_text="the system's",
    )
    ready_check_timeout_sec: float = target_option(
        60.0, help="How long to wait for the server.", unit="seconds", minimum=0.0
    )
    request_rate: float = load_option(
        math.inf,
        help="Requests per second, at random (Poisson) moments; inf sends all at once.",
        infinite=True,
        rule=rules.positive,
    )
    max_concurrency: int | None = load_option(None, help="Most requests in flight.", default_text="no limit", minimum=1)
    request_timeout: float = load_option(
        6 * 3600.0,
        help="How long the answer to a request may take to its end; one that takes longer has failed.",
        unit="seconds",
        rule=rules.positive,
    )
    warmup_requests: int = load_option(
        1, help="Requests that are sent before, and do not count.", unit="requests", minimum=0
    )
    flush_cache: bool = load_option(
        False, help="Empty the server's prefix cache after the warm-up, so that the run starts cold."
    )
    flush_cache_timeout: float = load_option(
        60.0, help="How long the server may take to become idle for that.", unit="seconds", minimum=0.0
    )
    disable_stream: bool = load_option(False, help="Ask for whole answers.")
    disable_ignore_eos: bool = load_option(
        False, help="Let the model end its answers, instead of generating as many tokens as asked for."
    )
    temperature: float = load_option(0.0, help="Sampling temperature.", minimum=0.0)
    top_p: float = load_option(1.0, help="Nucleus sampling.", minimum=0.0, maximum=1.0)
    extra_request_body: dict[str, Any] | None = load_option(None, help="Fields that are put into every request.")
    output_file: str | None = output_file("Output")
    output_details: bool = option(False, help="Write what was measured for every request, too.", group="Output")

    @property
    def url(self) -> str:
        """Address of the server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return rules.with_scheme(self.base_url or f"http://{host}:{self.port}")

    @property
    def sampling(self) -> Sampling:
        """How the requests are sampled."""
        return Sampling(self.temperature, self.top_p, not self.disable_ignore_eos, self.extra_request_body or {})


async def run_benchmark(
    args: BenchServeArgs, dataset: DatasetArgs, custom: list[BenchRequest] | None = None
) -> dict[str, Any]:
    """Measure one run.

    Args:
        custom: those of a custom dataset where they have been read.

    Returns:
        The options and the figures of :func:`bough.bench.metrics.summarise`, as plain values.

    Raises:
        StartupError: if the server does not answer, names no model, or a warm-up request fails.
        ConfigError: if the dataset is wrong, or the certificates to trust.
    """
    keys = read_keys(args.api_key, args.api_key_file, "api_key_file")
    async with connect(args.url, keys[0] if keys else None, args.ca_cert, args.request_timeout) as client:
        await client.wait_until_ready(args.ready_check_timeout_sec)
        model = args.model or await _first_model(client)
        requests = make_requests(dataset, vocab_size=await _vocab_size(client, dataset), custom=custom)
        await _warm_up(client, requests, args, dataset, model)
        load = Load(args.request_rate, args.max_concurrency, dataset.seed)
        backend, stream = BACKENDS[args.backend], not args.disable_stream
        with Progress("Measuring", len(requests), unit="requests", elsewhere="nothing") as progress:
            measurement = await run_load(
                client, requests, backend, model, args.sampling, load, stream=stream, progress=progress
            )
        url_of_server = client.base_url
    result = {
        "version": __version__,
        "url": url_of_server,
        "backend": args.backend,
        "model": model,
        "stream": not args.disable_stream,
        "sampling": asdict(args.sampling),
        "dataset": dataset.to_dict(),
        "request_rate": "inf" if math.isinf(args.request_rate) else args.request_rate,
        "max_concurrency": args.max_concurrency,
        "warmup_requests": args.warmup_requests,
        "flush_cache": args.flush_cache,
        **summarise(measurement),
    }
    if args.output_details:
        result["requests"] = details(measurement.answers)
    return result


async def _first_model(client: BenchClient) -> str:
    models = await client.get_json("/v1/models")
    try:
        return str(models["data"][0]["id"])
    except (LookupError, TypeError):
        raise StartupError(f"{client.base_url}/v1/models lists no model; name one with --model") from None


async def _warm_up(
    client: BenchClient, requests: list[BenchRequest], args: BenchServeArgs, dataset: DatasetArgs, model: str
) -> None:
    for number in range(args.warmup_requests):
        request, backend = _unlike(requests[number % len(requests)]), BACKENDS[args.backend]
        answer = await client.ask(request, backend, model, args.sampling, stream=not args.disable_stream)
        if answer.error is not None:
            url = client.base_url + backend.path
            # Bough's and other servers' words for a prompt that is too long.
            flags = f" ({prompt_lengths(dataset)})" if "maximum context length" in answer.error else ""
            raise StartupError(f"the warm-up request to {url} failed, so nothing was measured: {answer.error}{flags}")
    if args.flush_cache:
        await client.flush_cache(args.flush_cache_timeout)


def _unlike(request: BenchRequest) -> BenchRequest:
    """As long a prompt that begins differently, with a short output: what warms up must leave nothing to reuse."""
    output_len = min(request.output_len, _WARM_UP_TOKENS)
    if request.input_ids is not None:
        return BenchRequest(output_len, input_ids=request.input_ids[::-1])
    return BenchRequest(output_len, text=request.as_text()[::-1])


async def _vocab_size(client: BenchClient, dataset: DatasetArgs) -> int:
    """Size of the server's vocabulary; 1 where no random ids are drawn."""
    if dataset.vocab_size is not None or dataset.dataset_name == "custom":
        return dataset.vocab_size or 1
    try:
        return vocab_size_from(await client.get_json("/get_server_info"))
    except Refused:  # other servers have no such path
        return vocab_size_from({})


def main(argv: list[str]) -> int:
    """Run ``bough bench serve``; the status is not 0 if any request failed."""
    parser = CommandParser(
        prog="bough bench serve",
        usage="bough bench serve [flags]",
        description="Send requests to a running server; measure latencies and throughput.",
    )
    add_options(parser, BenchServeArgs)
    add_options(parser, DatasetArgs)
    namespace = parser.parse_args(argv)
    args = BenchServeArgs(**given_options(namespace, BenchServeArgs))
    dataset = DatasetArgs(**given_options(namespace, DatasetArgs))
    output = result_path(args.output_file)
    custom = custom_requests(dataset)
    print(f"Measuring {how_many(dataset, custom)}", flush=True)
    import uvloop  # late: help does not need it

    result = uvloop.run(run_benchmark(args, dataset, custom))
    print(table(result, f"{args.url}, {args.backend}, {dataset.dataset_name}"))
    if output is not None:
        write_json(output, result)
    if result["failed"]:
        raise RequestFailed(f"{result['failed']} of {result['failed'] + result['completed']} requests failed")
    return 0
