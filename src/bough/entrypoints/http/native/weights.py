"""Other weights for the model that is being served."""

from __future__ import annotations

import asyncio
import base64
import binascii
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough.config.engine_args import LoadFormat
from bough.entrypoints.chat.core import ChatCore
from bough.entrypoints.http.access import Access
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.route import NATIVE, Count, Handlers, Route
from bough.errors import BadRequest, Overloaded, RequestFailed
from bough.ipc.messages import CheckAction
from bough.managers.served_weights import (
    DEFAULT_GROUP,
    GroupName,
    Name,
    TrainerGroup,
    UpdateOptions,
    UpdateOutcome,
    Version,
    passing_file,
)
from bough.managers.tokenizer_manager import TokenizerManager
from bough.other_engines import fields_of

_PIECE_CHARS = 2**20
"""Of base 64, decoded in one go: a millisecond."""


class UpdateWeightsFromDisk(UpdateOptions, frozen=True, kw_only=True):
    """Body of ``/update_weights_from_disk``."""

    model_path: Annotated[
        Name,
        Meta(
            description="The other checkpoint, of the same model: a directory or a GGUF file of the server's machine, "
            "or a model on the hub."
        ),
    ]
    load_format: Annotated[
        LoadFormat | None,
        Meta(description="As `--load-format`; by default as before, or `auto` if that was `dummy` or `packed`."),
    ] = None


class UpdateWeightsFromTensor(UpdateOptions, frozen=True, kw_only=True):
    """Body of ``/update_weights_from_tensor``."""

    serialized_named_tensors: Annotated[
        Annotated[list[str], Meta(min_length=1, max_length=1)],
        Meta(
            description="A safetensors file in base 64: some weights under their names in the checkpoint. One, for the "
            "one rank that there is. `--max-body-size` bounds it."
        ),
    ]


class UpdateWeightsFromDistributed(UpdateOptions, frozen=True, kw_only=True):
    """Body of ``/update_weights_from_distributed``."""

    names: Annotated[
        Annotated[list[Name], Meta(min_length=1)],
        Meta(description="Names of the weights in the checkpoint, in the order in which the trainer broadcasts them."),
    ]
    dtypes: Annotated[list[str], Meta(description="Type of each: `bfloat16`, `float16`, `float32`.")]
    shapes: Annotated[list[list[Annotated[int, Meta(ge=0, le=2**40)]]], Meta(description="Shape of each.")]
    group_name: GroupName = DEFAULT_GROUP


class BeginWeightUpdate(msgspec.Struct, kw_only=True):
    """Body of ``/begin_weight_update``."""


class EndWeightUpdate(UpdateOptions, frozen=True, kw_only=True):
    """Body of ``/end_weight_update``."""

    discard: Annotated[bool, Meta(description="Forget the weights that have come instead of writing them.")] = False


class DestroyWeightsUpdateGroup(msgspec.Struct, kw_only=True):
    """Body of ``/destroy_weights_update_group``."""

    group_name: GroupName = DEFAULT_GROUP


class UpdateWeightVersion(msgspec.Struct, kw_only=True):
    """Body of ``/update_weight_version``."""

    new_version: Annotated[Version, Meta(description="What the weights are called in answers from now on.")]
    abort_all_requests: Annotated[
        bool, Meta(description="End the requests that are there first, so that no answer has tokens of both names.")
    ] = True


class GetWeightsByName(msgspec.Struct, kw_only=True):
    """Body of ``/get_weights_by_name``."""

    name: Annotated[Name, Meta(description="Name of the weight in the checkpoint.")]
    truncate_size: Annotated[
        Annotated[int, Meta(ge=1, le=2**31 - 1)], Meta(description="Most rows of it, or numbers of a vector.")
    ] = 100


class CheckWeights(msgspec.Struct, kw_only=True):
    """Body of ``/weights_checker``."""

    action: Annotated[
        CheckAction,
        Meta(
            description="`snapshot` notes what all weights are, `reset_tensors` overwrites them with random numbers, "
            "`compare` answers 400 unless they are again what was noted, byte for byte."
        ),
    ]


