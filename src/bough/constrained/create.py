"""The grammar compiler that a server's options ask for."""

from __future__ import annotations

from collections.abc import Iterable

from bough.config.server_args import ServerArgs
from bough.constrained.compiler import GrammarCompiler
from bough.tokenization.tokenizer import Tokenizer


def create_compiler(
    server_args: ServerArgs, tokenizer: Tokenizer, vocab_size: int, eos_token_ids: Iterable[int]
) -> GrammarCompiler:
    """A compiler for a model.

    Args:
        server_args: resolved options.
        tokenizer: of the model.
        vocab_size: of the model.
        eos_token_ids: of the model.
    """
    # The engine's library is loaded when the first grammar comes: most servers never need it.
    from bough.constrained.llguidance_backend import LLGuidanceBackend
    from bough.constrained.translate import Translator
    from bough.constrained.trial import START_SECONDS, TrialBackend

    compact = server_args.constrained_json_disable_any_whitespace
    translator = Translator(
        whitespace_pattern="" if compact else server_args.constrained_json_whitespace_pattern,
        special_tokens=tokenizer.special_token_ids,
    )
    backend = LLGuidanceBackend.for_model(tokenizer, vocab_size, tuple(eos_token_ids), translator)
    tried = TrialBackend(backend, translator, timeout_s=server_args.grammar_compile_timeout)
    # The trial ends what takes too long; the compiler's own limit is for what comes after it.
    return GrammarCompiler(
        tried.compile, timeout_s=2 * server_args.grammar_compile_timeout + START_SECONDS, on_close=tried.close
    )
