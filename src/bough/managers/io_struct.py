"""Requests to the :class:`~bough.managers.tokenizer_manager.TokenizerManager`.

:class:`GenerateReqInput` has the fields of ``POST /generate`` and of ``Engine.generate``: scalars for one prompt, lists
for several. It is expanded at the edge into :class:`GenerateRequest`, one prompt each, and nothing behind that knows
about batches.
"""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from bough import ceilings
from bough.errors import BadRequest
from bough.ipc.messages import (
    NO_EXTRAS,
    RequestExtras,
    ThoughtMarkers,
    TokenizedEmbeddingReqInput,
    TokenizedGenerateReqInput,
)
from bough.json_words import wrong_field
from bough.managers.sessions import SessionParams, Turn
from bough.other_engines import fields_of
from bough.sampling.bad_words import TokenSequences
from bough.sampling.sampling_params import GRAMMAR_KINDS, SamplingParams
from bough.tokenization.stop_regex import compile_stop_regex
from bough.tokenization.tokenizer import TokenIds

MAX_TOP_LOGPROBS = ceilings.TOP_LOGPROBS
"""Most alternatives per position that a request may ask for."""

MAX_TOKEN_IDS_LOGPROB = 1024
"""Most token ids per position whose logprobs a request may ask for."""

MAX_RID_CHARS = 256
MAX_TIMEOUT_SECONDS = 7 * 86_400.0
MAX_CACHE_KEY_CHARS = 1024

_SAME_FOR_ALL = ("stream", "return_text_in_logprobs", "return_prompt_token_ids", "log_metrics", "no_logs")
"""Fields that all prompts of a batch have in common."""

_OWN_EXTRAS = ("extra_key", "goes_on", "routed_experts_from")
_SAID_ONCE = tuple(name for name in RequestExtras.__struct_fields__ if name not in _OWN_EXTRAS)
"""Extras that a body has under the same name, and all of its prompts in common."""

_ABOUT_LOGPROBS: dict[str, Any] = {"logprob_start_len": -1, "top_logprobs_num": 0, "token_ids_logprob": None}
"""Fields that mean nothing without ``return_logprob``, and the values that say nothing."""

UNSUPPORTED_SAMPLING_PARAMS = fields_of("sampling_params")

GRAMMAR_FIELDS = frozenset(GRAMMAR_KINDS)

RequestId = Annotated[str, Meta(min_length=1, max_length=MAX_RID_CHARS)]
CacheKey = Annotated[str, Meta(max_length=MAX_CACHE_KEY_CHARS)]
TopLogprobs = Annotated[int, Meta(ge=0, le=MAX_TOP_LOGPROBS)]
Position = Annotated[int, Meta(ge=0, le=2**31 - 1)]
LogprobStart = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
Priority = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Rank = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Timeout = Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)]

_PRIORITY = Meta(description="Higher goes first, if the server was started with `--enable-priority-scheduling`.")
_TIMEOUT = Meta(
    description="Seconds that the request may take, from its arrival; then it ends with what there is (`finish_reason` "
    "`abort`), or with status 504 if there is nothing. `--request-timeout` may be shorter."
)
NO_LOGS = Meta(
    description="Keep the request out of the log of requests (`--log-requests`), and its texts out of crash dumps."
)
_ROUTED = Meta(
    description="Replica that computes the request (`--dp-size`), from 0; any if absent. `data_parallel_rank` means "
    "the same, and the header `X-Data-Parallel-Rank` takes precedence."
)
RoutedRank = Annotated[Rank | None, _ROUTED]
RANK_ALIASES = {"data_parallel_rank": "routed_dp_rank"}
"""Other name of the field."""
_EXTRA_KEY = Meta(description="Namespace of the prefix cache: only requests with the same key share prefixes.")
_CACHE_SALT = Meta(description="Secret that keeps others from telling, by timing, whether a prefix is cached.")


