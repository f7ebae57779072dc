"""Train the bundled model on its skills, for as long as there is time, and finish it whenever it is wanted.

``python tools/bundled_model/learn.py --run RUN`` trains at a constant rate, writes its state to the directory RUN every
few minutes and goes on from there when it is started again; what it learns does not depend on where it was cut.
``--finish STEPS`` takes the last state of RUN, lets the rate fall to nothing over that many steps and writes a model
directory to ``--out``; it goes on where it was cut, too. The state of RUN stays as it is, so that it can be trained
further; where there is none any more, ``--start MODEL`` goes on from a finished model, with the documents that it has
not read yet. Going back to the whole rate undoes more than a few million tokens teach: ``--scale`` lets a fall begin at
a part of it.

Documents are written as they are needed, from the seed and the number of the step alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from multiprocessing import get_context, parent_process
from pathlib import Path

import torch
from documents import MARKS, SPECIAL_TOKENS
from measure import Answers, measure
from network import DRAFT, Batch, Network, Shape, compute_deterministically, new_parameters, pack_drawn
from optimizer import Optimizer
from safetensors import safe_open
from safetensors.torch import save_file
from skills import SKILLS, draw
from tokenizers import Tokenizer
from tokens import encode, load_tokenizer
from torch import Tensor
from words import TOKENIZER, Stage
from write_model import write_model

# Where the parts of the skills change from those that teach copying to those of the domain, in tokens.
COPYING_TOKENS, MIXED_TOKENS = 3_000_000, 6_000_000
# Where each stage but the first begins, in tokens.
STAGE_TOKENS = (16_000_000, 23_500_000, 28_000_000, 30_720_000, 42_000_000, 56_115_200, 75_776_000)
AVERAGE = 0.998
# Part of the documents that are repetitions of any tokens.
ANY_TOKENS = 0.06
# Each step is computed in parts, by one thread each: products this small gain little from two.
PARTS = 2
NAMES = list(SKILLS)


@dataclass(frozen=True)
class Plan:
    """How a run learns: with few tokens a step at first, and with twice as many once the coarse is learned."""

    tokens: int = 4096
    small_steps: int = 4000
    warmup: int = 60
    seed: int = 11
    matrix_rate: float = 0.015
    rate: float = 3e-3

    def tokens_of(self, step: int) -> int:
        """Tokens of a step."""
        return self.tokens if step < self.small_steps else 2 * self.tokens

    def tokens_before(self, step: int) -> int:
        """Tokens of all steps before this one."""
        return self.tokens * (step + max(0, step - self.small_steps))


class Documents:
    """The documents of each step."""

    def __init__(self, tokenizer: Tokenizer, plan: Plan) -> None:
        self._tokenizer = tokenizer
        self._plan = plan

    def batches(self, step: int) -> list[Batch]:
        """Whole documents, of which the last is cut off where the tokens of a part of the step are full."""
        rng = random.Random(self._plan.seed * 1_000_003 + step)
        seen, tokens = self._plan.tokens_before(step), self._plan.tokens_of(step) // PARTS
        progress = min(1.0, max(0.0, (seen - COPYING_TOKENS) / (MIXED_TOKENS - COPYING_TOKENS)))
        stage = Stage(sum(seen >= begin for begin in STAGE_TOKENS))
        return [pack_drawn(partial(self._draw, rng, progress, stage), tokens) for _ in range(PARTS)]

    def _draw(self, rng: random.Random, progress: float, stage: Stage) -> tuple[list[int], list[bool], int]:
        if rng.random() < ANY_TOKENS:
            return *self._repetition(rng), NAMES.index("echo")
        name, document = draw(rng, progress, stage)
        return *encode(document, self._tokenizer), NAMES.index(name)

    def _repetition(self, rng: random.Random) -> tuple[list[int], list[bool]]:
        """Any tokens, and once more: what is rare in the documents is copied like everything else."""
        rows = range(len(SPECIAL_TOKENS) + len(MARKS), self._tokenizer.get_vocab_size())
        once = rng.choices(rows, k=rng.randint(4, 40))
        return once * 2, [False] * (len(once) + 1) + [True] * (len(once) - 1)


class DocumentsAhead:
    """The same, of which another process writes those of the next step while these are learned from."""

    def __init__(self, tokenizer: Tokenizer, plan: Plan) -> None:
        arguments = (tokenizer.to_str(), plan)
        self._writer = ProcessPoolExecutor(1, get_context("spawn"), _Writer.begin, arguments)
        self._ahead: dict[int, Future[list[Batch]]] = {}

    def batches(self, step: int) -> list[Batch]:
        """As of :class:`Documents`."""
        found = self._ahead.pop(step, None) or self._writer.submit(_Writer.batches, step)
        self._ahead = {step + 1: self._writer.submit(_Writer.batches, step + 1)}
        return found.result()


class _Writer:
    """What the process that writes keeps."""

    documents: Documents

    @classmethod
    def begin(cls, tokenizer: str, plan: Plan) -> None:
        torch.set_num_threads(1)
        threading.Thread(target=cls._end_with_parent, daemon=True).start()
        cls.documents = Documents(Tokenizer.from_str(tokenizer), plan)

    @staticmethod
    def _end_with_parent() -> None:
        """A pool ends its processes only where its own ends in order."""
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(0)

    @classmethod
    def batches(cls, step: int) -> list[Batch]:
        return cls.documents.batches(step)


class Trainer:
    """Parameters, their running average and the optimizer's state, all of which a state file holds.

    ``falls`` tell of each fall of the rate that was trained further: its first and its last step, and ``@`` and the
    part of the rate that it began at if that was not the whole. What is learned does not depend on the number of
    threads.
    """

    def __init__(
        self, shape: Shape, plan: Plan, documents: Documents | DocumentsAhead, compiled: bool, threads: int = 1
    ) -> None:
        self.plan = plan
        self.step = self.begun = 0
        self.falls: list[str] = []
        self.parameters = new_parameters(shape, plan.seed)
        self.average = {name: value.clone() for name, value in self.parameters.items()}
        self._documents = documents
        self._network = Network(shape, compiled)
        self._optimizer = Optimizer(self.parameters, plan.matrix_rate, plan.rate)
        self._pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))

    def advance(self, scale: float = 1.0) -> tuple[Tensor, Tensor]:
        """Learn from one batch; the sum of the losses of each of ``NAMES``, and the number of places."""
        batches = self._documents.batches(self.step)
        places = torch.stack([_by_skill(batch, torch.ones(batch.wanted.shape)) for batch in batches]).sum(0)
        learned = list(self._pool.map(self._learn, batches, [float(places.sum())] * len(batches)))
        parts = dict(zip(self.parameters, zip(*(gradients for _, gradients in learned), strict=True), strict=True))
        age = self.step - self.begun
        rate = scale * min(1.0, (age + 1) / self.plan.warmup)
        # A young average would be mostly the beginning.
        kept = min(AVERAGE, (age + 2) / (age + 11))

        def change(name: str) -> None:
            self._optimizer.change(name, torch.stack(parts[name]).sum(0), age, rate)
            self.average[name].lerp_(self.parameters[name], 1 - kept)

        for _ in self._pool.map(change, self._optimizer.order):
            pass
        self.step += 1
        return torch.stack([losses for losses, _ in learned]).sum(0), places

    def _learn(self, batch: Batch, places: float) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The losses of each of ``NAMES``, and the gradients of their mean over all ``places`` of the step."""
        own = {name: value.detach().requires_grad_() for name, value in self.parameters.items()}
        losses = self._network.losses(own, batch)
        return _by_skill(batch, losses.detach()), torch.autograd.grad(losses.sum() / places, list(own.values()))

    def save(self, path: Path, told: Mapping[str, str] | None = None) -> None:
        """Write the state, and what else is ``told`` of it, so that the file is always whole."""
        tensors = {f"parameter.{name}": value for name, value in self.parameters.items()}
        tensors |= {f"average.{name}": value for name, value in self.average.items()}
        tensors |= {f"optimizer.{name}": value for name, value in self._optimizer.state.items()}
        unfinished = path.with_suffix(".new")
        save_file(tensors, unfinished, self.told() | dict(told or {}))
        os.replace(unfinished, path)

    def digest(self) -> str:
        """SHA-256 of the parameters."""
        found = hashlib.sha256()
        for name, value in self.parameters.items():
            found.update(name.encode() + value.numpy().tobytes())
        return found.hexdigest()

    def told(self) -> dict[str, str]:
        """What a file says of the training behind it; ``tokens`` are those of an early step."""
        told = {"step": self.step, "begun": self.begun, "seen": self.plan.tokens_before(self.step)}
        told |= {"seed": self.plan.seed, "tokens": self.plan.tokens, "small_steps": self.plan.small_steps}
        return {name: str(value) for name, value in told.items()} | {"falls": " ".join(self.falls)}

    def load(self, path: Path) -> None:
        """Go on from a state; ``ValueError`` if it comes from another seed or plan, or does not say from which."""
        with safe_open(path, "pt") as file:
            told = self._checked(path, file.metadata() or {})
            self.step, self.begun, self.falls = int(told["step"]), int(told["begun"]), told["falls"].split()
            for name, value in self.parameters.items():
                value.copy_(file.get_tensor(f"parameter.{name}"))
                self.average[name].copy_(file.get_tensor(f"average.{name}"))
            for name, state in self._optimizer.state.items():
                state.copy_(file.get_tensor(f"optimizer.{name}"))

    def start(self, model: Path) -> None:
        """Go on from the directory of a finished model, with an optimizer that knows nothing.

        Raises:
            ValueError: as for a state, or the model is of another shape, or does not say how it was trained.
        """
        path = model / "model.safetensors"
        with safe_open(path, "pt") as file:
            told = self._checked(path, file.metadata() or {}, "fall")
            tensors = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118 (not a mapping)
            if tensors.keys() != self.parameters.keys():
                raise ValueError(f"{path} has other tensors: {min(tensors.keys() ^ self.parameters.keys())}")
            for name, value in self.parameters.items():
                if tensors[name].shape != value.shape:
                    raise ValueError(f"{name} of {path} has another shape")
            self.step = self.begun = int(told["step"])
            self.falls = [*told["falls"].split(), fall_of(told)]
            for name, value in self.parameters.items():
                value.copy_(tensors[name])
                self.average[name].copy_(value)

    def _checked(self, path: Path, told: Mapping[str, str], *besides: str) -> Mapping[str, str]:
        """What a header tells, if that is all that :meth:`told` does, and more, of the same seed and plan."""
        own = self.told()
        missing = sorted({*own, *besides} - told.keys())
        if missing:
            raise ValueError(f"the header of {path} has no {missing[0]!r}: learn.py did not write it")
        for name in ("seed", "tokens", "small_steps"):
            if told[name] != own[name]:
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(f"{path} was learned with {flag} {told[name]}, not {own[name]}")
        return told


