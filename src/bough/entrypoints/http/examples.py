"""An example of each request and of each answer, for the description of the API.

Tests hold them against the schemas, and send the requests to a server.
"""

from __future__ import annotations

from typing import Any

_ASSISTANT = {"role": "assistant", "content": "The oak is a tree."}
_MESSAGES = [{"role": "user", "content": "Tell me about the oak."}]
_TEXT = " deciduous: it loses its leaves in autumn."
_ID = "e95e21146e0e4e6ebcc69289fb7a986e"
_CREATED = 1795289226
_VECTOR = [0.0368, -0.0233, 0.0683]
_PARAMETERS = {"type": "object", "properties": {"kind": {"enum": ["oak", "elm"]}}, "required": ["kind"]}
_TOOL = {
    "type": "function",
    "function": {"name": "count_trees", "description": "Counts the trees of a kind.", "parameters": _PARAMETERS},
}
_USAGE = {
    "prompt_tokens": 16,
    "total_tokens": 40,
    "completion_tokens": 24,
    "reasoning_tokens": 0,
    "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": None,
}
_VECTOR_USAGE = {"prompt_tokens": 9, "total_tokens": 9}
_ENDING: dict[str, Any] = {"logprobs": None, "finish_reason": "stop", "matched_stop": None, "stop_reason": None}
_META = {
    "id": _ID,
    "finish_reason": {"type": "length", "length": 8},
    "prompt_tokens": 3,
    "completion_tokens": 8,
    "cached_tokens": 0,
    "reasoning_tokens": 0,
    "weight_version": "default",
    "num_retractions": 0,
    "e2e_latency": 0.021,
}
_RESPONSE_ID = f"resp_{_ID}"
_INPUT_TEXT = {"type": "input_text", "text": "Tell me about the oak."}
_OUTPUT_TEXT = {"type": "output_text", "text": "The oak is a tree.", "annotations": []}
_MODEL_CARD = {
    "id": "sapling",
    "object": "model",
    "created": _CREATED,
    "owned_by": "bough",
    "root": "sapling",
    "parent": None,
    "max_model_len": 4096,
}
_OLLAMA_DETAILS = {"format": "safetensors", "family": "qwen3", "families": ["qwen3"], "quantization_level": "float32"}

