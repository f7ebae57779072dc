"""Normalisers that make texts long: in general, or only texts that a client knows."""

from __future__ import annotations

from typing import Any

import pytest
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from bough.errors import BadRequest, CheckpointError
from bough.tokenization.text_growth import TextGrowth


def growth_of(*steps: normalizers.Normalizer, **parts: Any) -> TextGrowth:
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.Sequence(list(steps))
    for part, step in parts.items():
        setattr(backend, part, step)
    return TextGrowth(backend, "here")


def test_steps_that_could_make_any_length_are_refused() -> None:
    cases = [
        [normalizers.Replace("a", "aa")] * 20,
        [normalizers.Sequence([normalizers.Replace("a", "aa")] * 10)] * 2,
        [normalizers.Replace("\u03a9", "x" * 100_000)],
        [normalizers.Replace(Regex("a?"), "a" * 100)] * 2,
        [normalizers.Prepend("x" * 100_000)],
        [normalizers.ByteLevel()] * 20,
        [normalizers.NFKC()] * 5,
    ]
    for steps in cases:
        with pytest.raises(CheckpointError, match="normalizer can make a text"):
            growth_of(*steps)


def test_so_are_steps_behind_the_normalizer() -> None:
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    with pytest.raises(CheckpointError, match="pre_tokenizer"):
        growth_of(pre_tokenizer=pre_tokenizers.Sequence([level] * 20))


def test_a_text_that_becomes_too_long_is_refused_before_all_of_it_is_made() -> None:
    growth = growth_of(normalizers.Replace("\u03a9", "x" * 2000))
    growth.check("plain " * 100_000, "text")
    growth.check("plain \u03a9", "text")  # short texts may grow as they like
    with pytest.raises(BadRequest, match="more than 16 times") as raised:
        growth.check("\u03a9" * 1_000_000, "messages")
    assert raised.value.param == "messages"


def test_usual_chains_pass_with_the_longest_characters_that_there_are() -> None:
    xlnet = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    xlnet.append(normalizers.Replace(Regex(" {2,}"), " "))
    for steps in (xlnet, [normalizers.NFKC()], [normalizers.BertNormalizer()], [normalizers.Replace(" ", "\u2581")]):
        growth_of(*steps, pre_tokenizer=pre_tokenizers.Metaspace()).check("\ufdfa\u0390 a" * 20_000, None)
