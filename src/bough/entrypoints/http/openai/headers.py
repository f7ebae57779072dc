"""Headers of SGLang's that say what fields of the body say, and are refused as those are."""

from __future__ import annotations

from bough.entrypoints.http.chunk_writer import Headers
from bough.errors import BadRequest
from bough.other_engines import Unsupported

_RANK = b"x-data-parallel-rank"
_ABOUT_IDS = {
    b"x-sglext-return-input-ids": "use return_prompt_token_ids",
    b"x-sglext-return-output-ids": "use return_token_ids",
    b"x-sglext-ids-framed": "token ids come in the events of the choices; use return_token_ids",
}
_NEUTRAL = (b"", b"0")


def check_headers(headers: Headers) -> None:
    """Raise :class:`BadRequest` if a header asks for what the server does not do; 0 asks for nothing."""
    for name, value in headers:
        if not name.startswith(b"x-"):
            continue
        if name == _RANK:
            rank = value.strip()
            if not rank.isdigit():
                raise BadRequest("the header X-Data-Parallel-Rank must be a whole number", param="X-Data-Parallel-Rank")
            if int(rank[:20]) != 0:
                raise Unsupported().error("X-Data-Parallel-Rank")
        elif (instead := _ABOUT_IDS.get(name)) is not None and value.strip() not in _NEUTRAL:
            raise Unsupported(instead=instead).error(name.decode())
