"""The words that options of a sweep may be; the command line reads them without what a sweep needs."""

from __future__ import annotations

from typing import Literal

Engine = Literal["local", "ray", "slurm"]
"""Where runs are made."""

Level = Literal["stale", "failed", "changed"]
"""Stored runs that a person may want to have redone, and nothing else."""
