"""Grammar engines side by side: which JSON schemas they take, whether what comes out is valid, and what it costs.

Run with ``python benchmarks/grammar_engines.py [--engines llguidance xgrammar] [--vocab bundled large] [--output F]``.
``llguidance`` is Bough's own backend; ``xgrammar`` runs if it is installed. For every schema of
``benchmarks/grammar_corpus.py``: compile it; walk at random through its masks, and have every output that comes to an
end checked by ``jsonschema``; offer it documents, of which it must refuse those that are invalid. Engines run in a
process of their own, one thread each, which is started again when a schema has killed it or has taken 10 s.

``bundled`` is the vocabulary of the model that comes with Bough; ``large`` has 150,000 entries, made here.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.grammar_corpus import corpus, documents

from bough.config.engine_args import bundled_model_path
from bough.constrained.base import GrammarError, mask_words
from bough.constrained.llguidance_backend import LLGuidanceBackend
from bough.constrained.translate import Translator
from bough.sampling.sampling_params import GrammarSpec
from bough.tokenization.loading import load_tokenizer

TIMEOUT_SECONDS = 10.0
WALKS = 4
MAX_TOKENS = 200


class Refused(Exception):
    pass


def vocabulary(name: str) -> list[bytes]:
    """Bytes of every token; the last one ends sequences."""
    if name == "bundled":
        tokenizer = load_tokenizer(bundled_model_path())
        specials = tokenizer.special_ids
        tokens = [b"" if i in specials else tokenizer.id_to_piece_bytes(i) for i in range(tokenizer.vocab_size)]
        return [*tokens, b"<end>"]
    rng = random.Random(5)
    syllables = [c + v + e for c in "bcdfghjklmnprstvwz" for v in "aeiou" for e in ("", "n", "r", "s", "t", "l")]
    tokens = {bytes([i]): None for i in range(256)}
    tokens |= dict.fromkeys(str(i).encode() for i in range(1000))
    for text in (
        '{"',
        '":',
        '": "',
        '", "',
        '"}',
        '"]',
        "[]",
        "{}",
        "},",
        '": {',
        '": [',
        " " * 2,
        " " * 4,
        "\\n",
        ': "',
    ):
        tokens[text.encode()] = None
    while len(tokens) < 149_999:
        word = "".join(rng.choice(syllables) for _ in range(rng.randint(1, 4)))
        word = rng.choice(
            (word, word, " " + word, word.capitalize(), " " + word.capitalize(), word + rng.choice('",.:'))
        )
        if rng.random() < 0.2:
            word = "".join(chr(rng.randint(0x400, 0x4FF)) for _ in range(rng.randint(1, 4)))
        tokens[word.encode()] = None
    return [*tokens, b"<end>"]


class LLGuidance:
    def __init__(self, tokens: list[bytes]) -> None:
        from llguidance import LLTokenizer, TokenizerWrapper

        self._byte_ids = byte_ids = [tokens.index(bytes([byte])) for byte in range(256)]

        class Table:
            eos_token_id = len(tokens) - 1
            bos_token_id = None
            special_token_ids = (len(tokens) - 1,)

            def __init__(self) -> None:
                self.tokens = tokens

            def __call__(self, text: bytes) -> list[int]:
                return [byte_ids[byte] for byte in text]

        table = TokenizerWrapper(Table())
        vocabulary = LLTokenizer(table, n_vocab=len(tokens), eos_token=len(tokens) - 1)
        self._backend = LLGuidanceBackend(vocabulary, Translator())
        self._eos = len(tokens) - 1

    def compile(self, schema: str) -> Any:
        try:
            return self._backend.compile(GrammarSpec("json_schema", schema))
        except GrammarError as error:
            raise Refused(error.message) from None

    def walker(self, grammar: Any) -> Any:
        matcher = grammar.matcher()

        def fill(words: np.ndarray) -> None:
            matcher.fill_mask(words)
            if matcher.error is not None:
                raise Refused(matcher.error)

        return fill, matcher.accept

    def accepts(self, grammar: Any, text: bytes) -> bool:
        matcher = grammar.matcher()
        return all(matcher.accept(self._byte_ids[byte]) for byte in text) and matcher.is_accepting


class XGrammar:
    def __init__(self, tokens: list[bytes]) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        self._eos = len(tokens) - 1
        info = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[self._eos])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)

    def compile(self, schema: str) -> Any:
        try:
            return self._compiler.compile_json_schema(schema, any_whitespace=True, strict_mode=False)
        except RuntimeError as error:
            raise Refused(str(error)) from None

    def walker(self, grammar: Any) -> Any:
        import torch

        matcher = self._xgrammar.GrammarMatcher(grammar)

        def fill(words: np.ndarray) -> None:
            words.fill(-1)  # it leaves the mask alone where everything is allowed
            matcher.fill_next_token_bitmask(torch.from_numpy(words[None]))

        return fill, matcher.accept_token

    def accepts(self, grammar: Any, text: bytes) -> bool:
        matcher = self._xgrammar.GrammarMatcher(grammar)
        return matcher.accept_string(text) and matcher.accept_token(self._eos)


ENGINES = {"llguidance": LLGuidance, "xgrammar": XGrammar}


def judge(engine: Any, tokens: list[bytes], name: str, schema: Any, docs: list[Any]) -> dict[str, Any]:
    """Everything there is to know about one engine and one schema."""
    result: dict[str, Any] = {"name": name}
    begin = time.perf_counter()
    try:
        grammar = engine.compile(json.dumps(schema))
    except Refused as error:
        return {**result, "refused": str(error)[:100]}
    result["compile_ms"] = (time.perf_counter() - begin) * 1e3
    try:
        validator = jsonschema.Draft202012Validator(
            schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
        )
        validator.is_valid(1)
        validator.is_valid({})
    except Exception:
        return {**result, "useless_schema_taken": True}
    masks: list[float] = []
    outputs, wrong = 0, []
    for walk in range(WALKS):
        try:
            text = random_walk(engine, tokens, grammar, np.random.default_rng(walk), masks)
        except Refused as error:
            result["gave_up"] = str(error)[:100]
            break
        if text is None:
            continue
        outputs += 1
        with contextlib.suppress(UnicodeDecodeError, json.JSONDecodeError, RecursionError):
            if validator.is_valid(json.loads(text.decode())):
                continue
        wrong.append(text.decode(errors="replace")[:200])
    accepted_wrong, refused_good = [], 0
    for doc in docs:
        with contextlib.suppress(RecursionError):
            taken, valid = (
                engine.accepts(grammar, json.dumps(doc, ensure_ascii=False).encode()),
                validator.is_valid(doc),
            )
            if taken and not valid:
                accepted_wrong.append(json.dumps(doc)[:80])
            refused_good += valid and not taken
    return {
        **result,
        "outputs": outputs,
        "invalid_outputs": wrong,
        "invalid_documents_taken": accepted_wrong,
        "valid_documents_refused": refused_good,
        "mask_us": [round(each * 1e6, 1) for each in masks],
    }


def random_walk(
    engine: Any, tokens: list[bytes], grammar: Any, rng: np.random.Generator, masks: list[float]
) -> bytes | None:
    fill, accept = engine.walker(grammar)
    words = np.zeros(mask_words(len(tokens)), dtype=np.int32)
    closing = [tokens.index(char) for char in (b'"', b"}", b"]", b",", b"0", b":")]
    text = b""
    eos = len(tokens) - 1
    for step in range(MAX_TOKENS):
        begin = time.perf_counter()
        fill(words)
        masks.append(time.perf_counter() - begin)
        allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little", count=len(tokens)))
        if not allowed.size:
            raise Refused("nothing may follow, and the output may not end")
        if allowed[-1] == eos and (allowed.size == 1 or rng.random() < 0.2 + step / 50):
            return text
        pool = allowed[allowed != eos]
        if rng.random() < 0.3 + step / 60:
            ends = np.intersect1d(pool, closing)
            pool = ends if ends.size else pool
        token = int(rng.choice(pool))
        if not accept(token):
            raise Refused(f"it refuses {tokens[token]!r}, which its mask allows")
        text += tokens[token]
    return None


def work(engine_name: str, vocab_name: str) -> None:
    """The worker: a name of a schema a line in, a result a line out."""
    tokens = vocabulary(vocab_name)
    engine, schemas, docs = ENGINES[engine_name](tokens), corpus(), documents()
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        print(json.dumps(judge(engine, tokens, name, schemas[name], docs)), flush=True)


def run(engine: str, vocab: str, names: list[str]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    process: subprocess.Popen[str] | None = None
    for name in names:
        if process is None:
            command = [sys.executable, __file__, "--work", engine, vocab]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
            )
            assert process.stdout is not None
            process.stdout.readline()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(name + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], TIMEOUT_SECONDS)
        line = process.stdout.readline() if ready else ""
        if line:
            results.append(json.loads(line))
            continue
        results.append({"name": name, "died": "crash" if ready else "timeout"})
        process.kill()
        process.wait()
        process = None
    if process is not None:
        process.kill()
        process.wait()
    return results


def summary(results: list[dict[str, Any]]) -> dict[str, Any]:
    died = Counter(each["died"] for each in results if "died" in each)
    compiled = [each["compile_ms"] for each in results if "compile_ms" in each]
    masks = np.array([value for each in results for value in each.get("mask_us", ())])
    return {
        "schemas": len(results),
        "taken": len(compiled),
        "refused": sum("refused" in each for each in results),
        "crashes": died["crash"],
        "timeouts": died["timeout"],
        "gave up later": sum("gave_up" in each for each in results),
        "outputs": sum(each.get("outputs", 0) for each in results),
        "invalid outputs": sum(len(each.get("invalid_outputs", ())) for each in results),
        "schemas with invalid outputs": sum(bool(each.get("invalid_outputs")) for each in results),
        "invalid documents taken": sum(len(each.get("invalid_documents_taken", ())) for each in results),
        "valid documents refused": sum(each.get("valid_documents_refused", 0) for each in results),
        "compile ms p50": round(float(np.percentile(compiled, 50)), 2),
        "compile ms p99": round(float(np.percentile(compiled, 99)), 2),
        "compile ms max": round(max(compiled), 1),
        "mask us p50": round(float(np.percentile(masks, 50)), 1),
        "mask us p99": round(float(np.percentile(masks, 99)), 1),
        "mask us max": round(float(masks.max()), 0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--vocab", nargs="+", default=["bundled", "large"])
    parser.add_argument("--every", type=int, default=1, help="take only every so-manyth schema")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        os.nice(0)
        work(*args.work)
        return
    names = list(corpus())[:: args.every]
    table, details = {}, {}
    for vocab in args.vocab:
        for engine in args.engines:
            if importlib.util.find_spec(engine) is None:
                print(f"{engine} is not installed")
                continue
            results = run(engine, vocab, names)
            table[f"{engine}, {vocab}"] = summary(results)
            details[f"{engine}, {vocab}"] = [
                {key: value for key, value in each.items() if key != "mask_us"} for each in results
            ]
    for key in next(iter(table.values())):
        print(f"{key:30s}" + "".join(f"{row[key]:>20}" for row in table.values()))
    print("columns: " + " | ".join(table))
    if args.output:
        args.output.write_text(json.dumps({"table": table, "details": details}, indent=1))


if __name__ == "__main__":
    main()
