"""Is what Bough computes on this GPU right? Prints a line per check and writes JSON.

- kernels: every Triton kernel in bfloat16, float16 and float32 against plain torch in float64;
- models: logits of a small Llama and Qwen3 against transformers, prompts in chunks and decode steps;
- graphs: recorded decode steps against the same steps launched one by one, and these with decode rows in groups;
- deterministic: with ``--enable-deterministic-inference`` a row has the same bits wherever it is computed;
- quantised: logits of a small model whose weights, or keys and values, have few bits against those of the same model;
- ranks: logits of a model that two ranks compute against one's;
- attention: torch's, and FlashInfer's where it is installed, against Triton's;
- vectors: embeddings of an encoder and of a language model, in float32, against transformers;
- serving: a scheduler that answers several requests at a time gives what single requests give;
- memory: with 95 % of what is left taken by the KV pool, the largest steps that may come still find room, also where
  that pool had to be made smaller once;
- ahead: steps that are launched before the results of those before are known give what steps one by one give, aborts,
  logprobs and grammars included, the host waits once a step, nothing else waits for the device, and no kernel is
  compiled for them.

Builds and installs nothing. What needs a package that is not there is skipped, and said so. Exits with 1 if anything is
wrong, else with 3 if anything was skipped that is not optional, as FlashInfer is; with 2 if nothing was run.

    PYTHONPATH=src python -m benchmarks.gpu.check [--device cuda|cpu] [--output FILE]

``--device cpu`` is a dry run of small shapes in Triton's interpreter.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from benchmarks.gpu.rank_checks import ranks
from benchmarks.gpu.report import Report
from benchmarks.gpu.served_checks import GRAMMAR_KINDS, KINDS, ahead, prompt, serving

BUDGET_SECONDS = 210.0
"""The last check begins by then; the whole takes less than four minutes."""


def kernel_checks(
    device: torch.device, types: list[torch.dtype], *, small: bool
) -> Iterator[tuple[str, Callable[[], float]]]:
    """Name of each check and what computes its error, in units of the kernel's bound."""
    from tests.kernels.triton import cases

    long = [300, 1] if small else [8192, 1, 0, 257, 4000]
    prefix, new = ([20, 0], [9, 33]) if small else ([0, 1000, 4096], [777, 300, 128])
    rows = 3 if small else 300
    for dtype in types:
        kind = str(dtype).removeprefix("torch.")

        def case(
            name: str, check: Callable[..., float], kind: str = kind, dtype: torch.dtype = dtype, **options: Any
        ) -> Any:
            shown = " ".join(f"{key}={value}" for key, value in options.items() if not isinstance(value, list))
            return f"{name} {kind} {shown}", partial(check, np.random.default_rng(0), dtype, device, **options)

        for head_dim, group in ((64, 4), (80, 1), (128, 4), (128, 16), (256, 2)):
            shape = {"head_dim": head_dim, "group": group}
            yield case("decode", cases.decode, lens=long, num_programs=2 if small else 64, **shape)
            yield case("extend", cases.extend, prefix_lens=prefix, extend_lens=new, **shape)
            if small:
                break
        bounded = {"head_dim": 128, "group": 4, "window": 100, "cap": 5.0}
        yield case("decode", cases.decode, lens=long, **bounded)
        yield case("extend", cases.extend, prefix_lens=prefix, extend_lens=new, **bounded)
        sinking = {"head_dim": 64, "group": 8, "window": 128, "sinks": True}
        yield case("decode", cases.decode, lens=long, **sinking)
        yield case("extend", cases.extend, prefix_lens=prefix, extend_lens=new, **sinking)
        short = {"prefix_lens": prefix, "extend_lens": new, "head_dim": 128, "group": 4, "tile_queries": 16}
        yield case("extend", cases.extend, **short)
        yield case("extend", cases.extend, stored_as=torch.float8_e4m3fn, **short)
        for stored_as in (torch.float8_e4m3fn, torch.float8_e5m2):
            stored = {"head_dim": 128, "stored_as": stored_as}
            yield case("decode", cases.decode, lens=long, group=4, **stored)
            yield case("extend", cases.extend, prefix_lens=prefix, extend_lens=new, group=4, **stored)
            yield case("store", cases.store_float8, tokens=rows, **stored)
        for width in (100, 4096):
            yield case("rms_norm", cases.rms_norm, rows=rows, width=width, delta=width > 100)
        for norm in (False, True):
            yield case("rotate", cases.rotate_and_store, tokens=rows, heads=8, kv_heads=2, head_dim=128, norm=norm)
        yield case("store", cases.store, tokens=rows, kv_heads=2, head_dim=128)
        for gate in ("silu", "gelu", "gelu_tanh", "clamped_swish"):
            yield case("gate", cases.gate_and_mul, rows=rows, width=1500, gate=gate)
        yield case("gather", cases.gather_rows, rows=rows, width=1500, vocab_size=1000)
        product = {"inputs": 40 if small else 4096, "outputs": 100, "bias": True}
        yield case("linear", cases.linear, rows=rows, **product)
        for few in {min(rows, 16), rows}:
            for bits, span in ((4, 32), (4, 128), (8, 128)):
                options = product | {"rows": few, "bits": bits, "span": span, "offsets": span == 32}
                yield case("integers", cases.integer_linear, **options)
            for span in (None, 128):
                yield case("float8", cases.float8_linear, rows=few, span=span, **product)


