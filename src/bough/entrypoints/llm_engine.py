"""The engine without processes: the same scheduler, worker and detokenizer, driven step by step by the caller."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bough.config.server_args import ServerArgs
from bough.entrypoints.engine_arguments import generate
from bough.entrypoints.engine_trainer import written_tensors
from bough.entrypoints.launch_plan import LaunchPlan
from bough.errors import BadRequest, ConfigError, EngineDead, Overloaded
from bough.ipc.messages import (
    MEMORY_TAGS,
    AbortReq,
    BatchTokenIDOutput,
    ControlReq,
    OutputDelta,
    PositionLogprobs,
)
from bough.managers.detokenizer_manager import DetokenizerManager
from bough.managers.engine_memory import weights_asleep, woken_tags
from bough.managers.io_struct import GenerateRequest
from bough.managers.reasoning_span import reasoning_markers
from bough.managers.request_limits import RequestLimits
from bough.managers.request_preparer import bound_thoughts
from bough.managers.scheduler_control import error_of
from bough.model_executor.create_worker import worker_factory
from bough.observability.stats import SchedulerStats
from bough.sampling.bad_words import sequences_of
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    import torch


@dataclass
class CompletionOutput:
    """One of the ``n`` outputs of a request, so far."""

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[PositionLogprobs] | None = None
    """One entry per token, if logprobs were asked for."""
    finish_reason: str | None = None
    """``stop``, ``length`` or ``abort``; ``None`` while it goes on."""
    stop_reason: int | str | None = None
    """The token id or the text that ended it, if ``finish_reason`` is ``stop``."""
    error: str | None = None
    """Cause, if it was aborted because of an error."""


@dataclass
class RequestOutput:
    """All outputs of a request, so far. The same object grows from step to step."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    prompt_logprobs: list[PositionLogprobs] | None = None
    num_cached_tokens: int = 0

    @property
    def finished(self) -> bool:
        """True if every output has ended."""
        return all(output.finish_reason is not None for output in self.outputs)


