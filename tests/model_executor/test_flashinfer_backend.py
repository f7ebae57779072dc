"""What FlashInfer is told, by a module in its place that takes nothing else and computes the same by definition."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bough.errors import ConfigError
from tests.model_executor.plan_builder import PlanBuilder, make_runner
from tests.model_executor.test_model_runner import prompt
from tests.models.checkpoints import save_checkpoint
from tests.tables import table

pytest.importorskip("triton", reason="Triton has no package for this machine", exc_type=ImportError)

HEADS, KV_HEADS, HEAD_DIM, PAGE = 4, 2, 64, 4
SHAPE = {"head_dim": HEAD_DIM, "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS}


class Wrapper:
    """What both wrappers have in common; documented at docs.flashinfer.ai, API reference of 0.2 and later."""

    def __init__(self, float_workspace_buffer: torch.Tensor, kv_layout: str = "NHD") -> None:
        assert (float_workspace_buffer.dtype, float_workspace_buffer.ndim) == (torch.uint8, 1)
        assert not float_workspace_buffer.any(), "it must be zero at first"
        assert kv_layout == "NHD"

    def keep_plan(
        self, qo_indptr: Any, indptr: Any, indices: Any, last_page_len: Any, shape: tuple[int, ...], options: Any
    ) -> None:
        for each in (qo_indptr, indptr, indices, last_page_len):
            assert isinstance(each, torch.Tensor)
            assert (each.dtype, each.ndim) == (torch.int32, 1)
        rows = len(last_page_len)
        assert len(indptr) == len(qo_indptr) == rows + 1
        assert len(indices) == int(indptr[-1])
        assert bool((last_page_len >= 1).all() and (last_page_len <= PAGE).all())
        assert shape == (HEADS, KV_HEADS, HEAD_DIM, PAGE)
        assert options.keys() == {"window_left", "q_data_type", "kv_data_type"}
        assert options["q_data_type"] == options["kv_data_type"] == torch.float16
        self.window = options["window_left"]
        self.qo_indptr, self.indptr, self.indices, self.last = qo_indptr, indptr, indices, last_page_len

    def run(self, q: torch.Tensor, paged_kv_cache: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        assert q.is_contiguous()
        assert q.shape == (int(self.qo_indptr[-1]), HEADS, HEAD_DIM)
        keys, values = paged_kv_cache
        assert keys.shape[1:] == values.shape[1:] == (PAGE, KV_HEADS, HEAD_DIM)
        outputs = []
        for row in range(len(self.last)):
            pages = self.indices[self.indptr[row] : self.indptr[row + 1]].long()
            length = (len(pages) - 1) * PAGE + int(self.last[row])
            k, v = (
                cache[pages].flatten(0, 1)[:length].repeat_interleave(HEADS // KV_HEADS, 1) for cache in (keys, values)
            )
            queries = q[self.qo_indptr[row] : self.qo_indptr[row + 1]]
            scores = torch.einsum("qhd,khd->hqk", queries.float(), k.float()) * HEAD_DIM**-0.5
            position = torch.arange(length - len(queries), length)[:, None]
            key = torch.arange(length)
            seen = (key <= position) & ((self.window < 0) | (key >= position - self.window))
            weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
            outputs.append(torch.einsum("hqk,khd->qhd", weights, v.float()).to(q.dtype))
        return torch.cat(outputs)


class Decode(Wrapper):
    def __init__(self, workspace: torch.Tensor, kv_layout: str = "NHD", *, use_tensor_cores: bool = False) -> None:
        super().__init__(workspace, kv_layout)
        assert use_tensor_cores is False, "two query heads share a KV head"

    def plan(self, indptr: Any, indices: Any, last_page_len: Any, *shape: int, **options: Any) -> None:
        ones = torch.arange(len(last_page_len) + 1, dtype=torch.int32)
        self.keep_plan(ones, indptr, indices, last_page_len, shape, options)


class Prefill(Wrapper):
    def plan(
        self, qo_indptr: Any, indptr: Any, indices: Any, last: Any, *shape: int, causal: bool = False, **options: Any
    ) -> None:
        assert causal is True
        self.keep_plan(qo_indptr, indptr, indices, last, shape, options)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    wrappers = {"BatchDecodeWithPagedKVCacheWrapper": Decode, "BatchPrefillWithPagedKVCacheWrapper": Prefill}
    monkeypatch.setitem(sys.modules, "flashinfer", SimpleNamespace(**wrappers))
    monkeypatch.setattr("bough.layers.attention.flashinfer._WORKSPACE_BYTES", 1024)
    monkeypatch.setattr("bough.model_executor.runner_memory._MEASURED_TOKENS_ON_CPU", 1)


def logits(path: Path, backend: str) -> torch.Tensor:
    runner = make_runner(path, dtype="float16", native=False, attention_backend=backend, page_size=PAGE)
    builder = PlanBuilder(runner)
    long, short = builder.add(prompt(11)), builder.add(prompt(3, seed=1))
    builder.step([(long, 7), (short, 3)])
    builder.step([(short, 1), (long, 4)])
    builder.step([(long, 1), (short, 1)])
    return torch.stack([*long.logits, *short.logits])


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("window", [None, 5])
def test_prompts_in_chunks_and_decode_rows_get_what_torch_computes(tmp_path: Path, window: int | None) -> None:
    windows = {} if window is None else {"sliding_window": window, "use_sliding_window": True, "max_window_layers": 0}
    save_checkpoint(tmp_path, "Llama" if window is None else "Qwen2", **SHAPE, **windows)
    ours, reference = logits(tmp_path, "flashinfer"), logits(tmp_path, "torch_native")
    assert float((ours - reference).abs().max()) <= 0.01 * float(reference.abs().max())


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("checkpoint"), "Llama", **SHAPE).path


def test_without_the_package_it_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flashinfer", None)
    with pytest.raises(ConfigError, match=r"--attention-backend flashinfer: the package flashinfer-python cannot be"):
        make_runner(path, dtype="float16", native=False, attention_backend="flashinfer")


@pytest.mark.usefixtures("installed")
@table(
    "options, complaint",
    [
        ({"dtype": "float32"}, "--attention-backend flashinfer: it computes in float16 and bfloat16 only"),
        (
            {"dtype": "float16", "enable_deterministic_inference": True},
            "--enable-deterministic-inference: it needs Triton's attention",
        ),
        ({"dtype": "float16", "kv_cache_dtype": "fp8_e4m3"}, "--kv-cache-dtype .* only Triton's attention reads it"),
    ],
)
def test_what_it_is_not_for_is_refused(path: Path, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        make_runner(path, native=False, attention_backend="flashinfer", **options)


@pytest.mark.usefixtures("installed")
def test_heads_that_it_has_no_kernels_for_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "Llama", **(SHAPE | {"head_dim": 80}))
    with pytest.raises(ConfigError, match=r"heads of 80 numbers are none of its 64, 128, 256"):
        make_runner(tmp_path, dtype="float16", native=False, attention_backend="flashinfer")
