"""The rules about how a method's class is written. They need no run."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from inspect import Parameter, isfunction, signature
from typing import Any

from pydantic import BaseModel, ValidationError

from bench.contract import Broken, require
from bench.contract.subject import Subject
from bench.engine.method import Method
from bench.errors import unknown
from bench.spec import ClientSettings, Protocol


def describes_itself(subject: Subject) -> None:
    """It has a title, a docstring and a numerics version. The settings that it names exist and take its
    values.
    """
    kind = subject.kind
    require(bool(kind.title), "give it a title, as tables shall print it")
    require(bool(kind.__doc__), "say in its docstring what it computes, and after which paper")
    require(kind.numerics >= 1, f"numerics is {kind.numerics}: start at 1, raise it when numbers change")
    problems = []
    for section, model, settings in (
        ("protocol", Protocol, kind.protocol),
        ("client", ClientSettings, kind.client),
    ):
        names = model.model_fields
        problems += [f"{section}: {unknown('key', name, names)}" for name in settings if name not in names]
        known = {name: value for name, value in settings.items() if name in names}
        problems += [f"{section}.{problem}" for problem in refused(model, known)]
    for name, values in kind.Hyper.search_space().items():
        for value in values:
            problems += [f"'search' of {problem}" for problem in refused(kind.Hyper, {name: value})]
    require(not problems, "; ".join(problems))


def refused(model: type[BaseModel], values: Mapping[str, Any]) -> list[str]:
    """The problems that a model has with these values, each taken by itself."""
    try:
        model.model_validate(dict(values))
    except ValidationError as error:
        return [
            f"{detail['loc'][0]}: {detail['msg']}, got {detail['input']!r}"
            for detail in error.errors()
            if detail["loc"] and detail["loc"][0] in values
        ]
    return []


HOOKS = [name for name, value in vars(Method).items() if isfunction(value) and not name.startswith("_")]


def hooks_are_spelt_right(subject: Subject) -> None:
    """Hooks take the arguments that the engine gives them. No public method has almost a hook's name, since
    the engine would never call it.
    """
    for kind in subject.kind.__mro__[: subject.kind.__mro__.index(Method)]:
        for name, value in vars(kind).items():
            if not isfunction(value) or name.startswith("_") or hasattr(Method, name):
                continue
            for hook in get_close_matches(name, HOOKS, n=1, cutoff=0.8):
                require(
                    hook in vars(kind),
                    f"{kind.__name__}.{name}() is no hook, and the suite never calls it: "
                    f"call it {hook}(), or _{name}() if it is a helper",
                )
    for name in HOOKS:
        given = signature(vars(Method)[name]).parameters.values()
        taken = signature(getattr(subject.kind, name))
        arguments = [value.name for value in given if value.kind is Parameter.POSITIONAL_OR_KEYWORD]
        try:
            taken.bind(*arguments)
        except TypeError as error:
            takes, gets = ", ".join(taken.parameters), ", ".join(arguments)
            raise Broken(f"{name}({takes}) is called with ({gets}): {error}") from error
