"""``/v1/models``."""

from __future__ import annotations

import time
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bough.config.user_paths import shown_path
from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.errors import dialect_of
from bough.entrypoints.http.route import OPENAI, Count, Created, Handlers, Path, Route
from bough.errors import NotFound
from bough.managers.tokenizer_manager import TokenizerManager


class ModelCard(msgspec.Struct):
    """A model that is served."""

    id: Annotated[str, Meta(description="Its name.", examples=["sapling"])]
    object: Literal["model"]
    created: Created
    owned_by: Annotated[str, Meta(description="Program that serves it.", examples=["bough"])]
    root: Path
    parent: Annotated[str | None, Meta(description="The model that it adapts, if it does.")]
    max_model_len: Annotated[Count, Meta(description="Most tokens of a request, prompt and output together.")]


class ModelList(msgspec.Struct):
    """The models that are served."""

    object: Literal["list"]
    data: Annotated[list[ModelCard], Meta(description="The models.")]


class ModelsHandler(Handlers):
    """Lists the models that are served."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._card = ModelCard(
            manager.served_model_name,
            "model",
            int(time.time()),
            owned_by="bough",
            root=shown_path(manager.server_args.model_path),
            parent=None,
            max_model_len=manager.limits.context_len,
        )

    @Route("GET /v1/models", OPENAI, answer=ModelList)
    async def list_models(self, call: Call) -> Response:
        """The models that are served."""
        return Response(msgspec.json.encode(ModelList("list", [self._card])))

    @Route("GET /v1/models/{model:path}", OPENAI, answer=ModelCard)
    async def get_model(self, call: Call) -> Response:
        """One model; ids may contain slashes."""
        name = call.path_params["model"]
        if name != self._card.id:
            call.dialect = dialect_of(call.path, call.headers)  # Anthropic's clients ask here as well
            raise NotFound(
                f"the model {name!r} does not exist; this server has {self._card.id!r}",
                param="model",
                code="model_not_found",
            )
        return Response(msgspec.json.encode(self._card))