class RoutedFields(msgspec.Struct, kw_only=True):
    """Replica that computes what a body asks for."""

    routed_dp_rank: RoutedRank = None

    @property
    def routing(self) -> RequestExtras:
        """Extras of a request that has no others."""
        return RequestExtras(routed_dp_rank=self.routed_dp_rank)


class QueueFields(RoutedFields, kw_only=True):
    """Order of requests, and namespace in which they share prefixes."""

    priority: Annotated[Priority | None, _PRIORITY] = None
    timeout: Annotated[Timeout | None, _TIMEOUT] = None
    extra_key: Annotated[CacheKey | None, _EXTRA_KEY] = None
    cache_salt: Annotated[CacheKey | None, _CACHE_SALT] = None

    @property
    def extras(self) -> RequestExtras:
        """Extras of every request that is made of a body."""
        return extras_of(self, self.extra_key, self.cache_salt)


def extras_of(body: Any, extra_key: str | None, cache_salt: str | None, **own: Any) -> RequestExtras:
    """Extras of a request that is made of a body, with its own key and salt of the prefix cache, and others of its
    ``own``."""
    given = {name: getattr(body, name) for name in _SAID_ONCE}
    return RequestExtras(extra_key=cache_namespace(extra_key, cache_salt), **given, **own)


def is_batch(body: Any) -> bool:
    """True if the answer is a list: several prompts were given, be it a list of one."""
    return isinstance(body.text, list) or (body.text is None and is_nested(body.input_ids))


