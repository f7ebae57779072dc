"""A byte-level tokenizer with a chat template: 256 bytes, a few words, and special tokens."""

from __future__ import annotations

from functools import lru_cache

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers

from bough.tokenization.tokenizer import SpecialTokens, Tokenizer

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if shout is defined %}LOUD {% endif %}{% endif %}"
)

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


@lru_cache
def tiny_tokenizer(more_specials: tuple[str, ...] = ()) -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {SPECIALS[0]: 0} | {char: index + 1 for index, char in enumerate(alphabet)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("e", "n"), ("a", "t")]
    for left, right in merges:
        vocab[left + right] = len(vocab)
    backend = Backend(models.BPE(vocab=vocab, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([*SPECIALS, *more_specials])
    return Tokenizer(backend, special=SpecialTokens(eos="<|im_end|>"), chat_templates={"default": CHAT_TEMPLATE})
