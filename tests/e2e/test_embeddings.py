"""all-MiniLM-L6-v2 behind a real server and in an Engine, compared with transformers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import ollama
import openai
import pytest
import torch
import transformers

from bough import Engine, RuntimeEndpoint
from bough.errors import BadRequest
from tests.e2e.server import Server, running_server
from tests.minilm import minilm_path

TOLERANCE = 1e-4
TEXTS = [
    "The oak is a large tree.",
    "How do I bake bread?",
    "Ein kurzer Satz auf Deutsch, mit Umlauten: äöü.",
    "word " * 200,
    "ok",
    "A bread recipe: mix flour and water, wait, and bake it for an hour.",
]


@pytest.fixture(scope="module")
def reference() -> np.ndarray:
    """Mean pooling and normalisation, as the model's card has it: ``[len(TEXTS), 384]``."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_path())
    model = transformers.AutoModel.from_pretrained(minilm_path()).eval()
    encoded = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        states = model(**encoded).last_hidden_state
    mask = encoded["attention_mask"][..., None]
    mean = (states * mask).sum(1) / mask.sum(1)
    output: np.ndarray = torch.nn.functional.normalize(mean, dim=-1).numpy()
    return output


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("--model-path", str(minilm_path()), "--served-model-name", "minilm", "--cpu-threads", "1")
    with running_server(tmp_path_factory.mktemp("server"), *flags) as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Iterator[Server]:
    yield shared_server
    shared_server.assert_idle_and_whole()


def assert_close(ours: Any, reference: np.ndarray) -> None:
    assert float(np.abs(np.asarray(ours) - reference).max()) <= TOLERANCE


def test_vectors_equal_the_reference_as_numbers_and_as_base64(server: Server, reference: np.ndarray) -> None:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    by_default = client.embeddings.create(model="minilm", input=TEXTS)  # the client asks for base64
    assert_close([item.embedding for item in by_default.data], reference)
    assert [item.index for item in by_default.data] == list(range(len(TEXTS)))
    as_numbers = client.embeddings.create(model="minilm", input=TEXTS, encoding_format="float")
    assert_close([item.embedding for item in as_numbers.data], reference)
    raw = server.post("/v1/embeddings", input=TEXTS[0], encoding_format="base64").json()
    assert_close(np.frombuffer(base64.b64decode(raw["data"][0]["embedding"]), dtype="<f4"), reference[0])
    assert raw["model"] == "minilm"
    assert raw["usage"]["prompt_tokens"] == raw["usage"]["total_tokens"] == 9


def test_token_ids_of_one_text_and_of_several(server: Server, reference: np.ndarray) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_path())
    ids = [tokenizer(text)["input_ids"] for text in TEXTS]
    one = server.post("/v1/embeddings", input=ids[1]).json()
    assert_close(one["data"][0]["embedding"], reference[1])
    several = server.post("/v1/embeddings", input=ids).json()
    objects = server.post("/v1/embeddings", input=[{"text": text} for text in TEXTS]).json()
    # Not bit by bit: texts of one call may be computed in one step or in two.
    assert_close([item["embedding"] for item in objects["data"]], reference)
    assert objects["usage"] == several["usage"]
    assert_close([item["embedding"] for item in several["data"]], reference)
    native = server.post("/encode", input_ids=ids).json()
    assert_close([item["embedding"] for item in native], reference)


def test_native_answer(server: Server, reference: np.ndarray) -> None:
    one = server.post("/encode", text=TEXTS[0], rid="mine").json()
    assert_close(one["embedding"], reference[0])
    meta = one["meta_info"]
    assert (meta["id"], meta["prompt_tokens"], meta["completion_tokens"]) == ("mine", 9, 0)
    assert meta["e2e_latency"] > 0
    batch = server.post("/encode", text=TEXTS[:2], rid="mine").json()
    assert [item["meta_info"]["id"] for item in batch] == ["mine_0", "mine_1"]