REQUESTS: dict[str, Any] = {
    "ChatCompletionRequest": {"model": "sapling", "messages": _MESSAGES, "max_tokens": 24, "temperature": 0},
    "CompletionRequest": {"model": "sapling", "prompt": "The oak is", "max_tokens": 8, "stop": ["\n"]},
    "GenerateReqInput": {"text": "The oak is", "sampling_params": {"max_new_tokens": 8, "temperature": 0}},
    "ResponsesRequest": {"model": "sapling", "input": "Tell me about the oak.", "max_output_tokens": 24},
    "MessagesRequest": {"model": "sapling", "messages": _MESSAGES, "max_tokens": 24, "system": "You know trees."},
    "CountTokensRequest": {"model": "sapling", "messages": _MESSAGES},
    "OllamaChatRequest": {"model": "sapling", "messages": _MESSAGES, "options": {"num_predict": 24}},
    "OllamaGenerateRequest": {"model": "sapling", "prompt": "Tell me about the oak.", "options": {"num_predict": 24}},
    "OllamaEmbedRequest": {"model": "minilm", "input": ["The oak is a large tree.", "A big tree: the oak."]},
    "OllamaEmbeddingsRequest": {"model": "minilm", "prompt": "The oak is a large tree."},
    "OllamaShowRequest": {"model": "sapling"},
    "EmbeddingsBody": {"model": "minilm", "input": ["The oak is a large tree.", "A big tree: the oak."]},
    "ClassifyBody": {"model": "classifier", "input": ["The oak is a large tree."]},
    "RerankBody": {"model": "reranker", "query": "large trees", "documents": ["The oak.", "The cowberry."]},
    "ScoreBody": {"model": "sapling", "query": "Is the oak a tree?", "items": [" Yes"], "label_token_ids": [2454, 797]},
    "DecisionsBody": {
        "model": "sapling",
        "input": "The oak grows tall and loses its leaves in autumn.",
        "questions": [
            {"id": "green", "type": "yes_no", "question": "Is it evergreen?"},
            {"id": "height", "type": "score", "question": "How tall is it?", "levels": ["low", "as a house", "taller"]},
        ],
    },
    "EmbeddingReqInput": {"text": "The oak is a large tree."},
    "TokenizeRequest": {"prompt": "The oak"},
    "DetokenizeRequest": {"tokens": [325, 951]},
    "OpenSessionRequest": {"capacity_of_str_len": 1000},
    "CloseSessionRequest": {"session_id": _ID},
    "ParseFunctionCallRequest": {
        "text": '<tool_call>{"name": "count_trees", "arguments": {"kind": "oak"}}</tool_call>',
        "tools": [_TOOL],
        "tool_call_parser": "hermes",
    },
    "SeparateReasoningRequest": {"text": "<think>Is it one?</think>Yes.", "reasoning_parser": "qwen3"},
    "AbortRequest": {"rid": _ID},
    "PauseRequest": {"mode": "in_place"},
    "UpdateWeightsFromDisk": {"model_path": "/models/step-2", "weight_version": "step-2"},
    "UpdateWeightsFromTensor": {"serialized_named_tensors": ["AgAAAAAAAAB7fQ=="], "flush_cache": False},
    "InitWeightsUpdateGroup": {
        "master_address": "127.0.0.1",
        "master_port": 29500,
        "rank_offset": 1,
        "world_size": 2,
        "backend": "gloo",
    },
    "UpdateWeightsFromDistributed": {
        "names": ["model.norm.weight"],
        "dtypes": ["bfloat16"],
        "shapes": [[256]],
        "weight_version": "step-2",
    },
    "DestroyWeightsUpdateGroup": {"group_name": "weight_update_group"},
    "UpdateWeightVersion": {"new_version": "step-2"},
    "GetWeightsByName": {"name": "model.norm.weight", "truncate_size": 4},
    "ContinueRequest": {},
    "StartProfileRequest": {"num_steps": 100, "activities": []},
}
"""By the name of the body."""

