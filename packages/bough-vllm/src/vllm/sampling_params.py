"""Sampling parameters, as vLLM has them: plain objects that may be changed, copied and pickled."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bough.errors import BadRequest


class RequestOutputKind(Enum):
    """Content of each output of a stream."""

    CUMULATIVE = 0
    """All so far."""
    DELTA = 1
    """What is new."""
    FINAL_ONLY = 2
    """All, once, at the end."""


@dataclass
class StructuredOutputsParams:
    """A form that the output has to have; one of the first five."""

    json: str | dict[str, Any] | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | None = None


_FORMS = {
    "json": "json_schema",
    "regex": "regex",
    "choice": "choice",
    "grammar": "ebnf",
    "structural_tag": "structural_tag",
}
"""Fields of :class:`StructuredOutputsParams`, and what Bough calls them."""

_HERE = {
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "temperature": "temperature",
    "top_p": "top_p",
    "min_p": "min_p",
    "n": "n",
    "seed": "sampling_seed",
    "stop": "stop",
    "stop_token_ids": "stop_token_ids",
    "bad_words": "bad_words",
    "ignore_eos": "ignore_eos",
    "max_tokens": "max_new_tokens",
    "min_tokens": "min_new_tokens",
    "skip_special_tokens": "skip_special_tokens",
    "spaces_between_special_tokens": "spaces_between_special_tokens",
    "include_stop_str_in_output": "no_stop_trim",
    "logit_bias": "logit_bias",
    "allowed_token_ids": "allowed_token_ids",
}
"""Fields of :class:`SamplingParams` that Bough has, by its names."""

_KEPT_IF_NONE = frozenset({"max_tokens"})
"""Fields whose ``None`` asks for something else than Bough's default."""

_ALL_OF_CONTEXT = -1
_ALL_TOKENS = -1


@dataclass
class SamplingParams:
    """Sampling parameters of a request, with vLLM's names and defaults.

    Bough checks their ranges when a request is made. ``detokenize`` has no effect: text is made where there is a
    tokenizer.
    """

    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    """Covers prompt and output."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """0 and -1: all tokens."""
    min_p: float = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    """``None``: until the context ends."""
    min_tokens: int = 0
    logprobs: int | None = None
    """How many of the likeliest tokens to return beside the one that was chosen."""
    prompt_logprobs: int | None = None
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE
    structured_outputs: StructuredOutputsParams | None = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None

    def clone(self) -> SamplingParams:
        """Return a deep copy."""
        return copy.deepcopy(self)

    @property
    def truncates(self) -> bool:
        """Whether some tokens are not drawn because others are likelier; never where the likeliest one is taken."""
        is_cut = self.top_p != 1.0 or self.top_k not in (0, -1) or self.min_p != 0.0
        return is_cut and self.temperature != 0.0

    @property
    def edits_logits(self) -> bool:
        """Whether logprobs are computed from other logits than the model's."""
        penalties = self.presence_penalty, self.frequency_penalty, self.repetition_penalty - 1.0
        masks = self.min_tokens, self.bad_words, self.logit_bias, self.allowed_token_ids
        is_scaled = self.temperature not in (0.0, 1.0)
        return is_scaled or any(penalties) or any(masks) or self.structured_outputs is not None

    def request_fields(self) -> dict[str, Any]:
        """Return the arguments of ``Engine.generate`` that stand for these parameters.

        Raises:
            BadRequest: if the form of the output is given twice, or a number of logprobs is negative.
        """
        given = {ours: getattr(self, name) for name, ours in _HERE.items()}
        params = {ours: given[ours] for name, ours in _HERE.items() if given[ours] is not None or name in _KEPT_IF_NONE}
        params["top_k"] = self.top_k or _ALL_TOKENS
        params.update(repetition_penalty=self.repetition_penalty, repetition_window=_ALL_OF_CONTEXT)
        if self.structured_outputs is not None:
            params.update(_form(self.structured_outputs))
        fields: dict[str, Any] = {"sampling_params": params}
        for name in ("logprobs", "prompt_logprobs"):
            if (getattr(self, name) or 0) < 0:
                raise BadRequest(f"{name} must not be negative, got {getattr(self, name)}", param=name)
        wanted = [each for each in (self.logprobs, self.prompt_logprobs) if each is not None]
        if wanted:
            fields.update(return_logprob=True, top_logprobs_num=max(wanted), return_text_in_logprobs=True)
        if self.prompt_logprobs is not None:
            fields["logprob_start_len"] = 0
        return fields


def _form(wanted: StructuredOutputsParams) -> dict[str, Any]:
    """Return the sampling parameter that asks for a form."""
    found = {ours: getattr(wanted, name) for name, ours in _FORMS.items() if getattr(wanted, name) is not None}
    if wanted.json_object:
        found["json_schema"] = {"type": "object"}
    if len(found) != 1:
        raise BadRequest("structured_outputs must have one form", param="structured_outputs")
    if isinstance(found.get("json_schema"), dict):
        found["json_schema"] = json.dumps(found["json_schema"])
    return found
