"""The core of every API that answers conversations: a job in, typed events out.

An API translates its request into a :class:`~bough.entrypoints.chat.job.ChatJob` and what comes of it into its own
words; templates, tools, reasoning, constraints and token counts are the same for all and live here.
"""
