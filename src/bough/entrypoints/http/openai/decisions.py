"""``POST /v1/decisions``: typed questions about a text, answered by the probabilities of the model's first word.

Nothing is generated. Each question is a prompt of its own, which begins with the text, so that all of them share it in
the prefix cache; and each possible answer has a label that is one token.
"""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bough.entrypoints.chat.job import NO_TOOLS, ChatJob
from bough.entrypoints.chat.tools import template_variables
from bough.entrypoints.http.asgi import Call, Response
from bough.entrypoints.http.fields import MAX_OUTPUTS_PER_REQUEST, BodySpec
from bough.entrypoints.http.openai.vector_protocol import TextParts, VectorFields, check_batch, plain_text
from bough.entrypoints.http.openai.vectors import VectorFrame
from bough.entrypoints.http.route import OPENAI, Handlers, Route
from bough.errors import BadRequest
from bough.managers.io_struct import new_request_id
from bough.managers.scoring import label_logprobs, softmax
from bough.other_engines import fields_of
from bough.tokenization.tokenizer import TokenIds, Tokenizer

MAX_OPTIONS = len(string.ascii_uppercase)
MAX_LEVELS = len(string.digits)

_NAME_CHARS = 256

QuestionId = Annotated[str, Meta(min_length=1, max_length=_NAME_CHARS, description="Its id.")]


class DecisionOption(msgspec.Struct, forbid_unknown_fields=True):
    """One of the answers to a question of the type ``choice``."""

    name: Annotated[Annotated[str, Meta(min_length=1, max_length=_NAME_CHARS)], Meta(description="Its name.")]
    description: Annotated[str | None, Meta(description="What the option means, for the model, behind its name.")] = (
        None
    )


class ChoiceQuestion(msgspec.Struct, tag_field="type", tag="choice", forbid_unknown_fields=True):
    """Asks which of several options it is."""

    id: QuestionId
    question: Annotated[str, Meta(description="What is asked.")]
    options: Annotated[
        Annotated[list[DecisionOption], Meta(min_length=2, max_length=MAX_OPTIONS)],
        Meta(description="The possible answers."),
    ]


class ScoreQuestion(msgspec.Struct, tag_field="type", tag="score", forbid_unknown_fields=True):
    """Asks where on a scale it is, of which the levels are described from the lowest one on."""

    id: QuestionId
    question: Annotated[str, Meta(description="What is asked.")]
    levels: Annotated[
        Annotated[list[str], Meta(min_length=2, max_length=MAX_LEVELS)],
        Meta(description="What each level of the scale means, the lowest first."),
    ]


class YesNoQuestion(msgspec.Struct, tag_field="type", tag="yes_no", forbid_unknown_fields=True):
    """Asks whether it is so; what ``yes`` and ``no`` mean can be said."""

    id: QuestionId
    question: Annotated[str, Meta(description="What is asked.")]
    yes: Annotated[str | None, Meta(description="What the answer yes means.")] = None
    no: Annotated[str | None, Meta(description="What the answer no means.")] = None


Question = ChoiceQuestion | ScoreQuestion | YesNoQuestion


class DecisionsBody(VectorFields, kw_only=True):
    """Body of ``/v1/decisions``."""

    input: Annotated[str | TextParts, Meta(description="What the questions are about: a text, or parts of one.")]
    questions: Annotated[
        Annotated[list[Question], Meta(min_length=1, max_length=MAX_OUTPUTS_PER_REQUEST)],
        Meta(
            description="`id`, `question` and a `type`: `choice` with `options` (`name`, `description`), `score` with "
            "`levels`, the lowest first, or `yes_no`, where `yes` and `no` may say what they mean."
        ),
    ]
    temperature: Annotated[
        Annotated[float, Meta(gt=0, le=10000)], Meta(description="Of the softmax over the answers to a question.")
    ] = 1.0
    chat_template_kwargs: Annotated[
        dict[str, Any] | None, Meta(description="Further variables of the chat template. Thoughts are off by default.")
    ] = None
    prompt_format_version: Annotated[
        Literal[1] | None, Meta(description="How questions are put to the model; there is one way so far.")
    ] = None
    return_prompt_token_ids: Annotated[bool, Meta(description="Say with each answer what the model was asked.")] = False


