"""Routes of other servers that this one does not have: the error names what each is for."""

from __future__ import annotations

from bough.entrypoints.http.asgi import Call, Response
from bough.errors import NotFound

_WEIGHTS = "updating the weights of a running server"
_LORA = "LoRA adapters"
_MEMORY = "giving memory back while idle"
_EXPERTS = "recording which experts are used"
_STORAGE = "a storage tier of the prefix cache"
_CORPUS = "speculation from a corpus"
_OLLAMA_MODELS = "other models than the one that the server was started with"
_ELASTIC = "changing the number of ranks"

LATER: dict[str, str] = {
    "/api/copy": _OLLAMA_MODELS,
    "/api/create": _OLLAMA_MODELS,
    "/api/delete": _OLLAMA_MODELS,
    "/api/pull": _OLLAMA_MODELS,
    "/api/push": _OLLAMA_MODELS,
    "/v1/audio/speech": "audio",
    "/v1/audio/transcriptions": "audio",
    "/v1/audio/translations": "audio",
    "/v1/batches": "batch files",
    "/v1/conversations": "conversations by name; use previous_response_id of /v1/responses",
    "/v1/files": "batch files",
    "/v1/fine_tuning/jobs": "training",
    "/v1/images/edits": "making images",
    "/v1/images/generations": "making images",
    "/v1/load_lora_adapter": _LORA,
    "/v1/messages/batches": "batch files",
    "/v1/moderations": "moderation",
    "/v1/responses/compact": "shortening conversations; `truncation` does so",
    "/v1/responses/input_tokens": "counting tokens of a response; use /v1/tokenize or /v1/messages/count_tokens",
    "/v1/systemone": "another form of /v1/decisions",
    "/v1/unload_lora_adapter": _LORA,
    "/update_weights_from_ipc": _WEIGHTS,
    "/begin_weight_update": _WEIGHTS,
    "/end_weight_update": _WEIGHTS,
    "/weights_checker": "reading weights of a running server",
    "/init_weights_send_group_for_remote_instance": _WEIGHTS,
    "/send_weights_to_remote_instance": _WEIGHTS,
    "/remote_instance_transfer_engine_info": _WEIGHTS,
    "/load_lora_adapter": _LORA,
    "/load_lora_adapter_from_tensors": _LORA,
    "/unload_lora_adapter": _LORA,
    "/release_memory_occupation": _MEMORY,
    "/resume_memory_occupation": _MEMORY,
    "/sleep": _MEMORY,
    "/wake_up": _MEMORY,
    "/is_sleeping": _MEMORY,
    "/slow_down": "slowing down for tests",
    "/set_trace_level": "tracing",
    "/freeze_gc": "tuning of the garbage collector",
    "/configure_logging": "other logging while running; what is logged is said at the start",
    "/set_internal_state": "other options while running",
    "/start_expert_distribution_record": _EXPERTS,
    "/stop_expert_distribution_record": _EXPERTS,
    "/dump_expert_distribution_record": _EXPERTS,
    "/pd_role_switch": "separate servers for prefill and decode",
    "/hicache/storage-backend": _STORAGE,
    "/hicache/storage-backend/clear": _STORAGE,
    "/get_hicache_l3_cache_layout": _STORAGE,
    "/add_external_corpus": _CORPUS,
    "/remove_external_corpus": _CORPUS,
    "/list_external_corpora": _CORPUS,
    "/scale_elastic_ep": _ELASTIC,
    "/is_scaling_elastic_ep": _ELASTIC,
    "/pooling": "vLLM's form of vectors; use /encode",
    "/embed": "another form of vectors; use /v1/embeddings",
    "/vertex_generate": "Vertex AI's form of requests; use /generate",
}
"""What each would be for, by path, whatever the method."""

METHODS = ("GET", "POST", "PUT", "DELETE")


async def not_supported(call: Call) -> Response:
    """Refuses a call of :data:`LATER`.

    Raises:
        NotFound: always. A status of 500 and above would have OpenAI's clients try again.
    """
    raise NotFound(f"{call.path} is not supported ({LATER[call.path]})", code="not_supported")