class GenerateReqInput(RoutedFields, kw_only=True):
    """Body of ``/generate`` and arguments of ``Engine.generate``; a list where a scalar could stand makes a batch."""

    text: Annotated[
        str | list[str] | None, Meta(description="The prompt, or a list of prompts. Either this or `input_ids`.")
    ] = None
    input_ids: Annotated[
        Any, Meta(description="The prompt as token ids, or a list of such prompts. Either this or `text`.")
    ] = None
    sampling_params: Annotated[
        dict[str, Any] | list[dict[str, Any]] | None,
        Meta(description="How tokens are chosen and when the output ends; one object for all prompts, or one each."),
    ] = None
    rid: Annotated[
        RequestId | list[RequestId] | None,
        Meta(
            description="Id of the request, for `/abort_request` and logs; made up if absent. `id` makes `id_0`, "
            "`id_1` ... where there are several outputs."
        ),
    ] = None
    return_logprob: Annotated[bool | list[bool], Meta(description="Return the logprob of every output token.")] = False
    logprob_start_len: Annotated[
        LogprobStart | list[LogprobStart],
        Meta(description="First prompt position whose logprob is wanted too; -1: none of the prompt's."),
    ] = -1
    top_logprobs_num: Annotated[
        TopLogprobs | list[TopLogprobs],
        Meta(description="How many of the likeliest tokens to return per position. `top_logprobs` means the same."),
    ] = 0
    token_ids_logprob: Annotated[
        list[Any] | None,
        Meta(
            description="Token ids whose logprobs to return at every position: one list for all prompts, or one each."
        ),
    ] = None
    return_text_in_logprobs: Annotated[
        bool, Meta(description="Fill in the text of every token in the logprobs, instead of null.")
    ] = False
    return_prompt_token_ids: Annotated[bool, Meta(description="Add `prompt_token_ids` to the answer.")] = False
    return_routed_experts: Annotated[
        bool,
        Meta(
            description="Add `routed_experts` to `meta_info` at the end: the experts that have computed each token but "
            "the last, int32 in base 64, `[tokens, layers, experts of a token]`, zeros in layers without experts. "
            "Needs `--enable-return-routed-experts`."
        ),
    ] = False
    routed_experts_start_len: Annotated[
        Position, Meta(description="First position of them, at most the prompt's length.")
    ] = 0
    stream: Annotated[bool, Meta(description="Answer with server-sent events.")] = False
    log_metrics: Annotated[bool, Meta(description="Count this request in `/metrics`.")] = True
    no_logs: Annotated[bool, NO_LOGS] = False
    priority: Annotated[Priority | None, _PRIORITY] = None
    timeout: Annotated[Timeout | None, _TIMEOUT] = None
    extra_key: Annotated[CacheKey | list[CacheKey] | None, _EXTRA_KEY] = None
    cache_salt: Annotated[CacheKey | list[CacheKey] | None, _CACHE_SALT] = None
    session_params: Annotated[
        SessionParams | list[SessionParams | None] | None,
        Meta(description="Go on from an earlier request of a session (see `/open_session`), instead of repeating it."),
    ] = None

    def expand(
        self, *, preferred: dict[str, Any] | None = None, max_outputs: int | None = None, text_name: str = "text"
    ) -> list[GenerateRequest]:
        """One request per prompt, with valid stop patterns; see :meth:`requests`."""
        requests = list(self.requests(preferred=preferred, max_outputs=max_outputs, text_name=text_name))
        for patterns in {request.sampling_params.stop_regex for request in requests}:
            if patterns:
                compile_stop_regex(patterns)
        return requests

    def requests(
        self, *, preferred: dict[str, Any] | None = None, max_outputs: int | None = None, text_name: str = "text"
    ) -> Iterator[GenerateRequest]:
        """One request per prompt, with everything that was given once copied to each. Stop patterns are not compiled.

        Sampling parameters that a request does not set are those ``preferred``; at most ``max_outputs`` (prompts times
        ``n``) are allowed; ``text_name`` is what the caller calls ``text``. Raises :class:`BadRequest` that names a
        field which is missing, of the wrong type or of the wrong length; before the first request, but for what is
        wrong in a later one's sampling parameters.
        """
        check_types(self, {"text": text_name})
        if max_outputs is not None:
            self._check_outputs(1, max_outputs, text_name)
        has_session = self.session_params is not None
        prompts, param = prompts_of(self.text, self.input_ids, text_name, may_be_empty=has_session)
        size, is_batch = len(prompts), self.is_batch
        each_params = self._sampling_params(size, preferred)
        params = next(each_params)
        n = params.n
        if max_outputs is not None:
            self._check_outputs(n, max_outputs, text_name)
        each_field = {
            **{name: self._each(name, size, n) for name in ("return_logprob", "logprob_start_len", "top_logprobs_num")},
            "token_ids_logprob": self._token_ids_logprob(size, n),
        }
        self._check_logprobs_wanted(each_field)
        each_field["session_params"] = self._session_params(size, n)
        extra_key = self._each("extra_key", size, 1)
        cache_salt = self._each("cache_salt", size, 1)
        rids = request_ids(self.rid, size, is_batch=is_batch, n=n)
        same_for_all = {name: getattr(self, name) for name in _SAME_FOR_ALL}
        routed_experts_from = self.routed_experts_start_len if self.return_routed_experts else None
        if self.routed_experts_start_len and not self.return_routed_experts:
            raise BadRequest(
                "routed_experts_start_len needs return_routed_experts to be true", param="routed_experts_start_len"
            )
        for i, prompt in enumerate(prompts):
            if i > 0:
                params = next(each_params)
                if params.n != n:
                    raise BadRequest("sampling_params must have the same n for all prompts", param="sampling_params.n")
            yield GenerateRequest(
                rids=rids[i * n : (i + 1) * n],
                text=prompt if isinstance(prompt, str) else None,
                input_ids=None if isinstance(prompt, str) else prompt,
                prompt_param=f"{param}[{i}]" if is_batch else param,
                sampling_params=params,
                extras=extras_of(self, extra_key[i], cache_salt[i], routed_experts_from=routed_experts_from),
                **same_for_all,
                **{name: values[i] for name, values in each_field.items()},
            )

    is_batch = property(is_batch)

    def _check_outputs(self, n: int, max_outputs: int, text_name: str) -> None:
        """Raise :class:`BadRequest` if there would be too many outputs, before anything is done for each of them."""
        size = len(self.text if self.text is not None else self.input_ids) if self.is_batch else 1
        if size * n > max_outputs:
            raise BadRequest(
                f"{size} prompts with n={n} are {size * n} outputs, and at most {max_outputs} are allowed in a request",
                param=text_name if self.text is not None else "input_ids",
            )

    def _sampling_params(self, size: int, preferred: dict[str, Any] | None) -> Iterator[SamplingParams]:
        """One per prompt, made when it is asked for: for thousands of prompts it is too much work for one turn."""
        given = self.sampling_params
        if isinstance(given, list):
            for each in self._each("sampling_params", size, 1):
                yield _to_sampling_params(each, preferred)
        else:
            yield from repeat(_to_sampling_params(given or {}, preferred), size)

    def _each(self, name: str, size: int, n: int) -> list[Any]:
        value = getattr(self, name)
        if not isinstance(value, list):
            return [value] * size
        if n > 1:
            raise BadRequest(f"{name} must not be a list when n is more than 1", param=name)
        if len(value) != size:
            raise BadRequest(f"{name} has {len(value)} entries for {size} prompts", param=name)
        return value

    def _check_logprobs_wanted(self, given: dict[str, list[Any]]) -> None:
        """Raise :class:`BadRequest` if something is said about logprobs that are not returned.

        What is said once for all prompts needs one prompt that wants it; what is said of each, that prompt.
        """
        wanted = given["return_logprob"]
        for name, default in _ABOUT_LOGPROBS.items():
            values = given[name]
            ineffective = any(
                value != default and not is_wanted for value, is_wanted in zip(values, wanted, strict=True)
            )
            is_same = all(value == values[0] for value in values)
            if ineffective and not (is_same and any(wanted)):
                raise BadRequest(f"{name} needs return_logprob to be true", param=name)

    def _session_params(self, size: int, n: int) -> list[SessionParams | None]:
        given = self.session_params
        if given is None:
            return [None] * size
        if n > 1:
            raise BadRequest("session_params needs n to be 1", param="session_params")
        each_given = self._each("session_params", size, n)
        # An Engine's caller gives dictionaries.
        return [None if each is None else msgspec.convert(each, SessionParams) for each in each_given]

    def _token_ids_logprob(self, size: int, n: int) -> list[list[int] | None]:
        given = self.token_ids_logprob
        if given is None:
            return [None] * size
        name = "token_ids_logprob"
        if all(isinstance(each, int) for each in given):
            lists: list[list[int] | None] = [given] * size
        else:
            lists = self._each(name, size, n)
        for each in lists[:1] if lists[0] is given else lists:
            if each is None:
                continue
            if not isinstance(each, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in each):
                raise BadRequest(f"{name} must be a list of token ids, or one such list per prompt", param=name)
            if len(each) > MAX_TOKEN_IDS_LOGPROB:
                raise BadRequest(f"{name} must hold at most {MAX_TOKEN_IDS_LOGPROB} ids, got {len(each)}", param=name)
        return [each or None for each in lists]


