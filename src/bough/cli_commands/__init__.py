"""The commands of ``bough``, one module each with a ``main(argv) -> int`` that is imported only when it runs."""
