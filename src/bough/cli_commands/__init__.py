"""The commands of ``bough``, one module each with a ``main(argv) -> int`` that is imported only when it runs."""

COMMANDS = {
    "serve": "start a server",
    "generate": "complete a prompt and exit",
    "chat": "talk with a model in the terminal",
    "bench": "measure a server (serve) or the engine alone (offline, latency); put results side by side (compare)",
    "pack": "write a model as it lies in memory, so that servers start at once",
    "check-env": "report what this machine offers to Bough",
    "completion": "print a script that makes a shell complete command lines",
    "version": "print the version",
}
"""Names of the modules, and what each does."""