def fall_of(told: Mapping[str, str]) -> str:
    """The fall that a finished model ended with, as ``falls`` tell of it."""
    step, scale = int(told["step"]), float(told.get("scale", "1"))
    return f"{step - int(told['fall'])}-{step}" + (f"@{scale!r}" if scale != 1 else "")


def _by_skill(batch: Batch, values: Tensor) -> Tensor:
    """The sum of each of ``NAMES`` over the scored places."""
    scored = batch.wanted >= 0
    return torch.zeros(len(NAMES)).index_add_(0, batch.skills[scored], values[scored])


def log(path: Path, entry: dict[str, object]) -> None:
    """Add a line of JSON."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def rounds(trainer: Trainer, every: int, log_path: Path, scales: Iterator[float]) -> Iterator[None]:
    """Learn, and write the losses to the log after every so many steps, after which the caller has a turn."""
    sums, counts = torch.zeros(len(NAMES)), torch.zeros(len(NAMES))
    begin, begin_cpu = time.monotonic(), time.process_time()
    for scale in scales:
        losses, places = trainer.advance(scale)
        sums, counts = sums + losses, counts + places
        if trainer.step % every:
            continue
        by_skill = {
            name: round(float(total / count), 4)
            for name, total, count in zip(NAMES, sums, counts, strict=True)
            if count
        }
        seen = trainer.plan.tokens_before(trainer.step)
        tokens = seen - trainer.plan.tokens_before(trainer.step - every)
        entry = {
            "step": trainer.step,
            "tokens": seen,
            "scale": round(scale, 4),
            "loss": round(float(sums.sum() / counts.sum()), 4),
            "losses": by_skill,
            "tokens_per_second": round(tokens / (time.monotonic() - begin)),
            "tokens_per_cpu_second": round(tokens / (time.process_time() - begin_cpu)),
        }
        log(log_path, entry)
        print(json.dumps(entry), flush=True)
        sums, counts = torch.zeros(len(NAMES)), torch.zeros(len(NAMES))
        yield
        begin, begin_cpu = time.monotonic(), time.process_time()


def finish(trainer: Trainer, arguments: argparse.Namespace) -> None:
    """Let the rate fall to nothing, from where that was cut if it was."""
    state, first = arguments.run / "finish.safetensors", trainer.step
    told = fall_told(arguments) | {"first": str(first), "from": trainer.digest()}
    if state.exists():
        with safe_open(state, "pt") as file:
            begun = file.metadata()
        if told.items() <= begun.items():
            trainer.load(state)
            print(f"going on with a fall from step {first} at step {trainer.step}", flush=True)
    left = range(arguments.finish - (trainer.step - first), 0, -1)
    scales = (arguments.scale * steps / arguments.finish for steps in left)
    saved = time.monotonic()
    for _ in rounds(trainer, arguments.log_every, arguments.run / "finish.jsonl", scales):
        if time.monotonic() - saved > arguments.save_every:
            trainer.save(state, told)
            saved = time.monotonic()


def fall_told(arguments: argparse.Namespace) -> dict[str, str]:
    """What the header of a finished model tells of its fall."""
    return {"fall": str(arguments.finish), "scale": repr(arguments.scale)}


def tokenizer_of(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> Tokenizer:
    """The tokenizer of a run: its own, or where it has none yet that of the model it starts from or the published one.

    Documents have made-up words of the tokens of the published one: where that changes, they change.
    """
    own = arguments.run / "tokenizer.json"
    if not arguments.start:
        if not (own.exists() or arguments.new_tokenizer):
            shutil.copyfile(TOKENIZER, own)
        return load_tokenizer(arguments.run)
    given = Tokenizer.from_file(str(arguments.start / "tokenizer.json"))
    if own.exists() and Tokenizer.from_file(str(own)).to_str() != given.to_str():
        parser.error(f"{own} is not the tokenizer of {arguments.start}")
    return given


def main() -> None:
    """Train, go on training, or finish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="directory of the state, the tokenizer and the log")
    parser.add_argument("--steps", type=int, default=1_000_000, help="stop at this step")
    parser.add_argument(
        "--finish", type=int, metavar="STEPS", help="let the rate fall over STEPS steps, then write --out"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="part of the rate that a fall begins at")
    parser.add_argument("--out", type=Path, help="model directory to write; without --finish, of the running average")
    parser.add_argument("--start", type=Path, metavar="MODEL", help="a finished model, where RUN has no state yet")
    parser.add_argument(
        "--draft", action="store_true", help="train the small shape, with the tokenizer of the bundled model"
    )
    parser.add_argument("--new-tokenizer", action="store_true", help="train one where RUN has none yet")
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--threads", type=int, default=PARTS, choices=range(1, PARTS + 1))
    parser.add_argument("--tokens", type=int, default=Plan.tokens, help="tokens of an early step")
    parser.add_argument("--small-steps", type=int, default=Plan.small_steps, help="how many steps are early ones")
    parser.add_argument("--compile", action="store_true", help="compile what is not a product: a fifth faster")
    parser.add_argument("--save-every", type=int, default=180, metavar="SECONDS")
    parser.add_argument("--log-every", type=int, default=20, metavar="STEPS")
    parser.add_argument("--measure-every", type=int, default=0, metavar="STEPS", help="0, the default: never")
    parser.add_argument("--measure-cases", type=int, default=20, help="of each skill")
    arguments = parser.parse_args()
    if arguments.finish and not arguments.out:
        parser.error("--finish needs --out")
    if arguments.new_tokenizer and (arguments.start or arguments.draft):
        parser.error("--new-tokenizer goes with neither --start nor --draft")
    if arguments.scale != 1 and not arguments.finish:
        parser.error("--scale needs --finish")
    if not 0 < arguments.scale <= 1:
        parser.error("--scale must be above 0 and at most 1")
    if arguments.tokens % PARTS:
        parser.error(f"--tokens must be a multiple of {PARTS}")
    torch.set_num_threads(1)
    compute_deterministically()

    arguments.run.mkdir(parents=True, exist_ok=True)
    tokenizer = tokenizer_of(arguments, parser)
    shape = replace(DRAFT if arguments.draft else Shape(), vocab_size=tokenizer.get_vocab_size())
    plan = Plan(tokens=arguments.tokens, small_steps=arguments.small_steps, seed=arguments.seed)
    trainer = Trainer(shape, plan, DocumentsAhead(tokenizer, plan), arguments.compile, arguments.threads)
    state, log_path = arguments.run / "state.safetensors", arguments.run / "log.jsonl"
    try:
        if state.exists():
            trainer.load(state)
        elif arguments.start:
            trainer.start(arguments.start)
            tokenizer.save(str(arguments.run / "tokenizer.json"))
    except ValueError as error:
        parser.error(str(error))
    print(
        f"{sum(value.numel() for value in trainer.parameters.values()):,} parameters, step {trainer.step}", flush=True
    )
    if arguments.out and not arguments.finish:
        write_model(arguments.out, trainer.average, shape, tokenizer, trainer.told() | {"fall": "0"})
        return
    if arguments.finish:
        finish(trainer, arguments)
        write_model(arguments.out, trainer.parameters, shape, tokenizer, trainer.told() | fall_told(arguments))
        (arguments.run / "finish.safetensors").unlink(missing_ok=True)
        return
    saved = time.monotonic()
    for _ in rounds(trainer, arguments.log_every, log_path, repeat(1.0, max(0, arguments.steps - trainer.step))):
        if time.monotonic() - saved > arguments.save_every:
            trainer.save(state)
            saved = time.monotonic()
        if arguments.measure_every and trainer.step % arguments.measure_every == 0:
            torch.set_num_threads(arguments.threads)
            with Answers.of(trainer.average, shape, tokenizer) as answers:
                found = measure(answers, arguments.measure_cases, temperature=0.0)
            torch.set_num_threads(1)
            entry = {"step": trainer.step, "right": {skill: score.share for skill, score in found.items()}}
            log(log_path, entry)
            print(json.dumps(entry), flush=True)
    trainer.save(state)


if __name__ == "__main__":
    main()
