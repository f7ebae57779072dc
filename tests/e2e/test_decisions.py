"""``/v1/decisions`` on the bundled model: probabilities of what it would say first."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.e2e.server import Server

INPUT = "The oak grows tall and bears acorns. In autumn it loses its leaves."
QUESTIONS: list[dict[str, Any]] = [
    {
        "id": "kind",
        "type": "choice",
        "question": "What is it about?",
        "options": [{"name": "a tree", "description": "an oak, a birch"}, {"name": "a bird"}, {"name": "a fish"}],
    },
    {"id": "height", "type": "score", "question": "How tall?", "levels": ["low", "as a man", "as a house", "taller"]},
    {"id": "green", "type": "yes_no", "question": "Is it evergreen?", "yes": "It keeps its leaves."},
]
LABELS = {"kind": ["A", "B", "C"], "height": ["0", "1", "2", "3"], "green": ["Yes", "No"]}


def test_answers_are_the_probabilities_of_the_first_token(server: Server) -> None:
    answer = server.post("/v1/decisions", input=INPUT, questions=QUESTIONS, return_prompt_token_ids=True).json()
    assert answer["object"] == "decisions"
    assert answer["prompt_format_version"] == 1
    assert list(answer["answers"]) == ["kind", "height", "green"]
    lengths = []
    for question in QUESTIONS:
        found = answer["answers"][question["id"]]
        prompt = found["prompt_token_ids"]
        lengths.append(len(prompt))
        text = server.post("/detokenize", tokens=prompt, skip_special_tokens=False).json()["text"]
        assert INPUT in text
        assert question["question"] in text
        ids = [
            server.post("/tokenize", prompt=label, add_special_tokens=False).json()["tokens"][0]
            for label in LABELS[question["id"]]
        ]
        (scores,) = server.post("/v1/score", query=prompt[:-1], items=[prompt[-1:]], label_token_ids=ids).json()[
            "scores"
        ]
        shares = [each / sum(scores) for each in scores]
        assert found["type"] == question["type"]
        assert found["label_mass"] == pytest.approx(sum(scores), rel=1e-5)
        probabilities = found["probabilities"]
        values = list(probabilities.values()) if isinstance(probabilities, dict) else probabilities
        assert values == pytest.approx(shares, rel=1e-5)
    kind, height, green = (answer["answers"][name] for name in ("kind", "height", "green"))
    assert kind["choice"] == max(kind["probabilities"], key=kind["probabilities"].get)
    assert height["score"] == pytest.approx(sum(level * share for level, share in enumerate(height["probabilities"])))
    assert set(green["probabilities"]) == {"yes", "no"}
    assert answer["usage"]["prompt_tokens"] == sum(lengths)


def test_temperature_flattens_and_the_order_of_questions_does_not_matter(server: Server) -> None:
    fields: dict[str, Any] = {"input": [{"type": "text", "text": INPUT}]}
    sharp = server.post("/v1/decisions", questions=QUESTIONS, temperature=0.5, **fields).json()["answers"]
    flat = server.post("/v1/decisions", questions=QUESTIONS[::-1], temperature=1000, **fields).json()["answers"]
    assert max(sharp["kind"]["probabilities"].values()) > max(flat["kind"]["probabilities"].values())
    assert all(math.isclose(each, 1 / 3, rel_tol=0.05) for each in flat["kind"]["probabilities"].values())
    assert sharp["kind"]["label_mass"] == pytest.approx(flat["kind"]["label_mass"], rel=1e-5)


def test_bad_questions_are_refused_by_name(server: Server) -> None:
    cases = [
        ({"questions": []}, "questions"),
        ({"questions": [QUESTIONS[0], QUESTIONS[0]]}, "questions[1].id"),
        ({"questions": [{**QUESTIONS[0], "options": [{"name": "a"}]}]}, "questions[0].options"),
        ({"questions": [{**QUESTIONS[0], "options": [{"name": "a"}] * 2}]}, "questions[0].options[1].name"),
        ({"questions": [{**QUESTIONS[1], "levels": ["x"] * 11}]}, "questions[0].levels"),
        ({"questions": [{**QUESTIONS[2], "type": "maybe"}]}, "questions[0].type"),
        ({"questions": [{**QUESTIONS[2], "extra": 1}]}, "questions[0].extra"),
        ({"temperature": 0}, "temperature"),
        ({"prompt_format_version": 2}, "prompt_format_version"),
        ({"images": ["x"]}, "images"),
        ({"input": "word " * 200_000}, "input"),
        ({"temperatur": 1}, "temperatur"),
    ]
    for changed, param in cases:
        response = server.post("/v1/decisions", **{"input": INPUT, "questions": QUESTIONS, **changed})
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == param
        if param == "questions[0].type":
            assert "choice, score, yes_no" in response.json()["error"]["message"]
