"""Fields that the bodies of several routes have in common, each with its range and meaning once."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from bough.managers.io_struct import QueueFields
from bough.other_engines import Unsupported
from bough.sampling.sampling_params import (
    MAX_STOP_STRING_CHARS,
    MAX_STOP_STRINGS,
    RANGES,
)

MAX_MODEL_NAME_CHARS = 1024
"""Of what a client calls the model: answers repeat it, some of them once per choice."""

ModelName = Annotated[str, Meta(max_length=MAX_MODEL_NAME_CHARS)]
StopString = Annotated[str, Meta(min_length=1, max_length=MAX_STOP_STRING_CHARS)]

Temperature = Annotated[
    Annotated[float, RANGES["temperature"].meta] | None,
    Meta(description="0 takes the likeliest token always. Default: the model's own, else 1."),
]
TopP = Annotated[
    Annotated[float, RANGES["top_p"].meta] | None,
    Meta(
        description="Keep the likeliest tokens that together have this probability; 0 keeps one. Default: the "
        "model's, else 1."
    ),
]
TopK = Annotated[
    Annotated[int, RANGES["top_k"].meta] | None,
    Meta(description="Keep so many of the likeliest tokens; -1 or 0: all. Default: the model's own, else -1."),
]
MinP = Annotated[
    Annotated[float, RANGES["min_p"].meta] | None,
    Meta(description="Drop tokens less likely than this times the likeliest. Default: the model's own, else 0."),
]
FrequencyPenalty = Annotated[
    Annotated[float, RANGES["frequency_penalty"].meta] | None,
    Meta(description="Subtracted from a token's logit for each time that it is in the output."),
]
PresencePenalty = Annotated[
    Annotated[float, RANGES["presence_penalty"].meta] | None,
    Meta(description="Subtracted from a token's logit once it is in the output."),
]
RepetitionPenalty = Annotated[
    Annotated[float, RANGES["repetition_penalty"].meta] | None,
    Meta(
        description="Divides positive, multiplies negative logits of tokens of prompt and output. Default: the "
        "model's, else 1."
    ),
]
StopStrings = Annotated[
    StopString | Annotated[list[StopString], Meta(max_length=MAX_STOP_STRINGS)] | None,
    Meta(description="Strings that end the output; they are not part of it."),
]

WithObfuscation = Annotated[
    bool | None, Meta(description="Whether events are padded, so that nobody can tell their lengths; not yet.")
]


def check_obfuscation(asked: bool | None) -> None:
    """Refuse a stream whose events are to be padded.

    Raises:
        BadRequest: if it was asked for.
    """
    if asked:
        raise Unsupported().error("stream_options.include_obfuscation")


class SamplingFields(QueueFields, kw_only=True):
    """How tokens are chosen, in OpenAI's and SGLang's words."""

    temperature: Temperature = None
    top_p: TopP = None
    top_k: TopK = None
    min_p: MinP = None
    frequency_penalty: FrequencyPenalty = None
    presence_penalty: PresencePenalty = None
    repetition_penalty: RepetitionPenalty = None
    repetition_window: Annotated[
        Annotated[int, RANGES["repetition_window"].meta] | None,
        Meta(description="Tokens at the end of prompt and output that `repetition_penalty` counts. Default: -1, all."),
    ] = None
    thinking_token_budget: Annotated[
        Annotated[int, RANGES["thinking_token_budget"].meta] | None,
        Meta(
            description="Most tokens of the model's thoughts: they are ended then, and the answer follows; 0 for none. "
            "Needs a model of which it is known how it marks them. Default: any number."
        ),
    ] = None
    seed: Annotated[
        Annotated[int, RANGES["sampling_seed"].meta] | None,
        Meta(description="Makes the answer reproducible, whatever else is being computed."),
    ] = None
    stop: StopStrings = None