class GenerateRequest(msgspec.Struct, kw_only=True):
    """Generate from one prompt; ``n`` outputs if its sampling parameters say so."""

    rids: list[str]
    """One per output."""
    text: str | None = None
    input_ids: TokenIds | None = None
    """The prompt; filled in from ``text`` if that was given."""
    ids_are_ours: bool = False
    """True if ``input_ids`` come from the model's tokenizer and not from a client, so that they need no check."""
    prompt_param: str = "text"
    """The client's name for the prompt, for error messages."""
    sampling_params: SamplingParams
    grammar_param: str | None = None
    """What the client called that from which the grammar in ``sampling_params`` was made, for error messages; ``None``
    if it is as the client sent it."""
    stream: bool = False
    return_logprob: bool = False
    logprob_start_len: int = -1
    top_logprobs_num: int = 0
    token_ids_logprob: list[int] | None = None
    return_text_in_logprobs: bool = False
    return_prompt_token_ids: bool = False
    log_metrics: bool = True
    no_logs: bool = False
    extras: RequestExtras = NO_EXTRAS
    arrival_time: float = msgspec.field(default_factory=time.monotonic)
    """Seconds on the monotonic clock, before its prompt was encoded."""
    truncate_prompt_tokens: int | None = None
    """Keep so many tokens of the end of ``text``; all if ``None``."""
    add_special_tokens: bool = True
    """True if ``text`` gets what the tokenizer puts around texts; the same for all requests of a call."""
    banned_sequences: TokenSequences = ()
    """The bad words of ``sampling_params``; filled in."""
    begins_in_thoughts: bool | None = None
    """True if an output begins inside the model's thoughts; ``None``: the end of the prompt tells."""
    call_triggers: tuple[str, ...] = ()
    """Markers of tool calls, which also end the thoughts."""
    stops_in_answer: bool = False
    """True if stop strings apply to the answer only, not to the thoughts."""
    thoughts: ThoughtMarkers | None = None
    """What the bound on thoughts in ``sampling_params`` is about; filled in."""
    session_params: SessionParams | None = None
    ends_context: bool = False
    """True if ``input_ids`` begin with the end of the message that the session's context ends with; what the context
    has of it is left out."""
    turn: Turn | None = None
    """The request as part of its session, once its prompt is complete."""

    def to_message(self, sampling_params: SamplingParams) -> TokenizedGenerateReqInput | TokenizedEmbeddingReqInput:
        """Message to the scheduler, once the prompt is encoded, with the parameters that fit into the context."""
        assert self.input_ids is not None, "encoded"
        same = {name: getattr(self, name) for name in _SENT_AS_THEY_ARE}
        return TokenizedGenerateReqInput(input_ids=self.input_ids.tobytes(), sampling_params=sampling_params, **same)


