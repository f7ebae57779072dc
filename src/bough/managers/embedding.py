"""From requests for vectors to vectors: what every front end of an embedding model shares."""

from __future__ import annotations

import base64
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bough.errors import BadRequest, RequestFailed
from bough.ipc.messages import OutputDelta
from bough.managers.native_output import meta_info
from bough.managers.turns import Turns, collect

if TYPE_CHECKING:
    from bough.managers.embedding_struct import EmbeddingReqInput, EmbeddingRequest
    from bough.managers.req_state import ReqState
    from bough.managers.tokenizer_manager import TokenizerManager

NUMBERS_PER_TURN = 8192
"""Numbers written as text between two turns of the event loop: about half a millisecond."""

ABORTED_STATUS = 409
"""HTTP status for an aborted request: unlike a text, half a vector is of no use."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vector of one request: an embedding, or class scores."""

    state: ReqState
    delta: OutputDelta

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return self.delta.prompt_tokens

    @property
    def data(self) -> bytes:
        """The numbers, float32 little-endian."""
        assert self.delta.embedding is not None, "checked when it came"
        return self.delta.embedding

    def numbers(self) -> list[float]:
        """The numbers as Python has them."""
        return array("f", self.data).tolist()

    def base64(self) -> str:
        """:attr:`data` in base 64."""
        return base64.b64encode(self.data).decode()

    def native(self) -> dict[str, Any]:
        """The answer of ``/encode`` and of ``Engine.encode``."""
        answer = {"embedding": self.numbers(), "meta_info": meta_info(self.state, self.delta)}
        request = self.state.obj
        if request.return_prompt_token_ids and request.input_ids is not None:
            answer["prompt_token_ids"] = request.input_ids.tolist()
        return answer


def require_embeddings(manager: TokenizerManager) -> None:
    """Raise :class:`BadRequest` if the model makes no embeddings."""
    pooling = manager.model_config.pooling
    if pooling is None or pooling.is_classifier:
        kind = "generates text" if pooling is None else "scores classes"
        instead = "; a server that is started with --is-embedding makes them of it" if pooling is None else ""
        raise BadRequest(f"this model {kind} and makes no embeddings{instead}", code="unsupported_by_model")


async def embed(manager: TokenizerManager, made: Iterable[EmbeddingRequest]) -> list[Embedded]:
    """Run requests, at least one; returns one result each, in their order. Raises :class:`BoughError` if one of them
    cannot be made or taken, or fails; the others are ended."""
    requests = await collect(made)
    results: list[Embedded | None] = [None] * len(requests)
    async with manager.generation(requests) as generation:
        async for state, delta in generation.results():
            if delta.embedding is None:
                raise RequestFailed("the request was aborted", status_code=ABORTED_STATUS, code="aborted")
            results[state.index] = Embedded(state, delta)
    return [result for result in results if result is not None]


async def encode_native(manager: TokenizerManager, obj: EmbeddingReqInput) -> Any:
    """Vectors in the native shape: a dictionary, or a list of them for a batch. Raises :class:`BoughError`: see
    :func:`embed`."""
    turns = number_turns()
    answers = []
    for result in await embed(manager, obj.requests()):
        answers.append(result.native())
        await turns.spend(len(result.data) // 4)
    return answers if obj.is_batch else answers[0]


def number_turns() -> Turns:
    """To be spent while numbers are written, a unit each."""
    return Turns(NUMBERS_PER_TURN)
