"""Load a model: its weights, in the form that suits the device, if there is room for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

import torch

from bough.config.engine_args import EngineArgs, Quantization
from bough.config.model_config import ModelConfig
from bough.config.ranks import WHOLE_MACHINE, MachineShare, WeightRank
from bough.distributed.rank_group import ALONE_IN_GROUP, RankGroup
from bough.kernels.host_memory import OutlineArena
from bough.layers.linear_method import TORCH, MethodChoice
from bough.layers.stored_formats import StoredFormats
from bough.mem_cache.kv_pool import FLOAT8_DTYPES
from bough.model_executor.execution_choice import ExecutionChoice
from bough.model_executor.pieces_check import differs_in_pieces
from bough.model_executor.weight_memory import available_memory, check_weights_fit, largest_weight_bytes, weight_bytes
from bough.model_loader.loader import load_model, open_source
from bough.model_loader.shared_weights import SharedWeights
from bough.model_loader.sources import NAMES_SHOWN, WeightSource
from bough.models.base import CausalLM, Model
from bough.models.registry import make_model
from bough.models.transformers_config import refusal
from bough.weight_sync.live_weights import LiveWeights, state_of
from bough.weight_sync.weight_memory import WeightMemory

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A language model with its weights."""

    model: CausalLM
    kv_scales: Mapping[int, tuple[float, float]] | None
    """By layer, for a KV pool of 8-bit floating point"""
    activation_dtype: torch.dtype
    """Type of hidden states between layers"""
    held_as: str
    """Form of the weights, for the log"""
    shared_bytes: int
    """Memory of the weights that all schedulers of the machine share"""
    memory: WeightMemory
    """The weights, which another checkpoint's may replace, and their memory, which can be given back"""

    @classmethod
    def load(
        cls,
        config: ModelConfig,
        device: torch.device,
        args: EngineArgs,
        choice: ExecutionChoice,
        share: MachineShare = WHOLE_MACHINE,
        ranks: RankGroup = ALONE_IN_GROUP,
    ) -> LoadedModel:
        """Load a model from its checkpoint, or make one with random weights; or map the weights of another scheduler.
        Of several ``ranks`` each loads its part.

        Raises:
            StartupError: before anything is loaded if there is no room for it; or if files do not fit the model.
        """
        rank = WeightRank(ranks.spec.rank, ranks.spec.world, ranks.spec.division)
        source = _checked_source(config, args, choice, rank)
        files = state_of(source)
        kv_scales = source.kv_scales() if source is not None and choice.kv_dtype in FLOAT8_DTYPES else None
        is_stored = source is not None and source.quantized
        quantized = choice.threads is not None and (is_stored or args.quantization != "none")
        sizes = _Sizes(config, device, choice, source, ranks)
        shared = SharedWeights.of(share) if choice.threads is not None else None
        if shared is None or shared.is_writer:
            check_weights_fit(
                device,
                sizes.needed(args.quantization),
                {} if is_stored else sizes.smaller(args.quantization, quantized=quantized),
                only_warn=args.max_total_tokens is not None,
                # Weights that all schedulers share exist once.
                share=share if shared is None else WHOLE_MACHINE,
            )
        arena = None
        if shared is not None:
            arena = shared.open(sizes.outline(args.quantization), lambda size: sizes.available >= share.count * size)
        method = choice.weights.method(source, args.quantization, arena)
        seed = args.random_seed or 0
        model = load_model(config, source=source, device=device, seed=seed, method=ranks.part_of(method), arena=arena)
        if shared is not None and arena is not None and arena.is_writable:
            shared.complete()
        assert isinstance(model, CausalLM), "encoders have a runner of their own"
        if config.implementation == "transformers" and differs_in_pieces(model, config, device):
            raise refusal(config, "its results depend on how prompts are cut into steps, or on each other")
        holds_codes = isinstance(method, StoredFormats)
        _tell_of_recoded(method)
        live = LiveWeights(
            model,
            config,
            args.load_format,
            files=files,
            seed=seed,
            kv_scales=kv_scales,
            holds_codes=holds_codes,
            rank=rank,
            is_mapped=arena is not None and not arena.is_writable,
        )
        return cls(
            model,
            kv_scales,
            # The inputs of products with quantised weights are made from float32.
            torch.float32 if quantized else choice.dtype,
            _form_of(config, args, holds_codes=holds_codes),
            0 if arena is None else arena.num_bytes,
            WeightMemory(live, None if arena is None else arena.mapping, args),
        )


def _form_of(config: ModelConfig, args: EngineArgs, *, holds_codes: bool) -> str:
    """Return the form of the weights in memory, for the log."""
    kept = "the checkpoint's codes" if holds_codes else config.dtype
    return kept if args.quantization == "none" else args.quantization


def _checked_source(
    config: ModelConfig, args: EngineArgs, choice: ExecutionChoice, rank: WeightRank
) -> WeightSource | None:
    """Open the weights of a model; ``None``: random ones. Raises :class:`StartupError` if they cannot be used."""
    source = open_source(config, args.load_format, rank)
    if source is None:
        return None
    source.check_use(config.architecture, args.quantization, config.dtype, native=choice.threads is not None)
    problem = choice.weights.why_not_stored(source) if args.quantization == "none" else None
    if problem is not None:
        logger.warning("weights of few bits are held in the model's type, which takes more memory: %s", problem)
    return source


def _tell_of_recoded(method: MethodChoice) -> None:
    if isinstance(method, StoredFormats) and method.recoded:
        shown = ", ".join(method.recoded[:NAMES_SHOWN]) + (", …" if len(method.recoded) > NAMES_SHOWN else "")
        logger.info("%d matrices become int8, of themselves not quantised: %s", len(method.recoded), shown)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Memory of a checkpoint's weights, by how they are held."""

    config: ModelConfig
    device: torch.device
    choice: ExecutionChoice
    source: WeightSource | None
    ranks: RankGroup

    @property
    def available(self) -> int:
        """Bytes that can be taken now."""
        return available_memory(self.device)[0]

    def outline(self, quantization: Quantization) -> Model:
        """Return the model without memory."""
        with torch.device("meta"):
            return make_model(self.config, self._method(quantization))

    def needed(self, quantization: Quantization) -> int:
        """Bytes of the weights, and of making them while they are loaded."""
        needed = weight_bytes(self.config, self._method(quantization))
        if self.source is None and self.device.type == "cuda":
            needed += largest_weight_bytes(self.config)  # random ones are made there, one after the other
        return needed + self.choice.weights.quantizing_bytes(self.source, quantization)

    def _method(self, quantization: Quantization) -> MethodChoice:
        """How this rank's part of the weights is held, without memory."""
        return self.ranks.part_of(self.choice.weights.method(self.source, quantization, OutlineArena()))

    def smaller(self, chosen: Quantization, *, quantized: bool) -> dict[str, Callable[[], int]]:
        """Options with which the weights take less memory, and how much that is."""
        smaller: dict[str, Callable[[], int]] = {}
        if self.config.dtype == "float32" and not quantized:
            narrower = replace(self.config, dtype="bfloat16")
            smaller["--dtype bfloat16"] = partial(weight_bytes, narrower, self.ranks.part_of(TORCH))
        for each in get_args(Quantization):
            if each not in ("none", chosen) and self.choice.weights.why_not(each) is None:
                smaller[f"--quantization {each}"] = partial(self.needed, each)
        return smaller
