"""An engine for tests: everything behind the TokenizerManager's channels, in this process and without a model.

What it generates depends only on prompt and seed. Text, held-back characters and stop strings are made with the real
tokenizer and the real stop logic.
"""

from __future__ import annotations

import asyncio
import random
from array import array
from typing import Any

import msgspec

from bough.config.ranks import DETOKENIZER, SCHEDULER
from bough.errors import EngineDead
from bough.ipc.messages import (
    AbortReq,
    BatchStrOutput,
    ControlReply,
    ControlReq,
    FinishReason,
    Heartbeat,
    OutputDelta,
    PositionLogprobs,
    TokenizedGenerateReqInput,
    ToScheduler,
    ToTokenizer,
)
from bough.observability.stats import SchedulerStats
from bough.tokenization.incremental_decoder import incremental_decoder
from bough.tokenization.stop_matcher import StopMatcher
from bough.tokenization.tokenizer import Tokenizer

SCRIPT = (
    "Once upon a time there was a small tree 🌳 at the edge of a wood. It had “quotes”, a naïve café, "
    'back\\slashes, "double quotes",\ttabs and\nnew lines; 快速的棕色狐狸 ran past it, 👩‍👩‍👧‍👦 too. '
    "The end came late. "
)


class FakeEngine:
    """Implements the channels of the main process.

    Attributes:
        running: samples that are being generated, by id.
        aborted: ids of the samples that were ended by an abort.
        received: every request that came in.
        gate: clear it to stop generating.
        token_delay: seconds between two tokens of a sample.
        refusal: finish reason of every request from now on, or ``None``.
        fail_after: tokens after which a request fails, or ``None``.
        says: what every request is answered with, and nothing more; ``None`` for the script.
        queue_time: seconds that every output is said to have waited.
        lengths: tokens that each sample has so far, by id.
        misfit: why new weights do not fit; they do if empty.
    """

    def __init__(self, tokenizer: Tokenizer | None, *, eos_id: int | None = None, script: str = SCRIPT) -> None:
        self.tokenizer = tokenizer
        self.eos_id = eos_id
        self.script = script
        self.running: dict[str, asyncio.Task[None]] = {}
        self.aborted: list[str] = []
        self.received: list[TokenizedGenerateReqInput] = []
        self.control_calls: list[ControlReq] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.token_delay = 0.0
        self.refusal: FinishReason | None = None
        self.fail_after: int | None = None
        self.says: str | None = None
        self.queue_time = 0.001
        self.dead = False
        self.paused = False
        self.asleep: set[str] = set()
        self.lengths: dict[str, int] = {}
        self.misfit = ""
        self.internal_state: dict[str, Any] = {}
        self.cache_outline: dict[str, Any] = {"nodes": [], "protected_tokens": 0, "evictable_tokens": 0}
        self._outbox: asyncio.Queue[ToTokenizer] = asyncio.Queue()

    # --- channels -------------------------------------------------------------------------------------------------

    async def recv(self) -> ToTokenizer:
        return await self._outbox.get()

    @property
    def malformed_total(self) -> int:
        return 0

    @property
    def lagging(self) -> bool:
        return not self._outbox.empty()

    def send(self, message: ToScheduler) -> None:
        if self.dead:
            raise EngineDead("the engine was shut down")
        if isinstance(message, TokenizedGenerateReqInput):
            self.received.append(message)
            self._start(message)
        elif isinstance(message, AbortReq):
            self._abort(message)
        elif isinstance(message, ControlReq) and message.stage != "run":
            self._outbox.put_nowait(ControlReply(message.call_id, SCHEDULER, True))
        elif isinstance(message, ControlReq):
            self.control_calls.append(message)
            self._outbox.put_nowait(self._control(message))

    # --- what it does ---------------------------------------------------------------------------------------------

    def heartbeat(self, **stats: Any) -> None:
        self._outbox.put_nowait(Heartbeat(SCHEDULER, SchedulerStats(paused=self.paused, **stats)))
        self._outbox.put_nowait(Heartbeat(DETOKENIZER))

    def _start(self, message: TokenizedGenerateReqInput) -> None:
        if self.refusal is not None:
            self._emit([OutputDelta(rid, [], "", self.refusal) for rid in message.rids])
            return
        for index, rid in enumerate(message.rids):
            assert rid not in self.running, "the scheduler must never see an id twice"
            task = asyncio.get_running_loop().create_task(self._generate(message, index))
            self.running[rid] = task
            task.add_done_callback(lambda _, rid=rid: self._forget(rid))

    def _forget(self, rid: str) -> None:
        self.running.pop(rid, None)
        self.lengths.pop(rid, None)

    def _abort(self, message: AbortReq) -> None:
        for rid in list(self.running):
            hit = message.abort_all or (rid == message.rid if message.exact else rid.startswith(message.rid))
            if hit:
                self.running.pop(rid).cancel()
                self.aborted.append(rid)
                self._emit([OutputDelta(rid, [], "", FinishReason("abort", message="aborted"))])

    def _control(self, message: ControlReq) -> ControlReply:
        if message.method == "flush_cache":
            if self.running:
                return ControlReply(message.call_id, SCHEDULER, False, "requests are running")
            return ControlReply(message.call_id, SCHEDULER, True)
        if message.method == "get_internal_state":
            state = {**msgspec.structs.asdict(SchedulerStats()), "effective_max_running_requests_per_dp": 8}
            return ControlReply(
                message.call_id, SCHEDULER, True, "", {**state, "last_gen_throughput": 1.0, **self.internal_state}
            )
        if message.method == "get_cache_outline":
            return ControlReply(message.call_id, SCHEDULER, True, "", self.cache_outline)
        if message.method == "pause_generation":
            if message.params["mode"] == "abort":
                self._abort(AbortReq(abort_all=True))
            self.gate.clear()
            self.paused = True
            self.heartbeat()
            return ControlReply(message.call_id, SCHEDULER, True)
        if message.method == "continue_generation":
            self.gate.set()
            self.paused = False
            self.heartbeat()
            return ControlReply(message.call_id, SCHEDULER, True)
        if message.method == "start_profile":
            return ControlReply(message.call_id, SCHEDULER, True)
        if message.method.endswith("_memory_occupation"):
            tags = set(message.params["tags"])
            self.asleep = self.asleep | tags if message.method.startswith("release") else self.asleep - tags
            data = {"asleep": sorted(self.asleep), "num_missing": 0}
            return ControlReply(message.call_id, SCHEDULER, True, "", data)
        if message.method.endswith("_weights_update_group"):
            return ControlReply(message.call_id, SCHEDULER, not self.misfit, self.misfit)
        if message.method.startswith("update_weights_from_"):
            if self.misfit:
                told = {"status_code": 400, "param": "names", "code": None}
                return ControlReply(message.call_id, SCHEDULER, False, self.misfit, told)
            lengths = {rid: self.lengths[rid] for rid in self.running}
            data = {"num_changed": 2, "num_missing": 0, "num_paused_requests": len(lengths), "output_lens": lengths}
            return ControlReply(message.call_id, SCHEDULER, True, "", data)
        if message.method == "get_output_lens":
            lengths = {rid: self.lengths[rid] for rid in self.running}
            return ControlReply(message.call_id, SCHEDULER, True, "", {"output_lens": lengths})
        if message.method == "get_weights_by_name":
            if message.params["name"] != "norm":
                told = {"status_code": 400, "param": "name", "code": None}
                return ControlReply(message.call_id, SCHEDULER, False, "name: the model has no such weight", told)
            return ControlReply(message.call_id, SCHEDULER, True, "", {"rows": [0.5] * message.params["truncate_size"]})
        if message.method == "stop_profile":
            return ControlReply(
                message.call_id, SCHEDULER, True, "", {"paths": ["/profiles/p-scheduler.trace.json.gz"]}
            )
        return ControlReply(message.call_id, SCHEDULER, False, f"unknown control method {message.method}")

    def _emit(self, deltas: list[OutputDelta]) -> None:
        self._outbox.put_nowait(BatchStrOutput(deltas))

    def script_ids(self, prompt: list[int], sample: int, seed: int | None) -> list[int]:
        """What would be generated, if nothing ended it."""
        if self.tokenizer is None:
            return [(token + 1) % 256 for token in prompt] or [1]
        if self.says is not None:
            return self.tokenizer.encode(self.says, add_special_tokens=False).tolist()
        words = self.script.split(" ")
        start = random.Random(f"{sum(prompt)} {sample} {seed}").randrange(len(words))
        text = " ".join(words[start:] + words[:start])
        return self.tokenizer.encode(text, add_special_tokens=False).tolist()

    async def _generate(self, message: TokenizedGenerateReqInput, sample: int) -> None:
        params = message.sampling_params
        prompt = array("i", message.input_ids).tolist()
        seed = None if params.sampling_seed is None else params.sampling_seed + sample
        ids = self.script_ids(prompt, sample, seed)
        text_of = _Text(self.tokenizer, prompt, message) if self.tokenizer is not None else None
        output: list[int] = []
        sent, announced = 0, False
        rid = message.rids[sample]
        self.lengths[rid] = 0
        assert params.max_new_tokens is not None
        while True:
            await self.gate.wait()
            await asyncio.sleep(self.token_delay)
            reason = None
            if self.fail_after is not None and len(output) >= self.fail_after:
                reason = FinishReason("abort", message="out of luck", status_code=500)
            elif len(output) >= params.max_new_tokens:
                reason = FinishReason("length", length=len(output))
            else:
                token = ids[len(output) % len(ids)] if ids else 0
                at_end = self.eos_id is not None and len(output) >= len(ids) and not params.ignore_eos
                if at_end:
                    token = self.eos_id
                output.append(token)
                self.lengths[rid] = len(output)
                is_stop_token = token in params.stop_token_ids or at_end
                if text_of is not None and not (is_stop_token and not params.no_stop_trim):
                    matched = text_of.push(token)
                    if matched is not None:
                        reason = FinishReason("stop", matched=matched)
                if reason is None and is_stop_token:
                    reason = FinishReason("stop", matched=token)
                if reason is None and len(output) >= params.max_new_tokens:
                    reason = FinishReason("length", length=len(output))
            text, released = None, len(output)
            if text_of is not None:
                text, pending = text_of.take(end=reason is not None)
                released -= pending
            delta = OutputDelta(
                rid=rid,
                token_ids=output[sent:released],
                text=text,
                finish_reason=reason,
                completion_tokens=released,
                prompt_tokens=len(prompt),
                cached_tokens=len(prompt) // 2 + sample,
            )
            is_news = bool(released > sent or text or reason is not None)
            if is_news and not announced:
                announced = True
                delta.queue_time, delta.first_token_delay = self.queue_time, 0.002
            if delta.finish_reason is not None:
                delta.last_token_delay = 0.003
            if message.return_logprob:
                delta.logprobs = [logprobs_of(token, message) for token in output[sent:released]]
                if sent == 0 and message.logprob_start_len >= 0 and (released or reason):
                    delta.input_logprobs = [
                        logprobs_of(token, message, first=position == 0)
                        for position, token in enumerate(prompt)
                        if position >= message.logprob_start_len
                    ]
            if is_news:
                sent = released
                self._emit([delta])
            if reason is not None:
                return


