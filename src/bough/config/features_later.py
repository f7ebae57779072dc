"""Flags of SGLang, vLLM and llama.cpp's server that belong to what does not work yet."""

from __future__ import annotations

from fnmatch import fnmatchcase

_FEATURES = {
    "speculative decoding": (
        *("speculative-*", "decoupled-spec-*", "spec-trace-dir", "uno-lora-path", "enable-multi-layer-eagle"),
    ),
    "LoRA": ("*-lora", "*-lora-*", "lora-*", "*-loras", "*-loras-*"),
    "mixtures of experts": (
        *("moe-*", "*-moe-*", "*megamoe*", "*-shared-experts-*", "shared-experts-tp-size", "*paged-experts*", "kt-*"),
        *("dwdp-size", "enable-waterfill", "flashinfer-a2a-dispatch-type", "enable-return-routed-experts"),
    ),
    "expert parallelism": (
        *("ep", "ep-*", "expert-*", "deepep-*", "fuseep-mode", "*eplb*", "init-expert-location", "max-ep-size"),
        *("elastic-ep-*", "enable-elastic-expert-backup", "mooncake-ib-device"),
    ),
    "disaggregation": (
        *("disaggregation-*", "num-reserved-decode-tokens", "enable-pd-role-switch", "*pdmux*", "sm-group-num"),
        *("optimistic-prefill-attempts", "encoder-*", "language-only", "enable-adaptive-dispatch-to-encoder"),
    ),
    "images, sound and video": (
        *("*-multimodal", "mm-*", "*-mm-*", "asr-*", "*-media-*", "media-*", "*image-processor*"),
        *("language-model-only", "enable-precise-embedding-interpolation"),
    ),
    "context parallelism": (
        *("dcp-*", "cp-strategy", "*-context-parallel-size", "attn-cp-size", "*-cp-*", "enable-prefill-cp"),
        *("enable-kv-cache-sharding", "enable-dsa-cache-layer-split"),
    ),
    "data parallelism": (
        *("dp", "dp-size", "data-parallel-size", "attn-dp-size", "attention-data-parallel-size"),
        *("load-balance-method", "enable-dp-*", "*prefill-delayer*"),
    ),
    "pipeline parallelism": ("pp", "pp-*", "pipeline-parallel-size", "enable-dynamic-chunking"),
    "tensor parallelism": (
        *("tp", "tp-size", "tensor-parallel-size", "*-attn-tp*", "enable-layernorm-sp", "enable-tp-lm-head-all-to-all"),
    ),
    "several machines": (
        *("nnodes", "node-rank", "dist-init-addr", "nccl-init-addr", "dist-timeout", "gated-launch-port", "use-ray"),
    ),
    "several devices": (
        *("base-gpu-id", "gpu-id-step", "numa-node", "nccl-port", "pre-warm-nccl", "*nccl-nvls", "*symm-mem"),
        *("*mscclpp", "*allreduce-fusion*", "*quant-communications", "boundary-reduction", "enable-p2p-check"),
        "enable-scattered-sconv",
    ),
    "a cache in host memory": (
        *("enable-hierarchical-cache", "*hicache*", "*hisparse*", "hierarchical-sparse-*", "*lmcache*", "*flexkv*"),
        *("*unified-cache-external-linker*", "enable-linker-mla-dedup"),
    ),
    "giving memory back while nothing runs": ("enable-memory-saver", "*weights-cpu-backup"),
    "weights in the host's memory": ("cpu-offload-gb", "offload-*", "ple-offload-*"),
    "models of other families": (
        *("dsa-*", "dsv4-*", "*dsa-*", "qsa-*", "mamba-*", "*-mamba-*", "int8-mamba-*", "linear-attn-*"),
        *("*linear-replayssm*", "swa-*", "*-swa-*", "c128-page-size", "*fp4-indexer", "*indexer-topk"),
        *("flashinfer-mla-*", "disable-chunked-prefix-cache", "dllm-*"),
    ),
    "a choice of sampling kernels": ("sampling-backend", "mlx-enable-sampling"),
    "a choice of kernels": (
        *("*-gemm-runner-backend", "bf16-gemm-backend", "*autotune*", "triton-attention-*", "*qk-norm-rope"),
        *("*-lean-attention", "*megakernel", "*monokernel*", "prefill-kv-cache-dequant-dtype"),
    ),
    "a choice of batch sizes for CUDA graphs": (
        *("cuda-graph-bs", "cuda-graph-bs-*", "cuda-graph-config", "cuda-graph-max-seq-len-prefill"),
        *("cuda-graph-prefill-max-context", "context-bucket", "disable-cuda-graph-padding"),
    ),
    "a choice of how CUDA graphs are made": (
        *("cuda-graph-backend-*", "debug-cuda-graph", "enable-profile-cuda-graph", "enable-cudagraph-gc"),
    ),
    "two batches at once": ("enable-two-batch-overlap", "enable-single-batch-overlap", "tbo-*"),
    "a choice of arithmetic": ("enable-fp32-lm-head", "enable-tf32-matmul", "rl-on-policy-target"),
    "quantising with ModelOpt": ("modelopt-*", "quantize-and-serve"),
    "scales in a file of their own": ("quantization-param-path", "rl-quant-profile"),
    "other ways to load a model": (
        *("model-loader-extra-config", "weight-loader-*", "remote-instance-*", "engine-info-*", "modelexpress-config"),
        *("weight-cache-*", "custom-weight-loader", "startup-weight-load-mode", "decrypted-*", "model-config-parser"),
        *("model-impl", "model-checksum", "delete-ckpt-after-loading", "download-dir"),
    ),
    "new weights in a running server": ("checkpoint-engine-*",),
    "gRPC": ("*grpc*", "smg-*", "sidecar", "sidecar-args"),
    "HTTP/2": ("*http2*",),
    "several processes that tokenize": (
        *("tokenizer-worker-num", "detokenizer-worker-num", "enable-http-worker-reuseport"),
    ),
    "a choice of how texts are tokenized": (
        *("*batch-tokenizer*", "*tokenizer-batch-*", "tokenizer-mode", "tokenizer-backend", "batch-notify-size"),
    ),
    "a path before the routes": ("fastapi-root-path",),
    "reading certificates anew": ("enable-ssl-refresh",),
    "requests of one's own at the start": ("warmups",),
    "files on the server": ("file-storage-path",),
    "tools that a server runs": ("tool-server",),
    "templates sent by clients": ("trust-request-chat-template",),
    "templates for gaps to fill": ("completion-template",),
    "defaults for chat_template_kwargs": ("default-chat-template-kwargs",),
    "cutting prompts that are too long": ("allow-auto-truncate",),
    "token ids in every answer": ("return-input-ids", "return-output-ids"),
    "usage in every stream": ("stream-response-default-include-usage",),
    "a bound on spaces in JSON": ("constrained-json-max-whitespace-cnt",),
    "code sent by clients": ("enable-custom-logit-processor",),
    "watermarking": ("*watermark*",),
    "hidden states of the model": ("*hidden-state*",),
    "which tokens could have been sampled": ("sampling-mask-max-tokens",),
    "several items in one prompt": ("enable-mis",),
    "a choice of who waits": (
        *("prefill-decode-interval*", "prefill-max-requests", "*-priority-preemption", "priority-scheduling-*"),
        *("default-priority-value", "abort-on-priority-when-disabled", "schedule-low-priority-values-first"),
        *("retraction-policy", "min-free-slots-delay", "scheduler-recv-interval", "sleep-on-idle", "gc-threshold"),
    ),
    "a choice of what the cache holds": (
        *("radix-eviction-policy-config", "radix-cache-backend", "enable-session-radix-cache", "strip-thinking-cache"),
        *("prefill-only-disable-kv-cache", "enable-page-major-kv-layout", "enable-unified-memory"),
    ),
    "a choice of metrics": (
        *("bucket-*", "*-tokens-buckets", "extra-metric-labels", "tokenizer-metrics-*", "stat-loggers"),
        *("enable-mfu-metrics", "*forward-pass-metrics*", "export-metrics-to-file*"),
    ),
    "a choice of what is logged": (
        *("log-requests-target", "uvicorn-access-log-*", "show-time-cost", "enable-request-time-stats-logging"),
        "gc-warning-threshold-secs",
    ),
    "a choice of what is traced": ("trace-modules",),
    "telling others of load and cache": ("kv-events-config", "load-publish-endpoint", "load-snapshot-*"),
    "looking into a forward pass": ("debug-tensor-*", "forward-hooks", "msprobe-*", "kv-canary*", "*nvtx*"),
    "handlers of one's own": ("custom-sigquit-handler",),
}
"""What flags are about: their names, without dashes in front, or patterns of them. The first that fits counts."""


def feature_of(name: str) -> str | None:
    """What a flag (``"tp-size"``) is about that does not work yet; ``None`` if nobody is known to have it."""
    for feature, patterns in _FEATURES.items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return feature
    return None
