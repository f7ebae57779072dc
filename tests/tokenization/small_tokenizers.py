"""Small tokenizers of the kinds that language models have, trained on a few sentences."""

from __future__ import annotations

from functools import lru_cache

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "The quick brown fox jumps over the lazy dog. Don't stop now! It's 3.14 o'clock, isn't it?",
    "def hello(name):\n    return f'Hello, {name}!'\n\n\tindented\n        deeper",
    "Größe, naïve café, Ünïcödé, jalapeño — “quotes” … and € signs",
    "快速的棕色狐狸跳过懒狗。今天天气很好，我们去公园吧。",
    "すばやい茶色の狐はのろまな犬を飛び越える。안녕하세요 세계",
    "Emoji: 😀 😃 👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ and 🎉🎉🎉 at the end 😀😀",
    "Быстрая коричневая лиса. सभी मनुष्य गौरव. สวัสดีชาวโลก",
] * 4

SPECIALS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]


@lru_cache
def byte_level_bpe(vocab_size: int = 700) -> Tokenizer:
    """Like the tokenizers of GPT-2, Llama 3 and Qwen."""
    tokenizer = Tokenizer(models.BPE())
    pattern = r"'s|'t|\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+| ?\p{L}+"
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIALS,
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    tokenizer.add_tokens([AddedToken("<tool call>", normalized=False), AddedToken("ñandú", normalized=False)])
    return tokenizer


@lru_cache
def sentencepiece_bpe(*, strip: bool = True) -> Tokenizer:
    """Like the tokenizer of Llama 2: metaspaces, and bytes for characters that the vocabulary lacks."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strip else steps)
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=650, special_tokens=["<unk>", *SPECIALS], limit_alphabet=70, show_progress=False
    )
    tokenizer.train_from_iterator([sentence.replace(" ", "▁") for sentence in SENTENCES], trainer)
    state = {token: index for token, index in tokenizer.get_vocab(False).items() if token not in byte_tokens}
    # Byte tokens belong to the model's vocabulary, where a trainer cannot put them.
    vocab = {token: index for index, token in enumerate([*byte_tokens, *sorted(state, key=state.__getitem__)])}
    merges = _merges_of(tokenizer)
    rebuilt = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    rebuilt.normalizer = tokenizer.normalizer
    rebuilt.decoder = tokenizer.decoder
    rebuilt.add_special_tokens(["<unk>", *SPECIALS])
    bos = rebuilt.token_to_id("<s>")
    rebuilt.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", bos)]
    )
    return rebuilt


@lru_cache
def metaspace_unigram() -> Tokenizer:
    """Like the tokenizers of T5 and XLM-R."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=["<unk>", *SPECIALS], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


@lru_cache
def wordpiece() -> Tokenizer:
    """Like the tokenizer of BERT."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=500, special_tokens=["[UNK]", "[CLS]", "[SEP]", "[PAD]"], show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


@lru_cache
def suffix_bpe() -> Tokenizer:
    """Like the tokenizer of the first GPT: the end of a word is marked, and the last word's mark is no space."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", *SPECIALS], end_of_word_suffix="</w>", show_progress=False
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    return tokenizer


@lru_cache
def fallback_then_metaspace() -> Tokenizer:
    """A decoder of no particular form: bytes first, then metaspaces."""
    tokenizer = Tokenizer.from_str(sentencepiece_bpe().to_str())
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="never")])
    return tokenizer


def _merges_of(tokenizer: Tokenizer) -> list[tuple[str, str]]:
    import json

    return [tuple(pair) for pair in json.loads(tokenizer.to_str())["model"]["merges"]]
