"""Rerankers, classifiers and label probabilities over HTTP, compared with transformers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bough import Engine
from bough.config.engine_args import bundled_model_path
from bough.entrypoints.http.routes import ROUTES
from bough.errors import BadRequest
from bough.tokenization.chat_template import RERANKER_TEMPLATE
from bough.tokenization.loading import load_tokenizer
from tests.e2e.server import Server, running_server
from tests.models.vector_checkpoints import VectorCheckpoint, save_vector_checkpoint, save_wordpiece_tokenizer
from tests.thoroughness import examples

TOLERANCE = 1e-4
QUERY = "w1 w2 w3"
DOCUMENTS = ["w4 w5", "w6", "w1 w2 w3 w7 w8 w9", "w10 " * 20]


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def pair_scores(checkpoint: VectorCheckpoint, query: str, document: str) -> np.ndarray:
    ((ids, types),) = load_tokenizer(checkpoint.path).encode_segments([(query, document)], [None], ["x"])
    assert types is not None
    return checkpoint.scores(ids.tolist(), list(types)).numpy()


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> VectorCheckpoint:
    directory = tmp_path_factory.mktemp("reranker")
    checkpoint = save_vector_checkpoint(directory, "BertForSequenceClassification", num_labels=1, pad_token_id=0)
    save_wordpiece_tokenizer(directory)
    return checkpoint


@pytest.fixture(scope="module")
def rerank_server(reranker: VectorCheckpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("--model-path", str(reranker.path), "--cpu-threads", "1")
    with running_server(tmp_path_factory.mktemp("server"), *flags) as server:
        yield server
        server.assert_idle_and_whole()


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> VectorCheckpoint:
    directory = tmp_path_factory.mktemp("classifier")
    labels = {0: "bad", 1: "fair", 2: "good"}
    checkpoint = save_vector_checkpoint(
        directory, "Qwen3ForSequenceClassification", id2label=labels, num_labels=3, pad_token_id=0
    )
    save_wordpiece_tokenizer(directory)
    return checkpoint


@pytest.fixture(scope="module")
def classify_server(classifier: VectorCheckpoint, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("--model-path", str(classifier.path), "--cpu-threads", "1", "--max-total-tokens", "2048")
    with running_server(tmp_path_factory.mktemp("server"), *flags) as server:
        yield server
        server.assert_idle_and_whole()


def test_documents_come_by_relevance(rerank_server: Server, reranker: VectorCheckpoint) -> None:
    expected = [sigmoid(pair_scores(reranker, QUERY, document)[0]) for document in DOCUMENTS]
    order = sorted(range(len(DOCUMENTS)), key=lambda index: -expected[index])
    ranked = rerank_server.post("/v1/rerank", query=QUERY, documents=DOCUMENTS).json()
    assert [item["index"] for item in ranked] == order
    assert [item["document"] for item in ranked] == [DOCUMENTS[index] for index in order]
    np.testing.assert_allclose([item["score"] for item in ranked], [expected[index] for index in order], atol=TOLERANCE)
    assert all(item["meta_info"]["prompt_tokens"] > 0 for item in ranked)
    for path in ("/rerank", "/v2/rerank"):
        answer = rerank_server.post(path, query=QUERY, documents=DOCUMENTS, top_n=2, return_documents=False).json()
        assert [item["index"] for item in answer["results"]] == order[:2]
        assert set(answer["results"][0]) == {"index", "relevance_score"}
        assert answer["usage"]["total_tokens"] == sum(item["meta_info"]["prompt_tokens"] for item in ranked)


def test_ollamas_clients_are_not_told_of_embeddings(rerank_server: Server) -> None:
    assert rerank_server.post("/api/show", model="m").json()["capabilities"] == []


def test_long_documents_are_cut_and_long_queries_are_refused(rerank_server: Server, reranker: VectorCheckpoint) -> None:
    words = [f"w{index % 100}" for index in range(300)]
    (item,) = rerank_server.post("/v1/rerank", query=QUERY, documents=[" ".join(words)]).json()
    assert item["meta_info"]["prompt_tokens"] == 100
    expected = sigmoid(pair_scores(reranker, QUERY, " ".join(words[: 100 - 3 - 3]))[0])
    assert item["score"] == pytest.approx(expected, abs=TOLERANCE)
    refused = rerank_server.post("/v1/rerank", query=" ".join(words), documents=["w1"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert refused.json()["error"]["param"] == "query"
    refused = rerank_server.post("/v1/score", text_1=" ".join(words * 9), text_2=["w1", "w2"])
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "text_1")
    refused = rerank_server.post("/encode", text=[[QUERY, " ".join(words)]])
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")


def test_pairs_over_the_native_route(rerank_server: Server, reranker: VectorCheckpoint) -> None:
    pairs = [[QUERY, document] for document in DOCUMENTS]
    for path in ("/encode", "/classify"):
        answers = rerank_server.post(path, text=pairs).json()
        expected = [pair_scores(reranker, QUERY, document) for document in DOCUMENTS]
        np.testing.assert_allclose([item["embedding"] for item in answers], expected, atol=TOLERANCE)


def test_scores_of_a_classifier_are_its_logits(rerank_server: Server, reranker: VectorCheckpoint) -> None:
    answer = rerank_server.post("/v1/score", query=QUERY, items=DOCUMENTS).json()
    expected = [pair_scores(reranker, QUERY, document) for document in DOCUMENTS]
    np.testing.assert_allclose(answer["scores"], expected, atol=TOLERANCE)
    turned = rerank_server.post("/v1/score", query=QUERY, items="w6", item_first=True).json()
    np.testing.assert_allclose(turned["scores"][0], pair_scores(reranker, "w6", QUERY), atol=TOLERANCE)


def test_what_a_reranker_refuses(rerank_server: Server) -> None:
    cases = [
        ("/v1/embeddings", {"input": "w1"}, None),
        ("/v1/rerank", {"query": QUERY, "documents": []}, "documents"),
        ("/v1/rerank", {"query": "", "documents": ["w1"]}, "query"),
        ("/v1/rerank", {"query": QUERY, "documents": ["w1"], "top_n": 0}, "top_n"),
        ("/v1/rerank", {"query": QUERY, "documents": ["w1"], "instruct": "x"}, "instruct"),
        ("/v1/score", {"query": QUERY, "items": ["w1"], "label_token_ids": [1]}, "label_token_ids"),
        ("/v1/score", {"query": QUERY, "items": ["w1"], "temperature": 2}, "temperature"),
        ("/v1/score", {"query": QUERY, "items": [[5]]}, "items"),
        ("/encode", {"text": "w1", "dimensions": 1}, "dimensions"),
        ("/v1/completions", {"prompt": "w1"}, None),
    ]
    for path, body, param in cases:
        response = rerank_server.post(path, **body)
        assert response.status_code == 400, response.text
        assert response.json()["error"]["param"] == param


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
LIKELY = st.sampled_from(["w1", ["w1", "w2"], [["w1", "w2"]], [5, 6], [[5], [6]], 1, -1, 0.5, True, "", []])


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/classify", "/v1/rerank", "/rerank", "/v1/score", "/encode"])
@given(data=st.data())
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_body_is_answered_with_a_server_error(rerank_server: Server, path: str, data: st.DataObject) -> None:
    (info,) = (info for info in ROUTES if info.path == path)
    assert info.body is not None
    body = data.draw(st.dictionaries(st.sampled_from(info.body.names), LIKELY | JSON, max_size=4))
    response = rerank_server.post(path, **body)
    assert response.status_code in (200, 400), response.text
    if response.status_code == 400:
        assert set(response.json()["error"]) == {"message", "type", "param", "code"}


def test_classes_have_names_and_probabilities(classify_server: Server, classifier: VectorCheckpoint) -> None:
    tokenizer = load_tokenizer(classifier.path)
    expected = [classifier.scores(tokenizer.encode(text).tolist()).softmax(-1) for text in DOCUMENTS]
    named = classify_server.post("/v1/classify", input="x", rid='a"b\\c').json()
    assert named["id"] == 'classify-a"b\\c'
    answer = classify_server.post("/v1/classify", input=DOCUMENTS, rid="x").json()
    assert answer["id"] == "classify-x"
    for index, (item, probabilities) in enumerate(zip(answer["data"], expected, strict=True)):
        assert (item["index"], item["num_classes"]) == (index, 3)
        assert item["label"] == ["bad", "fair", "good"][int(probabilities.argmax())]
        np.testing.assert_allclose(item["probs"], probabilities, atol=TOLERANCE)
    refused = classify_server.post("/v1/rerank", query=QUERY, documents=DOCUMENTS)
    assert refused.status_code == 400
    assert "3 classes" in refused.json()["error"]["message"]
    scored = classify_server.post("/v1/score", query="w1 ", items=["w2", "w3"], apply_softmax=True).json()
    for row, text in zip(scored["scores"], ("w1 w2", "w1 w3"), strict=True):
        probabilities = classifier.scores(tokenizer.encode(text).tolist()).softmax(-1)
        np.testing.assert_allclose(row, probabilities, atol=TOLERANCE)


def test_label_probabilities_of_a_language_model() -> None:
    tokenizer = load_tokenizer(bundled_model_path())
    model = transformers.AutoModelForCausalLM.from_pretrained(bundled_model_path(), dtype=torch.float32).eval()

    def probabilities(text: str) -> torch.Tensor:
        with torch.inference_mode():
            output: torch.Tensor = model(torch.tensor([tokenizer.encode(text).tolist()])).logits[0, -1]
        return output

    labels = [tokenizer.encode(text)[0] for text in (" tree", " bird", " the")]
    with Engine(dtype="float32", cpu_threads=1) as engine:
        plain = engine.score("The oak is a", [" large", " small old"], labels)
        scaled = engine.score("The oak is a", [" large", " small old"], labels, apply_softmax=True, temperature=2.0)
        turned = engine.score(" oak", ["The", "An"], [labels[:1], labels[1:]], item_first=True)
        by_ids = engine.score(tokenizer.encode("The oak is a").tolist(), [tokenizer.encode(" large").tolist()], labels)
        with pytest.raises(BadRequest, match="label_token_ids is required"):
            engine.score("The", ["oak"])
        with pytest.raises(BadRequest, match="label_token_ids must hold token ids"):
            engine.score("The", ["oak"], [10**6])
        with pytest.raises(BadRequest, match="makes neither embeddings nor class scores"):
            engine.encode("x")
        with pytest.raises(BadRequest, match=RERANKER_TEMPLATE):
            engine.rerank([("x", "y")])
    assert plain.prompt_tokens == sum(len(tokenizer.encode(f"The oak is a{item}")) for item in (" large", " small old"))
    for row, soft, item in zip(plain.scores, scaled.scores, (" large", " small old"), strict=True):
        logits = probabilities(f"The oak is a{item}")
        np.testing.assert_allclose(row, logits.softmax(-1)[labels], atol=TOLERANCE)
        np.testing.assert_allclose(soft, (logits[labels] / 2.0).softmax(-1), atol=TOLERANCE)
    np.testing.assert_allclose(turned.scores[0], probabilities("The oak").softmax(-1)[labels[:1]], atol=TOLERANCE)
    np.testing.assert_allclose(turned.scores[1], probabilities("An oak").softmax(-1)[labels[1:]], atol=TOLERANCE)
    np.testing.assert_allclose(by_ids.scores[0], plain.scores[0], atol=TOLERANCE)


@pytest.mark.parametrize(
    "architecture",
    ["Qwen3ForCausalLM", pytest.param("Qwen3ForSequenceClassification", marks=pytest.mark.slow)],
)
def test_a_language_model_that_was_trained_for_it_reranks(architecture: str, tmp_path: Path) -> None:
    labels = {} if architecture.endswith("CausalLM") else {"num_labels": 1, "pad_token_id": 0}
    checkpoint = save_vector_checkpoint(tmp_path, architecture, max_position_embeddings=512, **labels)
    save_wordpiece_tokenizer(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    no_yes = [tokenizer.token_to_id("no"), tokenizer.token_to_id("yes")]

    def expected(instruct: str, document: str) -> float:
        text = (
            "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
            'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
            f"<Instruct>: {instruct}\n<Query>: {QUERY}\n<Document>: {document}<|im_end|>\n"
            "<|im_start|>assistant\n<think>\n\n</think>\n\n"
        )
        ids = tokenizer.encode_rendered([text])[0].tolist()
        if labels:
            return sigmoid(float(checkpoint.scores(ids)[0]))
        with torch.inference_mode():
            logits = checkpoint.reference(torch.tensor([ids])).logits[0, -1]
        return float(logits[no_yes].softmax(-1)[1])

    flags = ("--model-path", str(tmp_path), "--chat-template", RERANKER_TEMPLATE, "--cpu-threads", "1")
    with running_server(tmp_path, *flags, "--max-total-tokens", "2048") as server:
        default = "Given a web search query, retrieve relevant passages that answer the query"
        for fields, instruct in (({}, default), ({"instruct": "w7 w8"}, "w7 w8")):
            ranked = server.post("/v1/rerank", query=QUERY, documents=DOCUMENTS, **fields).json()
            by_index = {item["index"]: item["score"] for item in ranked}
            for index, document in enumerate(DOCUMENTS):
                assert by_index[index] == pytest.approx(expected(instruct, document), abs=TOLERANCE)
            assert [item["score"] for item in ranked] == sorted(by_index.values(), reverse=True)
        assert server.post("/v1/rerank", query="a", documents=["b"], truncate_prompt_tokens=5).status_code == 400
        server.assert_idle_and_whole()
