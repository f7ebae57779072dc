"""From what callers of ``Engine.generate`` hand in to a request."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.entrypoints.vector_arguments import plain
from bough.errors import BadRequest
from bough.json_words import kind_of
from bough.managers.io_struct import GenerateReqInput
from bough.sampling.sampling_params import SamplingParams


def generation_request(*, sampling_params: Any, stream: Any, **fields: Any) -> GenerateReqInput:
    """The request that the arguments of ``Engine.generate`` ask for.

    Args:
        sampling_params: one or several.
        stream: the only one that is looked at before the request is on its way.
        fields: others of :class:`~bough.managers.io_struct.GenerateReqInput`; ``None`` is the default of each.

    Raises:
        BadRequest: if ``stream`` is neither true nor false.
    """
    if not isinstance(stream, bool):
        raise BadRequest(f"stream must be true or false, got {kind_of(stream)}", param="stream")
    given = {name: plain(value) for name, value in fields.items() if value is not None}
    return GenerateReqInput(sampling_params=_plain_params(sampling_params), stream=stream, **given)


def _plain_params(value: Any) -> Any:
    if isinstance(value, SamplingParams):
        return msgspec.to_builtins(value)  # only what differs from the defaults
    if isinstance(value, (list, tuple)):
        return [_plain_params(each) for each in value]
    return value
