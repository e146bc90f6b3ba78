"""Runs a method with its hooks watched, or called for some clients at a time.

The hooks are wrapped in a subclass of the method's class, so that its attributes stay as they are.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor

from bench.contract.broken import Broken, require
from bench.engine.checkpoint import SETUP, encode
from bench.engine.clients import Clients
from bench.engine.method import Message, Update
from bench.engine.method import Method
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
"""What the engine expects hooks to return."""


@contextmanager
def standing_in(method: str, kind: type[Method]) -> Iterator[None]:
    """Make runs of a method with another class within the ``with`` block."""
    with patch.object(METHODS, "all", return_value=METHODS.all() | {method: kind}):
        yield


def extended(kind: type[Method], names: Collection[str], around: Callable[[str, Hook], Hook]) -> type[Method]:
    """A subclass whose hooks of these names are replaced by ``around(name, hook)``.

    A hook that another of these hooks calls is not replaced.
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


class _Seen(NamedTuple):
    """A tensor, and how often it had been changed in place. A copy of every tensor would take longer."""

    tensor: Tensor
    version: int


def attributes(method: Method) -> dict[str, Any]:
    """The attributes of a method that a checkpoint could hold, for ``holds_the_same``. Derived ones are
    included.
    """
    values = {}
    for name, value in vars(method).items():
        if name not in SETUP:
            try:
                values[name] = _seen(encode(value))
            except TypeError:
                continue
    return values


def _seen(node: Any) -> Any:
    if isinstance(node, Tensor):
        return _Seen(node, node._version)
    return type(node)(map(_seen, node)) if isinstance(node, (list, tuple)) else node


def holds_the_same(value: Any, other_value: Any) -> bool:
    """Whether two values of ``attributes`` held the same bits when ``attributes`` was called."""
    if isinstance(value, _Seen) and isinstance(other_value, _Seen):
        tensor, other_tensor = value.tensor, other_value.tensor
        if tensor.shape != other_tensor.shape or tensor.dtype != other_tensor.dtype:
            return False
        if tensor.data_ptr() == other_tensor.data_ptr() and tensor.stride() == other_tensor.stride():
            return value.version == other_value.version
        both_nan = (tensor != tensor) & (other_tensor != other_tensor)
        return bool(((tensor == other_tensor) | both_nan).all())
    if isinstance(value, (list, tuple)) and isinstance(other_value, (list, tuple)):
        return len(value) == len(other_value) and all(map(holds_the_same, value, other_value))
    return type(value) is type(other_value) and bool(value == other_value or value != value)


def described(error: Exception, kind: type[Method]) -> str:
    """An error in words for a method's author, with the last line of the method's file that it passed
    through.

    If it passed through none, the line where it was raised stands there.
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
            for attribute, content in before.items():
                require(
                    holds_the_same(content, attributes(method)[attribute]),
                    f"{name}() changes '{attribute}' of the server in place: upload what the server shall "
                    "know, and keep what clients keep by add_parameters() or clients.note()",
                )
            return value

        return call

    return extended(kind, EXPECTED, around)


class Counted(Clients):
    """Clients that can go back to an earlier number of fits, which names random streams."""

    def fits(self) -> int:
        """The number of fits in this round."""
        return self._root._calls

    def go_back(self, fits: int) -> None:
        """Name the streams of the next fit as if there had been so many fits."""
        self._root._calls = fits


def apart(kind: type[Method], groups: Sequence[Sequence[int]], hooks: Collection[str]) -> type[Method]:
    """A subclass whose hooks of these names are called for groups of clients, one after the other.

    Its runs need ``Counted`` clients.
    """

    def around(name: str, hook: Hook) -> Hook:
        def call(method: Method, clients: Counted, *arguments: Any) -> Any:
            fits = clients.fits()
            parts = []
            for group in groups:
                clients.go_back(fits)
                rows = torch.tensor(group)
                values = (_rows(argument, rows) for argument in arguments)
                parts.append(hook(method, clients.some(rows), *values))
            return _together(parts, torch.tensor([row for group in groups for row in group]).argsort())

        return call

    return extended(kind, hooks, around)


def _rows(value: Any, rows: Tensor) -> Any:
    """An argument of a hook, for some clients."""
    if isinstance(value, Message):
        return value.of(rows)
    return {name: tensor[rows] for name, tensor in value.items()}


def _together(parts: Sequence[Any], order: Tensor) -> Any:
    """Join what a hook returned for groups of clients."""
    first = parts[0]
    if isinstance(first, Update):
        keeps, uploads = [part.keep for part in parts], [part.upload for part in parts]
        return Update(_together(keeps, order), _together(uploads, order))
    if isinstance(first, Message):
        models, extras = [part.model for part in parts], [part.extras for part in parts]
        return Message(_together(models, order), _together(extras, order))
    for part in parts[1:]:
        if part.keys() != first.keys():
            raise Broken("client hooks return other names for some clients than for others")
    return {name: torch.cat([part[name] for part in parts])[order] for name in first}
