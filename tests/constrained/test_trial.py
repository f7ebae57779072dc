from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest

from bough import child_trial
from bough.child_trial import TrialChild, TrialUnavailable
from bough.constrained import trial as module
from bough.constrained.base import GrammarError, mask_words
from bough.constrained.engine_errors import OF_THE_WHOLE
from bough.constrained.judge import MAX_MEMORY_BYTES, Case, Judge, TrialSetup
from bough.constrained.llguidance_backend import LLGuidanceBackend
from bough.constrained.masks import unpack
from bough.constrained.translate import Translator
from bough.constrained.trial import TrialBackend, needs_trial
from bough.constrained.vocabulary import vocabulary_of
from bough.sampling.sampling_params import GrammarKind, GrammarSpec
from tests.constrained.following import (
    EOS_IDS,
    allows,
    bundled_backend,
    bundled_tokenizer,
    bundled_vocabulary,
    encode,
    make_tokenizer,
    spec_of,
    with_special_tokens,
)

EXPONENTIAL = {"type": "string", "allOf": [{"pattern": f"a{i}"} for i in range(50)]}
"""The intersection of fifty languages: compiling it takes for ever."""


@pytest.fixture
def tried() -> Iterator[TrialBackend]:
    translator = Translator(special_tokens=bundled_tokenizer().special_token_ids)
    backend = TrialBackend(bundled_backend(), translator, bundled_vocabulary())
    yield backend
    backend.close()


def compile_with(tried: TrialBackend, spec: GrammarSpec) -> Any:
    return tried.compile(spec, 5.0)


def children() -> list[psutil.Process]:
    return [each for each in psutil.Process().children() if "bough.constrained.judge" in each.cmdline()]


def test_only_plain_grammars_need_no_trial() -> None:
    cases = [
        (spec_of("json_schema", {"type": "object", "properties": {"a": {"type": "integer"}}}), False),
        (spec_of("json_schema", {"properties": {"a": {"$ref": "#"}}}), True),
        (spec_of("json_schema", '{"\\u0070attern": "a"}'), True),
        (spec_of("json_schema", {"enum": ["x" * 20_000]}), True),
        (spec_of("choice", ["a", "b"]), False),
        (spec_of("regex", "a"), True),
        (spec_of("ebnf", 'root ::= "a"'), True),
        (spec_of("structural_tag", {}), True),
    ]
    for spec, expected in cases:
        assert needs_trial(spec) == expected


def test_what_survives_is_compiled(tried: TrialBackend) -> None:
    assert allows(compile_with(tried, spec_of("regex", "[a-c]+")), "abc")
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "x<|im_end|>"}}
    compile_with(tried, spec_of("structural_tag", tag))
    assert len(children()) == 1


def test_special_tokens_have_the_ids_of_the_model_whatever_these_are() -> None:
    special = {"<|call|>": 128_806, "<|end_of_call|>": 99_999}
    tokenizer = with_special_tokens(special)
    translator = Translator(special_tokens=tokenizer.special_token_ids)
    vocabulary = vocabulary_of(tokenizer, 129_000, EOS_IDS)
    backend = LLGuidanceBackend(make_tokenizer(tokenizer, 129_000, EOS_IDS), translator)
    tried = TrialBackend(backend, translator, vocabulary)
    parts = [
        {"type": "const_string", "value": "<|call|>"},
        {"type": "json_schema", "json_schema": {"type": "integer"}},
        {"type": "const_string", "value": "<|end_of_call|>"},
    ]
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": parts}}
    try:
        matcher = compile_with(tried, spec_of("structural_tag", tag)).matcher()
    finally:
        tried.close()
    words = np.zeros(mask_words(129_000), dtype=np.int32)
    matcher.fill_mask(words)
    assert np.flatnonzero(unpack(words[None], 129_000)[0]).tolist() == [special["<|call|>"]]
    for token in (special["<|call|>"], *encode("12"), special["<|end_of_call|>"]):
        assert matcher.accept(token)
    assert matcher.is_terminated


