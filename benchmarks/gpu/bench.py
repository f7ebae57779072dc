"""How fast Bough is on this GPU, beside what its memory and its matrix units give in the same run.

- copy, matmul: bytes per second of a copy on the device (read and written), operations per second of a bfloat16
  product;
- attention kernels alone, as fractions of these, and beside FlashInfer's where it is installed;
- decode steps of a model with random weights through the model runner, sampling included: the floor is the bytes of
  weights (without the input embedding) and of keys and values over the measured copy bandwidth; each with
  ``--enable-deterministic-inference``, too, whose price that is;
- prompts of 128 to 4096 tokens through the same model, which are launched kernel by kernel: beside the floor,
  operations over the measured rate, and beside the same kernels in a recorded graph: what launching costs;
- decode steps whose rows sample with temperature 1 and top-p 0.95, beside the greedy ones: where weights are random,
  nearly every token is likely enough to be looked at again and again;
- decode steps of one row with the host asleep while it waits instead of asking again and again;
- decode steps of rows that share a long prefix, some more than have room in a recorded step: the floor counts it once;
- through the scheduler: 256 requests at once, lengths of prompts and outputs uniform in 100 to 1024, or 1024 each; the
  milliseconds from a prompt to its first token, with recorded forward passes of prompts and without; the
  share of time in which the device is busy in steady decode, with profiles (gpu-busy-*.json and .svg) beside the JSON;
  the share of decode rows that recorded steps compute while requests arrive at random; the ratio to transformers'
  continuous batching; seconds until a scheduler's process is ready, with an empty kernel cache and a full one.

JSON is written after each cell.

    PYTHONPATH=src python -m benchmarks.gpu.bench [--device cuda|cpu] [--output FILE] [--only decode offline]

``--device cpu`` is a dry run of tiny shapes in Triton's interpreter; its figures mean nothing.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from benchmarks.gpu import serving
from benchmarks.gpu.report import Report
from benchmarks.gpu.shapes import LONG, SHAPES, TINY

BUDGET_SECONDS = 540.0
PAGE = 16


@dataclass
class Rates:
    """What the device gives, once it is measured; 0 before."""

    copy_bytes: float = 0.0
    """per second, read and written counted"""
    matmul_flops: float = 0.0
    """per second"""


class Bench:
    """The cells. ``small``: tiny shapes, on a CPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.small = device.type == "cpu"
        self.dtype = torch.float32 if self.small else torch.bfloat16
        self.rates = Rates()

    def seconds(self, work: Callable[[], object], repeats: int = 20) -> float:
        """Median time of ``work`` on the device, after three runs that do not count."""
        times = []
        for index in range(3 + repeats if not self.small else 2):
            self.wait()
            begin = time.perf_counter()
            if self.small:
                work()
                times.append(time.perf_counter() - begin)
                continue
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            work()
            end.record()
            end.synchronize()
            if index >= 3:
                times.append(start.elapsed_time(end) / 1e3)
        return statistics.median(times)

    def recorded(self, work: Callable[[], object]) -> Callable[[], object]:
        """``work`` without the time that its launches take: a CUDA graph of it, where there is CUDA."""
        if self.small:
            return work
        from bough.model_executor.cuda_graph_runner import without_garbage_collection

        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            work()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with without_garbage_collection(), torch.cuda.graph(graph, stream=stream):
            work()
        return graph.replay

    def wait(self) -> None:
        if not self.small:
            torch.cuda.synchronize(self.device)

    def copy(self) -> dict[str, Any]:
        source = torch.zeros(1 << (20 if self.small else 31), dtype=torch.uint8, device=self.device)
        target = torch.empty_like(source)
        self.rates.copy_bytes = 2 * source.nbytes / self.seconds(lambda: target.copy_(source))
        return {"bytes_per_second": self.rates.copy_bytes}

    def matmul(self) -> dict[str, Any]:
        size = 256 if self.small else 8192
        a, b = (torch.randn(size, size, device=self.device).to(self.dtype) for _ in range(2))
        self.rates.matmul_flops = 2 * size**3 / self.seconds(lambda: a @ b)
        return {"flops_per_second": self.rates.matmul_flops}

    def product(self, rows: int, kind: str, outputs: int = 14336) -> dict[str, Any]:
        """``rows`` times a quantised matrix of 4096 inputs, beside reading it and multiplying it.

        Matrices take turns, more than three times what the L2 cache holds, as layers do; on CUDA in a recorded graph.
        """
        from bough.kernels.triton.available import why_not_float8
        from bough.layers.coded_method import Float8Method, IntegerMethod
        from bough.layers.linear import Linear

        if kind == "float8" and (problem := why_not_float8(self.device)) is not None:
            return {"skipped": problem}
        inputs, outputs = (128, 64) if self.small else (4096, outputs)
        method = {"int4": IntegerMethod(4, 128), "int8": IntegerMethod(8, 128), "float8": Float8Method()}[kind]
        with torch.device(self.device):
            layer = Linear("w", inputs, outputs, bias=False, dtype=self.dtype, method=method)
        for _, weight in layer.checkpoint_weights():
            weight.write(torch.randn(weight.shape) * inputs**-0.5)
        x = torch.randn(rows, inputs, device=self.device).to(self.dtype)
        read = sum(parameter.nbytes for parameter in layer.parameters())
        cached = 0 if self.small else torch.cuda.get_device_properties(self.device).L2_cache_size
        layers = [layer, *(copy.deepcopy(layer) for _ in range(3 * cached // read + 1))]

        def multiply() -> None:
            for each in layers:
                each(x)

        seconds = self.seconds(self.recorded(multiply)) / len(layers)
        flops = 2 * rows * inputs * outputs / seconds
        return {
            "us": seconds * 1e6,
            "bytes_per_second": read / seconds,
            "of_copy": read / seconds / self.rates.copy_bytes,
            "of_matmul": flops / self.rates.matmul_flops,
        }

    def _cache(self, rows: int, context: int, kv_heads: int, head_dim: int) -> tuple[torch.Tensor, ...]:
        """Keys, values and the request table of ``rows`` sequences on shuffled pages."""
        pages = np.random.default_rng(0).permutation(rows * context // PAGE) + 1
        slots = (pages[:, None] * PAGE + np.arange(PAGE)).reshape(rows, context).astype(np.int32)
        shape = (2, (rows * context // PAGE + 1) * PAGE, kv_heads, head_dim)
        pool = torch.randn(shape, dtype=self.dtype, device=self.device)
        return pool[0], pool[1], torch.from_numpy(slots).to(self.device)

    def decode_attention(self, rows: int, context: int) -> dict[str, Any]:
        from bough.kernels.triton import attention
        from bough.kernels.triton.available import SPLIT_KEYS
        from bough.layers.attention.tiles import decode_pieces

        heads, kv_heads, head_dim = 32, 8, 128
        keys, values, table = self._cache(rows, context, kv_heads, head_dim)
        seq_lens = np.full(rows, context, dtype=np.int32)
        plan = decode_pieces(seq_lens, None, SPLIT_KEYS)
        arrays = (plan.pieces, plan.num_pieces, plan.first_piece, seq_lens, np.arange(rows))
        pieces, num_pieces, first_piece, lens, slots = (torch.from_numpy(x).to(self.device) for x in arrays)
        scratch = attention.DecodeScratch.empty(len(plan.pieces), heads, head_dim, self.device)
        q = torch.randn(rows, heads, head_dim, dtype=self.dtype, device=self.device)
        cores = 1 if self.small else torch.cuda.get_device_properties(self.device).multi_processor_count
        seconds = self.seconds(
            lambda: attention.decode_attention(
                q,
                keys,
                values,
                table,
                req_slots=slots,
                seq_lens=lens,
                pieces=pieces,
                num_pieces=num_pieces,
                first_piece=first_piece,
                scratch=scratch,
                num_programs=max(attention.DECODE_PROGRAMS_PER_CORE * cores // kv_heads, 1),
                scale=head_dim**-0.5,
            )
        )
        rate = 2 * rows * context * kv_heads * head_dim * self.dtype.itemsize / seconds
        return {"us": seconds * 1e6, "bytes_per_second": rate, "of_copy": rate / self.rates.copy_bytes}

    def extend_attention(self, context: int) -> dict[str, Any]:
        from bough.kernels.triton import attention
        from bough.layers.attention.tiles import extend_tiles

        heads, kv_heads, head_dim = 32, 8, 128
        keys, values, table = self._cache(1, context, kv_heads, head_dim)
        zero, count = np.zeros(1, dtype=np.int32), np.array([context], dtype=np.int32)
        planned = extend_tiles(zero, zero, count, attention.extend_blocks(head_dim, self.dtype).queries)
        tiles = torch.from_numpy(planned).to(self.device)
        q = torch.randn(context, heads, head_dim, dtype=self.dtype, device=self.device)
        seconds = self.seconds(
            lambda: attention.extend_attention(q, keys, values, table, tiles, scale=head_dim**-0.5), repeats=10
        )
        rate = 2 * heads * head_dim * context**2 / seconds
        return {"us": seconds * 1e6, "flops_per_second": rate, "of_matmul": rate / self.rates.matmul_flops}

    def backends(self, rows: int, context: int) -> dict[str, Any]:
        """Attention of decode rows, and of a prompt of ``context`` tokens, by FlashInfer beside Triton's kernels."""
        import flashinfer  # noqa: F401 - is it there?

        from bough.config.model_facts import KVLayout
        from bough.layers.attention.flashinfer import FlashInferBackend
        from bough.layers.attention.radix_attention import RadixAttention
        from bough.layers.attention.triton import TritonBackend
        from bough.mem_cache.kv_pool import KVPool
        from bough.model_executor.eager_runner import prompt_plan

        heads, kv_heads, head_dim = 32, 8, 128
        pool = KVPool(
            max_total_tokens=rows * context,
            page_size=PAGE,
            layout=KVLayout(num_layers=1, num_kv_heads=kv_heads, head_dim=head_dim),
            dtype=self.dtype,
            device=self.device,
        )
        table = (torch.arange(rows * context, dtype=torch.int32, device=self.device) + PAGE).view(rows, context)
        layer = RadixAttention(heads, head_dim, kv_heads, 0)
        slots, ones = np.arange(rows, dtype=np.int32), np.ones(rows, dtype=np.int32)
        lens: dict[str, Any] = {"prefix_lens": (context - 1) * ones, "extend_lens": ones}
        decode_rows: Any = SimpleNamespace(num_decode_rows=rows, req_slots=slots, **lens)
        prompt = prompt_plan(np.zeros(context, dtype=np.int32), PAGE)
        q = torch.randn(max(rows, context), heads, head_dim, dtype=self.dtype, device=self.device)
        figures: dict[str, Any] = {}
        for name, backend in (
            ("triton", TritonBackend(pool, [None], heads, max_pieces=rows * (context // 256 + 1), dtype=self.dtype)),
            ("flashinfer", FlashInferBackend(pool, [None], heads, dtype=self.dtype)),
        ):
            decoded = backend.init_forward_metadata(decode_rows, table)
            figures[f"{name}_decode_us"] = 1e6 * self.seconds(partial(backend.forward_decode, q[:rows], layer, decoded))
            extended = backend.init_forward_metadata(prompt, table)
            extend = partial(backend.forward_extend, q[:context], layer, extended)
            figures[f"{name}_extend_us"] = 1e6 * self.seconds(extend)
        return figures

    def runner(self, shape: dict[str, Any], requests: int, tokens: int, **options: Any) -> Any:
        from bough.config.engine_args import EngineArgs
        from bough.config.model_config import ModelConfig
        from bough.model_executor.model_runner import ModelRunner

        options |= {"load_format": "dummy", "page_size": PAGE, "max_prefill_tokens": 4096}
        if self.small:
            shape = shape | TINY
            options |= {"attention_backend": "triton", "max_prefill_tokens": 4}
        with tempfile.TemporaryDirectory() as directory:
            Path(directory, "config.json").write_text(json.dumps(shape))
            config = ModelConfig.from_path(directory, device=self.device.type)
        limits = {"max_running_requests": requests, "max_total_tokens": tokens}
        return ModelRunner(config, self.device, EngineArgs(**limits, **options), native=not self.small)

    def decode(
        self,
        shape: dict[str, Any],
        rows: int,
        context: int,
        *,
        shared: int = 0,
        steps: int = 30,
        deterministic: bool = False,
        cores: int | None = None,
        top_p: float | None = None,
    ) -> dict[str, Any]:
        """Steps of ``rows`` requests that have about ``context`` tokens each.

        Args:
            shape: of the model.
            rows: of each step.
            context: tokens of a row before the first step.
            shared: of these, which all rows have in common; a multiple of the page size.
            steps: that are measured.
            deterministic: see the option.
            cores: of the host, of which depends how it waits; ``None``: as there are.
            top_p: of requests that sample with temperature 1; ``None``: they are greedy.
        """
        from bough.model_executor.readback import lane_of
        from bough.sampling.sampling_params import SamplingParams
        from bough.step_plan import FUTURE_TOKEN, ForwardMode, NewRequest, ReqSlot, StepPlan, TableWrite

        warm_up = 5
        if self.small:
            rows, context, shared, steps, warm_up = min(rows, 2), 20, min(shared, PAGE), 1, 1
        room = -(-(context - shared + steps + warm_up) // PAGE) * PAGE
        begin = time.perf_counter()
        runner = self.runner(shape, rows, shared + rows * room, enable_deterministic_inference=deterministic)
        runner.lane = lane_of(self.device, cores)
        self.wait()
        ready = time.perf_counter() - begin
        prefix, own = np.split(np.arange(shared + rows * room, dtype=np.int32) + PAGE, [shared])
        slots = np.concatenate((np.broadcast_to(prefix, (rows, shared)), own.reshape(rows, room)), axis=1)
        nothing = np.empty(0, dtype=np.int32)
        params = SamplingParams(temperature=0.0) if top_p is None else SamplingParams(temperature=1.0, top_p=top_p)

        def plan(step: int) -> StepPlan:
            new: tuple[NewRequest, ...] = ()
            writes: tuple[TableWrite, ...] = ()
            if step == 0:
                new = tuple(NewRequest(ReqSlot(row), params, 0, (), context, nothing) for row in range(rows))
                writes = tuple(TableWrite(ReqSlot(row), 0, slots[row, :context]) for row in range(rows))
            return StepPlan(
                step_id=step,
                mode=ForwardMode.DECODE,
                num_decode_rows=rows,
                req_slots=np.arange(rows, dtype=np.int32),
                prefix_lens=np.full(rows, context + step, dtype=np.int32),
                extend_lens=np.ones(rows, dtype=np.int32),
                input_ids=np.full(rows, FUTURE_TOKEN, dtype=np.int32),
                out_slots=slots[:, context + step].copy(),
                sample=np.ones(rows, dtype=np.bool_),
                new_requests=new,
                table_writes=writes,
            )

        launched: deque[Any] = deque()

        def advance(step: int) -> None:
            """As the scheduler does it: the next step is launched before the result of the last is waited for."""
            launched.append(runner.launch(plan(step)))
            if len(launched) > 1:
                launched.popleft().result()

        for step in range(warm_up):
            advance(step)
        self.wait()
        begin = time.perf_counter()
        for step in range(warm_up, warm_up + steps):
            advance(step)
        self.wait()
        seconds = (time.perf_counter() - begin) / steps
        launched.popleft().result()
        table = 0 if runner.config.tie_word_embeddings else runner.model.model.embed_tokens.weight.nbytes
        kv_tokens = shared + rows * (context - shared + warm_up + steps // 2)
        kv_bytes = kv_tokens * runner.kv_pool.num_bytes // runner.kv_pool.num_slots
        floor = (runner.weight_bytes - table + kv_bytes) / self.rates.copy_bytes
        graphs = runner.step_runner.graph_runner
        return {
            "ms": seconds * 1e3,
            "tokens_per_second": rows / seconds,
            "floor_ms": floor * 1e3,
            "of_floor": floor / seconds,
            "graphs": graphs is not None and graphs.can_run(plan(warm_up)),
            "ready_seconds": ready,
        }

    def prefill(self, shape: dict[str, Any], tokens: int) -> dict[str, Any]:
        """A prompt of ``tokens`` in one step."""
        from bough.layers.forward_batch import ForwardBatch
        from bough.model_executor.eager_runner import prompt_plan

        if self.small:
            tokens = 4
        runner = self.runner(shape, 1, -(-tokens // PAGE) * PAGE, disable_cuda_graph=True)
        plan = prompt_plan(np.arange(tokens, dtype=np.int32), PAGE)
        last_token = runner.sampling_state.last_token
        batch = ForwardBatch.from_plan(plan, runner.attn_backend, runner.req_to_token, last_token)

        @torch.inference_mode()
        def forward() -> None:
            runner.model(batch)

        launched, recorded = self.seconds(forward, repeats=10), self.seconds(self.recorded(forward), repeats=10)
        config = runner.config
        matrices = sum(p.numel() for name, p in runner.model.named_parameters() if "layers" in name)
        attention = 2 * tokens * sum(layer.mixer.q_size for layer in config.layers)
        floor = tokens * (2 * matrices + attention) / self.rates.matmul_flops
        return {
            "launched_ms": launched * 1e3,
            "recorded_ms": recorded * 1e3,
            "lost_to_launching": 1 - recorded / launched,
            "tokens_per_second": tokens / launched,
            "of_floor": floor / launched,
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--output", type=Path, default=Path("results/gpu-bench.json"))
    parser.add_argument(
        "--only",
        nargs="+",
        default=[""],
        metavar="NAME",
        help="run cells whose name begins with one of these, and those that they are compared with",
    )
    args = parser.parse_args()
    if args.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    elif not torch.cuda.is_available():
        print("gpu-bench: torch finds no CUDA device; --device cpu is a dry run", file=sys.stderr)
        return 2
    bench = Bench(torch.device(args.device))
    report = Report(args.output, bench.device, BUDGET_SECONDS, optional_packages=("flashinfer",))
    small = bench.small
    device, directory = bench.device, args.output.parent
    cells: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("copy", bench.copy),
        ("matmul", bench.matmul),
        ("attention decode 64 x 8k", partial(bench.decode_attention, *((2, 32) if small else (64, 8192)))),
        ("attention extend 8k", partial(bench.extend_attention, 32 if small else 8192)),
    ]
    decoding: list[tuple[str, Callable[[], dict[str, Any]]]] = []
    for name in ("0.6B", "8B"):
        for rows, context in ((1, 1024), (64, 1024), (256, 1536)):
            decoding.append(
                (f"decode {name} x {rows} at {context}", partial(bench.decode, SHAPES[name], rows, context))
            )
    cells += decoding
    cells.append(("decode 0.6B x 256 at 1536 top-p", partial(bench.decode, SHAPES["0.6B"], 256, 1536, top_p=0.95)))
    long = (12, 24) if small else (1024, 1024)
    cells += [
        ("offline 0.6B", partial(serving.offline, SHAPES["0.6B"], device)),
        *(
            (f"first token {name} x {tokens}", partial(serving.first_token, SHAPES[name], device, tokens))
            for name in ("0.6B", "8B")
            for tokens in (32, 256, 1024)
        ),
        ("busy 0.6B", partial(serving.busy, SHAPES["0.6B"], device, directory)),
        ("rows in graphs 0.6B", partial(serving.rows_in_graphs, SHAPES["0.6B"], device)),
        ("transformers 0.6B", partial(serving.beside_transformers, SHAPES["0.6B"], device)),
        ("offline Qwen 8B 1k in 1k out", partial(serving.offline, SHAPES["Qwen 8B"], device, lengths=long)),
        ("start-up 8B", partial(serving.startup, "8B", device)),
        ("offline 14B", partial(serving.offline, SHAPES["14B"], device)),
    ]
    for name in ("0.6B", "8B"):
        for tokens in (128, 1024, 4096):
            cells.append((f"prefill {name} x {tokens}", partial(bench.prefill, SHAPES[name], tokens)))
    cells.append(("backends 64 x 8k", partial(bench.backends, *((2, 32) if small else (64, 8192)))))
    for kind in ("int4", "int8", "float8"):
        for rows in (1, 16, 2048):
            cells.append((f"product {kind} x {rows}", partial(bench.product, min(rows, 20) if small else rows, kind)))
        # So few programs that dividing the inner dimension, too, might be worth it.
        cells.append((f"product {kind} x 1 narrow", partial(bench.product, 1, kind, outputs=4096)))
    cells.append(("asleep 0.6B x 1 at 1024", partial(bench.decode, SHAPES["0.6B"], 1, 1024, cores=1)))
    # Scratch memory holds the pieces of 192 such rows, whose steps are recorded, and not of 256, which are in groups.
    sharing = {"context": 20992, "shared": 20480, "steps": 10}
    for rows in (192, 256):
        cells.append((f"shared prefix 0.6B x {rows} of 20480", partial(bench.decode, LONG, rows, **sharing)))
    cells += [(f"{name} deterministic", partial(cell, deterministic=True)) for name, cell in decoding]
    wanted = {name for name, _ in cells if name.startswith(tuple(args.only))}
    if wanted:
        wanted |= {"copy", "matmul"}
    for name, cell in cells:
        if name in wanted:
            report.run(name, cell)
            gc.collect()
            if not small:
                torch.cuda.empty_cache()
    print(report.summary())
    return report.status


if __name__ == "__main__":
    sys.exit(main())