def test_refusals_name_what_is_wrong(server: Server) -> None:
    cases = [
        ("/v1/embeddings", {"input": "x", "dimensions": 100}, 400, "dimensions"),
        ("/v1/embeddings", {"input": "x", "dimensions": 0}, 400, "dimensions"),
        ("/v1/embeddings", {"input": "x", "dimensions": 1000}, 400, "dimensions"),
        ("/v1/embeddings", {"input": " \n"}, 400, "input"),
        ("/v1/embeddings", {"input": ["x", ""]}, 400, "input[1]"),
        ("/v1/embeddings", {"input": []}, 400, "input"),
        ("/v1/embeddings", {"input": ["x", [1]]}, 400, "input"),
        ("/v1/embeddings", {"input": [30522]}, 400, "input"),
        ("/v1/embeddings", {"input": "x", "encoding_format": "hex"}, 400, "encoding_format"),
        ("/v1/embeddings", {"input": "word " * 300}, 400, "input"),
        ("/v1/embeddings", {"input": ["a"] * 2049}, 400, "input"),
        ("/v1/embeddings", {"input": "x", "lora_path": "a"}, 400, "lora_path"),
        ("/v1/embeddings", {}, 400, "input"),
        ("/encode", {"text": "a", "input_ids": [1]}, 400, "text"),
        ("/encode", {"text": [["a", "b", "c"]]}, 400, "text[0]"),
        ("/v1/rerank", {"query": "a", "documents": ["b"], "instruct": "x"}, 400, "instruct"),
        ("/v1/rerank", {"query": "word " * 300, "documents": ["b"]}, 400, "query"),
        ("/v1/rerank", {"query": "a", "documents": ["b", ""], "rid": ""}, 400, "rid"),
        ("/v1/score", {"text_1": "a", "text_2": ["b", "word " * 300]}, 400, "text_2[1]"),
        ("/v1/embeddings", {"input": "a", "add_special_tokens": False}, 400, "add_special_tokens"),
        ("/v1/classify", {"input": "a"}, 400, None),
        ("/v1/score", {"query": "a", "items": ["b"], "label_token_ids": [1]}, 400, None),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, 400, None),
        ("/v1/completions", {"prompt": "hi"}, 400, None),
        ("/generate", {"text": "hi"}, 400, None),
    ]
    for path, body, status, param in cases:
        response = server.post(path, **body)
        assert response.status_code == status, response.text
        error = response.json()["error"]
        if param is None:
            assert "this model" in error["message"]
        else:
            assert error["param"] == param


def test_conversations_are_refused_for_what_the_model_is(server: Server) -> None:
    for path in ["/v1/chat/completions", "/v1/messages"]:
        response = server.post(path, model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}])
        assert response.status_code == 400
        assert "does not generate text" in response.json()["error"]["message"]


def test_texts_are_cut_only_if_asked_for(server: Server, reference: np.ndarray) -> None:
    short = server.post("/v1/embeddings", input="word " * 300, truncate_prompt_tokens=-1).json()
    assert short["usage"]["prompt_tokens"] == 256
    cut = server.post("/v1/embeddings", input=TEXTS[3] + "and more", truncate_prompt_tokens=202).json()
    assert_close(cut["data"][0]["embedding"], reference[3])


def test_a_request_that_is_aborted_says_so_and_ends_alone(server: Server) -> None:
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(server.post, "/v1/embeddings", input=[TEXTS[3]] * 2000, rid="long")
        while not server.state()["num_queue_reqs"]:
            assert not long.done(), long.result().text
        short = pool.submit(server.post, "/v1/embeddings", input="x", rid="short")
        server.post("/abort_request", rid="long")
        response = long.result(timeout=120)
        assert short.result(timeout=20).status_code == 200
    assert (response.status_code, response.json()["error"]["code"]) == (409, "aborted")


@pytest.mark.one_scheduler
def test_model_info_health_and_metrics(server: Server) -> None:
    assert server.client.get("/model_info").json()["is_generation"] is False
    assert server.client.get("/health_generate").status_code == 200
    metrics = server.client.get("/metrics").text
    assert "prompt_tokens_total" in metrics
    assert len(server.processes()) == 2, "there is nothing to detokenize"


def test_clients_that_leave_cost_nothing(server: Server) -> None:
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{server.url}/v1/embeddings", json={"input": TEXTS * 300}, timeout=httpx.Timeout(5, read=0.05))
    server.assert_idle_and_whole()


def test_the_endpoint_of_a_runtime_encodes(server: Server, reference: np.ndarray) -> None:
    answers = RuntimeEndpoint(server.url).encode(text=TEXTS[:2])
    assert_close([answer["embedding"] for answer in answers], reference[:2])


def test_engine_encodes_and_says_what_it_cannot(reference: np.ndarray) -> None:
    with Engine(model_path=str(minilm_path()), cpu_threads=1) as engine:
        assert_close([item["embedding"] for item in engine.encode(TEXTS)], reference)
        assert_close(engine.encode(TEXTS[0])["embedding"], reference[0])
        with pytest.raises(BadRequest, match="does not generate text"):
            engine.generate("x")
        with pytest.raises(BadRequest, match="dimensions"):
            engine.encode("x", dimensions=5)
        assert engine.get_model_info()["is_generation"] is False


