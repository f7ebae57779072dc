"""Channels of a front end that has no engine behind it."""

from __future__ import annotations

import asyncio

from bough.ipc.messages import TokenizedGenerateReqInput, ToScheduler, ToTokenizer


class Feed:
    """Carries what a test puts into it, and keeps the requests that come.

    Attributes:
        inbox: messages for the front end.
        requests: what it has sent to generate.
    """

    malformed_total = 0

    def __init__(self) -> None:
        self.inbox: asyncio.Queue[ToTokenizer] = asyncio.Queue()
        self.requests: list[TokenizedGenerateReqInput] = []

    async def recv(self) -> ToTokenizer:
        return await self.inbox.get()

    @property
    def lagging(self) -> bool:
        return not self.inbox.empty()

    def send(self, message: ToScheduler) -> None:
        if isinstance(message, TokenizedGenerateReqInput):
            self.requests.append(message)
