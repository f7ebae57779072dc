"""Requests whose output has to match something, until their grammar is compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from bough.config.server_args import ServerArgs
from bough.constrained.base import GrammarError
from bough.constrained.compiler import GrammarCompiler, create_compiler
from bough.errors import BoughError, RequestFailed
from bough.model_executor.worker_info import WorkerInfo
from bough.sampling.sampling_params import GrammarSpec
from bough.scheduler.req import Req
from bough.scheduler.requests import Requests
from bough.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bough.constrained.llguidance_backend import Grammar

logger = logging.getLogger(__name__)


class Grammars:
    """Gives requests their matchers; those whose grammar is not ready wait outside the queue and hold nothing up.

    Without a compiler, this server cannot follow grammars; clients are told ``why_not``.
    """

    def __init__(self, requests: Requests, compiler: GrammarCompiler | None, why_not: str = "") -> None:
        self._requests = requests
        self._compiler = compiler
        self._why_not = why_not

    def add(self, reqs: list[Req], spec: GrammarSpec) -> None:
        """Take the samples of a new request; raises :class:`BoughError` if the grammar cannot be used, the engine fails
        on it, or this server cannot follow any."""
        if self._compiler is None:
            raise GrammarError(self._why_not, kind=spec.kind)
        job = self._compiler.submit(spec)
        if job.error is not None:
            raise job.error.with_traceback(None)
        if job.grammar is None:
            for req in reqs:
                self._requests.add(req, job)
            return
        for req in reqs:
            _begin(req, job.grammar)
        for req in reqs:
            self._requests.add(req)

    def poll(self) -> list[tuple[Req, BoughError]]:
        """Let requests go on whose grammar is ready now; returns those whose grammar is none, for the caller to end."""
        if self._compiler is None:
            return []
        ended = self._compiler.poll()
        waiting = self._requests.compiling
        self._compiler.forget_all_but({id(job) for job in waiting.values()})
        if not ended:
            return []
        failed: list[tuple[Req, BoughError]] = []
        for req, job in list(waiting.items()):
            if job.grammar is not None:
                try:
                    _begin(req, job.grammar)
                except RequestFailed as error:
                    failed.append((req, error))
                else:
                    self._requests.compiled(req)
            elif job.error is not None:
                failed.append((req, job.error))
        return failed

    def wait(self, timeout_s: float) -> None:
        """Wait until a grammar is ready; for when there is nothing else to do."""
        if self._compiler is not None:
            self._compiler.wait(timeout_s)

    def close(self) -> None:
        """End the compiler's threads."""
        if self._compiler is not None:
            self._compiler.close()


def _begin(req: Req, grammar: Grammar) -> None:
    """Give a request its matcher; raises :class:`RequestFailed` if the engine fails on it."""
    try:
        req.matcher = grammar.matcher()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # a panic of the engine is not an Exception
        logger.exception("Could not begin to follow the grammar of request %r", req.rid)
        raise RequestFailed("internal error while preparing the grammar") from None


def grammars_for(
    server_args: ServerArgs,
    info: WorkerInfo,
    requests: Requests,
    tokenizer: Tokenizer | None,
    eos_token_ids: Collection[int],
    make_compiler: Callable[[], GrammarCompiler] | None = None,
) -> Grammars:
    """Make what the options and the model allow for, or what ``make_compiler`` makes.

    Preparing the vocabulary holds the GIL for up to a second.
    """
    if make_compiler is not None:
        return Grammars(requests, make_compiler())
    if server_args.grammar_backend == "none":
        return Grammars(requests, None, "this server was started with --grammar-backend none")
    if tokenizer is None or info.embedding_dim is not None:
        return Grammars(requests, None, "it needs a tokenizer, and the server runs without one")
    try:
        compiler = create_compiler(server_args, tokenizer, info.vocab_size, eos_token_ids)
    except Exception:
        logger.exception("No grammars: the grammar engine cannot use the model's tokenizer")
        return Grammars(requests, None, "the grammar engine cannot use the model's tokenizer")
    return Grammars(requests, compiler)
