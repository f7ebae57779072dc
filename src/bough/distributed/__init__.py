"""Processes that compute one model together: how they meet, and what they do at the same time."""