def test_a_child_that_answers_nonsense_is_ended(tried: TrialBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_with(tried, spec_of("regex", "a"))
    monkeypatch.setattr(TrialChild, "_read", lambda self, timeout_s: b"\xc1")
    with pytest.raises(msgspec.DecodeError):
        compile_with(tried, spec_of("regex", "b"))
    assert children() == []


def test_a_child_that_does_not_start_is_not_the_fault_of_the_grammar(
    tried: TrialBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for command, problem in [
        (["/no/such/program"], "cannot be started"),
        (["/bin/false"], "has ended"),
        (["/bin/sleep", "9"], "in 0.2 s"),
    ]:
        monkeypatch.setattr(module, "COMMAND", command)
        monkeypatch.setattr(child_trial, "START_SECONDS", 0.2)
        with pytest.raises(TrialUnavailable, match=problem):
            compile_with(tried, spec_of("regex", "a"))
        assert not [each for each in psutil.Process().children() if each.name() in ("sleep", "false")]


def test_what_is_wrong_is_told_and_the_child_goes_on(tried: TrialBackend) -> None:
    for _ in range(2):
        with pytest.raises(GrammarError, match=r"^regex: .*look-around"):
            compile_with(tried, spec_of("regex", "(?=a)"))
    assert len(children()) == 1


def test_what_takes_for_ever_is_ended_and_the_next_one_works(tried: TrialBackend) -> None:
    with pytest.raises(TimeoutError):
        tried.compile(spec_of("json_schema", EXPONENTIAL), 1.0)
    assert children() == []
    assert allows(compile_with(tried, spec_of("regex", "[a-c]+")), "abc")


def test_a_child_that_dies_is_an_error_of_its_grammar_alone(
    tried: TrialBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = TrialChild.ask

    def ask_and_die(self: TrialChild, case: Case, answer: Any, timeout_s: float) -> Any:
        if case.spec.text == "b":
            self._process.kill()
            self._process.wait()
        return ask(self, case, answer, timeout_s)

    monkeypatch.setattr(TrialChild, "ask", ask_and_die)
    for _ in range(2):
        with pytest.raises(GrammarError, match="too deep or too large"):
            compile_with(tried, spec_of("regex", "b"))
        assert children() == []
        assert allows(compile_with(tried, spec_of("regex", "a")), "a")


def test_a_child_that_has_died_before_it_is_asked_is_replaced(tried: TrialBackend) -> None:
    compile_with(tried, spec_of("regex", "a"))
    (child,) = children()
    child.kill()
    child.wait(5)
    assert allows(compile_with(tried, spec_of("regex", "b")), "b")


def test_ctrl_c_is_not_for_the_children(tried: TrialBackend) -> None:
    compile_with(tried, spec_of("regex", "a"))
    (child,) = children()
    child.send_signal(signal.SIGINT)
    assert allows(compile_with(tried, spec_of("regex", "b")), "b")
    assert children() == [child]


def test_how_many_cores_there_are_is_nothing_to_the_children(tried: TrialBackend) -> None:
    compile_with(tried, spec_of("regex", "a"))
    (child,) = children()
    assert {**child.environ(), **child_trial.ONE_THREAD} == child.environ()
    limit, _ = child.rlimit(resource.RLIMIT_AS)
    assert child.memory_info().vms < limit - MAX_MEMORY_BYTES + 2**29


def test_deep_chains_of_references_hurt_nobody(tried: TrialBackend) -> None:
    chain: dict[str, Any] = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(6000)}
    schema = {"$defs": {**chain, "d6000": {"const": "the end"}}, "$ref": "#/$defs/d0"}
    verdict = tried._try(spec_of("json_schema", schema), 60.0)
    if verdict.source is None:
        assert "too large" in (verdict.problem or "")
    else:
        assert "the end" in verdict.source


def tag_of(*patterns: str) -> GrammarSpec:
    parts = [{"type": "regex", "pattern": each} for each in patterns]
    tag = {"begin": "<a>", "content": {"type": "sequence", "elements": parts}, "end": "</a>"}
    return spec_of("structural_tag", {"type": "structural_tag", "format": {"type": "tag", **tag}})


def test_the_part_at_fault_is_named_with_its_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    judge, built = Judge(TrialSetup("", {}, bundled_vocabulary())), []
    build = judge._backend.build
    monkeypatch.setattr(judge._backend, "build", lambda kind, *args: (built.append(kind), build(kind, *args))[1])
    verdict = judge(Case(tag_of("[a-z]", "[a-z]", r"\bx", "[a-z]"), 60.0))
    assert "in the tag that begins with '<a>': invalid pattern" in (verdict.problem or "")
    assert built == ["structural_tag", "regex", "regex", "regex"]


def test_the_part_at_fault_is_looked_for_while_there_is_time_and_one_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    for problem, num_built in [("something is wrong with it", 5), (OF_THE_WHOLE[-1], 1)]:
        judge, now = Judge(TrialSetup("", {}, bundled_vocabulary())), [0.0]

        def build(kind: GrammarKind, source: str, num_bytes: int | None = None) -> None:
            now[0] += 1.0
            if kind == "structural_tag":
                raise GrammarError(problem, kind=kind)

        monkeypatch.setattr(judge._backend, "build", build)
        clock = SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: 0.0)
        monkeypatch.setattr("bough.constrained.judge.time", clock)
        verdict = judge(Case(tag_of(*["[a-z]"] * 100), 5.0))
        assert verdict.problem == problem
        assert now[0] == num_built


def test_children_end_with_the_backend(tried: TrialBackend) -> None:
    compile_with(tried, spec_of("regex", "a"))
    assert children()
    tried.close()
    assert children() == []