ANSWERS: dict[str, Any] = {
    "ChatAnswer": {
        "id": _ID,
        "object": "chat.completion",
        "created": _CREATED,
        "model": "sapling",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "The oak is a tree.", "refusal": None}, **_ENDING}
        ],
        "usage": _USAGE,
    },
    "CompletionAnswer": {
        "id": _ID,
        "object": "text_completion",
        "created": _CREATED,
        "model": "sapling",
        "choices": [{"index": 0, "text": _TEXT, **_ENDING}],
        "usage": _USAGE,
    },
    "GenerateAnswer": {"text": _TEXT, "output_ids": [457, 28, 325, 797, 417, 343, 305, 422], "meta_info": _META},
    "WeightUpdateAnswer": {
        "success": True,
        "message": "the weights are those of /models/step-2",
        "num_paused_requests": 0,
    },
    "WeightVersionAnswer": {
        "success": True,
        "message": "the weights are called step-2",
        "new_version": "step-2",
    },
    "ModelCard": _MODEL_CARD,
    "ModelList": {"object": "list", "data": [_MODEL_CARD]},
    "ModelInfo": {
        "model_path": "/models/sapling",
        "served_model_name": "sapling",
        "tokenizer_path": "/models/sapling",
        "is_generation": True,
        "weight_version": "default",
        "load_format": "auto",
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
    },
    "ServerInfo": {
        "launch_command": "bough serve --port 8000",
        "internal_states": [{"idle": True}],
        "version": "0.1.0",
        "frontend": "python",
    },
    "ResponseAnswer": {
        "id": _RESPONSE_ID,
        "object": "response",
        "created_at": _CREATED,
        "status": "completed",
        "model": "sapling",
        "output": [{"type": "message", "role": "assistant", "content": [_OUTPUT_TEXT]}],
        "usage": {"input_tokens": 16, "output_tokens": 24, "total_tokens": 40},
        "error": None,
        "incomplete_details": None,
    },
    "DeletedAnswer": {"id": _RESPONSE_ID, "object": "response", "deleted": True},
    "ItemsAnswer": {
        "object": "list",
        "data": [{"id": "msg_1", "type": "message", "role": "user", "content": [_INPUT_TEXT]}],
        "first_id": "msg_1",
        "last_id": "msg_1",
        "has_more": False,
    },
    "AnthropicMessage": {
        "id": f"msg_{_ID}",
        "type": "message",
        "role": "assistant",
        "model": "sapling",
        "content": [{"type": "text", "text": "The oak is a tree."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 16, "output_tokens": 24},
    },
    "TokenCountAnswer": {"input_tokens": 16},
    "OllamaAnswer": {
        "model": "sapling",
        "created_at": "2026-11-21T19:27:07.872801Z",
        "message": _ASSISTANT,
        "done": True,
        "done_reason": "stop",
        "total_duration": 24000000,
        "prompt_eval_count": 16,
        "eval_count": 24,
    },
    "OllamaEmbedAnswer": {
        "model": "minilm",
        "embeddings": [_VECTOR, _VECTOR],
        "load_duration": 0,
        "total_duration": 4000000,
        "prompt_eval_count": 18,
    },
    "OllamaEmbeddingsAnswer": {"embedding": _VECTOR},
    "OllamaModels": {"models": [{"name": "sapling", "model": "sapling", "details": _OLLAMA_DETAILS}]},
    "OllamaModel": {
        "details": _OLLAMA_DETAILS,
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 4096},
        "capabilities": ["completion", "tools"],
        "template": "{% for message in messages %}{{ message.content }}{% endfor %}",
        "parameters": "temperature 0.7\ntop_p 0.9",
    },
    "VersionAnswer": {"version": "0.1.0"},
    "EmbeddingsAnswer": {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": _VECTOR}],
        "model": "minilm",
        "usage": _VECTOR_USAGE,
    },
    "ClassifyAnswer": {
        "id": f"classify-{_ID}",
        "object": "list",
        "created": _CREATED,
        "model": "classifier",
        "data": [{"index": 0, "label": "tree", "probs": [0.9, 0.1], "num_classes": 2}],
        "usage": _VECTOR_USAGE,
    },
    "RankedDocument": [{"score": 0.93, "index": 0, "meta_info": {"prompt_tokens": 9}, "document": "The oak."}],
    "RerankAnswer": {
        "id": f"rerank-{_ID}",
        "model": "reranker",
        "usage": _VECTOR_USAGE,
        "results": [{"index": 0, "relevance_score": 0.93, "document": {"text": "The oak."}}],
    },
    "ScoreAnswer": {"object": "scoring", "model": "sapling", "scores": [[0.75, 0.25]], "usage": _VECTOR_USAGE},
    "DecisionsAnswer": {
        "object": "decisions",
        "model": "sapling",
        "prompt_format_version": 1,
        "answers": {
            "green": {"type": "yes_no", "label_mass": 0.9, "probabilities": {"yes": 0.1, "no": 0.9}},
            "height": {"type": "score", "label_mass": 0.8, "probabilities": [0.0, 0.25, 0.75], "score": 1.75},
        },
        "usage": _VECTOR_USAGE,
    },
    "EncodeAnswer": {"embedding": _VECTOR, "meta_info": {"id": _ID, "prompt_tokens": 9}},
    "TokenizeAnswer": {"tokens": [325, 951], "count": 2, "max_model_len": 4096},
    "DetokenizeAnswer": {"text": "The oak"},
    "LoadsAnswer": {
        "timestamp": "2026-11-21T19:27:08.037429+00:00",
        "version": "0.1.0",
        "accelerator": "cpu",
        "num_accelerators": 1,
        "loads": [{"dp_rank": 0, "num_running_reqs": 3, "num_waiting_reqs": 0, "token_usage": 0.2}],
    },
    "FunctionCallsAnswer": {
        "normal_text": "",
        "calls": [{"tool_index": 0, "name": "count_trees", "parameters": '{"kind": "oak"}'}],
    },
    "SeparateReasoningAnswer": {"reasoning_text": "Is it one?", "text": "Yes."},
    "DoneAnswer": {"message": "generation goes on", "status": "ok"},
}
"""By the name of the answer, or of what a list of them holds."""
