"""``/v1/models``."""

from __future__ import annotations

import time

import msgspec

from bough.config.user_paths import shown_path
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.errors import dialect_of
from bough.errors import NotFound
from bough.managers.tokenizer_manager import TokenizerManager


class ModelsHandler:
    """Lists what is served.

    Args:
        manager: knows it.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        self._card = {
            "id": manager.served_model_name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "bough",
            "root": shown_path(manager.server_args.model_path),
            "parent": None,
            "max_model_len": manager.limits.context_len,
        }

    async def list_models(self, call: Call) -> Response:
        """``GET /v1/models``."""
        return Response(msgspec.json.encode({"object": "list", "data": [self._card]}))

    async def get_model(self, call: Call) -> Response:
        """``GET /v1/models/{id}``; ids may contain slashes."""
        name = call.path_params["model"]
        if name != self._card["id"]:
            call.dialect = dialect_of(call.path, call.headers)  # Anthropic's clients ask here as well
            raise NotFound(
                f"the model {name!r} does not exist; this server has {self._card['id']!r}",
                param="model",
                code="model_not_found",
            )
        return Response(msgspec.json.encode(self._card))
