"""The OpenAI dialect: models, completions and chat completions."""