class PostProcessWeights(msgspec.Struct, kw_only=True):
    """Body of ``/post_process_weights``."""

    post_process_quantization: Annotated[
        bool,
        Meta(
            description="All weights were sent: 400 if some are missing. Packing and quantising them was part of each "
            "update."
        ),
    ] = False


_NO_EFFECT = {
    "torch_empty_cache": "Give unused device memory back: it is set aside at the start.",
}

UPDATE_FROM_DISK = BodySpec(
    UpdateWeightsFromDisk,
    example={"model_path": "/models/step-2", "weight_version": "step-2"},
    is_strict=True,
    no_effect={
        **_NO_EFFECT,
        "keep_pause": "Keep generation paused: it stays so until `/continue_generation` anyway.",
        "recapture_cuda_graph": "Record CUDA graphs anew: those that there are go on working.",
        "token_step": "Which step of the trainer the weights come from.",
    },
    refused=fields_of("disk"),
)
_REFUSED = fields_of("tensors")
UPDATE_FROM_TENSOR = BodySpec(
    UpdateWeightsFromTensor,
    is_strict=True,
    no_effect=_NO_EFFECT,
    refused=_REFUSED,
    example={"serialized_named_tensors": ["AgAAAAAAAAB7fQ=="], "flush_cache": False},
)
UPDATE_FROM_DISTRIBUTED = BodySpec(
    UpdateWeightsFromDistributed,
    is_strict=True,
    no_effect=_NO_EFFECT,
    refused=_REFUSED,
    example={
        "names": ["model.norm.weight"],
        "dtypes": ["bfloat16"],
        "shapes": [[256]],
        "weight_version": "step-2",
    },
)
BEGIN_UPDATE = BodySpec(BeginWeightUpdate, is_strict=True, may_be_empty=True)
END_UPDATE = BodySpec(EndWeightUpdate, is_strict=True, may_be_empty=True, example={"weight_version": "step-2"})
INIT_GROUP = BodySpec(
    TrainerGroup,
    is_strict=True,
    example={
        "master_address": "127.0.0.1",
        "master_port": 29500,
        "rank_offset": 1,
        "world_size": 2,
        "backend": "gloo",
    },
)
DESTROY_GROUP = BodySpec(DestroyWeightsUpdateGroup, is_strict=True, example={"group_name": "weight_update_group"})
UPDATE_VERSION = BodySpec(UpdateWeightVersion, is_strict=True, example={"new_version": "step-2"})
CHECK = BodySpec(
    CheckWeights,
    is_strict=True,
    example={"action": "snapshot"},
    refused=fields_of("check"),
)
POST_PROCESS = BodySpec(
    PostProcessWeights,
    is_strict=True,
    may_be_empty=True,
    example={"post_process_quantization": True},
    no_effect={"restore_weights_before_load": "Take weights as checkpoints have them: that is so at any time."},
)
GET_BY_NAME = BodySpec(GetWeightsByName, is_strict=True, example={"name": "model.norm.weight", "truncate_size": 4})


class WeightUpdateAnswer(msgspec.Struct):
    """Outcome of an update of the weights."""

    success: Annotated[bool, Meta(description="The update was made; if not, all is as before.", examples=[True])]
    message: Annotated[str, Meta(description="What was done, or why it was not.")]
    num_paused_requests: Annotated[
        Count, Meta(description="Requests that were paused meanwhile, and go on with the new weights.")
    ]


class WeightVersion(msgspec.Struct):
    """Name of the weights."""

    weight_version: Annotated[str, Meta(description="Name of the weights.", examples=["default"])]


class WeightCheckAnswer(msgspec.Struct):
    """Outcome of a check of the weights."""

    success: Annotated[bool, Meta(description="It was done, and nothing is wrong.", examples=[True])]
    message: Annotated[str, Meta(description="What was done, or what is wrong.", examples=["compare is done"])]


