"""Train the bundled model: tokenizer and weights, from nothing but the generated text.

Run ``python tools/bundled_model/train.py --out src/bough/assets/sapling``. Seeds, order, number of steps and number of
threads are fixed; the same machine and the same library versions give the same weights again.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from generate_corpus import DEFAULT_DOCUMENTS, DEFAULT_SEED, Document, build_corpus
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

END_OF_TEXT, TURN_START, TURN_END = SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\\n' }}"
    "{%- if message['content'] is string %}"
    "{{- message['content'] }}"
    "{%- else %}"
    "{%- for part in message['content'] %}"
    "{%- if part['type'] == 'text' %}{{- part['text'] }}{%- endif %}"
    "{%- endfor %}"
    "{%- endif %}"
    "{{- '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}"
    "{%- endif %}"
)

# Words with the space before them, single digits, marks, line breaks: digits stay apart so that sums are learnable.
WORD_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

VOCABULARY_SIZE = 4096
MODEL_MAX_LENGTH = 4096
IGNORED = -100
OUTPUT_BLOCK = 512
LOG_INTERVAL = 50


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn."""

    steps: int
    tokens_per_step: int = 2048
    widths: tuple[int, ...] = (32, 48, 64, 96, 128, 192, 256, 384, 512, 1024)
    peak_rate: float = 2e-3
    final_rate: float = 5e-5
    warmup_steps: int = 100
    weight_decay: float = 0.1
    seed: int = 7


def train_tokenizer(documents: list[Document]) -> Tokenizer:
    """A byte-level BPE tokenizer over the texts, with all 256 bytes, so that any text survives a round trip."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(token, special=True, normalized=False) for token in SPECIAL_TOKENS],
        show_progress=False,
    )
    texts = (
        text
        for document in documents
        for text in ([document.text] if document.text else [message["content"] for message in document.messages])
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The tokenizer as transformers loads it."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=END_OF_TEXT,
        additional_special_tokens=list(SPECIAL_TOKENS),
        model_max_length=MODEL_MAX_LENGTH,
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def model_config(tokenizer: Tokenizer) -> Qwen3Config:
    """The shape of the model."""
    return Qwen3Config(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=MODEL_MAX_LENGTH,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.token_to_id(TURN_END),
        pad_token_id=tokenizer.token_to_id(END_OF_TEXT),
    )


def encode(document: Document, tokenizer: Tokenizer) -> tuple[list[int], list[bool]]:
    """Token ids of a document and, for each, whether the model learns to predict it."""
    ids: list[int] = []
    learned: list[bool] = []

    def add(text: str, learn: bool) -> None:
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        ids.extend(piece)
        learned.extend([learn] * len(piece))

    if document.text is not None:
        add(document.text + END_OF_TEXT, True)
        return ids, learned
    for message in document.messages:
        is_answer = message["role"] == "assistant"
        add(f"{TURN_START}{message['role']}\n", False)
        add(message["content"] + TURN_END, is_answer)
        add("\n", False)
    return ids, learned


def check_encoding(documents: list[Document], tokenizer: PreTrainedTokenizerFast) -> None:
    """The training text must be what the chat template writes, and decoding must give the text back."""
    for document in documents:
        ids, _ = encode(document, tokenizer.backend_tokenizer)
        written = document.text or tokenizer.apply_chat_template(document.messages, tokenize=False)
        if tokenizer.decode(ids).removesuffix(END_OF_TEXT) != written:
            raise AssertionError(f"the encoding differs from the chat template: {written!r}")


def batches(
    encoded: list[tuple[list[int], list[bool]]], schedule: Schedule, pad: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Batches of documents of similar length, every document from position 0, the same number of tokens each.

    There are only as many shapes as widths: the CPU kernels are built anew for every shape they meet.
    """
    rng = random.Random(schedule.seed)
    longest = schedule.widths[-1]
    buckets: dict[int, list[int]] = {width: [] for width in schedule.widths}
    for index, (tokens, _) in enumerate(encoded):
        buckets[next(width for width in schedule.widths if width >= min(len(tokens), longest))].append(index)
    while True:
        groups: list[tuple[int, list[int]]] = []
        for width, members in buckets.items():
            if not members:
                continue
            rows = schedule.tokens_per_step // width
            order = rng.sample(members, len(members))
            order += rng.choices(members, k=-len(members) % rows)
            groups += [(width, order[begin : begin + rows]) for begin in range(0, len(order), rows)]
        rng.shuffle(groups)
        for width, group in groups:
            ids = torch.full((len(group), width), pad)
            labels = torch.full((len(group), width), IGNORED)
            for row, index in enumerate(group):
                tokens, learned = encoded[index][0][:width], encoded[index][1][:width]
                ids[row, : len(tokens)] = torch.tensor(tokens)
                wanted = [token if learn else IGNORED for token, learn in zip(tokens, learned, strict=True)]
                labels[row, : len(tokens)] = torch.tensor(wanted)
            yield ids, labels


