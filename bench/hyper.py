"""Hyper-parameters of a method: typed, with defaults, limits and a search space."""

from __future__ import annotations

from collections.abc import Mapping
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
            if isinstance(info.json_schema_extra, dict):
                space[name] = list(info.json_schema_extra["search"])  # type: ignore[arg-type]
        return space

    @classmethod
    def meaning(cls, name: str) -> str:
        """The meaning of a hyper-parameter, from its method or from the method that declares it first."""
        fields = (base.model_fields.get(name) for base in cls.__mro__ if issubclass(base, HyperParameters))
        return next((field.description for field in fields if field and field.description), "")


def added(default: Any, **limits: Any) -> Any:
    """Declare a setting that a spec leaves out at its default.

    Use it for a setting that earlier versions did not have, so that the hashes of stored runs stay the same,
    and for a hyper-parameter with the default None, since a spec holds no null.
    """
    return Field(default, exclude_if=lambda value: value == default, **limits)


def tunable(default: Any, search: list[Any], **limits: Any) -> Any:
    """Declare a hyper-parameter with the values that a tuning study tries, for example the paper's range."""
    return Field(default, json_schema_extra={"search": search}, **limits)


def hyper_parameters(settings_type: type[HyperParameters]) -> list[dict[str, str]]:
    """Hyper-parameters of a method in words: name, default, allowed values, values for tuning, meaning."""
    space = settings_type.search_space()
    schema = settings_type.model_json_schema()
    return [
        {
            "name": name,
            "default": str(field.default),
            "limits": _limits(schema["properties"][name]),
            "search": ", ".join(map(str, space.get(name, ()))),
            "meaning": settings_type.meaning(name),
        }
        for name, field in settings_type.model_fields.items()
    ]


SIGNS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def _limits(schema: Mapping[str, Any]) -> str:
    """The allowed values of a field: ``≥ 0, < 1``, or ``a, b, c``."""
    part = schema.get("anyOf", [schema])[0]
    bounds = [f"{sign} {part[key]:g}" for key, sign in SIGNS.items() if key in part]
    return ", ".join(map(str, part.get("enum", bounds))) or str(part["type"])