_SENT_AS_THEY_ARE = set(TokenizedGenerateReqInput.__struct_fields__) - {"input_ids", "sampling_params"}


def new_request_id() -> str:
    """A random id, 32 hexadecimal digits."""
    return os.urandom(16).hex()


def request_ids(rid: str | list[str] | None, count: int, *, is_batch: bool, n: int = 1) -> list[str]:
    """Ids of ``n`` outputs for each of ``count`` prompts: those given, random ones, or one that is numbered.

    With ``is_batch`` a list of prompts was given, be it a list of one.
    """
    if rid is None:
        return [new_request_id() for _ in range(count * n)]
    if isinstance(rid, str):
        return [f"{rid}_{i}" for i in range(count * n)] if is_batch or n > 1 else [rid]
    if len(rid) != count:
        raise BadRequest(f"rid has {len(rid)} entries for {count} prompts", param="rid")
    rids = rid if n == 1 else [f"{each}_{i}" for each in rid for i in range(n)]
    if len(set(rids)) != len(rids):
        raise BadRequest("rid names the same id twice", param="rid", code="duplicate_request_id")
    return rids


def cache_namespace(extra_key: str | None, cache_salt: str | None) -> str | None:
    """One key out of two, such that different pairs give different keys; an empty string is the same as none."""
    salt, key = cache_salt or "", extra_key or ""
    return f"{len(salt)}:{salt}{key}" if salt or key else None


def pack_token_ids(ids: Sequence[int] | TokenIds, param: str, *, may_be_empty: bool = False) -> TokenIds:
    """Token ids as int32; raises :class:`BadRequest` if something is not an integer of 32 bits, or the list is empty
    and may not be."""
    if isinstance(ids, array) and ids.typecode == "i":
        packed = ids
    else:
        if not isinstance(ids, (list, tuple)):
            raise BadRequest(f"{param} must be a list of token ids", param=param)
        if bool in set(map(type, ids)):
            raise BadRequest(f"{param} must hold integers only, got a boolean", param=param)
        try:
            packed = array("i", ids)
        except OverflowError:
            raise BadRequest(f"{param} holds a number that is no token id", param=param) from None
        except TypeError:
            raise BadRequest(f"{param} must hold integers only", param=param) from None
    if not packed and not may_be_empty:
        raise BadRequest(f"{param} must not be empty", param=param)
    return packed


