"""Names that other engines have for what Bough calls otherwise, does anyway, or does not support.

They are names of flags and keywords, of routes, and of fields in bodies. A feature that comes deletes its rows here.
``docs/coming-from.md`` is made from these tables.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from bough.errors import BadRequest

FLAG_FEATURES = {
    "LoRA adapters": "lora loras",
    "speculative decoding": "speculative spec eagle",
    "other ways of expert parallelism": "moe expert experts eplb ep deepep",
    "pipeline or context parallelism": "pp cp dcp dwdp parallel mscclpp nccl p2p allreduce",
    "several machines without Ray": "nnodes node rank dist",
    "separate servers for prefill and decode": "disaggregation encoder pd",
    "images, video and audio": "multimodal mm media image images asr",
    "a cache in host memory": "hierarchical hicache hisparse lmcache flexkv",
    "weights in host memory": "offload backup saver",
    "models of other families": "mamba dsa dsv4 qsa swa dllm mla",
    "gRPC and HTTP/2": "grpc smg http2",
    "code from checkpoints, which is never run": "trust remote",
    "compiling kernels, which come compiled": "torch compile",
}
"""Features, and words that stand in names of flags about them."""

_ONE = (
    *("pp", "pipeline-parallel"),
    *("attn-dp", "attention-data-parallel", "attn-cp", "attention-context-parallel", "moe-dp", "moe-data-parallel"),
    *("dcp", "decode-context-parallel", "dwdp"),
)
AS_IT_IS: dict[str, tuple[int | str, ...]] = {
    **{f"{name}{end}": (1,) for name in _ONE for end in ("", "-size")},
    **dict.fromkeys(("nnodes", "gpu-id-step", "tokenizer-worker-num", "detokenizer-worker-num"), (1,)),
    **dict.fromkeys(("node-rank", "base-gpu-id", "cpu-offload-gb", "ep-num-redundant-experts"), (0,)),
    **dict.fromkeys(("disaggregation-mode", "decoupled-spec-role"), ("null",)),
    **dict.fromkeys(("tokenizer-mode", "moe-runner-backend", "model-config-parser"), ("auto",)),
    "moe-a2a-backend": ("none",),
    "tokenizer-backend": ("huggingface",),
}
"""Flags that Bough does not have, and the values with which they ask for what is so anyway."""

ALWAYS_ON = frozenset(
    {
        *("enable-metrics", "enable-metrics-for-all-schedulers", "enable-mixed-chunk", "enable-cache-report"),
        *("enable-response-store", "enable-streaming-session", "allow-unknown-fields"),
        *("enable-auto-tool-choice", "enable-prefix-caching", "enable-chunked-prefill", "disable-log-requests"),
        *("enable-memory-saver", "enable-sleep-mode"),
        *("jinja", "cont-batching", "metrics", "flash-attn", "fa"),
    }
)
"""Switches for what is so here."""

NEVER_THERE = frozenset(
    {
        *("language-model-only", "disable-custom-all-reduce", "disable-shared-experts-fusion"),
        *("disable-chunked-prefix-cache", "disable-hybrid-swa-memory", "disable-fast-image-processor"),
        *("disable-outlines-disk-cache", "enforce-disable-flashinfer-allreduce-fusion"),
    }
)
"""Switches that turn off what is not there, so that neither on nor off they ask for anything."""

_UNLESS: dict[str, tuple[str, int | bool]] = {
    "enable-response-store": ("max-stored-responses", 0),
    "enable-streaming-session": ("max-sessions", 0),
    "enable-prefix-caching": ("disable-radix-cache", True),
    "enable-chunked-prefill": ("chunked-prefill-size", -1),
    "disable-log-requests": ("log-requests", True),
    "allow-unknown-fields": ("strict-fields", True),
}
"""Switches of :data:`ALWAYS_ON` that a flag of ours may contradict, and the value with which it does."""

FLAGS_HERE = {
    "max-model-len": "context-length",
    **dict.fromkeys(("ctx-size", "max-seq-len", "n-ctx"), "context-length"),
    **dict.fromkeys(("n-gpu-layers", "gpu-layers", "ngl"), "device"),
    **dict.fromkeys(("hf-repo", "hf", "hfr"), "model-path"),
    **dict.fromkeys(("cache-type-k", "cache-type-v", "ctk", "ctv"), "kv-cache-dtype"),
    **dict.fromkeys(("hf-overrides", "rope-scaling"), "json-model-override-args"),
    "alias": "served-model-name",
    "batch-size": "max-prefill-tokens",
    "ubatch-size": "chunked-prefill-size",
    "block-size": "page-size",
    **dict.fromkeys(("chat-template-file", "hf-chat-template-name"), "chat-template"),
    "embeddings": "is-embedding",
    "generation-config": "sampling-defaults",
    **dict.fromkeys(("override-generation-config", "temp"), "preferred-sampling-params"),
    "reasoning-format": "reasoning-parser",
    "enable-weights-cpu-backup": "sleep-directory",
    "seed": "random-seed",
    **dict.fromkeys(("uvicorn-log-level", "log-level-http"), "log-level"),
    "gpu-memory-utilization": "mem-fraction-static",
    **dict.fromkeys(("max-num-seqs", "parallel", "np"), "max-running-requests"),
    **dict.fromkeys(("threads", "t"), "cpu-threads"),
    **dict.fromkeys(("enforce-eager", "disable-decode-cuda-graph"), "disable-cuda-graph"),
    "max-num-batched-tokens": "max-prefill-tokens",
    "enable-expert-parallel": "ep-size",
    "cuda-graph-max-bs-decode": "cuda-graph-max-bs",
    **dict.fromkeys(("prefill-attention-backend", "decode-attention-backend"), "attention-backend"),
    "enable-trace": "otlp-traces-endpoint",
    "log-requests-format": "log-format",
}
"""Flags of vLLM, SGLang and llama.cpp's server, and which of ours comes nearest; what a value means may differ."""