class WeightVersionAnswer(msgspec.Struct):
    """Name of the weights from now on."""

    success: Annotated[bool, Meta(description="The name was changed.", examples=[True])]
    message: Annotated[str, Meta(description="What was done.", examples=["the weights are called step-2"])]
    new_version: Annotated[str, Meta(description="Name of the weights.", examples=["step-2"])]


class WeightHandlers(Handlers):
    """Answers the routes about weights."""

    def __init__(self, manager: TokenizerManager, core: ChatCore) -> None:
        super().__init__(manager, core)
        self._weights = manager.weights
        self._takes_tensors = False

    @Route("POST /update_weights_from_disk", NATIVE, UPDATE_FROM_DISK, WeightUpdateAnswer, access=Access.CONTROL)
    async def update_from_disk(self, call: Call) -> Response:
        """Serve another checkpoint of the same model."""
        body = await call.parse(UPDATE_FROM_DISK)
        return _told(await self._weights.update_from_disk(body.model_path, body.load_format, body))

    @Route("POST /update_weights_from_tensor", NATIVE, UPDATE_FROM_TENSOR, WeightUpdateAnswer, access=Access.CONTROL)
    async def update_from_tensor(self, call: Call) -> Response:
        """Take some weights from the request."""
        body = await call.parse(UPDATE_FROM_TENSOR)
        if self._takes_tensors:
            raise Overloaded("the tensors of another request have not been taken yet")
        self._takes_tensors = True
        # The file has to be there until it was read, even if the caller leaves.
        return _told(await asyncio.shield(asyncio.ensure_future(self._take_tensors(body))))

    async def _take_tensors(self, body: UpdateWeightsFromTensor) -> UpdateOutcome:
        """Take weights from base 64, which is let go as soon as it is in a file."""
        texts = body.serialized_named_tensors
        try:
            with passing_file(len(texts[0]) * 3 // 4) as path:
                await asyncio.to_thread(_write_decoded, texts, path)
                return await self._weights.update_from_file(path, body)
        finally:
            self._takes_tensors = False

    @Route(
        "POST /update_weights_from_distributed",
        NATIVE,
        UPDATE_FROM_DISTRIBUTED,
        WeightUpdateAnswer,
        access=Access.CONTROL,
    )
    async def update_from_distributed(self, call: Call) -> Response:
        """Take some weights that a trainer broadcasts."""
        body = await call.parse(UPDATE_FROM_DISTRIBUTED)
        group = body.group_name
        return _told(await self._weights.update_from_group(body.names, body.dtypes, body.shapes, group, body))

    @Route("POST /begin_weight_update", NATIVE, BEGIN_UPDATE, WeightUpdateAnswer, access=Access.CONTROL)
    async def begin_update(self, call: Call) -> Response:
        """Have the weights that come from now on wait, so that they are written at the same time.

        Requests go on with the old ones. 400 where there is no memory for a second copy.
        """
        await call.parse(BEGIN_UPDATE)
        return _told(await self._weights.begin_update())

    @Route("POST /end_weight_update", NATIVE, END_UPDATE, WeightUpdateAnswer, access=Access.CONTROL)
    async def end_update(self, call: Call) -> Response:
        """Write all weights that have come since `/begin_weight_update`, or none of them."""
        body = await call.parse(END_UPDATE)
        return _told(await self._weights.end_update(body, discard=body.discard))

    @Route("POST /init_weights_update_group", NATIVE, INIT_GROUP, WeightUpdateAnswer, access=Access.CONTROL)
    async def init_group(self, call: Call) -> Response:
        """Become part of a group in which a trainer sends weights."""
        return _told(await self._weights.join_group(await call.parse(INIT_GROUP)))

    @Route("POST /destroy_weights_update_group", NATIVE, DESTROY_GROUP, WeightUpdateAnswer, access=Access.CONTROL)
    async def destroy_group(self, call: Call) -> Response:
        """Leave such a group."""
        body = await call.parse(DESTROY_GROUP)
        return _told(await self._weights.leave_group(body.group_name))

    @Route("POST /update_weight_version", NATIVE, UPDATE_VERSION, WeightVersionAnswer, access=Access.CONTROL)
    async def update_version(self, call: Call) -> Response:
        """Call the weights by another name."""
        body = await call.parse(UPDATE_VERSION)
        await self._weights.set_version(body.new_version, abort_all_requests=body.abort_all_requests)
        done = WeightVersionAnswer(True, f"the weights are called {body.new_version}", body.new_version)
        return Response(msgspec.json.encode(done))

    @Route("GET /weight_version /get_weight_version", NATIVE, answer=WeightVersion)
    async def version(self, call: Call) -> Response:
        """Name of the weights, as answers tell it."""
        return Response(msgspec.json.encode(WeightVersion(self._weights.version)))

    @Route("POST /weights_checker", NATIVE, CHECK, WeightCheckAnswer, access=Access.CONTROL)
    async def check(self, call: Call) -> Response:
        """Check, in three calls, that updates reach every weight."""
        body = await call.parse(CHECK)
        return _checked(await self._weights.check(body.action))

    @Route("POST /post_process_weights", NATIVE, POST_PROCESS, WeightCheckAnswer, access=Access.CONTROL)
    async def post_process(self, call: Call) -> Response:
        """Say that updates may come, or that all have come: each of them packs and quantises what it brings."""
        body, memory = await call.parse(POST_PROCESS), self._manager.memory
        if "weights" in memory.asleep:
            return _checked(UpdateOutcome.failed(BadRequest("the weights are asleep; wake them first", code="asleep")))
        if not body.post_process_quantization:
            return _checked(UpdateOutcome("weights may be sent"))
        if memory.num_missing:
            return _checked(UpdateOutcome.failed(BadRequest(f"{memory.num_missing} weights were not sent")))
        return _checked(UpdateOutcome("all weights are there, as they are used"))

    @Route("GET,POST /get_weights_by_name", NATIVE, GET_BY_NAME, Any, access=Access.CONTROL)
    async def get_by_name(self, call: Call) -> Response:
        """The first rows of a weight, as the model has it."""
        body = await call.parse(GET_BY_NAME)
        return Response(msgspec.json.encode(await self._weights.rows(body.name, body.truncate_size)))


def _told(outcome: UpdateOutcome) -> Response:
    """What became of an update; of one that failed also as what all routes say of an error."""
    return _rendered(WeightUpdateAnswer(outcome.success, outcome.message, outcome.num_paused_requests), outcome)


def _checked(outcome: UpdateOutcome) -> Response:
    """Render the outcome of a check."""
    return _rendered(WeightCheckAnswer(outcome.success, outcome.message), outcome)


def _rendered(told: WeightUpdateAnswer | WeightCheckAnswer, outcome: UpdateOutcome) -> Response:
    body = msgspec.json.encode(told)
    if outcome.error is None:
        return Response(body)
    # The status that trainers know for whatever went wrong, as SGLang has it.
    error = BadRequest(outcome.message, param=outcome.error.param, code=outcome.error.code)
    return Response(body[:-1] + b"," + NATIVE.errors.body(error)[1:], error.status_code)


def _write_decoded(texts: list[str], path: str) -> None:
    """Write what a base 64 text stands for to a file, in pieces, between which other threads have their turn."""
    text = texts.pop()
    try:
        with Path(path).open("wb") as file:
            for start in range(0, len(text), _PIECE_CHARS):
                file.write(base64.b64decode(text[start : start + _PIECE_CHARS], validate=True))
    except OSError as error:
        raise RequestFailed(f"the weights could not be handed over: {error}") from error
    except (binascii.Error, ValueError) as error:
        param = "serialized_named_tensors[0]"
        raise BadRequest(f"{param} must be base 64 of a safetensors file: {error}", param=param) from None
