"""Sampling: what a request may ask for, and how the device picks tokens."""