def learning_rate(step: int, schedule: Schedule) -> float:
    """Linear warm-up, then half a cosine."""
    if step < schedule.warmup_steps:
        return schedule.peak_rate * (step + 1) / schedule.warmup_steps
    progress = (step - schedule.warmup_steps) / max(1, schedule.steps - schedule.warmup_steps)
    share = 0.5 * (1.0 + math.cos(math.pi * progress))
    return schedule.final_rate + (schedule.peak_rate - schedule.final_rate) * share


def train_model(
    config: Qwen3Config, encoded: list[tuple[list[int], list[bool]]], schedule: Schedule
) -> Qwen3ForCausalLM:
    """Train from random weights; the weights are float32 until the end, the products are bfloat16."""
    torch.manual_seed(schedule.seed)
    model = Qwen3ForCausalLM(config)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    scales = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": schedule.weight_decay}, {"params": scales, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
        fused=True,
    )
    model.train()
    source = batches(encoded, schedule, config.pad_token_id)
    begin, seen, recent = time.monotonic(), 0, 0.0
    for step in range(schedule.steps):
        ids, labels = next(source)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, schedule)
        # The state at a position predicts the token after it.
        wanted = F.pad(labels[:, 1:], (0, 1), value=IGNORED).flatten()
        counted = (wanted != IGNORED).nonzero().squeeze(1)
        # Whole blocks again keep the number of shapes small; the places that fill a block are not scored.
        unscored = (wanted == IGNORED).nonzero().squeeze(1)
        counted = torch.cat([counted, unscored[: -len(counted) % OUTPUT_BLOCK]])
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
            # Only answers are scored, so the wide output layer need not run for the rest.
            logits = model.lm_head(hidden.flatten(0, 1).index_select(0, counted))
        loss = F.cross_entropy(logits.float(), wanted[counted])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seen += ids.numel()
        recent += loss.item()
        if (step + 1) % LOG_INTERVAL == 0:
            seconds = time.monotonic() - begin
            print(f"step {step + 1}: loss {recent / LOG_INTERVAL:.4f}, {seen:,} tokens, {seconds:.0f} s", flush=True)
            recent = 0.0
    return model.eval()


def save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """Write the directory that the engine and transformers load."""
    out.mkdir(parents=True, exist_ok=True)
    end, pad = tokenizer.convert_tokens_to_ids(TURN_END), tokenizer.convert_tokens_to_ids(END_OF_TEXT)
    model.generation_config = GenerationConfig(
        eos_token_id=[end, pad],
        pad_token_id=pad,
        do_sample=True,
        temperature=0.7,
        top_p=0.9,
    )
    model.to(torch.bfloat16).save_pretrained(out, safe_serialization=True)
    tokenizer.backend_tokenizer.save(str(out / "tokenizer.json"))
    # Written by hand, because what transformers 5 writes names a class that its predecessors lack.
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": TURN_END,
        "pad_token": END_OF_TEXT,
        "additional_special_tokens": list(SPECIAL_TOKENS),
        "model_max_length": MODEL_MAX_LENGTH,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    written = json.dumps(tokenizer_config, indent=2, ensure_ascii=False)
    (out / "tokenizer_config.json").write_text(written + "\n", encoding="utf-8")
    # safetensors makes its file readable for the owner only, which would not survive installation for others.
    (out / "model.safetensors").chmod(0o644)


def main() -> None:
    """Generate the text, train and write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="directory to write")
    parser.add_argument("--steps", type=int, default=2200, help="training steps; the default gives the published model")
    # A second thread gains little at this size, and loses much as soon as another process wants its core.
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory only serves to find bugs, and costs half of the speed here.
    torch.utils.deterministic.fill_uninitialized_memory = False

    documents = build_corpus(DEFAULT_SEED, DEFAULT_DOCUMENTS)
    tokenizer = wrap_tokenizer(train_tokenizer(documents))
    check_encoding(documents[:300], tokenizer)
    encoded = [encode(document, tokenizer.backend_tokenizer) for document in documents]
    lengths = sorted(len(ids) for ids, _ in encoded)
    print(f"{len(encoded)} documents, {sum(lengths):,} tokens, longest {lengths[-1]}", flush=True)
    model = train_model(model_config(tokenizer.backend_tokenizer), encoded, Schedule(arguments.steps))
    save(model, tokenizer, arguments.out)
    size = sum(path.stat().st_size for path in arguments.out.iterdir())
    print(f"{model.num_parameters():,} parameters, {size / 2**20:.1f} MiB in {arguments.out}")


if __name__ == "__main__":
    main()
