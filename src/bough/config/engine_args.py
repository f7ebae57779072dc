"""The options of what computes: model, memory, order of requests, device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bough.config import rules
from bough.config.options import OptionTable, option
from bough.config.sharding import LARGEST_WORLD
from bough.errors import ConfigError

LoadFormat = Literal["auto", "safetensors", "gguf", "dummy", "sharded_state", "packed", "tensorizer"]
DType = Literal["auto", "float32", "bfloat16", "float16"]
KVCacheDType = Literal["auto", "bf16", "bfloat16", "int8", "fp8_e4m3", "fp8_e5m2"]
Quantization = Literal["none", "int8", "int4", "fp8"]
Device = Literal["auto", "cpu", "cuda"]
AttentionBackendName = Literal["triton", "flashinfer", "torch_native"]
SchedulePolicy = Literal["lpm", "fcfs", "dfs-weight", "lof", "random", "priority"]
EvictionPolicy = Literal["lru", "lfu", "fifo", "mru", "priority"]
LoadBalanceMethod = Literal["auto", "round_robin", "total_requests", "shortest_queue", "total_tokens", "cache_aware"]
ExecutorBackend = Literal["mp", "uni", "ray"]
PoolingChoice = Literal["auto", "cls", "mean", "max", "last"]
ModelImpl = Literal["auto", "bough", "transformers"]

BUNDLED_MODEL_NAME = "sapling"

MAX_STEPS_IN_A_ROW = 32
"""Most decode steps that native kernels run in one call: Python between the steps costs a thirtieth then."""

model_option = partial(option, group="Model")
memory_option = partial(option, group="Memory and scheduling")
device_option = partial(option, group="Device")


def bundled_model_path() -> Path:
    """Directory of the small chat model that is part of this package."""
    return Path(__file__).resolve().parent.parent / "assets" / BUNDLED_MODEL_NAME


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineArgs(OptionTable):
    """The part of :class:`~bough.config.server_args.ServerArgs` that a scheduler and a model need."""

    model_path: str = model_option(
        str(bundled_model_path()),
        help="Directory in Hugging Face format, GGUF file, or id of a model on the hub; OWNER/NAME/FILE.gguf is a GGUF "
        f"file there. `{BUNDLED_MODEL_NAME}` is the model that comes with Bough.",
        metavar="PATH",
        default_text="the model that comes with Bough",
        aliases=("model",),
        short="m",
        basic=True,
    )
    tokenizer_path: str | None = model_option(
        None,
        help="Where the tokenizer is, if not with the model.",
        metavar="PATH",
        default_text="the model's",
    )
    revision: str | None = model_option(
        None,
        help="Branch, tag or commit of a model on the hub.",
        metavar="NAME",
        default_text="the main branch",
    )
    load_format: LoadFormat = model_option(
        "auto",
        help="How weights are read. `auto` reads a packed state, safetensors, or else the directory's GGUF file; "
        "`dummy` makes random weights from config.json alone. `packed` is what `bough pack` writes, `sharded_state` "
        "what `Engine.save_sharded_state` does, with files of each rank, `tensorizer` the format of CoreWeave's "
        "package (`pip install 'bough-llm[tensorizer]'`).",
    )
    dtype: DType = model_option(
        "auto",
        help="Type of weights and activations; `half` is `float16`, and `float` is `float32`. `auto` takes the "
        "checkpoint's type; on a CPU, half precision becomes bfloat16, but float32 for encoders, and where there are "
        "neither native kernels with AVX2 or newer nor instructions for bfloat16.",
        basic=True,
    )
    model_impl: ModelImpl = model_option(
        "auto",
        help="Code that computes the model. `bough`: Bough's own families alone. `transformers`: the package "
        "transformers computes decoder-only models, those of Bough's families as well, with Bough's scheduler, KV "
        "cache and sampler; it computes with torch, which is slower. `auto`: Bough's own where there is one, else "
        "transformers if it is installed (`pip install 'bough-llm[transformers]'`).",
    )
    quantization: Quantization = model_option(
        "none",
        help="What weights become while they are loaded; `none`: they stay what the checkpoint has. `int8` takes half "
        "the memory of bfloat16, `int4` half of that. On a CPU with native kernels both are faster, most with "
        "AVX512-VNNI: every 32 weights and activations share a scale, the head and the projections to values keep 8 "
        "bits, and beside weights that come as whole numbers all others become `int8`. On CUDA whole numbers are "
        "multiplied by activations as they are; `fp8` (CUDA alone) multiplies 8-bit floating point (e4m3), with a "
        "scale for each row of weights and of activations. There embeddings and heads stay as they are.",
        basic=True,
    )
    kv_cache_dtype: KVCacheDType = model_option(
        "auto",
        help="How keys and values are held: `auto` as the model computes, `bf16` (or `bfloat16`), or `int8`, with a "
        "scale per token and head, in little more than half the memory of bfloat16, by native CPU kernels; on CUDA "
        "`fp8_e4m3` or `fp8_e5m2`, in half of it, with a scale per layer for keys and for values where the checkpoint "
        "has one (`k_scale`, `v_scale`). What the model does not compute in needs such kernels.",
        basic=True,
    )
    context_length: int | None = model_option(
        None,
        help="Longest sequence, prompt and output together.",
        unit="tokens",
        default_text="from the model's config.json",
        minimum=1,
        scaled=True,
        short="c",
        basic=True,
    )
    is_embedding: bool = model_option(
        False,
        help="Make embeddings with a language model instead of text. Encoders, classifiers and checkpoints with a "
        "sentence-transformers pipeline need no telling.",
    )
    pooling_method: PoolingChoice = model_option(
        "auto",
        help="How an embedding model makes one vector of a sequence: the state of the first token, the mean or the "
        "maximum of all, the state of the last token. `auto`: as the checkpoint says, else cls for encoders and last "
        "for language models.",
    )
    json_model_override_args: dict[str, Any] | None = model_option(
        None,
        help='Entries that replace those of the model\'s config.json, like {"is_matryoshka": true}.',
    )
    skip_tokenizer_init: bool = model_option(
        False, help="Load no tokenizer: requests give token ids and get token ids."
    )
    worker_extension_cls: str | None = model_option(
        None,
        help="The operator's class, by its dotted name, that is mixed into the worker of each rank, so that its "
        "methods can be called there (`Engine.collective_rpc`), as vLLM does it. It sees `device`, `rank`, "
        "`model_config.dtype` and `model_runner.model.load_weights`. Its code runs in the engine's processes.",
        metavar="CLASS",
        default_text="none",
        rule=rules.dotted_name,
    )
    worker_cls: str | None = model_option(
        None,
        help="The operator's class, by its dotted name, that is the worker of each rank: a subclass of "
        "`vllm.worker.worker.Worker` of the package `bough-vllm`, the older way to the same.",
        metavar="CLASS",
        default_text="Bough's own",
        rule=rules.dotted_name,
    )

    sleep_directory: str | None = memory_option(
        None,
        help="Where weights that a trainer has sent are written while the engine sleeps, so that their memory can be "
        "given back, too; they are removed when it wakes. Without it, `/sleep` of level 1 leaves them in memory.",
        metavar="PATH",
        default_text="such weights stay in memory",
    )
    mem_fraction_static: float | None = memory_option(
        None,
        help="Share of the memory left beside the weights and what computing takes that goes to the KV cache.",
        default_text="0.9 on CUDA; 0.4 on a CPU, but at most twice the weights or 256 MiB, whichever is more",
        rule=rules.fraction,
        basic=True,
    )
    max_running_requests: int | None = memory_option(
        None,
        help="Most requests that are computed at the same time.",
        unit="requests",
        default_text="256 on CUDA; on a CPU what a decode step of 150 ms can compute, 8 to 256; fewer if the KV cache "
        "is small",
        minimum=1,
        basic=True,
    )
    max_queued_requests: int | None = memory_option(
        None,
        help="Most outputs that wait, those not counted that the next step can start; further requests are answered "
        "with 503.",
        unit="requests",
        default_text="no limit",
        minimum=0,
    )
    queue_timeout: float | None = memory_option(
        None,
        help="How long a request may wait for its first step; then it is answered with 503.",
        unit="seconds",
        default_text="no limit",
        rule=rules.positive,
    )
    request_timeout: float | None = memory_option(
        None,
        help="How long a request may take in all; a `timeout` of its own may be shorter. Then it ends with what there "
        "is, or with 504 if there is nothing.",
        unit="seconds",
        default_text="no limit",
        rule=rules.positive,
    )
    max_queued_bytes: int = memory_option(
        128 * 2**20,
        help="Most bytes of prompts that wait to be computed: text, token ids at 4 bytes each, and 1 KiB at least for "
        "every output; and what their parameters (a schema, lists of tokens) take in the scheduler, for each prompt "
        "anew. Further requests are answered with 503; a single one is always taken, unless the parameters of its "
        "outputs alone are more (413).",
        unit="bytes",
        minimum=1024,
        scaled=True,
    )
    max_total_tokens: int | None = memory_option(
        None,
        help="Capacity of the KV cache. With it, weights that seem to have no room are loaded all the same, with a "
        "warning: some systems have more memory than they say is available (ZFS, shared graphics memory).",
        unit="tokens",
        default_text="what fits into memory",
        minimum=1,
        scaled=True,
    )
    chunked_prefill_size: int | None = memory_option(
        None,
        help="Most prompt tokens in one step, in place of a budget in time; -1 computes prompts whole.",
        unit="tokens",
        default_text="what keeps a step within its time budget",
        rule=rules.chunk_size,
    )
    max_prefill_tokens: int = memory_option(
        16384,
        help="Most prompt tokens in one step, whatever the budget in time allows.",
        unit="tokens",
        minimum=1,
        scaled=True,
    )
    schedule_policy: SchedulePolicy = memory_option(
        "lpm",
        help="Order of waiting requests: longest cached prefix first, first come first served, heaviest branch of "
        "the prefix tree first, longest output first, random, highest priority first.",
    )
    enable_priority_scheduling: bool = memory_option(
        False,
        help="Heed the `priority` of requests: higher ones start first, whatever the policy. The policy `priority` "
        "implies it.",
    )
    schedule_conservativeness: float = memory_option(
        1.0,
        help="Scale of the memory set aside for tokens that running requests have yet to generate. More: fewer "
        "requests at a time, fewer interrupted for lack of memory.",
        minimum=0.0,
    )
    page_size: int | None = memory_option(
        None,
        help="Tokens per page of the KV cache, a power of two. Prefixes are shared in whole pages.",
        unit="tokens",
        default_text="16",
        minimum=1,
        maximum=1024,
        rule=rules.power_of_two,
    )
    disable_radix_cache: bool = memory_option(
        False, help="Compute every prompt in full: no prefixes are kept or shared."
    )
    radix_eviction_policy: EvictionPolicy = memory_option(
        "lru",
        help="Which cached prefixes go first when memory is needed: least recently used, least frequently used, "
        "oldest, most recently used, lowest priority.",
    )
    disable_overlap_schedule: bool | None = memory_option(
        None,
        help="Process the results of a step before launching the next one, instead of while it runs.",
        default_text="on for a CPU, where it makes no difference; else off",
    )

    num_continuous_decode_steps: int | None = memory_option(
        None,
        help="Most decode steps that native CPU kernels run before the scheduler makes another plan, while no prompt "
        "waits and nothing arrives. Streams are told of each token in between. At most "
        f"{MAX_STEPS_IN_A_ROW}.",
        unit="steps",
        default_text=f"{MAX_STEPS_IN_A_ROW}, within 0.2 s, on a CPU; elsewhere 1",
        minimum=1,
        maximum=MAX_STEPS_IN_A_ROW,
    )

    device: Device = device_option(
        "auto",
        help="Where the model runs. `auto`: CUDA if there is one, else CPU.",
        basic=True,
    )
    attention_backend: AttentionBackendName | None = device_option(
        None,
        help="What computes attention on CUDA: `triton` kernels; `flashinfer`, where that package is installed, "
        "without recorded decode steps; or `torch_native`, plain torch operations, which is slow and for comparisons.",
        default_text="`triton` on CUDA where Triton is installed; on a CPU native kernels",
    )
    disable_cuda_graph: bool = device_option(
        False, help="Launch the kernels of all steps one by one instead of replaying recorded steps."
    )
    cuda_graph_max_bs: int | None = device_option(
        None,
        help="Decode steps of up to so many requests are recorded at start-up, on CUDA, with Triton's attention.",
        unit="requests",
        default_text="256, or as many as run at a time",
        minimum=1,
        maximum=4096,
    )
    disable_prefill_cuda_graph: bool = device_option(
        False, help="Launch the kernels of prompts one by one instead of replaying recorded ones."
    )
    cuda_graph_max_bs_prefill: int | None = device_option(
        None,
        help="Prompts, or pieces of them, of up to so many tokens in a step are recorded at start-up, where decode "
        "steps are.",
        unit="tokens",
        default_text="1024",
        minimum=1,
        maximum=16384,
    )
    cpu_threads: int | None = device_option(
        None,
        help="Threads for computing on the CPU.",
        unit="threads",
        default_text="one per core that this process may use; one for models of less than 16 million parameters, "
        "embeddings aside",
        minimum=1,
        maximum=1024,
        basic=True,
    )
    bind_threads: bool = device_option(
        False,
        help="Threads of the native CPU kernels stay on cores of their own, which no other server gets that has this "
        "flag, too, and the same network (containers). Needs more cores than threads: the default of --cpu-threads is "
        "then one less.",
    )
    dp_size: int = device_option(
        1,
        help="Replicas of the model (data parallelism). Each has a scheduler, a KV cache and an even share of cores "
        "and memory; on a CPU with native kernels they share the weights. Each request is computed by one.",
        unit="replicas",
        minimum=1,
        maximum=1024,
        aliases=("dp", "data-parallel-size"),
    )
    tp_size: int = device_option(
        1,
        help="Processes that share each layer of the model (tensor parallelism): each has a part of the weights and "
        "of the KV cache, on a device of its own, or on an even share of the cores.",
        unit="processes",
        minimum=1,
        maximum=LARGEST_WORLD,
        aliases=("tp", "tensor-parallel-size"),
    )
    distributed_executor_backend: ExecutorBackend = device_option(
        "mp",
        help="What starts the schedulers. `mp`: this server does, as processes on its machine; `uni` is the same for "
        "one. `ray`: an actor of Ray for each, in a placement group, so that they may be on several machines; it takes "
        "`pip install 'bough-llm[ray]'`.",
    )
    use_ray: bool = device_option(False, help="The same as --distributed-executor-backend ray.")
    ep_size: int = device_option(
        1,
        help="Processes among which the experts of a mixture are divided (expert parallelism): `1`, or as many as "
        "`--tp-size`. With `1` each process has a part of every expert, so that all have the same to do; else each has "
        "some experts whole, so that they meet less often.",
        unit="processes",
        minimum=1,
        maximum=LARGEST_WORLD,
        aliases=("ep", "expert-parallel-size"),
    )
    load_balance_method: LoadBalanceMethod = device_option(
        "auto",
        help="Choice of the replica that computes a request. `cache_aware`: the one that probably holds most of the "
        "prompt in its cache, unless it has far more requests than another. `total_requests` (or `shortest_queue`), "
        "`total_tokens`: the one with the fewest. `round_robin`: one after the other. With each of them, what goes on "
        "from a session or a stored response follows its prefix. `auto` is `cache_aware`.",
    )
    random_seed: int | None = device_option(
        None,
        help="Seed of everything random in the server.",
        default_text="drawn at start; 42 where inference is deterministic",
        minimum=0,
        maximum=2**63 - 1,
    )

    enable_deterministic_inference: bool = device_option(
        False,
        help="The same request gets the same tokens and logprobs, bit for bit, whatever is computed beside it, however "
        "its prompt is cut or cached; requests without a seed get --random-seed. Native CPU kernels do so anyway and "
        "become no slower; on CUDA products and attention are computed in one fixed way, which is slower. What cannot "
        "keep it is refused: computing with torch on a CPU, embedding models.",
    )
    enable_return_routed_experts: bool = device_option(
        False,
        help="Keep, beside the KV cache, which experts have computed each token, so that requests can ask for it "
        "(return_routed_experts): two bytes for each expert of a token in each layer. For mixtures of experts.",
    )

    def check_together(self) -> None:
        """Refuse combinations that cannot work."""
        num_schedulers = self.dp_size * self.tp_size
        if self.distributed_executor_backend == "uni" and num_schedulers > 1:
            raise ConfigError(
                f"--distributed-executor-backend uni is for one scheduler, and there are {num_schedulers}; use mp",
                param="distributed_executor_backend",
            )
        if self.page_size is not None and self.max_total_tokens is not None and self.max_total_tokens < self.page_size:
            raise ConfigError(
                f"--max-total-tokens ({self.max_total_tokens}) must be at least --page-size ({self.page_size})",
                param="max_total_tokens",
            )
