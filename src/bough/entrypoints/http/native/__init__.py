"""The native dialect: ``/generate``, information about the server, and control."""
