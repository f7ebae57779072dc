"""What is fuzzed: functions of bytes that raise if something is wrong, and say nothing otherwise."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from bough.config.engine_args import bundled_model_path
from bough.entrypoints.http.fields import BodySpec
from bough.entrypoints.http.routes import ROUTES
from bough.errors import BoughError
from bough.ipc.codec import MessageDecoder, encode
from bough.ipc.messages import ToDetokenizer, ToScheduler, ToTokenizer
from bough.managers.io_struct import GenerateReqInput
from bough.parsers.base import ParsedEvent, ToolCallArguments, ToolCallStart
from bough.parsers.dialect import Dialect
from bough.parsers.reasoning import REASONING_FORMATS
from bough.parsers.tool_formats import TOOL_FORMATS
from bough.tokenization.incremental_decoder import incremental_decoder
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.stop_matcher import StopMatcher
from bough.tokenization.tokenizer import Tokenizer
from tests.fuzz.connections import connections
from tests.fuzz.dialects import conversations, dialects
from tests.parsers.parsing import calls, dialect, parser, run

_DECODERS: list[MessageDecoder[Any]] = [
    MessageDecoder(kind, "fuzzing") for kind in (ToScheduler, ToDetokenizer, ToTokenizer)
]
_BODIES: dict[str, BodySpec[Any]] = {info.path: info.body for info in ROUTES if info.body is not None}
_PATHS = sorted(_BODIES)
_TOOLS, _REASONING = sorted(TOOL_FORMATS), (None, *sorted(REASONING_FORMATS))
_MAX_TOKENS = 4096


def messages(data: bytes) -> None:
    """What comes over a socket between two processes is a message or is dropped."""
    if not data:
        return
    decoder = _DECODERS[data[0] % len(_DECODERS)]
    before = decoder.num_malformed
    message = decoder.decode(data[1:])
    if message is None:
        assert decoder.num_malformed == before + 1
        return
    packed = encode(message)
    assert encode(decoder.decode(packed)) == packed, "it is understood as it was meant"


def requests(data: bytes) -> None:
    """The body of a request is understood or refused, with an error that can be told."""
    if not data:
        return
    path, is_lenient = _PATHS[data[0] % len(_PATHS)], data[0] // len(_PATHS) % 2 == 1
    try:
        body, _ = asyncio.run(_BODIES[path].parse(data[1:], unknown={} if is_lenient else None, max_tokens=_MAX_TOKENS))
        if isinstance(body, GenerateReqInput):
            body.expand(max_outputs=64)
    except BoughError as error:
        if not 400 <= error.status_code < 500:
            raise
        json.dumps(error.message).encode()


def answers(data: bytes) -> None:
    """What a model writes is taken apart the same way wherever it is cut."""
    if len(data) < 4:
        return
    tools, reasoning, flags, cut = data[:4]
    made = dialect(_TOOLS[tools % len(_TOOLS)], _REASONING[reasoning % len(_REASONING)])
    text = data[4:].decode(errors="replace")
    thinking, is_cut = bool(flags & 1), bool(flags & 2)
    whole = _parsed(made, [text], thinking, is_cut)
    assert _parsed(made, _pieces(text, cut % 16 + 1), thinking, is_cut) == whole
    for before, event in itertools.pairwise(whole):
        if isinstance(event, ToolCallArguments):
            assert isinstance(before, ToolCallStart), "a call comes in one piece"
            assert before.index == event.index
    if not is_cut:
        for name, _ in _complete(whole):
            assert name in ("get_weather", "now"), "only functions that there are are called"


def detokenizer(data: bytes) -> None:
    """Token ids become the same text in whatever pieces they come, and all that is pushed into a matcher comes out."""
    if len(data) < 2:
        return
    size, flags = data[0] % 8 + 1, data[1]
    tokenizer = _tokenizer()
    ids = [int.from_bytes(data[at : at + 2], "little") % tokenizer.vocab_size for at in range(2, len(data) - 1, 2)]
    skip = bool(flags & 1)
    at_once, in_pieces = (incremental_decoder(tokenizer, [], skip) for _ in range(2))
    whole = at_once.push(ids)[0] + at_once.flush()
    parts = [in_pieces.push(ids[at : at + size])[0] for at in range(0, len(ids), size)]
    text = "".join(parts) + in_pieces.flush()
    assert text == whole
    matcher = StopMatcher(("the", "\n\n", "e t"), (), bool(flags & 2))
    shown = ""
    for part in parts:
        step = matcher.push(part)
        shown += step.text
        if step.matched is not None:
            break
    else:
        shown += matcher.flush()
    assert whole.startswith(shown)


TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__: each for each in (messages, requests, answers, detokenizer, connections, conversations, dialects)
}


def _parsed(made: Dialect, pieces: list[str], thinking: bool, cut: bool) -> list[ParsedEvent]:
    return run(parser(made, thinking=thinking), pieces, cut=cut)


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _complete(events: list[ParsedEvent]) -> Iterator[tuple[str, Any]]:
    """Calls whose arguments are JSON; what a model has broken off or spoiled is passed on as it came."""
    try:
        yield from calls(events)
    except ValueError:
        return


_TOKENIZERS: list[Tokenizer] = []


def _tokenizer() -> Tokenizer:
    if not _TOKENIZERS:
        _TOKENIZERS.append(load_tokenizer(str(bundled_model_path())))
    return _TOKENIZERS[0]
