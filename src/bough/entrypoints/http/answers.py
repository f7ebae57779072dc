"""Types that answers of several APIs consist of."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
TokenId = Annotated[int, Meta(ge=0)]
Status = Annotated[int, Meta(ge=400, le=599)]
LogprobTriple = tuple[float | None, TokenId, str | None]
