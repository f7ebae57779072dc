"""Make a model and fill it: from files, or with random weights."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError

from bough.config.model_config import ModelConfig
from bough.config.packed_manifest import is_packed
from bough.config.ranks import ALL_WEIGHTS, WeightRank
from bough.errors import BadRequest, ModelError, StartupError
from bough.layers.checkpoint_weight import StoredWeight
from bough.layers.linear_method import TORCH, MethodChoice
from bough.model_loader.gguf_source import GGUFSource
from bough.model_loader.microscaled_source import MicroscaledSource
from bough.model_loader.packed_state import PackedState
from bough.model_loader.quantized_source import QuantizedSource
from bough.model_loader.sharded_state import ShardedState
from bough.model_loader.shared_weights import SharedArena, adopt_parameters
from bough.model_loader.sources import NAMES_SHOWN, SafetensorsSource, WeightSource
from bough.model_loader.tensorizer_state import TensorizerState
from bough.models.base import Model
from bough.models.registry import make_model
from bough.models.weight_names import stored_names
from bough.observability.progress import Progress

logger = logging.getLogger(__name__)

TakeWeights = Callable[[Iterable[tuple[str, StoredWeight]]], set[str]]
"""What is done with weights: :meth:`Model.load_weights`, for example."""

_DUMMY_STD = 0.02
_DUMMY_BLOCK = 1_048_573


def open_source(config: ModelConfig, load_format: str, rank: WeightRank = ALL_WEIGHTS) -> WeightSource | None:
    """Where a model's weights come from; ``None`` if they are to be random.

    Args:
        load_format: ``dummy`` for random weights; the files of ``auto``, ``safetensors`` and ``gguf`` are recognised by
            what they are.
        rank: part of the weights, for states that are written by rank; other files have all of the weights, whatever
            the number of ranks.

    Raises:
        StartupError: if files are missing or damaged.
    """
    if load_format == "dummy":
        return None
    path = Path(config.model_path)
    if path.is_file():
        return GGUFSource(config)
    if load_format == "packed" or (load_format == "auto" and is_packed(path)):
        return PackedState(path, rank)
    if load_format == "sharded_state":
        return ShardedState(path, rank)
    if load_format == "tensorizer":
        return TensorizerState(path, rank)
    quantization = config.stored_quantization
    if quantization is None:
        return SafetensorsSource(path)
    return MicroscaledSource(path) if quantization.is_microscaled else QuantizedSource(path, quantization)


def load_model(
    config: ModelConfig,
    *,
    source: WeightSource | None,
    device: torch.device,
    seed: int,
    method: MethodChoice = TORCH,
    arena: SharedArena | None = None,
) -> Model:
    """A model with its weights, ready to run.

    Args:
        source: of the weights; ``None`` makes random ones from ``seed``.
        arena: shared memory that ``method`` packs into, where all weights lie then; unless it is writable, they are
            there already.

    Raises:
        StartupError: if files are damaged or do not fit the model.
    """
    with torch.device(device):
        model = make_model(config, method)
    model.eval()
    if arena is not None:
        adopt_parameters(model, arena)
        if not arena.is_writable:
            return model
    if source is None:
        fill_with_random_weights(model, seed)
    else:
        load_checkpoint(model, source)
    return model


def load_checkpoint(model: Model, source: WeightSource, *, is_checked: bool = False) -> None:
    """Stream all weights of a checkpoint into a model, casting to its dtype.

    Args:
        is_checked: :func:`check_checkpoint` has accepted them, so that numbers are not looked at again.

    Raises:
        StartupError: naming the file and what is wrong with it, or the weights that no file has.
    """
    begin = time.perf_counter()
    if isinstance(source, PackedState):
        num_loaded = source.fill(model)
    else:
        load = partial(model.write_weights if is_checked else model.load_weights, shares=source.has_shares)
        num_loaded = len(_go_through(source, model, load, "Loading weights"))
    seconds = time.perf_counter() - begin
    logger.info("loaded %d weights, %.2f GB, in %.1f s", num_loaded, source.total_bytes / 1e9, seconds)


def check_checkpoint(model: Model, source: WeightSource) -> None:
    """Go through a checkpoint as :func:`load_checkpoint` would, without changing the model.

    Raises:
        StartupError: as there.
    """
    if isinstance(source, PackedState):
        source.check(model)
        return
    _go_through(source, model, partial(model.check_weights, shares=source.has_shares), "Checking weights")


def _go_through(source: WeightSource, model: Model, take: TakeWeights, what: str) -> set[str]:
    """Have all weights of a checkpoint taken; the model's own names of them."""
    found: set[str] = set()
    known = {*model.checkpoint_weights, *model.stacked_weights}
    with Progress(what, source.total_bytes) as progress:
        for file in source.files:
            try:
                found |= take(source.read(file, progress, known))
            except SafetensorError as error:
                raise StartupError(
                    f"cannot load {file}: it is damaged or cut short ({error}); download it again"
                ) from error
            except (ModelError, OSError) as error:
                raise StartupError(f"cannot load {file}: {error}") from error
    found |= _taken_by_second_names(model, source, found, take)
    required = model.required_shares.keys() if source.has_shares else model.required_names
    missing = sorted(required - found)
    if missing:
        shown = ", ".join(missing[:NAMES_SHOWN]) + (", …" if len(missing) > NAMES_SHOWN else "")
        where, needed = source.files[0].parent, len(required)
        raise StartupError(f"the checkpoint in {where} lacks {len(missing)} of {needed} weights: {shown}")
    return found


