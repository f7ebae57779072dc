"""Child process of :mod:`bough.tokenization.text_trial`, started with ``python -m`` and its extra memory in bytes."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterator
from typing import Any

import jinja2

from bough.child_trial import answer_parent
from bough.errors import BoughError
from bough.tokenization.chat_template import load_chat_template
from bough.tokenization.loading import load_tokenizer
from bough.tokenization.template_budget import LimitExceeded
from bough.tokenization.template_sandbox import SandboxedTemplate
from bough.tokenization.text_trial import TrialSetup
from bough.tokenization.tokenizer import Tokenizer

_MAX_TOKEN_ID = 1 << 24

_MIXED = "Hello, world! It's 12:30 — naïve café, ﷺ ǰ 你好吗 😀\n\tdef f(x):\n    return x\n"
_PROBES = ("a", _MIXED, _MIXED * 40, "x" * 8192, " " * 2048, _MIXED * 400)

_MAX_TOKENS_PER_BYTE, _MAX_BYTES_PER_BYTE = 16, 64
_SLACK = 4096


def main() -> int:
    """Report problems with a tokenizer, then with its chat templates; an empty answer means none."""
    return answer_parent(TrialSetup, str, _Trial, memory_bytes=int(sys.argv[1]))


class _Trial:
    def __init__(self, setup: TrialSetup) -> None:
        self._path = os.fsdecode(setup.path)
        self._option = None if setup.chat_template is None else os.fsdecode(setup.chat_template)
        # The hard limit kills, should a library ignore the signal of the soft one.
        resource.setrlimit(resource.RLIMIT_CPU, (setup.cpu_seconds, setup.cpu_seconds + 2))
        self._tokenizer: Tokenizer | None = None

    def __call__(self, step: str) -> str:
        return self._problem(step).encode(errors="replace").decode()  # it may contain a path that is not UTF-8

    def _problem(self, step: str) -> str:
        try:
            problem = next(self._tokenizer_problems() if step == "tokenizer" else self._template_problems(), "")
        except BoughError as error:
            problem = error.message
            if self._path in problem or problem.startswith("--"):
                return problem
        except MemoryError:
            problem = f"the {step} takes too much memory"
        except BaseException as error:  # panics of the library are not subclasses of Exception
            problem = f"the {step} cannot be used: {type(error).__name__}: {error}"
        return problem and f"{self._path}: {' '.join(problem.split())[:500]}"

    def _tokenizer_problems(self) -> Iterator[str]:
        self._tokenizer = tokenizer = load_tokenizer(self._path)
        if tokenizer.highest_id >= _MAX_TOKEN_ID:
            yield f"the tokenizer has a token of the id {tokenizer.highest_id}, at most {_MAX_TOKEN_ID} are possible"
        for text in _PROBES:
            try:
                plain = tokenizer.encode(text, add_special_tokens=False)
                ids = tokenizer.encode(text)
                decoded = tokenizer.decode(ids, skip_special_tokens=False)
            except BoughError:
                raise
            except Exception as error:  # the library raises bare ``Exception``
                yield f"the tokenizer cannot encode a text and decode its tokens: {error}"
                return
            size = len(text.encode())
            if max(len(plain), len(ids)) > _MAX_TOKENS_PER_BYTE * size + _SLACK:
                yield f"the tokenizer makes {len(ids)} tokens of {size} bytes of text"
            if len(decoded) > _MAX_BYTES_PER_BYTE * size + _SLACK:
                yield f"the tokenizer's decoder makes {len(decoded)} characters of what were {size} bytes of text"
        tokenizer.encode_segments([("a", "b")], [None], ["text"])
        tokenizer.running_text_encoder()(_MIXED)
        for token_id in range(min(tokenizer.vocab_size, 256)):
            tokenizer.id_to_piece_bytes(token_id)

    def _template_problems(self) -> Iterator[str]:
        assert self._tokenizer is not None
        sources = self._tokenizer.chat_templates
        if self._option is None:
            # Render the default form first, so that an endless template is found before the many other renderings.
            with contextlib.suppress(jinja2.TemplateSyntaxError):  # reported below
                yield from self._beyond_limits({name: SandboxedTemplate(text) for name, text in sources.items()})
        template = load_chat_template(self._tokenizer, self._option)
        if template is not None:
            yield from self._beyond_limits(template.compiled)

    def _beyond_limits(self, templates: dict[str, SandboxedTemplate]) -> Iterator[str]:
        assert self._tokenizer is not None
        special = self._tokenizer.special.template_variables()
        for name, template in templates.items():
            for messages, tools in ((_CHAT[:1], None), (_CHAT, None), (_CHAT, _TOOLS)):
                shown = {"messages": messages, "tools": tools, "add_generation_prompt": True}
                try:
                    template.render({**special, **shown})
                except LimitExceeded as error:
                    yield f"the chat template ({name}) cannot render a short conversation: {error}"
                except Exception:
                    pass


_CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": _MIXED},
    {"role": "assistant", "content": _MIXED},
] * 3
_CHAT.append({"role": "user", "content": "a"})
_PARAMETERS = {"type": "object", "properties": {"a": {"type": "string", "description": "b"}}, "required": ["a"]}
_TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": _PARAMETERS}}]


if __name__ == "__main__":
    sys.exit(main())
