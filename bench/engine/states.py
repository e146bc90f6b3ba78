"""How a run may end."""

from __future__ import annotations

from typing import Literal

State = Literal["done", "diverged", "oom", "failed", "not_applicable", "no_data", "not_implemented"]
