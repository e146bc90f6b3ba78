"""Runs a method and checks its hooks, or calls the hooks for groups of clients.

A subclass wraps the hooks, so that the attributes of the method's class stay unchanged.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from bench.contract import Broken, require
from bench.engine.checkpoint import SETUP, encode
from bench.engine.clients import Clients
from bench.engine.method import Message, Method, Update
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.types import Federation

CLIENT_HOOKS = ("first_upload", "load", "update")
Hook = Callable[..., Any]

EXPECTED: dict[str, tuple[type, str]] = {
    "prepare_data": (Federation, "the federation with what every client feeds its model"),
    "add_parameters": (Mapping, "{**models, ...}, tensors by name"),
    "first_upload": (Update, "an Update of what clients keep and upload"),
    "broadcast": (Message, "Message(model, extras)"),
    "load": (Mapping, "{**own, **message.model}, tensors by name"),
    "update": (Update, "an Update, as self.upload(trained) gives one"),
    "logits": (Tensor, "a tensor [clients, items, classes]"),
}
"""Name of a hook -> type that the engine expects as its result, and this result in words."""


@contextmanager
def standing_in(method: str, kind: type[Method]) -> Iterator[None]:
    """Make runs of a method with another class within the ``with`` block."""
    with patch.object(METHODS, "all", return_value=METHODS.all() | {method: kind}):
        yield


def extended(kind: type[Method], names: Collection[str], around: Callable[[str, Hook], Hook]) -> type[Method]:
    """A subclass with ``around(name, hook)`` in place of each hook in ``names``.

    If one of these hooks calls another, the inner call uses the original hook.
    """
    depth = [0]

    def outermost(name: str) -> Hook:
        hook = getattr(kind, name)
        wrapped = around(name, hook)

        def call(method: Method, *arguments: Any) -> Any:
            depth[0] += 1
            try:
                return (wrapped if depth[0] == 1 else hook)(method, *arguments)
            finally:
                depth[0] -= 1

        return call

    return type(kind.__name__, (kind,), {name: outermost(name) for name in names})


def attributes(method: Method) -> dict[str, Any]:
    """All attributes that a checkpoint can store, including derived ones, as plain values to compare."""
    values = {}
    for name, value in vars(method).items():
        if name not in SETUP:
            with suppress(TypeError):
                values[name] = _plain(encode(value))
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return str(value.dtype), tuple(value.shape), value.to_dense().flatten().cpu().numpy().tobytes()
    if isinstance(value, (np.ndarray, np.generic)):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, dict):
        return _plain(list(value.items()))
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else repr(value)


def described(error: Exception, kind: type[Method]) -> str:
    """Describe an error for a method's author. The file and line are from the last traceback entry in the
    method's file or, without such an entry, from the last entry.
    """
    text = " ".join(str(error).split())
    if isinstance(error, (Broken, RequestError)):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if frame.filename == inspect.getfile(kind)]
    frame = (own_frames or frames)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}: {text}"


def watched(kind: type[Method]) -> type[Method]:
    """A subclass whose runs check every hook.

    A run raises ``Broken`` if a hook returns what the engine does not expect, or if a hook of clients
    changes an attribute in place.
    """

    def around(name: str, hook: Hook) -> Hook:
        expected, words = EXPECTED[name]

        def call(method: Method, *arguments: Any) -> Any:
            before = attributes(method) if name in CLIENT_HOOKS else {}
            value = hook(method, *arguments)
            form = "None" if value is None else f"a value of type {type(value).__name__}"
            require(isinstance(value, expected), f"{name}() returns {form}, expected {words}")
            after = attributes(method) if before else {}
            for attribute, content in before.items():
                require(
                    content == after[attribute],
                    f"{name}() changes '{attribute}' of the server in place: upload what the server shall "
                    "know, and keep what clients keep by add_parameters() or clients.note()",
                )
            return value

        return call

    return extended(kind, EXPECTED, around)


def apart(kind: type[Method], groups: Sequence[Sequence[int]], hooks: Collection[str]) -> type[Method]:
    """A subclass that calls the hooks in ``hooks`` for one group of clients after the other.

    Before each call the number of fits is the same, because this number names random streams.
    """
    order = torch.tensor([row for group in groups for row in group]).argsort()

    def around(name: str, hook: Hook) -> Hook:
        def call(method: Method, clients: Clients, *arguments: Any) -> Any:
            fits, parts = clients._root._calls, []
            for group in groups:
                clients._root._calls = fits
                rows = torch.tensor(group)
                values = (_rows(argument, rows) for argument in arguments)
                parts.append(hook(method, clients.some(rows), *values))
            return _together(parts, order)

        return call

    return extended(kind, hooks, around)


def _rows(value: Any, rows: Tensor) -> Any:
    """An argument of a hook, for some clients."""
    if isinstance(value, Message):
        return value.of(rows)
    return {name: tensor[rows] for name, tensor in value.items()}


def _together(parts: Sequence[Any], order: Tensor) -> Any:
    """Join a hook's results for groups of clients, in the ``order`` of clients."""
    for kind, names in ((Update, ("keep", "upload")), (Message, ("model", "extras"))):
        if isinstance(parts[0], kind):
            return kind(*(_together([getattr(part, name) for part in parts], order) for name in names))
    if any(part.keys() != parts[0].keys() for part in parts):
        raise Broken("client hooks return other names for some clients than for others")
    return {name: torch.cat([part[name] for part in parts])[order] for name in parts[0]}