def test_likeness_of_texts_as_vllm_has_it(server: Server, reference: np.ndarray) -> None:
    answer = server.post("/v1/score", text_1=TEXTS[1], text_2=[TEXTS[5], TEXTS[0]]).json()
    scores = [entry["score"] for entry in answer["data"]]
    expected = [float(reference[1] @ reference[index]) for index in (5, 0)]
    assert np.abs(np.array(scores) - expected).max() <= TOLERANCE
    assert scores[0] > scores[1]
    pairs = server.post("/score", text_1=TEXTS[:2], text_2=TEXTS[:2]).json()
    assert [round(entry["score"], 3) for entry in pairs["data"]] == [1.0, 1.0]
    wrong = server.post("/v1/score", text_1=TEXTS[:2], text_2=TEXTS[:3])
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "text_1")
    cut = server.post("/v1/embeddings", input="x", truncate_prompt_tokens=0)
    assert (cut.status_code, cut.json()["error"]["param"]) == (400, "truncate_prompt_tokens")


def test_documents_are_ranked_by_likeness(server: Server, reference: np.ndarray) -> None:
    ranked = server.post("/v1/rerank", query=TEXTS[1], documents=[TEXTS[0], TEXTS[5], TEXTS[1]], rid="r").json()
    assert [item["index"] for item in ranked] == [2, 1, 0]
    expected = [float(reference[1] @ reference[index]) for index in (1, 5, 0)]
    assert np.abs(np.array([item["score"] for item in ranked]) - expected).max() <= TOLERANCE
    answer = server.post("/rerank", query=TEXTS[1], documents=["word " * 400, TEXTS[1]], top_n=1).json()
    assert [item["index"] for item in answer["results"]] == [1]
    once = server.post("/v1/embeddings", input=TEXTS[1]).json()["usage"]["prompt_tokens"]
    assert answer["usage"]["prompt_tokens"] == 2 * once + 256, "the query is embedded once, the long text is cut"


def test_vllms_other_names_of_texts(server: Server) -> None:
    for names in [("queries", "documents"), ("data_1", "data_2")]:
        bodies = [dict(zip(each, ("a", ["b", "c"]), strict=True)) for each in (names, ("text_1", "text_2"))]
        ours, theirs = ([entry["score"] for entry in server.post("/score", **body).json()["data"]] for body in bodies)
        assert ours == pytest.approx(theirs, abs=TOLERANCE)


def test_the_prompt_and_the_pooling_can_be_asked_for(server: Server) -> None:
    (one,) = server.post(
        "/encode", text=[TEXTS[0]], return_prompt_token_ids=True, is_cross_encoder_request=False
    ).json()
    assert one["prompt_token_ids"] == server.post("/tokenize", prompt=TEXTS[0]).json()["tokens"]
    assert "prompt_token_ids" not in server.post("/encode", text=TEXTS[0]).json()
    described = server.client.get("/model_info").json()["embedding"]
    assert (described["method"], described["normalize"], described["dim"]) == ("mean", True, 384)
    assert server.client.get("/server_info").json()["startup_time"] > 0


def test_ollama_clients_get_the_same_vectors(server: Server, reference: np.ndarray) -> None:
    client = ollama.Client(host=server.url)
    several = client.embed(model="minilm", input=TEXTS, options={"num_ctx": 512})
    assert_close(several.embeddings, reference)
    assert several.prompt_eval_count == sum(
        item["meta_info"]["prompt_tokens"] for item in server.post("/encode", text=TEXTS).json()
    )
    assert_close(client.embed(model="minilm", input=TEXTS[0]).embeddings, reference[:1])
    assert_close(client.embeddings(model="minilm", prompt=TEXTS[1]).embedding, reference[1])
    assert client.embed(model="minilm", input=[]).embeddings == []
    assert client.embeddings(model="minilm", prompt="").embedding == []
    assert client.embed(model="minilm", input="").embeddings == []
    assert [len(each) for each in client.embed(model="minilm", input=[""]).embeddings] == [384]
    too_long = "word " * 2000
    assert len(client.embed(model="minilm", input=too_long).embeddings) == 1
    with pytest.raises(ollama.ResponseError) as refused:
        client.embed(model="minilm", input=too_long, truncate=False)
    assert refused.value.status_code == 400
    assert client.show("minilm").capabilities == ["embedding"]


def test_the_weights_go_back_to_the_machine_while_it_sleeps(server: Server, reference: np.ndarray) -> None:
    def pss() -> int:
        return sum(process.memory_full_info().pss for process in server.processes())

    weight_bytes = server.client.get("/server_info").json()["weight_bytes"]
    assert server.post("/encode", text=TEXTS[0]).status_code == 200
    before = pss()
    assert server.client.post("/sleep").status_code == 200
    assert before - pss() >= 0.95 * weight_bytes
    assert server.post("/encode", text=TEXTS[0]).status_code == 503
    assert server.client.post("/wake_up").status_code == 200
    assert_close([each["embedding"] for each in server.post("/encode", text=TEXTS).json()], reference)