def plain(value: Any) -> Any:
    """Arrays and tensors, of whatever library, and tuples as lists, two levels deep."""
    if hasattr(value, "tolist") and not isinstance(value, array):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        nested = len(value) > 0 and (hasattr(value[0], "tolist") or isinstance(value[0], (list, tuple)))
        return [plain(each) for each in value] if nested else list(value)
    return value


def _to_sampling_params(given: dict[str, Any], preferred: dict[str, Any] | None) -> SamplingParams:
    if preferred and not GRAMMAR_FIELDS.isdisjoint(given):
        preferred = {name: value for name, value in preferred.items() if name not in GRAMMAR_FIELDS}
    params = SamplingParams.from_dict({**(preferred or {}), **_supported(given)})
    params.validate(None)
    return params


def _supported(sampling_params: dict[str, Any]) -> dict[str, Any]:
    """Sampling parameters without those that are not supported; asking for one of these is an error."""
    if UNSUPPORTED_SAMPLING_PARAMS.keys().isdisjoint(sampling_params):
        return sampling_params
    supported = dict(sampling_params)
    for name, unsupported in UNSUPPORTED_SAMPLING_PARAMS.items():
        value = supported.pop(name, None)
        if value is not None and not unsupported.accepts(value):
            raise unsupported.error(f"sampling_params.{name}")
    return supported


def is_nested(ids: Any) -> bool:
    """True if token ids are a list of prompts, and not one prompt."""
    return isinstance(ids, (list, tuple)) and len(ids) > 0 and isinstance(ids[0], (list, tuple, array))


def prompts_of(
    text: Any, input_ids: Any, text_name: str = "text", *, may_be_empty: bool = False
) -> tuple[list[Any], str]:
    """Prompts of a request, texts or packed token ids, and the name of their field; raises :class:`BadRequest` if one
    is missing or wrong.

    ``text_name`` is what the caller calls ``text``; a prompt has tokens unless it ``may_be_empty``.
    """
    if text is None and input_ids is None:
        message = f"{text_name} or input_ids is required"
        raise BadRequest(message, param=text_name, code="missing_required_parameter")
    if text is not None and input_ids is not None:
        raise BadRequest(f"give either {text_name} or input_ids, not both", param=text_name)
    if text is not None:
        if text == []:
            raise BadRequest(f"{text_name} must not be an empty list", param=text_name)
        return text if isinstance(text, list) else [text], text_name
    name = "input_ids"
    if not isinstance(input_ids, (list, tuple, array)) or (len(input_ids) == 0 and not may_be_empty):
        raise BadRequest(f"{name} must be a non-empty list of token ids, or a list of such lists", param=name)
    if not is_nested(input_ids):
        return [pack_token_ids(input_ids, name, may_be_empty=may_be_empty)], name
    return [
        pack_token_ids(prompt, f"{name}[{i}]", may_be_empty=may_be_empty) for i, prompt in enumerate(input_ids)
    ], name


def check_types(request: msgspec.Struct, names: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check the types of fields other than ``input_ids``, which a caller of an Engine has set unchecked; raises
    :class:`BadRequest`, naming the field at fault, as in ``names`` if it is there."""
    for name, default, kind in _checked_fields(type(request)):
        value = getattr(request, name)
        if value is default:
            continue
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError:
            raise wrong_field(names.get(name, name), value, kind) from None


@cache
def _checked_fields(struct: type[msgspec.Struct]) -> tuple[tuple[str, Any, Any], ...]:
    fields = msgspec.structs.fields(struct)
    return tuple((field.name, field.default, field.type) for field in fields if field.name != "input_ids")
