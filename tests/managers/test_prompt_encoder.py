"""Which work waits for which, when prompts of very different lengths come at once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from array import array
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from bough.config.engine_args import bundled_model_path
from bough.errors import BadRequest, PayloadTooLarge
from bough.managers.embedding_struct import EmbeddingRequest
from bough.managers.io_struct import GenerateRequest
from bough.managers.prompt_encoder import (
    LANE_CHARS,
    MAX_CHARS,
    PIECE_CHARS,
    SPARE_TOKENS,
    PromptEncoder,
)
from bough.managers.request_preparer import RequestPreparer
from bough.sampling.sampling_params import SamplingParams
from bough.tokenization.loading import load_tokenizer


class GatedTokenizer:
    """Encodes texts that begin with ``x`` only when told to."""

    max_token_bytes = None

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.batches: list[list[int]] = []

    def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[array[int]]:
        if any(text.startswith("x") for text in texts):
            assert self.gate.wait(10)
        self.batches.append([len(text) for text in texts])
        return [array("i", [len(text)]) for text in texts]


def encoder_for(tokenizer: Any) -> PromptEncoder:
    return PromptEncoder(tokenizer, 1 << 30)


def test_very_long_texts_hold_up_neither_long_ones_nor_patterns() -> None:
    async def main() -> None:
        tokenizer = GatedTokenizer()
        encoder = encoder_for(tokenizer)
        very_long = [asyncio.create_task(encoder.encode(["x" * LANE_CHARS[1]], ["text"])) for _ in range(3)]
        await asyncio.sleep(0)
        (ids,) = await asyncio.wait_for(encoder.encode(["a" * LANE_CHARS[0]], ["text"]), 5)
        assert ids.tolist() == [LANE_CHARS[0]]
        assert await asyncio.wait_for(encoder.run_apart(lambda: "compiled"), 5) == "compiled"
        tokenizer.gate.set()
        await asyncio.gather(*very_long)
        encoder.close()
        encoder.join(5)

    asyncio.run(main())


def test_bad_words_of_a_batch_are_encoded_once_and_not_on_the_event_loop() -> None:
    batches: list[tuple[list[str], threading.Thread]] = []

    class Words:
        max_token_bytes = None

        def encode_batch(self, texts: list[str], add_special_tokens: bool, param: str) -> list[array[int]]:
            assert not add_special_tokens
            batches.append((texts, threading.current_thread()))
            return [array("i", map(ord, text)) for text in texts]

    async def main() -> None:
        words: Any = Words()
        encoder = encoder_for(words)
        given = [("a", " b"), (), ("a", " b")] * 100
        limits: Any = SimpleNamespace(vocab_size=128)
        unused: Any = None
        preparer = RequestPreparer(limits, unused, words, encoder, unused)
        requests = [GenerateRequest(rids=["r"], sampling_params=SamplingParams(bad_words=each)) for each in given]
        await preparer._encode_bad_words(requests)
        ((texts, thread),) = batches
        assert texts == ["a", " a", " b"]
        assert thread is not threading.current_thread()
        assert [each.banned_sequences for each in requests[:2]] == [((97,), (32, 97), (32, 98)), ()]
        assert requests[-1].banned_sequences is requests[0].banned_sequences
        for wrong in ("", "\xff", "a" * 33):
            requests[0].sampling_params = SamplingParams(bad_words=(wrong,))
            with pytest.raises(BadRequest, match="bad_words"):
                await preparer._encode_bad_words(requests[:1])
        encoder.close()
        encoder.join(5)

    asyncio.run(main())


def test_batches_are_encoded_in_pieces_and_in_order() -> None:
    async def main() -> None:
        tokenizer = GatedTokenizer()
        encoder = encoder_for(tokenizer)
        lengths = [PIECE_CHARS // 2, PIECE_CHARS // 2, 300, 2 * PIECE_CHARS, 5, 0]
        encoded = await encoder.encode(["a" * length for length in lengths], ["text"] * len(lengths))
        assert [ids.tolist() for ids in encoded] == [[length] for length in lengths]
        assert tokenizer.batches == [lengths[:2], [300], [2 * PIECE_CHARS], [5, 0]]
        encoder.close()
        encoder.join(5)

    asyncio.run(main())


def test_what_is_to_be_cut_may_be_of_any_length() -> None:
    tokenizer = load_tokenizer(bundled_model_path())
    assert tokenizer.max_token_bytes is not None, "so that long texts are refused unread"
    text = "This is a text. " * 5000

    async def main() -> None:
        encoder = PromptEncoder(tokenizer, 64)
        with pytest.raises(BadRequest, match="maximum prompt length"):
            await encoder.encode([text], ["text"])
        request = EmbeddingRequest(rids=["r"], text=text)
        await encoder.encode_segments([request], [64])
        assert request.input_ids is not None
        assert len(request.input_ids) == 64
        (end,) = await encoder.encode([encoder.ending(text, 64)], ["text"])
        assert len(end) >= 64
        encoder.close()

    asyncio.run(main())


class TestLongTexts:
    class Tokenizer:
        """A character is a token; no token stands for more."""

        def __init__(self, max_token_bytes: int | None = 1) -> None:
            self.max_token_bytes = max_token_bytes
            self.lengths: list[int] = []

        def encode_batch(self, texts: Sequence[str], add_special_tokens: bool = True) -> list[array[int]]:
            self.lengths += map(len, texts)
            return [array("i", list(text.encode())) for text in texts]

        def encode_rendered(self, texts: Sequence[str], *, param: str | None = None) -> list[array[int]]:
            return self.encode_batch(texts)

    @pytest.mark.parametrize("max_token_bytes", [1, 1000, None])
    def test_a_text_is_not_read_beyond_a_bound(self, max_token_bytes: int | None) -> None:
        tokenizer: Any = self.Tokenizer(max_token_bytes)
        encoder = PromptEncoder(tokenizer, 1000)
        too_long = "x" * (MAX_CHARS + 1)
        with pytest.raises(BadRequest) as refused:
            asyncio.run(encoder.encode([too_long], ["prompt"]))
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(BadRequest):
            asyncio.run(encoder.encode_rendered(lambda: too_long, 1, "messages"))
        for measured in (
            encoder.encode([too_long], ["prompt"], bounded=False),
            encoder.encode_rendered(lambda: too_long, 1, "messages", bounded=False),
        ):
            with pytest.raises(PayloadTooLarge):
                asyncio.run(measured)
        assert tokenizer.lengths == []
        (ids,) = asyncio.run(encoder.encode([too_long[1:]], ["prompt"], bounded=False))
        assert len(ids) == MAX_CHARS
        encoder.close()

    def test_a_long_context_may_be_measured_whole(self) -> None:
        tokenizer: Any = self.Tokenizer()
        PromptEncoder(tokenizer, MAX_CHARS).check_length(16 * MAX_CHARS, "prompt", bounded=False)

    def test_only_the_end_that_is_kept_of_a_conversation_is_encoded(self) -> None:
        tokenizer: Any = self.Tokenizer()
        encoder = PromptEncoder(tokenizer, 1000)
        text = "".join(chr(97 + number % 26) for number in range(100_000))
        ids = asyncio.run(encoder.encode_rendered(lambda: text, 1, "messages", keep=10))
        assert bytes(ids[-10:].tolist()) == text[-10:].encode()
        assert tokenizer.lengths == [10 + SPARE_TOKENS]
        encoder.close()


MEMORY_OF_LONG_TEXTS = """
import asyncio
from bough.config.engine_args import bundled_model_path
from bough.managers.prompt_encoder import PromptEncoder
from bough.tokenization.loading import load_tokenizer

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

async def main():
    encoder = PromptEncoder(load_tokenizer(str(bundled_model_path())), 2048)
    before = resident()
    for _ in range(2):
        await encoder.encode(["x " * 500_000], ["prompt"], bounded=False)
    print(resident() - before)
    encoder.close()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_long_texts_leave_little_memory_behind() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY_OF_LONG_TEXTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 40 * 2**20, "it takes three times as much while it is encoded"
