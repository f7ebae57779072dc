"""Small random encoders and pooled language models, made and saved by transformers, and what it computes with them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer as Backend
from tokenizers import models, normalizers, pre_tokenizers, processors

from bough.config.model_config import ModelConfig
from bough.config.server_args import ServerArgs, resolve
from bough.ipc.messages import OutputDelta, TokenizedEmbeddingReqInput
from bough.model_executor.create_worker import worker_factory
from bough.scheduler.scheduler import Scheduler

VOCAB_SIZE = 120

ENCODER = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 100,
    "pad_token_id": 1,
    "bos_token_id": None,
    "eos_token_id": None,
}
DECODER = {**ENCODER, "num_key_value_heads": 2, "pad_token_id": None, "head_dim": 12, "tie_word_embeddings": False}


@dataclass(frozen=True)
class VectorCheckpoint:
    path: Path
    reference: Any

    @torch.inference_mode()
    def states(self, tokens: Sequence[int], types: Sequence[int] | None = None) -> torch.Tensor:
        """Hidden states, ``[len(tokens), hidden_size]``, of a model without a head."""
        output: torch.Tensor = self._run(tokens, types).last_hidden_state[0].float()
        return output

    @torch.inference_mode()
    def scores(self, tokens: Sequence[int], types: Sequence[int] | None = None) -> torch.Tensor:
        """Class scores, ``[num_labels]``."""
        output: torch.Tensor = self._run(tokens, types).logits[0].float()
        return output

    def _run(self, tokens: Sequence[int], types: Sequence[int] | None) -> Any:
        kinds = {} if types is None else {"token_type_ids": torch.tensor([list(types)])}
        return self.reference(torch.tensor([list(tokens)]), **kinds)


def save_vector_checkpoint(path: Path, architecture: str, *, seed: int = 0, **overrides: Any) -> VectorCheckpoint:
    """A checkpoint of a class of transformers, its weights large enough to matter."""
    torch.manual_seed(seed)
    model_class = getattr(transformers, architecture)
    base = ENCODER if architecture.startswith(("Bert", "Roberta", "XLMRoberta")) else DECODER
    config = model_class.config_class(**{**base, **overrides})
    config._attn_implementation = "eager"
    model = model_class(config).eval()
    randomize(model.named_parameters())
    model.save_pretrained(path)
    return VectorCheckpoint(path, model)


@torch.no_grad()
def randomize(parameters: Iterable[tuple[str, torch.Tensor]]) -> None:
    for name, parameter in parameters:
        if name.lower().endswith("norm.weight"):
            parameter.uniform_(0.5, 1.5)
        elif name.endswith(".bias"):
            parameter.normal_(0.0, 0.3)
        else:
            parameter.normal_(0.0, 1.2 / parameter.shape[-1] ** 0.5)


def save_pipeline(path: Path, mode: str, *, normalize: bool = True) -> None:
    """The files that sentence-transformers adds to a checkpoint."""
    stages = [("", "Transformer"), ("1_Pooling", "Pooling"), *([("2_Normalize", "Normalize")] if normalize else [])]
    modules = [
        {"idx": index, "name": str(index), "path": folder, "type": f"sentence_transformers.models.{kind}"}
        for index, (folder, kind) in enumerate(stages)
    ]
    (path / "modules.json").write_text(json.dumps(modules))
    (path / "1_Pooling").mkdir(exist_ok=True)
    names = ("cls_token", "mean_tokens", "max_tokens", "lasttoken")
    modes = {f"pooling_mode_{name}": name == mode for name in names}
    (path / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 48, **modes}))


def save_reward_checkpoint(path: Path) -> tuple[VectorCheckpoint, torch.nn.Module]:
    """A ``Qwen2ForRewardModel``, of which transformers has the body only; returns its head as well."""
    torch.manual_seed(3)
    body = save_vector_checkpoint(path, "Qwen2Model")
    head = torch.nn.Sequential(torch.nn.Linear(48, 48), torch.nn.ReLU(), torch.nn.Linear(48, 1))
    tensors = {f"model.{name}": tensor.contiguous() for name, tensor in body.reference.state_dict().items()}
    tensors |= {f"score.{name}": tensor.contiguous() for name, tensor in head.state_dict().items()}
    save_file(tensors, path / "model.safetensors")
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "architectures": ["Qwen2ForRewardModel"]}))
    return body, head


def save_wordpiece_tokenizer(path: Path) -> None:
    """A tokenizer in BERT's manner whose ids fit the small models: words ``w0`` … ``w99`` and their letters."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocab = {
        token: index
        for index, token in enumerate([*specials, *(f"w{i}" for i in range(100)), "w", "##1", "##2", "yes", "no"])
    }
    backend = Backend(models.WordPiece(vocab, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.add_special_tokens(specials)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    backend.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"cls_token": "[CLS]", "sep_token": "[SEP]"}))


class VectorScheduler:
    """A real scheduler and a real model, without processes."""

    def __init__(self, path: Path, **options: Any) -> None:
        args = resolve(
            ServerArgs(**{"model_path": str(path), "device": "cpu", "cpu_threads": 1, "random_seed": 0, **options})
        )
        config = ModelConfig.from_args(args)
        self.deltas: dict[str, OutputDelta] = {}
        worker = worker_factory(config)(args, config)
        self.scheduler = Scheduler(args, config, worker, None, send_to_detokenizer=self._take, strict_accounting=True)
        self.num_steps = 0

    def _take(self, deltas: list[OutputDelta]) -> None:
        for delta in deltas:
            assert delta.rid not in self.deltas, "one delta per request"
            self.deltas[delta.rid] = delta

    def submit(self, rid: str, tokens: Sequence[int], types: Sequence[int] | None = None, **fields: Any) -> None:
        message = TokenizedEmbeddingReqInput(
            rid, np.array(tokens, dtype="<i4").tobytes(), None if types is None else bytes(types), **fields
        )
        self.scheduler.arrivals.handle_embedding_request(message)

    def run(self) -> None:
        while self.scheduler.step():
            self.num_steps += 1

    def vectors(self, prompts: Sequence[Sequence[int]], **fields: Any) -> list[np.ndarray]:
        """What becomes of prompts that are handed in together."""
        self.deltas.clear()
        for index, prompt in enumerate(prompts):
            self.submit(str(index), prompt, **fields)
        self.run()
        return [self.vector(str(index)) for index in range(len(prompts))]

    def vector(self, rid: str) -> np.ndarray:
        delta = self.deltas[rid]
        assert delta.embedding is not None, delta.finish_reason
        return np.frombuffer(delta.embedding, dtype="<f4")
