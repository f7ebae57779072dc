"""Calls of whichever ``vllm`` is on the path; prints as JSON what they gave, for comparison.

python -m tests.vllm_names.calls MODEL EMBEDDING_MODEL
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import sys
from typing import Any

PROMPT = list(range(300, 340))
GREEDY: dict[str, Any] = {"temperature": 0.0, "max_tokens": 16, "ignore_eos": True}


class Extension:
    """What a worker offers to an extension."""

    def describe(self) -> list[Any]:
        import torch

        own: Any = self
        distributed = torch.distributed.get_rank(), torch.distributed.get_world_size()
        return [own.rank, str(own.device), str(own.model_config.dtype), list(distributed), own.vocab_size]

    def double(self, value: int, *, more: int = 0) -> int:
        return 2 * value + more


def shape(value: Any) -> Any:
    """Names of the types in a value, for lists and dictionaries those of the first element."""
    if isinstance(value, dict):
        key = next(iter(value), None)
        return {"dict": [type(key).__name__, shape(value[key])]} if value else "dict"
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: shape(value[0])} if value else type(value).__name__
    return type(value).__name__


def told(output: Any) -> dict[str, Any]:
    """Attributes of an output that programs read, with their types."""
    one = output.outputs[0]
    logprobs = [
        sorted((token, round(entry.logprob, 3), entry.decoded_token) for token, entry in each.items())
        for each in one.logprobs or []
    ]
    return {
        "request": {name: shape(getattr(output, name)) for name in ("request_id", "prompt_token_ids", "finished")},
        "output": {name: shape(getattr(one, name)) for name in ("index", "text", "token_ids", "finish_reason")},
        "prompt_token_ids": output.prompt_token_ids,
        "token_ids": one.token_ids,
        "text": one.text,
        "finish_reason": one.finish_reason,
        "stop_reason": one.stop_reason,
        "logprobs": logprobs,
        "logprob_type": [type(entry).__name__ for each in (one.logprobs or [])[:1] for entry in each.values()],
        "prompt_logprobs": [None if each is None else list(each) for each in output.prompt_logprobs or []],
        "num_outputs": len(output.outputs),
        "others": [list(each.token_ids) for each in output.outputs[1:]],
    }


async def drive(model: str) -> dict[str, Any]:
    import vllm
    from vllm.inputs import TokensPrompt
    from vllm.sampling_params import RequestOutputKind
    from vllm.utils import random_uuid

    args = vllm.AsyncEngineArgs(
        model=model,
        enforce_eager=True,
        worker_extension_cls="tests.vllm_names.calls.Extension",
        tensor_parallel_size=1,
        seed=1,
        distributed_executor_backend="uni",
        max_model_len=512,
        enable_prefix_caching=True,
        dtype="float32",
        trust_remote_code=True,
        max_logprobs=5,
    )
    engine = vllm.AsyncLLMEngine.from_engine_args(args)
    prompt = TokensPrompt(prompt_token_ids=PROMPT)
    found: dict[str, Any] = {}

    async def run(name: str, given: Any = prompt, **fields: Any) -> None:
        params = vllm.SamplingParams(**{**GREEDY, **fields})
        last: Any = None
        outputs: dict[int, Any] = {}
        async for last in engine.generate(given, params, request_id=random_uuid()):
            outputs.update({each.index: each for each in last.outputs})
        if params.output_kind is RequestOutputKind.CUMULATIVE:
            # vLLM may yield the samples of a request one by one.
            last.outputs = [outputs[index] for index in sorted(outputs)]
        found[name] = told(last)

    found["uuid"] = shape(random_uuid())
    await run("greedy")
    await run("logprobs", logprobs=1)
    await run("prompt_logprobs", prompt_logprobs=0, max_tokens=2)
    await run("several", n=2, temperature=1.0, top_k=1)
    await run("whole", output_kind=RequestOutputKind.FINAL_ONLY)
    await run("several_whole", n=2, temperature=1.0, top_k=1, output_kind=RequestOutputKind.FINAL_ONLY)
    await run("text", "Once upon a time", max_tokens=8)
    await run("stop", "Once upon a time", max_tokens=100, stop=["e"])
    await run("stop_kept", "Once upon a time", max_tokens=100, stop=["e"], include_stop_str_in_output=True)
    token = found["greedy"]["token_ids"][3]
    await run("stop_token", stop_token_ids=[token])
    await run("forbidden", logit_bias={found["greedy"]["token_ids"][0]: -100.0})
    await run("allowed", allowed_token_ids=[300, 301])
    await run("penalised", repetition_penalty=1.3)
    await run("until_the_end", max_tokens=None)
    parts = [
        list(each.outputs[0].token_ids)
        async for each in engine.generate(
            prompt, vllm.SamplingParams(**GREEDY, output_kind=RequestOutputKind.DELTA), request_id="deltas"
        )
    ]
    found["deltas"] = [token for part in parts for token in part]
    found["until_the_end"] = len(found["until_the_end"]["token_ids"])
    found["unfinished"] = engine.output_processor.get_num_unfinished_requests()
    found["reset"] = await engine.reset_prefix_cache()
    await engine.pause_generation(mode="keep")
    found["paused"] = await engine.is_paused()
    await engine.resume_generation()
    found["resumed"] = await engine.is_paused()
    found["sleeping"] = await engine.is_sleeping()
    found["described"] = await engine.collective_rpc("describe")
    found["doubled"] = await engine.collective_rpc("double", args=(3,), kwargs={"more": 1})
    for name, call in {
        "temperature": lambda: vllm.SamplingParams(temperature=-1.0),
        "unknown": lambda: vllm.SamplingParams(no_such_field=1),
    }.items():
        try:
            await run(name, **{"temperature": -1.0} if name == "temperature" else {})
            call()
            found[name] = None
        except Exception:  # each has errors of its own
            found[name] = "refused"
    params = vllm.SamplingParams(max_tokens=3, logprobs=1)
    params.max_tokens = 5
    same = pickle.loads(pickle.dumps(copy.deepcopy(params)))
    found["params"] = [
        same.max_tokens,
        same.logprobs,
        same.temperature,
        same.top_p,
        same.top_k,
        same.n,
        same.min_tokens,
    ]
    engine.shutdown()
    return found


def vectors(model: str) -> dict[str, Any]:
    """Vectors of an embedding model, in hundredths, and what is made of them."""
    import vllm

    llm = vllm.LLM(model=model, runner="pooling", enforce_eager=True, dtype="float32", max_model_len=128)
    texts = ["The oak is a tree.", "An oak", "Rain falls on the roof of the old house."]
    embedded = llm.embed(texts)
    (encoded,) = llm.encode([{"prompt_token_ids": embedded[1].prompt_token_ids}], pooling_task="embed")
    scored = llm.score(texts[0], texts[1:])
    refused = {}
    for name, call in {
        "classes": lambda: llm.classify(texts),
        "text": lambda: llm.generate(texts),
        "pairs": lambda: llm.score(texts[:2], texts),
        "dimensions": lambda: llm.embed(texts, pooling_params=vllm.PoolingParams(dimensions=8)),
    }.items():
        try:
            call()
        except Exception:  # each has errors of its own
            refused[name] = True
    outputs = (embedded[0], embedded[0].outputs, encoded, encoded.outputs, scored[0])
    return {
        "embeddings": [[100 * number for number in each.outputs.embedding] for each in embedded],
        "hidden_size": embedded[0].outputs.hidden_size,
        "types": [type(each).__name__ for each in outputs],
        "attributes": {
            name: shape(getattr(embedded[0], name))
            for name in ("request_id", "prompt_token_ids", "finished", "num_cached_tokens")
        },
        "prompt_token_ids": [each.prompt_token_ids for each in embedded],
        "ids": len({each.request_id for each in (*embedded, encoded, *scored)}),
        "encoded": [list(encoded.outputs.data.shape), str(encoded.outputs.data.dtype)],
        "scores": [100 * each.outputs.score for each in scored],
        "refused": refused,
    }


if __name__ == "__main__":
    found = {**asyncio.run(drive(sys.argv[1])), "vectors": vectors(sys.argv[2])}
    print("\n" + json.dumps(found))
