"""The managers of the main process and of the detokenizer."""
