"""Hooks of a method under watch: what they return, what they change, and which clients they see together.

A watched method is of a class of its own that extends the method's, so that its attributes stay as they are.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.contract.broken import Broken, require
from bench.engine.checkpoint import SETUP, encode
from bench.engine.clients import Clients
from bench.engine.message import Message, Update
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.types import Federation

CLIENT_HOOKS = ("warm_up", "load", "adapt", "update", "logits")
SERVER_HOOKS = ("enrol", "broadcast", "aggregate")
Hook = Callable[..., Any]

EXPECTED: dict[str, tuple[type, str]] = {
    "prepare_data": (Federation, "the federation with what every client feeds its model"),
    "add_parameters": (Mapping, "{**models, ...}, tensors by name"),
    "warm_up": (Update, "an Update of what clients keep and upload"),
    "broadcast": (Message, "Message(model, extras)"),
    "load": (Mapping, "{**own, **message.model}, tensors by name"),
    "adapt": (Mapping, "the received models, tensors by name"),
    "update": (Update, "an Update, as self.upload(trained) gives one"),
    "logits": (Tensor, "a tensor [clients, items, classes]"),
    "onboard": (Message, "Message(model, extras)"),
    "artefacts": (Mapping, "tensors by name"),
}
"""What the engine expects hooks to return."""


@contextmanager
def standing_in(method: str, kind: type[Method]) -> Iterator[None]:
    """Meanwhile runs of a method are of another class."""
    kinds = METHODS.all()
    own_kind = kinds[method]
    kinds[method] = kind
    try:
        yield
    finally:
        kinds[method] = own_kind


def extended(kind: type[Method], names: Collection[str], around: Callable[[str, Hook], Hook]) -> type[Method]:
    """A class whose hooks of these names are called by what ``around`` makes of name and hook.

    A hook that another one of them calls is called as it is. ``onboard`` is left as it is where the method
    does not say it.
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

    hooks = {
        name: outermost(name) for name in names if name != "onboard" or kind.onboard is not Method.onboard
    }
    return type(kind.__name__, (kind,), hooks)


class _Seen(NamedTuple):
    """A tensor, and how many changes in place it had seen: a copy of each would take longer."""

    tensor: Tensor
    version: int


def attributes(method: Method) -> dict[str, Any]:
    """A method's attributes that a checkpoint could hold, derived ones included, for ``holds_the_same``."""
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
    """Whether two values of ``attributes`` held the same bits when these were asked for."""
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


def described(error: Exception, kind: type[Method], hook: str = "") -> str:
    """What an error of a run says to a method's author: the last line of the method's own file that it passed
    through, else where it was raised and which ``hook`` was called last.
    """
    text = " ".join(str(error).split())
    if isinstance(error, (Broken, RequestError)):
        return text
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).parent != Path(__file__).parent
    ] or traceback.extract_tb(error.__traceback__)[-1:]
    own_frames = [frame for frame in frames if frame.filename == inspect.getfile(kind)]
    frame = (own_frames or frames)[-1]
    at_hook = f", at {hook}()" if hook and not own_frames else ""
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}{at_hook}: {text}"


class Watch:
    """What is seen of a method's hooks while runs of it last.

    Attributes:
        last_hook: the hook that was called last, if any.
        noted: names of attributes that client hooks changed, and the first of these hooks.
        sent: names of parameters that the server sent, in their order.
    """

    def __init__(self, kind: type[Method]) -> None:
        self.last_hook = ""
        self.noted: dict[str, str] = {}
        self.sent: dict[str, None] = {}
        names = {*EXPECTED, *CLIENT_HOOKS, *SERVER_HOOKS}
        self.kind = extended(kind, names, self._around)

    def _around(self, name: str, hook: Hook) -> Hook:
        def call(method: Method, *arguments: Any) -> Any:
            self.last_hook = name
            before = attributes(method) if name in CLIENT_HOOKS else {}
            value = hook(method, *arguments)
            if name in CLIENT_HOOKS:
                for attribute, content in attributes(method).items():
                    if attribute not in before or not holds_the_same(before[attribute], content):
                        self.noted.setdefault(attribute, name)
            if name in EXPECTED:
                require_fitting(method, name, arguments, value)
            if name == "broadcast":
                self.sent.update(dict.fromkeys(value.model))
            return value

        return call


def require_fitting(method: Method, hook: str, arguments: Sequence[Any], value: Any) -> None:
    """Raise ``Broken`` unless a hook returned what the engine expects for these arguments."""
    kind, words = EXPECTED[hook]
    require(isinstance(value, kind), f"{hook}() returns {_form(value)}, expected {words}")
    count, own = method.task.clients, method.task.shapes
    if hook == "prepare_data":
        had = len(arguments[0])
        require(len(value) == had, f"prepare_data() returns {len(value)} clients, expected {had}")
    elif hook == "logits":
        require(value.dim() == 3, f"logits() returns {_form(value)}, expected {words}")
    elif hook == "artefacts":
        _require_tensors("artefacts()", value)
    elif hook == "broadcast":
        _require_message("broadcast()", value, count, own)
    elif hook == "onboard":
        _require_message("onboard()", value, arguments[0].count, own)
    elif hook in ("warm_up", "update"):
        clients, models = arguments[:2]
        _require_stack(f"{hook}() keeps", value.keep, models, clients.count, own)
        upload = value.upload
        require(isinstance(upload, Message), f"{hook}() uploads {_form(upload)}, expected a Message")
        shapes = {name: tuple(kept.shape[1:]) for name, kept in value.keep.items()} | own
        _require_message(f"{hook}()", upload, clients.count, shapes)
    else:
        models = arguments[1] if hook == "adapt" else arguments[0]
        _require_stack(f"{hook}() returns", value, models, len(next(iter(models.values()))), own)