DECISIONS = BodySpec(
    DecisionsBody,
    example={
        "model": "sapling",
        "input": "The oak grows tall and loses its leaves in autumn.",
        "questions": [
            {"id": "green", "type": "yes_no", "question": "Is it evergreen?"},
            {"id": "height", "type": "score", "question": "How tall is it?", "levels": ["low", "as a house", "taller"]},
        ],
    },
    refused=fields_of("decisions"),
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as it is put to the model.

    Attributes:
        text: behind the input.
        labels: what the answers are called in it.
    """

    text: str
    labels: Sequence[str]

    @classmethod
    def of(cls, question: Question) -> _Asked:
        labels: Sequence[str]
        if isinstance(question, ChoiceQuestion):
            shown = [f"{each.name}: {each.description}" if each.description else each.name for each in question.options]
            labels, how = string.ascii_uppercase, "the letter of one option"
        elif isinstance(question, ScoreQuestion):
            shown, labels, how = question.levels, string.digits, "the number of one level"
        else:
            shown, labels, how = [question.yes or "", question.no or ""], ("Yes", "No"), "Yes or No"
        labels = labels[: len(shown)]
        lines = [f"{label}: {text}" if text else label for label, text in zip(labels, shown, strict=True)]
        return cls("\n".join([question.question, "", *lines, "", f"Answer with {how} and nothing else."]), labels)


class DecisionsAnswer(VectorFrame, kw_only=True):
    """Answer of ``/v1/decisions``: by the id of the question its ``type``, ``probabilities``, ``label_mass`` (what the
    model gives to the answers and to nothing else), and the likeliest ``choice`` or the mean level as ``score``."""

    object: Literal["decisions"]
    prompt_format_version: Annotated[Literal[1], Meta(description="Version of the prompts made of questions.")]
    answers: Annotated[
        dict[str, dict[str, Any]],
        Meta(
            description="By the id of the question: its type, the probability of each answer, and what comes of them.",
            examples=[{"green": {"type": "yes_no", "label_mass": 0.9, "probabilities": {"yes": 0.1, "no": 0.9}}}],
        ),
    ]


class DecisionsHandler(Handlers):
    """Answers ``/v1/decisions``."""

    @Route("POST /v1/decisions", OPENAI, DECISIONS, DecisionsAnswer)
    async def decide(self, call: Call) -> Response:
        """Answer typed questions about a text by probabilities, without generating."""
        manager = self._manager
        body = await call.parse(DECISIONS, keep=True)
        manager.limits.require_generation()
        if manager.tokenizer is None:
            raise BadRequest("this server has no tokenizer; use /v1/score with token ids", param="model")
        if self._core.dialect(NO_TOOLS).on_channels:
            raise BadRequest(
                "this model names a channel first, so that an answer is not what it says first",
                param="model",
                code="unsupported_by_model",
            )
        _check_names(body.questions)
        text, variables = plain_text(body.input), template_variables(body.chat_template_kwargs, "none", None, None)
        asked_each = [_Asked.of(question) for question in body.questions]
        check_batch(manager.server_args, "questions", "input", len(text), [len(asked.text) for asked in asked_each])
        prompts: list[TokenIds] = []
        labels: list[list[int]] = []
        for index, asked in enumerate(asked_each):
            where = f"questions[{index}]"
            message = {"role": "user", "content": f"{text}\n\n{asked.text}"}
            longer = "input" if len(text) > len(asked.text) else where
            job = ChatJob(messages=[message], template_kwargs=variables, prompt_param=longer)
            prompt = await self._core.prompt(job)
            if self._core.begins_in_reasoning(job, prompt):
                raise BadRequest(
                    "the model begins with thoughts, so that an answer is not what it says first; switch them off with "
                    "chat_template_kwargs",
                    param="chat_template_kwargs",
                    code="unsupported_by_model",
                )
            prompts.append(prompt)
            labels.append(_label_ids(manager.tokenizer, asked.labels, where))
        rid = body.rid or new_request_id()
        results = await label_logprobs(manager, prompts, labels, param="questions", rid=rid, extras=body.extras)
        answers = {}
        for question, prompt, logprobs in zip(body.questions, prompts, results, strict=True):
            answers[question.id] = _answer(question, logprobs, body.temperature)
            if body.return_prompt_token_ids:
                answers[question.id]["prompt_token_ids"] = prompt.tolist()
        num_tokens = sum(map(len, prompts))
        answer = {
            "object": "decisions",
            "model": self.model_name(body.model),
            "prompt_format_version": 1,
            "answers": answers,
            "usage": {"prompt_tokens": num_tokens, "total_tokens": num_tokens},
        }
        return Response(msgspec.json.encode(answer))


def _check_names(questions: Sequence[Question]) -> None:
    """Raise :class:`BadRequest` if two questions, or two options of one, have the same name."""
    _check_distinct([question.id for question in questions], "questions[{}].id")
    for index, question in enumerate(questions):
        if isinstance(question, ChoiceQuestion):
            _check_distinct([option.name for option in question.options], f"questions[{index}].options[{{}}].name")


def _check_distinct(names: Sequence[str], where: str) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            param = where.format(index)
            raise BadRequest(f"{param}: {name!r} is there already", param=param)
        seen.add(name)


def _label_ids(tokenizer: Tokenizer, labels: Sequence[str], where: str) -> list[int]:
    encoded = tokenizer.encode_batch(labels, add_special_tokens=False)
    ids = [each[0] for each in encoded if len(each) == 1]
    if len(set(ids)) < len(labels):
        raise BadRequest(
            f"{where}: the answers {', '.join(labels)} are not one token each in this model's vocabulary",
            param=where,
            code="unsupported_by_model",
        )
    return ids


def _answer(question: Question, logprobs: Sequence[float], temperature: float) -> dict[str, Any]:
    """What the logprobs of the labels say."""
    shares = softmax(logprobs, temperature)
    answer: dict[str, Any] = {"type": question.__struct_config__.tag, "label_mass": math.fsum(map(math.exp, logprobs))}
    if isinstance(question, ChoiceQuestion):
        names = [option.name for option in question.options]
        likeliest = names[shares.index(max(shares))]
        return {**answer, "probabilities": dict(zip(names, shares, strict=True)), "choice": likeliest}
    if isinstance(question, ScoreQuestion):
        mean = math.fsum(level * share for level, share in enumerate(shares))
        return {**answer, "probabilities": shares, "score": mean}
    return {**answer, "probabilities": dict(zip(("yes", "no"), shares, strict=True))}
