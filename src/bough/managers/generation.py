"""The outputs of one call, as whoever waits for them sees them."""

from __future__ import annotations

from bough.ipc.messages import OutputDelta
from bough.managers.req_state import ReadySignal, ReqState, Sink


class Generation:
    """The outputs of one call, while it is being answered."""

    __slots__ = ("_signal", "states", "unfinished")

    def __init__(self, states: list[ReqState], signal: ReadySignal) -> None:
        self.states = states
        self.unfinished = len(states)
        """Outputs whose last delta was not taken yet."""
        self._signal = signal

    async def deltas(self, sink: Sink | None = None) -> list[tuple[ReqState, OutputDelta]]:
        """What is new, oldest first; waits until there is something.

        A request that does not stream has news once, when it is finished; of a stream that lags behind several deltas
        may come at once.

        Args:
            sink: gets what arrives while this waits. What it does not take, and what comes after that, is returned.

        Raises:
            BoughError: if the engine cannot go on.
        """
        news = []
        for state in await self._signal.wait(sink):
            for delta in state.take():
                if delta.finish_reason is not None:
                    self.unfinished -= 1
                news.append((state, delta))
        return news