def sampling_checks(device: torch.device, *, small: bool) -> Iterator[tuple[str, Callable[[], float]]]:
    """The same of the kernels that choose tokens, in float32."""
    from tests.kernels.triton import cases

    for vocab_size in (200, 3000) if small else (200, 32000, 151936):
        options = {"rows": 3 if small else 40, "vocab_size": vocab_size}
        yield f"edits V={vocab_size}", partial(cases.edits, np.random.default_rng(0), device, **options)
        totals = partial(cases.log_totals, np.random.default_rng(0), device, vocab_size=vocab_size)
        yield f"totals V={vocab_size}", totals
        for spread, levels in ((3.0, 0), (1.0, 2)):
            check = partial(cases.choose, np.random.default_rng(0), device, spread=spread, levels=levels, **options)
            yield f"choose V={vocab_size} levels={levels}", check


def within_bound(check: Callable[[], float]) -> dict[str, Any]:
    error = check()
    return {"ok": error <= 1.0, "error_of_bound": error}


def device_runner(path: Path, device: torch.device, dtype: str, **options: Any) -> Any:
    """A model runner that keeps logits; on a CPU one that computes attention with Triton."""
    from tests.model_executor.plan_builder import RecordingRunner

    from bough.config.engine_args import EngineArgs
    from bough.config.model_config import ModelConfig

    if device.type == "cpu":
        options.update(attention_backend="triton")
    config = ModelConfig.from_path(str(path), dtype=dtype, device=device.type)
    limits = {"max_running_requests": 8, "max_total_tokens": 8192, "max_prefill_tokens": 512}
    return RecordingRunner(config, device, EngineArgs(**limits, **options), native=False)


def model_logits(family: str, dtype: str, device: torch.device, *, small: bool) -> dict[str, Any]:
    """Prompts in chunks beside decode steps; logits against transformers in float32."""
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import save_checkpoint

    shape = {"head_dim": 64, "num_hidden_layers": 1 if small else 3}
    lengths = (9, 3) if small else (400, 30)
    with tempfile.TemporaryDirectory() as directory:
        reference = save_checkpoint(Path(directory), family, max_position_embeddings=1024, **shape)
        runner = device_runner(Path(directory), device, dtype)
    builder = PlanBuilder(runner)
    long, short = (builder.add(prompt(length, seed)) for seed, length in enumerate(lengths))
    cut = lengths[0] // 3
    builder.step([(long, cut), (short, lengths[1])])
    builder.step([(short, 1), (long, lengths[0] - cut)])
    for _ in range(1 if small else 20):
        builder.step([(long, 1), (short, 1)])
    error = 0.0
    for sequence in (long, short):
        expected = reference.logits(sequence.tokens[:-1])[sequence.prompt_len - 1 :]
        computed = torch.stack([logits.cpu() for logits in sequence.logits])
        error = max(error, float((computed - expected).abs().max() / expected.abs().max()))
    bound = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}[dtype]
    return {"ok": error <= bound, "relative_error": error, "bound": bound}