_VALUES_HERE = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "fp8_e4m3",
    "warn": "warning",
    "trace": "debug",
    **dict.fromkeys(("xgrammar", "outlines", "guidance"), "llguidance"),
    **dict.fromkeys(("awq", "gptq", "awq_marlin", "gptq_marlin", "compressed-tensors"), "none"),
}
"""Values of options, and which of ours comes nearest."""

SAME_VALUES = {
    "dtype": {"half": "float16", "float": "float32"},
    "model-impl": {"sglang": "bough", "vllm": "bough"},
}
"""Other words for values, which mean the same in SGLang and vLLM."""

ROUTES = {
    path: feature
    for feature, paths in {
        "updating the weights of a running server": (
            "/update_weights_from_ipc "
            "/init_weights_send_group_for_remote_instance /send_weights_to_remote_instance "
            "/remote_instance_transfer_engine_info"
        ),
        "pulling deltas of weights; use /update_weights_from_disk": "/pull_weights",
        "LoRA adapters": (
            "/v1/load_lora_adapter /v1/unload_lora_adapter /load_lora_adapter /load_lora_adapter_from_tensors "
            "/unload_lora_adapter"
        ),
        "recording which experts are used": (
            "/start_expert_distribution_record /stop_expert_distribution_record /dump_expert_distribution_record"
        ),
        "a storage tier of the prefix cache": (
            "/hicache/storage-backend /hicache/storage-backend/clear /get_hicache_l3_cache_layout"
        ),
        "speculation from a corpus": "/add_external_corpus /remove_external_corpus /list_external_corpora",
        "changing the number of ranks": "/scale_elastic_ep /is_scaling_elastic_ep",
        "separate servers for prefill and decode": "/pd_role_switch",
        "other models than the one that the server was started with": (
            "/api/copy /api/create /api/delete /api/pull /api/push"
        ),
        "audio": "/v1/audio/speech /v1/audio/transcriptions /v1/audio/translations",
        "making images": "/v1/images/edits /v1/images/generations",
        "batch files; use bough generate --input-file": "/v1/batches /v1/files /v1/messages/batches",
        "training": "/v1/fine_tuning/jobs",
        "moderation": "/v1/moderations",
        "conversations by name; use previous_response_id of /v1/responses": "/v1/conversations",
        "shortening conversations; `truncation` does so": "/v1/responses/compact",
        "counting tokens of a response; use /v1/tokenize or /v1/messages/count_tokens": "/v1/responses/input_tokens",
        "another form of /v1/decisions": "/v1/systemone",
        "vLLM's form of vectors; use /encode": "/pooling",
        "another form of vectors; use /v1/embeddings": "/embed",
        "Vertex AI's form of requests; use /generate": "/vertex_generate",
        "other options while running": "/set_internal_state /configure_logging /set_trace_level /freeze_gc /slow_down",
    }.items()
    for path in paths.split()
}
"""Features, by the paths of the routes that belong to them, whatever the method."""


_TYPO = 0.92
"""Likeness from which a name is taken for a mistyped one (see ``difflib``)."""


class Unsupported(NamedTuple):
    """A field that would change the answer, and is refused if it does."""

    neutral: tuple[Any, ...] = ()
    """Values, besides null, that ask for nothing and are therefore accepted."""
    instead: str = ""
    """What to do in its place, if anything."""

    def accepts(self, value: Any) -> bool:
        """Return whether a value asks for nothing."""
        return is_neutral(value, self.neutral)

    def error(self, param: str) -> BadRequest:
        """Return the error for a parameter that asks for something."""
        return BadRequest(not_supported(param, self.instead), param=param, code="unsupported_parameter")


