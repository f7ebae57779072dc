"""A conversation, as the text that a model was trained to see.

Templates come with checkpoints and messages from clients, so rendering is sandboxed and bounded
(:mod:`bough.tokenization.template_sandbox`). It can take seconds all the same: it belongs into a worker thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import msgspec

from bough.config.checkpoint import read_json
from bough.config.model_suggestions import path_like
from bough.config.options import did_you_mean
from bough.config.user_paths import path_kind, user_path
from bough.errors import BadRequest, ConfigError
from bough.tokenization.template_sandbox import SandboxedTemplate
from bough.tokenization.template_tools import MEMBERS, WHOLE, Member, Place, filled, find_place, without
from bough.tokenization.tokenizer import SpecialTokens, Tokenizer
from bough.tokenization.tokenizer_files import DEFAULT_TEMPLATE, read_template_file

_BUILTIN_DIRECTORY = Path(__file__).parents[1] / "assets" / "chat_templates"
BUILTIN_TEMPLATES = {path.stem: path for path in sorted(_BUILTIN_DIRECTORY.glob("*.jinja"))}
"""Files of the templates for ``--chat-template NAME``, for checkpoints that bring none.

They leave a BOS token to the tokenizer, which adds it where its model wants one."""

RERANKER_TEMPLATE = "qwen3-reranker"
"""Name of the template with which a language model judges documents."""

TOOL_TEMPLATE = "tool_use"
"""Name of the template that is taken for requests with tools, where a model has several."""

MAX_CALL_ELEMENTS = 65_536
"""Most commas and opening brackets in the arguments of one earlier call: what is decoded in a few milliseconds."""

_SLICE_CHARS = 65_536

Message = Mapping[str, Any]

_RESERVED = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "continue_final_message", "chat_template", "tokenize"}
)
_ROLES = ("system", "user", "assistant", "tool")
_PROBE = "probe-7f3a"
_KEY = "probe_key"
_QUESTION: Message = {"role": "user", "content": "a"}
_PARTS = "parts"
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", _PARTS)
"""Names under which templates read earlier thoughts; the first is the one used in requests."""
# An id of the length that templates of the Mistral family insist on.
_PROBE_CALL_ID = "probe7f3a"
_RESULT: Message = {"role": "tool", "content": "b", "tool_call_id": _PROBE_CALL_ID, "name": "probe_name"}
# The space at the end shows whether the template strips the text. Private-use characters keep it from being the text.
_END_OF_TEXT = "\ue0f1end\ue0f2 "


class _CallForm(NamedTuple):
    """How a template takes an assistant's message with tool calls."""

    arguments_as_text: bool
    """True if arguments are the JSON text of an object, not an object."""
    without_content: bool
    """True if content may be ``None``; some templates then leave out what they would write for an empty one."""


