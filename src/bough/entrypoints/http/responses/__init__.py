"""OpenAI's newer dialect: ``/v1/responses``, with answers that are kept for a while."""
