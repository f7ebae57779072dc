"""From conversations to prompts: fitted to the template, rendered and encoded without holding up the event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bough.errors import BadRequest
from bough.managers.prompt_encoder import INLINE_CHARS, LANE_CHARS, PromptEncoder
from bough.tokenization.chat_template import ChatTemplate, Message
from bough.tokenization.tokenizer import TokenIds

Tools = Sequence[Mapping[str, Any]]
"""Descriptions of functions, as in OpenAI's chat API."""

Fit = Callable[[Sequence[Message], Tools, str], tuple[Sequence[Message], Tools | None]]
"""Puts messages and tools into a form that a template has a place for; the last argument is what the client called the
messages, for errors."""

_CHARS_PER_MESSAGE = 50
_CHARS_PER_DESCRIPTION = 400
_CHARS_PER_VALUE = 5
"""What templates write, and the time they take, besides the text that they are given."""

_MAX_VALUES = 4096


class ConversationEncoder:
    """Makes prompts of conversations; without a template or a tokenizer (in ``encoder``) it refuses them."""

    def __init__(self, template: ChatTemplate | None, encoder: PromptEncoder | None) -> None:
        self._template = template
        self._encoder = encoder

    async def encode(
        self,
        messages: Sequence[Message],
        *,
        tools: Tools = (),
        fit: Fit | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        behind: Sequence[Message] = (),
        template_kwargs: Mapping[str, Any] | None = None,
        where: str = "messages",
        keep: int | None = None,
        bounded: bool = True,
    ) -> TokenIds:
        """Return the prompt for a conversation: ``messages`` with ``role`` and ``content``, ``tools`` and
        ``documents``.

        Args:
            fit: adapts messages and tools to the template; called where the rest of the work is done.
            add_generation_prompt: whether the prompt ends with the beginning of an assistant's message.
            continue_final_message: let the model go on with the last message instead of answering it.
            behind: messages with text that stand for what comes before, which is not in the prompt: it begins behind
                the text of the last of them.
            template_kwargs: further variables of the template.
            where: what the client called the messages, for errors.
            keep: how many tokens of the prompt's end are wanted, at least; ``None``: all.
            bounded: whether a conversation that is certainly too long for the model is refused.

        Raises:
            BadRequest: if the model has no template, or the template cannot render this.
            PayloadTooLarge: if its text is longer than any may be that is encoded.
        """
        template, encoder = self._template, self._encoder
        if template is None or encoder is None:
            raise BadRequest(
                "this model has no chat template; use completions, or start the server with --chat-template",
                param=where,
                code="no_chat_template",
            )

        def render() -> str:
            every = [*behind, *messages]
            shown, described = fit(every, tools, where) if fit is not None else (every, tools or None)
            return template.render(
                shown,
                tools=described,
                documents=documents,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
                continues=len(behind) + len(shown) - len(every) if behind else 0,  # what is put in comes first
                kwargs=template_kwargs,
                where=where,
            )

        num_chars = _CHARS_PER_MESSAGE * len(messages) + _CHARS_PER_DESCRIPTION * (len(tools) + len(documents or ()))
        num_chars += text_size([messages, tools, documents])
        if template_kwargs:  # which can make a template slow whatever the messages are
            num_chars = max(num_chars, INLINE_CHARS + 1)
        return await encoder.encode_rendered(render, num_chars, where, keep=keep, bounded=bounded)


def text_size(value: Any, enough: int = LANE_CHARS[-1]) -> int:
    """Rough number of characters in a JSON value, wherever they are in it.

    Counting ends at ``enough``, or where there are more values than can be counted in half a millisecond.
    """
    total = num_values = 0
    pending = [value]
    while pending and total < enough:
        num_values += 1
        if num_values > _MAX_VALUES:
            return enough
        each = pending.pop()
        if isinstance(each, str):
            total += len(each)
        elif isinstance(each, (list, tuple)):
            total += _CHARS_PER_VALUE * len(each)
            pending.extend(each)
        elif each is not None and isinstance(each, (dict, Mapping)):  # asking an abstract class is slow
            total += _CHARS_PER_VALUE * len(each)
            pending.extend(each.values())
    return total