_FIELDS: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("generate encode completions chat responses vectors decisions", ("", []), "lora_path"),
    ("generate completions chat responses", (), "bootstrap_host bootstrap_port bootstrap_room disagg_prefill_dp_rank"),
    ("generate encode completions chat", ([],), "image_data video_data audio_data"),
    ("generate completions chat", (False, []), "return_hidden_states"),
    ("completions chat", (False,), "return_routed_experts"),
    ("completions chat", (0,), "routed_experts_start_len"),
    ("generate completions chat", ("", []), "custom_logit_processor"),
    ("generate completions chat", ({},), "images_config mm_processor_kwargs"),
    ("generate completions chat", (), "watermark"),
    ("generate encode", ([],), "modalities"),
    ("generate encode", (False,), "background"),
    ("generate encode", (), "input_embeds"),
    ("generate chat", ({},), "video_config max_dynamic_patch min_dynamic_patch"),
    ("generate chat", (False,), "use_audio_in_video return_sampling_mask return_flat_raw_output_top_logprobs"),
    ("generate chat", ("selected",), "sampling_logprobs_mode"),
    ("generate", ({},), "image_max_dynamic_patch video_max_dynamic_patch"),
    ("generate", ([],), "mm_hashes mm_content_hashes kv_hints"),
    ("generate", (False,), "return_flat_raw_top_logprobs return_flat_raw_top_logprobs_b64 return_entropy return_bytes"),
    ("generate", (False,), "return_indexer_topk require_reasoning"),
    ("generate", (), "max_thinking_tokens bootstrap_pair_key decode_tp_size"),
    ("encode", ([],), "token_indices_to_pool multi_item_delimiter_indices"),
    ("encode", (), "decision_layout"),
    ("encode score", (False,), "return_pooled_hidden_states"),
    ("encode embeddings score", ([],), "embed_override_token_id embed_overrides"),
    ("embeddings score", ([],), "query_embed_overrides item_embed_overrides"),
    ("embeddings classify", (True,), "add_special_tokens"),
    ("classify", (True,), "use_activation"),
    ("score", (False,), "return_token_logprobs"),
    ("score", (), "score_extraction_token"),
    ("completions chat", (False,), "use_beam_search early_stopping return_spec_tokens_details"),
    ("completions chat", ({},), "vllm_xargs kv_transfer_params"),
    ("completions chat", ("", []), "lora"),
    ("completions chat", (1.0, 1), "length_penalty"),
    ("completions chat", (), "guided_whitespace_pattern"),
    ("completions chat sampling_params", ({},), "custom_params"),
    ("completions chat decisions ollama", ([],), "images"),
    ("chat", (False,), "add_special_tokens return_input_ids_in_sglext return_output_ids_in_sglext"),
    ("chat", (True, False), "return_flat_raw_top_logprobs_b64"),
    ("chat", ([],), "functions"),
    ("chat", ("none", "auto"), "function_call"),
    ("chat", (["text"],), "modalities"),
    ("chat", (1,), "best_of"),
    ("chat", (), "audio web_search_options task"),
    ("chat tokenize", (), "chat_template"),
    ("sampling_params", (1,), "beam_width"),
    ("sampling_params", (False,), "watermark"),
    ("responses", (), "conversation prompt moderation"),
    ("messages", (), "prefill"),
    ("ollama", ("",), "template"),
    ("ollama", ([],), "context"),
    ("ollama", (0,), "width height steps"),
    ("tensors", ("all", "target"), "selector"),
    ("tensors", (), "load_format"),
    ("check", ("all", "target"), "selector"),
    ("check", (False,), "allow_quant_error"),
    ("check", ([],), "skip_tensor_list"),
    ("disk", (False,), "is_async"),
    ("disk", (), "manifest"),
    ("profile", (False,), "profile_by_stage merge_profiles detailed_annotations"),
    ("profile", ([],), "profile_stages"),
    ("profile", (), "start_step"),
)
"""Bodies, values that ask for nothing, besides null, and names of fields that are refused with any other value."""

_INSTEAD = {
    "max_thinking_tokens": "use sampling_params.thinking_token_budget",
    "conversation": "use previous_response_id",
    "functions": "use tools",
    "function_call": "use tool_choice",
    "decision_layout": "use /v1/decisions",
    "return_input_ids_in_sglext": "use return_prompt_token_ids",
    "return_output_ids_in_sglext": "use return_token_ids",
    "return_routed_experts": "use /generate",
    "use_activation": "use /classify or /v1/score, which give scores as the model has them",
    "prefill": "end messages with one of the assistant's",
    "context": "use /api/chat",
}
"""What to use in place of a field."""


