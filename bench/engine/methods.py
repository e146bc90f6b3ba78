"""The methods by name. Importing this module does not load torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.registry import Kind

if TYPE_CHECKING:
    from bench.engine.method import Method

METHODS: Kind[Method] = Kind("method", "bench.methods", "bench.engine.method:Method")
