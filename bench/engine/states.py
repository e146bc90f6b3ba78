"""How a run may end. A ``searched`` run belongs to a trial of a search: it has no test numbers."""

from __future__ import annotations

from typing import Literal

State = Literal["done", "searched", "diverged", "oom", "failed", "not_applicable", "no_data"]
