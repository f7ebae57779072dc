"""The grammar compiler that a server's options ask for."""

from __future__ import annotations

from collections.abc import Iterable

from bough.config.server_args import ServerArgs
from bough.constrained.compiler import GrammarCompiler
from bough.tokenization.tokenizer import Tokenizer


def create_compiler(
    server_args: ServerArgs, tokenizer: Tokenizer, vocab_size: int, eos_token_ids: Iterable[int]
) -> GrammarCompiler:
    """A compiler for a model. Takes a second for a vocabulary of 150,000 tokens, and holds the GIL all the while.

    Args:
        server_args: resolved options.
        tokenizer: of the model.
        vocab_size: of the model.
        eos_token_ids: of the model.
    """
    from bough.child_trial import START_SECONDS
    from bough.constrained.llguidance_backend import LLGuidanceBackend
    from bough.constrained.translate import Translator
    from bough.constrained.trial import TrialBackend, needs_trial
    from bough.constrained.vocabulary import engine_tokenizer, vocabulary_of

    compact = server_args.constrained_json_disable_any_whitespace
    translator = Translator(
        whitespace_pattern="" if compact else server_args.constrained_json_whitespace_pattern,
        special_tokens={text: token for text, token in tokenizer.special_token_ids.items() if token < vocab_size},
    )
    vocabulary = vocabulary_of(tokenizer, vocab_size, tuple(eos_token_ids))
    encode = tokenizer.running_text_encoder(set(vocabulary.special_ids))
    backend = LLGuidanceBackend(engine_tokenizer(vocabulary, encode), translator)
    tried = TrialBackend(backend, translator, vocabulary)
    return GrammarCompiler(
        tried.compile,
        needs_trial=needs_trial,
        timeout_s=server_args.grammar_compile_timeout,
        start_s=START_SECONDS,
        on_close=tried.close,
        held=backend.held,
    )
