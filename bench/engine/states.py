"""How a run may end, and what follows from it."""

from __future__ import annotations

from typing import Literal

State = Literal["done", "searched", "diverged", "oom", "failed", "not_applicable", "no_data"]
"""A ``searched`` run belongs to a trial of a search: it has no number of a test item."""

COMPLETE = ("done", "searched")
"""States of runs that were taken to their end."""

SETTLED = (*COMPLETE, "diverged", "not_applicable")
"""States that a new run with the same code would only repeat. No other state replaces them."""

FAILURES = ("failed", "oom")
"""States in which a run went wrong."""

OUTCOMES = ("done", "diverged", "not_applicable", "oom")
"""States that a bundle may hold: outcomes of a run, not of a machine or of somebody's set-up."""
