"""Hyper-parameters of a method: typed, with defaults, limits and a search space."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class HyperParameters(BaseModel):
    """Base of every method's ``Hyper``; the plain base means the method has none."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @classmethod
    def search_space(cls) -> dict[str, list[Any]]:
        """Values to try for each tunable hyper-parameter."""
        space: dict[str, list[Any]] = {}
        for name, info in cls.model_fields.items():
            extra = info.json_schema_extra
            if isinstance(extra, dict) and "search" in extra:
                space[name] = list(extra["search"])  # type: ignore[arg-type]
        return space


def added(default: Any, **limits: Any) -> Any:
    """A hyper-parameter that is absent from a spec at its default.

    For one that earlier versions of a method did not have, so that the hashes of stored runs stay, and
    for one whose default is None, since a spec holds no null.
    """
    return Field(default, exclude_if=lambda value: value == default, **limits)


def tunable(default: Any, search: list[Any], **limits: Any) -> Any:
    """A hyper-parameter with the values a tuning study tries, for example the paper's range."""
    return Field(default, json_schema_extra={"search": search}, **limits)
