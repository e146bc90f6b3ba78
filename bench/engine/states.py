"""How a run may end. A ``searched`` run is a trial's of a search: it has no number of a test item."""

from __future__ import annotations

from typing import Literal

State = Literal["done", "searched", "diverged", "oom", "failed", "not_applicable", "no_data"]
