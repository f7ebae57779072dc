"""Conversations that the server remembers, so that a request brings only what is new.

A session is a tree of turns: a turn goes on from the context of another, or begins anew. What is remembered is token
ids; their KV is found again by the prefix cache like that of any other prompt. Everything about sessions is here: what
they hold, how many there may be, and when they end.
"""

from __future__ import annotations

import logging
import time
import uuid
from array import array
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Annotated

import msgspec
from msgspec import Meta

from bough.errors import BadRequest, Overloaded
from bough.tokenization.tokenizer import TokenIds

logger = logging.getLogger(__name__)

MAX_SESSION_ID_CHARS = 256
MAX_TURN_ID_CHARS = 256 + 8
"""Of the id of an earlier request: as long as a client may make it, and its number where it was one of several."""
MAX_TURNS = 4096
"""Most turns that one session remembers."""

_MAX_OVERLAP = 64
"""Tokens at the beginning of a continuation that may be at the end of the context already: the end of a message, and
the beginning of one."""

SessionId = Annotated[str, Meta(min_length=1, max_length=MAX_SESSION_ID_CHARS)]


class SessionParams(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """``session_params`` of a request: which context it goes on from."""

    id: Annotated[SessionId, Meta(description="Id of the session.")]
    rid: Annotated[
        Annotated[str, Meta(min_length=1, max_length=MAX_TURN_ID_CHARS)] | None,
        Meta(description="Id of the request, in this session, to go on from; without it a new conversation begins."),
    ] = None
    offset: Annotated[
        Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | None,
        Meta(
            description="Keep only so many tokens of that context; a negative number drops so many from its end; 0: "
            "keep all."
        ),
    ] = None
    replace: Annotated[
        bool | None,
        Meta(description="Forget, and abort, what has gone on from `rid` before; without `rid`, all turns."),
    ] = None
    drop_previous_output: Annotated[
        bool | None, Meta(description="Go on from the prompt of `rid` without what was generated for it.")
    ] = None


@dataclass(slots=True, eq=False)
class Turn:
    """One request of a session, and what was generated for it.

    Only what a turn adds is stored: its prompt is the first ``kept`` tokens of its parent's context, and ``new``. If it
    ``replaces`` others, then once it is :meth:`accepted`.
    """

    session: Session | None
    rid: str
    parent: Turn | None
    kept: int
    new: TokenIds
    output: TokenIds = field(default_factory=lambda: array("i"))
    children: list[Turn] = field(default_factory=list)
    running: bool = True
    replaces: bool = False

    @property
    def prompt_len(self) -> int:
        """Tokens of the prompt."""
        return self.kept + len(self.new)

    @property
    def context_len(self) -> int:
        """Tokens of prompt and output."""
        return self.prompt_len + len(self.output)

    def prompt(self) -> TokenIds:
        """The whole prompt; a copy."""
        chain: list[Turn] = [self]
        while (parent := chain[-1].parent) is not None:
            chain.append(parent)
        ids: TokenIds = array("i")
        for turn in reversed(chain):
            del ids[turn.kept :]
            ids.extend(turn.new)
            if turn is not self:
                ids.extend(turn.output)
        return ids

    @property
    def num_stored(self) -> int:
        """Tokens that are stored for it."""
        return len(self.new) + len(self.output)

    def accepted(self) -> None:
        """Nothing refuses the request any more: what it replaces is forgotten, and aborted."""
        if self.replaces and self.session is not None:
            self.replaces = False
            self.session.replace_others(self)

    def add_output(self, token_ids: list[int]) -> None:
        """Remember what was generated."""
        if self.session is not None:
            self.output.extend(token_ids)
            self.session.charge(len(token_ids))

    def end(self) -> None:
        """Let others go on from the request, which has ended."""
        self.running = False
        if self.session is not None:
            self.session.end_turn(self)

    def discard(self) -> None:
        """Forget the request, which has failed, or whose client has left."""
        self.running = False
        if self.session is not None:
            self.session.forget(self)


class Session:
    """One session, of at most ``capacity`` tokens, closed after ``timeout`` seconds without a turn.

    If ``is_linear``, it is one conversation without branches: each turn goes on from the one before.
    """

    def __init__(self, store: SessionStore, session_id: str, capacity: int, *, is_linear: bool, timeout: float) -> None:
        self.id = session_id
        self.capacity = capacity
        self.is_linear = is_linear
        self.timeout = timeout
        self.last_active = store.now()
        self.num_tokens = 0
        self.turns: dict[str, Turn] = {}
        self._store = store
        self._latest: Turn | None = None

    @property
    def is_busy(self) -> bool:
        """True if a turn is running."""
        return any(turn.running for turn in self.turns.values())

    def begin_turn(
        self, params: SessionParams, rid: str, new: TokenIds, bos_token_id: int | None, joints: Set[int] | None
    ) -> Turn:
        """A new turn; see :meth:`SessionStore.begin_turn`."""
        if rid in self.turns:
            problem = f"rid {rid!r} already names a request of session {self.id!r}"
            raise BadRequest(problem, param="rid", code="duplicate_request_id")
        parent = self._linear_parent(params) if self.is_linear else self._parent(params)
        kept = 0 if parent is None else _kept(parent, params)
        if kept and len(new) > 0 and new[0] == bos_token_id:
            new = new[1:]
        if joints is not None:
            if parent is None:
                problem = f"the request of session {self.id!r} that this one was to go on from has left meanwhile"
                raise _refused(f"{problem}; send the whole conversation", ".id")
            context = Turn(self, rid, parent, kept, array("i")).prompt()
            new = new[_overlap(context, new[:_MAX_OVERLAP], joints) :]
        replaced = list(self._others(parent)) if params.replace else []
        freed = sum(turn.num_stored for turn in replaced)
        num_tokens = self.num_tokens - freed
        self._store.check_room(len(new), freed)
        if len(self.turns) - len(replaced) >= MAX_TURNS:
            problem = f"session {self.id!r} has {MAX_TURNS} turns, which is the most; close it, or use replace"
            raise _refused(problem, code="session_full")
        if num_tokens + len(new) > self.capacity:
            more = f"{len(new)} more exceed its capacity of {self.capacity}"
            raise _refused(f"session {self.id!r} holds {num_tokens} tokens, {more}", code="session_full")
        turn = Turn(self, rid, parent, kept, new)
        turn.replaces = bool(params.replace)
        self.turns[rid] = turn
        if parent is not None:
            parent.children.append(turn)
        self.charge(len(new))
        return turn

    def _parent(self, params: SessionParams) -> Turn | None:
        if params.rid is None:
            if params.offset or params.drop_previous_output:
                problem = "offset and drop_previous_output need rid, the request to go on from"
                raise _refused(f"session_params: {problem}", ".rid")
            return None
        parent = self.turns.get(params.rid)
        if parent is None:
            problem = f"session_params.rid: session {self.id!r} has no request {params.rid!r}"
            raise _refused(problem, ".rid", "unknown_request_id")
        if parent.running and not params.replace:
            raise _refused(f"session_params.rid: request {params.rid!r} has not finished yet", ".rid")
        return parent

    def _linear_parent(self, params: SessionParams) -> Turn | None:
        latest = self._latest
        for name in ("offset", "replace", "drop_previous_output"):
            if getattr(params, name):
                raise _refused(f"session_params.{name} is not possible in a streaming session", f".{name}")
        if self.is_busy:
            problem = f"session {self.id!r} is a streaming session, and its previous request has not finished yet"
            raise _refused(problem, ".id")
        latest_rid = None if latest is None else latest.rid
        if params.rid not in (None, latest_rid):
            problem = f"session_params.rid: the latest request of session {self.id!r} is {latest_rid!r}"
            raise _refused(problem, ".rid")
        return latest

    def replace_others(self, turn: Turn) -> None:
        """Forget, and abort, all but one turn that goes on from the same; or all other turns if it begins anew.

        Those that have begun after it, and are to replace it, stay: of several such turns the last one counts.
        """
        begun_after = dropwhile(lambda each: each is not turn, self.turns.values())
        successors = [each for each in begun_after if each.replaces and each.parent is turn.parent]
        others, parent = list(self._others(turn.parent, turn, *successors)), turn.parent
        if parent is not None:
            parent.children = [turn, *successors]
        for other in others:
            self._remove(other)
        if parent is not None and parent.running:
            parent.running = False
            self._store.abort(parent.rid)

    def _others(self, parent: Turn | None, *turns: Turn) -> Iterator[Turn]:
        """All turns but ``turns`` that have gone on from ``parent``, with what has gone on from them; or all others.

        What has gone on from ``turns`` themselves, already, is none of them.
        """
        if parent is None:
            own = {id(each) for turn in turns for each in _subtree(turn)}
            yield from (each for each in self.turns.values() if id(each) not in own)
            return
        for child in parent.children:
            if child not in turns:
                yield from _subtree(child)

    def end_turn(self, turn: Turn) -> None:
        """A turn has got its whole output."""
        self.last_active = self._store.now()
        if self.is_linear:
            # Nobody can go back: the conversation is kept as one piece.
            whole = Turn(self, turn.rid, None, 0, turn.prompt())
            whole.output, whole.running = turn.output, False
            self.clear()
            self.turns[turn.rid] = self._latest = whole
            self.charge(whole.context_len)

    def forget(self, turn: Turn) -> None:
        """Remove a turn, unless something has gone on from it already."""
        self.last_active = self._store.now()
        if not turn.children:
            if turn.parent is not None and turn in turn.parent.children:
                turn.parent.children.remove(turn)
            self._remove(turn)

    def clear(self) -> None:
        """Forget all turns; abort those that run."""
        for turn in list(self.turns.values()):
            self._remove(turn)
        self._latest = None

    def charge(self, num_tokens: int) -> None:
        """Account for tokens that are kept from now on, or, if negative, no longer."""
        self.num_tokens += num_tokens
        self._store.num_tokens += num_tokens

    def _remove(self, turn: Turn) -> None:
        del self.turns[turn.rid]
        turn.session = None
        self.charge(-turn.num_stored)
        if turn.running:
            turn.running = False
            self._store.abort(turn.rid)


class SessionStore:
    """All sessions of a server.

    Args:
        max_tokens: most tokens that all of them may hold together.
        timeout: seconds without a turn after which a session is closed, unless it asks for less.
        abort: ends a running request, by its exact id.
    """

    def __init__(
        self,
        *,
        max_sessions: int,
        max_tokens: int,
        timeout: float,
        abort: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.abort = abort
        self.now = now
        self.num_tokens = 0
        """Tokens that all sessions hold."""
        self._max_sessions = max_sessions
        self._max_tokens = max_tokens
        self._timeout = timeout
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._sessions

    def open(
        self,
        capacity: int = 0,
        session_id: str | None = None,
        *,
        is_linear: bool = False,
        timeout: float | None = None,
    ) -> str:
        """Begin a session with room for ``capacity`` tokens, 0 for as many as the server allows; returns its id, made
        up if not given.

        Raises:
            BadRequest: if the name is in use, or the timeout longer than the server's.
            Overloaded: if there are too many.
        """
        session_id = uuid.uuid4().hex if session_id is None else session_id
        if session_id in self._sessions:
            raise BadRequest(f"session_id {session_id!r} is in use", param="session_id", code="duplicate_session_id")
        if timeout is not None and timeout > self._timeout:
            raise BadRequest(
                f"timeout must be at most {self._timeout:g} s (--session-timeout), got {timeout:g}", param="timeout"
            )
        if len(self._sessions) >= self._max_sessions:
            raise Overloaded(
                f"{self._max_sessions} sessions are open, which is the most (--max-sessions); close one",
                code="too_many_sessions",
            )
        timeout = self._timeout if timeout is None else timeout
        capacity = capacity or self._max_tokens
        self._sessions[session_id] = Session(self, session_id, capacity, is_linear=is_linear, timeout=timeout)
        return session_id

    def goes_on(self, params: SessionParams) -> bool:
        """True if a turn with these parameters goes on from an earlier one, if it can begin at all."""
        session = self._sessions.get(params.id)
        return session is not None and (bool(session.turns) if session.is_linear else params.rid is not None)

    def begin_turn(
        self,
        params: SessionParams,
        rid: str,
        new: TokenIds,
        bos_token_id: int | None,
        joints: Set[int] | None = None,
    ) -> Turn:
        """Begin a turn, whose :meth:`Turn.prompt` is what to generate from; to be :meth:`Turn.accepted`, or discarded.

        ``bos_token_id`` in front of what is ``new`` is dropped where it would not be the first. ``joints`` are special
        tokens, which end messages, if ``new`` begins with the end of the message that the context ends with: what the
        context has of that is not repeated.

        Raises:
            BadRequest: if there is no such session or turn, or the session is full.
            Overloaded: if all sessions together are.
        """
        session = self._sessions.get(params.id)
        if session is None:
            problem = f"session_params.id: there is no session {params.id!r}; it may have timed out"
            raise _refused(problem, ".id", "unknown_session_id")
        session.last_active = self.now()
        return session.begin_turn(params, rid, new, bos_token_id, joints)

    def check_room(self, added: int, freed: int) -> None:
        """Refuse tokens for which there is no room, once others are freed; raises :class:`Overloaded` if all sessions
        together are full."""
        if self.num_tokens - freed + added > self._max_tokens:
            raise Overloaded(
                f"the sessions of this server hold {self.num_tokens} tokens, and {self._max_tokens} is the most "
                f"(--max-session-tokens); close one",
                code="sessions_full",
            )

    def close(self, session_id: str) -> bool:
        """End a session and abort its running turns; returns whether there was one."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            logger.info("There is no session %r to close", session_id[:MAX_SESSION_ID_CHARS])
            return False
        session.clear()
        return True

    def close_idle(self) -> None:
        """Close the sessions whose time is up; to be called about once a second."""
        now = self.now()
        late = [each for each in self._sessions.values() if now - each.last_active > each.timeout and not each.is_busy]
        for session in late:
            self.close(session.id)


def _refused(problem: str, field: str = "", code: str | None = None) -> BadRequest:
    return BadRequest(problem, param=f"session_params{field}", code=code)


def _kept(parent: Turn, params: SessionParams) -> int:
    """Number of tokens of the context to go on from."""
    length = parent.prompt_len if params.drop_previous_output else parent.context_len
    offset = params.offset
    if not offset:
        return length
    if abs(offset) > length:
        raise _refused(f"session_params.offset is {offset}, and the context has {length} tokens", ".offset")
    return offset if offset > 0 else length + offset


def _overlap(context: TokenIds, new: TokenIds, joints: Set[int]) -> int:
    """Number of tokens at the beginning of ``new`` that the context ends with.

    A model may have left out what its template writes before the special token that ends a message, such as a space.
    """
    for size in range(min(len(new), len(context)), 0, -1):
        if context[-size:] == new[:size]:
            return size
    first = next((number for number, token in enumerate(new) if token in joints), None)
    return 0 if first is None or not context or new[first] != context[-1] else first + 1


def _subtree(turn: Turn) -> Iterator[Turn]:
    """A turn and all that has gone on from it."""
    pending = [turn]
    while pending:
        each = pending.pop()
        pending.extend(each.children)
        yield each
