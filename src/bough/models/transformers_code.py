"""Models as transformers makes them, taken apart into a body and a head."""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.utils import CONFIG_NAME
from transformers.utils.generic import ModelOutput

from bough.config.architectures import TRANSFORMERS_EXTRA
from bough.config.model_config import ModelConfig
from bough.errors import StartupError
from bough.models.base import torch_dtype
from bough.models.transformers_config import refusal

STEP = "bough_step"
"""Keyword that models pass on to their attention function."""

_MAJOR = 5


def make_transformers_model(config: ModelConfig, attention: str, experts: str | None = None) -> Any:
    """Make the model of a configuration as transformers does, on torch's default device.

    Code of checkpoints is never run, nor anything downloaded.

    Args:
        attention: name of a registered attention function.
        experts: name of a way to compute experts; ``None``: the one that transformers prefers.

    Returns:
        A ``PreTrainedModel`` with a head.

    Raises:
        ConfigError: if transformers has no such model.
        StartupError: if the installed transformers is of another generation than those that are known.
    """
    if not version("transformers").startswith(f"{_MAJOR}."):
        raise StartupError(f"transformers {version('transformers')} is not {_MAJOR}.x: {TRANSFORMERS_EXTRA}")
    try:
        model = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            _hf_config(config),
            dtype=torch_dtype(config),
            attn_implementation=attention,
            experts_implementation=experts,
            trust_remote_code=False,
        )
    except Exception as error:  # the code of any model, and its checks of a config.json
        raise refusal(config, f"transformers does not make it ({one_line(error)})") from error
    if type(model).__name__ != config.architecture:
        raise refusal(config, f"transformers makes a {type(model).__name__} of its config.json")
    _keep_in_float32(model)
    _fix_rotation(config, model)
    return model.eval()


def _fix_rotation(config: ModelConfig, model: Any) -> None:
    """Choose the factors of longrope by the context that is served: they would follow the longest prompt of a call.

    Raises:
        ConfigError: if a table still depends on what else is in a call.
    """
    for module in model.modules():
        if getattr(module, "rope_type", None) != "longrope":
            continue
        device = module.inv_freq.device
        inv_freq, module.attention_scaling = ROPE_INIT_FUNCTIONS["longrope"](
            module.config, device, seq_len=config.context_len
        )
        module.inv_freq.copy_(inv_freq)
        module.rope_type = "default"
        if device.type != "meta" and _depends_on_call(module, config.context_len):
            raise refusal(config, f"the rotary table of {type(module).__name__} depends on the length of a call")


def _depends_on_call(rotary: nn.Module, context_len: int) -> bool:
    """True if a module turns a position otherwise when the last position of the context is in the same call."""
    states = torch.empty(1, device=rotary.inv_freq.device)  # type: ignore[arg-type]  # of which the dtype counts
    alone, beside = (
        torch.stack(rotary(states, torch.tensor([positions], device=states.device)))[:, :, :1]
        for positions in ([1], [1, context_len - 1])
    )
    return not torch.equal(alone, beside)


def _keep_in_float32(model: Any) -> None:
    """Give tensors that a model's class wants in float32 that type, as loading by transformers does."""
    dtype, kept = model.dtype, set(model._keep_in_fp32_modules_strict or ())
    if dtype == torch.float32:
        return
    if dtype == torch.float16:
        kept |= set(model._keep_in_fp32_modules or ())
    if kept:
        pattern = re.compile(rf"(^|\.)({'|'.join(map(re.escape, kept))})($|\.)")
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if pattern.search(name) and tensor.is_floating_point():
                tensor.data = tensor.data.float()


def _hf_config(config: ModelConfig) -> Any:
    """The model's configuration as transformers reads it; only it knows what its files write for infinity."""
    entries = {key: value for key, value in config.hf_config.items() if key not in ("auto_map", "quantization_config")}
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, CONFIG_NAME).write_text(json.dumps(entries), encoding="utf-8")
        return AutoConfig.from_pretrained(directory, local_files_only=True, trust_remote_code=False)


@dataclass
class _BodyOutput(ModelOutput):
    """Results of a body that heads of one architecture or another ask for; all but the first are ``None``."""

    last_hidden_state: torch.Tensor | None = None
    past_key_values: None = None
    hidden_states: None = None
    attentions: None = None
    cross_attentions: None = None
    router_logits: None = None


class _GivenStates(nn.Module):
    """Stands in for a body that has computed its states."""

    def forward(self, *_: Any, inputs_embeds: torch.Tensor, **__: Any) -> _BodyOutput:
        """Return states ``[1, num_rows, hidden_size]`` as a body returns its own."""
        return _BodyOutput(last_hidden_state=inputs_embeds)


@dataclass(frozen=True, slots=True)
class Halves:
    """A model of transformers in two parts, each of which can be computed alone."""

    body: nn.Module
    head: nn.Module

    @classmethod
    def of(cls, model: Any) -> Halves:
        """Take a ``PreTrainedModel`` apart; it is its own head afterwards.

        Raises:
            ValueError: if it does not say which part is its body.
        """
        body = model.get_decoder()
        if body is model:
            raise ValueError("its body cannot be told from its head")
        parent, _, name = next(path for path, module in model.named_modules() if module is body).rpartition(".")
        setattr(model.get_submodule(parent), name, _GivenStates())
        return cls(body, model)

    def states(self, tokens: torch.Tensor, positions: torch.Tensor, step: Any) -> torch.Tensor:
        """Compute hidden states after the final norm, ``[T, hidden_size]``, of tokens at positions, int64 ``[T]``.

        Args:
            tokens: of all requests.
            positions: in their sequences.
            step: keyword :data:`STEP` of the attention function.
        """
        keywords = {STEP: step, "use_cache": False}
        output: torch.Tensor = self.body(
            input_ids=tokens[None], position_ids=positions[None], **keywords
        ).last_hidden_state[0]
        return output

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Compute logits ``[R, vocab_size]`` of states ``[R, hidden_size]``, with all that the model does to them."""
        logits: torch.Tensor = self.head(inputs_embeds=states[None], use_cache=False).logits[0]
        return logits


def one_line(error: Exception) -> str:
    """Kind and message of an error, shortened."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