class LLMEngine:
    """Runs a model in this process, one step per call of :meth:`step`. For one thread.

    Takes the options of :class:`~bough.config.server_args.ServerArgs` as keywords, or a ready ``server_args``. Unlike
    ``Engine`` it imports torch here, and sets the number of its threads and its random seed. These threads do not spin
    while they wait, unless the program has imported torch before: then ``OMP_WAIT_POLICY=PASSIVE`` in its environment
    sees to that.

    A context manager; without it, :meth:`close` (or the garbage collector, or the end of the program) ends its threads
    and frees the model.

    Raises:
        ConfigError: if an option is wrong.
        StartupError: if the model cannot be loaded.
    """

    def __init__(self, server_args: ServerArgs | None = None, **options: Any) -> None:
        if server_args is None:
            server_args = ServerArgs.of_keywords(options)
        elif options:
            raise ConfigError(f"give either server_args or single options, not both ({', '.join(sorted(options))})")
        if server_args.bind_threads:
            raise ConfigError(
                "bind_threads is for processes of Bough's own, a server's or an Engine's: leave it out here",
                param="bind_threads",
            )
        plan = LaunchPlan.make(server_args)
        if plan.layout.num_schedulers > 1:
            name = "dp_size" if plan.layout.dp_size > 1 else "tp_size"
            raise ConfigError(f"{name} needs processes: a server, or an Engine", param=name)
        self.server_args = plan.server_args
        self.model_config = plan.model_config
        self.tokenizer, template = plan.load_text()
        self._detokenizer = None if self.tokenizer is None else DetokenizerManager(self.tokenizer)
        self._reasoning = reasoning_markers(server_args, self.model_config, self.tokenizer, template)
        self._deltas: list[OutputDelta] = []
        worker = worker_factory(plan.model_config)(plan.local_args, plan.model_config)
        self._scheduler: Scheduler | None = Scheduler(
            plan.local_args, plan.model_config, worker, self.tokenizer, send_to_detokenizer=self._deltas.extend
        )
        self._requests: dict[str, RequestOutput] = {}
        self._outputs: dict[str, tuple[RequestOutput, CompletionOutput]] = {}
        self._given_up: set[str] = set()
        """Ids of outputs that have ended with an error here, and whose end in the scheduler is still to come."""
        self._limits = RequestLimits.of_server(
            server_args, self.model_config, self.scheduler.init_info, self.tokenizer, self._reasoning
        )
        self._finalizer = weakref.finalize(self, self.scheduler.close)

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of the engine.

        Raises:
            EngineDead: after :meth:`close`.
        """
        if self._scheduler is None:
            raise EngineDead("the engine was closed")
        return self._scheduler

    def __enter__(self) -> LLMEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Finish the step that is being computed, end all threads and let go of the model. Requests are not finished.

        Later calls of :meth:`add_request`, :meth:`step` and :meth:`get_stats` raise :class:`EngineDead`. Doing it twice
        does nothing.
        """
        self._finalizer()
        self._scheduler = None

    def add_request(
        self,
        request_id: str,
        prompt: str | None = None,
        sampling_params: dict[str, Any] | SamplingParams | None = None,
        *,
        input_ids: Sequence[int] | None = None,
        return_logprob: bool = False,
        logprob_start_len: int = -1,
        top_logprobs_num: int = 0,
        token_ids_logprob: list[int] | None = None,
        priority: int | None = None,
        cache_salt: str | None = None,
    ) -> None:
        """Take a request; it is worked on from the next :meth:`step` on.

        One prompt each; its ``n`` samples are called ``request_id`` with ``_0``, ``_1`` ... behind it, and these ids
        must be free as well.

        Raises:
            BadRequest: naming the argument that is wrong.
            Overloaded: while the engine sleeps.
            EngineDead: after :meth:`close`.
        """
        scheduler = self.scheduler
        if scheduler.pause.holds_steps:
            raise Overloaded("the engine is asleep, or weights that were discarded have not been sent", code="asleep")
        if request_id in self._requests:
            raise BadRequest(f"request id {request_id!r} is in use", param="request_id")
        given = generate(
            prompt,
            sampling_params,
            input_ids,
            rid=request_id,
            stream=True,
            return_logprob=return_logprob,
            logprob_start_len=logprob_start_len,
            top_logprobs_num=top_logprobs_num,
            token_ids_logprob=token_ids_logprob,
            priority=priority,
            cache_salt=cache_salt,
        )
        if given.is_batch:
            raise BadRequest(
                "give one prompt at a time: text as prompt, or token ids as input_ids",
                param="input_ids" if prompt is None else "prompt",
            )
        (request,) = given.expand(preferred=self.server_args.preferred_sampling_params, text_name="prompt")
        taken = next((rid for rid in request.rids if rid in self._outputs or rid in self._given_up), None)
        if taken is not None:
            raise BadRequest(f"request id {taken!r} is in use", param="request_id")
        ids = self._encode(request)
        outputs = [
            CompletionOutput(index, logprobs=[] if return_logprob else None) for index in range(len(request.rids))
        ]
        result = RequestOutput(request_id, prompt, ids.tolist(), outputs)
        message = request.to_message(self._limits.fit_into_context(request))
        scheduler.process_input_requests([message])
        self._requests[request_id] = result
        self._outputs.update((rid, (result, output)) for rid, output in zip(request.rids, outputs, strict=True))

    def step(self) -> list[RequestOutput]:
        """Compute one step, or several in a row up to the next token that is to be told of; returns the requests that
        have news, with everything they have so far.

        Raises:
            EngineDead: after :meth:`close`.
        """
        self.scheduler.step()
        deltas = self._deltas[:]
        self._deltas.clear()
        if self._detokenizer is not None:
            deltas = self._detokenizer.handle_batch(BatchTokenIDOutput(deltas)).deltas
        news: dict[str, RequestOutput] = {}
        for delta in deltas:
            rid = delta.rid
            # Without text it is the detokenizer that gives up, and the scheduler goes on unless it is told.
            given_up = delta.finish_reason is not None and delta.text is None and self._detokenizer is not None
            if rid in self._outputs:
                request, output = self._outputs[rid]
                news[request.request_id] = request
                self._apply(delta, request, output)
                if given_up:
                    self._given_up.add(rid)
                    self.scheduler.process_input_requests([AbortReq(rid, exact=True)])
            elif delta.finish_reason is not None and not given_up:
                self._given_up.discard(rid)
        return list(news.values())

    def abort_request(self, request_id: str) -> None:
        """End a request; :meth:`step` reports its end. An unknown id does nothing."""
        request = self._requests.get(request_id)
        if request is not None and self._scheduler is not None:
            rids = [rid for rid, (owner, _) in self._outputs.items() if owner is request]
            self._scheduler.process_input_requests([AbortReq(rid, exact=True) for rid in rids])

    def has_unfinished_requests(self) -> bool:
        """True if :meth:`step` has anything to do or to report; no longer after :meth:`close`."""
        return self._scheduler is not None and (bool(self._deltas) or self._scheduler.has_unfinished_requests())

    def sleep(self, level: int = 1) -> None:
        """Give the memory of weights and KV cache back to the machine until :meth:`wake_up`. The prefix cache is
        forgotten, and :meth:`add_request` refuses meanwhile.

        Args:
            level: 1: weights of a checkpoint are read again, and those of a trainer stay, or go to
                ``sleep_directory``; 2: all weights are discarded, and have to be sent
                (:meth:`update_weights_from_tensor`) after :meth:`wake_up`.

        Raises:
            BadRequest: if requests are unfinished, or there is no such level.
            RequestFailed: if it cannot be done. All is as before then.
            EngineDead: after :meth:`close`.
        """
        self._control("release_memory_occupation", tags=list(MEMORY_TAGS), what=weights_asleep(level))

    def wake_up(self, tags: Sequence[str] | None = None) -> None:
        """Take memory again, by default all that is given back.

        Args:
            tags: of ``weights``, ``kv_cache`` (with what is recorded over it) and ``cuda_graph``.

        Raises:
            RequestFailed: if there is none, or the weights cannot be read. It stays given back then.
        """
        self._control("resume_memory_occupation", tags=woken_tags(tags))

    def is_sleeping(self) -> bool:
        """Return whether any memory is given back."""
        return self.scheduler.pause.is_asleep

    def update_weights_from_tensor(self, named_tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        """Take some weights: names as in the checkpoint, and tensors on any device. The prefix cache is forgotten.

        Raises:
            BadRequest: if requests are unfinished, or a weight does not fit. The old ones are there then.
        """
        with written_tensors(named_tensors) as path:
            self._control("update_weights_from_file", path=path, flush_cache=True, while_paused=False)

    def _control(self, method: str, **params: Any) -> None:
        """Call a control handler of the scheduler, while no request is there."""
        if self.has_unfinished_requests():
            raise BadRequest("requests are unfinished; call step() until there are none", code="not_idle")
        (reply,) = self.scheduler.process_input_requests([ControlReq(method, method, params)])
        if not reply.success:
            raise error_of(reply)

    def get_stats(self) -> SchedulerStats:
        """Load and counters of the scheduler.

        Raises:
            EngineDead: after :meth:`close`.
        """
        return self.scheduler.reports.stats()

    def _encode(self, request: GenerateRequest) -> array[int]:
        """The prompt of a request, which gets it too; everything but the room for its output is checked.

        Raises:
            BadRequest: naming the argument that is wrong.
        """
        limits = self._limits
        if request.text is not None:
            request.prompt_param = "prompt"
        limits.check_params(request.sampling_params)
        limits.check(request)
        if request.input_ids is None:
            assert self.tokenizer is not None, "checked"
            request.input_ids = array("i", self.tokenizer.encode(request.text or ""))
        if request.sampling_params.bad_words:
            assert self.tokenizer is not None, "checked"
            words = request.sampling_params.bad_words
            request.banned_sequences = sequences_of(words, self.tokenizer, limits.vocab_size)
        for _ in limits.check_prompt(request):
            pass
        if self._reasoning is not None:
            bound_thoughts(request, self._reasoning)
        return request.input_ids

    def _apply(self, delta: OutputDelta, request: RequestOutput, output: CompletionOutput) -> None:
        output.text += delta.text or ""
        output.token_ids += delta.token_ids
        if output.logprobs is not None:
            output.logprobs += delta.logprobs or ()
        if delta.input_logprobs is not None and output.index == 0:  # every sample tells the same of the prompt
            request.prompt_logprobs = [*(request.prompt_logprobs or ()), *delta.input_logprobs]
        request.num_cached_tokens = delta.cached_tokens
        reason = delta.finish_reason
        if reason is None:
            return
        output.finish_reason = reason.type
        output.stop_reason = reason.matched
        output.error = reason.message if reason.status_code is not None else None
        del self._outputs[delta.rid]
        if request.finished:
            del self._requests[request.request_id]
