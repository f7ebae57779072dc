"""Checks of ``make gpu-check`` that run a whole scheduler over a small model."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch


def prompt(length: int, seed: int) -> list[int]:
    from tests.models.checkpoints import VOCAB_SIZE

    return [int(token) for token in np.random.default_rng(seed).integers(0, VOCAB_SIZE, length)]


class CheckServer:
    """A scheduler over a small model in float32, and what it has answered.

    Attributes:
        outputs: tokens of each request so far.
        logprobs: of these, as far as they were asked for.
    """

    def __init__(self, device: torch.device, *, grammars: bool = False, **options: Any) -> None:
        from tests.models.checkpoints import VOCAB_SIZE, save_checkpoint

        from bough.config.model_config import ModelConfig
        from bough.config.server_args import ServerArgs, resolve
        from bough.model_executor.tp_worker import TpModelWorker
        from bough.scheduler.scheduler import Scheduler

        self.outputs: dict[str, list[int]] = {}
        self.logprobs: dict[str, list[float]] = {}
        vocab_size, text_options = VOCAB_SIZE, dict[str, Any]()
        if grammars:
            from tests.constrained import following

            from bough.constrained.compiler import GrammarCompiler

            vocab_size = following.VOCAB_SIZE
            backend = following.bundled_backend()
            text_options["make_compiler"] = lambda: GrammarCompiler(lambda spec, _: backend.compile(spec), timeout_s=60)
        tokenizer = following.bundled_tokenizer() if grammars else None
        shape = {"vocab_size": vocab_size, "max_position_embeddings": 1024, "head_dim": 64}
        with tempfile.TemporaryDirectory() as directory:
            save_checkpoint(Path(directory), "Llama", **shape)
            args = resolve(
                ServerArgs(
                    model_path=directory,
                    device=device.type,
                    dtype="float32",
                    skip_tokenizer_init=True,
                    random_seed=0,
                    max_total_tokens=4096,
                    max_running_requests=8,
                    **options,
                )
            )
            config = ModelConfig.from_path(directory, dtype="float32", device=device.type)
            self.worker = TpModelWorker(args, config)
            self.scheduler = Scheduler(
                args, config, self.worker, tokenizer, send_to_detokenizer=self._keep, **text_options
            )

    def _keep(self, deltas: list[Any]) -> None:
        for delta in deltas:
            self.outputs.setdefault(delta.rid, []).extend(delta.token_ids)
            self.logprobs.setdefault(delta.rid, []).extend(entry.logprob for entry in delta.logprobs or ())

    def send(self, name: str, *, logprobs: bool = False, **params: Any) -> None:
        from bough.ipc.messages import TokenizedGenerateReqInput
        from bough.sampling.sampling_params import SamplingParams

        ids = np.array(prompt(10 + 20 * int(name), int(name)), dtype="<i4").tobytes()
        sampling = SamplingParams(**{"ignore_eos": True, **params})
        asked: dict[str, Any] = {"return_logprob": True, "top_logprobs_num": 2} if logprobs else {}
        self.scheduler.process_input_requests([TokenizedGenerateReqInput([name], ids, sampling, stream=True, **asked)])

    def abort(self, name: str) -> None:
        from bough.ipc.messages import AbortReq

        self.scheduler.process_input_requests([AbortReq(name, exact=True)])

    def finish(self) -> dict[str, list[int]]:
        while self.scheduler.has_unfinished_requests():
            self.scheduler.step()
        outputs, self.outputs = self.outputs, {}
        return outputs


def serving(device: torch.device, *, small: bool) -> dict[str, Any]:
    """A real scheduler over a real worker: many requests together, and each alone, in float32."""
    server = CheckServer(device)
    count, length = (3, 4) if small else (12, 40)
    params = {"temperature": 0.8, "top_p": 0.9, "max_new_tokens": length, "sampling_seed": 5}
    names = [str(index) for index in range(count)]
    for name in names:
        server.send(name, **params)
    together, alone = server.finish(), {}
    for name in names:
        server.send(name, **params)
        alone |= server.finish()
    different = [name for name in names if together[name] != alone[name]]
    return {"ok": not different, "requests": count, "tokens": count * length, "different": different}


class CountingLane:
    """Passes everything on, and counts what is waited for."""

    def __init__(self, lane: Any) -> None:
        self._lane = lane
        self.steps = self.waits = 0

    def begin(self) -> None:
        self._lane.begin()

    def read(self, tensors: Any) -> Any:
        self.steps += 1
        readback = self._lane.read(tensors)
        wait = readback.wait

        def counted_wait() -> Any:
            self.waits += 1
            return wait()

        readback.wait = counted_wait
        return readback


KINDS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.9, "sampling_seed": 3, "logprobs": True},
    {"temperature": 0.9, "sampling_seed": 4, "top_p": 0.8, "top_k": 30},
    {"temperature": 0.9, "sampling_seed": 5, "frequency_penalty": 0.5, "repetition_penalty": 1.2},
    {"temperature": 0.0, "allowed_token_ids": tuple(range(3, 90)), "logit_bias": {5: 1.0}, "logprobs": True},
    {"temperature": 0.0, "stop_token_ids": tuple(range(0, 160, 7)), "min_new_tokens": 3},
]
"""Requests whose steps may be launched ahead."""

_CHECKED_SCHEMA = """{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type":
 "integer", "minimum": 0, "maximum": 120}}, "required": ["name", "age"], "additionalProperties": false}"""

GRAMMAR_KINDS: list[dict[str, Any]] = [
    {"temperature": 0.9, "sampling_seed": 6, "json_schema": _CHECKED_SCHEMA, "ignore_eos": False},
    {"temperature": 0.0, "regex": "[0-9]{3}-[a-z]{4}", "ignore_eos": False},
    {"temperature": 0.9, "sampling_seed": 7},
    {"temperature": 0.0, "choice": ("yes", "no", "maybe"), "ignore_eos": False},
]
"""Some that follow a grammar, and one beside them that does not."""


@contextmanager
def compilations() -> Iterator[list[str]]:
    """Names of the kernels that Triton compiles, or takes from its cache on the disk, meanwhile."""
    from triton import knobs

    names: list[str] = []

    def note(*, repr: str, **_: Any) -> None:
        names.append(repr.partition("[")[0])

    before, knobs.runtime.jit_post_compile_hook = knobs.runtime.jit_post_compile_hook, note
    try:
        yield names
    finally:
        knobs.runtime.jit_post_compile_hook = before


_forgotten: list[Any] = []
"""What was compiled before: graphs may launch kernels that a newer Triton unloads with the last that knows of them."""


def forget_compiled() -> None:
    """Have kernels compiled as if the process had just begun. In the interpreter there is nothing to forget."""
    from triton.runtime.jit import JITFunction

    for name in [name for name in sys.modules if name.startswith("bough.kernels.triton.")]:
        for each in vars(sys.modules[name]).values():
            if isinstance(each, JITFunction):
                _forgotten.append(dict(each.device_caches))
                each.device_caches.clear()


def ahead(device: torch.device, kinds: list[dict[str, Any]], *, small: bool) -> dict[str, Any]:
    """Requests of many kinds, one of them aborted, with steps one by one and with steps launched ahead.

    Whatever these need was compiled before the first of them came.
    """
    from bough.scheduler.executor import AheadExecutor

    length = 4 if small else 60
    aborted = str(len(kinds))

    def run(server: CheckServer) -> dict[str, list[int]]:
        server.logprobs.clear()
        server.send(aborted, max_new_tokens=500, temperature=0.0)
        for index, kind in enumerate(kinds):
            server.send(str(index), max_new_tokens=length, **kind)
            server.scheduler.step()
        server.abort(aborted)
        outputs = server.finish()
        ended_early = len(outputs.pop(aborted)) < 500
        return outputs if ended_early else {}

    options: dict[str, Any] = {"chunked_prefill_size": 64, "grammars": any("choice" in kind for kind in kinds)}
    forget_compiled()
    one_by_one = CheckServer(device, disable_overlap_schedule=True, **options)
    with compilations() as compiled:
        expected = run(one_by_one)
    server = CheckServer(device, disable_overlap_schedule=False, **options)
    runs_ahead = isinstance(server.scheduler.executor, AheadExecutor)
    if small:
        server.scheduler.executor = server.scheduler.steps.executor = AheadExecutor(server.worker)
    run(server)  # makes torch's own libraries ready
    lane = CountingLane(server.worker.lane)
    server.worker.lane = lane
    launch = server.worker.launch

    def strict_launch(plan: Any) -> Any:
        """Whatever waits for the device in here raises, but events."""
        torch.cuda.set_sync_debug_mode("error")
        try:
            return launch(plan)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    if not small:
        server.worker.launch = strict_launch
    computed = run(server)
    different = [name for name in expected if expected[name] != computed.get(name)]
    pairs = [
        pair
        for name in expected
        if name not in different
        for pair in zip(one_by_one.logprobs[name], server.logprobs[name], strict=True)
    ]
    off = max((abs(ours - theirs) for ours, theirs in pairs), default=0.0)
    ok = bool(expected) and not different and off <= 1e-3 and (small or runs_ahead) and lane.waits == lane.steps
    return {
        "ok": ok and not compiled,
        "compiled_when_ready": sorted(set(compiled)),
        "different": different,
        "logprobs": len(pairs),
        "logprobs_off": off,
        "runs_ahead": runs_ahead,
        "steps": lane.steps,
        "waits": lane.waits,
    }