class _Text:
    """Text of one output, as the engine's processes make it."""

    def __init__(self, tokenizer: Tokenizer, prompt: list[int], message: TokenizedGenerateReqInput) -> None:
        params = message.sampling_params
        self.decoder = incremental_decoder(tokenizer, prompt[-5:], params.skip_special_tokens)
        self.matcher = StopMatcher(params.stop, params.stop_regex, params.no_stop_trim)
        self.pieces: list[str] = []
        self.pending = 0

    def push(self, token: int) -> str | None:
        text, self.pending = self.decoder.push([token])
        step = self.matcher.push(text)
        self.pieces.append(step.text)
        return step.matched

    def take(self, *, end: bool) -> tuple[str, int]:
        if end and self.matcher.matched is None:
            self.pieces.append(self.matcher.push(self.decoder.flush()).text)
            if self.matcher.matched is None:
                self.pieces.append(self.matcher.flush())
        text = "".join(self.pieces)
        self.pieces.clear()
        return text, 0 if end else self.pending


def logprobs_of(token: int, message: TokenizedGenerateReqInput, *, first: bool = False) -> PositionLogprobs:
    """Made up, but a function of the token, so that tests can tell whose they are."""
    value = -(token % 97) / 8
    top = [(value - i, (token + i) % 256) for i in range(message.top_logprobs_num)]
    chosen = None
    if message.token_ids_logprob is not None:
        chosen = [(-float(i % 7), i) for i in message.token_ids_logprob]
    if first:
        return PositionLogprobs(None, token, None, None)
    return PositionLogprobs(value, token, top if message.top_logprobs_num else None, chosen)
