"""Other weights for the model that is being served."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.config.engine_args import LoadFormat
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec, Refused
from bough.managers.tokenizer_manager import TokenizerManager

MAX_VERSION_CHARS = 256
"""Longest name of weights, which is part of every answer."""

MAX_PATH_CHARS = 4096

Version = Annotated[str, Meta(min_length=1, max_length=MAX_VERSION_CHARS)]


class UpdateWeightsFromDisk(msgspec.Struct, kw_only=True):
    """Body of ``/update_weights_from_disk``."""

    model_path: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_PATH_CHARS)],
        Meta(
            description="The other checkpoint, of the same model: a directory or a GGUF file of the server's machine, "
            "or a model on the hub."
        ),
    ]
    load_format: Annotated[
        LoadFormat | None,
        Meta(description="As `--load-format`; by default as before, or `auto` if that was `dummy`."),
    ] = None
    weight_version: Annotated[
        Version | None, Meta(description="What the weights are called in answers from now on; by default as before.")
    ] = None
    abort_all_requests: Annotated[
        bool, Meta(description="End the requests that are there instead of waiting for them.")
    ] = False
    flush_cache: Annotated[
        bool,
        Meta(
            description="Forget what the old weights have computed. Without it the cache goes on being used; with it, "
            "requests that are paused must have given their memory back (mode `retract`)."
        ),
    ] = True


class UpdateWeightVersion(msgspec.Struct, kw_only=True):
    """Body of ``/update_weight_version``."""

    new_version: Annotated[Version, Meta(description="What the weights are called in answers from now on.")]
    abort_all_requests: Annotated[
        bool, Meta(description="End the requests that are there first, so that no answer has tokens of both names.")
    ] = True


class GetWeightsByName(msgspec.Struct, kw_only=True):
    """Body of ``/get_weights_by_name``."""

    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_PATH_CHARS)],
        Meta(description="Name of the weight in the checkpoint."),
    ]
    truncate_size: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)], Meta(description="Most rows of it, or numbers of a vector.")
    ] = 100


UPDATE_FROM_DISK = BodySpec(
    UpdateWeightsFromDisk,
    no_effect={
        "keep_pause": "Keep generation paused: it stays so until `/continue_generation` anyway.",
        "recapture_cuda_graph": "Record CUDA graphs anew: those that there are go on working.",
        "token_step": "Which step of the trainer the weights come from.",
        "torch_empty_cache": "Give unused device memory back: it is set aside at the start.",
    },
    refused={
        "is_async": Refused("answering before the weights are there", (False,)),
        "manifest": Refused("checking tensors against a list"),
    },
)
UPDATE_VERSION = BodySpec(UpdateWeightVersion)
GET_BY_NAME = BodySpec(GetWeightsByName)


class WeightHandlers:
    """Answers the routes about weights.

    Args:
        manager: does the work.
    """

    def __init__(self, manager: TokenizerManager) -> None:
        self._manager = manager

    async def update_from_disk(self, call: Call) -> Response:
        """``POST /update_weights_from_disk``: serve another checkpoint of the same model; 400 if that cannot be."""
        body = await self._parse(UPDATE_FROM_DISK, call)
        update = await self._manager.weights.update_from_disk(
            body.model_path,
            load_format=body.load_format,
            version=body.weight_version,
            abort_all_requests=body.abort_all_requests,
            flush_cache=body.flush_cache,
        )
        return Response(msgspec.json.encode(update._asdict()), 200 if update.success else 400)

    async def update_version(self, call: Call) -> Response:
        """``POST /update_weight_version``: call the weights by another name."""
        body = await self._parse(UPDATE_VERSION, call)
        await self._manager.weights.set_version(body.new_version, abort_all_requests=body.abort_all_requests)
        done = {
            "success": True,
            "message": f"the weights are called {body.new_version}",
            "new_version": body.new_version,
        }
        return Response(msgspec.json.encode(done))

    async def get_by_name(self, call: Call) -> Response:
        """``GET`` or ``POST /get_weights_by_name``: the first rows of a weight, as the model has it."""
        body = await self._parse(GET_BY_NAME, call)
        return Response(msgspec.json.encode(await self._manager.weights.rows(body.name, body.truncate_size)))

    async def _parse(self, spec: BodySpec[Any], call: Call) -> Any:
        allow_unknown = self._manager.server_args.allow_unknown_fields
        return await spec.parse(call.take_body(), allow_unknown=allow_unknown, max_tokens=0)
