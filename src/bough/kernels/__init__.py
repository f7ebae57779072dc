"""Bindings of the native CPU kernels in ``csrc/``: no logic, only what is where in memory."""