def fields_of(*bodies: str) -> dict[str, Unsupported]:
    """Return the fields that are refused in a body, by name; ``bodies`` are what it and its group are called in the
    table."""
    return {
        name: Unsupported(neutral, _INSTEAD.get(name, ""))
        for where, neutral, names in _FIELDS
        if not set(bodies).isdisjoint(where.split())
        for name in names.split()
    }


def not_supported(name: str, about: str = "") -> str:
    """Return the words of every refusal of what another engine has and Bough has not."""
    return f"{name} is not supported" + (f" ({about})" if about else "")


def is_neutral(value: Any, neutral: Iterable[Any]) -> bool:
    """Return whether a value is one of those that ask for nothing; ``False`` is not 0."""
    return any(isinstance(value, bool) is isinstance(each, bool) and value == each for each in neutral)


def names_here(name: str) -> tuple[str, ...]:
    """Return what comes nearest to a flag or value of another engine, in all spellings.

    That is ``("--context-length", "--context_length")`` for ``"--max-model-len"``, and nothing for an unknown name.
    """
    bare = name.lstrip("-")
    nearest = FLAGS_HERE.get(bare.replace("_", "-")) or _VALUES_HERE.get(bare)
    if nearest is None:
        return ()
    dashes = "--" if name.startswith("-") else ""
    return dashes + nearest, dashes + nearest.replace("-", "_")


def flag_refusal(flag: str) -> str | None:
    """Return the error for a flag (``"--tp"``) or keyword (``"tp_size"``) of another engine; ``None`` if unknown."""
    name = _bare(flag)
    if name in ALWAYS_ON:
        other, value = _UNLESS.get(name, ("", True))
        unless = f" unless --{other}{'' if value is True else f' {value}'} is given" if other else ""
        return f"{flag} takes no value and is always so{unless}; leave it out"
    words = set(name.split("-"))
    about = (feature for feature, its_words in FLAG_FEATURES.items() if not words.isdisjoint(its_words.split()))
    feature = None if name in FLAGS_HERE else next(about, None)
    if feature is None and name in AS_IT_IS:
        feature = f"only {AS_IT_IS[name][0]}, which is so without it"
    return None if feature is None else not_supported(flag, feature)


def without_neutral(words: Sequence[str]) -> list[str]:
    """Return a command line without flags that ask for what is so anyway, such as ``--tp 1``."""
    given = _given(words)
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        name = _bare(flag) if flag.startswith("--") else ""
        if not equals and (name in NEVER_THERE or (name in ALWAYS_ON and not _is_contradicted(name, given))):
            continue
        following = next(rest, None) if name in AS_IT_IS and not equals else None
        if not _is_one_of(value if following is None else following, AS_IT_IS.get(name, ())):
            kept += [word] if following is None else [word, following]
    return kept


def asks_for_nothing(name: str, value: Any, given: Mapping[str, Any], known: Iterable[str]) -> bool:
    """Return whether a keyword (``"tp_size"``) that is no option asks for what is so anyway, among all ``given``.

    ``None`` and ``False`` do, whatever the name, unless that is certainly a mistyped one of those ``known``, with
    dashes.
    """
    bare = _bare(name)
    if bare in NEVER_THERE:
        return value is None or isinstance(value, bool)
    if bare in ALWAYS_ON:
        others = {_bare(each): other for each, other in given.items()}
        return value is None or (value is True and not _is_contradicted(bare, others))
    if bare in AS_IT_IS and value is not None:
        return _is_one_of(value, AS_IT_IS[bare])
    is_off = value is None or value is False
    return is_off and bare not in FLAGS_HERE and not difflib.get_close_matches(bare, known, n=1, cutoff=_TYPO)


def _given(words: Sequence[str]) -> dict[str, str | bool]:
    """Return the flags of a command line with their values, ``True`` where another flag or nothing follows."""
    given: dict[str, str | bool] = {}
    for word, following in zip_longest(words, words[1:], fillvalue="--"):
        flag, equals, value = word.partition("=")
        if flag.startswith("--"):
            given[_bare(flag)] = value if equals else following.startswith("--") or following
    return given


def _is_contradicted(name: str, given: Mapping[str, Any]) -> bool:
    """Return whether a flag that is given turns off what a switch of :data:`ALWAYS_ON` turns on."""
    other, value = _UNLESS.get(name, ("", None))
    if value is True:  # a switch, behind which the path of the model may stand
        return given.get(other, False) not in (False, None)
    return value is not None and _is_one_of(given.get(other), (value,))


def _is_one_of(value: Any, wanted: tuple[int | str, ...]) -> bool:
    """Return whether a value, which on command lines is text, is one of those that are wanted."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return False  # True is 1, and no number of ranks
    try:
        return value in wanted or float(value) in wanted
    except ValueError:
        return False


def _bare(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")
