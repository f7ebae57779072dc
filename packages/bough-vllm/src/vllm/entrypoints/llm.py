"""The engine for batches of prompts."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from bough.errors import BadRequest
from vllm._calls import EngineCalls
from vllm._pooling import PoolingTask, Vector, scores, vectors
from vllm.engine.arg_utils import EngineArgs
from vllm.inputs import PromptType, TokensPrompt
from vllm.outputs import (
    ClassificationOutput,
    ClassificationRequestOutput,
    EmbeddingOutput,
    EmbeddingRequestOutput,
    PoolingOutput,
    PoolingRequestOutput,
    RequestOutput,
    ScoringOutput,
    ScoringRequestOutput,
)
from vllm.pooling_params import PoolingParams
from vllm.sampling_params import RequestOutputKind, SamplingParams

T = TypeVar("T")
Output = TypeVar("Output")


class LLM(EngineCalls):
    """Generates for lists of prompts, or makes vectors of them.

    The keywords are those of :class:`~vllm.engine.arg_utils.EngineArgs`.
    """

    def __init__(self, model: str, **arguments: Any) -> None:
        super().__init__(EngineArgs(model=model, **arguments))
        self._ids = itertools.count()

    def generate(
        self,
        prompts: PromptType | Sequence[PromptType],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool = False,
        priority: Sequence[int] | None = None,
    ) -> list[RequestOutput]:
        """Generate from all prompts, at the same time; returns outputs in the order of the prompts.

        Args:
            prompts: texts, lists of token ids, or prompts of :mod:`vllm.inputs`; or one of these.
            sampling_params: for all, or one for each; :meth:`get_default_sampling_params` where there are none.
            use_tqdm: without effect: there is no bar of progress.
            priority: of each; smaller is sooner.

        Raises:
            BadRequest: also if there are not as many parameters as prompts.
        """
        several = _listed(prompts)
        params = self._core.default_params() if sampling_params is None else sampling_params
        each_params = [params] * len(several) if isinstance(params, SamplingParams) else list(params)
        priorities = [0] * len(several) if priority is None else list(priority)
        for name, given in (("sampling_params", each_params), ("priority", priorities)):
            if len(given) != len(several):
                raise BadRequest(f"{name} must have as many elements as prompts, {len(several)}", param=name)

        async def run() -> list[RequestOutput]:
            calls = zip(several, each_params, priorities, strict=True)
            return await asyncio.gather(*(self._one(*call) for call in calls))

        return _run(run())

    def chat(
        self,
        messages: Sequence[Any],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        use_tqdm: bool = False,
        chat_template_kwargs: dict[str, Any] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: list[dict[str, Any]] | None = None,
    ) -> list[RequestOutput]:
        """Go on with one conversation, a list of messages, or with several; as :meth:`generate`."""
        conversations = messages if messages and not isinstance(messages[0], Mapping) else [messages]
        manager = self._core.engine.tokenizer_manager
        if manager.chat_template is None:
            raise BadRequest("this model has no chat template", param="messages", code="no_chat_template")
        texts = [
            manager.chat_template.render(
                list(each),
                tools=tools,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                kwargs=chat_template_kwargs,
            )
            for each in conversations
        ]
        assert manager.tokenizer is not None, "there is a template"
        encoded = manager.tokenizer.encode_rendered(texts, param="messages")
        prompts: list[PromptType] = [
            TokensPrompt(prompt_token_ids=[int(token) for token in ids], prompt=text)
            for ids, text in zip(encoded, texts, strict=True)
        ]
        return self.generate(prompts, sampling_params, use_tqdm=use_tqdm)

    def embed(
        self,
        prompts: PromptType | Sequence[PromptType],
        *,
        use_tqdm: bool = False,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> list[EmbeddingRequestOutput]:
        """Return the embeddings of prompts, in their order; arguments as :meth:`encode`."""
        made = self._vectors("embed", prompts, pooling_params, tokenization_kwargs)
        return self._outputs(EmbeddingRequestOutput, EmbeddingOutput, made)

    def classify(
        self,
        prompts: PromptType | Sequence[PromptType],
        *,
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        use_tqdm: bool = False,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> list[ClassificationRequestOutput]:
        """Return the probabilities of classes of prompts, in their order; arguments as :meth:`encode`."""
        made = self._vectors("classify", prompts, pooling_params, tokenization_kwargs)
        return self._outputs(ClassificationRequestOutput, ClassificationOutput, made)

    def encode(
        self,
        prompts: PromptType | Sequence[PromptType],
        pooling_params: PoolingParams | Sequence[PoolingParams] | None = None,
        *,
        use_tqdm: bool = False,
        pooling_task: PoolingTask,
        tokenization_kwargs: Mapping[str, Any] | None = None,
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """Return what the model makes of prompts, as tensors, in the order of the prompts.

        Args:
            prompts: texts, lists of token ids, or prompts of :mod:`vllm.inputs`; or one of these.
            pooling_params: for all, or one for each.
            use_tqdm: without effect: there is no bar of progress.
            pooling_task: ``embed`` or ``classify``, whichever the model does.
            tokenization_kwargs: ``truncate_prompt_tokens``: how many tokens of a longer text are kept; -1: as many as
                the model takes. Without it, a text that is too long is an error.

        Raises:
            BadRequest: also if the model generates text, or does the other task.
        """
        import torch

        made = self._vectors(pooling_task, prompts, pooling_params, tokenization_kwargs)
        return self._outputs(PoolingRequestOutput, lambda numbers: PoolingOutput(torch.tensor(numbers)), made)

    def score(
        self,
        data_1: str | Sequence[str],
        data_2: str | Sequence[str],
        /,
        *,
        use_tqdm: bool = False,
        pooling_params: PoolingParams | None = None,
    ) -> list[ScoringRequestOutput]:
        """Judge how well texts fit together: one with all of ``data_2``, or each with its own.

        A cross-encoder judges a pair; of an embedding model it is the cosine of the two embeddings.

        Raises:
            BadRequest: also if the model does neither.
        """
        firsts, seconds = ([data] if isinstance(data, str | Mapping) else list(data) for data in (data_1, data_2))
        made = _run(scores(self._core, firsts, seconds, pooling_params or PoolingParams()))
        return self._outputs(ScoringRequestOutput, lambda numbers: ScoringOutput(numbers[0]), made)

    def get_default_sampling_params(self) -> SamplingParams:
        """Return the parameters that ``generation_config`` and ``override_generation_config`` ask for."""
        return self._core.default_params()

    def get_tokenizer(self) -> Any:
        """Return Bough's tokenizer."""
        return self._core.tokenizer

    def _vectors(
        self,
        task: PoolingTask,
        prompts: PromptType | Sequence[PromptType],
        params: PoolingParams | Sequence[PoolingParams] | None,
        tokenization: Mapping[str, Any] | None,
    ) -> list[Vector]:
        return _run(vectors(self._core, task, _listed(prompts), params, tokenization))

    def _outputs(
        self, kind: Callable[..., Output], content: Callable[[list[float]], Any], made: Sequence[Vector]
    ) -> list[Output]:
        return [kind(self._id(), content(each.numbers), each.prompt_token_ids, each.num_cached_tokens) for each in made]

    def _id(self) -> str:
        return str(next(self._ids))

    async def _one(self, prompt: PromptType, params: SamplingParams, priority: int) -> RequestOutput:
        params = params.clone()
        params.output_kind = RequestOutputKind.FINAL_ONLY
        (output,) = [each async for each in self._core.generate(prompt, params, self._id(), priority)]
        return output


def _listed(prompts: Any) -> list[PromptType]:
    is_one = isinstance(prompts, (str, dict)) or bool(prompts and isinstance(prompts[0], int))
    return [prompts] if is_one else list(prompts)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, be it on another thread where this one has an event loop that runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