def _taken_by_second_names(model: Model, source: WeightSource, found: set[str], take: TakeWeights) -> set[str]:
    """The names of weights that a checkpoint has only under another one, as a tied head's: these are taken now.

    Raises:
        StartupError: if it has both, and they differ.
    """
    weights, taken = model.checkpoint_weights, set[str]()
    first_names = {weights[name].key: name for name in model.required_names}
    for second in weights.keys() - model.required_names:
        first, tensor = first_names[weights[second].key], _numbers(source, second)
        if tensor is None:
            continue
        if first not in found:
            taken |= take([(first, tensor)])
        elif (other := _numbers(source, first)) is not None and not torch.equal(tensor.to(other.dtype), other):
            raise StartupError(
                f"the checkpoint in {source.files[0].parent} has another {second} than {first}, though "
                f"tie_word_embeddings says that they are the same; to use both, start with "
                f"--json-model-override-args '{{\"tie_word_embeddings\": false}}'"
            )
    return taken


def _numbers(source: WeightSource, name: str) -> torch.Tensor | None:
    """Return the values of a weight that no checkpoint has in a stack, under whichever of its names there are."""
    found = (source.numbers(stored) for stored in stored_names(name))
    return next((numbers for numbers in found if numbers is not None), None)


@torch.no_grad()
def fill_with_random_weights(model: Model, seed: int) -> None:
    """Normal weights of small spread; biases zero, norms one. The same seed gives the same weights."""
    for name, numbers in _random_weights(model, seed):
        model.checkpoint_weights[name].write(numbers)


def check_random_weights(model: Model, seed: int) -> None:
    """Go through the weights of :func:`fill_with_random_weights` without changing the model.

    Raises:
        BadRequest: if a matrix has no room for them.
    """
    for name, numbers in _random_weights(model, seed):
        try:
            model.checkpoint_weights[name].check(numbers)
        except ModelError as error:
            message = f"load_format: weight {name} cannot be random: {error.message}"
            raise BadRequest(message, param="load_format") from None


def _random_weights(model: Model, seed: int) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the numbers of each weight, by its name.

    The random numbers of one block are repeated over and over: drawing each weight of a large model would take
    minutes. The block's length is a prime, so that no two rows of a matrix are alike.
    """
    generator = torch.Generator(device="cpu").manual_seed(seed)
    device = next(model.parameters()).device
    block = torch.empty(_DUMMY_BLOCK).normal_(0.0, _DUMMY_STD, generator=generator).to(device)
    offset = 0
    for name in sorted(model.required_names):
        weight = model.checkpoint_weights[name]
        if name.lower().endswith("norm.weight"):
            yield name, torch.ones(weight.shape)
        elif name.endswith(".bias"):
            yield name, torch.zeros(weight.shape)
        else:
            flat = torch.empty(weight.shape.numel(), dtype=weight.dtype, device=device)
            start = 0
            while start < len(flat):
                count = min(len(flat) - start, len(block) - offset)
                flat[start : start + count].copy_(block[offset : offset + count])
                start += count
                offset = (offset + count) % len(block)
            yield name, flat.view(weight.shape)