def graphs_equal_eager(dtype: str, device: torch.device, *, small: bool = False) -> dict[str, Any]:
    """The same prompts and decode steps, alone and beside each other, with and without graphs: the same ids in float32,
    and logits up to rounding. Without graphs, and with scratch memory for two pieces of keys at a time, not a bit
    differs."""
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import save_checkpoint

    sequences, replays = [], 0
    steps, shape = 1 if small else 4, {"head_dim": 64, "num_hidden_layers": 1 if small else 3}
    lengths = [3, 5, 2, 260, 4, 3, 6] if small else [20 + 60 * seed for seed in range(7)]
    with tempfile.TemporaryDirectory() as directory:
        save_checkpoint(Path(directory), "Qwen3", max_position_embeddings=1024, **shape)
        for disable, max_pieces in ((True, None), (True, 2), (False, None)):
            runner = device_runner(Path(directory), device, dtype, disable_cuda_graph=disable)
            if max_pieces is not None:
                runner.attn_backend.max_pieces = max_pieces
            for recorded in (runner.step_runner.graph_runner, runner.step_runner.prompt_runner):
                if recorded is not None:

                    def counted_replay(*args: Any, replay: Any = recorded.replay, **options: Any) -> Any:
                        nonlocal replays
                        replays += 1
                        return replay(*args, **options)

                    recorded.replay = counted_replay
            builder = PlanBuilder(runner)
            rows = [builder.add(prompt(length, seed)) for seed, length in enumerate(lengths)]
            for row in rows:
                builder.step([(row, row.prompt_len)])
            for size in (1, 2, 4, 5, 7):
                for _ in range(steps):
                    builder.step([(row, 1) for row in rows[:size]])
            late = builder.add(prompt(50, 9))
            builder.step([(late, 30), *((row, 1) for row in rows)])
            builder.step([(late, 20), *((row, 1) for row in rows[:3])])
            sequences.append([*rows, late])
    difference, (launched, grouped, recorded) = 0.0, sequences
    same_bits = all(
        torch.equal(*map(torch.stack, (a.logits, b.logits))) for a, b in zip(launched, grouped, strict=True)
    )
    same_ids = all(a.tokens == b.tokens for a, b in zip(launched, recorded, strict=True))
    for eager, graph in zip(launched, recorded, strict=True):
        # Up to and with the first token that is another one: what comes after answers something else.
        alike = next((i for i, (a, b) in enumerate(zip(eager.tokens, graph.tokens, strict=True)) if a != b), None)
        until = None if alike is None else alike + 1
        logits = torch.stack(eager.logits[:until]), torch.stack(graph.logits[:until])
        difference = max(difference, float((logits[0] - logits[1]).abs().nan_to_num(torch.inf).max()))
    ok = (
        replays == 5 * steps + 2 + len(lengths) + 2  # decode rows, and prompts, two of them beside such rows
        and difference <= {"float32": 1e-3, "bfloat16": 0.5}[dtype]
        and (same_ids or dtype != "float32")
    )
    figures = {
        "replays": replays,
        "same_ids": same_ids,
        "same_in_groups": same_bits,
        "largest_difference": difference,
    }
    return {"ok": ok and same_bits, **figures}