def _form(value: Any) -> str:
    """A value as a message names it: its shape, or its type."""
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)}"
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _require_tensors(what: str, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        require(isinstance(value, Tensor), f"{what} gives {name} as {_form(value)}, expected a tensor")


def _require_stack(
    what: str, stack: Any, models: Mapping[str, Tensor], count: int, parameters: Collection[str]
) -> None:
    """All that the models have is there, with a row for every client; ``parameters`` of the client model as
    32-bit floats.
    """
    require(isinstance(stack, Mapping), f"{what} {_form(stack)}, expected tensors by name")
    for name in models:
        require(name in stack, f"{what} no {name}, which its clients have: start from all that they have")
    _require_tensors(what, stack)
    for name, value in stack.items():
        expected = (count, *models[name].shape[1:]) if name in models else (count, *value.shape[1:])
        form = tuple(value.shape)
        require(form == expected, f"{what} {name} as {form}, expected {expected}: a row for every client")
        if name in parameters:
            require(value.dtype == torch.float32, f"{what} {name} as {value.dtype}, expected torch.float32")


def _require_message(what: str, message: Message, count: int, shapes: Mapping[str, Sequence[int]]) -> None:
    """A row for every client in every tensor, parameters in their shapes, and no gradients."""
    for part, values in (("model", message.model), ("extras", message.extras)):
        require(
            isinstance(values, Mapping), f"{what} gives {part} as {_form(values)}, expected tensors by name"
        )
        _require_tensors(what, values)
        for name, value in values.items():
            form = tuple(value.shape)
            if part == "model" and name in shapes:
                expected = (count, *shapes[name])
                require(form == expected, f"{what} gives {name} as {form}, expected {expected}")
            require(
                form[:1] == (count,),
                f"{what} gives {name} as {form}, expected a row for each of {count} clients",
            )
            require(not value.requires_grad, f"{what} gives {name} with a gradient: detach it")


class Counted(Clients):
    """Clients that can go back to an earlier number of fits, by which random streams are named."""

    def fits(self) -> int:
        """How many fits of all clients there were in this round."""
        return self._root._calls

    def go_back(self, fits: int) -> None:
        """Name the streams of the next fit as if there had been so many."""
        self._root._calls = fits


def apart(
    kind: type[Method], groups: Sequence[Sequence[int]], noted: Mapping[str, bool], hooks: Collection[str]
) -> type[Method]:
    """The method with these client hooks called for groups of clients (of all), one after the other.

    No hook reads of a ``noted`` attribute what client hooks made of it since the run was set up; where it is
    said to be by client number, a group has its own clients' entries. Its runs are of ``Counted`` clients.
    """
    begun: list[Method] = []
    at_first: dict[str, Any] = {}
    notes: dict[str, dict[int, Any]] = {name: {} for name, is_by_client in noted.items() if is_by_client}

    def set_back(method: Method) -> None:
        for name in noted:
            vars(method).pop(name, None)
        vars(method).update(deepcopy(at_first))

    def begin(method: Method) -> None:
        if method not in begun:
            begun.append(method)
            at_first.update({name: deepcopy(vars(method)[name]) for name in noted if name in vars(method)})

    def around(name: str, hook: Hook) -> Hook:
        called_groups = groups if name in hooks else [sorted(row for group in groups for row in group)]

        def of_server(method: Method, *arguments: Any) -> Any:
            begin(method)
            set_back(method)
            return hook(method, *arguments)

        def of_clients(method: Method, *arguments: Any) -> Any:
            begin(method)
            counted = arguments[0] if isinstance(arguments[0], Counted) else None
            fits = counted.fits() if counted is not None else 0
            parts, new_notes = [], {attribute: dict[int, Any]() for attribute in notes}
            for group in called_groups:
                set_back(method)
                for attribute, values in notes.items():
                    vars(method)[attribute] = {row: values[row] for row in group if row in values}
                if counted is not None:
                    counted.go_back(fits)
                rows = torch.tensor(group)
                parts.append(hook(method, *(_rows(argument, rows) for argument in arguments)))
                for attribute in notes:
                    new_notes[attribute].update(vars(method)[attribute])
            notes.update(new_notes)
            order = torch.tensor([row for group in called_groups for row in group]).argsort()
            return _together(parts, order)

        return of_server if name in SERVER_HOOKS else of_clients

    others = {*SERVER_HOOKS, *CLIENT_HOOKS} - {"logits"} if noted else set()
    return extended(kind, {*hooks, *others}, around)


def _rows(value: Any, rows: Tensor) -> Any:
    """What a hook is given, for some clients alone."""
    if isinstance(value, Clients):
        return value.some(rows)
    if isinstance(value, Message):
        return value.of(rows)
    return {name: tensor[rows] for name, tensor in value.items()}


def _together(parts: Sequence[Any], order: Tensor) -> Any:
    """What a hook returned for groups of clients, as for all of them."""
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
