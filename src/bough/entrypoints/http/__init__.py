"""The HTTP server: routes, request parsing, and the native and OpenAI dialects."""
