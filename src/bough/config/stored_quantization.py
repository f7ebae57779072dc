"""What a config.json says about weights that are quantised already. No torch here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bough.config.checkpoint import read_json
from bough.errors import CheckpointError, ConfigError

Layout = Literal["gptq", "awq", "packed", "integers", "float8", "mxfp4"]

_MODELOPT_FILE = "hf_quant_config.json"
_GPTQ_FILE = "quantize_config.json"
_AWQ_FILE = "quant_config.json"

_SUPPORTED = (
    "GPTQ, AWQ (gemm) and compressed-tensors (pack-quantized, int-quantized) of 4 or 8 bits, FP8 (e4m3; "
    "compressed-tensors: float-quantized; ModelOpt: FP8), MXFP4 (experts of gpt-oss), and GGUF files"
)


@dataclass(frozen=True, slots=True)
class StoredQuantization:
    """How the quantised matrices of a checkpoint are stored."""

    layout: Layout
    """``packed`` and ``integers`` are those of compressed-tensors."""
    bits: Literal[4, 8]
    group: int | None
    """Inputs that share a scale; ``None``: all of a row."""
    zero_offset: int = 0
    """What is to be added to stored zero points."""
    zero_points: bool = False
    """Whether they may be anywhere; otherwise they are expected in the middle."""
    rows: int = 1
    """Rows that share a scale; one for each row, or for the whole matrix, shows in their number."""

    @property
    def is_float8(self) -> bool:
        """Whether weights are 8-bit floating point, not whole numbers."""
        return self.layout == "float8"

    @property
    def is_microscaled(self) -> bool:
        """True if experts are in 4-bit floating point with a power of two for each 32 numbers."""
        return self.layout == "mxfp4"


def quantization_entry(directory: Path, config: dict[str, Any]) -> Any:
    """What a checkpoint says about its quantisation, in its config.json or, as ModelOpt, AutoGPTQ and the first
    AutoAWQ have it, beside that.

    Raises:
        ConfigError: if a file is damaged.
    """
    entry = config.get("quantization_config") or config.get("compression_config") or config.get("quantization")
    if entry is not None:
        return entry
    if (file := directory / _MODELOPT_FILE).is_file():
        return _modelopt_entry(file)
    if (file := directory / _GPTQ_FILE).is_file():
        return _side_entry(file, "gptq", "bits")
    return _side_entry(file, "awq", "w_bit") if (file := directory / _AWQ_FILE).is_file() else None


def _side_entry(file: Path, method: str, key: str) -> dict[str, Any] | None:
    content = read_json(file)
    # Exporters to other formats write files of these names, too.
    if not isinstance(content, dict) or key not in content:
        return None
    return {**content, "quant_method": content.get("quant_method") or method}


def _modelopt_entry(file: Path) -> dict[str, Any] | None:
    content = read_json(file)
    algorithms = content.get("quantization") if isinstance(content, dict) else None
    if not isinstance(algorithms, dict):
        raise CheckpointError(f"{file} must have an entry quantization", param="model_path")
    return {"quant_method": "modelopt", **algorithms} if algorithms.get("quant_algo") else None


def read_stored_quantization(source: Path, raw: Any) -> StoredQuantization:
    """The ``quantization_config`` of a checkpoint.

    Raises:
        ConfigError: naming what is not supported.
    """
    return _Reader(source, raw).read()


class _Reader:
    def __init__(self, source: Path, raw: Any) -> None:
        self._source = source
        if not isinstance(raw, dict):
            raise self._refused(repr(raw))
        self._values = raw

    def read(self) -> StoredQuantization:
        match self._values.get("quant_method"):
            case "gptq":
                return self._gptq()
            case "awq":
                return self._awq()
            case "fp8" | "fbgemm_fp8":
                return self._float8()
            case "mxfp4":
                return StoredQuantization("mxfp4", 4, 32)
            case "modelopt":
                return self._modelopt()
            case "compressed-tensors":
                return self._compressed_tensors()
            case None if "group_size" in self._values and "bits" in self._values:
                raise self._refused(f"MLX's format ({self._values['bits']} bits)")
            case other:
                raise self._refused(str(other))

    def _gptq(self) -> StoredQuantization:
        values = self._values
        version = values.get("checkpoint_format") or "gptq"
        if version not in ("gptq", "gptq_v2") or values.get("is_marlin_format"):
            raise self._refused(f"GPTQ in the format {version if version != 'gptq' else 'marlin'}")
        if values.get("pack_dtype", "int32") != "int32":
            raise self._refused(f"GPTQ packed into {values['pack_dtype']}")
        dynamic = values.get("dynamic") or {}
        # Rules that begin with a minus leave modules unquantised, which shows in their tensors.
        if not isinstance(dynamic, dict) or any(not rule.startswith("-:") for rule in dynamic):
            raise self._refused("GPTQ with different rules for different modules")
        # The first version stores zero points less one.
        return StoredQuantization(
            "gptq",
            self._bits(values, "bits"),
            self._group(values),
            zero_offset=int(version == "gptq"),
            zero_points=not self._boolean(values, "sym"),
        )

    def _awq(self) -> StoredQuantization:
        older = {"w_bit": "bits", "q_group_size": "group_size"}
        values = {older.get(str(key), str(key)): value for key, value in self._values.items()}
        version = str(values.get("version", "gemm")).lower()
        if version != "gemm" or values.get("bits", 4) != 4:
            raise self._refused(f"AWQ in the format {version} with {values.get('bits', 4)} bits")
        return StoredQuantization("awq", 4, self._group(values), zero_points=self._boolean(values, "zero_point"))

    def _float8(self) -> StoredQuantization:
        values = self._values
        if values.get("fmt", "e4m3") != "e4m3":
            raise self._refused(f"FP8 in the format {values['fmt']}")
        block = values.get("weight_block_size")
        if block is None:
            return StoredQuantization("float8", 8, None)
        rows, group = self._block(block)
        return StoredQuantization("float8", 8, group, rows=rows)

    def _modelopt(self) -> StoredQuantization:
        algorithm = self._values.get("quant_algo")
        # Whether a matrix or each of its rows has a scale shows in their number.
        if algorithm not in ("FP8", "FP8_PER_CHANNEL_PER_TOKEN"):
            raise self._refused(f"ModelOpt's {algorithm}")
        return StoredQuantization("float8", 8, None)

    def _block(self, block: Any) -> tuple[int, int]:
        if isinstance(block, list) and len(block) == 2 and all(type(each) is int and each >= 1 for each in block):
            return block[0], block[1]
        raise self._refused(f"blocks of {block}")

    def _compressed_tensors(self) -> StoredQuantization:
        values = self._values
        layouts: dict[str, Layout] = {
            "pack-quantized": "packed",
            "int-quantized": "integers",
            "naive-quantized": "integers",
            "float-quantized": "float8",
        }
        form = values.get("format")
        layout = layouts.get(form) if isinstance(form, str) else None
        if layout is None:
            raise self._refused(f"compressed-tensors in the format {form}")
        cache = values.get("kv_cache_scheme")
        # One of 8-bit floating point is of use to caches of that type, and nothing that others must know of.
        if cache and not (isinstance(cache, dict) and cache.get("type") == "float" and cache.get("num_bits") == 8):
            raise self._refused("compressed-tensors with kv_cache_scheme")
        for key in ("sparsity_config", "transform_config"):
            more = values.get(key)
            if more and not (isinstance(more, dict) and more.get("format") == "dense"):
                raise self._refused(f"compressed-tensors with {key}")
        # Weights of a frozen model may be compressed, and may not: that shows in their types.
        if values.get("quantization_status", "compressed") not in ("compressed", "frozen"):
            raise self._refused(f"compressed-tensors in the state {values['quantization_status']}")
        groups = values.get("config_groups")
        if not isinstance(groups, dict) or not groups:
            raise self._refused("compressed-tensors without config_groups")
        found = {self._scheme(group, layout) for group in groups.values()}
        if len(found) > 1:
            raise self._refused("compressed-tensors with different schemes for different modules")
        return found.pop()

    def _scheme(self, group: Any, layout: Layout) -> StoredQuantization:
        weights = group.get("weights") if isinstance(group, dict) else None
        if not isinstance(weights, dict):
            raise self._refused("compressed-tensors without a scheme for weights")
        kind, strategy = weights.get("type", "int"), weights.get("strategy")
        if kind == "float" and weights.get("num_bits") == 8 and layout != "packed":
            layout = "float8"
        elif kind != "int" or layout == "float8":
            raise self._refused(f"{weights.get('num_bits')}-bit {kind} weights in the format {self._values['format']}")
        if strategy == "block" and layout == "float8":
            rows, group = self._block(weights.get("block_structure"))
            return StoredQuantization(layout, 8, group, rows=rows)
        if strategy not in ("tensor", "channel", "group"):
            raise self._refused(f"scales of the strategy {strategy}")
        bits = self._bits(weights, "num_bits")
        return StoredQuantization(
            layout,
            bits,
            self._group(weights) if strategy == "group" else None,
            zero_points=not self._boolean(weights, "symmetric"),
        )

    def _bits(self, values: dict[str, Any], key: str) -> Literal[4, 8]:
        bits = values.get(key)
        if bits == 4:
            return 4
        if bits == 8:
            return 8
        raise self._refused(f"{bits}-bit weights")

    def _group(self, values: dict[str, Any]) -> int | None:
        size = values.get("group_size", 128)
        if isinstance(size, bool) or not isinstance(size, int) or not (size == -1 or size >= 1):
            raise self._refused(f"groups of {size}")
        return None if size == -1 else size

    def _boolean(self, values: dict[str, Any], key: str) -> bool:
        """One that is true where it is not given, as all of these formats have them."""
        value = values.get(key)
        if value not in (None, True, False):
            raise self._refused(f"{key} {value!r}")
        return value is None or bool(value)

    def _refused(self, what: str) -> ConfigError:
        return ConfigError(
            f"{self._source}: quantisation: {what[:100]} is not supported; supported are {_SUPPORTED}",
            param="model_path",
        )
