"""The round loop, local training of all clients at once, evaluation and costs."""

NUMERICS = 1
"""Raised when a change of the engine alters the numbers of runs; older runs then show as stale."""
