"""Execution of step plans on a device."""