class ChatTemplate:
    """The chat template of a model: Jinja by name, of which one is called ``default`` unless there is only one.

    Raises:
        ConfigError: if a template is not valid Jinja.
    """

    def __init__(self, sources: Mapping[str, str], special: SpecialTokens) -> None:
        self.sources = dict(sources)
        """Jinja by name, for what wants to look at it (detecting parsers, showing it)."""
        self.compiled = {name: _compile(name, source) for name, source in sources.items()}
        """Compiled templates, by name."""
        self._variables = special.template_variables()
        self._no_tools: list[Any] | None = None
        self._thoughts_name = _THOUGHTS[0]
        self._joins_thoughts = False
        if self._try_messages([_QUESTION]) is None and self._try_messages([_QUESTION], tools=[]) is not None:
            self._no_tools = []  # some templates read the tools even if there are none
        # Templates for images take a list of parts, others a string, and many take both, but perhaps not for every
        # role. Templates do not declare this, so each role is tried.
        self._takes_text = {role: self._shows(role, _PROBE) for role in _ROLES}
        self._takes_parts = {role: self._shows_parts(role) for role in _ROLES}
        self._call_form = self._find_call_form()
        one, two = (self._try_calls(count) for count in (1, 2))
        shows_both = two is not None and (_KEY not in (one or "") or two.count(_KEY) > (one or "").count(_KEY))
        self.takes_several_calls = one is None or shows_both
        """True if an assistant's message may have more than one tool call, where it may have any."""
        self._shows_several_systems = self._shows_each("system", "system", "user")
        self._shows_later_systems = self._shows_each("system", "user", "system")
        self.insists_on_turns = not self._shows_each("user", "user")
        """True if another role has to come between two messages of a user."""
        self.tools_place = find_place(lambda told, more: self._try_messages(told, more, more.get("tools")))
        """Place from which the template takes functions; ``None``: it shows none."""
        self._thoughts_name = next((name for name in _THOUGHTS if self._shows_thoughts(name)), _THOUGHTS[0])
        self._joins_thoughts = self._takes_either()
        self._tool_members: tuple[Member, ...] = ()
        """Members of a tool's description without which the template fails."""
        if self._try_messages([_QUESTION], tools=[WHOLE]) is not None:
            self._tool_members = tuple(
                each for each in MEMBERS if self._try_messages([_QUESTION], tools=[without(each)]) is None
            )

    @property
    def shows_user(self) -> bool:
        """True if there is a place for what a user says."""
        return self._takes_text["user"] or self._takes_parts["user"]

    @property
    def shows_system(self) -> bool:
        """True if there is a place for what the system says."""
        return self._takes_text["system"] or self._takes_parts["system"]

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        continues: int = 0,
        kwargs: Mapping[str, Any] | None = None,
        where: str = "messages",
    ) -> str:
        """The prompt for a conversation.

        Args:
            messages: plain JSON objects with at least ``role``. ``content`` may be a string, a list of text parts, or
                absent, and the arguments of ``tool_calls`` an object or its JSON text: both are handed to the template
                in the form that the template takes.
            tools: descriptions of functions, as in the OpenAI API.
            documents: objects with ``title`` and ``text``.
            add_generation_prompt: whether the prompt ends with the beginning of an assistant's message.
            continue_final_message: end the prompt inside the last message instead, so that the model continues it.
            continues: so many messages at the beginning, with text, stand for an earlier part of the conversation: only
                what is written behind the text of the last of them is returned.
            kwargs: further variables of the template, such as ``enable_thinking``.
            where: what the client called the messages, for errors.

        Raises:
            BadRequest: if the template refuses the conversation, fails on it, or takes too long; if a part of a
                message is not text; if ``kwargs`` redefines what has a parameter of its own.
        """
        if not messages:
            raise BadRequest(f"{where} must not be empty", param=where)
        for name in kwargs or ():
            if name in _RESERVED or name in self._variables:
                field = f"chat_template_kwargs.{name}"
                raise BadRequest(f"{field} cannot be set", param=field)
        shown = [self._fit(message, f"{where}[{index - continues}]") for index, message in enumerate(messages)]
        if not continues and any(message.get("role") == "system" for message in shown[1:]):
            shown = self._with_all_systems(shown)
        if continues:
            shown[continues - 1] = _marked(shown[continues - 1], where)
        if continue_final_message:
            shown[-1] = _marked(shown[-1], f"{where}[{len(shown) - continues - 1}]")
        described = [filled(tool, self._tool_members) for tool in tools] if tools else self._no_tools
        name = Place.XML_TOOLS.value if self.tools_place is Place.XML_TOOLS else "tools"
        variables = {
            **self._variables,
            "tools": self._no_tools,
            name: described,
            **(kwargs or {}),
            "messages": shown,
            "documents": documents,
            "add_generation_prompt": add_generation_prompt and not continue_final_message,
        }
        try:
            text = _render(self._template_for(tools), variables, where)
        except BadRequest as error:
            if not tools or self._try_variables({**variables, name: self._no_tools}) is None:
                raise
            raise BadRequest(error.message.replace("these messages", "these tools"), param="tools") from None
        text = _up_to_mark(text) if continue_final_message else text
        return _from_mark(text, where) if continues else text

    def prompt_ends_with(self, marker: str, kwargs: Mapping[str, Any]) -> bool:
        """True if the prompt for a question ends with this marker, but for white space; false if it is refused."""
        shown = self._try_messages([self._fit(_QUESTION, "messages[0]")], kwargs)
        return shown is not None and shown.rstrip().endswith(marker.rstrip())

    def space_around(self, marker: str) -> tuple[str, str]:
        """White space that the template writes before and behind a marker between an assistant's thoughts and answer.

        Both are empty if it does not show thoughts.
        """
        thoughts, answer = f"{_PROBE}-thoughts", f"{_PROBE}-answer"
        told = {"role": "assistant", "content": answer, "reasoning_content": thoughts}
        shown = self._try_messages([self._fit(message, "messages") for message in (_QUESTION, told)])
        found = re.search(rf"{thoughts}(\s*){re.escape(marker)}(\s*){answer}", shown or "")
        return ("", "") if found is None else (found[1], found[2])

    def _template_for(self, tools: Sequence[Any] | None) -> SandboxedTemplate:
        if tools and TOOL_TEMPLATE in self.compiled:
            return self.compiled[TOOL_TEMPLATE]
        if DEFAULT_TEMPLATE in self.compiled:
            return self.compiled[DEFAULT_TEMPLATE]
        return next(iter(self.compiled.values()))

    # --- what the system says ---------------------------------------------------------------------------------------

    def _with_all_systems(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages, none of whose system texts is left out or refused because there are several.

        Where the template has no place for it, what stands at the beginning becomes one message, and what comes later
        part of what the user says.
        """
        told: list[dict[str, Any]] = []
        waiting: dict[str, Any] | None = None
        for index, message in enumerate(messages):
            is_system = message.get("role") == "system"
            is_first = is_system and all(each.get("role") == "system" for each in messages[:index])
            last = told[-1] if told else None
            if is_first and last is not None and not self._shows_several_systems:
                told[-1] = _joined(last, message)
            elif is_system and not is_first and not self._shows_later_systems:
                if last is not None and last.get("role") == "user":
                    told[-1] = _joined(last, message)
                else:
                    waiting = message if waiting is None else _joined(waiting, message)
            elif waiting is not None and message.get("role") == "user":
                told.append({**_joined(waiting, message), "role": "user"})
                waiting = None
            else:
                if waiting is not None:
                    told.append({**waiting, "role": "user"})
                    waiting = None
                told.append(message)
        return told if waiting is None else [*told, {**waiting, "role": "user"}]

    def _shows_each(self, *roles: str) -> bool:
        """True if the template shows every message of a short conversation."""
        texts = [f"{_PROBE}-{index}" for index in range(len(roles))]
        told = zip(roles, texts, strict=True)
        shown = self._try_messages([self._fit({"role": role, "content": text}, "messages") for role, text in told])
        return shown is not None and all(text in shown for text in texts)

    # --- content --------------------------------------------------------------------------------------------------

    def _shows_thoughts(self, name: str) -> bool:
        """True if the template shows earlier thoughts that are passed under this name."""
        if name == _PARTS and not self._takes_parts["assistant"]:
            return False
        calling = {"tool_calls": [self._fit_call(_call({}), "messages")]}
        for content, calls, results in (("b", {}, []), ("b", calling, [_RESULT]), ("", calling, [_RESULT])):
            told = {"role": "assistant", "content": content, **calls}
            shown = self._try_messages([_QUESTION, _with_thoughts(told, f"{_PROBE}-thoughts", name), *results])
            if shown is not None and f"{_PROBE}-thoughts" in shown and "'thinking'" not in shown:
                return True
        return False

    def _takes_either(self) -> bool:
        """True if a message with a call may have thoughts or text, and not both."""
        told = {"role": "assistant", "reasoning_content": "a", "tool_calls": [_call({_KEY: _PROBE})]}
        answers = [self._fit({**told, "content": content}, "messages") for content in ("b", "")]
        both, thoughts = (self._try_messages([_QUESTION, answer, _RESULT]) for answer in answers)
        return both is None and thoughts is not None

    def _fit(self, message: Message, where: str) -> dict[str, Any]:
        """Return the message with content, thoughts and tool calls in a form that the template accepts for its role."""
        fitted = self._fit_content(message, where)
        thoughts = fitted.get("reasoning_content")
        if not isinstance(thoughts, str) or not thoughts:
            return fitted
        text = fitted["content"]
        if self._joins_thoughts and isinstance(text, str) and text and fitted.get("tool_calls"):
            thoughts, fitted = f"{thoughts}\n\n{text}", {**fitted, "content": ""}
        if self._thoughts_name == _THOUGHTS[0]:
            return {**fitted, _THOUGHTS[0]: thoughts}
        return _with_thoughts(fitted, thoughts, self._thoughts_name)

    def _fit_content(self, message: Message, where: str) -> dict[str, Any]:
        role = message.get("role")
        content = message.get("content")
        takes_text = self._takes_text.get(role, True) if isinstance(role, str) else True
        takes_parts = self._takes_parts.get(role, False) if isinstance(role, str) else False
        calls = message.get("tool_calls")
        if content is None:
            content = None if calls and self._call_form.without_content else ""
        elif isinstance(content, str):
            if not takes_text and takes_parts:
                content = [{"type": "text", "text": content}]
        elif isinstance(content, list):
            texts = [_text_of(part, f"{where}.content[{index}]") for index, part in enumerate(content)]
            content = [{"type": "text", "text": text} for text in texts] if takes_parts else "\n".join(texts)
        else:
            raise BadRequest(f"{where}.content must be a string or a list of parts", param=f"{where}.content")
        if calls:
            return {**message, "content": content, "tool_calls": [self._fit_call(call, where) for call in calls]}
        return {**message, "content": content}

    def _fit_call(self, call: Any, where: str) -> Any:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or "arguments" not in function:
            return call
        return {**call, "function": {**function, "arguments": self._fit_arguments(function["arguments"], where)}}

    def _fit_arguments(self, arguments: Any, where: str) -> Any:
        if self._call_form.arguments_as_text:
            return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return call_arguments(arguments, where)

    def _find_call_form(self) -> _CallForm:
        forms = [_CallForm(as_text, without) for as_text in (False, True) for without in (True, False)]
        return next((form for form in forms if self._shows_calls(form)), _CallForm(False, False))

    def _shows_calls(self, form: _CallForm) -> bool:
        """True if the template shows a call in this form as a model is meant to write it."""
        shown = self._try_call(form, None if form.without_content else "")
        if shown is None or "probe_name" not in shown or _KEY not in shown:
            return False
        if form.without_content:
            usual = self._try_call(form, "")
            if shown.count("None") > (0 if usual is None else usual.count("None")):
                return False
        # an object shown as Python, or a text encoded once more
        return "'probe_key'" not in shown and '\\"probe_key' not in shown

    def _try_calls(self, count: int) -> str | None:
        """A message with so many calls, and their results; ``None`` if the template refuses it."""
        return self._try_call(self._call_form, None if self._call_form.without_content else "", count)

    def _try_call(self, form: _CallForm, content: str | None, count: int = 1) -> str | None:
        arguments = {_KEY: _PROBE}
        call = _call(json.dumps(arguments) if form.arguments_as_text else arguments)
        told = {"role": "assistant", "content": content, "tool_calls": [call] * count}
        return self._try_messages([_QUESTION, told, *[_RESULT] * count])

    def _shows_parts(self, role: str) -> bool:
        with_parts = self._try(role, [{"type": "text", "text": _PROBE}])
        with_two = self._try(role, [{"type": "text", "text": text} for text in ("a", _PROBE)])
        if with_parts is None or _PROBE not in with_parts or _PROBE not in (with_two or ""):
            return False
        if self._takes_text[role]:
            return with_parts == self._try(role, _PROBE)
        return f"'{_PROBE}'" not in with_parts and f'"{_PROBE}"' not in with_parts

    def _shows(self, role: str, content: str) -> bool:
        shown = self._try(role, content)
        return shown is not None and content in shown

    def _try(self, role: str, content: Any) -> str | None:
        """A short conversation with this content in a message of this role; ``None`` if the template refuses it."""
        message = {"role": role, "content": content}
        others: dict[str, list[Message]] = {"user": [message], "system": [message, _QUESTION]}
        return self._try_messages(others.get(role, [_QUESTION, message]))

    def _try_messages(
        self,
        messages: Sequence[Message],
        kwargs: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str | None:
        given = self._no_tools if tools is None else tools
        shown = {"messages": list(messages), "tools": given, "add_generation_prompt": True}
        return self._try_variables({**self._variables, **(kwargs or {}), **shown})

    def _try_variables(self, variables: Mapping[str, Any]) -> str | None:
        """Render the template for these variables; return ``None`` if it refuses them."""
        try:
            return _render(self._template_for(variables["tools"]), variables, "messages")
        except BadRequest:
            return None


def _call(arguments: Any) -> dict[str, Any]:
    function = {"name": "probe_name", "arguments": arguments}
    return {"id": _PROBE_CALL_ID, "type": "function", "function": function}


def _render(template: SandboxedTemplate, variables: Mapping[str, Any], where: str) -> str:
    try:
        return template.render(variables)
    except jinja2.TemplateError as error:
        # What a template says itself (``raise_exception``) is meant for the user as it stands.
        raise BadRequest(error.message or "the chat template refuses this conversation", param=where) from None
    except Exception as error:
        # Templates run into any kind of error on data that they do not expect.
        reason = "messages are nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadRequest(f"the chat template cannot render these messages: {reason}", param=where) from None


def _with_thoughts(message: Mapping[str, Any], thoughts: str, name: str) -> dict[str, Any]:
    """Return the message with its thoughts under ``name``, or as the first part of its content."""
    rest = {key: value for key, value in message.items() if key not in _THOUGHTS}
    if name != _PARTS:
        return {**rest, name: thoughts}
    content = rest.get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**rest, "content": [{"type": "thinking", "thinking": thoughts}, *parts]}


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The first of two messages with the text of both, which is there in one form or another."""
    contents = [first["content"], second["content"]]
    if all(isinstance(content, str) for content in contents):
        return {**first, "content": "\n\n".join(contents)}
    parts = [[{"type": "text", "text": each}] if isinstance(each, str) else each for each in contents]
    return {**first, "content": [*parts[0], *parts[1]]}


def reads_text_only(where: str, kind: object) -> BadRequest:
    """The error for a part of a message that is no text."""
    return BadRequest(
        f"{where}: this model reads text only, not {str(kind)[:40]!r}", param=where, code="unsupported_parameter"
    )


def call_arguments(arguments: Any, where: str) -> Any:
    """The arguments of a call as an object, if they are the JSON text of one; else as they are: a model may have
    written them so. Takes milliseconds for long ones, in which no other thread runs.

    Raises:
        BadRequest: if there are more values in them than can be decoded in one go.
    """
    if not isinstance(arguments, str):
        return arguments
    if not arguments or arguments.isspace():
        return {}
    _check_elements(arguments, where)
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return arguments  # a call that was cut off, for instance
    return value if isinstance(value, dict) else arguments


def _check_elements(text: str, where: str) -> None:
    elements = 0
    for start in range(0, len(text), _SLICE_CHARS):
        elements += sum(text.count(each, start, start + _SLICE_CHARS) for each in ",[{")
        if elements > MAX_CALL_ELEMENTS:
            raise BadRequest(
                f"{where}: the arguments of a tool call hold more than {MAX_CALL_ELEMENTS} values", param=where
            )


def load_chat_template(tokenizer: Tokenizer, option: str | None = None) -> ChatTemplate | None:
    """The chat template to serve with.

    Args:
        option: name of a built-in template, path of a ``.jinja`` file or of a JSON file with ``chat_template``; or
            ``None`` for the model's own.

    Returns:
        ``None`` if there is no option and the model has no template.

    Raises:
        ConfigError: if ``option`` is neither, or the template is not valid or shows nothing of what a user says; it
            names the file.
    """
    if option is None:
        return ChatTemplate(tokenizer.chat_templates, tokenizer.special) if tokenizer.chat_templates else None
    try:
        template = ChatTemplate({DEFAULT_TEMPLATE: _source_of(option)}, tokenizer.special)
        if not template.shows_user:
            raise ConfigError("it is no template of chats: nothing of what a user says is in its text")
    except ConfigError as error:
        raise _named(error, option) from None
    return template


def check_template_option(option: str) -> None:
    """Raise the :class:`ConfigError` that :func:`load_chat_template` would for an ``option``, without a tokenizer."""
    if option not in BUILTIN_TEMPLATES:
        try:
            _compile(DEFAULT_TEMPLATE, _source_of(option))
        except ConfigError as error:
            raise _named(error, option) from None


def _named(error: ConfigError, option: str) -> ConfigError:
    return ConfigError(f"--chat-template {option}: {error.message}", param="chat_template")


def _source_of(option: str) -> str:
    if option in BUILTIN_TEMPLATES:
        return read_template_file(BUILTIN_TEMPLATES[option])
    path = user_path(option)
    if path_kind(path, "chat_template") is None:
        known = ", ".join(BUILTIN_TEMPLATES)
        meant = did_you_mean(option, BUILTIN_TEMPLATES) or path_like(option)
        raise ConfigError(f"there is no file {path.absolute()}, nor a built-in template of that name ({known}){meant}")
    if not path.is_file():
        raise ConfigError("it is no file")
    if path.suffix != ".json":
        return read_template_file(path)
    content = read_json(path)
    source = content.get("chat_template") if isinstance(content, dict) else None
    if not isinstance(source, str):
        raise ConfigError('it has no string "chat_template" with a Jinja template')
    return source


def _compile(name: str, source: str) -> SandboxedTemplate:
    try:
        return SandboxedTemplate(source)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(
            f"the chat template ({name}) is not valid Jinja: {error.message} (line {error.lineno})",
            param="chat_template",
        ) from None


def _text_of(part: Any, where: str) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        text: str = part["text"]
        return text
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(kind, str) and kind != "text":
        raise reads_text_only(where, kind)
    raise BadRequest(f'{where} must be an object {{"type": "text", "text": …}}', param=where)


def _marked(message: dict[str, Any], where: str) -> dict[str, Any]:
    """The message with a mark at the end of its text."""
    content = message["content"]
    if isinstance(content, str) and content:
        return {**message, "content": content + _END_OF_TEXT}
    if isinstance(content, list) and content:
        *others, last = content
        return {**message, "content": [*others, {**last, "text": last["text"] + _END_OF_TEXT}]}
    raise BadRequest(f"continue_final_message: {where}.content has no text to continue", param="continue_final_message")


def _from_mark(text: str, where: str) -> str:
    mark = _END_OF_TEXT.rstrip()
    _, found, rest = text.partition(mark)
    if not found:
        raise BadRequest("the chat template does not show where an earlier message ends", param=where)
    return rest.removeprefix(_END_OF_TEXT[len(mark) :])


def _up_to_mark(text: str) -> str:
    mark = _END_OF_TEXT.rstrip()
    at = text.rfind(mark)
    if at < 0:
        raise BadRequest(
            "continue_final_message: the chat template does not show the end of the last message",
            param="continue_final_message",
        )
    # Without its space behind the mark the template has stripped the text, and would have stripped its own end.
    return text[:at] if text.startswith(_END_OF_TEXT, at) else text[:at].rstrip()
