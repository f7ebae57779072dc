"""Headers of SGLang's that ask for what fields of the body ask for too, and that are not supported."""

from __future__ import annotations

from bough.entrypoints.http.chunk_writer import Headers
from bough.other_engines import Unsupported

_ABOUT_IDS = {
    b"x-sglext-return-input-ids": "use return_prompt_token_ids",
    b"x-sglext-return-output-ids": "use return_token_ids",
    b"x-sglext-ids-framed": "token ids come in the events of the choices; use return_token_ids",
}
_NEUTRAL = (b"", b"0")


def check_headers(headers: Headers) -> None:
    """Raise :class:`BadRequest` if a header asks for what the server does not do; 0 asks for nothing."""
    for name, value in headers:
        if (instead := _ABOUT_IDS.get(name)) is not None and value.strip() not in _NEUTRAL:
            raise Unsupported(instead=instead).error(name.decode())
