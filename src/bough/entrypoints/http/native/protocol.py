"""The body of ``/generate``."""

from __future__ import annotations

from bough.entrypoints.http.fields import BodySpec, Refused
from bough.managers.io_struct import GenerateReqInput
from bough.sampling.sampling_params import (
    MAX_LOGIT_BIAS_ENTRIES,
    MAX_PARALLEL_SAMPLES,
    MAX_STOP_REGEX_BYTES,
    MAX_STOP_STRING_CHARS,
    MAX_STOP_STRINGS,
    MAX_STOP_TOKEN_IDS,
)

SAMPLING_PARAMS: dict[str, tuple[str, str]] = {
    "max_new_tokens": ("integer, at least 0, or null: until the context is full", "Most tokens to generate."),
    "min_new_tokens": ("integer, 0 to `max_new_tokens`", "The output does not end by itself before."),
    "stop": (
        f"string or array of at most {MAX_STOP_STRINGS} strings of 1 to {MAX_STOP_STRING_CHARS} characters",
        "Strings that end the output; they are not part of it.",
    ),
    "stop_token_ids": (f"array of at most {MAX_STOP_TOKEN_IDS} token ids", "Tokens that end the output."),
    "stop_regex": (
        f"string or array of at most {MAX_STOP_STRINGS} patterns of 1 to {MAX_STOP_REGEX_BYTES} bytes",
        "Regular expressions (RE2 syntax) that end the output when they match.",
    ),
    "temperature": ("number, 0 to 10000", "0 takes the likeliest token always."),
    "top_p": ("number, more than 0, at most 1", "Keep the likeliest tokens that have this probability together."),
    "top_k": ("integer, at least 1, or -1: all", "Keep so many of the likeliest tokens."),
    "min_p": ("number, 0 to 1", "Drop tokens less likely than this times the likeliest."),
    "frequency_penalty": ("number, -2 to 2", "Subtracted from a token's logit for each time that it is in the output."),
    "presence_penalty": ("number, -2 to 2", "Subtracted from a token's logit once it is in the output."),
    "repetition_penalty": (
        "number, more than 0, at most 2",
        "Divides positive, multiplies negative logits of tokens seen.",
    ),
    "n": (f"integer, 1 to {MAX_PARALLEL_SAMPLES}", "Outputs per prompt."),
    "ignore_eos": ("boolean", "Go on after an end-of-sequence token."),
    "skip_special_tokens": ("boolean", "Leave special tokens out of the text."),
    "spaces_between_special_tokens": ("boolean", "For the few tokenizers that can leave these spaces out."),
    "no_stop_trim": ("boolean", "Keep what ended the output in the text."),
    "logit_bias": (
        f"object of at most {MAX_LOGIT_BIAS_ENTRIES} entries, token id to a number from -100 to 100",
        "Added to the logits of these tokens.",
    ),
    "sampling_seed": ("integer of 64 bits", "Makes the output reproducible, whatever else is being computed."),
    "stream_interval": ("integer, at least 1", "Tokens per streamed event, instead of the server's setting."),
}
"""Range and meaning of each field of ``sampling_params``; null in any of them means its default."""

_MEDIA = "images, video and audio"
_DISAGGREGATION = "separate servers for prefill and decode"
_DATA_PARALLEL = "data parallelism"

TOKEN_IDS_SCHEMA = {"type": "array", "items": {"type": "integer", "minimum": 0}}

GENERATE = BodySpec(
    GenerateReqInput,
    aliases={"top_logprobs": "top_logprobs_num"},
    token_ids=frozenset({"input_ids"}),
    schemas={"input_ids": {"anyOf": [TOKEN_IDS_SCHEMA, {"type": "array", "items": TOKEN_IDS_SCHEMA}]}},
    no_effect={
        "no_logs": "Keep the request out of the log.",
        "session_id": "Name of a conversation, for the caller's own use.",
        "conversation_id": "Name of a conversation, for the caller's own use.",
        "routing_key": "Name for a routing policy that this server does not have.",
        "custom_labels": "Labels for metrics.",
        "external_trace_header": "Trace that the request belongs to.",
        "received_time": "When a gateway received the request.",
    },
    refused={
        "input_embeds": Refused("prompts as embeddings"),
        **{
            name: Refused(_MEDIA, ([],))
            for name in ("image_data", "video_data", "audio_data", "mm_hashes", "mm_content_hashes", "modalities")
        },
        **{
            name: Refused(_MEDIA, ({},))
            for name in (
                *("video_config", "images_config", "mm_processor_kwargs"),
                *("max_dynamic_patch", "min_dynamic_patch", "image_max_dynamic_patch", "video_max_dynamic_patch"),
            )
        },
        "use_audio_in_video": Refused(_MEDIA, (False,)),
        "watermark": Refused("watermarking"),
        "return_flat_raw_top_logprobs": Refused("logprobs as flat arrays", (False,)),
        "return_flat_raw_output_top_logprobs": Refused("logprobs as flat arrays", (False,)),
        "return_flat_raw_top_logprobs_b64": Refused("logprobs as flat arrays", (False,)),
        "return_sampling_mask": Refused("which tokens could have been sampled", (False,)),
        "sampling_logprobs_mode": Refused("which tokens could have been sampled", ("selected",)),
        "return_entropy": Refused("entropy of the distributions", (False,)),
        "return_hidden_states": Refused("hidden states of the model", (False, [])),
        "return_routed_experts": Refused("experts chosen by the router", (False,)),
        "routed_experts_start_len": Refused("experts chosen by the router", (0,)),
        "return_indexer_topk": Refused("choices of a sparse attention", (False,)),
        "return_bytes": Refused("answers as bytes", (False,)),
        "background": Refused("going on after the client has left", (False,)),
        "lora_path": Refused("LoRA adapters", ([],)),
        "custom_logit_processor": Refused("code sent by clients", ([],)),
        "kv_hints": Refused("hints about the KV cache", ([],)),
        "require_reasoning": Refused("grammars that wait for the end of reasoning", (False,)),
        "max_thinking_tokens": Refused("a bound on reasoning"),
        **{
            name: Refused(_DISAGGREGATION)
            for name in (
                *("bootstrap_host", "bootstrap_port", "bootstrap_room", "bootstrap_pair_key"),
                *("decode_tp_size", "disagg_prefill_dp_rank"),
            )
        },
        "routed_dp_rank": Refused(_DATA_PARALLEL, (0,)),
        "data_parallel_rank": Refused(_DATA_PARALLEL, (0,)),
    },
)
