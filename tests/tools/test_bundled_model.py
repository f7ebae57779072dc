"""What the bundled model is trained on and how, on a tiny scale."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import learn
import pytest
import torch
import torch.nn.functional as F
from documents import CHAT_TEMPLATE, MARKS, Call, Case, Document, Turn
from install import card
from learn import Documents, DocumentsAhead, Plan, Trainer
from measure import all_cases
from network import EMBEDDING, QUERY_BLOCK, Network, Shape, attend, new_parameters, pack
from optimizer import orthogonal
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from skills import SKILLS, arithmetic, draw, everyday_cases, everyday_table, extraction, lookup, tool_table, tooling
from tokenizers import Tokenizer, pre_tokenizers, trainers
from tokens import encode, train_tokenizer, untrained_tokenizer, with_twins
from transformers import AutoTokenizer, Qwen3ForCausalLM
from words import NOTHING, TEST_CITIES, TEST_NAMES, TEST_SURNAMES, TOKENIZER, Stage, Words, is_held_out, made_up
from write_model import write_model

from bough.parsers.detection import detect_reasoning_format, detect_tool_format
from bough.tokenization.chat_template import load_chat_template
from bough.tokenization.loading import load_tokenizer

TINY = Shape(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, head_dim=16)
PLAN = Plan(tokens=512, small_steps=3)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(documents=300)


@pytest.fixture(scope="module")
def drawn() -> dict[str, list[Document]]:
    rng = random.Random(5)
    return {name: [skill.document(rng) for _ in range(150)] for name, skill in SKILLS.items()}


def random_parameters(shape: Shape) -> dict[str, torch.Tensor]:
    """With nothing at zero, as in the middle of training."""
    generator = torch.Generator().manual_seed(1)
    return {
        name: value + 0.1 * torch.randn(value.shape, generator=generator)
        for name, value in new_parameters(shape, 0).items()
    }


def test_documents_are_what_the_chat_template_writes_and_their_tokens_those_of_the_whole_text(
    drawn: dict[str, list[Document]], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    write_model(tmp_path, random_parameters(TINY), TINY, tokenizer)
    template = AutoTokenizer.from_pretrained(tmp_path)
    assert template.chat_template == CHAT_TEMPLATE
    checked = 0
    for documents in drawn.values():
        for document in documents:
            if document.plain or any(turn.closed for turn in document.turns):
                continue
            text = template.apply_chat_template(
                [turn.to_message() for turn in document.turns],
                tools=[tool.to_api() for tool in document.tools] or None,
                tokenize=False,
            )
            assert document.text() == text
            assert encode(document, tokenizer)[0] == tokenizer.encode(text, add_special_tokens=False).ids
            checked += 1
    assert checked > 500


def test_prompts_of_cases_are_what_the_chat_template_writes(tokenizer: Tokenizer, tmp_path: Path) -> None:
    write_model(tmp_path, random_parameters(TINY), TINY, tokenizer)
    template = AutoTokenizer.from_pretrained(tmp_path)
    served = load_chat_template(load_tokenizer(str(tmp_path)))
    assert served is not None
    for case in all_cases(12):
        variables = {"enable_thinking": True} if case.thinking else {}
        text = template.apply_chat_template(
            [turn.to_message() for turn in case.turns],
            tools=[tool.to_api() for tool in case.tools] or None,
            tokenize=False,
            add_generation_prompt=True,
            **variables,
        )
        assert case.prompt() == text
        tools = [tool.to_api() for tool in case.tools] or None
        messages = [turn.to_message() for turn in case.turns]
        assert served.render(messages, tools=tools, kwargs=variables) == text
    assert detect_tool_format(CHAT_TEMPLATE) is not None
    assert detect_reasoning_format(CHAT_TEMPLATE) is not None
    closed = template.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True, enable_thinking=False
    )
    assert closed.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_training_has_no_held_out_name_and_no_held_out_sum(drawn: dict[str, list[Document]]) -> None:
    held_out = {*TEST_NAMES, *TEST_SURNAMES, *TEST_CITIES}
    for documents in drawn.values():
        for document in documents:
            text = document.text()
            assert not [word for word in held_out if f" {word}" in text or f'"{word}' in text], text
            # The card names those that the last stages have.
            words = {word for word in re.findall(r"[a-z-]+", text.lower()) if is_held_out(word)}
            assert words <= {"barber", "lawyer", "rehearsal", "pharmacy", "loan", "voucher"}, text
    rng = random.Random(1)
    assert not any(arithmetic.is_held_out(*arithmetic.draw(rng)) for _ in range(2000))
    tested = [arithmetic.draw(rng, test=True) for _ in range(300)]
    assert all(arithmetic.is_held_out(*drawn) for drawn in tested if drawn[0] != "x")


def test_documents_are_the_same_everywhere() -> None:
    """A run that is resumed, and a model that is trained again, must read what was read before."""
    rng, found = random.Random(2), hashlib.sha256()
    when = [(0.0, Stage.FIRST), (0.5, Stage.FIRST), *((1.0, stage) for stage in Stage)]
    for progress, stage in when:
        for _ in range(400):
            name, document = draw(rng, progress, stage)
            found.update(name.encode() + repr(list(document.pieces())).encode())
    assert found.hexdigest() == "ecd604e01e3766069f295400b235ab8b411e43234434531ac577cb01ee57c05c"


def test_drills_tell_what_is_there_from_what_is_not() -> None:
    words = Words(random.Random(4), stage=Stage.DRILLS)
    asks = [re.escape(ask).replace(r"\{n\}", "(.+)") for fact in lookup.FACTS for ask in fact.asks]
    found: set[bool] = set()
    for _ in range(100):
        told, *rest = (text for text, _ in tooling.drill(words).pieces())
        names = {json.loads(line)["name"] for line in told.splitlines()}
        answers = {answer.strip() for answer in rest[1::2]}
        assert answers <= {NOTHING, *map(json.dumps, names)}
        text, *rest = (text for text, _ in lookup.drill(words).pieces())
        for asked, answer in zip(rest[::2], rest[1::2], strict=False):
            matches = [re.fullmatch(ask, asked.removesuffix(" <-")) for ask in asks]
            is_there = any(re.search(rf"\b{re.escape(match[1])}\b", text) for match in matches if match)
            assert is_there == (answer.strip() != NOTHING), (text, asked, answer)
            found.add(is_there)
    assert found == {True, False}


def normal(text: str) -> str:
    """What is left where case and marks do not count, but for the signs of sums."""
    return re.sub(r"[^a-z0-9+*=<>?-]+", " ", text.lower()).strip(" ?")


def test_training_has_no_question_and_no_sum_of_the_cases(drawn: dict[str, list[Document]]) -> None:
    rng = random.Random(3)
    documents = [document for _, document in (draw(rng) for _ in range(1500))]
    documents += [document for ours in drawn.values() for document in ours]
    first = {normal(document.turns[0].content) for document in documents if document.turns}
    asked = [normal(case.turns[0].content) for case in all_cases(200) if len(case.turns) == 1]
    assert len(asked) > 1000
    assert [question for question in asked if question and question in first] == []
    for document in documents:
        for a, sign, b in re.findall(r"(?<![\d=+x*-] )(?<![\d-])(\d\d?) ?([+-]) ?(\d\d?)(?!\d)", document.text()):
            assert not arithmetic.is_held_out(sign, int(a), int(b)), document.text()


def test_calls_are_of_what_was_offered_by_its_own_names(drawn: dict[str, list[Document]]) -> None:
    table = {name for skill in tool_table.SKILLS for name in skill.names}
    named, near = 0, 0
    for document in drawn["everyday tools"]:
        offered = {tool.name: set(tool.parameters) for tool in document.tools}
        for call in (call for turn in document.turns for call in turn.calls):
            assert offered[call.name] >= set(call.arguments), document.text()
    for document in drawn["tools"]:
        offered = {tool.name: set(tool.parameters) for tool in document.tools}
        called = [call for turn in document.turns for call in turn.calls]
        for call in called:
            assert offered[call.name] == set(call.arguments), document.text()
        names = [name.split("_")[0] for name in offered]
        near += any(names.count(verb) > 1 for verb in tool_table.VERBS)
        named += any(call.name not in table and call.name.split("_")[0] not in tool_table.VERBS for call in called)
    assert min(named, near) > 5, "tools that have a name of their own, and tools of one verb"
    known = [tool.name for case in all_cases(60) for tool in case.tools]
    known = [name for name in known if name not in everyday_cases.TOOLS]
    table |= {
        name.lower().replace("_", "") for kind in everyday_table.EVERYDAY + everyday_table.UNSEEN for name in kind.names
    }
    assert all(
        name in table or name.lower().replace("_", "") in table or name.split("_")[0] in tool_table.VERBS
        for name in known
    )


def test_requests_for_everyday_tools_are_held_out_by_their_wording() -> None:
    def pattern(text: str) -> str:
        return re.sub(r"[^a-z{}]+", " ", re.sub(r"\{\w+\}", "{}", text).lower()).strip()

    kinds = everyday_table.EVERYDAY
    known = {pattern(ask) for asks in (*kinds, *tool_table.SKILLS) for ask in asks.asks}
    held_out = [ask for kind in (*kinds, *everyday_table.UNSEEN) for ask in kind.test_asks]
    for asked, call in everyday_cases.requests():
        for value in call.arguments.values():
            asked = asked.replace(str(value), "{}")
        held_out.append(asked)
    assert len(held_out) > 250
    assert [ask for ask in held_out if pattern(ask) in known] == []
    names = {name for kind in kinds for name in kind.names}
    assert not names & {name for kind in everyday_table.UNSEEN for name in kind.names}


def test_conversations_with_tools_use_several_and_lack_some(drawn: dict[str, list[Document]]) -> None:
    several = refused = 0
    for document in drawn["tools"]:
        called = {call.name for turn in document.turns for call in turn.calls}
        said = [turn.content for turn in document.turns if turn.role == "assistant"]
        several += len(called) > 1
        refused += bool(called) and not set(said).isdisjoint(tooling.NO_TOOL)
    assert several > len(drawn["tools"]) // 10
    assert refused > len(drawn["tools"]) // 20, "requests that no tool fits, beside others"


def test_notes_tell_a_value_of_one_person_alone() -> None:
    for seed in range(400):
        _, rows, strangers = lookup.notes(Words(random.Random(seed), test=seed % 2 == 0), 12)
        values = [value for _, _, value in rows]
        assert values
        assert len({*values, *strangers, *(person for person, _, _ in rows)}) == 2 * len(rows) + 1


def test_records_of_a_list_have_values_in_common_in_training() -> None:
    def shared(test: bool) -> int:
        words = Words(random.Random(3), test)
        lists = [value for _ in range(400) for _, value in extraction.task(words)[0] if isinstance(value, list)]
        assert len(lists) > 20
        return sum(
            str(value) == str(above[key])
            for rows in lists
            for above, row in pairwise(rows)
            for key, value in row.items()
        )

    assert shared(test=False) > shared(test=True)


def test_every_case_has_something_to_judge() -> None:
    for case in all_cases(60):
        assert not case.is_right("Hm.</think>" * case.thinking + "Perhaps."), case


def test_what_is_copied_is_the_same_tokens_in_a_sentence_and_in_json(tokenizer: Tokenizer) -> None:
    def tokens(text: str) -> list[str]:
        return [tokenizer.id_to_token(token) for token in tokenizer.encode(text, add_special_tokens=False).ids]

    name = tokens("Quirrelina")
    for text in ("I am Quirrelina.", 'I am "Quirrelina".', '{"name": "Quirrelina", "age": 7}', "(Quirrelina)"):
        found = tokens(text)
        assert any(found[at : at + len(name)] == name for at in range(len(found))), found
    assert tokens("12+34")[0::1] == ["1", "2", "+", "3", "4"]


def test_marks_of_thoughts_and_calls_are_single_tokens_and_part_of_the_text(tokenizer: Tokenizer) -> None:
    for mark in MARKS:
        (token,) = tokenizer.encode(mark, add_special_tokens=False).ids
        assert tokenizer.decode([token]) == mark
    assert tokenizer.decode(tokenizer.encode("<|im_end|>", add_special_tokens=False).ids) == ""


def test_any_text_survives_the_tokenizer(tokenizer: Tokenizer) -> None:
    for text in ("Grüße, 世界!\n\n\t x  y ", "a'b's \"c\"--{}[]\r\n", "\u0000\ud7ff🙂ÀÉ 1234.5e-6"):
        assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    ("case", "right", "wrong"),
    [
        (Case("", [], number=12), "5 + 7 = 12.", "5 + 12 = 7."),
        (Case("", [], value={"a": 1, "b": None}), '{"a": 1, "b": null}', '{"b": null, "a": 1}'),
        (Case("", [], exactly="x y"), "x y\n", "x y."),
        (Case("", [], contains=("Oak",), lacks=("elm",)), "An oak.", "An oak, an elm."),
        (Case("", [], contains=("7",)), "Room 7.", "Room 71."),
        (Case("", [], opening="Ahoy!", ending="Bye."), "Ahoy! I am. Bye.", "I am. Bye."),
        (Case("", [], thinking=True, number=3), "1 + 2: 3\n</think>\n\n3", "3"),
        (
            Case("", [], calls=(Call("f", {"a": 1}),)),
            '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
            'Well. <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        ),
        (Case("", [], contains=("f",)), "f", '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'),
    ],
)
def test_answers_are_judged(case: Case, right: str, wrong: str) -> None:
    assert case.is_right(right)
    assert not case.is_right(wrong)


def test_thoughts_of_sums_are_true() -> None:
    for sign, a, b in (("+", 47, 38), ("+", 12, 30), ("-", 52, 38), ("-", 30, 45), ("x", 7, 8), ("+", 99, 99)):
        thought = arithmetic.thought(sign, a, b)
        for part in thought.replace(", ", ". ").split(". "):
            if " = " in part:
                left, right = part.rpartition(": ")[2].replace("x", "*").rstrip(".").split(" = ")
                assert eval(left) == int(right), thought
        assert str(arithmetic.result(sign, a, b)) in thought


def test_losses_are_those_of_transformers(
    drawn: dict[str, list[Document]], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    parameters = random_parameters(TINY)
    encoded = [(*encode(documents[0], tokenizer), number) for number, documents in enumerate(drawn.values())]
    batch = pack(encoded, sum(len(ids) for ids, *_ in encoded))
    losses = Network(TINY).losses(parameters, batch)[batch.wanted >= 0]
    write_model(tmp_path, parameters, TINY, tokenizer)
    model = Qwen3ForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    expected = []
    for ids, learned, _ in sorted(encoded, key=lambda document: len(document[0])):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        every = F.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="none")
        expected.append(every[torch.tensor(learned[1:])])
    torch.testing.assert_close(losses, torch.cat(expected), atol=0.05, rtol=0.02)


def test_documents_attend_in_groups_and_in_blocks_of_queries_as_if_at_once() -> None:
    torch.manual_seed(0)
    keys, each, groups = 2, 4, [(3, 32), (1, QUERY_BLOCK), (2, QUERY_BLOCK + 32), (1, 2 * QUERY_BLOCK + 64)]
    mask = torch.full((QUERY_BLOCK, QUERY_BLOCK), -math.inf, dtype=torch.float64).triu(1).repeat_interleave(each, 0)
    places = sum(rows * width for rows, width in groups)
    flat = torch.randn(places * keys * (each + 2), 16, dtype=torch.float64, requires_grad=True)
    expected, at = [], 0
    for rows, width in groups:
        sizes = [rows * width * keys * count for count in (each, 1, 1)]
        parts = flat[at : at + sum(sizes)].split_with_sizes(sizes)
        q, k, v = (part.view(rows, keys, width, -1, 16).transpose(2, 3) for part in parts)
        at += sum(sizes)
        every = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)
        expected.append(every.transpose(2, 3).flatten(0, 3))
    attended = attend(flat, mask, groups, keys, each)
    torch.testing.assert_close(attended, torch.cat(expected))
    gradient = torch.randn_like(attended)
    (found,) = torch.autograd.grad(attended, flat, gradient)
    (wanted,) = torch.autograd.grad(torch.cat(expected), flat, gradient)
    torch.testing.assert_close(found, wanted)


def test_documents_that_another_process_writes_are_the_same(tokenizer: Tokenizer) -> None:
    here, there = Documents(tokenizer, PLAN), DocumentsAhead(tokenizer, PLAN)
    for step in (0, 1, 2, 1):
        for expected, found in zip(here.batches(step), there.batches(step), strict=True):
            assert torch.equal(expected.ids, found.ids)
            assert torch.equal(expected.wanted, found.wanted)
            assert expected.groups == found.groups


def test_updates_of_matrices_have_singular_values_of_about_one() -> None:
    torch.manual_seed(0)
    for shape in ((32, 32), (64, 16), (16, 64)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape)).float())
        assert values.min() > 0.3
        assert values.max() < 1.4


def test_a_run_that_was_cut_and_has_two_threads_learns_what_a_whole_one_learns(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    def trainer(threads: int = 1) -> Trainer:
        return Trainer(TINY, PLAN, Documents(tokenizer, PLAN), compiled=False, threads=threads)

    def loss(trainer: Trainer) -> float:
        (first, _) = Documents(tokenizer, PLAN).batches(0)
        return float(Network(TINY, False).losses(trainer.parameters, first).mean())

    whole, cut, resumed = trainer(), trainer(2), trainer(2)
    before = loss(whole)
    for _ in range(4):
        whole.advance()
    for _ in range(2):
        cut.advance()
    cut.save(tmp_path / "state.safetensors")
    resumed.load(tmp_path / "state.safetensors")
    for _ in range(2):
        resumed.advance()
    assert resumed.step == whole.step == 4
    for name, value in whole.parameters.items():
        assert torch.equal(resumed.parameters[name], value), name
        assert torch.equal(resumed.average[name], whole.average[name]), name
    assert loss(whole) < before


def header(path: Path) -> dict[str, str]:
    with safe_open(path, "pt") as file:
        return dict(file.metadata())


def test_a_fall_that_was_cut_goes_on_where_it_was(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learn, "Shape", lambda vocab_size=0: TINY)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    seen: list[float] = []
    advance = Trainer.advance

    def noted(trainer: Trainer, scale: float = 1.0) -> Any:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(scale)
        return advance(trainer, scale)

    monkeypatch.setattr(Trainer, "advance", noted)

    def finish(name: str, steps: int = 4) -> dict[str, torch.Tensor]:
        out = tmp_path / name
        flags = ["--finish", str(steps), "--save-every", "0", "--log-every", "1", "--out", str(out)]
        monkeypatch.setattr("sys.argv", ["learn.py", "--run", str(tmp_path), "--tokens", "256", *flags])
        learn.main()
        return load_file(out / "model.safetensors")

    with pytest.raises(KeyboardInterrupt):
        finish("cut")
    first = seen.copy()
    seen[:] = [0.0] * 4
    resumed = finish("cut")
    assert [*first, *seen[4:]] == [1.0, 0.75, 0.5, 0.25]
    whole = finish("whole")
    assert seen[5:] == [1.0, 0.75, 0.5, 0.25]
    assert all(torch.equal(whole[name], value) for name, value in resumed.items())
    # Another fall begins where the run is, and so does one of a run that has learned something else.
    seen[:] = [0.0] * 2
    with pytest.raises(KeyboardInterrupt):
        finish("other", steps=2)
    seen[:] = [0.0] * 4
    finish("another", steps=4)
    assert seen[4:] == [1.0, 0.75, 0.5, 0.25]
    monkeypatch.setattr("sys.argv", ["learn.py", "--run", str(tmp_path), "--tokens", "256", "--steps", "2"])
    learn.main()
    seen[:] = [0.0] * 2
    with pytest.raises(KeyboardInterrupt):
        finish("further", steps=2)
    state = tmp_path / "state.safetensors"
    save_file({name: value * 2 for name, value in load_file(state).items()}, state, header(state))
    seen[:] = [0.0] * 4
    finish("further", steps=2)
    assert seen[4:] == [1.0, 0.5], "not what was cut"


def test_a_run_goes_on_only_with_the_seed_and_tokens_of_its_state(tokenizer: Tokenizer, tmp_path: Path) -> None:
    def trainer(plan: Plan) -> Trainer:
        return Trainer(TINY, plan, Documents(tokenizer, plan), compiled=False)

    state = tmp_path / "state.safetensors"
    trainer(PLAN).save(state)
    trainer(PLAN).load(state)
    with pytest.raises(ValueError, match="--seed 11, not 12"):
        trainer(replace(PLAN, seed=12)).load(state)
    with pytest.raises(ValueError, match="--tokens 512, not 256"):
        trainer(replace(PLAN, tokens=256)).load(state)
    with pytest.raises(ValueError, match="--small-steps 3, not 2000"):
        trainer(replace(PLAN, small_steps=2000)).load(state)
    save_file(load_file(state), state, {name: value for name, value in header(state).items() if name != "small_steps"})
    with pytest.raises(ValueError, match="has no 'small_steps'"):
        trainer(PLAN).load(state)


def test_the_card_says_what_the_weights_say_of_their_training(tokenizer: Tokenizer, tmp_path: Path) -> None:
    plan = replace(PLAN, seed=9)
    trainer = Trainer(TINY, plan, Documents(tokenizer, plan), compiled=False)
    trainer.step = 1234
    write_model(tmp_path, trainer.parameters, TINY, tokenizer, trainer.told() | {"fall": "234"})
    text = card(tmp_path, "| the table |", "| from outside |", "| the modes |")
    assert f"{(1234 + 1231) * 512 / 1e6:.1f} million tokens in 1,234 steps" in text
    assert "--run RUN0 --compile --seed 9 --tokens 512 --small-steps 3 --steps 1000\n" in text
    assert "--run RUN0 --compile --seed 9 --tokens 512 --small-steps 3 --finish 234 --out MODEL0\n" in text
    assert "install.py --model MODEL0\n" in text
    assert "| the table |" in text
    assert "| from outside |" in text
    assert "| the modes |" in text


def test_a_finished_model_is_trained_further_with_documents_that_it_has_not_read(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trainer() -> Trainer:
        return Trainer(TINY, PLAN, Documents(tokenizer, PLAN), compiled=False)

    finished, further = trainer(), trainer()
    for _ in range(3):
        finished.advance()
    write_model(tmp_path, finished.parameters, TINY, tokenizer, finished.told() | {"fall": "2"})
    further.start(tmp_path)
    assert further.step == further.begun == 3
    for name, value in finished.parameters.items():
        assert torch.equal(further.parameters[name], value.bfloat16().float()), name
        assert torch.equal(further.average[name], further.parameters[name]), name
    read = []
    batches = further._documents.batches
    monkeypatch.setattr(further._documents, "batches", lambda step: read.append(step) or batches(step))
    further.advance()
    assert read == [3]
    # The first step is as small as that of a new run.
    moved = further.parameters[EMBEDDING] - finished.parameters[EMBEDDING].bfloat16()
    assert 0.5 < moved.abs().max() / (PLAN.rate / PLAN.warmup) < 1.5
    further.save(tmp_path / "state.safetensors")
    resumed = trainer()
    resumed.load(tmp_path / "state.safetensors")
    assert (resumed.step, resumed.begun, resumed.falls) == (4, 3, ["1-3"])
    write_model(tmp_path, resumed.parameters, TINY, tokenizer, resumed.told() | {"fall": "1"})
    text = card(tmp_path, "", "", "")
    assert "--run RUN0 --compile --seed 11 --tokens 512 --small-steps 3 --steps 1\n" in text
    assert "--run RUN1 --compile --seed 11 --tokens 512 --small-steps 3 --start MODEL0 --steps 3\n" in text
    assert "--run RUN1 --compile --seed 11 --tokens 512 --small-steps 3 --finish 1 --out MODEL1\n" in text
    other = Trainer(TINY, replace(PLAN, seed=12), Documents(tokenizer, PLAN), compiled=False)
    with pytest.raises(ValueError, match="--seed 11, not 12"):
        other.start(tmp_path)
    wider = Trainer(replace(TINY, hidden_size=48), PLAN, Documents(tokenizer, PLAN), compiled=False)
    with pytest.raises(ValueError, match="has another shape"):
        wider.start(tmp_path)
    write_model(tmp_path, finished.parameters, TINY, tokenizer)
    with pytest.raises(ValueError, match="has no 'begun'"):
        trainer().start(tmp_path)
    write_model(tmp_path, finished.parameters, TINY, tokenizer, finished.told())
    with pytest.raises(ValueError, match="has no 'fall'"):
        trainer().start(tmp_path)


@pytest.fixture(scope="module")
def plain() -> Tokenizer:
    """Learned from text alone, in which some words are common enough to be tokens behind a space."""
    tokenizer = untrained_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    text = "the hospital of the peaches and crayons, an auction of butchers in the hospital; the crayons of a clerk"
    tokenizer.train_from_iterator([text] * 9 + ["the and"], trainer)
    return tokenizer


class TestTwins:
    """Words that are one token behind a space are one token behind a quotation mark."""

    def test_a_word_is_one_token_with_and_without_the_space(self, plain: Tokenizer) -> None:
        wide = with_twins(plain)
        for word in ("hospital", "peaches", "crayons", "auction"):
            assert len(plain.encode(f" {word}").ids) == 1 < len(plain.encode(word).ids)
            assert wide.encode(f" {word}").ids == plain.encode(f" {word}").ids
            assert wide.encode(word).tokens == [word]
        for text in ("The Peaches, 12:30!", " of the hospital", '"a"'):
            assert wide.encode(text).ids == plain.encode(text).ids

    def test_a_word_of_several_tokens_has_the_same_with_and_without_the_space(
        self, plain: Tokenizer, tokenizer: Tokenizer
    ) -> None:
        def without_space(tokens: list[str]) -> list[str]:
            return [token for token in (tokens[0].removeprefix("Ġ"), *tokens[1:]) if token]

        rng = random.Random(1)
        words = [made_up(rng) for _ in range(300)]
        differing = {
            kind: [
                word for word in words if without_space(tokens.encode(f" {word}").tokens) != tokens.encode(word).tokens
            ]
            for kind, tokens in (("plain", plain), ("wide", with_twins(plain)), ("trained", tokenizer))
        }
        assert differing.pop("plain")
        assert differing == {"wide": [], "trained": []}

    def test_what_there_was_stays_as_it_was(self, plain: Tokenizer, tokenizer: Tokenizer) -> None:
        wide = with_twins(plain)
        assert wide.get_vocab().items() >= plain.get_vocab().items()
        assert sorted(wide.get_vocab().values()) == list(range(wide.get_vocab_size()))
        assert with_twins(wide).to_str() == wide.to_str()
        assert with_twins(tokenizer).to_str() == tokenizer.to_str()
        for text in ('{"place": "hospital", "n": 2}', "unhospitable\n\tcrayonsclerk 12 Peaches", "žluťoučký"):
            assert wide.decode(wide.encode(text).ids) == text


def test_the_card_tells_of_a_fall_that_began_at_a_part_of_the_rate(tokenizer: Tokenizer, tmp_path: Path) -> None:
    def trainer() -> Trainer:
        return Trainer(TINY, PLAN, Documents(tokenizer, PLAN), compiled=False)

    finished, further = trainer(), trainer()
    finished.step = 2
    write_model(tmp_path, finished.parameters, TINY, tokenizer, finished.told() | {"fall": "2", "scale": "0.3"})
    further.start(tmp_path)
    assert further.falls == ["0-2@0.3"]
    further.step = 3
    write_model(tmp_path, further.parameters, TINY, tokenizer, further.told() | {"fall": "1", "scale": "1e-05"})
    text = card(tmp_path, "", "", "")
    assert "--run RUN0 --compile --seed 11 --tokens 512 --small-steps 3 --finish 2 --scale 0.3 --out MODEL0\n" in text
    assert "--run RUN1 --compile --seed 11 --tokens 512 --small-steps 3 --start MODEL0 --steps 2\n" in text
    assert "--run RUN1 --compile --seed 11 --tokens 512 --small-steps 3 --finish 1 --scale 1e-05 --out MODEL1\n" in text


def test_a_run_takes_the_tokenizer_of_what_it_starts_from(
    plain: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model, run = tmp_path / "model", tmp_path / "run"
    shape = Shape(vocab_size=plain.get_vocab_size())
    plan = Plan(tokens=512)
    trainer = Trainer(shape, plan, Documents(plain, plan), compiled=False)
    trainer.step = 2
    write_model(model, trainer.parameters, shape, plain, trainer.told() | {"fall": "1"})

    def learn_from(*arguments: str) -> None:
        monkeypatch.setattr("sys.argv", ["learn.py", "--run", str(run), "--tokens", "512", *arguments])
        learn.main()

    learn_from("--start", str(model), "--steps", "2")
    assert Tokenizer.from_file(str(run / "tokenizer.json")).to_str() == plain.to_str()
    shutil.copyfile(TOKENIZER, run / "tokenizer.json")
    for arguments, problem in (
        (["--start", str(model), "--steps", "2"], f"{run / 'tokenizer.json'} is not the tokenizer of {model}"),
        (["--scale", "0.5"], "--scale needs --finish"),
        (["--finish", "1", "--out", str(model), "--scale", "1.5"], "--scale must be above 0 and at most 1"),
    ):
        with pytest.raises(SystemExit):
            learn_from(*arguments)
        assert problem in capsys.readouterr().err


def test_a_draft_has_the_tokens_of_the_bundled_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["learn.py", "--run", str(tmp_path), "--draft", "--steps", "0"])
    learn.main()
    assert (tmp_path / "tokenizer.json").read_bytes() == TOKENIZER.read_bytes()
    rows = load_file(tmp_path / "state.safetensors")[f"parameter.{EMBEDDING}"]
    assert len(rows) == Tokenizer.from_file(str(TOKENIZER)).get_vocab_size()


def test_the_parts_of_a_step_are_learned_as_one(tokenizer: Tokenizer) -> None:
    trainer = Trainer(TINY, PLAN, Documents(tokenizer, PLAN), compiled=False)
    trainer.parameters = random_parameters(TINY)
    batches = trainer._documents.batches(0)
    places = float(sum((batch.wanted >= 0).sum() for batch in batches))
    found = [trainer._learn(batch, places) for batch in batches]
    whole = {name: value.detach().requires_grad_() for name, value in trainer.parameters.items()}
    losses = torch.cat([Network(TINY).losses(whole, batch)[batch.wanted >= 0] for batch in batches])
    expected = torch.autograd.grad(losses.mean(), list(whole.values()))
    for one, other, gradient in zip(found[0][1], found[1][1], expected, strict=True):
        torch.testing.assert_close(one + other, gradient, atol=1e-3, rtol=0.05)
    torch.testing.assert_close(sum(sums.sum() for sums, _ in found), losses.detach().sum(), atol=0.1, rtol=1e-3)


def test_a_part_without_anything_to_learn_is_a_batch() -> None:
    batch = pack([([1, 2, 3], [False] * 3, 0)], 3)
    assert (batch.wanted < 0).all()
    assert Network(TINY).losses(random_parameters(TINY), batch).sum() == 0


def test_the_written_model_is_one_that_the_engine_and_transformers_know(tokenizer: Tokenizer, tmp_path: Path) -> None:
    write_model(tmp_path, random_parameters(TINY), TINY, tokenizer)
    config: dict[str, Any] = json.loads((tmp_path / "config.json").read_text())
    assert config["eos_token_id"] == tokenizer.token_to_id("<|im_end|>")
    model = Qwen3ForCausalLM.from_pretrained(tmp_path)
    assert model.dtype == torch.bfloat16
    assert model.config.tie_word_embeddings


def test_batches_hold_just_the_tokens_of_a_step(tokenizer: Tokenizer) -> None:
    for step, tokens in ((2, 512), (3, 1024)):
        batches = Documents(tokenizer, PLAN).batches(step)
        assert sum(len(batch.ids) for batch in batches) == PLAN.tokens_of(step) == tokens
        assert PLAN.tokens_before(step + 1) == PLAN.tokens_before(step) + tokens
        for batch in batches:
            assert torch.equal(batch.places[batch.returns], torch.arange(len(batch.ids)))
            assert sum(rows * width for rows, width in batch.groups) == len(batch.places)
    with pytest.raises(ValueError, match="where 9 belong"):
        pack([([1, 2], [False, True], 0)], 9)


def test_repetitions_of_any_tokens_are_learned_where_they_repeat(tokenizer: Tokenizer) -> None:
    ids, learned = Documents(tokenizer, PLAN)._repetition(random.Random(1))
    half = len(ids) // 2
    assert ids[:half] == ids[half:]
    assert learned == [False] * (half + 1) + [True] * (half - 1)
    assert not set(ids) & {tokenizer.token_to_id(mark) for mark in (*MARKS, "<|im_start|>", "<|im_end|>")}


def test_training_rewords_and_cases_do_not() -> None:
    rng = random.Random(1)
    said = [Words(rng).wording(("What is {a} plus {b}?",), ("Sum {a} {b}.",)) for _ in range(300)]
    assert 100 < said.count("What is {a} plus {b}?") < 250
    assert all("{a} plus {b}" in each for each in said)
    assert {Words(rng, test=True).wording(("What is {a}?",), ("Sum {a}.",)) for _ in range(50)} == {"Sum {a}."}


def test_turns_of_tools_share_one_turn_of_the_user() -> None:
    text = Document([Turn("user", "x"), Turn("tool", "1"), Turn("tool", "2")]).text()
    assert text.count("<|im_start|>user") == 2
