"""Native programs that are recorded, and how they are run."""

from __future__ import annotations

import ctypes
import weakref

import torch

from bough.kernels.library import load_library
from bough.kernels.native_group import FollowEnd, NativeGroup, RankLost
from bough.kernels.structures import DecodeRun, Following, ProgramLimits, Step
from bough.kernels.thread_pool import ThreadPool

_STEP_ERRORS = {
    1: "has more rows, or longer ones, than there is room for",
    2: "has a token id that is not in the vocabulary",
    3: "has a slot that does not exist",
    4: "wants tokens or logits of a model without a head",
    5: "is no run of decode rows that all want a token, or wants logprobs of rows that have no logits",
}
_LOST_RANK = 6


class NativeProgram:
    """A program of the library. Of several ranks, each has one of its part of the model.

    Args:
        threads: that run it.
        limits: most rows, tokens and positions of a step.
        group: of the ranks that compute the model together; ``None``: there is one.
    """

    def __init__(self, threads: ThreadPool, limits: ProgramLimits, group: NativeGroup | None) -> None:
        self._library = load_library()
        self._threads = threads
        self._group = group
        self._pieces: torch.Tensor | None = None
        if group is not None:
            self._pieces = group.arena.zeros(self._library.bough_piece_bytes(ctypes.byref(limits), group.world))
        self._handle = ctypes.c_void_p()
        self._library.bough_program_create(
            threads.handle,
            ctypes.byref(limits),
            None if group is None else group.handle,
            None if self._pieces is None else self._pieces.data_ptr(),
            ctypes.byref(self._handle),
        )
        self._error = ctypes.c_int32()
        # Not at exit: a daemon thread may be in the middle of a step.
        weakref.finalize(self, self._library.bough_program_destroy, self._handle).atexit = False

    def run(self, step: Step) -> None:
        """Run one step; every pointer in ``step`` must be valid until this returns. The GIL is released meanwhile.

        Raises:
            ValueError: if the step does not fit the program; nothing has been computed.
            RankLost: if another rank was lost; the results are worth nothing.
        """
        self._library.bough_program_run(self._handle, ctypes.byref(step), ctypes.byref(self._error))
        self._raise_error()

    def decode(self, step: Step, run: DecodeRun) -> int:
        """Run decode steps one after the other, the first of a new run ``step``, otherwise as :meth:`run`.

        Returns:
            how many of the run have been done, now and before; ``program.h`` says when it ends.

        Raises:
            ValueError: if the steps do not fit the program, or the run has ended; nothing has been computed.
            RankLost: as :meth:`run`.
        """
        self._library.bough_program_decode(
            self._handle, ctypes.byref(step), ctypes.byref(run), ctypes.byref(self._error)
        )
        self._raise_error()
        num_done: int = run.num_done
        return num_done

    def compute_head(self, states: torch.Tensor, logits: torch.Tensor) -> None:
        """Run the head alone.

        Args:
            states: after the final norm, in its type: ``[n, hidden_size]``, contiguous, at most ``max_rows``.
            logits: gets the results: float32 ``[n, vocab_size]``, contiguous; of several ranks, in memory of all.

        Raises:
            ValueError: if there are too many rows, or is no head.
            RankLost: as :meth:`run`.
        """
        self._library.bough_program_head(
            self._handle, states.data_ptr(), len(states), logits.data_ptr(), ctypes.byref(self._error)
        )
        self._raise_error()

    def follow(self, req_to_token: torch.Tensor, logits: torch.Tensor, seconds: float) -> FollowEnd:
        """Compute this rank's part of the first rank's steps. The GIL is released meanwhile.

        Args:
            req_to_token: int32 ``[max_running_requests, max_len]``, of all ranks.
            logits: float32 ``[max_running_requests, vocab_size]``, of all ranks.
            seconds: after which to return.
        """
        following = Following(
            req_to_token=req_to_token.data_ptr(),
            table_stride=req_to_token.stride(0),
            logits=logits.data_ptr(),
            seconds=seconds,
        )
        self._library.bough_program_follow(self._handle, ctypes.byref(following), ctypes.byref(self._error))
        return FollowEnd(self._error.value)

    def _raise_error(self) -> None:
        if self._error.value == _LOST_RANK:
            raise RankLost("another rank of the model was lost")
        if self._error.value:
            raise ValueError(f"the step {_STEP_ERRORS[self._error.value]}")
