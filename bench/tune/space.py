"""What a study may change: the shared client settings, and at most three parameters of a method."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.spec import RunSpec

Value = bool | int | float | str
Space = dict[str, tuple[Value, ...]]
"""Dotted key (``client.learning_rate``, ``method.mu``) -> the values to try."""

CLIENT: dict[str, tuple[Value, ...]] = {
    "client.learning_rate": (0.001, 0.003, 0.01, 0.03),
    "client.weight_decay": (0.0, 1e-6, 0.0005, 0.005),
    "client.dropout": (0.0, 0.3, 0.5),
}
MOST_OWN = 3
"""Parameters of its own that a method may have tuned, so that no method searches a larger space."""


def search_space(spec: RunSpec) -> dict[str, tuple[Value, ...]]:
    """The space of a spec's method on its data set; it holds the spec's own configuration.

    Client settings that are part of the method's algorithm are left alone, and so is the dropout of
    client models that train on batches: those have none.

    Raises:
        RequestError: the method declares more than ``MOST_OWN`` tunable parameters.
    """
    kind = METHODS.named(spec.method)
    own = kind.Hyper.search_space()
    if len(own) > MOST_OWN:
        raise RequestError(
            f"{spec.method} declares {len(own)} tunable parameters ({', '.join(own)}); at most {MOST_OWN} "
            "are tuned, so that budgets are equal: make the others plain fields"
        )
    usual = spec.settings()
    fixed = {f"client.{name}" for name in kind.client}
    if spec.client.batch_size is not None:
        fixed.add("client.dropout")
    space = {key: values for key, values in CLIENT.items() if key not in fixed}
    space |= {f"method.{name}": tuple(values) for name, values in own.items()}
    return {key: _with(values, usual[key]) for key, values in space.items()}


def _with(values: tuple[Value, ...], default: Value) -> tuple[Value, ...]:
    """The values with the default among them, numbers ascending."""
    every = values if default in values else (*values, default)
    return every if any(isinstance(value, str) for value in every) else tuple(sorted(every))


def configured(spec: RunSpec, overrides: Mapping[str, Value]) -> RunSpec:
    """The spec with other values for some dotted keys of its client settings and its method.

    Raises:
        RequestError: an unknown key, or a value that is not allowed.
    """
    known = [key for key in spec.settings() if key.startswith(("client.", "method."))]
    for key in overrides:
        if key not in known:
            raise unknown(f"tuned setting of {spec.method}", key, known)
    try:
        other = spec.with_settings(overrides)
        hyper = METHODS.named(spec.method).Hyper.model_validate(other.hyper).model_dump()
        return other.model_copy(update={"hyper": hyper})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RequestError(f"{spec.method}: {where}: {first['msg']}, got {first['input']!r}") from None
