"""Saves the state of a run between two rounds in a file that holds numbers only.

The state is what a run has become since it was set up: parameters, the clients' optimisers, the method's
attributes, counts, bytes and seconds. Random streams need no state, since they are named by what they are
for (``bench.streams``). On a CPU, a run that is set up again from the same spec and goes on from the file
ends with the same bits.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from bench.engine.kept_models import KeptModels
from bench.engine.message import Message
from bench.engine.method import Method
from bench.engine.run import Run
from bench.replacement import replacing_file, unfinished_files

FORMAT = 5
MINUTES = 10.0
"""How often a run is saved. The largest runs of the suite take about a second to write."""

SETUP = frozenset({"task", "hyper"})
"""Attributes of a method that the spec decides."""

Node = tuple[str, Any]
"""A value as it is written: its kind, and its content of tensors, numbers, text, lists and dicts."""


def encode(value: Any) -> Node:
    """Turn a value into tensors, numbers and text.

    Raises:
        TypeError: it is something else, or holds something else.
    """
    if value is None or type(value) in (bool, int, float, str):
        return "plain", value
    if isinstance(value, Tensor):
        return "tensor", _compact(value.detach().resolve_conj().resolve_neg())
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return kind, torch.from_numpy(np.array(value))
    if isinstance(value, torch.Generator):
        return "generator", value.get_state()
    if isinstance(value, (nn.Module, torch.optim.Optimizer)):
        return "state", encode(dict(value.state_dict()))
    if isinstance(value, dict):
        return "dict", [(encode(key), encode(item)) for key, item in value.items()]
    if type(value) in (list, tuple):
        return type(value).__name__, [encode(item) for item in value]
    raise TypeError(f"expected numbers, text, tensors, networks, optimisers or generators, got {value!r:.80}")


def _compact(value: Tensor) -> Tensor:
    """The tensor; a copy if it is a small part of a larger memory, all of which would be written."""
    if (
        value.layout != torch.strided
        or value.untyped_storage().nbytes() <= value.numel() * value.element_size()
    ):
        return value
    return value.clone()


def decode(node: Node, device: torch.device, target: Any = None) -> Any:
    """Turn a node back into its value.

    A tensor is put on the device of the same value in ``target``, if there is one. Parameters, modules,
    optimisers and generators of ``target`` are set in place.
    """
    kind, content = node
    if kind == "tensor":
        if isinstance(target, Tensor) and target.is_leaf and target.requires_grad:
            with torch.no_grad():
                target.copy_(content)
            return target
        return content.to(target.device if isinstance(target, Tensor) else device)
    if kind in ("array", "scalar"):
        return content.numpy() if kind == "array" else content.numpy()[()]
    if kind == "generator":
        target.set_state(content)
        return target
    if kind == "state":
        target.load_state_dict(decode(content, device))
        return target
    if kind == "dict":
        target_items = target if isinstance(target, dict) else {}
        pairs = [(decode(key, device), item) for key, item in content]
        return {key: decode(item, device, target_items.get(key)) for key, item in pairs}
    if kind in ("list", "tuple"):
        targets = (
            list(target)
            if isinstance(target, (list, tuple)) and len(target) == len(content)
            else [None] * len(content)
        )
        values = [decode(item, device, like) for item, like in zip(content, targets, strict=True)]
        return tuple(values) if kind == "tuple" else values
    return content


def method_state(method: Method) -> dict[str, Node]:
    """The attributes of a method, except those that the spec decides and those that are derived.

    Raises:
        TypeError: an attribute cannot be kept.
    """
    state = {}
    for name, value in vars(method).items():
        if name in SETUP or name in method.derived:
            continue
        try:
            state[name] = encode(value)
        except TypeError as error:
            raise TypeError(
                f"attribute '{name}' of {method.name} cannot be kept in a checkpoint: {error}; name it in "
                f"'derived' if a run that is set up anew has it again"
            ) from None
    return state


def _state(run: Run, round: int, seconds: float, identity: str) -> dict[str, Any]:
    """Everything that changes while a run lasts."""
    return {
        "format": FORMAT,
        "identity": identity,
        "round": round,
        "total": seconds,
        "seconds": dict(run.watch.seconds),
        "bytes": [run.traffic.bytes_up, run.traffic.bytes_down],
        "exchanges": encode(run.traffic.numbered),
        "own": encode(dict(run.own)),
        "counts": encode(run.counts),
        "selected": encode(run.selected.state()),
        "loss": encode(run.loss),
        "clients": encode(run.clients.state()),
        "first_message": encode([dict(run.first_message.model), dict(run.first_message.extras)]),
        "attacked": run.attacker is not None and run.attacker.replaced,
        "method": method_state(run.method),
    }


def _apply(run: Run, state: dict[str, Any]) -> None:
    run.watch.seconds = dict(state["seconds"])
    run.traffic.bytes_up, run.traffic.bytes_down = state["bytes"]
    run.traffic.numbered = decode(state["exchanges"], run.device)
    run.own = decode(state["own"], run.device)
    run.counts = decode(state["counts"], run.device)
    run.selected.resume(decode(state["selected"], run.device))
    run.loss = decode(state["loss"], run.device)
    run.clients.resume(decode(state["clients"], run.device))
    if run.attacker is not None:
        run.attacker.replaced = state["attacked"]
    run.first_message = Message(*decode(state["first_message"], run.device))
    run.method.receive_first(run.first_message)  # sets up what the first messages decide
    for name, node in state["method"].items():
        setattr(run.method, name, decode(node, run.device, getattr(run.method, name, None)))


class Saved(NamedTuple):
    """The round that a saved state follows, and the seconds until then."""

    round: int
    seconds: float


@dataclass
class Checkpoint:
    """Where and how often a run is saved.

    Attributes:
        path: the file: what ``torch.save`` writes, followed by its SHA-256.
        identity: names everything that must be the same for a saved state to be taken up (code, spec,
            data). A file with another identity, or a damaged one, is ignored: the run starts anew.
        minutes: how often the run is saved.
        kept: the models of the run that are kept, if any. They are saved with it. A state without them is
            not taken up.
    """

    path: Path
    identity: str
    minutes: float = MINUTES
    kept: KeptModels | None = None
    _last_save: float = field(default_factory=time.monotonic, init=False)
    _has_warned: bool = field(default=False, init=False)

    def keep(self, run: Run, round: int, seconds: float) -> None:
        """Save the run if ``minutes`` have passed since it began or was last saved.

        If that fails, the run goes on with one warning: losing it would be worse.
        """
        if time.monotonic() - self._last_save < 60 * self.minutes:
            return
        self._last_save = time.monotonic()
        try:
            self.save(run, round, seconds)
        except Exception as error:
            if not self._has_warned:
                problem = f"{type(error).__name__}: {error}"
                warnings.warn(f"no checkpoint after round {round}: {problem}", stacklevel=2)
            self._has_warned = True

    def save(self, run: Run, round: int, seconds: float) -> None:
        """Replace the file by the state after a round. If that fails, the old file stays.

        ``seconds`` is what the run took so far.

        Raises:
            OSError: the file cannot be written.
            TypeError: the method has an attribute that cannot be kept.
        """
        state = _state(run, round, seconds, self.identity)
        if self.kept is not None:
            state["kept"] = encode(self.kept.state())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for part in unfinished_files(self.path):
            part.unlink(missing_ok=True)
        content = io.BytesIO()
        torch.save(state, content)
        with replacing_file(self.path) as temporary, temporary.open("wb") as file:
            file.write(content.getbuffer())
            file.write(hashlib.sha256(content.getbuffer()).digest())
            file.flush()
            os.fsync(file.fileno())

    def load(self) -> dict[str, Any] | None:
        """The saved state; None if there is none of this run or if it is damaged.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            error.filename = str(self.path)  # an error while reading has no file name
            raise
        size = hashlib.sha256().digest_size
        state_bytes, digest = memoryview(content)[:-size], content[-size:]
        if hashlib.sha256(state_bytes).digest() != digest:
            return None
        try:
            state: dict[str, Any] = torch.load(io.BytesIO(state_bytes), map_location="cpu", weights_only=True)
            return state if (state["format"], state["identity"]) == (FORMAT, self.identity) else None
        except MemoryError:
            raise
        except Exception:  # another kind of file can raise anything
            return None

    def resume(self, run: Run) -> Saved | None:
        """Take up the saved state. If there is none, return None and leave ``run`` as it is.

        Raises:
            OSError: the file cannot be read.
        """
        state = self.load()
        if state is None or (self.kept is not None and "kept" not in state):
            return None
        if self.kept is not None:
            self.kept.resume(decode(state["kept"], run.device))
        _apply(run, state)
        return Saved(state["round"], state["total"])
