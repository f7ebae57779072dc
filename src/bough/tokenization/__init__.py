"""Text to ids and back: tokenizer, chat templates, incremental decoding, stop matching. Never imports torch."""
