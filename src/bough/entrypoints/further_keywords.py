"""Keywords that SGLang's ``Engine`` takes besides ours: accepted where they ask for nothing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from bough.config.options import did_you_mean
from bough.errors import BadRequest
from bough.managers.io_struct import plain


def check_keywords(method: Callable[..., Any], others: Mapping[str, Any], **given: Any) -> None:
    """Refuse what ``/generate``, or ``/encode``, refuses, in its words.

    Args:
        method: the one that was called.
        others: keywords that are none of its arguments.
        given: arguments that some of them cannot stand beside.

    Raises:
        TypeError: if there is no such keyword, with a suggestion.
        BadRequest: if one asks for something.
    """
    if not others:
        return
    # Not read by programs that do not need it: what HTTP bodies hold takes milliseconds to import.
    from bough.entrypoints.http.native.encode import ENCODE
    from bough.entrypoints.http.native.protocol import GENERATE

    spec: Any = ENCODE if method.__name__.endswith("encode") else GENERATE
    for name, value in others.items():
        if name not in spec.no_effect and name not in spec.refused:
            arguments = [each for each in inspect.signature(method).parameters if each != "others"]
            hint = did_you_mean(name, [*arguments, *spec.no_effect, *spec.refused])
            raise TypeError(f"{method.__name__}() got an unexpected keyword argument {name!r}{hint}")
        asked = plain(value)
        # Of several prompts each may have its own.
        each = asked if isinstance(asked, list) and asked and name in spec.refused else [asked]
        for one in each:
            if one is not None:
                spec.check_ineffective(name, one)
        rival = spec.excludes.get(name)
        if value is not None and rival is not None and given.get(rival) is not None:
            raise BadRequest(f"give either {rival} or {name}, not both", param=name)