def deterministic(dtype: str, device: torch.device, *, small: bool) -> dict[str, Any]:
    """Deterministic inference: logits in every bit the same alone, among others, cut, and as part of a prompt."""
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import save_checkpoint

    count, length, others = (2, 19, 2) if small else (20, 700, 7)
    shape = {"head_dim": 64, "num_hidden_layers": 1 if small else 3}
    with tempfile.TemporaryDirectory() as directory:
        save_checkpoint(Path(directory), "Qwen3", max_position_embeddings=1024, **shape)
        runner = device_runner(Path(directory), device, dtype, enable_deterministic_inference=True)
    builder = PlanBuilder(runner)
    alone = builder.add(prompt(length, 0))
    builder.generate(alone, count)
    builder.drop(alone)
    again, neighbours = builder.add(prompt(length, 0)), [builder.add(prompt(9 + 13 * i, i)) for i in range(others - 1)]
    builder.step([(again, length // 3), *((each, each.prompt_len) for each in neighbours)])
    builder.step([*((each, 1) for each in neighbours), (again, length - length // 3)])
    for index in range(1, count):
        builder.step([(again, 1), *((each, 1) for each in neighbours[: index % others])])
    builder.drop(again)
    longer = builder.add(alone.tokens[:-1])
    builder.generate(longer, 1, chunks=[length // 2])
    wanted = torch.stack(alone.logits)
    same = {
        "among_others_and_cut": torch.equal(torch.stack(again.logits), wanted),
        "as_a_prompt": torch.equal(longer.logits[0], wanted[-1]),
    }
    return {"ok": all(same.values()), **same}


QUANTISED: dict[str, tuple[dict[str, str], float]] = {
    "int8": ({"quantization": "int8"}, 0.05),
    "int4": ({"quantization": "int4"}, 0.35),
    "fp8": ({"quantization": "fp8"}, 0.2),
    "kv fp8_e4m3": ({"kv_cache_dtype": "fp8_e4m3"}, 0.1),
    "kv fp8_e5m2": ({"kv_cache_dtype": "fp8_e5m2"}, 0.2),
}
"""Options, and how far logits may be from those of the model as it is: the norm of the difference over that of these.
In one block, whose weights are random, what single products lose is doubled; three blocks would make 0.5 of int4."""


def quantised(name: str, dtype: str, device: torch.device, *, small: bool) -> dict[str, Any]:
    """Prompts in two chunks, and decode steps as long as both models say the same."""
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import save_checkpoint

    options, bound = QUANTISED[name]
    count, length, steps = (2, 12, 1) if small else (8, 200, 5)
    shape = {"head_dim": 64, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2}
    shape |= {"num_key_value_heads": 1, "num_hidden_layers": 1}
    logits, tokens = [], []
    with tempfile.TemporaryDirectory() as directory:
        save_checkpoint(Path(directory), "Qwen3", max_position_embeddings=1024, **shape)
        for each in ({}, options):
            builder = PlanBuilder(device_runner(Path(directory), device, dtype, **each))
            rows = [builder.add(prompt(length + 3 * seed, seed)) for seed in range(count)]
            builder.step([(row, length // 2) for row in rows])
            builder.step([(row, row.prompt_len - length // 2) for row in rows])
            for _ in range(steps):
                builder.step([(row, 1) for row in rows])
            logits.append([torch.stack([step.cpu() for step in row.logits]) for row in rows])
            tokens.append([row.output for row in rows])
    compared, error = 0, 0.0
    for row in range(count):
        same = next((i for i in range(steps + 1) if tokens[0][row][i] != tokens[1][row][i]), steps)
        expected, computed = (each[row][: same + 1] for each in logits)
        error = max(error, float((computed - expected).norm() / expected.norm()))
        compared += same + 1
    return {"ok": 0 < error <= bound, "relative_error": error, "bound": bound, "tokens": compared}


def attention_backends(name: str, dtype: str, device: torch.device) -> dict[str, Any]:
    """Prompts in chunks beside decode rows; logits against those with Triton's attention."""
    if name == "flashinfer":
        import flashinfer  # noqa: F401 - is it there?
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import save_checkpoint

    found = []
    with tempfile.TemporaryDirectory() as directory:
        save_checkpoint(Path(directory), "Qwen3", max_position_embeddings=1024, head_dim=128)
        for backend in ("triton", name):
            builder = PlanBuilder(device_runner(Path(directory), device, dtype, attention_backend=backend))
            rows = [builder.add(prompt(length, length)) for length in (300, 17, 64)]
            builder.step([(rows[0], 100), (rows[1], 17)])
            builder.step([(rows[1], 1), (rows[0], 200), (rows[2], 64)])
            builder.step([(row, 1) for row in rows])
            found.append(torch.cat([row.logits[0][None].cpu() for row in rows]))
    error = float((found[0] - found[1]).abs().max() / found[0].abs().max())
    return {"ok": error <= 0.05, "relative_error": error, "bound": 0.05}


def vectors(architecture: str, mode: str, device: torch.device) -> dict[str, Any]:
    """Vectors of prompts of many lengths, which a language model gets in chunks."""
    from tests.models.vector_checkpoints import VectorScheduler, save_pipeline, save_vector_checkpoint

    options = {} if architecture.startswith("Bert") else {"chunked_prefill_size": 16, "max_total_tokens": 2048}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        checkpoint = save_vector_checkpoint(path, architecture)
        save_pipeline(path, mode, normalize=True)
        served = VectorScheduler(path, device=device.type, dtype="float32", **options)
    # Ids from 5 on: transformers gives padding no position of its own.
    prompts = [[5 + token % 50 for token in prompt(length, length)] for length in (1, 2, 17, 40, 5, 64, 16, 1)]
    for index, each in enumerate(prompts):
        served.submit(str(index), each)
    while served.scheduler.has_unfinished_requests():
        served.scheduler.step()
    error, bound = 0.0, 1e-4
    for index, each in enumerate(prompts):
        states = checkpoint.states(each)
        expected = torch.nn.functional.normalize(states[-1] if mode == "lasttoken" else states.mean(0), dim=-1)
        error = max(error, float(np.abs(served.vector(str(index)) - expected.numpy()).max()))
    return {"ok": error <= bound, "error": error, "bound": bound}


def memory(device: torch.device, lacking: int = 0) -> dict[str, Any]:
    """A pool of 95 % of what is left, a vocabulary of real size; then the most prompt tokens and the most decode rows
    that a step may have, with penalties, whose tables grow.

    With ``lacking``, the first pool is said to leave so many bytes too little, and another one is made.
    """
    from tests.model_executor.plan_builder import PlanBuilder
    from tests.models.checkpoints import save_checkpoint

    from bough.config.engine_args import EngineArgs
    from bough.config.model_config import ModelConfig
    from bough.model_executor.model_runner import ModelRunner
    from bough.model_executor.runner_memory import DeviceTables, MemoryPlanner
    from bough.sampling.sampling_params import SamplingParams

    pools: list[int] = []
    step_bytes, left = 0, lacking
    build, missing_bytes = MemoryPlanner.init_memory_pool, MemoryPlanner.missing_bytes

    def watched_build(planner: MemoryPlanner, pool_tokens: int) -> DeviceTables:
        pools.append(pool_tokens)
        return build(planner, pool_tokens)

    def lacking_bytes(planner: MemoryPlanner, needed: int) -> int:
        nonlocal step_bytes, left
        missing, step_bytes, left = missing_bytes(planner, needed) + left, needed, 0
        return missing

    shape = {"vocab_size": 151936, "max_position_embeddings": 65536, "head_dim": 128}
    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.object(MemoryPlanner, "init_memory_pool", watched_build),
        mock.patch.object(MemoryPlanner, "missing_bytes", lacking_bytes),
    ):
        save_checkpoint(Path(directory), "Qwen3", **shape)
        config = ModelConfig.from_path(directory, dtype="bfloat16", device=device.type)
        args = EngineArgs(mem_fraction_static=0.95)
        runner: Any = ModelRunner(config, device, args)
    runner.recording = False
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info(device)
    retries = torch.cuda.memory_stats(device)["num_alloc_retries"]
    builder = PlanBuilder(runner)
    params = SamplingParams(temperature=0.9, top_p=0.9, frequency_penalty=0.5)
    rows = [builder.add(prompt(4, seed)) for seed in range(runner.max_running_requests - 1)]
    for begin in range(0, len(rows), 64):
        builder.step([(row, 4) for row in rows[begin : begin + 64]], new_params=params)
    long = builder.add(prompt(args.max_prefill_tokens, 1000))
    for _ in range(3):
        builder.step([(row, 1) for row in rows])
    builder.step([(long, args.max_prefill_tokens - len(rows)), *((row, 1) for row in rows)], new_params=params)
    builder.step([(long, len(rows)), *((row, 1) for row in rows)])
    torch.cuda.synchronize(device)
    retries = torch.cuda.memory_stats(device)["num_alloc_retries"] - retries
    return {
        "ok": retries == 0 and free >= step_bytes + lacking and len(pools) >= (2 if lacking else 1),
        "free_gib_when_ready": free / 2**30,
        "free_gib_at_the_end": torch.cuda.mem_get_info(device)[0] / 2**30,
        "steps_need_gib": step_bytes / 2**30,
        "recorded_gib": runner.recorded_bytes / 2**30,
        "allocations_tried_again": retries,
        "total_gib": total / 2**30,
        "pools": pools,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--output", type=Path, default=Path("results/gpu-check.json"))
    parser.add_argument("--only", default="", help="run checks whose name begins so")
    args = parser.parse_args()
    small = args.device == "cpu"
    if small:
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    elif not torch.cuda.is_available():
        print("gpu-check: torch finds no CUDA device; --device cpu is a dry run", file=sys.stderr)
        return 2
    device = torch.device(args.device)
    report = Report(args.output, device, BUDGET_SECONDS, optional_packages=("flashinfer",))

    def run(name: str, cell: Callable[[], dict[str, Any]], *, collects: bool = True) -> None:
        if not name.startswith(args.only):
            return
        report.run(name, cell)
        if collects:
            # Schedulers and runners hold each other, their graphs and their memory.
            gc.collect()
            if not small:
                torch.cuda.empty_cache()

    def run_kernels(checks: Callable[[], Iterator[tuple[str, Callable[[], float]]]]) -> None:
        try:
            for name, check in checks():
                run(name, partial(within_bound, check), collects=False)
        except ModuleNotFoundError as error:
            report.run("kernels", partial(_missing, error))

    # What is served with comes first, whole models before the other types of kernels: time may be up before the end.
    first, others = (torch.float32, torch.float16) if small else (torch.bfloat16, torch.float16)
    run_kernels(partial(kernel_checks, device, [first], small=small))
    run_kernels(partial(sampling_checks, device, small=small))
    used = "float32" if small else "bfloat16"
    for family in ("Llama", "Qwen3"):
        run(f"model {family} {used}", partial(model_logits, family, used, device, small=small))
    if not small:
        for dtype in ("float32", "bfloat16"):
            run(f"graphs {dtype}", partial(graphs_equal_eager, dtype, device))
    run("serving", partial(serving, device, small=small))
    run("ahead", partial(ahead, device, KINDS, small=small))
    run("ahead with grammars", partial(ahead, device, GRAMMAR_KINDS, small=small))
    if not small:
        run("memory", partial(memory, device))
        run("memory, with a pool made anew", partial(memory, device, lacking=1 << 30))
    for name in QUANTISED:
        run(f"quantised {name}", partial(quantised, name, used, device, small=small))
    run(f"ranks {used}", partial(ranks, "Llama", used, device, device_runner, small=small))
    run(f"deterministic {used}", partial(deterministic, used, device, small=small))
    for architecture, mode in (
        ("BertModel", "mean_tokens"),
        ("Qwen3Model", "lasttoken"),
        ("Qwen3Model", "mean_tokens"),
    ):
        run(f"vectors {architecture} {mode}", partial(vectors, architecture, mode, device))
    if not small:
        for backend in ("torch_native", "flashinfer"):
            run(f"attention {backend}", partial(attention_backends, backend, "bfloat16", device))
        for dtype in ("float32", "float16"):
            for family in ("Llama", "Qwen3"):
                run(f"model {family} {dtype}", partial(model_logits, family, dtype, device, small=small))
            run(f"deterministic {dtype}", partial(deterministic, dtype, device, small=small))
    run_kernels(partial(kernel_checks, device, [others] if small else [others, torch.float32], small=small))
    print(report.summary())
    return report.status


def _missing(error: ModuleNotFoundError) -> dict[str, Any]:
    raise error


if __name__ == "__main__":
    sys.exit(main())
