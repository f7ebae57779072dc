"""Outputs of requests, as vLLM has them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from vllm.logprobs import LogprobsOnePosition, position
from vllm.sampling_params import RequestOutputKind, SamplingParams

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


@dataclass
class CompletionOutput:
    """One of the ``n`` outputs of a request."""

    index: int
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    cumulative_logprob: float | None = None
    logprobs: list[LogprobsOnePosition] | None = None
    """One dictionary per token, if logprobs were asked for."""
    finish_reason: str | None = None
    """``stop``, ``length`` or ``abort``; ``None`` while it goes on."""
    stop_reason: int | str | None = None
    """The token id or the text of the request's that ended it."""
    lora_request: None = None

    def finished(self) -> bool:
        """Return whether it has ended."""
        return self.finish_reason is not None


@dataclass
class RequestOutput:
    """The outputs of a request."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int] | None
    prompt_logprobs: list[LogprobsOnePosition | None] | None
    outputs: list[CompletionOutput]
    finished: bool
    metrics: None = None
    lora_request: None = None
    num_cached_tokens: int | None = None


@dataclass
class PoolingOutput:
    """The vector that a model makes of a prompt."""

    data: torch.Tensor
    """``[num_dimensions]`` or ``[num_classes]``, float32."""


@dataclass
class EmbeddingOutput:
    """The embedding of a prompt."""

    embedding: list[float]

    @property
    def hidden_size(self) -> int:
        """Length of the embedding."""
        return len(self.embedding)


@dataclass
class ClassificationOutput:
    """The classes of a prompt."""

    probs: list[float]
    """Probability of each class, or its score if that was asked for."""

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.probs)


@dataclass
class ScoringOutput:
    """Score of a pair of texts; a higher one is a better match."""

    score: float


@dataclass
class PoolingRequestOutput(Generic[T]):
    """The output of a request for a vector."""

    request_id: str
    outputs: T
    prompt_token_ids: list[int]
    num_cached_tokens: int
    finished: bool = True


class EmbeddingRequestOutput(PoolingRequestOutput[EmbeddingOutput]):
    """The output of a request for an embedding."""


class ClassificationRequestOutput(PoolingRequestOutput[ClassificationOutput]):
    """The output of a request for classes."""


class ScoringRequestOutput(PoolingRequestOutput[ScoringOutput]):
    """The output of a request for a score. Of two embeddings it has the tokens of both texts, one after the other."""


class OutputBuilder:
    """Puts the output of a request together from what the engine says of it, event by event."""

    def __init__(
        self,
        request_id: str,
        text: str | None,
        token_ids: list[int] | None,
        params: SamplingParams,
        eos_token_ids: frozenset[int],
    ) -> None:
        self._params = params
        self._eos_token_ids = eos_token_ids
        self._is_delta = params.output_kind is RequestOutputKind.DELTA
        wants = params.logprobs is not None
        self._outputs = [CompletionOutput(index, logprobs=[] if wants else None) for index in range(params.n)]
        self._result = RequestOutput(request_id, text, token_ids, None, self._outputs, False)

    def add(self, event: dict[str, Any]) -> RequestOutput:
        """Take an event of ``Engine.async_generate`` that has what is new; return the output as it is now.

        Later events leave an output that was returned as it is.
        """
        index, info = event.get("index", 0), event["meta_info"]
        output = self._outputs[index]
        if self._is_delta:
            logprobs: list[LogprobsOnePosition] | None = None if output.logprobs is None else []
            output = CompletionOutput(index, "", [], output.cumulative_logprob, logprobs)
            self._outputs[index] = output
        output.text += event.get("text") or ""
        output.token_ids += event["output_ids"]
        self._add_logprobs(output, info)
        if info["finish_reason"] is not None:
            self._finish(output, info["finish_reason"])
        if event.get("prompt_token_ids") is not None:
            self._result.prompt_token_ids = event["prompt_token_ids"]
        self._result.num_cached_tokens = info["cached_tokens"]
        self._result.finished = all(each.finish_reason is not None for each in self._outputs)
        return self._now([output] if self._is_delta else self._outputs)

    def aborted(self) -> RequestOutput:
        """Return the output of a request that was aborted before it began."""
        for output in self._outputs:
            output.finish_reason = "abort"
        self._result.finished = True
        return self._now(self._outputs)

    def _now(self, outputs: list[CompletionOutput]) -> RequestOutput:
        """Copy the result, with some of its outputs."""
        copies = [
            replace(each, token_ids=list(each.token_ids), logprobs=None if each.logprobs is None else [*each.logprobs])
            for each in outputs
        ]
        return replace(self._result, outputs=copies)

    def _add_logprobs(self, output: CompletionOutput, info: dict[str, Any]) -> None:
        tops = info.get("output_top_logprobs")
        if output.logprobs is not None:
            added = info.get("output_token_logprobs", ())
            for i, own in enumerate(added):
                output.logprobs.append(position(own, tops[i] if tops else (), self._params.logprobs or 0))
            output.cumulative_logprob = (output.cumulative_logprob or 0.0) + sum(each[0] for each in added)
        # Every output of a request has the prompt's.
        if output.index == 0 and self._params.prompt_logprobs is not None and info.get("input_token_logprobs"):
            tops = info.get("input_top_logprobs")
            known = list(self._result.prompt_logprobs or ())
            for i, own in enumerate(info["input_token_logprobs"]):
                top = tops[i] if tops else ()
                known.append(None if own[0] is None else position(own, top, self._params.prompt_logprobs))
            self._result.prompt_logprobs = known

    def _finish(self, output: CompletionOutput, reason: dict[str, Any]) -> None:
        output.finish_reason = reason["type"]
        if reason["type"] == "stop" and reason["matched"] not in self._eos_token_ids:
            output.stop_reason = reason["matched"]
