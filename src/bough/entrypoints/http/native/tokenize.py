"""``/tokenize`` and ``/detokenize``: the model's tokenizer, for clients that have none."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence, Set
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from bough.entrypoints.chat.tools import MAX_TOOLS, Effort, Reasoning
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.openai.chat import prompt_job
from bough.entrypoints.http.openai.messages import ChatMessage
from bough.entrypoints.http.openai.protocol import CHAT, MAX_MESSAGES
from bough.entrypoints.http.openai.tools import TOOL_FIELDS
from bough.entrypoints.http.route import OPENAI, Count, Handlers, Route, TokenId
from bough.entrypoints.http.unknown_fields import Unknown
from bough.errors import BadRequest
from bough.managers.io_struct import pack_token_ids
from bough.managers.prompt_encoder import PromptEncoder
from bough.other_engines import fields_of
from bough.tokenization.tokenizer import TokenIds, Tokenizer

_IDS_PER_PIECE = 65_536
"""Token ids written in one go, in which no other thread runs: about a millisecond."""

_CHARS_PER_TOKEN = 4

_NO_EFFECT = {"model": "Name of the model; the server serves one."}
_TOKEN_IDS_SCHEMA = {"type": "array", "items": {"type": "integer", "minimum": 0}}


class TokenizeRequest(msgspec.Struct, kw_only=True):
    """Body of ``/tokenize``."""

    prompt: Annotated[
        str | Annotated[list[str], Meta(min_length=1, max_length=MAX_OUTPUTS_PER_REQUEST)] | None,
        Meta(description="A text, or a list of texts. Either this or `messages`."),
    ] = None
    messages: Annotated[
        Annotated[list[ChatMessage], Meta(min_length=1, max_length=MAX_MESSAGES)] | None,
        Meta(description="A conversation as for `/v1/chat/completions`, tokenized as that would. Or `prompt`."),
    ] = None
    add_special_tokens: Annotated[
        bool, Meta(description="Add what the tokenizer puts around a text, such as BOS; only for `prompt`.")
    ] = True
    tools: Annotated[
        Annotated[list[Any], Meta(max_length=MAX_TOOLS)] | None,
        Meta(description="Functions that the model may call; this and what follows is only for `messages`."),
    ] = None
    tool_choice: Annotated[
        str | dict[str, Any] | None, Meta(description="With `none`, the conversation does not show the tools.")
    ] = None
    reasoning_effort: Annotated[
        Effort | Annotated[float, Meta(ge=0, lt=1)] | None, Meta(description="How much the model thinks.")
    ] = None
    reasoning: Annotated[Reasoning | None, Meta(description="`reasoning_effort` in another form.")] = None
    thinking: Annotated[
        bool | dict[str, Any] | None, Meta(description="Whether the model thinks: a boolean, or an object with `type`.")
    ] = None
    continue_final_message: Annotated[bool, Meta(description="Leave the last message open, to be gone on with.")] = (
        False
    )
    add_generation_prompt: Annotated[
        bool, Meta(description="End the prompt with the beginning of an assistant's message.")
    ] = True
    documents: Annotated[
        Annotated[list[dict[str, Any]], Meta(max_length=MAX_MESSAGES)] | None,
        Meta(description="Texts for templates that have a place for them: objects with `title` and `text`."),
    ] = None
    chat_template_kwargs: Annotated[dict[str, Any] | None, Meta(description="Variables of the chat template.")] = None
    return_token_strs: Annotated[bool, Meta(description="Add the vocabulary's entry of every token.")] = False


class DetokenizeRequest(msgspec.Struct, kw_only=True):
    """Body of ``/detokenize``."""

    tokens: Annotated[Any, Meta(description="Token ids, or a list of lists of them.")]
    skip_special_tokens: Annotated[bool, Meta(description="Leave special tokens out of the text.")] = True


_FOR_MESSAGES = (
    *("tools", "tool_choice", "reasoning_effort", "reasoning", "thinking", "continue_final_message"),
    *("add_generation_prompt", "documents", "chat_template_kwargs"),
)

TOKENIZE = BodySpec(
    TokenizeRequest,
    schemas=TOOL_FIELDS,
    example={"prompt": "The oak"},
    tidy={name: CHAT.tidy[name] for name in ("messages", "reasoning", "reasoning_effort")},
    extras={name: CHAT.extras[name] for name in ("messages", "reasoning")},
    translated={name: CHAT.translated[name] for name in ("think", "enable_thinking")},
    no_effect={
        **_NO_EFFECT,
        "parallel_tool_calls": "Whether one answer may hold several calls.",
        "user": "End user that the request is for.",
    },
    refused=fields_of("tokenize"),
)
DETOKENIZE = BodySpec(
    DetokenizeRequest,
    example={"tokens": [325, 951]},
    token_ids=frozenset({"tokens"}),
    schemas={"tokens": {"anyOf": [_TOKEN_IDS_SCHEMA, {"type": "array", "items": _TOKEN_IDS_SCHEMA}]}},
    no_effect=_NO_EFFECT,
)


class TokenizeAnswer(msgspec.Struct):
    """Token ids; lists of lists for a list of texts."""

    tokens: Annotated[
        list[TokenId | list[TokenId]],
        Meta(description="The token ids; a list of lists for a list of texts.", examples=[[325, 951]]),
    ]
    count: Annotated[Count | list[Count], Meta(description="Number of tokens; a list of numbers for a list of texts.")]
    max_model_len: Annotated[Count, Meta(description="Most tokens of a request, prompt and output together.")]
    token_strs: Annotated[
        list[str | list[str | None] | None] | UnsetType,
        Meta(description="The vocabulary's entry of every token; with `return_token_strs`."),
    ] = UNSET


class DetokenizeAnswer(msgspec.Struct):
    """Text; a list of texts for a list of lists."""

    text: Annotated[str | list[str], Meta(description="The text, or texts.", examples=["The oak"])]


class TokenizeHandlers(Handlers):
    """Answers ``/tokenize`` and ``/detokenize``; the work is done in the prompt encoder's threads."""

    @Route("POST /tokenize /v1/tokenize", OPENAI, TOKENIZE, TokenizeAnswer)
    async def tokenize(self, call: Call) -> Response:
        """Token ids of a text or a conversation."""
        body, given = await call.parse_given(TOKENIZE)
        if (body.prompt is None) == (body.messages is None):
            raise BadRequest("give either prompt or messages", param="prompt", code="missing_required_parameter")
        tokenizer, encoder = self._tools("prompt" if body.messages is None else "messages")
        if body.messages is not None:
            ids = await self._of_conversation(body, given, call.unknown)
            return Response(await encoder.run(_CHARS_PER_TOKEN * len(ids), lambda: self._json(body, tokenizer, [ids])))
        for name in _FOR_MESSAGES:
            if name in given:
                raise BadRequest(f"{name} needs messages", param=name)
        texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
        assert texts is not None, "one of both is given"
        params = ["prompt" if isinstance(body.prompt, str) else f"prompt[{index}]" for index in range(len(texts))]
        encoded = await encoder.encode(texts, params, add_special_tokens=body.add_special_tokens, bounded=False)
        return Response(await encoder.run(sum(map(len, texts)), lambda: self._json(body, tokenizer, encoded)))

    @Route("POST /detokenize /v1/detokenize", OPENAI, DETOKENIZE, DetokenizeAnswer)
    async def detokenize(self, call: Call) -> Response:
        """Text of token ids."""
        limits = self._manager.limits
        body, _ = await call.parse_given(DETOKENIZE, max_tokens=limits.context_len)
        tokenizer, encoder = self._tools("tokens")
        is_nested = isinstance(body.tokens, list) and len(body.tokens) > 0 and isinstance(body.tokens[0], (list, array))
        given = body.tokens if is_nested else [body.tokens]
        if len(given) > MAX_OUTPUTS_PER_REQUEST:
            raise BadRequest(f"tokens holds more than {MAX_OUTPUTS_PER_REQUEST} lists", param="tokens")
        lists: list[TokenIds] = []
        for index, each in enumerate(given):
            param = f"tokens[{index}]" if is_nested else "tokens"
            ids = pack_token_ids(each, param, may_be_empty=True)
            limits.check_token_ids(ids, param)
            lists.append(ids)

        def work() -> bytes:
            texts = [tokenizer.decode(ids, skip_special_tokens=body.skip_special_tokens) for ids in lists]
            return msgspec.json.encode(DetokenizeAnswer(texts if is_nested else texts[0]))

        return Response(await encoder.run(_CHARS_PER_TOKEN * sum(map(len, lists)), work))

    async def _of_conversation(self, body: TokenizeRequest, given: Set[str], unknown: Unknown | None) -> TokenIds:
        assert body.messages is not None, "checked"
        if not body.add_special_tokens:
            raise BadRequest("add_special_tokens needs prompt; a template writes its own", param="add_special_tokens")
        return await self._core.prompt(prompt_job(body, given, unknown), bounded=False)

    def _json(self, body: TokenizeRequest, tokenizer: Tokenizer, encoded: Sequence[TokenIds]) -> bytes:
        """The answer to ``/tokenize``: lists of lists if the prompt is a list."""
        is_list = isinstance(body.prompt, list)

        def listed(described: Callable[[TokenIds], Sequence[Any]]) -> msgspec.Raw:
            lists = [_in_pieces(ids, described) for ids in encoded]
            return msgspec.Raw(b"[%b]" % b",".join(lists) if is_list else lists[0])

        counts = [len(ids) for ids in encoded]
        answer: dict[str, Any] = {
            "tokens": listed(lambda ids: ids.tolist()),
            "count": counts if is_list else counts[0],
            "max_model_len": self._manager.limits.context_len,
        }
        if body.return_token_strs:
            answer["token_strs"] = listed(lambda ids: [tokenizer.id_to_token(token) for token in ids])
        return msgspec.json.encode(answer)

    def _tools(self, param: str) -> tuple[Tokenizer, PromptEncoder]:
        tokenizer, encoder = self._manager.tokenizer, self._manager.prompt_encoder
        if tokenizer is None or encoder is None:
            raise BadRequest(f"{param} needs a tokenizer, and this server has none", param=param)
        return tokenizer, encoder


def _in_pieces(ids: TokenIds, described: Callable[[TokenIds], Sequence[Any]]) -> bytes:
    pieces = (described(ids[start : start + _IDS_PER_PIECE]) for start in range(0, len(ids), _IDS_PER_PIECE))
    return b"[%b]" % b",".join(msgspec.json.encode(piece)[1:-1] for piece in pieces)
